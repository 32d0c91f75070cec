//! Tests of incremental changes: the index and plans are the same as if built from scratch.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_catalog::Catalogue;
use poolwright_core::index::ClusterIndex;
use poolwright_core::lifecycle::{self, PlacementMode};
use poolwright_core::plan::{Plan, PlanOptions, plan};
use poolwright_core::*;
use poolwright_solver::{NeverStop, Options};
use poolwright_terms::{ConditionStatus, ConditionType};
use proptest::prelude::*;

use crate::kit::*;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

fn shop() -> Catalogue {
    catalogue(vec![
        Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.00"), ("b", "1.05")]),
        Kind("cpu", capacity(8, 32, 0), None, &[("a", "0.40"), ("b", "0.40")]),
    ])
}

/// An event: its kind, the object that it changes, and the bits that decide the new state.
#[derive(Clone, Debug)]
struct Event {
    kind: u8,
    which: u8,
    how: u32,
}

fn any_event() -> impl Strategy<Value = Event> {
    (0u8..20, 0u8..10, any::<u32>()).prop_map(|(kind, which, how)| Event { kind, which, how })
}

/// Draws a number below `below` from the bits of `how`.
fn draw(how: &mut u32, below: u32) -> u32 {
    let drawn = *how % below;
    *how /= below;
    drawn
}

fn some_pod(which: u8, mut how: u32) -> Pod {
    let mut pod = pod(&format!("p{which}"), requests(1 + u64::from(draw(&mut how, 4)), 2, 0));
    pod.uid = Uid(format!("uid-{which}-{}", draw(&mut how, 2)));
    let app = if draw(&mut how, 2) == 0 { "web" } else { "batch" };
    pod.labels.insert("app".into(), app.into());
    let term = |key: &str| PodAffinityTerm {
        topology_key: key.into(),
        namespaces: Namespaces::All,
        selector: Some(vec![is_in("app", &["web"])]),
    };
    let spread = |key: &str| TopologySpreadConstraint {
        topology_key: key.into(),
        max_skew: 1,
        selector: Some(vec![is_in("app", &["batch"])]),
        ..TopologySpreadConstraint::default()
    };
    match draw(&mut how, 8) {
        0 => pod.spec.anti_affinity = vec![term(HOST)],
        1 => pod.spec.anti_affinity = vec![term(ZONE)],
        2 => pod.spec.affinity = vec![term(ZONE)],
        3 => pod.spec.spreads = vec![spread(HOST)],
        4 => pod.spec.spreads = vec![spread(ZONE)],
        5 => pod.spec.host_ports = [HostPort { port: 80, protocol: "TCP".into(), ip: None }].into(),
        _ => {}
    }
    pod.owner = (draw(&mut how, 3) == 0).then(|| Uid("job".into()));
    if draw(&mut how, 6) == 0 {
        pod.deleting_since = Some(at(5));
    }
    let node = format!("n{}", draw(&mut how, 5));
    pod.phase = match draw(&mut how, 8) {
        0 => PodPhase::Waiting,
        1 => PodPhase::Finished,
        2 => PodPhase::Gated,
        3 => {
            // This is a name as the DaemonSet controller chooses it.
            pod.key = PodKey::new(pod.key.namespace(), format!("agent-{which:05}"));
            pod.role = PodRole::DaemonSet;
            pod.daemonset = (draw(&mut how, 2) == 0).then(|| "agent".to_owned());
            PodPhase::Bound { node }
        }
        4 | 5 => PodPhase::Bound { node },
        _ => pod.phase,
    };
    pod
}

fn some_node(which: u8, mut how: u32) -> Node {
    let mut node = node(&format!("n{}", which % 5), capacity(4 + u64::from(draw(&mut how, 8)), 32, 0));
    node.labels.insert(ZONE.into(), if draw(&mut how, 2) == 0 { "a" } else { "b" }.into());
    node.ready = draw(&mut how, 5) > 0;
    node.provider_id = (draw(&mut how, 2) == 0).then(|| format!("kwok://c{}", which % 3));
    if draw(&mut how, 5) == 0 {
        node.taints.push(taint("gpu", ""));
    }
    node
}

fn some_claim(which: u8, mut how: u32) -> Claim {
    let which = which % 3;
    let name = format!("c{which}");
    let mut claim = Claim { name: ClaimName(name.clone()), uid: Uid(format!("uid-{name}")), ..claim() };
    claim.planned_pods = (0..draw(&mut how, 3)).map(|pod| key(&format!("p{pod}"))).collect();
    if draw(&mut how, 3) == 0 {
        claim.planned_pods.push(key(&format!("Job:train#{which}")));
    }
    claim.deleting_since = (draw(&mut how, 6) == 0).then(|| at(5));
    let mut since = |kind| {
        let condition =
            Condition { status: ConditionStatus::True, since: at(1), reason: None, message: String::new() };
        claim.conditions.insert(kind, condition);
    };
    if draw(&mut how, 2) == 0 {
        since(ConditionType::Launched);
        claim.launched =
            Some(Launched { provider_id: format!("kwok://{name}"), offering: id("g5.xlarge", "a") });
        if draw(&mut how, 2) == 0 {
            since(ConditionType::Registered);
            since(ConditionType::Initialized);
            claim.node_name = Some(format!("n{}", draw(&mut how, 5)));
        }
    }
    claim
}

/// All objects, kept independently of the index.
#[derive(Clone, Debug, Default)]
struct Truth {
    pods: BTreeMap<PodKey, Pod>,
    nodes: BTreeMap<String, Node>,
    claims: BTreeMap<ClaimName, Claim>,
    daemonset: Option<DaemonSet>,
}

impl Truth {
    fn happen(&mut self, index: &mut ClusterIndex, event: &Event) {
        let Event { kind, which, how } = *event;
        match kind {
            0..=8 => {
                let pod = some_pod(which, how);
                self.pods.insert(pod.key.clone(), pod.clone());
                index.apply_pod(pod);
            }
            9 | 10 => {
                let known = self.pods.keys().nth(usize::from(which)).cloned();
                if let Some(key) = known {
                    self.pods.remove(&key);
                    index.delete_pod(key.existing().unwrap());
                }
            }
            11..=13 => {
                let node = some_node(which, how);
                self.nodes.insert(node.name.clone(), node.clone());
                index.apply_node(node);
            }
            14 => {
                let name = format!("n{}", which % 5);
                self.nodes.remove(&name);
                index.delete_node(&name);
            }
            15 | 16 => {
                let claim = some_claim(which, how);
                self.claims.insert(claim.name.clone(), claim.clone());
                index.apply_claim(claim);
            }
            17 => {
                let name = ClaimName(format!("c{}", which % 3));
                self.claims.remove(&name);
                index.delete_claim(&name);
            }
            18 => {
                let spec = PodSpec { requests: requests(1, 1, 0), ..PodSpec::default() };
                let set = DaemonSet { key: object_key("agent"), labels: BTreeMap::new(), spec };
                self.daemonset = (which % 3 > 0).then(|| set.clone());
                match &self.daemonset {
                    Some(set) => index.apply_daemonset(set.clone()),
                    None => index.delete_daemonset(&set.key),
                };
            }
            // A watch lists everything again, and some pods are gone.
            _ => {
                self.pods.retain(|key, _| !key.name().ends_with(char::from(b'0' + which)));
                index.reset_pods(self.pods.values().cloned());
                index.reset_nodes(self.nodes.values().cloned());
                index.reset_claims(self.claims.values().cloned(), at(0));
            }
        }
    }

    /// Builds a snapshot from all objects, in another order than that of the events.
    fn afresh(&self, like: &Snapshot) -> Snapshot {
        let mut snapshot = cluster(shop(), [pool("gpu")]);
        snapshot.catalogues.clone_from(&like.catalogues);
        let snapshot = with(snapshot, self.pods.values().rev().cloned());
        let snapshot = with(snapshot, self.nodes.values().rev().cloned());
        let snapshot = with(snapshot, self.claims.values().rev().cloned());
        let daemonset = self.daemonset.as_ref().map(|set| set.sized_as(&snapshot.pods));
        with(snapshot, daemonset)
    }
}

fn planned(snapshot: &Snapshot) -> Plan {
    let options =
        PlanOptions { solver: Options { work: 20_000, ..Options::default() }, ..PlanOptions::default() };
    plan(snapshot, at(10), &options, &mut NeverStop)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn after_every_change_the_index_and_its_plans_are_those_of_all_objects_read_afresh(
        events in prop::collection::vec(any_event(), 1..60)
    ) {
        let mut index = ClusterIndex::new();
        index.set_catalogue(node_class(), Ok(Arc::new(shop())));
        index.apply_pool(pool("gpu"));
        let mut truth = Truth::default();
        let mut before: Option<(Snapshot, Snapshot)> = None;
        for (number, event) in events.iter().enumerate() {
            truth.happen(&mut index, event);
            if number % 5 != 0 && number + 1 < events.len() {
                continue;
            }
            let snapshot = index.snapshot();
            let afresh = truth.afresh(&snapshot);
            prop_assert_eq!(&snapshot, &afresh);
            let (ours, theirs) = (planned(&snapshot), planned(&afresh));
            prop_assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
            // Plan again without a change, and then with one more pod without a node.
            prop_assert_eq!(format!("{:?}", planned(&index.snapshot())), format!("{theirs:?}"));
            let more = |snapshot| with(snapshot, [pod("more", requests(1, 1, 0))]);
            let (ours, theirs) = (planned(&more(snapshot.clone())), planned(&more(afresh.clone())));
            prop_assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
            let decide = |snapshot| lifecycle::decide(snapshot, at(10), PlacementMode::Reserve);
            prop_assert_eq!(decide(&snapshot), decide(&afresh));
            // The snapshot taken before stays as it was.
            if let Some((snapshot, afresh)) = before {
                prop_assert_eq!(&snapshot, &afresh);
            }
            before = Some((snapshot, afresh));
        }
    }
}
