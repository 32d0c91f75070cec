//! Tests RuntimeClasses of manifests: pods get the changes that admission would make.

use poolwright_core::TolerationMatch;
use poolwright_intake::manifest::{Manifest, parse};

const CLASS: &str = r"
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata
overhead: {podFixed: {cpu: 250m, memory: 160Mi}}
scheduling: {nodeSelector: {runtime: kata}, tolerations: [{key: kata, operator: Exists}]}
";

fn deployment(more: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec: {{selector: {{}}, template: {{spec: \
         {{runtimeClassName: kata, {more} containers: [{{name: a, resources: {{requests: {{cpu: '1'}}}}}}]}}}}}}\n"
    )
}

fn read(text: &str) -> Manifest {
    parse("pods.yaml", text).expect("it is read")
}

#[test]
fn a_pod_gets_what_its_runtime_class_adds_wherever_the_class_stands() {
    for text in [format!("{CLASS}{}", deployment("")), format!("{}---{CLASS}", deployment(""))] {
        let manifest = read(&text);
        let spec = &manifest.pods[0].spec;
        assert_eq!((spec.requests.get("cpu"), spec.requests.get("memory")), (1250, 160 << 20));
        assert_eq!(spec.node_selector["runtime"], "kata");
        assert_eq!(spec.tolerations[0].matches, TolerationMatch::Exists);
        assert_eq!(manifest.notes, [""; 0]);
    }
}

#[test]
fn a_class_that_is_not_in_the_files_is_named() {
    let manifest = read(&deployment(""));
    assert_eq!(manifest.pods[0].spec.requests.get("cpu"), 1000);
    assert_eq!(
        manifest.notes,
        [
            "Deployment default/web: RuntimeClass `kata` is not among the manifests, so its overhead and its node selector are not counted; add it to the files"
        ]
    );
}

#[test]
fn a_pod_that_admission_would_reject_is_rejected_with_its_field() {
    let refused = |more: &str| {
        let errors = parse("pods.yaml", &format!("{CLASS}{}", deployment(more))).expect_err("it is refused");
        errors[0].to_string()
    };
    assert_eq!(
        refused("nodeSelector: {runtime: gvisor},"),
        "pods.yaml: Deployment default/web: spec.template.spec.nodeSelector.runtime: `gvisor` contradicts RuntimeClass `kata`, which needs nodes with `kata`; remove one of them"
    );
    assert!(
        refused("overhead: {cpu: 1},")
            .contains("spec.template.spec.overhead: it differs from that of RuntimeClass")
    );
}
