//! Tests what plans of a cluster say about its CSIDrivers, which they do not read.

use serde_json::{Value, json};

use crate::api::{Request, kubeconfig, list, serve, status};
use crate::support::poolwright;

const DRIVERS: &str = "/apis/storage.k8s.io/v1/csidrivers";

/// Two waiting pods that share a new volume of a driver.
fn cluster(request: &Request) -> (u16, Value) {
    let pod = |name: &str| {
        json!({"metadata": {"name": name, "namespace": "ml", "uid": name},
            "spec": {"containers": [{"image": "x", "name": "main"}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
            "status": {"phase": "Pending"}})
    };
    match request.path.split('?').next().unwrap_or_default() {
        "/api/v1/pods" => list(&[pod("a"), pod("b")]),
        "/api/v1/persistentvolumeclaims" => list(&[json!({"metadata": {"name": "data", "namespace": "ml"},
            "spec": {"storageClassName": "new", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}})]),
        "/apis/storage.k8s.io/v1/storageclasses" => list(&[json!({"metadata": {"name": "new"},
            "provisioner": "files.example.com", "volumeBindingMode": "WaitForFirstConsumer"})]),
        DRIVERS => list(&[json!({"metadata": {"name": "files.example.com"},
            "spec": {"attachRequired": false, "storageCapacity": true}})]),
        _ => list(&[]),
    }
}

/// Returns the notes on CSIDrivers of a plan for the cluster.
fn notes(name: &str, answer: fn(&Request) -> (u16, Value)) -> Vec<String> {
    let kubeconfig = kubeconfig(&format!("csi-drivers-{name}"), serve(answer));
    let args = ["plan", "-o", "json", "--kubeconfig", kubeconfig.to_str().expect("UTF-8")];
    let output = poolwright(&args, "");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let plan: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    let notes = plan["notes"].as_array().expect("notes").iter().filter_map(Value::as_str);
    notes.filter(|note| note.to_lowercase().contains("csidriver")).map(str::to_owned).collect()
}

#[test]
fn a_plan_of_a_cluster_names_what_it_does_not_read_of_a_csi_driver_in_the_words_of_one_of_files() {
    let expected = [
        "CSIDriver files.example.com: spec.attachRequired is not read, so pods that share a new ReadWriteOnce volume of this driver get \
         one node; if several nodes may mount it, ask for ReadWriteMany in the PersistentVolumeClaim",
        "CSIDriver files.example.com: spec.storageCapacity and the CSIStorageCapacities are not read, so each node counts as having room \
         for new volumes of this driver; the scheduler may refuse nodes of the plan",
    ];
    assert_eq!(notes("read", cluster), expected);
}

#[test]
fn a_plan_says_if_the_csi_drivers_of_new_volumes_may_not_be_listed() {
    let forbidden = |request: &Request| {
        if request.path.starts_with(DRIVERS) { status(403, "not for you") } else { cluster(request) }
    };
    let told = "you may not list csidrivers, so the plan does not tell what else they say of new volumes; allow `list` to see it";
    assert_eq!(notes("forbidden", forbidden), [told]);
    let no_volumes = |request: &Request| match request.path.as_str() {
        path if path.starts_with(DRIVERS) => status(403, "not for you"),
        path if path.starts_with("/api/v1/pods") => list(&[]),
        _ => cluster(request),
    };
    assert_eq!(notes("no-volumes", no_volumes), [""; 0]);
}
