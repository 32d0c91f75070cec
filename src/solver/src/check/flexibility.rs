//! Rule: a node that must be replaceable could be of as many other types as the rule requires.

use super::packing;
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
            let values = could_be(problem, rule, nodes);
            if values < rule.at_least {
                let candidate = problem.candidates[nodes.candidate as usize].name.clone();
                violations.push(Violation::Inflexible {
                    node: NodeRef::New { candidate, group },
                    flexibility: rule.name.clone(),
                    topology: problem.topologies[rule.topology as usize].name.clone(),
                    values,
                    at_least: rule.at_least,
                });
            }
        }
    }
}

/// Returns whether each of these nodes could be of as many other types as the rules require.
pub(crate) fn leave_choice(problem: &Problem, new_nodes: &[NewNodes]) -> bool {
    problem.flexibility.iter().all(|rule| {
        let mut bound =
            new_nodes.iter().filter(|nodes| rule.candidates.binary_search(&nodes.candidate).is_ok());
        bound.all(|nodes| could_be(problem, rule, nodes) >= rule.at_least)
    })
}

/// Returns how many values of the rule's topology such a node could have, counted up to the required number.
fn could_be(problem: &Problem, rule: &Flexibility, nodes: &NewNodes) -> u32 {
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
        fits && nodes.pods.iter().all(|(class, _)| may(*class))
            && packing::packs(problem, &nodes.pods, candidate.gpus.as_ref())
    };
    let mut met = vec![false; problem.topologies[rule.topology as usize].values.len()];
    let mut values = 0;
    for index in &rule.candidates {
        let candidate = &problem.candidates[*index as usize];
        if values >= rule.at_least {
            break;
        }
        if let Some(value) = value(&candidate.domains, rule.topology)
            && !met[value as usize]
            && candidate.max_nodes != Some(0)
            && holds(*index)
        {
            met[value as usize] = true;
            values += 1;
        }
    }
    values
}
