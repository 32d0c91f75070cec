//! Rule: a gang is placed whole or not at all, and in one domain where it must be together.

use super::view::{nodes, staying, value, value_name};
use super::violation::Violation;
use crate::problem::Problem;
use crate::solution::Solution;

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    if problem.gangs.is_empty() {
        return;
    }
    let mut of: Vec<Option<usize>> = vec![None; problem.classes.len()];
    for (index, gang) in problem.gangs.iter().enumerate() {
        for class in &gang.classes {
            of[*class as usize] = Some(index);
        }
    }
    whole(problem, solution, &of, violations);
    together(problem, solution, &of, violations);
}

fn whole(problem: &Problem, solution: &Solution, of: &[Option<usize>], violations: &mut Vec<Violation>) {
    let mut unplaced = vec![0u64; problem.gangs.len()];
    for left in &solution.unplaced {
        if let Some(gang) = of[left.class as usize] {
            unplaced[gang] += u64::from(left.count);
        }
    }
    for (gang, unplaced) in problem.gangs.iter().zip(unplaced) {
        let waiting =
            gang.classes.iter().map(|class| u64::from(problem.classes[*class as usize].count)).sum();
        if unplaced != 0 && unplaced != waiting {
            violations.push(Violation::GangInPart { gang: gang.name.clone(), unplaced, waiting });
        }
    }
}

fn together(problem: &Problem, solution: &Solution, of: &[Option<usize>], violations: &mut Vec<Violation>) {
    let within = |class: u32| {
        let gang = of[class as usize]?;
        problem.gangs[gang].within.map(|topology| (gang, topology))
    };
    // By gang: the first value found.
    let mut at: Vec<Option<u32>> = vec![None; problem.gangs.len()];
    let mut meet = |gang: usize, topology: u32, met: u32, violations: &mut Vec<Violation>| {
        let first = *at[gang].get_or_insert(met);
        if first != met {
            violations.push(Violation::GangApart {
                gang: problem.gangs[gang].name.clone(),
                topology: problem.topologies[topology as usize].name.clone(),
                first: value_name(problem, topology, first),
                second: value_name(problem, topology, met),
            });
        }
    };
    let mut placed = vec![false; problem.gangs.len()];
    for node in nodes(problem, solution) {
        for (gang, topology) in node.pods.iter().filter_map(|(class, _)| within(*class)) {
            placed[gang] = true;
            match node.value(topology) {
                Some(met) => meet(gang, topology, met, violations),
                None => violations.push(Violation::NoDomain {
                    node: node.reference.clone(),
                    group: problem.gangs[gang].name.clone(),
                    topology: problem.topologies[topology as usize].name.clone(),
                }),
            }
        }
    }
    // Placed pods of a gang must join its staying pods.
    for (domains, pods) in staying(problem, solution) {
        for (gang, topology) in pods.iter().filter_map(|(class, _)| within(*class)) {
            if let Some(met) = value(domains, topology)
                && placed[gang]
            {
                meet(gang, topology, met, violations);
            }
        }
    }
}
