//! The kube-scheduler of the simulated world: it finds a node for one pod at a time, as the default profile of Kubernetes
//! 1.36 does. It filters nodes, scores those that are left, takes one of the best, and where none is left looks whom it
//! could evict.
//!
//! It is a pure function of what it is given. Where the kube-scheduler leaves the choice to chance, whoever calls decides.
//!
//! It differs from the kube-scheduler in this: it looks at all nodes of a large cluster and not at a part of them; it has no
//! `ImageLocality`, no `DynamicResources` and no gangs (a pod that needs one of these two is refused, as [`Unmodelled`]); of
//! volumes it knows those that are bound. What it knows of a pod is what the model has ([`poolwright_core::Pod`]): requests
//! of a whole pod, and when it was created instead of when it was started.
//!
//! The differential test asks it and a real one the same (`tests/plane/tests/differential/simulated.rs`, `evicted.rs`).

mod attempt;
mod cluster;
mod filters;
#[cfg(test)]
mod kit;
mod looks;
mod message;
mod preemption;
mod queue;
mod reason;
mod scores;
#[cfg(test)]
mod tests;

use std::fmt;

use poolwright_core::{Pod, PodKey, Profiles, Snapshot};

use attempt::Attempt;
pub use cluster::Cluster;
use cluster::NodeInfo;
use filters::{Start, State};
pub use queue::{Queued, waits_for};
pub use reason::{Reason, Unfit};

/// Chooses one of so many that are equally good: a number below that. The seed of a simulation decides.
pub type Pick<'a> = &'a mut dyn FnMut(usize) -> usize;

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The pod goes to this node.
    Bind {
        /// Its name.
        node: String,
    },
    /// No node takes it.
    Unschedulable {
        /// The message of its condition `PodScheduled`, as the kube-scheduler words it.
        message: String,
        /// Whom it evicts.
        preemption: Preemption,
    },
}

/// What a pod for which there is no node does about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// It evicts nobody, and stays nominated where it was.
    NotTried,
    /// Evicting others would not help: it is nominated nowhere any more.
    InVain,
    /// It is nominated for a node and evicts pods there.
    Evict {
        /// The node.
        node: String,
        /// The pods, the most important first; also those that are being deleted already.
        victims: Vec<PodKey>,
        /// Less important pods that were nominated for this node, and are not any more.
        set_back: Vec<PodKey>,
    },
}

/// Whether a pod evicts others: its `preemptionPolicy`, or the profile of its scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MayPreempt {
    /// Less important ones (`PreemptLowerPriority`).
    #[default]
    LessImportant,
    /// None (`Never`).
    Never,
    /// Its scheduler never does: `DefaultPreemption` is disabled.
    Disabled,
}

/// A rule of a pod that the simulated scheduler does not know. The pod is not scheduled as if it did not have the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmodelled {
    /// The pod.
    pub pod: PodKey,
    /// Its field.
    pub field: String,
    /// What the rule is.
    pub rule: String,
}

impl fmt::Display for Unmodelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pod, field, rule } = self;
        write!(
            f,
            "pod {pod}: {field}: the simulated scheduler does not know {rule}; simulate the pod without it"
        )
    }
}

impl std::error::Error for Unmodelled {}

/// One attempt to find a node for a pod of the default profile in a cluster that is looked at once.
pub fn schedule(snapshot: &Snapshot, pod: &Pod, pick: Pick<'_>) -> Result<Outcome, Unmodelled> {
    Scheduler::default().schedule(&Cluster::of(snapshot), pod, MayPreempt::LessImportant, pick)
}

/// A scheduler, as it is configured.
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    /// Its profiles, by name. Pods of any other name have the default one.
    pub profiles: Profiles,
}

impl Scheduler {
    /// One attempt to find a node for a pod.
    ///
    /// Of the caller remains: whether the pod is to be scheduled at all ([`waits_for`]), [`Cluster::assume`] when it is
    /// bound, and what follows from a preemption.
    pub fn schedule(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        may_preempt: MayPreempt,
        pick: Pick<'_>,
    ) -> Result<Outcome, Unmodelled> {
        let nothing = |message| Outcome::Unschedulable { message, preemption: Preemption::NotTried };
        if cluster.is_empty() {
            return Ok(nothing("no nodes available to schedule pods".to_owned()));
        }
        let attempt = self.attempt(cluster, pod)?;
        let found = Found::new(cluster, &attempt)?;
        if found.fit.is_empty() {
            return Ok(preemption::after(cluster, found, may_preempt, pick));
        }
        let best = found.best(cluster, &attempt);
        let node = best[if best.len() > 1 { pick(best.len()) } else { 0 }].node.name.clone();
        Ok(Outcome::Bind { node })
    }

    /// The nodes that take a pod as things are, by name, and for each other one why it does not.
    pub fn feasible(&self, cluster: &Cluster, pod: &Pod) -> Result<Feasible, Unmodelled> {
        let attempt = self.attempt(cluster, pod)?;
        let found = Found::new(cluster, &attempt)?;
        let name = |at: &NodeInfo| at.node.name.clone();
        Ok(Feasible {
            nodes: found.fit.iter().map(|at| name(at)).collect(),
            best: found.best(cluster, &attempt).into_iter().map(name).collect(),
            unfit: found.unfit.iter().map(|(at, unfit)| (name(at), unfit.clone())).collect(),
        })
    }

    fn attempt<'a>(&'a self, cluster: &Cluster, pod: &'a Pod) -> Result<Attempt<'a>, Unmodelled> {
        let refused = |field: &str, rule: &str| Unmodelled {
            pod: pod.key.clone(),
            field: field.into(),
            rule: rule.into(),
        };
        if let Some(rule) = pod.spec.unmodelled.first() {
            return Err(refused(&rule.field, &rule.rule));
        }
        if pod.spec.gpu_share.is_some() {
            return Err(refused("the share of a GPU", "a resource of which a pod takes a part"));
        }
        if let Some(key) = pod.group_key() {
            let group = cluster.around.pod_groups.get(&key);
            let is_basic =
                |group: &poolwright_core::PodGroup| group.min_count.is_none() && group.unmodelled.is_empty();
            if !group.is_some_and(|group| is_basic(group)) {
                return Err(refused("spec.schedulingGroup", "a PodGroup whose pods are placed as one"));
            }
        }
        Ok(Attempt::new(cluster, self.profiles.get(&pod.scheduler), pod))
    }
}

/// What the filters say of all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feasible {
    /// The nodes that take the pod, by name.
    pub nodes: Vec<String>,
    /// The best of them.
    pub best: Vec<String>,
    /// Nodes that do not, and why. Where the pod names its nodes, the others are left out.
    pub unfit: Vec<(String, Unfit)>,
}

/// What was found on the way.
struct Found<'a> {
    fit: Vec<&'a NodeInfo>,
    unfit: Vec<(&'a NodeInfo, Unfit)>,
    /// What holds for all nodes; `None` where no node takes the pod whatever is on it.
    state: Option<Box<State<'a>>>,
    /// Why not even nodes were looked at.
    never: Option<String>,
    /// Why the nodes that were not looked at were not.
    absent: Option<Reason>,
}

impl<'a> Found<'a> {
    fn new(cluster: &'a Cluster, attempt: &'a Attempt<'a>) -> Result<Self, Unmodelled> {
        let mut found = Self { fit: Vec::new(), unfit: Vec::new(), state: None, never: None, absent: None };
        let (state, names) = match State::start(cluster, attempt)? {
            Start::Look(state, names) => (state, names),
            Start::Never(why) => {
                found.never = Some(why);
                return Ok(found);
            }
        };
        // Where room was made for it, it goes if it can: no other node is looked at then.
        let nominated = attempt.pod.nominated_node.as_ref().and_then(|name| cluster.node(name));
        if let Some(at) = nominated.filter(|at| state.check_with_nominated(at, at).is_ok()) {
            found.fit.push(at);
            return Ok(found);
        }
        let mut look = |at: &'a NodeInfo| match state.check_with_nominated(at, at) {
            Ok(()) => found.fit.push(at),
            Err(unfit) => found.unfit.push((at, unfit)),
        };
        match names {
            None => cluster.nodes().iter().for_each(look),
            Some(names) => {
                names.into_iter().filter_map(|name| cluster.node(name)).for_each(&mut look);
                found.absent = Some(Reason::NotNamed);
            }
        }
        found.state = Some(state);
        Ok(found)
    }

    /// The nodes with the highest score.
    fn best(&self, cluster: &Cluster, attempt: &Attempt<'_>) -> Vec<&'a NodeInfo> {
        if self.fit.len() < 2 {
            return self.fit.clone();
        }
        let scores = scores::scores(cluster, attempt, &self.fit);
        let highest = scores.iter().max().copied();
        let best = self.fit.iter().zip(&scores).filter(|(_, score)| Some(**score) == highest);
        best.map(|(at, _)| *at).collect()
    }

    /// The first half of what the scheduler says where there is no node.
    fn message(&self, nodes: usize) -> String {
        match &self.never {
            Some(why) => message::none_at_all(nodes, why),
            None => message::no_node(nodes, self.unfit.iter().map(|(_, unfit)| unfit), self.absent.clone()),
        }
    }
}
