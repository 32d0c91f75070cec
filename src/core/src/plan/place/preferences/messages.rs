//! Messages about preferences.

use crate::plan::place::preferences::kept::Record;
use poolwright_terms::Taint;
use poolwright_terms::keys::NODEPOOL_LABEL;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::plan::{Plan, PlannedClaim};
use crate::model::relaxed::{RelaxedPreference, WhyRelaxed};
use crate::model::{NodeSelectorTerm, Operator, PodAffinityTerm, PodKey, Requirement, Snapshot, Weighted};
use crate::plan::place::preferences::kept::KeptPreferences;
use crate::rules;

/// The most preferences that a claim's reason names. It gives only the number of the others.
const SHOWN: usize = 2;

pub(crate) fn taint(taint: &Taint) -> String {
    format!("avoiding the taint `{taint}`")
}

/// Describes a preference about nodes. `file` is the scheduler's configuration file, or empty for a preference of the pod.
pub(crate) fn node(preference: &Weighted<NodeSelectorTerm>, file: &str) -> String {
    let origin = if file.is_empty() { String::new() } else { format!(", the scheduler's, from {file}") };
    format!(
        "preferred node affinity {} (weight {}{origin})",
        all(&preference.term.requirements),
        preference.weight
    )
}

pub(crate) fn near(preference: &Weighted<PodAffinityTerm>) -> String {
    format!("preferred pod affinity {}", term(preference))
}

pub(crate) fn apart(preference: &Weighted<PodAffinityTerm>) -> String {
    format!("preferred pod anti-affinity {}", term(preference))
}

fn term(preference: &Weighted<PodAffinityTerm>) -> String {
    let pods = all(preference.term.selector.as_deref().unwrap_or_default());
    format!("to {pods} over `{}` (weight {})", preference.term.topology_key, preference.weight)
}

fn all(requirements: &[Requirement]) -> String {
    let one = |requirement: &Requirement| match &requirement.operator {
        Operator::In(values) if values.len() == 1 => {
            format!("`{}={}`", requirement.key, values.iter().next().map_or("", String::as_str))
        }
        _ => format!("`{requirement}`"),
    };
    if requirements.is_empty() {
        return "any pod".to_owned();
    }
    requirements.iter().map(one).collect::<Vec<_>>().join(" and ")
}

impl Record {
    /// Returns whether preferences restricted what may be bought.
    pub fn narrows(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Reports the relaxed preferences in the plan. `why` is the reason for preferences that were kept at first.
    pub fn tell(self, plan: &mut Plan, snapshot: &Snapshot, why: WhyRelaxed) {
        let mut relaxed = self.dropped;
        let mut met = 0;
        for claim in &plan.claims {
            let of_pods = claim.planned_pods.iter().filter_map(|key| Some((key, self.kept.get(key)?)));
            let of_pods: Vec<_> = of_pods.collect();
            if of_pods.is_empty() {
                continue;
            }
            let labels = labels(snapshot, claim);
            for (key, kept) in of_pods {
                let is_met = |one: &&KeptPreferences| {
                    one.requirements.iter().all(|wanted| rules::matches(wanted, &labels))
                };
                met += usize::from(key.existing().is_some() && kept.iter().any(|one| is_met(&one)));
                for preference in kept.iter().filter(|one| !is_met(one)).flat_map(|one| &one.preferences) {
                    relaxed.entry((preference.clone(), why)).or_default().insert(key.clone());
                }
            }
        }
        plan.steered_pods = met;
        let bought: BTreeMap<&PodKey, usize> = plan
            .claims
            .iter()
            .enumerate()
            .flat_map(|(at, claim)| claim.planned_pods.iter().map(move |key| (key, at)))
            .filter(|(key, _)| key.existing().is_some())
            .collect();
        let mut by_claim: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        let mut all: Vec<RelaxedPreference> = Vec::new();
        for ((preference, why), pods) in relaxed {
            let pods: Vec<PodKey> = pods.into_iter().filter(|key| bought.contains_key(key)).collect();
            if pods.is_empty() {
                continue;
            }
            for pod in &pods {
                by_claim.entry(bought[pod]).or_default().insert(all.len());
            }
            all.push(RelaxedPreference { preference, why, pods });
        }
        for (claim, relaxed) in by_claim {
            let shown: Vec<String> = relaxed.iter().take(SHOWN).map(|at| all[*at].to_string()).collect();
            let more = relaxed.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            let reason = &mut plan.claims[claim].reason;
            *reason = format!("{reason}{RELAXED}{}{more}", shown.join("; "));
        }
        plan.relaxed = all;
    }
}

/// The text before relaxed preferences in the reason of a claim.
pub(crate) const RELAXED: &str = "; relaxed: ";

fn labels(snapshot: &Snapshot, claim: &PlannedClaim) -> BTreeMap<String, String> {
    let catalogue = snapshot.catalogues.get(&claim.node_class).and_then(|catalogue| catalogue.as_ref().ok());
    let offering =
        catalogue.and_then(|catalogue| Some(catalogue.node_labels(catalogue.offering(claim.offering())?)));
    let mut labels = claim.labels.clone();
    labels.extend(offering.unwrap_or_default());
    labels.insert(NODEPOOL_LABEL.to_owned(), claim.pool.0.clone());
    labels
}
