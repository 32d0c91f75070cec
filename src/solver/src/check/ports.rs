//! Rule: two pods with a common port are on different nodes.

use std::collections::BTreeMap;

use super::view::nodes;
use super::violation::Violation;
use crate::problem::Problem;
use crate::solution::Solution;

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    for node in nodes(problem, solution) {
        let ports = |class: u32| &problem.classes[class as usize].ports;
        if node.pods.iter().all(|(class, _)| ports(*class).is_empty()) {
            continue;
        }
        let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
        for (class, _) in node.staying {
            taken.extend(ports(*class).iter().map(|port| (*port, *class)));
        }
        for (class, count) in node.pods {
            for port in ports(*class) {
                let before = taken.insert(*port, *class);
                if let Some(first) = before.or_else(|| (*count > 1).then_some(*class)) {
                    let name = |class: u32| problem.classes[class as usize].name.clone();
                    violations.push(Violation::SamePort {
                        node: node.reference.clone(),
                        first: name(first),
                        second: name(*class),
                        port: *port,
                    });
                }
            }
        }
    }
}
