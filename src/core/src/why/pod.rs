//! Explanations of pods: why a pod got its place, or no place.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use poolwright_terms::ConditionType;
use poolwright_terms::labels::HOSTNAME;

use crate::demand::profiles::ProfileRules;
use crate::model::PlanOptions;
use crate::model::plan::{Plan, Target};
use crate::model::{
    NodeSelectorTerm, Pod, PodKey, PodPhase, PodRole, PodSpec, PoolName, RequestOrigin, Snapshot,
};
use crate::plan::place::preferences::messages::RELAXED;
use crate::rules::budgets::{more_block, never_met_of};
use crate::rules::format::{list, requests};
use crate::rules::requests::in_words;
use crate::rules::spread::messages::fields;
use crate::why::rulings::{OfferingRuling, PodRulings, Ruling, rulings};

/// The most lines of an explanation.
pub const MOST_LINES: usize = 6;
/// The most groups of excluded offerings that are listed.
const SHOWN: usize = 4;

/// Returns the explanation of a pod; `None` if it does not exist.
pub fn pod(
    snapshot: &Snapshot,
    now: Timestamp,
    options: &PlanOptions,
    plan: &Plan,
    key: &PodKey,
) -> Option<Vec<String>> {
    pods(snapshot, now, options, plan, &[key]).pop()?
}

/// Returns the explanations of many pods, in order; `None` for pods that do not exist.
pub fn pods(
    snapshot: &Snapshot,
    now: Timestamp,
    options: &PlanOptions,
    plan: &Plan,
    keys: &[&PodKey],
) -> Vec<Option<Vec<String>>> {
    let ours = |key: &&PodKey| snapshot.pods.get(*key).is_some_and(|pod| not_ours(snapshot, pod).is_none());
    let judged: Vec<&PodKey> = keys.iter().copied().filter(ours).collect();
    let found = if judged.is_empty() { Vec::new() } else { rulings(snapshot, now, options, &judged) };
    let mut found = found.into_iter();
    let ruler = ProfileRules::new(snapshot, &options.profiles);
    let tell = |key: &&PodKey| {
        let pod = snapshot.pods.get(*key)?;
        let ruled = ruler.spec_of(pod);
        let spec = ruled.as_ref().unwrap_or(&pod.spec);
        let mut lines = vec![format!("Pod {key} asks for {}.", asks(spec, &pod.request_origins))];
        if let Some(over) = not_ours(snapshot, pod) {
            lines.push(over);
            lines.extend(budgets(snapshot, pod));
            return Some(lines);
        }
        let rulings = found.next()??;
        lines.push(considered(snapshot, &rulings.offerings));
        lines.extend(ruled_out(&rulings.offerings));
        lines.extend(left(snapshot, &rulings));
        let relaxed = relaxed(plan, key);
        lines.extend(budgets(snapshot, pod));
        // The result must always be included.
        lines.truncate(MOST_LINES - 1 - usize::from(relaxed.is_some()));
        let outcome = outcome(snapshot, plan, key);
        lines.push(match preferred_pool(snapshot, plan, key, &rulings.offerings) {
            Some(why) => format!("{} {why}", outcome.trim_end()),
            None => outcome,
        });
        lines.extend(relaxed);
        Some(lines)
    };
    keys.iter().map(tell).collect()
}

fn asks(spec: &PodSpec, origins: &[RequestOrigin]) -> String {
    let mut parts = vec![requests(&spec.requests, |asked| in_words(origins, |name| name == asked))];
    if let Some(milli) = spec.gpu_share {
        parts.push(format!("{milli} thousandths of a GPU"));
    }
    let mut labels: Vec<String> =
        spec.node_selector.iter().map(|(key, value)| format!("`{key}={value}`")).collect();
    labels.extend(spec.node_affinity.as_deref().map(terms));
    if !labels.is_empty() {
        parts.push(format!("a node with {}", list(&labels, 4)));
    }
    if let Some(enforced) = &spec.enforced {
        let terms = terms(&enforced.terms);
        parts.push(format!("a node with {terms} (the scheduler's addedAffinity, from {})", enforced.source));
    }
    for rule in &spec.spreads {
        parts.push(format!(
            "at most {} more of its group in one `{}` than in another{}{}",
            rule.max_skew,
            rule.topology_key,
            fields(rule),
            rule.origin()
        ));
    }
    for term in &spec.affinity {
        parts.push(format!("the same `{}` as the pods of its affinity", term.topology_key));
    }
    for term in &spec.anti_affinity {
        let place = if term.topology_key == HOSTNAME { "another node" } else { "another" };
        let key =
            if term.topology_key == HOSTNAME { String::new() } else { format!(" `{}`", term.topology_key) };
        parts.push(format!("{place}{key} than the pods of its anti-affinity"));
    }
    if !spec.host_ports.is_empty() {
        let ports: Vec<String> = spec.host_ports.iter().map(ToString::to_string).collect();
        parts.push(format!("host port {}", list(&ports, 3)));
    }
    parts.join("; ")
}

/// Formats OR-ed node terms.
fn terms(all: &[NodeSelectorTerm]) -> String {
    let one = |term: &NodeSelectorTerm| {
        let all: Vec<String> = term.requirements.iter().map(|one| format!("`{one}`")).collect();
        all.join(" and ")
    };
    list(&all.iter().map(one).collect::<Vec<_>>(), 3).replace(", ", " or ")
}

/// Returns the message for a pod that gets no new node, whatever the offerings are.
fn not_ours(snapshot: &Snapshot, pod: &Pod) -> Option<String> {
    match (&pod.phase, pod.role) {
        (PodPhase::Bound { node }, _) if !snapshot.nodes.contains_key(node) => {
            Some(format!("It is bound to node {node}, which does not exist here."))
        }
        (PodPhase::Bound { node }, _) => {
            let is = if pod.deleting_since.is_some() { "is being deleted, and is still" } else { "is" };
            Some(format!("It {is} on node {node}; see `poolwright explain node {node}`."))
        }
        (PodPhase::Finished, _) => Some("It has ended and takes no room.".to_owned()),
        (_, PodRole::DaemonSet) => {
            Some("It belongs to a DaemonSet, so Poolwright buys no node for it.".to_owned())
        }
        (_, PodRole::Mirror) => {
            Some("It is a static pod of its node, so Poolwright buys no node for it.".to_owned())
        }
        _ => None,
    }
}

/// Describes the budgets that never allow the eviction of the pod.
fn budgets(snapshot: &Snapshot, pod: &Pod) -> Option<String> {
    let found = never_met_of(snapshot, pod);
    let (first, more) = found.split_first()?;
    Some(format!("Warning: {first}.{}", more_block(more.len())))
}

fn considered(snapshot: &Snapshot, rulings: &[OfferingRuling]) -> String {
    let mut pools: BTreeMap<&str, usize> = BTreeMap::new();
    for offering in rulings {
        *pools.entry(offering.pool.0.as_str()).or_default() += 1;
    }
    let named: Vec<String> = pools.iter().map(|(pool, count)| format!("{pool} ({count})")).collect();
    if named.is_empty() {
        let why = if snapshot.pools.is_empty() {
            "no NodePool exists"
        } else if snapshot.pools.values().all(|pool| pool.replicas.is_some()) {
            "every NodePool has a fixed number of nodes (`replicas`)"
        } else {
            "no NodePool can be used"
        };
        return format!("No offerings were considered: {why}; see `poolwright explain pool`.");
    }
    if snapshot.has_implicit_pool() {
        return format!("Considered {} offerings.", rulings.len());
    }
    format!("Considered {} offerings, by pool: {}.", rulings.len(), list(&named, 6))
}

/// Returns a suffix that names the pool of something; empty if the user wrote no pool.
fn of_pool(snapshot: &Snapshot, name: &PoolName) -> String {
    snapshot.pools.get(name).map_or_else(|| format!(" of pool {name}"), |pool| pool.in_words().of())
}

/// Describes the excluded offerings by reason, the most frequent reason first.
fn ruled_out(rulings: &[OfferingRuling]) -> Option<String> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for offering in rulings {
        if let Ruling::Excluded(all) = &offering.ruling
            && let Some(reason) = all.first()
        {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    let mut reasons: Vec<(&str, usize)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(reason, count)| (Reverse(*count), *reason));
    let said: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} ({reason})")).collect();
    (!said.is_empty()).then(|| format!("Ruled out: {}.", list(&said, SHOWN)))
}

/// Describes the offerings that fit or, if none does, the offering that comes closest.
fn left(snapshot: &Snapshot, rulings: &PodRulings) -> Option<String> {
    let open: Vec<&OfferingRuling> =
        rulings.offerings.iter().filter(|one| matches!(one.ruling, Ruling::Fits(_))).collect();
    let price = |one: &OfferingRuling| match &one.ruling {
        Ruling::Fits(price) => *price,
        Ruling::Excluded(_) => None,
    };
    if let Some(best) = open.iter().min_by_key(|one| (price(one).is_none(), price(one), &one.offering)) {
        let cost = price(best).map_or("an unknown price".to_owned(), |price| format!("{price:#}"));
        return Some(format!(
            "{} could hold it alone; the cheapest is {}{} at {cost}.",
            if open.len() == 1 { "1 offering".to_owned() } else { format!("{} offerings", open.len()) },
            best.offering,
            of_pool(snapshot, &best.pool)
        ));
    }
    let (index, change) = rulings.nearest.as_ref()?;
    let nearest = &rulings.offerings[*index];
    let Ruling::Excluded(reasons) = &nearest.ruling else { return None };
    let change = if change.is_empty() { String::new() } else { format!(" To change that: {change}.") };
    let (reasons, of) = (reasons.join("; "), of_pool(snapshot, &nearest.pool));
    Some(format!("Nearest miss: {}{of}: {reasons}.{change}", nearest.offering))
}

/// Says that the pool of a pod's new node comes before a pool that would cost less, because of its weight.
fn preferred_pool(
    snapshot: &Snapshot,
    plan: &Plan,
    key: &PodKey,
    rulings: &[OfferingRuling],
) -> Option<String> {
    let claim = plan.claims.iter().find(|claim| claim.planned_pods.contains(key))?;
    let weight = snapshot.pools.get(&claim.pool)?.weight;
    let price = claim.price()?;
    let cheaper = rulings.iter().filter_map(|one| match one.ruling {
        Ruling::Fits(Some(other)) if other < price => Some((other, one)),
        _ => None,
    });
    let lighter = cheaper.filter_map(|(other, one)| {
        let of = snapshot.pools.get(&one.pool)?.weight;
        (of < weight).then_some((other, &one.offering, &one.pool, of))
    });
    let (other, offering, pool, of) = lighter.min()?;
    Some(format!(
        "Pool {} comes first, because its weight {weight} is higher than the {of} of pool {pool}, where {offering} at {other:#} would hold the pod.",
        claim.pool
    ))
}

/// Describes the relaxed preferences of a pod.
fn relaxed(plan: &Plan, key: &PodKey) -> Option<String> {
    let own = plan.relaxed.iter().filter(|relaxed| relaxed.pods.binary_search(key).is_ok());
    let own: Vec<String> = own.map(ToString::to_string).collect();
    let more = own.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let shown = own.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("; ");
    (!own.is_empty()).then(|| format!("Relaxed: {shown}{more}."))
}

/// Returns whether a line of an explanation is the result.
pub(crate) fn is_outcome(line: &str) -> bool {
    line.starts_with("Planned on ") || line.starts_with("Not planned")
}

fn outcome(snapshot: &Snapshot, plan: &Plan, key: &PodKey) -> String {
    if let Some(claim) = plan.claims.iter().find(|claim| claim.planned_pods.contains(key)) {
        let others = claim.planned_pods.len() - 1;
        let others = match others {
            0 => "alone".to_owned(),
            1 => "with 1 other pod".to_owned(),
            others => format!("with {others} other pods"),
        };
        // Relaxed preferences of other pods on the node do not belong here.
        let reason = claim.reason.split(RELAXED).next().unwrap_or_default();
        return format!("Planned on a new node{} {others}: {reason}.", of_pool(snapshot, &claim.pool));
    }
    if let Some(placement) = plan.placements.iter().find(|placement| placement.pod == *key) {
        // No pod is placed on a node that is emptied, so these pods give way.
        if let Target::Claim(name) = &placement.target
            && plan.moved.iter().any(|moved| moved.from == *name)
        {
            return format!("Planned on {}, in the room of pods that leave this node.", placement.target);
        }
        if plan.buys(&placement.target) {
            return format!(
                "Planned on {}, a new node that its static pool buys in any case: it costs nothing more.",
                placement.target
            );
        }
        let claim = match &placement.target {
            Target::Claim(name) => snapshot.claims.get(name),
            Target::Node(_) => {
                return format!("Planned on {}, which exists: it costs nothing more.", placement.target);
            }
        };
        if let Some(claim) = claim.filter(|claim| claim.launched.is_none()) {
            let failed = claim.conditions.get(&ConditionType::Launched);
            let failed =
                failed.map_or_else(String::new, |one| format!(" ({})", one.message.trim_end_matches('.')));
            return format!(
                "Planned on {}, which is ordered but not launched yet{failed}; see `poolwright explain claim {}`.",
                placement.target, claim.name
            );
        }
        return format!("Planned on {}, which is bought already: it costs nothing more.", placement.target);
    }
    match plan.unplaced.iter().find(|left| left.pod == *key) {
        Some(left) => {
            format!("Not planned ({}): {}.", left.reason.as_str(), left.message.trim_end_matches('.'))
        }
        None if snapshot.pods.get(key).is_some_and(|pod| pod.deleting_since.is_some()) => {
            "It is being deleted, so nothing is planned for it.".to_owned()
        }
        None => "Not planned: the plan did not pass its check; see the controller's log.".to_owned(),
    }
}
