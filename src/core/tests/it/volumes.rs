//! Tests of pods with volumes.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_core::plan::{Plan, UnplacedReason};
use poolwright_core::*;

use crate::kit::*;

const ZONE: &str = "topology.kubernetes.io/zone";
const EBS_ZONE: &str = "topology.ebs.csi.aws.com/zone";

/// Returns a cluster with small nodes in zones a (expensive) and b (cheap).
fn shop() -> Snapshot {
    let kinds = vec![Kind("m7.large", capacity(4, 16, 0), None, &[("a", "0.20"), ("b", "0.10")])];
    cluster(catalogue(kinds), [pool("cpu")])
}

fn wants(name: &str, claim: &str) -> Pod {
    let volumes = vec![PodVolume::Claim { name: claim.into(), ephemeral: false }];
    Pod { volumes, ..pod(name, requests(1, 1, 0)) }
}

fn shape(gib: u64) -> VolumeShape {
    VolumeShape {
        size: gib << 30,
        access_modes: ["ReadWriteOnce".to_owned()].into(),
        ..VolumeShape::default()
    }
}

fn claim(name: &str, class: &str) -> VolumeClaim {
    VolumeClaim {
        key: object_key(name),
        class: Some(class.into()),
        volume: None,
        bound: false,
        lost: false,
        selected_node: None,
        shape: shape(1),
        selector: vec![],
        ephemeral_for: None,
        deleting: false,
        over_quota: None,
    }
}

fn bound_to(name: &str, volume: &str) -> VolumeClaim {
    VolumeClaim { volume: Some(volume.into()), bound: true, ..claim(name, "gp3") }
}

fn only(key: &str, values: &[&str]) -> Vec<NodeSelectorTerm> {
    vec![NodeSelectorTerm { requirements: vec![is_in(key, values)] }]
}

fn volume(name: &str, topology: Vec<Vec<NodeSelectorTerm>>) -> Volume {
    Volume {
        name: name.into(),
        class: "gp3".into(),
        shape: shape(1),
        labels: BTreeMap::new(),
        claim: None,
        available: true,
        deleting: false,
        topology,
        attached: Some(("ebs.csi.aws.com".into(), format!("vol-{name}"))),
    }
}

fn class(name: &str) -> StorageClass {
    StorageClass {
        name: name.into(),
        provisioner: Some("ebs.csi.aws.com".into()),
        waits_for_pod: true,
        allowed: None,
        default_since: None,
    }
}

impl Put for VolumeClaim {
    fn put(self, snapshot: &mut Snapshot) {
        snapshot.volume_claims.insert(self.key.clone(), self.into());
    }
}

impl Put for Volume {
    fn put(self, snapshot: &mut Snapshot) {
        snapshot.volumes.insert(self.name.clone(), self.into());
    }
}

impl Put for StorageClass {
    fn put(self, snapshot: &mut Snapshot) {
        snapshot.storage_classes.insert(self.name.clone(), self.into());
    }
}

impl Put for NodeDrivers {
    fn put(self, snapshot: &mut Snapshot) {
        snapshot.node_drivers.insert(self.node.clone(), self.into());
    }
}

/// Returns the zone and pods of each new node, sorted.
fn zones(plan: &Plan) -> Vec<String> {
    let one = |claim: &plan::PlannedClaim| {
        let pods: Vec<_> = claim.planned_pods.iter().map(PodKey::name).collect();
        format!("{}: {}", claim.offering().zone, pods.join(" "))
    };
    let mut all: Vec<String> = plan.claims.iter().map(one).collect();
    all.sort();
    all
}

fn left(plan: &Plan) -> (&'static str, &str) {
    assert_eq!((plan.claims.len(), plan.placements.len(), plan.unplaced.len()), (0, 0, 1), "{plan:?}");
    (plan.unplaced[0].reason.as_str(), &plan.unplaced[0].message)
}

#[test]
fn a_pod_goes_to_the_zone_of_its_volume_although_another_is_cheaper() {
    for key in [ZONE, EBS_ZONE] {
        let snapshot = with(shop(), [wants("p", "data"), pod("free", requests(4, 1, 0))]);
        let snapshot = with(with(snapshot, [bound_to("data", "v")]), [volume("v", vec![only(key, &["a"])])]);
        assert_eq!(zones(&planned(&snapshot)), ["a: p", "b: free"], "{key}");
    }
}

#[test]
fn a_storage_class_that_leaves_a_spread_too_few_zones_is_named() {
    let spread = TopologySpreadConstraint {
        topology_key: ZONE.into(),
        max_skew: 1,
        min_domains: Some(3),
        selector: Some(vec![is_in("app", &["db"])]),
        ..TopologySpreadConstraint::default()
    };
    let pods = ["p1", "p2", "p3"].map(|name| {
        let mut pod = wants(name, &format!("data-{name}"));
        pod.labels.insert("app".into(), "db".into());
        pod.spec.spreads = vec![spread.clone()];
        pod
    });
    let left = |allowed: Option<Vec<NodeSelectorTerm>>| {
        let claims = ["p1", "p2", "p3"].map(|name| claim(&format!("data-{name}"), "zoned"));
        let snapshot = with(with(shop(), pods.clone()), claims);
        let plan = planned(&with(snapshot, [StorageClass { allowed, ..class("zoned") }]));
        assert_eq!(plan.unplaced.len(), 1, "{plan:?}");
        plan.unplaced[0].message.clone()
    };
    let zoned = left(Some(only(EBS_ZONE, &["a", "b"])));
    assert!(
        zoned.contains("a, b cannot take one more; PersistentVolumeClaim `data-p")
            && zoned.contains("` (StorageClass `zoned`) is usable only there; while fewer than 3 domains"),
        "{zoned}"
    );
    assert!(!zoned.contains("let a pool buy in more domains"), "the volume could not be made there: {zoned}");
    let free = left(None);
    assert!(!free.contains("StorageClass") && free.contains("let a pool buy in more domains"), "{free}");
}

#[test]
fn pods_with_volumes_of_one_zone_share_a_node_and_those_of_others_do_not() {
    let pods = ["p1", "p2", "p3"].map(|name| wants(name, &format!("data-{name}")));
    let snapshot = with(with(shop(), pods), ["p1", "p2", "p3"].map(|p| bound_to(&format!("data-{p}"), p)));
    let snapshot = with(
        snapshot,
        [("p1", "a"), ("p2", "b"), ("p3", "a")].map(|(v, z)| volume(v, vec![only(ZONE, &[z])])),
    );
    assert_eq!(zones(&planned(&snapshot)), ["a: p1 p3", "b: p2"]);
}

#[test]
fn a_second_volume_where_no_offering_is_is_named_too() {
    let mut pod = wants("p", "data");
    pod.volumes.extend(wants("p", "more").volumes);
    let snapshot = with(with(shop(), [pod]), [bound_to("data", "v"), bound_to("more", "w")]);
    let volumes = ["v", "w"].map(|name| volume(name, vec![only(ZONE, &["z"])]));
    let plan = planned(&with(snapshot, volumes));
    let (_, said) = left(&plan);
    let also = "; PersistentVolumeClaim `more` (volume `w`) is not usable on these nodes, either";
    assert!(
        said.starts_with("PersistentVolumeClaim `data` (volume `v`) is usable only") && said.ends_with(also),
        "{said}"
    );
}

#[test]
fn a_volume_where_no_offering_is_names_the_claim_the_volume_and_the_zones() {
    let snapshot = with(with(shop(), [wants("p", "data")]), [bound_to("data", "v")]);
    let plan = planned(&with(snapshot, [volume("v", vec![only(ZONE, &["z"])])]));
    assert_eq!(
        left(&plan),
        (
            "NoOfferingFits",
            "PersistentVolumeClaim `data` (volume `v`) is usable only on nodes with `topology.kubernetes.io/zone In [z]`, but KwokNodeClass `default` of pool `cpu` has no such offering: those that it may use have only a, b; use a node class that has one, or recreate the volume elsewhere"
        )
    );
}

#[test]
fn a_volume_elsewhere_than_the_pods_to_be_with_is_named_and_with_one_in_their_zone_the_pod_is_planned() {
    let first = Pod { labels: [("app".to_owned(), "db".to_owned())].into(), ..wants("first", "db") };
    let of = |claim: &str| {
        let mut near = wants("p", claim);
        near.spec.affinity = vec![PodAffinityTerm {
            topology_key: ZONE.into(),
            namespaces: Namespaces::Named(["default".to_owned()].into()),
            selector: Some(vec![is_in("app", &["db"])]),
        }];
        let claims = [("db", "u"), ("there", "v"), ("elsewhere", "w")];
        let snapshot = with(shop(), [first.clone(), near]);
        let snapshot = with(snapshot, claims.map(|(claim, volume)| bound_to(claim, volume)));
        let zones = [("u", "a"), ("v", "a"), ("w", "b")];
        planned(&with(snapshot, zones.map(|(name, zone)| volume(name, vec![only(ZONE, &[zone])]))))
    };
    let plan = of("elsewhere");
    assert_eq!((zones(&plan), plan.unplaced.len()), (vec!["a: first".to_owned()], 1));
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::TopologyRule);
    assert_eq!(
        plan.unplaced[0].message,
        "must be with other pods over `topology.kubernetes.io/zone` (required pod affinity), which are in a, but PersistentVolumeClaim \
         `elsewhere` (volume `w`) is usable only elsewhere; use a volume that is usable there, or change the rule"
    );
    assert_eq!(zones(&of("there")), ["a: first p"]);
}

#[test]
fn two_volumes_in_different_zones_can_be_used_nowhere_together() {
    let mut both = wants("p", "one");
    both.volumes.push(PodVolume::Claim { name: "two".into(), ephemeral: false });
    let snapshot = with(with(shop(), [both]), [bound_to("one", "v"), bound_to("two", "w")]);
    let plan = planned(&with(
        snapshot,
        [volume("v", vec![only(ZONE, &["a"])]), volume("w", vec![only(ZONE, &["b"])])],
    ));
    let (reason, message) = left(&plan);
    assert_eq!(reason, "NoOfferingFits");
    assert!(message.contains("where all of its volumes are"), "{message}");
}

#[test]
fn a_claim_that_waits_for_its_pod_is_made_where_its_class_allows() {
    let allowed = StorageClass { allowed: Some(only(ZONE, &["a"])), ..class("slow") };
    let snapshot = with(shop(), [wants("p", "data"), wants("q", "more")]);
    let snapshot =
        with(with(snapshot, [claim("data", "slow"), claim("more", "gp3")]), [allowed, class("gp3")]);
    assert_eq!(zones(&planned(&snapshot)), ["a: p q"]);
    let free = with(with(shop(), [wants("q", "more")]), [claim("more", "gp3")]);
    assert_eq!(zones(&planned(&with(free, [class("gp3")]))), ["b: q"]);
}

#[test]
fn a_pod_with_an_unavailable_volume_buys_nothing_and_learns_why() {
    let immediate = StorageClass { waits_for_pod: false, ..class("now") };
    let nobody = StorageClass { provisioner: None, ..class("local") };
    let cases = [
        (
            None,
            "VolumeUnusable",
            "uses PersistentVolumeClaim `data`, which does not exist in namespace `default`",
        ),
        (Some(bound_to("data", "gone")), "VolumeUnusable", "its PersistentVolume `gone` does not exist"),
        (Some(VolumeClaim { deleting: true, ..claim("data", "gp3") }), "VolumeUnusable", "is being deleted"),
        (Some(claim("data", "typo")), "VolumeUnusable", "its StorageClass `typo` does not exist"),
        (
            Some(VolumeClaim { class: None, ..claim("data", "") }),
            "VolumeUnusable",
            "names no StorageClass, and the cluster has no default",
        ),
        (Some(claim("data", "local")), "VolumeUnusable", "no free PersistentVolume of StorageClass `local`"),
        (
            Some(claim("data", "now")),
            "VolumePending",
            "waits until PersistentVolumeClaim `data` is bound: StorageClass `now`",
        ),
        (
            Some(VolumeClaim { bound: false, ..bound_to("data", "soon") }),
            "VolumePending",
            "is bound to PersistentVolume `soon`",
        ),
    ];
    for (claim, reason, words) in cases {
        let snapshot = with(with(shop(), [wants("p", "data")]), claim);
        let plan = planned(&with(snapshot, [class("gp3"), immediate.clone(), nobody.clone()]));
        let (said, message) = left(&plan);
        assert_eq!(said, reason, "{message}");
        assert!(message.contains(words), "{message} does not say {words}");
    }
}

#[test]
fn a_claim_without_a_class_gets_the_default_one() {
    let default = StorageClass { default_since: Some(at(0)), ..class("gp3") };
    let older = StorageClass { default_since: Some(at(-9)), waits_for_pod: false, ..class("old") };
    let snapshot =
        with(with(shop(), [wants("p", "data")]), [VolumeClaim { class: None, ..claim("data", "") }]);
    assert_eq!(zones(&planned(&with(snapshot, [default, older]))), ["b: p"]);
}

#[test]
fn volumes_that_are_there_are_each_for_one_claim() {
    let local = |name, zone, gib| Volume {
        class: "local".into(),
        shape: shape(gib),
        ..volume(name, vec![only(ZONE, &[zone])])
    };
    let nobody = StorageClass { provisioner: None, ..class("local") };
    let alone = with(with(shop(), [wants("p", "dp")]), [claim("dp", "local")]);
    let alone = with(with(alone, [nobody.clone()]), [local("v1", "a", 1), local("v2", "b", 2)]);
    assert_eq!(zones(&planned(&alone)), ["b: p"], "either would do, and b is cheaper");
    let snapshot =
        with(with(alone, [wants("q", "dq"), wants("r", "dr")]), [claim("dq", "local"), claim("dr", "local")]);
    let plan = planned(&snapshot);
    assert_eq!(zones(&plan), ["a: p", "b: q"]);
    assert_eq!(plan.unplaced.len(), 1);
    assert!(plan.unplaced[0].message.contains("earlier claims get every PersistentVolume"), "{plan:?}");
}

#[test]
fn pods_that_share_a_disk_which_is_not_bound_get_one_node_and_a_pod_without_room_there_learns_why() {
    let both = |size: u64| {
        let sized = |name| Pod { spec: pod(name, requests(size, 1, 0)).spec, ..wants(name, "data") };
        let snapshot = with(shop(), [sized("p"), sized("q")]);
        planned(&with(with(snapshot, [claim("data", "gp3")]), [class("gp3")]))
    };
    assert_eq!(zones(&both(1)), ["b: p q"]);
    let plan = both(3);
    assert_eq!(zones(&plan), ["b: p"]);
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::TopologyRule);
    assert_eq!(
        plan.unplaced[0].message,
        "must share a node with other pods (they share PersistentVolumeClaim `data`), but neither their node nor an available offering \
         has room for all of them, or their priorities, tolerations or parts of GPUs differ; free room on that node, let a pool buy \
         larger nodes if none of them runs yet, or give each of them a volume of its own"
    );
}

#[test]
fn pods_that_share_files_which_are_not_bound_get_one_zone_if_only_that_zone_reaches_them() {
    let shared = |driver: &str, allowed: Option<Vec<NodeSelectorTerm>>| {
        let mut q = wants("q", "data");
        q.spec = pod("q", requests(3, 1, 0)).spec;
        q.spec.node_selector = [(ZONE.to_owned(), "a".to_owned())].into();
        let p = Pod { spec: pod("p", requests(3, 1, 0)).spec, ..wants("p", "data") };
        let modes = BTreeSet::from(["ReadWriteMany".to_owned()]);
        let data = claim("data", "files");
        let data = VolumeClaim { shape: VolumeShape { access_modes: modes, ..data.shape.clone() }, ..data };
        let files = StorageClass { provisioner: Some(driver.to_owned()), allowed, ..class("files") };
        zones(&planned(&with(with(with(shop(), [p, q]), [data]), [files])))
    };
    assert_eq!(shared("ebs.csi.aws.com", None), ["a: p", "a: q"], "q can only be in zone a");
    assert_eq!(shared("files.example.com", None), ["a: q", "b: p"], "every zone reaches them");
    let zoned = Some(only(ZONE, &["a", "b"]));
    assert_eq!(
        shared("files.example.com", zoned),
        ["a: p", "a: q"],
        "the class makes them in one of its zones"
    );
}

#[test]
fn pods_that_share_a_claim_get_the_same_volume_and_other_claims_another_one() {
    let local = |name, zone, gib| Volume {
        class: "local".into(),
        shape: shape(gib),
        ..volume(name, vec![only(ZONE, &[zone])])
    };
    let snapshot = with(shop(), [wants("p", "shared"), wants("q", "shared"), wants("r", "zz")]);
    let snapshot = with(snapshot, [claim("shared", "local"), claim("zz", "local")]);
    let snapshot = with(snapshot, [StorageClass { provisioner: None, ..class("local") }]);
    let plan = planned(&with(snapshot, [local("v1", "a", 1), local("v2", "b", 2)]));
    assert_eq!((zones(&plan), plan.unplaced), (vec!["a: p q".to_owned(), "b: r".to_owned()], Vec::new()));
}

#[test]
fn while_a_volume_is_made_for_a_node_the_other_pods_of_its_claim_wait() {
    let made = VolumeClaim { selected_node: Some("n".into()), ..claim("data", "gp3") };
    let snapshot = with(with(shop(), [wants("p", "data"), wants("q", "data")]), [large("n")]);
    let plan = planned(&with(with(snapshot, [made]), [class("gp3")]));
    assert_eq!((plan.claims.len(), plan.placements.len()), (0, 1));
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::VolumePending);
    let told = &plan.unplaced[0].message;
    assert!(told.contains("pod default/p comes first on the node that the scheduler has chosen"), "{told}");
    assert!(told.ends_with("if that pod gets no node, see `poolwright explain pod default/p`"), "{told}");
}

#[test]
fn a_pod_that_waits_for_one_volume_does_not_keep_another_from_the_next_pod() {
    let mut waits = wants("p", "data");
    waits.volumes.push(PodVolume::Claim { name: "gone".into(), ephemeral: false });
    let data = claim("data", "gp3");
    let modes = BTreeSet::from(["ReadWriteOncePod".to_owned()]);
    let data = VolumeClaim { shape: VolumeShape { access_modes: modes, ..data.shape.clone() }, ..data };
    let plan = planned(&with(with(with(shop(), [waits, wants("q", "data")]), [data]), [class("gp3")]));
    assert_eq!(zones(&plan), ["b: q"]);
    assert!(plan.unplaced[0].message.contains("`gone`, which does not exist"), "{plan:?}");
}

#[test]
fn a_claim_for_one_pod_at_a_time_makes_the_others_wait() {
    let alone = |claim: VolumeClaim| VolumeClaim {
        shape: VolumeShape { access_modes: BTreeSet::from(["ReadWriteOncePod".to_owned()]), ..claim.shape },
        ..claim
    };
    let snapshot = with(with(shop(), [wants("q", "data")]), [alone(bound_to("data", "v"))]);
    let snapshot = with(snapshot, [volume("v", vec![])]);
    assert_eq!(zones(&planned(&snapshot)), ["b: q"]);
    let running = with(snapshot, [bound(wants("p", "data"), "n")]);
    assert_eq!(
        left(&planned(&running)),
        (
            "VolumePending",
            "PersistentVolumeClaim `data` is for one pod at a time (ReadWriteOncePod), and pod default/p uses it; this pod is planned when that one has ended"
        )
    );
    let ended = with(running, [Pod { phase: PodPhase::Finished, ..wants("p", "data") }]);
    assert_eq!(zones(&planned(&ended)), ["b: q"]);
    for claim in [alone(bound_to("data", "v")), alone(claim("data", "gp3"))] {
        let both = with(with(shop(), [wants("p", "data"), wants("q", "data")]), [claim]);
        let plan = planned(&with(with(both, [volume("v", vec![])]), [class("gp3")]));
        assert_eq!(zones(&plan), ["b: p"]);
        let told = &plan.unplaced[0].message;
        assert!(told.contains("this pod waits until that one has ended"), "bound or not: {told}");
        assert!(told.ends_with("see `poolwright explain pod default/p`"), "bound or not: {told}");
    }
}

#[test]
fn a_note_says_that_pods_of_one_volume_are_on_several_nodes() {
    let big = |name: &str| Pod { spec: pod(name, requests(3, 1, 0)).spec, ..wants(name, "data") };
    let notes = |pods: [Pod; 2]| {
        let snapshot = with(with(shop(), pods), [bound_to("data", "v")]);
        let snapshot = with(snapshot, [volume("v", vec![])]);
        why::split_volumes(&snapshot, &planned(&snapshot))
    };
    assert_eq!(notes([wants("p", "data"), wants("q", "data")]), Vec::<String>::new(), "one node holds both");
    let told = notes([big("p"), big("q")]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("pods default/p, default/q use PersistentVolumeClaim default/data"),
        "{told:?}"
    );
    assert!(told[0].contains("on 2 nodes") && told[0].contains("required pod affinity"), "{told:?}");
    let third = notes([bound(big("p"), "n"), big("q")]);
    assert!(third.len() == 1 && third[0].contains("on 2 nodes"), "one of them runs already: {third:?}");
}

#[test]
fn an_ephemeral_volume_is_waited_for_and_must_be_the_pods_own() {
    let mut own = pod("p", requests(1, 1, 0));
    own.volumes = vec![PodVolume::Claim { name: "p-scratch".into(), ephemeral: true }];
    let snapshot = with(with(shop(), [own.clone()]), [class("gp3")]);
    assert_eq!(left(&planned(&snapshot)).0, "VolumePending");
    let made = VolumeClaim { ephemeral_for: Some(own.uid), ..claim("p-scratch", "gp3") };
    assert_eq!(zones(&planned(&with(snapshot.clone(), [made]))), ["b: p"]);
    assert_eq!(left(&planned(&with(snapshot, [claim("p-scratch", "gp3")]))).0, "VolumeUnusable");
}

#[test]
fn a_claim_that_a_quota_does_not_allow_keeps_its_pod_from_a_node() {
    let over_quota = Some("ResourceQuota `team` allows no more requests.storage".to_owned());
    let refused = VolumeClaim { over_quota, ..claim("data", "gp3") };
    let snapshot = with(with(with(shop(), [wants("p", "data")]), [class("gp3")]), [refused]);
    assert_eq!(
        left(&planned(&snapshot)),
        (
            "VolumeUnusable",
            "uses PersistentVolumeClaim `data`, which cannot be created, because ResourceQuota `team` allows no more requests.storage; raise the quota"
        )
    );
}

fn takes(node: &str, limit: u64) -> NodeDrivers {
    NodeDrivers {
        node: node.into(),
        limits: [("ebs.csi.aws.com".to_owned(), limit)].into(),
        ..NodeDrivers::default()
    }
}

fn large(name: &str) -> Node {
    let mut large = node(name, capacity(4, 16, 0));
    large.labels.insert("node.kubernetes.io/instance-type".into(), "m7.large".into());
    large.labels.insert(ZONE.into(), "b".into());
    large
}

#[test]
fn a_node_that_takes_no_more_volumes_gets_no_pod_with_one() {
    let snapshot = with(with(shop(), [wants("p", "dp"), bound(wants("r", "dr"), "n")]), [large("n")]);
    let snapshot = with(snapshot, [bound_to("dp", "v1"), bound_to("dr", "v2")]);
    let snapshot = with(snapshot, [volume("v1", vec![]), volume("v2", vec![])]);
    let roomy = with(snapshot.clone(), [takes("n", 2)]);
    assert_eq!(planned(&roomy).placements.len(), 1);
    let full = with(snapshot, [takes("n", 1)]);
    assert_eq!(zones(&planned(&full)), ["b: p"]);
    // A volume that is already attached counts only once, whichever pods use it.
    let shared = with(full, [bound(wants("s", "dr"), "n")]);
    assert_eq!(zones(&planned(&with(shared, [takes("n", 2)]))), [""; 0]);
}

#[test]
fn a_new_node_takes_as_many_volumes_as_the_smallest_of_its_type() {
    let names = ["p1", "p2", "p3"];
    let snapshot = with(with(shop(), names.map(|name| wants(name, name))), names.map(|v| bound_to(v, v)));
    let snapshot = with(snapshot, names.map(|name| volume(name, vec![])));
    assert_eq!(planned(&snapshot).claims.len(), 1, "nobody knows of a limit");
    let full = Node { cordoned: true, ..large("n") };
    let limited = with(with(snapshot, [full]), [takes("n", 2)]);
    assert_eq!(planned(&limited).claims.len(), 2);
}

#[test]
fn a_note_names_the_types_that_get_pods_with_volumes_though_no_node_reported_its_limit() {
    let snapshot = with(shop(), [wants("p", "data"), pod("free", requests(1, 1, 0))]);
    let snapshot = with(with(snapshot, [bound_to("data", "v")]), [volume("v", vec![])]);
    let note = |snapshot: &Snapshot, only: Option<&str>| {
        let only = only.map(|name| PodKey::new("default", name));
        why::unknown_volume_limits(snapshot, &planned(snapshot), only.as_ref())
    };
    let told = "the number of volumes that m7.large can attach is unknown; the plan applies no limit until the CSINode of such a \
                node reports one, so pods may need more nodes than planned";
    assert_eq!(note(&snapshot, None).as_deref(), Some(told), "on a new node");
    assert_eq!(note(&snapshot, Some("p")).as_deref(), Some(told));
    assert_eq!(note(&snapshot, Some("free")), None, "it has no volume");
    let roomy = with(snapshot.clone(), [large("n")]);
    assert_eq!(note(&roomy, None).as_deref(), Some(told), "on a node that has not reported");
    assert_eq!(note(&with(roomy.clone(), [takes("n", 2)]), None), None);
    let unlimited = NodeDrivers {
        limits: BTreeMap::new(),
        unlimited: ["ebs.csi.aws.com".to_owned()].into(),
        ..takes("n", 0)
    };
    assert_eq!(note(&with(roomy, [unlimited]), None), None, "it said that it has no limit");
    let full = with(snapshot, [Node { cordoned: true, ..large("n") }]);
    assert_eq!(note(&with(full, [takes("n", 2)]), None), None, "another node of the type reported it");
}

#[test]
fn a_pod_with_a_volume_keeps_its_planned_place() {
    let snapshot = with(with(shop(), [wants("p", "data")]), [bound_to("data", "v")]);
    let snapshot = with(snapshot, [volume("v", vec![only(EBS_ZONE, &["a"])])]);
    let plan = planned(&snapshot);
    assert_eq!(zones(&plan), ["a: p"]);
    let again = planned_at(&carried_out(&snapshot, &plan, 11), 12);
    assert_eq!((again.claims.len(), again.placements.len()), (0, 1));
}

#[test]
fn pods_with_affinity_of_their_own_that_share_a_claim_are_planned_one_after_the_other() {
    let near_cache = PodAffinityTerm {
        topology_key: ZONE.into(),
        namespaces: Namespaces::Named(["default".to_owned()].into()),
        selector: Some(vec![is_in("app", &["cache"])]),
    };
    let near = |name: &str| {
        let mut pod = wants(name, "data");
        pod.spec.affinity = vec![near_cache.clone()];
        pod
    };
    let mut cache = bound(pod("cache", requests(1, 1, 0)), "n");
    cache.labels = [("app".to_owned(), "cache".to_owned())].into();
    let mut full = node("n", capacity(1, 1, 0));
    full.labels.insert(ZONE.into(), "a".into());
    let snapshot = with(with(with(shop(), [near("p"), near("q")]), [cache]), [full]);
    let plan = planned(&with(with(snapshot, [claim("data", "gp3")]), [class("gp3")]));
    assert_eq!(zones(&plan), ["a: p"], "the cheaper zone b has no cache");
    assert_eq!(plan.unplaced.len(), 1);
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::VolumePending);
    assert!(plan.unplaced[0].message.contains("with pod default/p, whose node decides"), "{plan:?}");
}

#[test]
fn pods_that_share_a_disk_with_one_pod_and_files_with_another_are_planned_one_after_the_other() {
    let shares = |name: &str, claims: &[&str]| {
        let volume = |claim: &&str| PodVolume::Claim { name: (*claim).into(), ephemeral: false };
        Pod { volumes: claims.iter().map(volume).collect(), ..pod(name, requests(1, 1, 0)) }
    };
    let pods = [shares("p", &["disk"]), shares("q", &["disk", "files"]), shares("r", &["files"])];
    let modes = BTreeSet::from(["ReadWriteMany".to_owned()]);
    let files =
        VolumeClaim { shape: VolumeShape { access_modes: modes, ..shape(1) }, ..claim("files", "gp3") };
    let gp3 = StorageClass { provisioner: Some("ebs.csi.aws.com".to_owned()), ..class("gp3") };
    let plan = planned(&with(with(with(shop(), pods), [claim("disk", "gp3"), files]), [gp3]));
    assert_eq!(zones(&plan), ["b: p"]);
    let waits = plan.unplaced.iter().all(|left| left.reason == UnplacedReason::VolumePending);
    assert!(waits && plan.unplaced.len() == 2, "{plan:?}");
}

#[test]
fn a_volume_that_is_not_attached_to_nodes_is_for_any_number_of_them() {
    let sized = |name| Pod { spec: pod(name, requests(3, 1, 0)).spec, ..wants(name, "data") };
    let class = StorageClass { provisioner: Some("efs.csi.aws.com".to_owned()), ..class("gp3") };
    let snapshot = with(with(shop(), [sized("p"), sized("q")]), [claim("data", "gp3")]);
    assert_eq!(zones(&planned(&with(snapshot, [class]))), ["b: p", "b: q"]);
}
