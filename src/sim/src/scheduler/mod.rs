//! The kube-scheduler of the simulated world. It schedules one pod at a time like the default profile of Kubernetes 1.36: it
//! filters nodes, scores the rest and takes one of the best; if none fits, it tries preemption.
//!
//! It is a pure function. Where the kube-scheduler chooses at random, the caller chooses.
//!
//! It places the pods of a gang together or not at all ([`Scheduler::schedule_gang`]).
//!
//! Differences from the kube-scheduler: it checks all nodes of a large cluster, not a sample. It has no `ImageLocality` and no
//! `DynamicResources`; a pod that needs the latter is refused as [`Unmodelled`]. Gangs preempt no pods. The caller binds the claims
//! of a pod ([`Cluster::supplies`]). It sees a pod through the model ([`poolwright_core::Pod`]), so it knows the requests of a whole pod, and its creation
//! time instead of its start time.
//!
//! The differential test compares it with a real one (`tests/plane/tests/differential/simulated.rs`, `evicted.rs`).

mod attempt;
mod binding;
mod cluster;
mod filters;
mod gangs;
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
pub use binding::Supply;
pub use cluster::Cluster;
use cluster::NodeInfo;
use filters::{Start, State};
pub(crate) use preemption::budgets::needed;
pub use queue::{Queued, waits_for};
pub use reason::{Reason, Unfit};

/// Chooses one of n equally good nodes: returns a number below n. In a simulation, the seed decides.
pub type Pick<'a> = &'a mut dyn FnMut(usize) -> usize;

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The pod is bound to this node.
    Bind {
        /// The name of the node.
        node: String,
    },
    /// No node fits.
    Unschedulable {
        /// The message of the pod's condition `PodScheduled`, in the words of the kube-scheduler.
        message: String,
        /// The preemption.
        preemption: Preemption,
    },
}

/// The preemption for a pod that fits no node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// It evicts no pods and keeps its nomination.
    NotTried,
    /// Evictions would not help, so it loses its nomination.
    InVain,
    /// It is nominated for a node and evicts pods there.
    Evict {
        /// The node.
        node: String,
        /// The pods to evict, the most important first, including those that are being deleted.
        victims: Vec<PodKey>,
        /// Pods of lower priority that lose their nomination for this node.
        set_back: Vec<PodKey>,
    },
}

/// Whether a pod may preempt others, by its `preemptionPolicy` and its scheduler profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MayPreempt {
    /// It may preempt pods of lower priority (`PreemptLowerPriority`).
    #[default]
    LessImportant,
    /// It may not preempt (`Never`).
    Never,
    /// Its profile disables `DefaultPreemption`.
    Disabled,
}

/// A rule of a pod that the simulated scheduler does not support. Such a pod is refused, not scheduled without the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmodelled {
    /// The pod.
    pub pod: PodKey,
    /// The field of the pod.
    pub field: String,
    /// The rule, in words.
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

/// Tries to schedule one pod of the default profile in a snapshot.
pub fn schedule(snapshot: &Snapshot, pod: &Pod, pick: Pick<'_>) -> Result<Outcome, Unmodelled> {
    Scheduler::default().schedule(&Cluster::of(snapshot), pod, MayPreempt::LessImportant, pick)
}

/// A configured scheduler.
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    /// Its profiles, by name. Pods with another scheduler name use the default profile.
    pub profiles: Profiles,
}

impl Scheduler {
    /// Tries to schedule one pod.
    ///
    /// The caller checks that the pod waits for this scheduler ([`waits_for`]), calls [`Cluster::assume`] when the pod is bound,
    /// and carries out a preemption.
    pub fn schedule(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        may_preempt: MayPreempt,
        pick: Pick<'_>,
    ) -> Result<Outcome, Unmodelled> {
        if !cluster.is_empty() {
            refuse_gang(cluster, pod)?;
        }
        self.place(cluster, pod, may_preempt, pick)
    }

    /// Tries to schedule one pod, whatever group it belongs to.
    fn place(
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
        let found = Found::new(cluster, &attempt);
        if found.fit.is_empty() {
            return Ok(preemption::after(cluster, found, may_preempt, pick));
        }
        let best = found.best(cluster, &attempt);
        let node = best[if best.len() > 1 { pick(best.len()) } else { 0 }].node.name.clone();
        Ok(Outcome::Bind { node })
    }

    /// Returns the nodes that fit a pod now, and the reasons for all others.
    pub fn feasible(&self, cluster: &Cluster, pod: &Pod) -> Result<Feasible, Unmodelled> {
        refuse_gang(cluster, pod)?;
        let attempt = self.attempt(cluster, pod)?;
        let found = Found::new(cluster, &attempt);
        let name = |at: &NodeInfo| at.node.name.clone();
        Ok(Feasible {
            nodes: found.fit.iter().map(|at| name(at)).collect(),
            best: found.best(cluster, &attempt).into_iter().map(name).collect(),
            unfit: found.unfit.iter().map(|(at, unfit)| (name(at), unfit.clone())).collect(),
        })
    }

    fn attempt<'a>(&'a self, cluster: &Cluster, pod: &'a Pod) -> Result<Attempt<'a>, Unmodelled> {
        if let Some(rule) = pod.spec.unmodelled.first() {
            return Err(unmodelled(pod, &rule.field, &rule.rule));
        }
        if pod.spec.gpu_share.is_some() {
            return Err(unmodelled(pod, "the share of a GPU", "a resource of which a pod takes a part"));
        }
        Ok(Attempt::new(cluster, self.profiles.get(&pod.scheduler), pod))
    }
}

fn unmodelled(pod: &Pod, field: &str, rule: &str) -> Unmodelled {
    Unmodelled { pod: pod.key.clone(), field: field.to_owned(), rule: rule.to_owned() }
}

/// Refuses a pod of a gang, which cannot be scheduled alone. The scheduler knows no gangs that only operators know.
fn refuse_gang(cluster: &Cluster, pod: &Pod) -> Result<(), Unmodelled> {
    let Some(key) = pod.group_key().filter(|_| pod.gang.is_none()) else { return Ok(()) };
    let group = cluster.around.pod_groups.get(&key);
    let is_basic =
        |group: &poolwright_core::PodGroup| group.min_count.is_none() && group.unmodelled.is_empty();
    if group.is_some_and(|group| is_basic(group)) {
        return Ok(());
    }
    Err(unmodelled(pod, "spec.schedulingGroup", "a PodGroup whose pods are placed as one"))
}

/// The results of the filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feasible {
    /// The nodes that fit, by name.
    pub nodes: Vec<String>,
    /// Those with the highest score.
    pub best: Vec<String>,
    /// The other nodes with their reasons. If the pod names its nodes, only those are listed.
    pub unfit: Vec<(String, Unfit)>,
}

/// The intermediate results of an attempt.
struct Found<'a> {
    fit: Vec<&'a NodeInfo>,
    unfit: Vec<(&'a NodeInfo, Unfit)>,
    /// The results that hold for all nodes; `None` if no node can fit.
    state: Option<Box<State<'a>>>,
    /// The reason why no node was checked.
    never: Option<String>,
    /// The reason of the nodes that were not checked.
    absent: Option<Reason>,
}

impl<'a> Found<'a> {
    fn new(cluster: &'a Cluster, attempt: &'a Attempt<'a>) -> Self {
        let mut found = Self { fit: Vec::new(), unfit: Vec::new(), state: None, never: None, absent: None };
        let (state, names) = match State::start(cluster, attempt) {
            Start::Look(state, names) => (state, names),
            Start::Never(why) => {
                found.never = Some(why);
                return found;
            }
        };
        // The nominated node is tried first. If it fits, no other node is checked.
        let nominated = attempt.pod.nominated_node.as_ref().and_then(|name| cluster.node(name));
        if let Some(at) = nominated.filter(|at| state.check_with_nominated(at, at).is_ok()) {
            found.fit.push(at);
            return found;
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
        found
    }

    /// Returns the nodes with the highest score.
    fn best(&self, cluster: &Cluster, attempt: &Attempt<'_>) -> Vec<&'a NodeInfo> {
        if self.fit.len() < 2 {
            return self.fit.clone();
        }
        let scores = scores::scores(cluster, attempt, &self.fit);
        let highest = scores.iter().max().copied();
        let best = self.fit.iter().zip(&scores).filter(|(_, score)| Some(**score) == highest);
        best.map(|(at, _)| *at).collect()
    }

    /// Returns the filters' part of the scheduler's message.
    fn message(&self, nodes: usize) -> String {
        match &self.never {
            Some(why) => message::none_at_all(nodes, why),
            None => message::no_node(nodes, self.unfit.iter().map(|(_, unfit)| unfit), self.absent.clone()),
        }
    }
}
