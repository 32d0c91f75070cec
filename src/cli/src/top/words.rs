//! Formats ages, sums and headlines for people.

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::UsdPerHour;

use super::view::{Cost, Gpus, Leader, NodeCounts, ObjectKind, View};
use crate::print::money;

/// Formats an age in at most two units: `45s`, `3m20s`, `2h05m`, `4d`.
pub fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).max(SignedDuration::ZERO).as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    if days >= 2 {
        format!("{days}d")
    } else if hours > 0 {
        format!("{hours}h{:02}m", minutes % 60)
    } else if minutes >= 10 {
        format!("{minutes}m")
    } else if minutes > 0 {
        format!("{minutes}m{:02}s", seconds % 60)
    } else {
        format!("{seconds}s")
    }
}

/// Formats a price, or `?` for an unknown one.
pub fn price(price: Option<UsdPerHour>) -> String {
    price.map_or_else(|| "?".to_owned(), money)
}

/// Formats a sum for a table of dollars per hour, and the number of prices that are missing in it.
pub fn cost(cost: Cost) -> String {
    with_unknown(money(cost.usd_per_hour), cost)
}

/// Formats a sum with the cost of a month, and the number of prices that are missing in it.
fn total(cost: Cost) -> String {
    with_unknown(cost.usd_per_hour.with_month(), cost)
}

fn with_unknown(known: String, cost: Cost) -> String {
    match cost.unknown_prices {
        0 => known,
        unknown => format!("{known} (+ {unknown} unknown)"),
    }
}

/// Formats GPUs in use and in total: `3/8`.
pub fn gpus(gpus: Gpus) -> String {
    let used = gpus.gpus_in_use.map_or_else(|| "?".to_owned(), |used| used.to_string());
    format!("{used}/{}", gpus.gpus)
}

/// Formats numbers of nodes: `5 (3 ready, 1 starting, 1 leaving)`.
pub fn nodes(nodes: NodeCounts) -> String {
    let NodeCounts { nodes, nodes_ready, nodes_not_ready, nodes_starting, nodes_leaving } = nodes;
    if nodes == 0 {
        return "none".to_owned();
    }
    let parts = [
        (nodes_ready, "ready"),
        (nodes_not_ready, "not ready"),
        (nodes_starting, "starting"),
        (nodes_leaving, "leaving"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    format!("{nodes} ({})", parts.collect::<Vec<_>>().join(", "))
}

/// Says who leads.
pub fn leader(leader: &Leader, now: Timestamp) -> String {
    let ago = leader.renewed_at.map(|at| format!("{} ago", age(at, now)));
    let Some(holder) = &leader.holder else {
        return match ago {
            Some(ago) => format!("no leader: the last one stopped and released the Lease {ago}"),
            None => "no leader: no controller has run yet".to_owned(),
        };
    };
    let ago = ago.unwrap_or_else(|| "never".to_owned());
    if leader.leads {
        format!("{holder} leads, renewed {ago}")
    } else {
        format!("no leader: {holder} renewed the Lease last, {ago}")
    }
}

/// Returns the lines above the tables, as names and texts.
pub fn headlines(view: &View, now: Timestamp) -> Vec<(&'static str, String)> {
    let unreadable = |kind: ObjectKind| view.unreadable.get(&kind).cloned().unwrap_or_default();
    let leads = view.leader.as_ref();
    let leads = leads.map_or_else(|| unreadable(ObjectKind::Leases), |one| leader(one, now));
    let others = match view.totals.other_nodes {
        None | Some(0) => String::new(),
        Some(1) => "; 1 more is not Poolwright's".to_owned(),
        Some(others) => format!("; {others} more are not Poolwright's"),
    };
    let totals = &view.totals;
    let used = totals.gpus.gpus_in_use.map_or_else(|| "?".to_owned(), |used| used.to_string());
    let pods = view.pods_waiting.map_or_else(
        || unreadable(ObjectKind::Pods),
        |pods| {
            format!("{} unschedulable, {} waiting, {} gated", pods.unschedulable, pods.waiting, pods.gated)
        },
    );
    let (nodes, gpus, cost) = if view.unreadable.contains_key(&ObjectKind::NodeClaims) {
        let why = unreadable(ObjectKind::NodeClaims);
        (why, "?".to_owned(), "?".to_owned())
    } else {
        (
            format!("{}{others}", nodes(totals.nodes)),
            format!("{used} of {} in use", totals.gpus.gpus),
            total(totals.cost),
        )
    };
    let narrowed = view.namespace.as_ref().map(|namespace| {
        (
            "Namespace",
            format!(
                "{namespace}: its waiting pods, the nodes with its pods or bought for them, and their events"
            ),
        )
    });
    let sums = [("Nodes", nodes), ("GPUs", gpus), ("Cost", cost), ("Pods", pods)];
    [("Controller", leads)].into_iter().chain(narrowed).chain(sums).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_two_units_at_most() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let after = |seconds| age(start, start + SignedDuration::from_secs(seconds));
        let ages = [0, 59, 61, 600, 3_600, 90_000, 172_800].map(after);
        assert_eq!(ages, ["0s", "59s", "1m01s", "10m", "1h00m", "25h00m", "2d"]);
        assert_eq!(after(-5), "0s", "clocks differ");
    }

    #[test]
    fn an_unknown_price_is_counted_and_never_guessed() {
        let known = "3.018".parse().unwrap();
        assert_eq!(total(Cost { usd_per_hour: known, unknown_prices: 0 }), "$3.02/h ($2,203.14/month)");
        assert_eq!(cost(Cost { usd_per_hour: known, unknown_prices: 2 }), "$3.02 (+ 2 unknown)");
        assert_eq!(price(None), "?");
    }

    #[test]
    fn the_header_names_the_leader_or_since_when_there_is_none() {
        let now: Timestamp = "2026-01-01T00:00:10Z".parse().unwrap();
        let renewed_at = Some("2026-01-01T00:00:07Z".parse().unwrap());
        let one = Leader { holder: Some("a".into()), renewed_at, leads: true };
        assert_eq!(leader(&one, now), "a leads, renewed 3s ago");
        let late = Leader { leads: false, ..one };
        assert_eq!(leader(&late, now), "no leader: a renewed the Lease last, 3s ago");
        let released = Leader { holder: None, ..late };
        assert_eq!(leader(&released, now), "no leader: the last one stopped and released the Lease 3s ago");
        assert_eq!(leader(&Leader::default(), now), "no leader: no controller has run yet");
    }
}
