//! Flexibility: for each slot and each other candidate, whether all pods of the slot could be on that candidate.

use std::collections::BTreeMap;

use good_lp::Expression;
use poolwright_solver::Problem;
use poolwright_solver::problem::Flexibility;

use super::gpus;
use super::hosts::{Host, Hosts, Kind};
use super::program::Program;

pub fn add(problem: &Problem, hosts: &Hosts, program: &mut Program) {
    for rule in &problem.flexibility {
        for host in &hosts.all {
            if let Kind::New(candidate) = host.kind
                && rule.candidates.contains(&(candidate as u32))
            {
                one(problem, rule, host, program);
            }
        }
    }
}

fn one(problem: &Problem, rule: &Flexibility, host: &Host, program: &mut Program) {
    // A slot exists only where a node can be bought, so its own value counts.
    let own = host.value(problem, rule.topology);
    let mut met = Expression::from(f64::from(u8::from(own.is_some())));
    let mut others: BTreeMap<u32, Expression> = BTreeMap::new();
    for other in rule.candidates.iter().map(|other| *other as usize) {
        let candidate = &problem.candidates[other];
        let value = candidate.domains.iter().find(|(of, _)| *of == rule.topology);
        let Some((_, value)) = value.filter(|(_, value)| Some(*value) != own) else { continue };
        if candidate.max_nodes != Some(0) {
            *others.entry(*value).or_default() += could_be(problem, host, other, program);
        }
    }
    for could_be in others.into_values() {
        let value = program.binary();
        program.row((value - could_be).leq(0));
        met += value;
    }
    program.row((f64::from(rule.at_least) * host.on() - met).leq(0));
}

/// Returns a variable that can be one only if all pods of the host could be on a node of the candidate.
fn could_be(problem: &Problem, host: &Host, other: usize, program: &mut Program) -> Expression {
    let could = program.binary();
    for (class, count) in host.counts() {
        if !problem.classes[class].candidates.contains(&(other as u32)) {
            program.row((count.pods - count.most as f64 * (1.0 - could)).leq(0));
        }
    }
    for (resource, capacity) in problem.candidates[other].capacity.iter().enumerate() {
        let (mut used, mut most) = (Expression::default(), 0.0);
        for (class, count) in host.counts() {
            let each = problem.classes[class].requests[resource] as f64;
            used.add_mul(each, count.pods);
            most += each * count.most as f64;
        }
        program.row((used - *capacity as f64 - most * (1.0 - could)).leq(0));
    }
    gpus::pack(problem, host, &gpus::empty(problem, other), could.into(), program);
    could.into()
}
