//! The lower bound of the cost at each moment, for the pods that had a machine then, and the best plan known for them.
//!
//! All pods of the replay form one problem for the solver. It has only their resources, labels and tolerations, and the room that
//! nodes keep for DaemonSets, because the other rules could only raise the cost. For each moment the solver then proves a bound for the pods that were
//! on machines. The machines of that moment held all these pods, so they cost at least the bound.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use poolwright_catalog::{Catalogue, UsdPerHour};
use poolwright_core::plan::{PlanOptions, PlannedClaim, PreferencePolicy, plan};
use poolwright_core::{DaemonSet, Pod, PodKey, PodSpec, Pool, PoolLimits, Snapshot, SpotRules};
use poolwright_solver::{Options, Problem, StopSignal};
use poolwright_terms::NodeClassRef;

use super::history::History;
use super::solves::{Present, Solved, alone, own_nodes, solve_all};
use super::steps::Steps;

/// The largest number of moments at which pods came or left. If there are more, the time is divided into so many steps, and changes
/// within a step are taken together. A pod that runs only for part of a step does not count in it.
const MOMENTS: u32 = 6_000;

/// The bounds of a replay, in micro-dollars per hour.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// The proven lower bound for the pods on machines.
    pub limit: Steps,
    /// The cost of the cheapest known plan for them.
    pub best_known: Steps,
    /// By machine: its price above the bound for the pods that it was bought for.
    pub excess: Vec<u64>,
    /// By machine: whether a static pool keeps it. The bound has such nodes for nothing.
    pub kept: Vec<bool>,
}

/// All pods of a replay as one problem.
pub(super) struct Question {
    /// The problem. Its existing nodes are those that static pools keep and that pods may use.
    pub problem: Problem,
    /// The class of each pod by its number.
    pub classes: BTreeMap<usize, usize>,
    /// All nodes that static pools keep: the name of each, and its price. An unknown price counts as zero.
    pub kept: Vec<(String, UsdPerHour)>,
}

/// Computes the bounds. New nodes keep room for the DaemonSets. `sold` is the catalogue of each node class.
pub fn over_time(
    history: &History,
    pools: &[Pool],
    daemonsets: &[DaemonSet],
    sold: &BTreeMap<NodeClassRef, Arc<Catalogue>>,
) -> Bounds {
    let asked = question(history, pools, daemonsets, sold);
    let mut bounds = asked.map_or_else(Bounds::default, |asked| of(history, &asked.problem, &asked.classes));
    let is_static = |name: &String| pools.iter().any(|pool| pool.replicas.is_some() && pool.name.0 == *name);
    bounds.kept = history.machines.iter().map(|machine| is_static(&machine.pool)).collect();
    // The scheduler of a replay gives pods the room that nodes keep for DaemonSets, too, because these have no pods there. And a static
    // pool may have more nodes for a while, until old ones are gone.
    if !daemonsets.is_empty() || bounds.kept.contains(&true) {
        bounds.limit = lower(&bounds.limit, &busy(history, &bounds.kept));
    }
    bounds
}

/// Returns a note that names the rules of pools which the limit ignores, if they have any of those that choose dearer nodes.
pub fn ignored(pools: &[Pool]) -> Option<String> {
    let has_weights = pools.iter().any(|pool| pool.weight != pools[0].weight);
    let has_spot_rules = pools.iter().any(|pool| !pool.spot.is_empty());
    let all = [("weights", has_weights), ("rules on spot nodes", has_spot_rules)];
    let names: Vec<&str> = all.into_iter().filter(|(_, is_used)| *is_used).map(|(name, _)| name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "the lower limit ignores the {} of the pools: what they cost counts in the gap as stranded or wrong type",
            names.join(" and the ")
        )
    })
}

/// Returns the price of the machines that have pods, over time, without those that static pools keep.
fn busy(history: &History, kept: &[bool]) -> Steps {
    let mut by_machine: BTreeMap<usize, Vec<(Duration, Duration)>> = BTreeMap::new();
    for pod in &history.pods {
        if let (Some(span), Some((_, machine))) = (history.on_machine(pod), pod.bound)
            && !kept[machine]
        {
            by_machine.entry(machine).or_default().push(span);
        }
    }
    let mut spans = Vec::new();
    for (machine, mut of_pods) in by_machine {
        let price = history.machines[machine].price.map_or(0, UsdPerHour::micros);
        of_pods.sort_unstable();
        let mut since = Duration::ZERO;
        for (from, until) in of_pods {
            let from = from.max(since);
            if from < until {
                spans.push((from, until, price));
                since = until;
            }
        }
    }
    Steps::of_spans(spans)
}

/// Returns the lower of two numbers over time.
fn lower(one: &Steps, other: &Steps) -> Steps {
    let moments: BTreeSet<Duration> = one.moments().chain(other.moments()).collect();
    Steps::of_levels(moments.into_iter().map(|at| (at, one.at(at).min(other.at(at)))))
}

/// Computes the bounds from the problem with all pods, and the class of each pod by its index.
pub(super) fn of(history: &History, problem: &Problem, classes: &BTreeMap<usize, usize>) -> Bounds {
    let mut changes: BTreeMap<Duration, Vec<(usize, bool)>> = BTreeMap::new();
    for (at, pod) in history.pods.iter().enumerate() {
        let (Some((_, machine)), Some(class)) = (pod.bound, classes.get(&at)) else { continue };
        // The cost leaves out machines with unknown prices, so the bound leaves out their pods.
        let Some((from, until)) =
            history.on_machine(pod).filter(|_| history.machines[machine].price.is_some())
        else {
            continue;
        };
        changes.entry(from).or_default().push((*class, true));
        changes.entry(until).or_default().push((*class, false));
    }
    let none = vec![0; problem.classes.len()];
    let span = if changes.len() <= MOMENTS as usize { Duration::ZERO } else { history.played / MOMENTS };
    let moments = least_of_spans(changes.clone(), none.clone(), span);
    let bought_for = |pods: &[usize]| {
        let mut present = none.clone();
        pods.iter().filter_map(|pod| classes.get(pod)).for_each(|class| present[*class] += 1);
        present
    };
    let bought: Vec<Present> =
        history.machines.iter().map(|machine| bought_for(&machine.bought_for)).collect();
    let ends = moments.iter().skip(1).map(|(at, _)| *at).chain([history.played]);
    let lasting = moments.iter().zip(ends).map(|((at, present), end)| (present, end.saturating_sub(*at)));
    // The pods that a machine was bought for count in the split of the gap, not in the limit.
    let all = lasting.chain(bought.iter().map(|present| (present, Duration::ZERO)));
    let mut asked: Vec<Present> = Vec::new();
    let mut lengths: Vec<Duration> = Vec::new();
    let mut known: BTreeMap<&Present, usize> = BTreeMap::new();
    for (present, length) in all.filter(|(present, _)| **present != none) {
        let at = *known.entry(present).or_insert_with(|| {
            asked.push(present.clone());
            lengths.push(Duration::ZERO);
            asked.len() - 1
        });
        lengths[at] += length;
    }
    let alone = alone(problem);
    let solved = solve_all(problem, &asked, &lengths, &alone);
    let mut by_present: BTreeMap<&Present, Solved> = asked.iter().zip(solved).collect();
    by_present.insert(&none, Solved { bound: 0, plan: 0 });
    let excess = history.machines.iter().zip(&bought).map(|(machine, bought)| {
        // Nothing can be said of a node that was bought for no pod of the replay.
        let price = machine.price.filter(|_| *bought != none).map_or(0, UsdPerHour::micros);
        price.saturating_sub(by_present[bought].bound)
    });
    let excess = excess.collect();
    Bounds {
        limit: Steps::of_levels(moments.iter().map(|(at, present)| (*at, by_present[present].bound))),
        best_known: best_known(&changes, &moments, &none, &alone, |present| by_present[present].plan),
        excess,
        kept: Vec::new(),
    }
}

/// Returns the cost of the best known plan at every moment: that for the pods which the limit counts, and an own node for every
/// other pod.
fn best_known<'a>(
    changes: &BTreeMap<Duration, Vec<(usize, bool)>>,
    moments: &'a [(Duration, Present)],
    none: &'a Present,
    alone: &[u64],
    plan: impl Fn(&'a Present) -> u64,
) -> Steps {
    let mut times: BTreeSet<Duration> = changes.keys().copied().collect();
    times.extend(moments.iter().map(|(at, _)| *at));
    let mut present = none.clone();
    let mut counted = none;
    let mut next = moments.iter().peekable();
    let level = |at: Duration| {
        for (class, comes) in changes.get(&at).into_iter().flatten() {
            present[*class] = if *comes { present[*class] + 1 } else { present[*class] - 1 };
        }
        while let Some((_, least)) = next.next_if(|(from, _)| *from <= at) {
            counted = least;
        }
        (at, plan(counted).saturating_add(own_nodes(&present, counted, alone)))
    };
    Steps::of_levels(times.into_iter().map(level))
}

/// Returns the least number of each class from each moment to the next. Changes within one time step of a moment add no moment:
/// until the end of the step the least number counts, and then the current one.
fn least_of_spans(
    changes: BTreeMap<Duration, Vec<(usize, bool)>>,
    mut present: Present,
    span: Duration,
) -> Vec<(Duration, Present)> {
    let mut moments: Vec<(Duration, Present)> = Vec::new();
    let mut until = Duration::ZERO;
    for (at, changes) in changes {
        if at > until && moments.last().is_some_and(|(_, least)| *least != present) {
            moments.push((until, present.clone()));
            until += span;
        }
        for (class, comes) in changes {
            present[class] = if comes { present[class] + 1 } else { present[class] - 1 };
        }
        if let Some((_, least)) = moments.last_mut().filter(|_| at < until) {
            for (least, now) in least.iter_mut().zip(&present) {
                *least = (*least).min(*now);
            }
        } else {
            moments.push((at, present.clone()));
            until = at + span;
        }
    }
    if moments.last().is_some_and(|(_, least)| *least != present) {
        moments.push((until, present));
    }
    moments
}

/// Returns the problem with all pods that had a machine. A pod's number is its index.
fn question(
    history: &History,
    pools: &[Pool],
    daemonsets: &[DaemonSet],
    sold: &BTreeMap<NodeClassRef, Arc<Catalogue>>,
) -> Option<Question> {
    let bound = history.pods.iter().enumerate().filter(|(_, pod)| pod.bound.is_some());
    question_of(bound.map(|(at, pod)| (at, &*pod.model)), pools, daemonsets, sold, Counted::StaticPools)
}

/// The limits that count in a problem.
#[derive(Clone, Copy)]
pub(super) enum Counted {
    /// Those of static pools, which decide how many nodes these keep.
    StaticPools,
    /// Those of all pools, with this one on the cost of pools that have none.
    AllPools(Option<UsdPerHour>),
}

/// Returns the problem with these pods, each with its number.
pub(super) fn question_of<'a>(
    pods: impl Iterator<Item = (usize, &'a Pod)>,
    pools: &[Pool],
    daemonsets: &[DaemonSet],
    sold: &BTreeMap<NodeClassRef, Arc<Catalogue>>,
    counted: Counted,
) -> Option<Question> {
    let pods = pods.map(|(at, pod)| {
        let key = PodKey::new("", at.to_string());
        (key.clone(), Arc::new(Pod::waiting(key, bare(&pod.spec))))
    });
    let mut snapshot = Snapshot { pods: pods.collect(), ..Snapshot::default() };
    for one in daemonsets {
        snapshot.daemonsets.insert(one.key.clone(), Arc::new(one.clone()));
    }
    for pool in pools {
        let sold = sold.get(&pool.node_class)?;
        snapshot.catalogues.insert(pool.node_class.clone(), Ok(sold.clone()));
        // The bound ignores the weights, limits and spot rules of pools, because they could only raise the cost. Shares of nodes at
        // one time are no shares of all nodes over time.
        let is_limited = pool.replicas.is_some() || matches!(counted, Counted::AllPools(_));
        let limits = if is_limited { pool.limits.clone() } else { PoolLimits::default() };
        let spot = SpotRules::default();
        // With limits, `minValues` would raise what a node uses of them, and leave offerings out. The methods know no such rule.
        let min_values = match counted {
            Counted::AllPools(_) if pool.replicas.is_none() => BTreeMap::new(),
            Counted::AllPools(_) | Counted::StaticPools => pool.min_values.clone(),
        };
        let pool = Pool { weight: 1, limits, spot, min_values, ..pool.clone() };
        snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    }
    let options = PlanOptions {
        include_waiting: true,
        baselines: false,
        keep_solves: true,
        preferences: PreferencePolicy::Ignore,
        default_usd_per_hour: match counted {
            Counted::StaticPools => None,
            Counted::AllPools(usd_per_hour) => usd_per_hour,
        },
        solver: Options { work: 0, threads: 1, ..Options::default() },
        ..PlanOptions::default()
    };
    let made = plan(&snapshot, Timestamp::UNIX_EPOCH, &options, &mut AtOnce);
    let is_static =
        |claim: &&PlannedClaim| snapshot.pools.get(&claim.pool).is_some_and(|pool| pool.replicas.is_some());
    let kept = made.claims.iter().filter(is_static);
    let kept = kept.map(|claim| (claim.name.0.clone(), claim.price().unwrap_or_default())).collect();
    let asked = made.solves.into_iter().next()?;
    let of_class = |(class, pods): (usize, Vec<PodKey>)| {
        pods.into_iter().filter_map(move |key| Some((key.name().parse().ok()?, class)))
    };
    let classes = asked.pods.into_iter().enumerate().flat_map(of_class).collect();
    Some(Question { problem: asked.problem, classes, kept })
}

/// Returns the part of a pod's requirements that the bound uses.
pub(super) fn bare(spec: &PodSpec) -> PodSpec {
    PodSpec {
        requests: spec.requests.clone(),
        node_selector: spec.node_selector.clone(),
        node_affinity: spec.node_affinity.clone(),
        tolerations: spec.tolerations.clone(),
        ..PodSpec::default()
    }
}

/// A signal that stops the search at once, because only the problem is needed.
struct AtOnce;

impl StopSignal for AtOnce {
    fn should_stop(&mut self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of pods from each moment on, after these arrivals (`true`) and departures of one class.
    fn of(changes: &[(u64, bool)], span: u64) -> Vec<(u64, u32)> {
        let mut by_time: BTreeMap<Duration, Vec<(usize, bool)>> = BTreeMap::new();
        for (at, comes) in changes {
            by_time.entry(Duration::from_secs(*at)).or_default().push((0, *comes));
        }
        let moments = least_of_spans(by_time, vec![0], Duration::from_secs(span));
        moments.into_iter().map(|(at, present)| (at.as_secs(), present[0])).collect()
    }

    #[test]
    fn without_time_steps_every_change_counts() {
        let comes_and_goes = [(0, true), (4, true), (6, false), (6, true), (7, false), (7, false)];
        assert_eq!(of(&comes_and_goes, 0), [(0, 1), (4, 2), (6, 2), (7, 0)]);
    }

    #[test]
    fn changes_far_from_each_other_are_told_as_they_are() {
        assert_eq!(of(&[(5, true), (100, true), (200, false)], 10), [(5, 1), (100, 2), (200, 1)]);
    }

    #[test]
    fn within_a_span_the_least_counts_and_after_it_what_there_is() {
        let comes_and_stays = [(0, true), (4, true), (100, false)];
        assert_eq!(of(&comes_and_stays, 10), [(0, 1), (10, 2), (100, 1)]);
        let comes_and_goes = [(0, true), (4, true), (6, false)];
        assert_eq!(of(&comes_and_goes, 10), [(0, 1)]);
        let ends = [(0, true), (4, false)];
        assert_eq!(of(&ends, 10), [(0, 0)]);
    }
}
