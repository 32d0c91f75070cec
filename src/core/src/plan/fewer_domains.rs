//! The new domains that spread constraints can do without, if a limit does not let every domain have a node of the usual kind.
//!
//! Pods are spread over all domains that cost little more than the cheapest. A limit may not let so many nodes be bought. Then an
//! attempt leaves pods out, or buys nodes of a much dearer kind. The scheduler counts only domains with nodes, so all pods may have
//! room in fewer of them.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{ResourceList, UsdPerHour};
use poolwright_terms::CapacityType;
use poolwright_terms::keys::NODEPOOL_LABEL;

use crate::model::plan::{Plan, PlannedClaim, UnplacedPod, UnplacedReason};
use crate::model::{Pod, PodKey, PodSpec};
use crate::plan::attempt::Attempt;
use crate::plan::context::PlanContext;
use crate::plan::place::topology::new_domains::DomainChoice;
use crate::plan::place::topology::place_prices::{cost_of_part, least_cost};
use crate::plan::place::topology::{DEARER, signature};
use crate::rules;
use crate::rules::pin::Signature;
use crate::supply::offerings::Supply;

impl PlanContext<'_> {
    /// Returns the only new domains that should count in the next attempt, by spread constraint; `None` if another attempt in fewer
    /// domains is not worthwhile. It is if pods with a constraint are left out, or are on new nodes of a much dearer kind.
    pub fn domains_within_limits(
        &self,
        supply: &Supply<'_>,
        attempt: &Attempt,
    ) -> Option<BTreeMap<usize, BTreeSet<String>>> {
        let (plan, choices) = (&attempt.plan, &attempt.left_out.by_spread);
        let nothing_open = choices.values().all(|choice| choice.open.is_empty());
        if nothing_open || plan.claims.is_empty() || !plan.refused.is_empty() {
            return None;
        }
        let relations = &self.relations;
        let mut lacking = self.spreads_of_left_pods(plan);
        let mut in_use: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        let mut usual = UsualPrices { supply, known: BTreeMap::new() };
        for claim in &plan.claims {
            let Some(Ok(catalogue)) = self.snapshot.catalogues.get(&claim.node_class) else { continue };
            let Some(offering) = catalogue.offering(claim.offering()) else { continue };
            let mut labels = claim.labels.clone();
            labels.extend(catalogue.node_labels(offering));
            labels.insert(NODEPOOL_LABEL.to_owned(), claim.pool.0.clone());
            let pods = claim.planned_pods.iter().filter_map(|key| self.snapshot.pods.get(key));
            let pods: Vec<&Pod> = pods.map(AsRef::as_ref).collect();
            let spreads: BTreeSet<usize> =
                pods.iter().flat_map(|pod| self.spreads_of(&pod.key)).copied().collect();
            let capacity = &catalogue.types()[claim.instance_type()].allocatable;
            let weight = self.snapshot.pools.get(&claim.pool).map_or(0, |pool| pool.weight);
            let is_dear = !spreads.is_empty() && usual.are_exceeded(&pods, claim, capacity, weight);
            for (at, choice) in choices {
                let spread = &relations.spreads[*at];
                let Some(domain) = labels.get(relations.keys[spread.key]) else { continue };
                let is_for_dear_pods = is_dear && spreads.contains(at);
                if is_for_dear_pods && choice.open.contains(domain) {
                    lacking.insert(*at);
                }
                let has = |key: usize| labels.contains_key(relations.keys[key]);
                if !is_for_dear_pods && spread.includes(has, &labels, &claim.taints) {
                    in_use.entry(*at).or_default().insert(domain.clone());
                }
            }
        }
        let mut only = BTreeMap::new();
        let mut is_narrower = false;
        for (at, choice) in choices {
            let min_domains = relations.spreads[*at].rule.min_domains;
            let kept = if lacking.contains(at) {
                keep(choice, in_use.get(at), min_domains)
            } else {
                choice.open.iter().cloned().collect()
            };
            let is_narrowed = kept.len() < choice.open.len();
            is_narrower |= is_narrowed;
            if is_narrowed || !choice.left_out.is_empty() {
                only.insert(*at, kept);
            }
        }
        is_narrower.then_some(only)
    }

    /// Returns the spread constraints of pods that a limit or a rule about other pods leaves out.
    fn spreads_of_left_pods(&self, plan: &Plan) -> BTreeSet<usize> {
        let is_left_by_limit = |left: &&UnplacedPod| {
            matches!(left.reason, UnplacedReason::LimitReached | UnplacedReason::TopologyRule)
        };
        let left = plan.unplaced.iter().filter(is_left_by_limit);
        left.flat_map(|left| self.spreads_of(&left.pod)).copied().collect()
    }

    fn spreads_of(&self, pod: &PodKey) -> &[usize] {
        &self.relations.kinds[self.relations.of(pod)].spreads
    }
}

/// Returns the new domains of a constraint that the next attempt keeps: those with new nodes of the usual kind. If all have such
/// nodes, or none has, it keeps half of them. It keeps as many as `min_domains` asks for.
fn keep(
    choice: &DomainChoice,
    in_use: Option<&BTreeSet<String>>,
    min_domains: Option<u32>,
) -> BTreeSet<String> {
    let is_used = |domain: &&String| in_use.is_some_and(|used| used.contains(*domain));
    let (used, rest): (Vec<&String>, Vec<&String>) = choice.open.iter().partition(is_used);
    let most = if !used.is_empty() && !rest.is_empty() {
        used.len()
    } else if choice.existing > 0 {
        // Pods may have room in the domains that exist.
        choice.open.len() / 2
    } else {
        choice.open.len().div_ceil(2)
    };
    let least = (min_domains.unwrap_or(1).max(1) as usize).saturating_sub(choice.existing);
    used.into_iter().chain(rest).take(most.max(least)).cloned().collect()
}

/// The prices of all nodes that a pod could get without limits, by capacity.
struct UsualPrices<'s, 'a, 'p> {
    supply: &'s Supply<'a>,
    known: BTreeMap<(Signature<'p>, CapacityType, u32), BTreeMap<usize, UsdPerHour>>,
}

impl<'p> UsualPrices<'_, '_, 'p> {
    /// Returns whether each of these pods costs more than [`DEARER`] times as much on a node as on the cheapest one without limits.
    /// Nodes of another capacity type, or of pools with a lower weight, are not compared: a limit is not why they are not bought.
    fn are_exceeded(
        &mut self,
        pods: &[&'p Pod],
        claim: &PlannedClaim,
        capacity: &ResourceList,
        weight: u32,
    ) -> bool {
        let Some(price) = claim.price() else { return false };
        let (supply, capacity_type) = (self.supply, claim.offering().capacity_type);
        pods.iter().copied().all(|pod| {
            let (spec, requests) = (&pod.spec, &pod.spec.requests);
            let of = || prices(supply, spec, capacity_type, weight);
            let usual = self.known.entry((signature(spec), capacity_type, weight)).or_insert_with(of);
            let least = least_cost(usual, requests, supply);
            cost_of_part(requests, capacity, price) > least.saturating_mul(DEARER)
        })
    }
}

/// Returns the lowest price of each capacity that pools of at least this weight sell for a pod.
fn prices(
    supply: &Supply<'_>,
    spec: &PodSpec,
    capacity_type: CapacityType,
    weight: u32,
) -> BTreeMap<usize, UsdPerHour> {
    let mut prices = BTreeMap::new();
    for (at, offered) in supply.pools.iter().enumerate() {
        let is_tolerated = rules::check_taints(&spec.tolerations, &offered.pool.taints).is_ok();
        if offered.pool.weight < weight || !is_tolerated {
            continue;
        }
        for offer in &offered.offers {
            let Some(price) = offer.availability.price() else { continue };
            if supply.offering(at, offer.offering).id.capacity_type == capacity_type
                && rules::check_labels(spec, &supply.labels(at, offer.offering)).is_ok()
            {
                let known = prices.entry(offer.capacity).or_insert(price);
                *known = price.min(*known);
            }
        }
    }
    prices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(existing: usize, in_use: &[&str], min_domains: Option<u32>) -> Vec<String> {
        let open = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let choice = DomainChoice { existing, open, ..DomainChoice::default() };
        let in_use: BTreeSet<String> = in_use.iter().map(|domain| (*domain).to_owned()).collect();
        keep(&choice, Some(&in_use), min_domains).into_iter().collect()
    }

    #[test]
    fn domains_with_nodes_of_the_usual_kind_are_kept_or_else_half_of_all() {
        assert_eq!(kept(0, &["b", "d"], None), ["b", "d"]);
        assert_eq!(kept(0, &[], None), ["a", "b", "c"]);
        assert_eq!(kept(0, &["a", "b", "c", "d", "e"], None), ["a", "b", "c"]);
        assert_eq!(kept(1, &[], None), ["a", "b"]);
    }

    #[test]
    fn as_many_domains_are_kept_as_min_domains_ask_for() {
        assert_eq!(kept(0, &["d", "e"], Some(3)), ["a", "d", "e"]);
        assert_eq!(kept(1, &["d", "e"], Some(3)), ["d", "e"]);
        assert_eq!(kept(0, &[], Some(9)).len(), 5);
    }
}
