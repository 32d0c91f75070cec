//! Tests that CSIDrivers and CSIStorageCapacities, which are not read, are named where they may change a plan, and only there.

use serde_json::{Value, json};

use crate::json_kit::{apps, object, read};

const DRIVER: &str = "files.example.com";

fn driver(name: &str, spec: Value) -> Value {
    object("storage.k8s.io/v1", "CSIDriver", name, spec)
}

fn class(driver: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "new"}, "provisioner": driver,
        "volumeBindingMode": "WaitForFirstConsumer"})
}

/// A claim, and so many pods of a Deployment that use it.
fn shared(pods: u32, mode: &str) -> [Value; 2] {
    let resources = json!({"requests": {"storage": "1Gi"}});
    let spec = json!({"storageClassName": "new", "accessModes": [mode], "resources": resources});
    let mut web = apps("Deployment", "web", pods);
    web["spec"]["template"]["spec"]["volumes"] =
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    [object("v1", "PersistentVolumeClaim", "data", spec), web]
}

fn notes(objects: impl IntoIterator<Item = Value>) -> Vec<String> {
    read(&objects.into_iter().collect::<Vec<_>>()).notes
}

#[test]
fn a_driver_that_attaches_nothing_is_named_if_pods_share_a_new_volume_of_it() {
    let unattached = |name: &str| driver(name, json!({"attachRequired": false}));
    let of =
        |name: &str, shared: [Value; 2]| notes([unattached(name), class(name)].into_iter().chain(shared));
    let note = "CSIDriver files.example.com: spec.attachRequired is not read, so pods that share a new ReadWriteOnce volume of this driver \
                get one node; if several nodes may mount it, ask for ReadWriteMany in the PersistentVolumeClaim";
    assert_eq!(of(DRIVER, shared(2, "ReadWriteOnce")), [note]);
    assert_eq!(of(DRIVER, shared(1, "ReadWriteOnce")), [""; 0], "one pod has one node in any case");
    assert_eq!(of(DRIVER, shared(2, "ReadWriteMany")), [""; 0]);
    assert_eq!(of("efs.csi.aws.com", shared(2, "ReadWriteOnce")), [""; 0], "it is known of this driver");
    let attached = driver(DRIVER, json!({"attachRequired": true}));
    assert_eq!(notes([attached, class(DRIVER)].into_iter().chain(shared(2, "ReadWriteOnce"))), [""; 0]);
}

#[test]
fn free_space_on_nodes_is_named_if_a_new_volume_needs_some() {
    let tracked = || driver(DRIVER, json!({"storageCapacity": true}));
    let capacity = || {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": {"name": "c", "namespace": "kube-system"},
            "storageClassName": "new", "capacity": "1Gi"})
    };
    let of = |objects: Vec<Value>| {
        notes(objects.into_iter().chain([class(DRIVER)]).chain(shared(1, "ReadWriteOnce")))
    };
    let room = "so each node counts as having room for new volumes of";
    let note = format!(
        "CSIDriver files.example.com: spec.storageCapacity and the CSIStorageCapacities are not read, {room} this driver; the scheduler may \
         refuse nodes of the plan"
    );
    assert_eq!(of(vec![tracked(), capacity()]), [note]);
    let note = format!(
        "CSIStorageCapacity kube-system/c: it is not read, {room} StorageClass `new`; the scheduler may refuse nodes of the plan"
    );
    assert_eq!(of(vec![capacity(), capacity_of("d")]), [note], "once for each class");
    assert_eq!(
        of(vec![capacity(), driver(DRIVER, json!({}))]),
        [""; 0],
        "the scheduler does not read it either"
    );
    let alone = notes([tracked(), capacity(), class(DRIVER), apps("Deployment", "web", 1)]);
    assert_eq!(alone, [""; 0], "no pod wants a new volume");
}

/// Another object with the free space of nodes.
fn capacity_of(name: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": {"name": name}, "storageClassName": "new"})
}
