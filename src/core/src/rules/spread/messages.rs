//! Messages about topology spread constraints.

use crate::model::TopologySpreadConstraint;

/// The most domains that a message lists.
const SHOWN: usize = 6;

/// Returns the name of a preference (`ScheduleAnyway`).
pub(crate) fn preference(rule: &TopologySpreadConstraint) -> String {
    let origin = rule.default_of.as_ref();
    let origin = origin.map_or_else(String::new, |file| format!(", the scheduler's default from {file}"));
    format!("spread over `{}` (ScheduleAnyway{origin})", rule.topology_key)
}

/// Returns the message for a pod that no domain admits. `domains` are all existing domains with their counts. `full` are the
/// domains that could hold the pod without the constraint.
pub(crate) fn no_domain(rule: &TopologySpreadConstraint, domains: &[(String, u64)], full: &[&str]) -> String {
    let more = domains.len().saturating_sub(SHOWN);
    let mut listed: Vec<String> =
        domains.iter().take(SHOWN).map(|(value, count)| format!("{value} has {count}")).collect();
    if more > 0 {
        listed.push(format!("{more} more"));
    }
    format!(
        "is spread over `{}` with a maxSkew of {}{} ({}), and {} cannot take one more; {}, or let a pool buy where there are fewest",
        rule.topology_key,
        rule.max_skew,
        rule.origin(),
        listed.join(", "),
        full.join(", "),
        if rule.default_of.is_some() {
            "give the pods topologySpreadConstraints of their own"
        } else {
            "raise maxSkew, use whenUnsatisfiable: ScheduleAnyway"
        }
    )
}

/// Returns the message for too many pods in a domain.
pub(crate) fn too_many(rule: &TopologySpreadConstraint, domain: &str, count: u64, least: u64) -> String {
    format!(
        "is spread over `{}` with a maxSkew of {}{}, and {domain} would have {count} where the least is {least}",
        rule.topology_key,
        rule.max_skew,
        rule.origin()
    )
}

/// Returns the message for a pod on a node without the topology key.
pub(crate) fn no_label(rule: &TopologySpreadConstraint) -> String {
    format!("is spread over `{}`{}, which its node lacks", rule.topology_key, rule.origin())
}
