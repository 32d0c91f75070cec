//! Tests of the advice to pods whose rules on labels and taints no node meets: in the reason, and in the explanation.

use poolwright_core::plan::PlanOptions;
use poolwright_core::{NodeSelectorTerm, Operator, Pod, Pool, Requirement, why};
use poolwright_terms::{Taint, TaintEffect};

use crate::kit::*;

const TYPE: &str = "node.kubernetes.io/instance-type";
const ZONE: &str = "topology.kubernetes.io/zone";
const MODEL: &str = "poolwright.dev/gpu-model";
const TEMPLATE: &str = "template.metadata.labels";

fn selecting(labels: &[(&str, &str)]) -> Pod {
    let mut pod = pod("p", requests(1, 1, 0));
    for (key, value) in labels {
        pod.spec.node_selector.insert((*key).to_owned(), (*value).to_owned());
    }
    pod
}

/// Returns the reason why the pod gets no node, and the nearest miss of its explanation.
fn told(pool: Pool, pod: Pod) -> [String; 2] {
    let snapshot = with(cluster(aws(), [pool]), [pod]);
    let plan = planned(&snapshot);
    let lines = why::pod(&snapshot, at(10), &PlanOptions::default(), &plan, &key("p"));
    let nearest = lines.expect("the pod exists").into_iter().find(|line| line.starts_with("Nearest"));
    [plan.unplaced[0].message.clone(), nearest.expect("nothing fits")]
}

#[test]
fn labels_that_programs_and_clouds_set_are_never_advised_for_a_template() {
    for key in [
        "k8s.amazonaws.com/accelerator",
        "nvidia.com/mig.strategy",
        "feature.node.kubernetes.io/pci-10de.present",
        "amd.com/gpu.device-id",
        "gpu.nvidia.com/model",
        "kops.k8s.io/instancegroup",
        "topology.k8s.aws/network-node-layer-1",
        "node.kubernetes.io/lifecycle",
        "node-role.kubernetes.io/control-plane",
    ] {
        for is_implicit in [false, true] {
            for said in told(Pool { is_implicit, ..pool("gpu") }, selecting(&[(key, "x")])) {
                assert!(!said.contains(TEMPLATE), "{key}: {said}");
            }
        }
    }
    for own in ["team", "example.com/tier", "node-role.kubernetes.io/gpu"] {
        for said in told(pool("gpu"), selecting(&[(own, "x")])) {
            assert!(said.contains(TEMPLATE), "{own}: {said}");
        }
    }
}

#[test]
fn a_pod_for_the_control_plane_is_told_that_no_such_node_is_bought() {
    for said in told(pool("gpu"), selecting(&[("node-role.kubernetes.io/control-plane", "")])) {
        assert!(said.contains("Poolwright buys no control-plane nodes"), "{said}");
    }
}

#[test]
fn a_label_that_names_a_gpu_model_is_told_the_label_that_the_instance_type_decides() {
    for key in ["accelerator", "k8s.amazonaws.com/accelerator", "gpu.nvidia.com/model"] {
        for said in told(pool("gpu"), selecting(&[(key, "nvidia-tesla-l4")])) {
            assert!(said.contains("select by `poolwright.dev/gpu-model=l4` instead"), "{key}: {said}");
        }
        for said in told(pool("gpu"), selecting(&[(key, "nvidia-tesla-v100")])) {
            assert!(said.contains("nodes of pool `gpu` have a10g, l4"), "{key}: {said}");
        }
    }
    for said in told(pool("gpu"), selecting(&[("accelerator", "fast")])) {
        assert!(said.contains(TEMPLATE), "it is the user's own: {said}");
    }
}

#[test]
fn a_capacity_type_of_another_program_is_translated_though_the_pool_does_not_buy_it() {
    for (key, value) in [("eks.amazonaws.com/capacityType", "SPOT"), ("cloud.google.com/gke-spot", "true")] {
        for said in told(pool("gpu"), selecting(&[(key, value)])) {
            assert!(said.contains("select by `poolwright.dev/capacity-type=spot` instead"), "{said}");
            assert!(said.contains("; pool `gpu` has only on-demand"), "{said}");
        }
    }
}

#[test]
fn all_taints_that_a_pod_does_not_tolerate_are_named_at_once() {
    let evicting = Taint { effect: TaintEffect::NoExecute, ..taint("gpu", "yes") };
    let tainted = || Pool { taints: vec![taint("team", "a"), evicting.clone()], ..pool("gpu") };
    let [reason, nearest] = told(tainted(), selecting(&[]));
    assert_eq!(
        reason,
        "does not tolerate taints `team=a:NoSchedule`, `gpu=yes:NoExecute` of pool `gpu`; add a toleration of each, or a pool without these taints"
    );
    assert!(
        nearest.ends_with("To change that: add tolerations of `team=a:NoSchedule`, `gpu=yes:NoExecute`."),
        "{nearest}"
    );
    let mut tolerant = selecting(&[]);
    tolerant.spec.tolerations = vec![tolerate("team"), tolerate("gpu")];
    assert_eq!(planned(&with(cluster(aws(), [tainted()]), [tolerant])).unplaced, [], "the advice helps");
    let agent = Taint { effect: TaintEffect::NoExecute, ..taint("node.cilium.io/agent-not-ready", "true") };
    let both = Pool { taints: vec![agent, taint("team", "a")], ..pool("gpu") };
    let [reason, nearest] = told(both, selecting(&[]));
    for part in [
        "does not tolerate taint `team=a:NoSchedule` of pool `gpu`; add a toleration",
        "does not tolerate taint `node.cilium.io/agent-not-ready=true:NoExecute` of pool `gpu`, which an agent removes; list it under startupTaints",
    ] {
        assert!(reason.contains(part), "{reason}");
    }
    assert!(
        nearest.contains("add a toleration of `team=a:NoSchedule`; and list `node.cilium.io"),
        "{nearest}"
    );
}

#[test]
fn of_rules_that_no_offering_meets_together_those_are_named_whose_change_helps() {
    let mut one = selecting(&[(TYPE, "g5.12xlarge"), (ZONE, "b")]);
    let few = Requirement { key: "poolwright.dev/gpu-count".to_owned(), operator: Operator::Lt(4) };
    one.spec.node_affinity = Some(vec![NodeSelectorTerm { requirements: vec![few] }]);
    let [reason, _] = told(pool("gpu"), one.clone());
    assert!(reason.ends_with("; relax `node.kubernetes.io/instance-type g5.12xlarge`"), "{reason}");
    one.spec.node_selector.remove(TYPE);
    assert_eq!(planned(&with(cluster(aws(), [pool("gpu")]), [one])).unplaced, [], "the advice helps");
    let two = selecting(&[(TYPE, "g5.12xlarge"), (MODEL, "l4"), (ZONE, "b")]);
    let [reason, _] = told(pool("gpu"), two);
    let together =
        "; relax `node.kubernetes.io/instance-type g5.12xlarge` and `poolwright.dev/gpu-model l4` together";
    assert!(reason.ends_with(together), "{reason}");
}

#[test]
fn a_value_in_another_case_or_with_other_dashes_is_told_the_right_one() {
    for (key, written, meant) in [
        (TYPE, "G6.xlarge", "g6.xlarge"),
        ("poolwright.dev/instance-family", "G6", "g6"),
        (MODEL, "L4", "l4"),
        (ZONE, "B", "b"),
        ("poolwright.dev/capacity-type", "ON_DEMAND", "on-demand"),
        ("kubernetes.io/arch", "AMD64", "amd64"),
    ] {
        let [reason, nearest] = told(pool("gpu"), selecting(&[(key, written)]));
        assert!(reason.contains(&format!("; did you mean `{meant}`?")), "{key}: {reason}");
        let change = format!("write `{meant}` instead of `{written}` in the rule on `{key}`.");
        assert!(nearest.ends_with(&change), "{key}: {nearest}");
        let corrected = selecting(&[(key, meant)]);
        assert_eq!(planned(&with(cluster(aws(), [pool("gpu")]), [corrected])).unplaced, [], "{key}");
    }
    let mut gpus = selecting(&[(MODEL, "L4")]);
    gpus.spec.requests = requests(1, 1, 1);
    let [reason, nearest] = told(pool("gpu"), gpus.clone());
    assert_eq!(reason, "needs 1 x L4 in one node; pool `gpu` allows only a10g, l4; did you mean `l4`?");
    assert!(nearest.starts_with("Nearest miss: g6.xlarge/a/on-demand of pool gpu: "), "{nearest}");
    // The node class sells it, and the pool does not buy it.
    let narrow = Pool { requirements: vec![is_in(MODEL, &["a10g"])], ..pool("gpu") };
    let [reason, _] = told(narrow, gpus);
    assert!(reason.ends_with("allows only a10g; did you mean `l4`?"), "{reason}");
}

#[test]
fn a_value_that_is_sold_is_not_corrected_and_the_requirement_that_excludes_it_is_named() {
    let requirements = vec![is_in(MODEL, &["a10g", "l4"]), is_in(TYPE, &["g5.xlarge"])];
    let mut gpus = selecting(&[(MODEL, "l4")]);
    gpus.spec.requests = requests(1, 1, 1);
    let [reason, nearest] = told(Pool { requirements: requirements.clone(), ..pool("gpu") }, gpus.clone());
    assert_eq!(
        reason,
        "needs 1 x l4 in one node; pool `gpu` allows only a10g; widen the pool's requirements so that it may buy g6.xlarge ($1.10/h), \
         which `node.kubernetes.io/instance-type In [g5.xlarge]` excludes"
    );
    assert!(!nearest.contains("instead of `l4`"), "{nearest}");
    let mut several = requirements;
    several.push(is_in(ZONE, &["b"]));
    let [reason, _] = told(Pool { requirements: several, ..pool("gpu") }, gpus);
    let both = ", which `node.kubernetes.io/instance-type In [g5.xlarge]` and 1 more exclude";
    assert!(reason.ends_with(both) && !reason.contains("did you mean"), "{reason}");
}

#[test]
fn a_pool_that_has_the_label_with_another_value_is_not_told_to_add_it() {
    let team = Pool { labels: [("team".to_owned(), "a".to_owned())].into(), ..pool("gpu") };
    let [_, nearest] = told(team, selecting(&[("team", "b")]));
    assert!(
        nearest.ends_with(
            "drop the rule on `team`, or create a NodePool whose nodes meet it, because those of pool gpu have `team=a`."
        ),
        "{nearest}"
    );
}

#[test]
fn all_requests_that_no_offering_fits_together_are_named() {
    let kinds = catalogue(vec![
        Kind("sixteen", capacity(96, 1300, 16), Some("a100"), &[("a", "50.00")]),
        Kind("eight", capacity(220, 2900, 8), Some("h200"), &[("a", "80.00")]),
    ]);
    let plan = planned(&with(cluster(kinds, [pool("gpu")]), [pod("p", requests(100, 2048, 16))]));
    assert_eq!(
        plan.unplaced[0].message,
        "needs 100 cpu in one node; the largest offering of pool `gpu` for it, sixteen, has 96, and less than 2Ti memory; no instance \
         type in the catalogue with the devices that it asks for has more than 96, so ask for less"
    );
}
