//! Rule: the charges are right: expected loss by interruption, unmet preferences and disruption.

use poolwright_catalog::UsdPerHour;

use super::cost::usd;
use super::violation::Violation;
use crate::problem::Problem;
use crate::solution::Solution;

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    let (mut risk, mut preferences, mut disruption) = (0u128, 0u128, 0u128);
    for group in &solution.new_nodes {
        let interruptions = u128::from(problem.candidates[group.candidate as usize].interruptions);
        for (class, count) in &group.pods {
            let class = &problem.classes[*class as usize];
            let pods = u128::from(*count) * u128::from(group.count);
            let special = class.at_risk_on.iter().find(|(of, _)| *of == group.candidate);
            let lost = special.map_or(class.at_risk, |(_, lost)| *lost);
            // Rounded half up for each pod, as the documentation of `risk` says.
            let one = (u128::from(lost) * interruptions + 500_000) / 1_000_000;
            risk = risk.saturating_add(one.min(u128::from(u64::MAX)).saturating_mul(pods));
            if let Ok(at) = class.preferences.binary_search_by_key(&group.candidate, |(of, _)| *of) {
                let (_, cost) = class.preferences[at];
                preferences = preferences.saturating_add(u128::from(cost.micros()).saturating_mul(pods));
            }
        }
    }
    for node in &solution.removed {
        if let Some(removal) = &problem.existing[*node as usize].removal {
            disruption += u128::from(removal.disruption.micros());
            for (class, count) in &removal.pods {
                disruption +=
                    u128::from(problem.classes[*class as usize].disruption.micros()) * u128::from(*count);
            }
        }
    }
    let charges = solution.charges;
    let mut compare = |what: &'static str, said: UsdPerHour, sum: u128| {
        let sum = usd(sum);
        if said != sum {
            violations.push(Violation::WrongCharge { what, said, sum });
        }
    };
    compare("risk", charges.risk, risk);
    compare("preferences", charges.preferences, preferences);
    compare("disruption", charges.disruption, disruption);
}
