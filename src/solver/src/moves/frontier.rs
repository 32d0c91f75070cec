//! The frontier: the possible savings for each number of evictions.

use poolwright_catalog::UsdPerHour;

use super::cluster::Cluster;
use super::new_node_prices::NewNodePrices;
use super::residual::{Part, Target};
use super::rooms::{Rooms, Want};
use super::search::Search;
use super::steps;
use crate::meter::{Brake, Meter};
use crate::options::Options;
use crate::problem::{Problem, ProblemError};
use crate::stop::StopSignal;

/// The maximum work units for one of the plans, since there are several.
const PART: u64 = 600_000;

/// A state on the way to a plan, after all steps up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontierPoint {
    /// The number of moved pods.
    pub evictions: u64,
    /// The number of removed nodes.
    pub nodes: u64,
    /// The cost of the cluster at this point, including new nodes for waiting pods.
    pub cost: UsdPerHour,
    /// The saving compared to no step.
    pub saving: UsdPerHour,
}

/// Returns the states that no other known state beats with fewer or equal evictions and a lower cost, sorted by
/// evictions. The first state moves nothing. Each is a prefix of the steps of one plan. The plans are for several limits
/// on evictions, up to the problem's own.
///
/// # Errors
/// [`ProblemError`] when `problem` is malformed.
pub fn frontier(
    problem: &Problem,
    options: &Options,
    signal: &mut dyn StopSignal,
) -> Result<Vec<FrontierPoint>, ProblemError> {
    problem.validate()?;
    let cluster = Cluster::new(problem);
    let mut part = Part(&mut *signal);
    let mut meter = Meter::new(&mut part, u64::MAX);
    let stop = &mut |units| meter.gives_up(units);
    let Some(new_nodes) = NewNodePrices::new(&cluster, options.stages, stop) else { return Ok(Vec::new()) };
    let rough = new_nodes.rough();
    let rooms = Rooms::new(&cluster, &rough, stop);
    let mut search =
        Search { cluster: &cluster, options, best: None, prices: rough.clone(), bounded: Vec::new() };
    let mut points = Vec::new();
    let all: u64 = cluster.nodes.iter().map(|node| node.evictions).sum();
    let most = Want::all(&cluster);
    let wants = [1, 2, 4, 8, 16, 32]
        .map(|part| Want { evictions: (most.evictions.min(all) * part).div_ceil(32), ..most });
    let small = options.work.min(PART);
    let still = search.realise(rooms, &Options { work: small, ..*options }, signal);
    // Without this solution nothing is known, and no other choice can be placed either.
    let Ok(still) = still else { return Ok(points) };
    let start = still.solution.cost;
    collect(&search, &still, start, &mut points);
    // Quick plans first, then better plans at better prices.
    for fine in [false, true] {
        if fine {
            let mut part = Part(&mut *signal);
            let mut meter = Meter::new(&mut part, options.work / 4);
            let Some(prices) = new_nodes.fine(0.01, options.lp(), &mut meter) else { break };
            search.prices = prices;
        }
        let prices = search.prices.clone();
        let options = Options { work: if fine { small } else { 1 }, ..*options };
        for want in wants {
            if signal.should_stop() {
                break;
            }
            if let Some(target) = search.attempt(&prices, want, (&options, small), signal) {
                collect(&search, &target, start, &mut points);
            }
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

/// Collects the states on the way to `target`.
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
