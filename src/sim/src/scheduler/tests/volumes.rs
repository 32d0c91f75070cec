//! Volumes that are there, and claims that are bound where their pods go.

use std::sync::Arc;

use poolwright_core::{
    NodeDrivers, ObjectKey, PodVolume, Snapshot, StorageClass, Volume, VolumeClaim, VolumeShape,
};
use poolwright_terms::labels::ZONE;

use super::super::kit::{PodBuilder, cluster, fits, node, only, pod, tried};
use super::super::{Cluster, Outcome, Supply};

fn claim(name: &str, change: impl FnOnce(&mut VolumeClaim)) -> VolumeClaim {
    let mut claim = VolumeClaim {
        key: ObjectKey::new("default", name),
        class: None,
        volume: Some(format!("{name}-volume")),
        bound: true,
        lost: false,
        selected_node: None,
        shape: VolumeShape::default(),
        selector: Vec::new(),
        ephemeral_for: None,
        deleting: false,
        over_quota: None,
    };
    change(&mut claim);
    claim
}

/// Returns two nodes in two zones, these claims, and a volume in zone b for each claim.
fn with(
    claims: impl IntoIterator<Item = VolumeClaim>,
    pods: impl IntoIterator<Item = PodBuilder>,
) -> Cluster {
    let mut snapshot = Snapshot::default();
    for claim in claims {
        if let Some(name) = &claim.volume {
            let volume = Volume {
                name: name.clone(),
                class: String::new(),
                shape: VolumeShape::default(),
                labels: [].into(),
                claim: Some(claim.key.clone()),
                available: false,
                deleting: false,
                topology: vec![vec![only(ZONE, "b")]],
                attached: Some(("disk.example".to_owned(), name.clone())),
            };
            snapshot.volumes.insert(name.clone(), Arc::new(volume));
        }
        snapshot.volume_claims.insert(claim.key.clone(), Arc::new(claim));
    }
    let class = StorageClass {
        name: "late".to_owned(),
        provisioner: Some("disk.example".to_owned()),
        waits_for_pod: true,
        allowed: None,
        default_since: None,
    };
    snapshot.storage_classes.insert("late".to_owned(), Arc::new(class));
    let limits = [("disk.example".to_owned(), 2)].into();
    let drivers = NodeDrivers { node: "n2".to_owned(), limits, ..NodeDrivers::default() };
    snapshot.node_drivers.insert("n2".to_owned(), Arc::new(drivers));
    let mut cluster = cluster([node("n1", "a"), node("n2", "b")], pods);
    cluster.set_around(&snapshot);
    cluster
}

fn using(name: &str, claims: &[&str]) -> PodBuilder {
    let volume = |name: &&str| PodVolume::Claim { name: (*name).to_owned(), ephemeral: false };
    pod(name).with(|pod| pod.volumes = claims.iter().map(volume).collect())
}

fn first_words(cluster: &Cluster, made: PodBuilder) -> String {
    let Outcome::Unschedulable { message, .. } = tried(cluster, made) else { panic!("it goes somewhere") };
    message.split(" no new claims").next().unwrap_or_default().to_owned()
}

#[test]
fn a_pod_goes_where_its_volume_can_be_used() {
    let cluster = with([claim("data", |_| {})], []);
    let reason = "node(s) didn't match PersistentVolume's node affinity";
    assert_eq!(fits(&cluster, using("p", &["data"])), (vec!["n2".to_owned()], reason.to_owned()));
}

#[test]
fn a_claim_for_one_pod_at_a_time_keeps_the_second_one_waiting() {
    let single = || claim("data", |claim| claim.shape.access_modes = ["ReadWriteOncePod".to_owned()].into());
    let reason = "0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod.";
    let taken = with([single()], [using("there", &["data"]).on("n2")]);
    assert_eq!(first_words(&taken, using("p", &["data"])), reason);
    assert_eq!(fits(&with([single()], []), using("p", &["data"])).0, ["n2"]);
}

#[test]
fn a_node_takes_no_more_volumes_than_its_driver_can_attach_and_one_that_two_pods_use_counts_once() {
    let claims = || ["one", "two", "three"].map(|name| claim(name, |_| {}));
    let cluster = with(claims(), [using("there", &["one"]).on("n2"), using("too", &["two"]).on("n2")]);
    let reason = "0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 1 node(s) exceed max volume count.";
    assert_eq!(first_words(&cluster, using("p", &["three"])), reason);
    assert_eq!(fits(&cluster, using("p", &["one", "two"])).0, ["n2"]);
}

#[test]
fn a_claim_that_cannot_be_used_yet_keeps_its_pod_waiting_in_so_many_words() {
    let all = [
        claim("leaving", |claim| claim.deleting = true),
        claim("lost", |claim| claim.lost = true),
        claim("unbound", |claim| claim.bound = false),
    ];
    let cluster = with(all, []);
    for (name, words) in [
        ("missing", "persistentvolumeclaim \"missing\" not found"),
        ("leaving", "persistentvolumeclaim \"leaving\" is being deleted"),
        ("lost", "persistentvolumeclaim \"lost\" bound to non-existent persistentvolume \"lost-volume\""),
        ("unbound", "pod has unbound immediate PersistentVolumeClaims"),
    ] {
        let expected = format!("0/2 nodes are available: {words}.");
        assert_eq!(first_words(&cluster, using("p", &[name])), expected);
    }
}

fn late(name: &str) -> VolumeClaim {
    claim(name, |claim| {
        claim.bound = false;
        claim.volume = None;
        claim.class = Some("late".to_owned());
    })
}

/// Returns two nodes in two zones, and two claims of a class that waits for their pods. `change` may change the class and add
/// volumes.
fn around(change: impl FnOnce(&mut Snapshot, &mut StorageClass)) -> Cluster {
    let mut snapshot = Snapshot::default();
    let mut class = StorageClass {
        name: "late".to_owned(),
        provisioner: Some("disk.example".to_owned()),
        waits_for_pod: true,
        allowed: None,
        default_since: None,
    };
    for name in ["one", "two"] {
        let claim = late(name);
        snapshot.volume_claims.insert(claim.key.clone(), Arc::new(claim));
    }
    change(&mut snapshot, &mut class);
    snapshot.storage_classes.insert("late".to_owned(), Arc::new(class));
    let mut cluster = cluster([node("n1", "a"), node("n2", "b")], []);
    cluster.set_around(&snapshot);
    cluster
}

fn free_volume(snapshot: &mut Snapshot) {
    let volume = Volume {
        name: "free".to_owned(),
        class: "late".to_owned(),
        shape: VolumeShape::default(),
        labels: [].into(),
        claim: None,
        available: true,
        deleting: false,
        topology: vec![vec![only(ZONE, "b")]],
        attached: None,
    };
    snapshot.volumes.insert("free".to_owned(), Arc::new(volume));
}

#[test]
fn a_claim_that_waits_for_its_pod_gets_a_new_volume_where_its_class_allows_one() {
    let anywhere = around(|_, _| {});
    assert_eq!(fits(&anywhere, using("p", &["one"])).0, ["n1", "n2"]);
    let only_b = around(|_, class| class.allowed = Some(vec![only(ZONE, "b")]));
    let reason = "node(s) didn't find available persistent volumes to bind";
    assert_eq!(fits(&only_b, using("p", &["one"])), (vec!["n2".to_owned()], reason.to_owned()));
    let supplies = only_b.supplies(&using("p", &["one"]).build(), "n2");
    assert_eq!(supplies, [(ObjectKey::new("default", "one"), Supply::Class("late".to_owned()))]);
}

#[test]
fn without_a_provisioner_a_claim_gets_a_free_volume_and_two_claims_do_not_get_the_same() {
    let cluster = around(|snapshot, class| {
        class.provisioner = None;
        free_volume(snapshot);
    });
    assert_eq!(fits(&cluster, using("p", &["one"])).0, ["n2"]);
    assert!(fits(&cluster, using("p", &["one", "two"])).0.is_empty());
    let supplies = cluster.supplies(&using("p", &["one"]).build(), "n2");
    assert_eq!(supplies, [(ObjectKey::new("default", "one"), Supply::Volume("free".to_owned()))]);
}

#[test]
fn a_claim_is_bound_without_a_pod_if_its_class_does_not_wait_or_a_volume_is_kept_for_it() {
    let waits = around(|snapshot, _| free_volume(snapshot));
    assert_eq!(waits.supply_at_once(&late("one")), None);
    let at_once = around(|_, class| class.waits_for_pod = false);
    assert_eq!(at_once.supply_at_once(&late("one")), Some(Supply::Class("late".to_owned())));
    let kept = around(|snapshot, _| {
        free_volume(snapshot);
        let mut volume = snapshot.volumes["free"].as_ref().clone();
        volume.claim = Some(ObjectKey::new("default", "one"));
        snapshot.volumes.insert("free".to_owned(), Arc::new(volume));
    });
    assert_eq!(kept.supply_at_once(&late("one")), Some(Supply::Volume("free".to_owned())));
    assert_eq!(kept.supply_at_once(&late("two")), None);
}
