//! The lower bound of the cost at each moment, for the pods that had a machine then.
//!
//! All pods of the replay form one problem for the solver. It has only their resources, labels and tolerations, because
//! the other rules could only raise the cost. For each moment the solver then proves a bound for the pods that were
//! on machines. The machines of that moment held all these pods, so they cost at least the bound.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use poolwright_catalog::Catalogue;
use poolwright_core::plan::{PlanOptions, PreferencePolicy, plan};
use poolwright_core::{Pod, PodKey, PodSpec, Pool, PoolLimits, Snapshot};
use poolwright_solver::{NeverStop, Options, Problem, Solution, StopSignal, solve};
use poolwright_terms::NodeClassRef;

use super::history::History;
use super::steps::Steps;

/// Work units of one bound: about 5 ms of one core.
const WORK: u64 = 10_000;
/// The largest number of equal time steps. A pod that runs only for part of a step does not count in it.
const SPANS: u32 = 1_000;

/// The number of pods of each class.
type Present = Vec<u32>;

/// Returns the lower bound in micro-dollars per hour. `sold` is the catalogue of each node class.
pub fn over_time(history: &History, pools: &[Pool], sold: &BTreeMap<NodeClassRef, Arc<Catalogue>>) -> Steps {
    let Some((problem, classes)) = question(history, pools, sold) else { return Steps::default() };
    let mut changes: BTreeMap<Duration, Vec<(usize, bool)>> = BTreeMap::new();
    for (at, pod) in history.pods.iter().enumerate() {
        let (Some((bound, machine)), Some(class)) = (pod.bound, classes.get(&at)) else { continue };
        // The cost leaves out machines with unknown prices, so the bound leaves out their pods.
        if history.machines[machine].price.is_none() {
            continue;
        }
        let until = pod.ended.map_or(history.played, |(at, _)| at);
        if bound < until {
            changes.entry(bound).or_default().push((*class, true));
            changes.entry(until).or_default().push((*class, false));
        }
    }
    let moments = least_of_spans(changes, vec![0; problem.classes.len()], history.played / SPANS);
    let bounds = bounds(&problem, moments.iter().map(|(_, present)| present.clone()).collect());
    Steps::of_levels(moments.into_iter().map(|(at, present)| (at, bounds[&present])))
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

/// Returns the problem with all pods that had a machine, and the class of each pod by its index.
fn question(
    history: &History,
    pools: &[Pool],
    sold: &BTreeMap<NodeClassRef, Arc<Catalogue>>,
) -> Option<(Problem, BTreeMap<usize, usize>)> {
    let bound = history.pods.iter().enumerate().filter(|(_, pod)| pod.bound.is_some());
    question_of(bound.map(|(at, pod)| (at, &*pod.model)), pools, sold)
}

/// Returns the problem with these pods, and the class of each pod by its number.
pub(super) fn question_of<'a>(
    pods: impl Iterator<Item = (usize, &'a Pod)>,
    pools: &[Pool],
    sold: &BTreeMap<NodeClassRef, Arc<Catalogue>>,
) -> Option<(Problem, BTreeMap<usize, usize>)> {
    let pods = pods.map(|(at, pod)| {
        let key = PodKey::new("", at.to_string());
        (key.clone(), Arc::new(Pod::waiting(key, bare(&pod.spec))))
    });
    let mut snapshot = Snapshot { pods: pods.collect(), ..Snapshot::default() };
    for pool in pools {
        let sold = sold.get(&pool.node_class)?;
        snapshot.catalogues.insert(pool.node_class.clone(), Ok(sold.clone()));
        // The bound ignores the weights and limits of pools, because they could only raise the cost.
        let pool = Pool { weight: 1, limits: PoolLimits::default(), ..pool.clone() };
        snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    }
    let options = PlanOptions {
        include_waiting: true,
        baselines: false,
        keep_solves: true,
        preferences: PreferencePolicy::Ignore,
        solver: Options { work: 0, threads: 1, ..Options::default() },
        ..PlanOptions::default()
    };
    let asked = plan(&snapshot, Timestamp::UNIX_EPOCH, &options, &mut AtOnce).solves.into_iter().next()?;
    let of_class = |(class, pods): (usize, Vec<PodKey>)| {
        pods.into_iter().filter_map(move |key| Some((key.name().parse().ok()?, class)))
    };
    Some((asked.problem, asked.pods.into_iter().enumerate().flat_map(of_class).collect()))
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

/// Computes a bound for each set of pods, on one thread per core. The assignment to threads does not affect the result.
fn bounds(problem: &Problem, all: BTreeSet<Present>) -> BTreeMap<Present, u64> {
    let all: Vec<Present> = all.into_iter().collect();
    let next = AtomicUsize::new(0);
    let found: Mutex<BTreeMap<Present, u64>> = Mutex::default();
    let work = || {
        while let Some(present) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let bound = bound(problem, present);
            found.lock().unwrap_or_else(PoisonError::into_inner).insert(present.clone(), bound);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Computes a lower bound on the cost per hour of nodes that hold these numbers of pods.
fn bound(problem: &Problem, present: &Present) -> u64 {
    let classes = problem.classes.iter().zip(present).filter(|(_, count)| **count > 0);
    let classes: Vec<_> = classes
        .map(|(class, count)| {
            let mut class = class.clone();
            class.count = *count;
            class
        })
        .collect();
    if classes.is_empty() {
        return 0;
    }
    let asked = Problem { classes, ..problem.clone() };
    let options = Options { work: WORK, threads: 1, ..Options::default() };
    let placed_all = |solution: &Solution| solution.unplaced.is_empty();
    // The solver's bound holds for plans that place as many pods. If the solution leaves pods out, no bound follows for all of
    // them.
    solve(&asked, &options, &mut NeverStop)
        .ok()
        .filter(placed_all)
        .map_or(0, |solution| solution.bound.micros())
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
