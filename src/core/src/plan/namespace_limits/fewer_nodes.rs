//! Limits on the number of nodes: if they hold pods back, another plan buys fewer and larger nodes for the namespace.
//!
//! The solver buys the cheapest nodes, which are often small. So a limit on nodes would leave out pods that a larger node has room
//! for. The other plan gives the pods of the namespace only nodes that hold a crowd of them: as many as must share a node. Of both
//! plans, the one that leaves out fewer pods counts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_solver::StopSignal;

use crate::demand::Successor;
use crate::model::plan::{Plan, UnplacedReason};
use crate::model::{NamespaceLimit, PodKey, PodSpec};
use crate::plan::attempt::Attempt;
use crate::plan::context::PlanContext;
use crate::plan::namespace_limits::units::Unit;
use crate::plan::namespace_limits::{Ceilings, Excess, Held};
use crate::plan::pending::{Demand, PendingPod};
use crate::supply::namespace_use::counts;
use crate::supply::offerings::Supply;

/// The most times that the pods which fit larger nodes are planned for again, without those that do not.
const TRIES: usize = 4;

impl<'a> PlanContext<'a> {
    /// Makes a plan within the limits, with fewer and larger nodes where these hold more pods.
    ///
    /// If the plan with larger nodes leaves out pods, too, the others are planned for as if those did not exist. So pods that are held
    /// back never change what is bought for others.
    pub(super) fn weigh_with_fewer_nodes(
        &mut self,
        ceilings: &Ceilings<'_>,
        inputs: (&[Successor], &Supply<'_>),
        held: &mut Held,
        stop: &mut dyn StopSignal,
    ) -> Attempt {
        let mut cut = Held::new();
        let attempt = self.with_fewer_nodes(ceilings, inputs, (&mut *held, &mut cut), stop);
        cut.retain(|pod, _| !held.contains_key(pod));
        held.append(&mut cut);
        attempt
    }

    /// Does that, and adds to `cut` the pods that are left out for want of larger nodes, with the limits that make them want these.
    fn with_fewer_nodes(
        &mut self,
        ceilings: &Ceilings<'_>,
        inputs: (&[Successor], &Supply<'_>),
        (held, cut): (&mut Held, &mut Held),
        stop: &mut dyn StopSignal,
    ) -> Attempt {
        let mut tries = 0;
        // The last plan with larger nodes that was better, with its demand and the pods that it holds back. It counts if a later one
        // cannot be made, but not if that is worse: then pods that are held back would change it.
        let mut accepted = None;
        loop {
            let (demand, before) = (self.demand.clone(), held.clone());
            let first = self.weigh_and_hold(ceilings, inputs, held, stop);
            let crowds = self.crowds(ceilings, (&demand, &before), held, inputs.0, &first.plan);
            if stop.should_stop() || !first.plan.refused.is_empty() {
                return self.unless_worse(first, accepted, held);
            }
            if crowds.is_empty() {
                return first;
            }
            let after = (mem::replace(&mut self.demand, demand), mem::replace(held, before.clone()));
            self.renew_horizons();
            self.crowds = crowds;
            let mut second = self.weigh_and_hold(ceilings, inputs, held, stop);
            let crowds = mem::take(&mut self.crowds);
            let is_better =
                second.plan.refused.is_empty() && self.left_over(&second.plan) < self.left_over(&first.plan);
            if !is_better {
                (self.demand, *held) = after;
                self.renew_horizons();
                return first;
            }
            cut.extend(name_cause(&crowds, (&after.1, &*held), &mut second.plan));
            tries += 1;
            let holds_none = held.len() == before.len();
            if holds_none || tries == TRIES {
                let serves_all = holds_none && second.plan.unplaced.len() == self.demand.unplaced.len();
                lower_bound(&mut second.plan, Some(&first.plan).filter(|_| serves_all));
                return second;
            }
            accepted = Some((second, self.demand.clone(), held.clone()));
        }
    }

    /// Returns a plan, or the plan that was accepted before it, if that leaves out fewer pods or the later one was refused.
    fn unless_worse(
        &mut self,
        later: Attempt,
        accepted: Option<(Attempt, Demand<'a>, Held)>,
        held: &mut Held,
    ) -> Attempt {
        let Some((mut before, demand, of_before)) = accepted else { return later };
        if later.plan.refused.is_empty() && self.left_over(&later.plan) <= self.left_over(&before.plan) {
            return later;
        }
        (self.demand, *held) = (demand, of_before);
        self.renew_horizons();
        lower_bound(&mut before.plan, None);
        before
    }

    /// Returns how many pods a new node must hold, by namespace, so that the pods for which nodes are bought or which were held back
    /// fit the nodes that it may still have. Only namespaces whose limit on nodes holds pods back are listed.
    fn crowds(
        &self,
        ceilings: &Ceilings<'_>,
        (demand, before): (&Demand<'_>, &Held),
        held: &Held,
        successors: &[Successor],
        plan: &Plan,
    ) -> BTreeMap<String, u64> {
        let nodes = NamespaceLimit::Nodes;
        let is_cut =
            |(pod, excess): &(&PodKey, &Excess)| excess.ceiling.kind == nodes && !before.contains_key(*pod);
        let cut: BTreeSet<&str> = held.iter().filter(is_cut).map(|(pod, _)| pod.namespace()).collect();
        let mut crowds = BTreeMap::new();
        if cut.is_empty() || !plan.refused.is_empty() {
            return crowds;
        }
        let accounts = self.accounts(successors, Some(plan));
        let on_new: BTreeSet<&PodKey> = plan.claims.iter().flat_map(|claim| &claim.planned_pods).collect();
        for (namespace, ceilings) in ceilings.iter().filter(|(name, _)| cut.contains(**name)) {
            let Some(ceiling) = ceilings.iter().find(|one| one.kind == nodes) else { continue };
            let left = ceiling.most.saturating_sub(accounts.standing(namespace).of(nodes));
            let waits = |want: &&PendingPod<'_>| {
                let key = &want.pod.key;
                key.namespace() == *namespace
                    && counts(want.pod)
                    && (on_new.contains(key) || held.contains_key(key))
            };
            let pods = demand.pending.iter().filter(waits).count() as u64;
            if left > 0 && pods > left {
                crowds.insert((*namespace).to_owned(), pods.div_ceil(left));
            }
        }
        crowds
    }
}

impl Unit<'_> {
    /// Gives the places on fuller nodes to the first of the pods that ask for the same, because these pods can take each other's places. So
    /// a limit on nodes leaves out as few of them as possible.
    pub(super) fn fuller_first(units: &mut [Self]) {
        let mut pods: BTreeMap<usize, usize> = BTreeMap::new();
        for (at, _) in units.iter().flat_map(|unit| &unit.on_new) {
            *pods.entry(*at).or_default() += 1;
        }
        let mut places: BTreeMap<&PodSpec, Vec<usize>> = BTreeMap::new();
        for unit in units.iter().filter(|unit| !unit.is_gang) {
            for &(at, pod) in &unit.on_new {
                places.entry(&pod.spec).or_default().push(at);
            }
        }
        for places in places.values_mut() {
            places.sort_by_key(|at| (pods[at], Reverse(*at)));
        }
        for unit in units.iter_mut().filter(|unit| !unit.is_gang) {
            for (at, pod) in &mut unit.on_new {
                if let Some(place) = places.get_mut(&*pod.spec).and_then(Vec::pop) {
                    *at = place;
                }
            }
        }
    }
}

/// Names the limit of the namespace as the reason of pods that it alone leaves out without larger nodes. The plan with these leaves them
/// out for another reason, such as a limit of a pool that has too little for larger nodes. `first` are the pods that are held back without
/// larger nodes, and `held` those that are held back with them. Returns the pods, with the limits.
fn name_cause(crowds: &BTreeMap<String, u64>, (first, held): (&Held, &Held), plan: &mut Plan) -> Held {
    let mut found = Held::new();
    for left in plan.unplaced.iter_mut().filter(|left| !held.contains_key(&left.pod)) {
        let is_crowded = crowds.contains_key(left.pod.namespace());
        if let Some(excess) = first.get(&left.pod).filter(|_| is_crowded) {
            left.reason = UnplacedReason::NamespaceLimitReached;
            left.message = excess.sentence(left.pod.namespace(), None);
            found.insert(left.pod.clone(), *excess);
        }
    }
    found
}

/// Replaces the bound of a plan with larger nodes, which only counts these nodes. The bound of a plan for some of its pods with all
/// nodes holds, if there is one. The baselines do not count, either.
fn lower_bound(plan: &mut Plan, other: Option<&Plan>) {
    plan.bound = other.map_or(UsdPerHour::ZERO, |other| other.bound.min(plan.bound));
    if let Some(over_time) = &mut plan.over_time {
        let other = other.and_then(|other| other.over_time.as_ref());
        over_time.bound = other.map_or(Usd::default(), |other| other.bound.min(over_time.bound));
    }
    plan.proof = other.map_or(plan.proof, |other| other.proof.max(plan.proof));
    // The baselines chose from large nodes alone, and with all nodes they would buy more nodes than the limit allows.
    for baseline in [&mut plan.baselines.one_pod_per_node, &mut plan.baselines.first_fit] {
        baseline.ignores_namespace_limits = true;
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use poolwright_solver::NeverStop;

    use super::*;
    use crate::model::plan::UnplacedPod;
    use crate::model::{PlanOptions, Pod, Snapshot};
    use crate::plan::prepare::prepare;

    /// Returns an attempt that leaves out these pods.
    fn leaving(context: &PlanContext<'_>, supply: &Supply<'_>, names: &[&str]) -> Attempt {
        let mut attempt = context.weigh(supply, &mut NeverStop);
        let left_out = |name: &&str| UnplacedPod {
            pod: PodKey::new("ml", *name),
            reason: UnplacedReason::NamespaceLimitReached,
            message: String::new(),
        };
        attempt.plan.unplaced = names.iter().map(left_out).collect();
        attempt
    }

    #[test]
    fn a_better_plan_with_larger_nodes_is_kept_if_a_later_one_is_refused_or_leaves_out_more() {
        let mut snapshot = Snapshot::default();
        for (name, priority) in [("a", 0), ("b", 0), ("vital", 10)] {
            let pod = Pod { priority, ..Pod::waiting(PodKey::new("ml", name), PodSpec::default()) };
            snapshot.pods.insert(pod.key.clone(), pod.into());
        }
        let options = PlanOptions::default();
        let prepared = prepare(&snapshot, Timestamp::UNIX_EPOCH, &options);
        let cases: [(&[&str], &[&str], bool, bool); 5] = [
            (&["a"], &["a"], false, false),
            (&["a"], &["a", "b"], false, true),
            (&["vital"], &["a", "b"], false, false),
            (&["a", "b"], &["vital"], false, true),
            (&["a"], &[], true, true),
        ];
        for (before, later, refused, is_kept) in cases {
            let (mut context, supply) = PlanContext::new(&prepared);
            let mut earlier = leaving(&context, &supply, before);
            let mut later = leaving(&context, &supply, later);
            earlier.plan.cost = UsdPerHour::from_micros(1);
            later.plan.cost = UsdPerHour::from_micros(2);
            later.plan.refused.extend(refused.then(|| "a bug".to_owned()));
            let demand = context.demand.clone();
            context.demand.pending.clear();
            let accepted = Some((earlier, demand.clone(), Held::new()));
            let kept = context.unless_worse(later, accepted, &mut Held::new());
            assert_eq!(kept.plan.cost == UsdPerHour::from_micros(1), is_kept, "{before:?}");
            let pending = if is_kept { demand.pending.len() } else { 0 };
            assert_eq!(context.demand.pending.len(), pending, "the demand is that of the plan");
        }
    }
}
