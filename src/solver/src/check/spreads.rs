//! Rule: a spread places pods on eligible values only, and no value that gets a pod is too far above the least.

use super::view::{nodes, staying, value, value_name};
use super::violation::Violation;
use crate::problem::Problem;
use crate::solution::Solution;

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    if problem.spreads.is_empty() {
        return;
    }
    let mut of: Vec<Option<usize>> = vec![None; problem.classes.len()];
    let mut counts: Vec<Vec<u64>> = Vec::new();
    let mut given: Vec<Vec<bool>> = Vec::new();
    for (index, spread) in problem.spreads.iter().enumerate() {
        for class in &spread.classes {
            of[*class as usize] = Some(index);
        }
        counts.push(spread.running.iter().map(|pods| u64::from(*pods)).collect());
        given.push(vec![false; spread.values.len()]);
    }
    for (domains, pods) in staying(problem, solution) {
        for (class, pods) in pods {
            let Some(spread) = of[*class as usize] else { continue };
            let rule = &problem.spreads[spread];
            if let Some(at) =
                value(domains, rule.topology).and_then(|met| rule.values.binary_search(&met).ok())
            {
                counts[spread][at] += u64::from(*pods);
            }
        }
    }
    for node in nodes(problem, solution) {
        for (class, pods) in node.pods {
            let Some(spread) = of[*class as usize] else { continue };
            let rule = &problem.spreads[spread];
            let Some(met) = node.value(rule.topology) else {
                violations.push(Violation::NoDomain {
                    node: node.reference.clone(),
                    group: rule.name.clone(),
                    topology: problem.topologies[rule.topology as usize].name.clone(),
                });
                continue;
            };
            if let Ok(at) = rule.values.binary_search(&met) {
                let pods = u64::from(*pods) * u64::from(node.count);
                counts[spread][at] = counts[spread][at].saturating_add(pods);
                given[spread][at] = true;
            } else {
                violations.push(Violation::NotEligible {
                    node: node.reference.clone(),
                    spread: rule.name.clone(),
                    value: value_name(problem, rule.topology, met),
                });
            }
        }
    }
    for ((rule, counts), given) in problem.spreads.iter().zip(counts).zip(given) {
        let few = rule.min_domains.is_some_and(|domains| rule.values.len() < domains as usize);
        let least = if few { 0 } else { counts.iter().copied().min().unwrap_or(0) };
        for ((met, count), _) in rule.values.iter().zip(counts).zip(given).filter(|(_, given)| *given) {
            if count - least > u64::from(rule.max_skew) {
                violations.push(Violation::Skewed {
                    spread: rule.name.clone(),
                    value: value_name(problem, rule.topology, *met),
                    count,
                    least,
                    skew: rule.max_skew,
                });
            }
        }
    }
}
