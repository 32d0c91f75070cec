//! Tests of misspelt kinds in the input of plans: alone they are errors, and beside other objects they count as objects whose pods are
//! not planned. Pools of Karpenter are errors where pods wait, unless there are pools of Poolwright, too.

use crate::support::{plan, poolwright};

const TYPO: &str = "{apiVersion: apps/v1, kind: Deploymnt, metadata: {name: web}, spec: {replicas: 2, template: {spec: {containers: \
                    [{name: c, image: x}]}}}}\n";
const MEANT: &str = "Deploymnt default/web: apps/v1 Deploymnt is not read; did you mean Deployment?";

/// Runs the command. Returns its exit code, and its error.
fn run(args: &[&str], input: &str) -> (Option<i32>, String) {
    let output = poolwright(args, input);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_misspelt_kind_is_an_error_if_nothing_else_can_be_planned() {
    let service =
        "---\n{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}}}\n";
    for input in [TYPO.to_owned(), format!("{TYPO}{service}")] {
        let (code, said) = run(&["plan", "-f", "-"], &input);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(&format!("1 problem\n  stdin: {MEANT}")), "{said}");
    }
}

#[test]
fn beside_pods_a_misspelt_kind_is_a_note_and_no_success_if_the_exit_code_matters() {
    let pod = "---\n{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: x, resources: {requests: \
               {cpu: '1'}}}]}}\n";
    let input = format!("{TYPO}{pod}");
    let plan = plan(&["-f", "-"], &input);
    assert!(plan["notes"].to_string().contains(MEANT), "{}", plan["notes"]);
    assert_eq!(plan["unread"][0], "Deploymnt default/web");
    let (code, said) = run(&["plan", "-f", "-", "--fail-on-unplaced"], &input);
    assert_eq!(code, Some(3), "{said}");
}

#[test]
fn a_misspelt_node_is_named_if_existing_nodes_are_missing() {
    let node = "{apiVersion: v1, kind: Noode, metadata: {name: n}, status: {allocatable: {cpu: '4'}}}\n";
    let args = ["plan", "-f", "fixtures/manifests/two-gpu-pods.yaml", "--existing", "-"];
    let (code, said) = run(&args, node);
    assert_eq!(code, Some(2), "{said}");
    for part in ["the files have no Node;", "Noode (document 1): v1 Noode is not read; did you mean Node?"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_pool_of_karpenter_beside_waiting_pods_is_an_error_that_names_the_conversion() {
    let karpenters = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: runners}, spec: {template: {spec: \
                      {requirements: []}}}}\n---\n";
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: x, resources: {requests: \
               {cpu: '1'}}}]}}\n---\n";
    let ours = "{apiVersion: poolwright.dev/v1alpha1, kind: NodePool, metadata: {name: gen}, spec: {template: {spec: {nodeClassRef: \
                {group: poolwright.dev, kind: KwokNodeClass, name: aws}}}}}\n";
    let (code, said) = run(&["plan", "-f", "-"], &format!("{karpenters}{pod}"));
    assert_eq!(code, Some(2), "{said}");
    let told = "stdin: NodePool runners: it is Karpenter's, so the plan would not keep to it; convert it with `poolwright convert -f -`";
    assert!(said.contains(told), "{said}");
    for input in [karpenters.to_owned(), format!("{karpenters}{pod}{ours}")] {
        let notes = plan(&["-f", "-"], &input)["notes"].to_string();
        assert!(notes.contains("convert it with `poolwright convert`"), "{notes}");
    }
}
