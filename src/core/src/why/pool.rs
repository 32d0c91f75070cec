//! Explanations of pools: the offerings that a pool may buy, the nodes that it has bought, and its limits.

use poolwright_catalog::UsdPerHour;

use crate::model::idle::{LONGEST, SHORTEST};
use crate::model::plan::{Plan, PoolFindings};
use crate::model::{BREAK_EVEN, Buffer, PoolName, ScaleToZero, Snapshot, SpotRules};
use crate::rules::format;
use crate::supply::spot_mix::SpotMix;
use crate::supply::unclaimed;
use crate::why::claim::price;
use poolwright_terms::Reason;
use poolwright_terms::keys::DO_NOT_DISRUPT_ANNOTATION;

/// Returns the explanation of a pool; `None` if the user wrote no such pool.
pub fn pool(snapshot: &Snapshot, plan: &Plan, name: &PoolName) -> Option<Vec<String>> {
    let pool = snapshot.pools.get(name).filter(|pool| !pool.is_implicit)?;
    let findings = plan.pools.get(name);
    let mut lines =
        vec![format!("Pool {name} has weight {} and buys from {}.", pool.weight, pool.node_class)];
    let problem = findings.and_then(|found| found.node_class.as_ref().or(found.invalid.as_ref()));
    let unsold = findings.and_then(|found| found.unsold.as_ref());
    if pool.deleting {
        lines.push("It is being deleted, so it buys nothing.".to_owned());
        return Some(lines);
    }
    lines.push(match (problem, findings) {
        (Some((reason, message)), _) => format!("It buys nothing ({reason}): {message}."),
        (None, Some(PoolFindings { unsold: Some((reason, message)), .. })) => {
            format!("It buys no node now ({reason}): {message}.")
        }
        (None, Some(found)) => format!("It may buy {} now.", format::count(found.offerings, "offering")),
        (None, None) => "Nothing was planned with it.".to_owned(),
    });
    for (key, least) in &pool.min_values {
        lines.push(format!(
            "Its minValues asks that each launch leaves the cloud a choice among at least {least} values of `{key}`."
        ));
    }
    let mix = SpotMix::of(snapshot, name);
    if let Some(floor) = pool.spot.on_demand_floor {
        let (spot, all) = (mix.all_spot(), mix.all_spot() + mix.on_demand);
        lines.push(format!(
            "Its onDemandFloor asks for at least {} on demand; of {} that {} now, {spot} {} spot.",
            SpotRules::floor_in_words(floor),
            format::count(usize::try_from(all).unwrap_or(usize::MAX), "node"),
            if all == 1 { "stays" } else { "stay" },
            if spot == 1 { "is" } else { "are" },
        ));
    }
    if let Some(most) = pool.spot.max_share {
        let largest = mix.spot.iter().max_by_key(|(_, nodes)| **nodes);
        let now = largest.map_or_else(String::new, |(offering, nodes)| {
            format!(
                "; now {nodes} of {} {} {offering}",
                mix.all_spot(),
                if *nodes == 1 { "is" } else { "are" }
            )
        });
        lines.push(format!(
            "Its maxShare allows at most {most} % of its spot nodes of one instance type and zone{now}."
        ));
    }
    let claims: Vec<_> = snapshot.claims.values().filter(|claim| claim.pool == *name).collect();
    let cost: UsdPerHour = claims.iter().map(|claim| price(claim)).sum();
    lines.push(if claims.is_empty() {
        "It has no nodes.".to_owned()
    } else {
        format!("It has {} for {}.", format::count(claims.len(), "node"), cost.with_month())
    });
    let unclaimed = unclaimed::nodes(snapshot).into_iter().filter(|node| node.pool == *name).count();
    if unclaimed > 0 {
        let (nodes, count) =
            (format::count(unclaimed, "node"), if unclaimed == 1 { "counts" } else { "count" });
        lines.push(format!(
            "Besides, {nodes} with its label and without a NodeClaim {count} towards its limits."
        ));
    }
    let planned: Vec<_> = plan.claims.iter().filter(|claim| claim.pool == *name).collect();
    if !planned.is_empty() {
        let cost: UsdPerHour = planned.iter().filter_map(|claim| claim.price()).sum();
        let pods: usize = planned.iter().map(|claim| claim.planned_pods.len()).sum();
        // No claim lists a unit of a buffer.
        let of_buffer = planned.iter().filter(|claim| claim.planned_pods.is_empty()).count();
        let whom = match pool.replicas {
            Some(_) => "to have all replicas".to_owned(),
            None if pods == 0 => "to keep the room of its buffer free".to_owned(),
            None if of_buffer > 0 => format!(
                "{} for {} and {of_buffer} to keep the room of its buffer free",
                planned.len() - of_buffer,
                format::count(pods, "waiting pod")
            ),
            None => format!("for {}", format::count(pods, "waiting pod")),
        };
        lines.push(format!("The plan buys {} more for {}, {whom}.", planned.len(), cost.with_month()));
    }
    if let Some(limit) = findings.and_then(|found| found.limit_reached.as_ref()) {
        lines.push(format!("It buys less than is asked for: {}.", limit.trim_end_matches('.')));
    }
    if let Some(shared) = findings.and_then(|found| found.shares_gpus.as_ref()) {
        lines.push(format!("Its new nodes do not open ({}): {shared}.", Reason::GpusShared));
    }
    if let Some(replicas) = pool.replicas {
        let replicas = format::count(usize::try_from(replicas).unwrap_or(usize::MAX), "node");
        lines.push(match problem.or(unsold) {
            Some(_) => format!("Its `replicas` asks for {replicas}."),
            None => format!("Its `replicas` keeps {replicas}, with and without pods."),
        });
        return Some(lines);
    }
    if !pool.buffer.is_empty() {
        let is_chosen = pool.buffer.iter().all(Buffer::is_auto);
        let kept = match problem.or(unsold) {
            Some(_) if is_chosen => "It buys no node for its `buffer`.",
            Some(_) => "Its `buffer` asks for free room, but it buys no node for that.",
            None if is_chosen => {
                "It keeps nodes with room for the units of its `buffer` that pay, with and without pods."
            }
            None => "It keeps nodes with room for its `buffer`, with and without pods.",
        };
        lines.push(kept.to_owned());
    }
    let chosen = findings.iter().flat_map(|found| &found.units_chosen);
    lines.extend(chosen.map(|chosen| format!("Poolwright chooses how much room it keeps: {chosen}.")));
    let left = findings.iter().flat_map(|found| found.buffer_unmet.iter().chain(&found.buffer_left));
    lines
        .extend(left.map(|left| format!("It cannot keep all of this room: {}.", left.trim_end_matches('.'))));
    if pool.disruption.do_not_disrupt {
        lines.push(format!("Its annotation {DO_NOT_DISRUPT_ANNOTATION} keeps its nodes, empty or not."));
        return Some(lines);
    }
    lines.push(match pool.scale_to_zero {
        ScaleToZero::After(after) => format!("Poolwright terminates its empty nodes after {after:#}."),
        ScaleToZero::Auto => format!(
            "Poolwright terminates its empty nodes after the time that costs least: {BREAK_EVEN:#} at first, later between {SHORTEST:#} and {LONGEST:#}, by how soon such nodes got pods again."
        ),
        ScaleToZero::Never => "Poolwright never terminates its empty nodes (scaleToZero.after).".to_owned(),
    });
    Some(lines)
}
