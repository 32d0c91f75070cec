//! Rule: a node that must be replaceable could be of as many other types as the rule requires.

use super::packing::{Packing, packing};
use super::view::NodeRef;
use super::view::value;
use super::violation::Violation;
use crate::problem::{Flexibility, Problem};
use crate::solution::{NewNodes, Solution};

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    for rule in &problem.flexibility {
        for (group, nodes) in solution.new_nodes.iter().enumerate() {
            if rule.candidates.binary_search(&nodes.candidate).is_err() {
                continue;
            }
            let Choice { values, undecided } = could_be(problem, rule, nodes);
            if values >= rule.at_least {
                continue;
            }
            let candidate = problem.candidates[nodes.candidate as usize].name.clone();
            let node = NodeRef::New { candidate, group };
            let (flexibility, at_least) = (rule.name.clone(), rule.at_least);
            let topology = problem.topologies[rule.topology as usize].name.clone();
            violations.push(if values + undecided < at_least {
                Violation::Inflexible { node, flexibility, topology, values, at_least }
            } else {
                Violation::Undecided { node, flexibility, topology, values, undecided, at_least }
            });
        }
    }
}

/// Returns whether each of these nodes is known to be one that could be of as many other types as the rules require.
pub(crate) fn leave_choice(problem: &Problem, new_nodes: &[NewNodes]) -> bool {
    problem.flexibility.iter().all(|rule| {
        let mut bound =
            new_nodes.iter().filter(|nodes| rule.candidates.binary_search(&nodes.candidate).is_ok());
        bound.all(|nodes| could_be(problem, rule, nodes).values >= rule.at_least)
    })
}

/// The values of a rule's topology that a node could have.
struct Choice {
    /// How many there are, counted up to the required number.
    values: u32,
    /// How many more there may be, because no search decides whether the GPUs hold the pods.
    undecided: u32,
}

fn could_be(problem: &Problem, rule: &Flexibility, nodes: &NewNodes) -> Choice {
    let takes: Vec<u128> = (0..problem.resources.len())
        .map(|dim| {
            let one = |class: u32| u128::from(problem.classes[class as usize].requests[dim]);
            nodes.pods.iter().map(|(class, count)| one(*class) * u128::from(*count)).sum()
        })
        .collect();
    let holds = |index: u32| {
        let candidate = &problem.candidates[index as usize];
        let fits = takes.iter().zip(&candidate.capacity).all(|(takes, room)| *takes <= u128::from(*room));
        let may = |class: u32| problem.classes[class as usize].candidates.binary_search(&index).is_ok();
        if fits && nodes.pods.iter().all(|(class, _)| may(*class)) {
            packing(problem, &nodes.pods, candidate.gpus.as_ref(), &nodes.gpus)
        } else {
            Packing::Exceeds
        }
    };
    let mut met = vec![Packing::Exceeds; problem.topologies[rule.topology as usize].values.len()];
    let mut values = 0;
    for index in &rule.candidates {
        let candidate = &problem.candidates[*index as usize];
        if values >= rule.at_least {
            break;
        }
        if let Some(value) = value(&candidate.domains, rule.topology)
            && met[value as usize] != Packing::Fits
            && candidate.max_nodes != Some(0)
        {
            match holds(*index) {
                Packing::Fits => {
                    met[value as usize] = Packing::Fits;
                    values += 1;
                }
                Packing::Undecided => met[value as usize] = Packing::Undecided,
                Packing::Exceeds => {}
            }
        }
    }
    let undecided = met.iter().filter(|one| **one == Packing::Undecided).count() as u32;
    Choice { values, undecided }
}
