//! Rule: classes in conflict do not share a node. A pair that already runs on a removable node that stays is allowed.
//! A pair with a newly placed pod is not.

use super::view::{count_of, nodes};
use super::violation::Violation;
use crate::problem::Problem;
use crate::solution::{Placement, Solution};

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    // The conflicts ascend, and so do the partners of each class.
    let mut partners: Vec<Vec<u32>> = vec![Vec::new(); problem.classes.len()];
    for (i, j) in &problem.conflicts {
        partners[*i as usize].push(*j);
        partners[*j as usize].push(*i);
    }
    for node in nodes(problem, solution) {
        let conflict = |one: u32, other: u32, violations: &mut Vec<Violation>| {
            let name = |class: u32| problem.classes[class as usize].name.clone();
            violations.push(Violation::Conflict {
                node: node.reference.clone(),
                first: name(one.min(other)),
                second: name(one.max(other)),
            });
        };
        for (class, _) in node.pods {
            // A class may have thousands of partners, so the few pods of the node are looked up among them.
            let partners = &partners[*class as usize];
            if partners.is_empty() {
                continue;
            }
            let is_met = |(other, count): &&Placement| *count > 0 && partners.binary_search(other).is_ok();
            // A pair of two new classes appears twice, and is reported once.
            let new = node.pods.iter().filter(is_met).filter(|(other, _)| class < other);
            let staying = node.staying.iter().filter(is_met);
            let staying = staying.filter(|(other, _)| count_of(node.pods, *other) == 0);
            let mut met: Vec<u32> = new.chain(staying).map(|(other, _)| *other).collect();
            met.sort_unstable();
            for other in met {
                conflict(*class, other, violations);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::UsdPerHour;
    use proptest::collection::{btree_map, btree_set};
    use proptest::prelude::*;

    use super::*;
    use crate::problem::{ExistingNode, PodClass, Removal};
    use crate::solution::ExistingUse;

    proptest! {
        #[test]
        fn the_pairs_on_a_node_are_those_that_a_look_at_every_conflict_finds(
            conflicts in btree_set((0..8_u32, 0..8_u32), 0..20),
            pods in btree_map(0..8_u32, 1..3_u32, 0..6),
            staying in btree_map(0..8_u32, 1..3_u32, 0..6),
        ) {
            let conflicts: Vec<(u32, u32)> = conflicts.into_iter().filter(|(one, other)| one < other).collect();
            let class = |at: u32| PodClass { name: at.to_string(), ..PodClass::default() };
            let removal = Removal {
                price: UsdPerHour::ZERO,
                disruption: UsdPerHour::ZERO,
                pods: staying.clone().into_iter().collect(),
            };
            let problem = Problem {
                classes: (0..8).map(class).collect(),
                conflicts: conflicts.clone(),
                existing: vec![ExistingNode { removal: Some(removal), ..ExistingNode::default() }],
                ..Problem::default()
            };
            let placed = ExistingUse { node: 0, pods: pods.clone().into_iter().collect(), gpus: Vec::new() };
            let solution = Solution { on_existing: vec![placed], ..Solution::default() };
            let mut violations = Vec::new();
            check(&problem, &solution, &mut violations);
            let mut found: Vec<(String, String)> = Vec::new();
            for violation in violations {
                let Violation::Conflict { first, second, .. } = violation else { continue };
                found.push((first, second));
            }
            found.sort();
            let is_met = |(one, other): &&(u32, u32)| {
                let is_new = |class: &u32| pods.contains_key(class);
                let is_there = |class: &u32| is_new(class) || staying.contains_key(class);
                (is_new(one) || is_new(other)) && is_there(one) && is_there(other)
            };
            let names = |(one, other): &(u32, u32)| (one.to_string(), other.to_string());
            let plain: Vec<(String, String)> = conflicts.iter().filter(is_met).map(names).collect();
            prop_assert_eq!(found, plain);
        }
    }
}
