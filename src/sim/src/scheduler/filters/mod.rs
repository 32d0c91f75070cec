//! The filter plugins of the default profile of the kube-scheduler, in its order. Each plugin has one file.

mod cordon;
mod node_affinity;
mod pod_affinity;
mod ports;
mod resources;
mod spread;
mod taints;
mod volumes;

use poolwright_core::Pod;

use super::attempt::Attempt;
use super::cluster::{Cluster, Filed, NodeInfo};
use super::reason::Fits;

pub(super) use pod_affinity::near;
pub(super) use spread::{counting, has_all, pods_of};

/// The results of `PreFilter`, which hold for all nodes.
#[derive(Clone)]
pub(super) struct State<'a> {
    pub attempt: &'a Attempt<'a>,
    cluster: &'a Cluster,
    spread: spread::Spread<'a>,
    company: pod_affinity::Company<'a>,
    volumes: volumes::Volumes<'a>,
}

/// The outcome of `PreFilter`.
pub(super) enum Start<'a> {
    /// Check all nodes, or only the named ones.
    Look(Box<State<'a>>, Option<Vec<&'a str>>),
    /// No node fits, regardless of its pods.
    Never(String),
}

impl<'a> State<'a> {
    pub fn start(cluster: &'a Cluster, attempt: &'a Attempt<'a>) -> Start<'a> {
        let names = node_affinity::names(attempt);
        if names.as_ref().is_some_and(Vec::is_empty) {
            return Start::Never("pod affinity terms conflict".to_owned());
        }
        let volumes = match volumes::Volumes::new(cluster, attempt.pod) {
            Ok(volumes) => volumes,
            Err(why) => return Start::Never(why),
        };
        let spread = spread::Spread::new(cluster, attempt);
        let company = pod_affinity::Company::new(cluster, attempt.pod);
        Start::Look(Box::new(Self { attempt, cluster, spread, company, volumes }), names)
    }

    /// Adds a pod on a node to the counts.
    pub fn add(&mut self, pod: &'a Pod, at: &'a NodeInfo) {
        self.spread.update(self.attempt, pod, at, 1);
        self.company.update(self.cluster, pod, at, 1);
        self.volumes.update(pod, 1);
    }

    /// Removes a pod on a node from the counts.
    pub fn remove(&mut self, pod: &'a Pod, at: &'a NodeInfo) {
        self.spread.update(self.attempt, pod, at, -1);
        self.company.update(self.cluster, pod, at, -1);
        self.volumes.update(pod, -1);
    }

    /// Returns whether the pod fits on a node now.
    pub fn check(&self, at: &NodeInfo) -> Fits {
        cordon::check(self.attempt, at)?;
        taints::check(self.attempt, at)?;
        node_affinity::check(self.attempt, at)?;
        ports::check(self.attempt.pod, at)?;
        resources::check(self.attempt.pod, at)?;
        self.volumes.check(self.cluster, at)?;
        self.spread.check(at)?;
        self.company.check(&self.cluster.around.namespaces, at)
    }

    /// Returns whether the pod fits on a node, also if the nominated pods of the node with the same or higher priority are there
    /// (`RunFilterPluginsWithNominatedPods`). `home` is the node now, `at` the node with changed pods.
    pub fn check_with_nominated(&self, home: &'a NodeInfo, at: &NodeInfo) -> Fits {
        let attempt = self.attempt.pod;
        let nominated = self.cluster.nominated(&home.node.name).iter();
        let before =
            |filed: &&'a Filed| filed.pod.priority >= attempt.priority && filed.pod.key != attempt.key;
        let ahead: Vec<&Filed> = nominated.filter(before).collect();
        if !ahead.is_empty() {
            let (mut with, mut state) = (at.clone(), self.clone());
            for filed in ahead {
                with.add(filed);
                state.add(&filed.pod, home);
            }
            state.check(&with)?;
        }
        self.check(at)
    }
}
