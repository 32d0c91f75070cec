//! Messages about topology spread constraints.

use std::collections::BTreeSet;

use crate::model::TopologySpreadConstraint;
use crate::rules::format::list;

/// The most domains that a message lists.
const SHOWN: usize = 6;

/// Returns the name of a preference (`ScheduleAnyway`).
pub(crate) fn preference(rule: &TopologySpreadConstraint) -> String {
    let origin = rule.default_of.as_ref();
    let origin = origin.map_or_else(String::new, |file| format!(", the scheduler's default from {file}"));
    format!("spread over `{}` (ScheduleAnyway{origin})", rule.topology_key)
}

/// A field of a constraint that alone leaves a pod no domain: with another value, a domain would take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SpreadCause {
    /// `minDomains`: fewer domains exist.
    MinDomains(u32),
    /// `nodeAffinityPolicy: Ignore`: these domains count although the pod's own rules exclude their nodes.
    NodeAffinity(Vec<String>),
    /// `nodeTaintsPolicy: Ignore`: these domains count although the pod does not tolerate the taints of their nodes.
    NodeTaints(Vec<String>),
}

impl SpreadCause {
    fn words(&self, rule: &TopologySpreadConstraint) -> String {
        let count = |domains: &[String]| {
            let verb = if domains.len() == 1 { "counts" } else { "count" };
            format!("{} {verb}", list(domains, SHOWN))
        };
        match self {
            Self::MinDomains(wanted) => {
                let honors = if rule.honor_node_taints {
                    " (nodeTaintsPolicy: Honor leaves out nodes whose taints it does not tolerate)"
                } else {
                    ""
                };
                format!("while fewer than {wanted} domains exist (minDomains), the fewest count as 0{honors}")
            }
            Self::NodeAffinity(domains) => format!(
                "{} although its own node selector or affinity excludes the nodes there (nodeAffinityPolicy: Ignore)",
                count(domains)
            ),
            Self::NodeTaints(domains) => format!(
                "{} although it does not tolerate the taints of the nodes there (nodeTaintsPolicy: Ignore)",
                count(domains)
            ),
        }
    }

    const fn change(&self) -> &'static str {
        match self {
            Self::MinDomains(_) => "lower minDomains",
            Self::NodeAffinity(_) => "set nodeAffinityPolicy: Honor",
            Self::NodeTaints(_) => "set nodeTaintsPolicy: Honor",
        }
    }
}

/// Describes the fields of a constraint that change what it counts: ` (minDomains 3, nodeTaintsPolicy Honor)`. Empty for the usual
/// ones.
pub(crate) fn fields(rule: &TopologySpreadConstraint) -> String {
    let mut fields = Vec::new();
    fields.extend(rule.min_domains.map(|wanted| format!("minDomains {wanted}")));
    fields.extend(rule.ignore_node_affinity.then(|| "nodeAffinityPolicy Ignore".to_owned()));
    fields.extend(rule.honor_node_taints.then(|| "nodeTaintsPolicy Honor".to_owned()));
    if !rule.match_label_keys.is_empty() {
        fields.push(format!("matchLabelKeys {}", rule.match_label_keys.join(" and ")));
    }
    if fields.is_empty() { String::new() } else { format!(" ({})", fields.join(", ")) }
}

/// Returns the message for a pod that no domain admits. `domains` are all existing domains with their counts. `full` are the
/// domains that could hold the pod without the constraint. `volumes` names its volumes that are usable only there.
/// `may_buy_elsewhere` says whether a pool could be widened, and the pod could then go to the nodes.
pub(crate) fn no_domain(
    rule: &TopologySpreadConstraint,
    domains: &[(String, u64)],
    full: &[&str],
    (volumes, causes): (&BTreeSet<String>, &[SpreadCause]),
    may_buy_elsewhere: bool,
) -> String {
    let more = domains.len().saturating_sub(SHOWN);
    let mut listed: Vec<String> =
        domains.iter().take(SHOWN).map(|(value, count)| format!("{value} has {count}")).collect();
    if more > 0 {
        listed.push(format!("{more} more"));
    }
    let keys: Vec<String> = rule.match_label_keys.iter().map(|key| format!("`{key}`")).collect();
    let own = if keys.is_empty() {
        String::new()
    } else {
        format!("; only pods with its value of {} count (matchLabelKeys)", keys.join(" and "))
    };
    let volumes: Vec<&str> = volumes.iter().map(String::as_str).collect();
    let usable = if volumes.len() == 1 { "is usable only there" } else { "are usable only there" };
    let bound = (!volumes.is_empty()).then(|| format!("; {} {usable}", volumes.join(" and ")));
    let why = causes.iter().map(|cause| format!("; {}", cause.words(rule)));
    let why: Vec<String> = bound.into_iter().chain(why).collect();
    let mut changes = Vec::new();
    if rule.default_of.is_some() {
        changes.push("give the pods topologySpreadConstraints of their own");
    } else {
        changes.extend(causes.iter().map(SpreadCause::change));
        changes.extend(["raise maxSkew", "use whenUnsatisfiable: ScheduleAnyway"]);
    }
    if may_buy_elsewhere {
        let lacks_domains = causes.iter().any(|cause| matches!(cause, SpreadCause::MinDomains(_)));
        changes.push(if lacks_domains {
            "let a pool buy in more domains"
        } else {
            "let a pool buy where there are fewest"
        });
    }
    format!(
        "is spread over `{}` with a maxSkew of {}{} ({}{own}), and {} cannot take one more{}; {}",
        rule.topology_key,
        rule.max_skew,
        rule.origin(),
        listed.join(", "),
        full.join(", "),
        why.concat(),
        any_of(&changes)
    )
}

/// Lists alternatives: `a, b, or c`.
fn any_of(all: &[&str]) -> String {
    match all {
        [first @ .., last] if !first.is_empty() => format!("{}, or {last}", first.join(", ")),
        all => all.concat(),
    }
}

/// Returns the message for too many pods in a domain. `few` says whether fewer domains exist than `minDomains` asks for.
pub(crate) fn too_many(
    rule: &TopologySpreadConstraint,
    domain: &str,
    count: u64,
    least: u64,
    few: bool,
) -> String {
    let wanted = rule.min_domains.filter(|_| few);
    let why = wanted
        .map(|wanted| format!(", because fewer than {wanted} domains exist (minDomains)"))
        .unwrap_or_default();
    format!(
        "is spread over `{}` with a maxSkew of {}{}, and {domain} would have {count} where the least is {least}{why}",
        rule.topology_key,
        rule.max_skew,
        rule.origin()
    )
}

/// Returns the message for a pod on a node without the topology key.
pub(crate) fn no_label(rule: &TopologySpreadConstraint) -> String {
    format!("is spread over `{}`{}, which its node lacks", rule.topology_key, rule.origin())
}
