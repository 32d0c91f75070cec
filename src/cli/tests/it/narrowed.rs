//! Tests that a pod without a node is told which flag leaves out the offerings that would hold it, and what to write instead.

use crate::support::{plan, poolwright};

fn pod(spec: &str) -> String {
    format!("{{apiVersion: v1, kind: Pod, metadata: {{name: a, namespace: ml}}, spec: {spec}}}")
}

/// Returns the message of the only pod without a node.
fn message(flags: &[&str], pod: &str) -> String {
    let plan = plan(&[&["-f", "-"][..], flags].concat(), pod);
    assert_eq!(plan["pods"]["unplaced"], 1, "{plan}");
    plan["unplaced"][0]["message"].as_str().expect("a sentence").to_owned()
}

#[test]
fn a_capacity_type_that_no_flag_allows_is_named_with_the_flag_that_allows_it() {
    let spot = pod("{nodeSelector: {poolwright.dev/capacity-type: spot}, containers: [{image: x, name: a}]}");
    let start =
        "leaves out offerings that hold it; with --spot it gets a node. With the flags as they are: wants ";
    let usual = message(&["--provider", "gcp"], &spot);
    assert!(usual.starts_with(&format!("the default of --capacity-type (on-demand) {start}")), "{usual}");
    let written = message(&["--provider", "gcp", "--capacity-type", "on-demand"], &spot);
    assert!(written.starts_with(&format!("--capacity-type on-demand {start}")), "{written}");
    let followed = plan(&["-f", "-", "--provider", "gcp", "--spot"], &spot);
    assert_eq!(followed["pods"]["placed"], 1, "the advice helps");
    let told = poolwright(&["explain", "pod", "ml/a", "-f", "-", "--provider", "gcp"], &spot);
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(text.contains(start), "{text}");
}

#[test]
fn the_capacity_type_of_another_program_is_named_with_the_label_and_the_flag_at_once() {
    let of = |key: &str, value: &str| {
        pod(&format!("{{nodeSelector: {{{key}: {value}}}, containers: [{{image: x, name: a}}]}}"))
    };
    for (key, value) in [("karpenter.sh/capacity-type", "spot"), ("cloud.google.com/gke-spot", "'true'")] {
        let said = message(&["--provider", "gcp"], &of(key, value));
        let start = "the default of --capacity-type (on-demand) leaves out offerings that would hold it with the label of Poolwright; with --spot \
                     and that label it gets a node. With the flags as they are: wants label ";
        assert!(said.starts_with(start), "{said}");
        let label = "select by `poolwright.dev/capacity-type=spot` instead; this plan may buy only on-demand";
        assert!(said.contains(label), "{said}");
    }
    let followed = of("poolwright.dev/capacity-type", "spot");
    let bought = plan(&["-f", "-", "--provider", "gcp", "--spot"], &followed);
    assert_eq!(bought["pods"]["placed"], 1, "the advice helps");
    let on_demand = message(&["--provider", "gcp"], &of("karpenter.sh/capacity-type", "on-demand"));
    assert!(!on_demand.contains("--spot"), "no flag leaves it out: {on_demand}");
}

#[test]
fn a_provider_that_lacks_what_a_pod_needs_is_named_with_one_that_has_it() {
    let a10g = pod(
        "{nodeSelector: {poolwright.dev/gpu-model: a10g}, containers: [{image: x, name: a, resources: {limits: {nvidia.com/gpu: 1}}}]}",
    );
    let said = message(&["--provider", "gcp"], &a10g);
    let start = "--provider gcp leaves out offerings that hold it; with --provider aws it gets a node. With the flags as they are: ";
    assert!(said.starts_with(start), "{said}");
    let p100 = a10g.replace("a10g", "p100");
    let said = message(&[], &p100);
    let start = "the default of --provider (aws) leaves out offerings that hold it; with --provider gcp it gets a node. With ";
    assert!(said.starts_with(start), "{said}");
    let spot = p100.replace(
        "{poolwright.dev/gpu-model",
        "{poolwright.dev/capacity-type: spot, poolwright.dev/gpu-model",
    );
    let said = message(&["--capacity-type", "on-demand"], &spot);
    let start = "the default of --provider (aws) and --capacity-type on-demand leave out offerings that hold it; with --provider gcp --spot it \
                 gets a node. With ";
    assert!(said.starts_with(start), "{said}");
}

#[test]
fn a_flag_that_cuts_what_pools_may_buy_is_named_too() {
    let files = ["-f", "fixtures/manifests/pool.yaml", "-f", "fixtures/manifests/two-gpu-pods.yaml"];
    let cut = plan(&[&files[..], &["--capacity-type", "spot"]].concat(), "");
    assert_eq!(cut["pods"]["unplaced"], 2, "{cut}");
    let start = "--capacity-type spot leaves out offerings that hold it; with --spot it gets a node. With ";
    for left in cut["unplaced"].as_array().expect("a list") {
        assert!(left["message"].as_str().expect("a sentence").starts_with(start), "{left}");
    }
}

#[test]
fn a_pool_whose_offerings_a_flag_leaves_out_is_not_told_first_to_correct_its_requirements() {
    let pool = "{apiVersion: poolwright.dev/v1alpha1, kind: KwokNodeClass, metadata: {name: aws}, spec: {provider: aws}}\n---\n\
                {apiVersion: poolwright.dev/v1alpha1, kind: NodePool, metadata: {name: gen}, spec: {template: {spec: {\
                nodeClassRef: {group: poolwright.dev, kind: KwokNodeClass, name: aws}, requirements: [\
                {key: poolwright.dev/capacity-type, operator: In, values: [on-demand]}]}}}}\n---\n";
    let small = pod("{containers: [{image: x, name: a, resources: {requests: {cpu: '1'}}}]}");
    let input = format!("{pool}{small}");
    let left = message(&["--capacity-type", "spot"], &input);
    let flag = "--capacity-type spot leaves out offerings that ";
    assert!(left.starts_with(flag), "{left}");
    assert!(
        left.find("correct spec.template").is_none_or(|at| at > left.find("With the flags").expect(&left))
    );
    let told = poolwright(&["explain", "pool", "gen", "-f", "-", "--capacity-type", "spot"], &input);
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(
        text.contains(&format!(
            "It buys nothing (NoOfferingMatches): {flag}it may buy; with --spot it buys them. "
        )),
        "{text}"
    );
    let whole = poolwright(&["explain", "pool", "gen", "-f", "-"], &input);
    assert!(!String::from_utf8_lossy(&whole.stdout).contains("leaves out"), "the flag is the cause");
}

#[test]
fn a_floor_that_a_flag_sets_and_on_demand_nodes_that_another_leaves_out_are_both_named() {
    let pool = "{apiVersion: poolwright.dev/v1alpha1, kind: KwokNodeClass, metadata: {name: gcp}, spec: {provider: gcp}}\n---\n\
                {apiVersion: poolwright.dev/v1alpha1, kind: NodePool, metadata: {name: gen}, spec: {template: {spec: {\
                nodeClassRef: {group: poolwright.dev, kind: KwokNodeClass, name: gcp}, requirements: [\
                {key: poolwright.dev/capacity-type, operator: In, values: [on-demand, spot]}]}}}}\n---\n";
    let input =
        format!("{pool}{}", pod("{containers: [{image: x, name: a, resources: {requests: {cpu: '1'}}}]}"));
    let said = message(&["--capacity-type", "spot", "--on-demand-floor", "3"], &input);
    let start = "--capacity-type spot leaves out offerings that hold it; with --spot it gets a node. With ";
    assert!(said.starts_with(start), "{said}");
    assert!(said.contains("at least 3 nodes on demand (--on-demand-floor)"), "{said}");
    assert!(!said.contains("spec.spot"), "no file sets the floor: {said}");
}

#[test]
fn a_flag_is_not_named_if_no_other_gives_the_pod_a_node() {
    let nobody = pod("{containers: [{image: x, name: a, resources: {limits: {nvidia.com/gpu: 64}}}]}");
    let labelled = pod(
        "{nodeSelector: {team: ml, poolwright.dev/capacity-type: spot}, containers: [{image: x, name: a}]}",
    );
    // Only the limit leaves it out.
    let limited = pod("{containers: [{image: x, name: a, resources: {requests: {cpu: '1'}}}]}");
    let none: &[&str] = &[];
    let all: [(&[&str], String); 3] =
        [(none, nobody), (&["--provider", "gcp"], labelled), (&["--limit", "nodes=0"], limited)];
    for (flags, pod) in all {
        let said = message(flags, &pod);
        assert!(!said.contains("leaves out") && !said.contains("leave out"), "{said}");
    }
}
