//! Rules over several nodes: gangs and spreads.

use good_lp::{Expression, Variable};
use poolwright_solver::Problem;
use poolwright_solver::problem::{Gang, Spread};

use super::hosts::{Hosts, Kind};
use super::program::Program;

pub fn add(problem: &Problem, hosts: &Hosts, program: &mut Program) {
    for gang in &problem.gangs {
        whole(problem, gang, hosts, program);
        if let Some(topology) = gang.within {
            together(problem, gang, topology, hosts, program);
        }
    }
    for spread in &problem.spreads {
        evenly(problem, spread, hosts, program);
    }
}

/// Returns an upper bound on the number of pods of these classes.
fn many(problem: &Problem, classes: &[u32]) -> f64 {
    let waiting = classes.iter().map(|class| f64::from(problem.classes[*class as usize].count)).sum::<f64>();
    let removals = problem.existing.iter().filter_map(|node| node.removal.as_ref());
    let run = removals.flat_map(|removal| &removal.pods).filter(|(class, _)| classes.contains(class));
    waiting + run.map(|(_, count)| f64::from(*count)).sum::<f64>()
}

/// Requires that all waiting pods of a gang are placed, or none.
fn whole(problem: &Problem, gang: &Gang, hosts: &Hosts, program: &mut Program) {
    let all = program.binary();
    for class in &gang.classes {
        let count = f64::from(problem.classes[*class as usize].count);
        program.row((hosts.placed[*class as usize] - count * all).eq(0));
    }
}

/// Requires that the placed pods of a gang, including moved ones, are on nodes of one value, which is that of its staying
/// pods.
fn together(problem: &Problem, gang: &Gang, topology: u32, hosts: &Hosts, program: &mut Program) {
    let values = problem.topologies[topology as usize].values.len();
    let chosen: Vec<Variable> = (0..values).map(|_| program.binary()).collect();
    program.row(chosen.iter().sum::<Expression>().leq(1));
    let many = many(problem, &gang.classes);
    for host in &hosts.all {
        let here = host.value(problem, topology).map(|value| value as usize);
        let may = here.map_or_else(Expression::default, |value| many * chosen[value]);
        program.row((host.pods(&gang.classes) - may).leq(0));
        if let (Kind::There(node), Some(value)) = (host.kind, here)
            && let Some(kept) = hosts.kept[node]
            && gang.classes.iter().any(|class| host.stay(problem, *class as usize) > 0)
        {
            for other in (0..values).filter(|other| *other != value) {
                program.row((kept + chosen[other]).leq(1));
            }
        }
    }
}

/// Requires that no value that gets a pod has too many more than the lowest.
fn evenly(problem: &Problem, spread: &Spread, hosts: &Hosts, program: &mut Program) {
    let running: Vec<f64> = spread.running.iter().map(|pods| f64::from(*pods)).collect();
    let mut counts: Vec<Expression> = running.iter().map(|pods| Expression::from(*pods)).collect();
    let mut new = vec![Expression::default(); counts.len()];
    for host in &hosts.all {
        let value = host.value(problem, spread.topology);
        let pods = host.pods(&spread.classes);
        let Some(at) = value.and_then(|value| spread.values.iter().position(|of| *of == value)) else {
            program.row(pods.leq(0));
            continue;
        };
        counts[at] += pods.clone();
        new[at] += pods;
        if let (Kind::There(_), Some(kept)) = (host.kind, host.used) {
            let stay: u64 = spread.classes.iter().map(|class| host.stay(problem, *class as usize)).sum();
            counts[at].add_mul(stay as f64, kept);
        }
    }
    let many = many(problem, &spread.classes);
    let most = running.iter().copied().fold(0.0, f64::max) + many;
    let few = spread.min_domains.is_some_and(|least| spread.values.len() < least as usize);
    let least = if few { Expression::default() } else { program.real().into() };
    for (count, new) in counts.into_iter().zip(new) {
        program.row((least.clone() - count.clone()).leq(0));
        let given = program.binary();
        program.row((new - many * given).leq(0));
        let skew = count - least.clone() - f64::from(spread.max_skew);
        program.row((skew - most * (1.0 - given)).leq(0));
    }
}
