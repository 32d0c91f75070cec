//! Obstacles to disruption: annotations, protected pods, pods that cannot be moved, and PodDisruptionBudgets that allow no
//! eviction now or ever.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::model::{Cause, Claim, Node, ObjectKey, Pod, PodRole, Pool, Snapshot, Uid, Workload};
use crate::rules::budget_index::{NamespaceBudgets, by_namespace};
use crate::rules::eviction::Eviction;

/// Returns the kind of the object whose annotation protects a node, if any.
pub(crate) fn kept_by(claim: &Claim, node: &Node, pool: &Pool) -> Option<&'static str> {
    let kept = [
        (claim.do_not_disrupt, "NodeClaim"),
        (node.do_not_disrupt, "Node"),
        (pool.disruption.do_not_disrupt, "NodePool"),
    ];
    kept.into_iter().find_map(|(kept, kind)| kept.then_some(kind))
}

/// The end of the obstacle of a pod whose controller is not in the snapshot.
pub(crate) const UNKNOWN_MAKER: &str = "Poolwright does not know its controller";

/// Data from the snapshot that is needed for many nodes.
pub(crate) struct Facts<'a> {
    pub snapshot: &'a Snapshot,
    pub now: Timestamp,
    makers: BTreeMap<&'a Uid, &'a Workload>,
    /// Controllers that belong to gangs.
    in_gangs: BTreeSet<(&'a str, ObjectKey)>,
    budgets: BTreeMap<&'a str, NamespaceBudgets<'a>>,
}

impl<'a> Facts<'a> {
    pub fn new(snapshot: &'a Snapshot, now: Timestamp) -> Self {
        let workloads = snapshot.workloads.values();
        let mut in_gangs = BTreeSet::new();
        for gang in snapshot.gangs.values() {
            for part in &gang.parts {
                let key = |name| (part.controller.as_str(), ObjectKey::new(&gang.key.namespace, name));
                in_gangs.extend(part.controllers.iter().map(key));
            }
        }
        let makers = workloads.map(|workload| (&workload.uid, workload.as_ref())).collect();
        Self { snapshot, now, makers, in_gangs, budgets: by_namespace(snapshot) }
    }

    pub fn pool(&self, claim: &Claim) -> Option<&'a Pool> {
        self.snapshot.pools.get(&claim.pool).map(AsRef::as_ref)
    }

    pub fn node(&self, claim: &Claim) -> Option<&'a Node> {
        self.snapshot.nodes.get(claim.node_name.as_ref()?).map(AsRef::as_ref)
    }

    /// Returns the workload pods on the claim's node.
    pub fn work(&self, claim: &Claim) -> impl Iterator<Item = &'a Pod> + use<'a> {
        let there = claim.node_name.as_deref().and_then(|node| self.snapshot.pods.on_node(node));
        let pods = there.into_iter().flat_map(|there| &there.pods).map(AsRef::as_ref);
        pods.filter(|pod| pod.role == PodRole::Workload)
    }

    pub fn maker(&self, pod: &Pod) -> Option<&'a Workload> {
        self.makers.get(pod.owner.as_ref()?).copied()
    }

    /// Describes why the claim's node may not be emptied for this cause; `None` if it may.
    pub fn obstacle(&self, claim: &Claim, cause: Cause) -> Option<String> {
        self.node_obstacle(claim, cause)
            .or_else(|| self.work(claim).find_map(|pod| self.pod_obstacle(pod, cause)))
    }

    /// Describes why no pod of the claim's node may be moved for this cause, whichever pod it is.
    pub fn node_obstacle(&self, claim: &Claim, cause: Cause) -> Option<String> {
        let Some(pool) = self.pool(claim) else {
            return Some(format!("its pool `{}` no longer exists", claim.pool));
        };
        let Some(node) = self.node(claim) else { return Some("its node does not exist".to_owned()) };
        if let Some(kind) = kept_by(claim, node, pool) {
            return Some(format!("the annotation poolwright.dev/do-not-disrupt of its {kind} keeps it"));
        }
        if cause == Cause::Underutilized && !pool.disruption.consolidates {
            return Some(
                "its pool does not consolidate nodes with pods (disruption.consolidationPolicy)".to_owned(),
            );
        }
        None
    }

    /// Describes a PodDisruptionBudget that allows no eviction of a pod on the claim's node now, and may allow one later, if there is
    /// one.
    pub fn shut_budget(&self, claim: &Claim) -> Option<String> {
        self.work(claim).filter(|pod| pod.deleting_since.is_none()).find_map(|pod| self.budget_of(pod))
    }

    /// Describes why a pod may not be evicted; `None` if it may.
    pub fn pod_obstacle(&self, pod: &Pod, cause: Cause) -> Option<String> {
        if pod.deleting_since.is_some() {
            return None;
        }
        let key = &pod.key;
        if let Some(protection) = &pod.ending.protection
            && protection.until.is_none_or(|until| until > self.now)
        {
            return Some(format!("pod {key} is protected by {}", protection.annotation));
        }
        let Some(maker) = self.maker(pod) else {
            let why = if pod.owner.is_some() { UNKNOWN_MAKER } else { "it has no controller" };
            return Some(format!("pod {key} would not be recreated: {why}"));
        };
        if maker.scheduling_gated && cause == Cause::Underutilized {
            return Some(format!("the successor of pod {key} would have scheduling gates"));
        }
        let together = pod.group.is_some()
            || maker.kind == "Job" && maker.total > 1
            || self.in_gangs.contains(&(maker.kind.as_str(), maker.key.clone()));
        if together {
            return Some(format!("pod {key} belongs to a gang, and gangs are not moved in parts"));
        }
        self.eviction(pod).never(pod)
    }

    /// Describes a PodDisruptionBudget that allows no eviction of the pod now, and may allow one later, if there is one.
    pub fn budget_of(&self, pod: &Pod) -> Option<String> {
        let Eviction::Takes(budget) = self.eviction(pod) else { return None };
        let is_shut = budget.allowed.unwrap_or(0) == 0;
        is_shut
            .then(|| format!("PodDisruptionBudget {} allows no eviction of pod {} now", budget.key, pod.key))
    }

    /// Returns what PodDisruptionBudgets mean for the eviction of the pod now.
    pub fn eviction(&self, pod: &Pod) -> Eviction<'a> {
        let there = self.budgets.get(pod.key.namespace()).into_iter();
        Eviction::of(pod, there.flat_map(move |there| there.of(pod).map(move |at| there.all[at])))
    }
}
