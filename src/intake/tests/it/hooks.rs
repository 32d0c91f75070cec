//! Tests of hooks: those that no install creates are no demand.

use serde_json::{Value, json};

use crate::json_kit::{ending, names, object, read, stored};

fn hook(name: &str, annotation: &str, events: &str) -> Value {
    let mut job = object("batch/v1", "Job", name, json!({"template": ending()}));
    job["metadata"]["annotations"] = json!({annotation: events});
    job
}

fn helm(name: &str, events: &str) -> Value {
    hook(name, "helm.sh/hook", events)
}

fn argo(name: &str, events: &str) -> Value {
    hook(name, "argocd.argoproj.io/hook", events)
}

#[test]
fn hooks_that_an_install_does_not_create_are_not_planned_and_one_note_names_them() {
    let mut test = object("v1", "Pod", "ask", json!({"containers": [{"image": "x", "name": "a"}]}));
    test["metadata"]["annotations"] = json!({"helm.sh/hook": "test"});
    let mut account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ask"}});
    account["metadata"]["annotations"] = json!({"helm.sh/hook": "test"});
    let manifest = read(&[test, helm("bye", "pre-delete, post-delete"), account]);
    assert_eq!(names(&manifest), [""; 0]);
    assert_eq!(
        manifest.notes,
        [
            "Pod default/ask (test), Job default/bye (pre-delete, post-delete) are hooks that an install with Helm does not create, so \
             they are not planned; `helm template --no-hooks` prints a chart without its hooks"
        ]
    );
    assert!(manifest.unread.is_empty(), "nobody wants these pods now");
}

#[test]
fn hooks_that_an_install_runs_are_planned() {
    for events in ["pre-install", "post-install", "pre-upgrade, post-upgrade", "post-install, test"] {
        assert_eq!(names(&read(&[helm("a", events)])).len(), 1, "{events}");
    }
    assert_eq!(names(&read(&[argo("a", "PreSync")])).len(), 1);
}

#[test]
fn hooks_of_argo_cd_are_of_the_same_kind_and_count_instead_of_those_of_helm() {
    let manifest = read(&[argo("a", "PostDelete"), argo("b", "Skip")]);
    assert_eq!(names(&manifest), [""; 0]);
    assert!(manifest.notes[0].contains("a sync of Argo CD does not create"), "{:?}", manifest.notes);
    let mut both = argo("a", "PreSync");
    both["metadata"]["annotations"]["helm.sh/hook"] = "post-delete".into();
    assert_eq!(names(&read(&[both])).len(), 1);
}

#[test]
fn a_hook_that_a_cluster_has_exists() {
    let manifest = read(&[stored(helm("a", "post-delete"), None)]);
    assert_eq!(names(&manifest).len(), 1, "{:?}", manifest.notes);
}
