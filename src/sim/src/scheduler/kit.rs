//! Helpers for the tests of the scheduler.

use std::sync::Arc;

use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_core::{
    Namespaces, Node, NodeSelectorTerm, Operator, Pod, PodAffinityTerm, PodKey, PodPhase, PodSpec,
    Requirement, TopologySpreadConstraint,
};
use poolwright_terms::labels::{HOSTNAME, ZONE};
use poolwright_terms::{Taint, TaintEffect};

use super::{Cluster, MayPreempt, Outcome, Scheduler};

/// Builds a pod.
pub struct PodBuilder(Pod);

/// Makes a waiting pod with one core and 1 GiB.
pub fn pod(name: &str) -> PodBuilder {
    let spec = PodSpec { requests: room(1000, 1), ..PodSpec::default() };
    let labels = [("app".to_owned(), "web".to_owned())].into();
    PodBuilder(Pod { labels, ..Pod::waiting(PodKey::new("default", name), spec) })
}

impl PodBuilder {
    pub fn build(self) -> Pod {
        self.0
    }

    pub fn with(mut self, change: impl FnOnce(&mut Pod)) -> Self {
        change(&mut self.0);
        self
    }

    pub fn spec(self, change: impl FnOnce(&mut PodSpec)) -> Self {
        self.with(|pod| change(&mut pod.spec))
    }

    pub fn app(self, app: &str) -> Self {
        self.with(|pod| drop(pod.labels.insert("app".to_owned(), app.to_owned())))
    }

    pub fn priority(self, priority: i32) -> Self {
        self.with(|pod| pod.priority = priority)
    }

    pub fn on(self, node: &str) -> Self {
        self.with(|pod| pod.phase = PodPhase::Bound { node: node.to_owned() })
    }
}

/// Returns the resources of one pod: thousandths of a core, and GiB.
pub fn room(cpu: u64, gib: u64) -> ResourceList {
    ResourceList::new()
        .with(ResourceName::CPU, cpu)
        .with(ResourceName::MEMORY, gib << 30)
        .with(ResourceName::PODS, 1)
}

/// Makes a node of 4 cores and 16 GiB for ten pods, in a zone.
pub fn node(name: &str, zone: &str) -> Node {
    let labels = [(HOSTNAME, name), (ZONE, zone)];
    Node {
        name: name.to_owned(),
        provider_id: None,
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        taints: Vec::new(),
        allocatable: room(4000, 16).with(ResourceName::PODS, 10),
        ready: true,
        cordoned: false,
        cordoned_until_initialized: false,
        do_not_disrupt: false,
        deleting_since: None,
        unhealthy_conditions: Vec::new(),
    }
}

pub fn taint(effect: TaintEffect) -> Taint {
    Taint { key: "team".to_owned(), value: "ml".to_owned(), effect }
}

/// Returns a requirement that a label has this value.
pub fn is(key: &str, value: &str) -> Requirement {
    Requirement { key: key.to_owned(), operator: Operator::In([value.to_owned()].into()) }
}

pub fn only(key: &str, value: &str) -> NodeSelectorTerm {
    NodeSelectorTerm { requirements: vec![is(key, value)] }
}

/// Returns an affinity term for pods of an application in the namespace `default`.
pub fn term(app: &str, key: &str) -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: key.to_owned(),
        namespaces: Namespaces::Named(["default".to_owned()].into()),
        selector: Some(vec![is("app", app)]),
    }
}

/// Returns a spread constraint with a skew of 1 for an application.
pub fn spread(app: &str, key: &str) -> TopologySpreadConstraint {
    TopologySpreadConstraint {
        topology_key: key.to_owned(),
        max_skew: 1,
        selector: Some(vec![is("app", app)]),
        ..TopologySpreadConstraint::default()
    }
}

pub fn cluster(nodes: impl IntoIterator<Item = Node>, pods: impl IntoIterator<Item = PodBuilder>) -> Cluster {
    let mut cluster = Cluster::default();
    nodes.into_iter().for_each(|node| cluster.set_node(Arc::new(node)));
    pods.into_iter().for_each(|pod| cluster.set_pod(Arc::new(pod.0)));
    cluster
}

/// Schedules a pod with the default profile. Of equal nodes, takes the first.
pub fn tried(cluster: &Cluster, pod: PodBuilder) -> Outcome {
    let outcome = Scheduler::default().schedule(cluster, &pod.0, MayPreempt::LessImportant, &mut |_| 0);
    outcome.expect("nothing in it is unknown to the scheduler")
}

/// Returns the nodes that fit a pod, and the message for all others.
pub fn fits(cluster: &Cluster, pod: PodBuilder) -> (Vec<String>, String) {
    let found = Scheduler::default().feasible(cluster, &pod.0).expect("nothing in it is unknown");
    let reasons = found.unfit.iter().flat_map(|(_, unfit)| &unfit.reasons).map(ToString::to_string);
    (found.nodes, reasons.collect::<Vec<_>>().join("; "))
}
