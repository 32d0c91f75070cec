//! Tests of expected pods with volumes.

use poolwright_core::*;

use crate::kit::*;

/// Returns a claim that waits for its first pod.
fn claim(name: &str) -> VolumeClaim {
    VolumeClaim {
        key: object_key(name),
        class: Some("fast".into()),
        volume: None,
        bound: false,
        lost: false,
        selected_node: None,
        shape: VolumeShape { size: 1 << 30, ..VolumeShape::default() },
        selector: vec![],
        ephemeral_for: None,
        deleting: false,
        over_quota: None,
    }
}

fn class(waits_for_pod: bool, zone: Option<&str>) -> StorageClass {
    StorageClass {
        name: "fast".into(),
        provisioner: Some("ebs.csi.aws.com".into()),
        waits_for_pod,
        allowed: zone.map(|zone| {
            vec![NodeSelectorTerm { requirements: vec![is_in("topology.kubernetes.io/zone", &[zone])] }]
        }),
        default_since: None,
    }
}

/// Returns a cluster with two of four pods of this controller, each with this volume.
fn two_of_four(
    kind: &str,
    claims: Vec<VolumeClaim>,
    class: StorageClass,
    of: impl Fn(&str) -> PodVolume,
) -> Snapshot {
    let pods = ["web-0", "web-1"].map(|name| Pod {
        owner: Some(Uid("web".into())),
        volumes: vec![of(name)],
        ..pod(name, requests(1, 1, 1))
    });
    let workload = Workload {
        kind: kind.into(),
        key: object_key("web"),
        uid: Uid("web".into()),
        owner: None,
        total: 4,
        wanted: 4,
        current: 2,
        scheduling_gated: false,
        selector: None,
    };
    let mut snapshot = with(with(cluster(aws(), [pool("gpu")]), pods), claims);
    snapshot.storage_classes.insert(class.name.clone(), class.into());
    with(snapshot, [workload])
}

fn named(name: String, ephemeral: bool) -> PodVolume {
    PodVolume::Claim { name, ephemeral }
}

/// Returns the number of pods that nodes are bought for, and the zones of these nodes.
fn planned_for(snapshot: &Snapshot) -> (usize, Vec<String>) {
    let plan = planned(snapshot);
    let mut zones: Vec<String> = plan.claims.iter().map(|claim| claim.offering().zone.to_string()).collect();
    zones.sort();
    zones.dedup();
    (plan.claims.iter().map(|claim| claim.planned_pods.len()).sum(), zones)
}

#[test]
fn pods_with_a_claim_of_their_own_are_expected_where_their_class_makes_volumes() {
    let claims = || vec![claim("www-web-0"), claim("www-web-1")];
    let of = |name: &str| named(format!("www-{name}"), false);
    let whole = two_of_four("StatefulSet", claims(), class(true, Some("b")), of);
    assert_eq!(planned_for(&whole), (4, vec!["b".to_owned()]), "and in its zones alone");
    let at_once = two_of_four("StatefulSet", claims(), class(false, None), of);
    assert_eq!(planned_for(&at_once).0, 0, "a class that binds at once has all of them wait");
    let shared_name = two_of_four("Job", claims(), class(true, None), of);
    assert_eq!(planned_for(&shared_name).0, 2, "no Job makes claims for its pods");
}

#[test]
fn pods_with_ephemeral_volumes_are_expected() {
    let of = |name: &str| named(format!("{name}-scratch"), true);
    let claims = ["web-0", "web-1"].map(|name| VolumeClaim {
        ephemeral_for: Some(Uid(format!("pod-{name}"))),
        ..claim(&format!("{name}-scratch"))
    });
    let snapshot = two_of_four("Job", claims.into(), class(true, Some("b")), of);
    assert_eq!(planned_for(&snapshot), (4, vec!["b".to_owned()]));
}

#[test]
fn pods_that_share_a_claim_are_expected_when_it_is_bound() {
    let of = |_: &str| named("data".into(), false);
    let volume = Volume {
        name: "v".into(),
        class: "fast".into(),
        shape: VolumeShape { size: 1 << 30, ..VolumeShape::default() },
        labels: [].into(),
        claim: Some(object_key("data")),
        available: false,
        deleting: false,
        topology: vec![vec![NodeSelectorTerm {
            requirements: vec![is_in("topology.kubernetes.io/zone", &["b"])],
        }]],
        attached: None,
    };
    let bound = VolumeClaim { volume: Some("v".into()), bound: true, ..claim("data") };
    let mut snapshot = two_of_four("Job", vec![bound], class(true, None), of);
    snapshot.volumes.insert(volume.name.clone(), volume.into());
    assert_eq!(planned_for(&snapshot), (4, vec!["b".to_owned()]));
    let unbound = two_of_four("Job", vec![claim("data")], class(true, None), of);
    assert_eq!(planned_for(&unbound).0, 2, "it is bound where the pods go that exist");
}
