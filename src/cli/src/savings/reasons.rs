//! Why the best plan costs less: what is paid for room that no pod requests, now and then.

use poolwright_catalog::UsdPerHour;
use poolwright_report::money::Ratio;
use poolwright_terms::CapacityType;

use super::best::Best;
use super::running::{Running, cost};
use crate::print::{count, counted};

/// Says what the money is spent on.
pub fn reasons(running: &[Running], best: &Best) -> Vec<String> {
    let whole = cost(running);
    let mut told = Vec::new();
    let unrequested: UsdPerHour = running.iter().map(Running::unrequested).sum();
    told.push(format!(
        "{:#}/month of the cost now ({}) pays for room that no pod requests, by the fullest resource of each node.",
        unrequested.per_month(),
        part(unrequested, whole)
    ));
    let idle: Vec<&Running> =
        running.iter().filter(|node| node.pods.is_empty() && !node.is_control_plane).collect();
    if !idle.is_empty() {
        let cost = cost(idle.iter().copied());
        told.push(format!(
            "{} without work {} {:#}/month ({}).",
            counted(idle.len(), "node"),
            if idle.len() == 1 { "costs" } else { "cost" },
            cost.per_month(),
            part(cost, whole)
        ));
    }
    let fixed = running.iter().filter(|node| best.stays.contains_key(&node.name));
    let (fixed, of_fixed) = (fixed.clone().count(), cost(fixed));
    if fixed > 0 && best.moves > 0 {
        told.push(format!(
            "{} of {:#}/month {} in the best plan.",
            counted(fixed, "node"),
            of_fixed.per_month(),
            if fixed == 1 { "stays" } else { "stay" }
        ));
    }
    let now = running.iter().filter(|node| node.priced.offering.capacity_type == CapacityType::Spot).count();
    let staying = running.iter().filter(|node| best.stays.contains_key(&node.name));
    let staying = staying.filter(|node| node.priced.offering.capacity_type == CapacityType::Spot).count();
    let bought = best.nodes.iter().filter(|node| node.capacity_type == CapacityType::Spot).count();
    let then = staying + bought;
    if now != then {
        told.push(format!("Spot nodes: {} now, {} in the best plan.", count(now), count(then)));
    }
    told
}

/// Returns a part of a sum as a percentage.
fn part(part: UsdPerHour, whole: UsdPerHour) -> Ratio {
    Ratio { part: part.micros().into(), whole: whole.micros().into() }
}

#[cfg(test)]
mod tests {
    use super::super::answer::tests::found;
    use super::*;

    #[test]
    fn room_without_requests_and_nodes_without_work_are_told_in_money() {
        let found = found();
        let told = reasons(&found.running, &found.best);
        assert_eq!(
            told,
            [
                "$1,642.50/month of the cost now (50.0 %) pays for room that no pod requests, by the fullest resource of each node.",
                "1 node without work costs $1,095.00/month (33.3 %).",
                "1 node of $1,095.00/month stays in the best plan.",
            ],
            "an empty node, half of one and none of the third: $2.25 of $4.50 an hour"
        );
    }

    #[test]
    fn a_node_of_the_control_plane_is_not_without_work() {
        let mut found = found();
        found.running[0].is_control_plane = true;
        let told = reasons(&found.running, &found.best);
        assert!(
            found.running[0].pods.is_empty() && !told.iter().any(|one| one.contains("without work")),
            "{told:?}"
        );
    }
}
