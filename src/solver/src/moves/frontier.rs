//! What can be saved for how much disturbance.

use poolwright_catalog::UsdPerHour;

use super::cluster::Cluster;
use super::market::Market;
use super::residual::{Part, Target};
use super::rooms::{Rooms, Want};
use super::search::Search;
use super::steps;
use crate::meter::Meter;
use crate::problem::{Problem, ProblemError};
use crate::{Options, Watch};

/// A state that can be reached, with all steps up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontierPoint {
    /// Pods moved.
    pub evictions: u64,
    /// Nodes removed.
    pub nodes: u64,
    /// What is paid then, new nodes for waiting pods included.
    pub cost: UsdPerHour,
    /// What is paid less than without any step.
    pub saving: UsdPerHour,
}

/// The states in which nothing else costs less for as few evictions, by evictions. The first moves nothing. Each is a
/// prefix of the steps of one plan; plans for several budgets, up to the problem's own, are taken together.
///
/// # Errors
/// [`ProblemError`] when `problem` is malformed.
pub fn frontier(
    problem: &Problem,
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<Vec<FrontierPoint>, ProblemError> {
    problem.validate()?;
    let cluster = Cluster::new(problem);
    let market = Market::new(&cluster);
    let mut search =
        Search { cluster: &cluster, options, best: None, prices: market.rough(), bounded: Vec::new() };
    {
        let mut part = Part(&mut *watch);
        let mut meter = Meter::new(&mut part, options.work / 4);
        if let Some(fine) = market.fine(0.01, options.lp(), &mut meter) {
            search.prices = fine;
        }
    }
    let prices = search.prices.clone();
    let mut points = Vec::new();
    let mut start = None;
    let still = search.realise(Rooms::new(&cluster, &prices), &search.part(10), watch);
    if let Ok(still) = still {
        start = Some(still.solution.cost);
        collect(&search, &still, still.solution.cost, &mut points);
    }
    let all: u64 = cluster.nodes.iter().map(|node| node.evictions).sum();
    let most = Want::all(&cluster);
    for eighths in [1, 2, 4, 8] {
        let want = Want { evictions: most.evictions.min(all) * eighths / 8, ..most };
        if let Some(target) = search.attempt(&prices, want, (&search.part(10), options.work / 10), watch)
            && let Some(start) = start
        {
            collect(&search, &target, start, &mut points);
        }
        if watch.should_stop() {
            break;
        }
    }
    points.sort_by_key(|point: &FrontierPoint| (point.evictions, point.cost, point.nodes));
    let mut least: Option<UsdPerHour> = None;
    points.retain(|point| {
        let better = least.is_none_or(|least| point.cost < least);
        if better {
            least = Some(point.cost);
        }
        better
    });
    Ok(points)
}

/// The states on the way to `target`.
fn collect(search: &Search<'_>, target: &Target, start: UsdPerHour, points: &mut Vec<FrontierPoint>) {
    let priced = steps::steps(search.cluster, &target.solution, &search.prices);
    let whole: i128 = priced.iter().map(|priced| priced.saving).sum();
    let mut micros = i128::from(target.solution.cost.micros()) + whole;
    let (mut evictions, mut nodes) = (0, 0);
    let mut point = |evictions: u64, nodes: u64, micros: i128| {
        let cost = UsdPerHour::from_micros(u64::try_from(micros).unwrap_or(0));
        let saving = UsdPerHour::from_micros(start.micros().saturating_sub(cost.micros()));
        points.push(FrontierPoint { evictions, nodes, cost, saving });
    };
    point(0, 0, micros);
    for priced in priced {
        micros -= priced.saving;
        evictions += u64::from(priced.step.evictions);
        nodes += priced.step.remove.len() as u64;
        point(evictions, nodes, micros);
    }
}
