//! The new domains that spread constraints can do without, if a limit does not let every domain have a node of the usual kind.
//!
//! Pods are spread over all domains that cost little more than the cheapest. A limit may not let so many nodes be bought. Then an
//! attempt leaves pods out, or buys nodes of a much dearer kind. The scheduler counts only domains with nodes, so all pods may have
//! room in fewer of them.
//!
//! If a limit still leaves pods out, there may even be fewer domains than `minDomains`. The scheduler then takes the lowest count as zero,
//! so each domain takes up to `maxSkew` pods. That may be more than if the pods were spread over domains without nodes, too.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use poolwright_catalog::{ResourceList, UsdPerHour};
use poolwright_terms::CapacityType;
use poolwright_terms::keys::NODEPOOL_LABEL;

use crate::model::plan::{Plan, PlannedClaim};
use crate::model::{Pod, PodKey, PodSpec, TopologySpreadConstraint};
use crate::plan::attempt::Attempt;
use crate::plan::context::PlanContext;
use crate::plan::left_by::LeftBy;
use crate::plan::place::topology::new_domains::DomainChoice;
use crate::plan::place::topology::place_prices::{cost_of_part, least_cost};
use crate::plan::place::topology::{DEARER, signature};
use crate::rules;
use crate::rules::pin::Signature;
use crate::rules::spread::domains::DomainSpread;
use crate::supply::offerings::Supply;

/// The new domains of the next attempt, by spread constraint.
pub(crate) struct FewerDomains {
    /// The only ones that count.
    pub only: BTreeMap<usize, BTreeSet<String>>,
    /// Others that pods without a pin keep out of, because an earlier attempt had nodes for them there.
    pub kept_out: BTreeMap<usize, BTreeSet<String>>,
    /// The constraints with fewer domains than their `minDomains`, each with the reason of pods that none of these takes.
    pub few: BTreeMap<usize, LeftBy>,
}

/// Which constraints leave out how many domains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Narrowing {
    /// Other pods leave domains out, too, so that they leave more of the limit to those that lack nodes.
    pub for_others: bool,
    /// Constraints whose pods a limit leaves out keep fewer domains than their `minDomains`.
    pub below_min: bool,
}

impl PlanContext<'_> {
    /// Returns the only new domains that should count in the next attempt; `None` if another attempt in fewer domains is not
    /// worthwhile. It is if pods with a constraint are left out, or are on new nodes of a much dearer kind.
    pub fn domains_within_limits(
        &self,
        supply: &Supply<'_>,
        attempt: &Attempt,
        Narrowing { for_others, below_min }: Narrowing,
    ) -> Option<FewerDomains> {
        let (plan, choices) = (&attempt.plan, &attempt.left_out.by_spread);
        let nothing_open = choices.values().all(|choice| choice.open.is_empty() && !choice.closes_opened());
        if nothing_open || plan.claims.is_empty() || !plan.refused.is_empty() {
            return None;
        }
        let relations = &self.relations;
        let few = if below_min { self.with_few_domains(attempt) } else { BTreeMap::new() };
        if below_min && few.is_empty() {
            return None;
        }
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
            let weight = self.snapshot.pools.get(&claim.pool).map_or(0, |pool| pool.weight);
            let is_dear = !spreads.is_empty() && usual.are_exceeded(&pods, claim, weight);
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
        if for_others {
            let keys: BTreeSet<usize> = lacking.iter().map(|at| relations.spreads[*at].key).collect();
            let before = lacking.len();
            lacking.extend(choices.keys().filter(|at| keys.contains(&relations.spreads[**at].key)));
            if lacking.len() == before {
                return None;
            }
        }
        let (mut only, mut kept_out) = (BTreeMap::new(), BTreeMap::new());
        let mut is_narrower = false;
        // Constraints over one key keep the same domains, so that they share nodes.
        let mut kept_before: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for (at, choice) in choices {
            let DomainSpread { rule, key, .. } = relations.spreads[*at];
            let short =
                |domain: &str| attempt.short.contains(&(relations.keys[key].to_owned(), domain.to_owned()));
            let (used, kept) = (in_use.get(at), kept_before.get(&key));
            let seen = SeenDomains { in_use: used, kept_before: kept, short: &short };
            let is_lacking = lacking.contains(at);
            let kept = if is_lacking {
                keep(choice, &seen, &bounds(choice, rule.min_domains, few.contains_key(at)))
            } else {
                choice.open.iter().cloned().collect()
            };
            if is_lacking {
                kept_before.entry(key).or_default().extend(kept.iter().cloned());
            }
            let closes_opened = is_lacking && choice.closes_opened();
            if closes_opened {
                kept_out.insert(*at, choice.opened.clone());
            }
            let is_narrowed = kept.len() < choice.open.len() || closes_opened;
            is_narrower |= is_narrowed;
            if is_narrowed || !choice.left_out.is_empty() {
                only.insert(*at, kept);
            }
        }
        is_narrower.then_some(FewerDomains { only, kept_out, few })
    }

    /// Returns the constraints that may have fewer domains than their `minDomains` in the next attempt, because a limit leaves out pods
    /// that have them, and those that have fewer already. The reason of pods that none of these domains takes comes with each.
    fn with_few_domains(&self, attempt: &Attempt) -> BTreeMap<usize, LeftBy> {
        let few = |(at, choice): (&usize, &DomainChoice)| {
            let limit = attempt.spread_limits.get(at);
            let by_limit =
                limit.and_then(|limit| reason_of_few(choice, self.relations.spreads[*at].rule, *limit));
            Some((*at, by_limit.or_else(|| choice.few.clone())?))
        };
        attempt.left_out.by_spread.iter().filter_map(few).collect()
    }

    /// Returns the spread constraints of pods that a limit or a rule about other pods leaves out. That is the reason of most incomplete
    /// gangs.
    fn spreads_of_left_pods(&self, plan: &Plan) -> BTreeSet<usize> {
        let left = plan.unplaced.iter().filter(|left| left.reason.may_be_for_others());
        left.flat_map(|left| self.spreads_of(&left.pod)).copied().collect()
    }

    /// Returns the spread constraints of a pod over zones and other domains.
    pub fn spreads_of(&self, pod: &PodKey) -> &[usize] {
        self.relations.kinds.get(self.relations.of(pod)).map_or(&[], |kind| kind.spreads.as_slice())
    }
}

impl DomainChoice {
    /// Returns whether the next attempt should leave out the domains that count only because of other pods, and no other one.
    fn closes_opened(&self) -> bool {
        !self.opened.is_empty() && !self.is_narrowed && self.existing + self.open.len() > 0
    }
}

/// What an attempt shows about the domains of a constraint.
struct SeenDomains<'s> {
    /// The domains with new nodes of the usual kind.
    in_use: Option<&'s BTreeSet<String>>,
    /// The domains that other constraints over the same key keep.
    kept_before: Option<&'s BTreeSet<String>>,
    /// Whether a limit left pods without a node in a domain.
    short: &'s dyn Fn(&str) -> bool,
}

/// Returns the reason of pods that no domain takes because there are fewer than `minDomains`; `None` if as many have nodes already.
fn reason_of_few(choice: &DomainChoice, rule: &TopologySpreadConstraint, limit: u32) -> Option<LeftBy> {
    let wanted = rule.min_domains.filter(|wanted| *wanted as usize > choice.existing.max(1))?;
    let words = format!(
        "; no better plan was found within the limit: while fewer than {wanted} domains of `{}` exist (minDomains), each takes such pods only up to maxSkew ({})",
        rule.topology_key, rule.max_skew
    );
    // What one more node uses may well be left, but the spread would not let it have more pods.
    Some(LeftBy::limit(limit, 0).with(&words))
}

/// Returns how many new domains a constraint keeps: at least as many as `min_domains` asks for or, with `few`, at most one less.
fn bounds(choice: &DomainChoice, min_domains: Option<u32>, few: bool) -> RangeInclusive<usize> {
    let wanted = (min_domains.unwrap_or(1).max(1) as usize).saturating_sub(choice.existing);
    if few { 0..=wanted.saturating_sub(1) } else { wanted..=usize::MAX }
}

/// Returns the new domains of a constraint that the next attempt keeps: those with new nodes of the usual kind. If all have such
/// nodes, it keeps those in which no pod lacked a node, but at least half of them. If none has, it keeps half. The number of domains
/// is within the bounds. If an earlier attempt had nodes in unexpected domains, the next one keeps all but these.
fn keep(choice: &DomainChoice, seen: &SeenDomains<'_>, bounds: &RangeInclusive<usize>) -> BTreeSet<String> {
    let SeenDomains { in_use, kept_before, short } = *seen;
    if choice.closes_opened() && bounds.contains(&choice.open.len()) {
        return choice.open.iter().cloned().collect();
    }
    let is_in = |domains: Option<&BTreeSet<String>>, domain: &String| {
        domains.is_some_and(|domains| domains.contains(domain))
    };
    let used = choice.open.iter().filter(|domain| is_in(in_use, domain)).count();
    let half = if choice.existing > 0 {
        // Pods may have room in the domains that exist.
        choice.open.len() / 2
    } else {
        choice.open.len().div_ceil(2)
    };
    let good = choice.open.iter().filter(|domain| is_in(in_use, domain) && !short(domain)).count();
    let most = if used > 0 && used < choice.open.len() {
        used
    } else if good < used {
        half.max(good)
    } else {
        half
    };
    let shared = choice.open.iter().filter(|domain| is_in(kept_before, domain)).count();
    let most = if shared > 0 { most.min(shared) } else { most };
    let mut ranked: Vec<&String> = choice.open.iter().collect();
    ranked.sort_by_key(|domain| (!is_in(kept_before, domain), !is_in(in_use, domain), short(domain)));
    ranked.into_iter().take(most.clamp(*bounds.start(), *bounds.end())).cloned().collect()
}

/// The prices of all nodes that a pod could get without limits, by capacity.
struct UsualPrices<'s, 'a, 'p> {
    supply: &'s Supply<'a>,
    known: BTreeMap<(Signature<'p>, CapacityType, u32), BTreeMap<usize, UsdPerHour>>,
}

impl<'p> UsualPrices<'_, '_, 'p> {
    /// Returns whether each of these pods costs more than [`DEARER`] times as much on a node as on the cheapest one without limits.
    /// Nodes of another capacity type, or of pools with a lower weight, are not compared: a limit is not why they are not bought.
    fn are_exceeded(&mut self, pods: &[&'p Pod], claim: &PlannedClaim, weight: u32) -> bool {
        let (supply, capacity_type) = (self.supply, claim.offering().capacity_type);
        let Some((price, capacity)) = claim.price().zip(capacity_of(supply, claim)) else { return false };
        pods.iter().copied().all(|pod| {
            let (spec, requests) = (&pod.spec, &pod.spec.requests);
            let of = || prices(supply, spec, capacity_type, weight);
            let usual = self.known.entry((signature(spec), capacity_type, weight)).or_insert_with(of);
            let least = least_cost(usual, requests, supply);
            cost_of_part(requests, capacity, price) > least.saturating_mul(DEARER)
        })
    }
}

/// Returns the capacity for pods of a planned node, as the supply counts it: with places for volumes, and without DaemonSets.
fn capacity_of<'s>(supply: &'s Supply<'_>, claim: &PlannedClaim) -> Option<&'s ResourceList> {
    let at = supply.pools.iter().position(|offered| offered.pool.name == claim.pool)?;
    let offers = &supply.pools[at].offers;
    let planned =
        offers.binary_search_by(|offer| supply.offering(at, offer.offering).id.cmp(claim.offering()));
    Some(&supply.capacities[offers[planned.ok()?].capacity])
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
        kept_of(&choice, in_use, &[], min_domains)
    }

    fn kept_of(
        choice: &DomainChoice,
        in_use: &[&str],
        short: &[&str],
        min_domains: Option<u32>,
    ) -> Vec<String> {
        let in_use: BTreeSet<String> = in_use.iter().map(|domain| (*domain).to_owned()).collect();
        let short = |domain: &str| short.contains(&domain);
        let seen = SeenDomains { in_use: Some(&in_use), kept_before: None, short: &short };
        keep(choice, &seen, &bounds(choice, min_domains, false)).into_iter().collect()
    }

    #[test]
    fn domains_in_which_a_limit_left_a_pod_without_a_node_are_left_out_first() {
        let all = ["a", "b", "c", "d", "e"];
        let choice = DomainChoice { open: all.map(str::to_owned).to_vec(), ..DomainChoice::default() };
        assert_eq!(kept_of(&choice, &all, &["b"], None), ["a", "c", "d", "e"]);
        assert_eq!(kept_of(&choice, &all, &["a", "b", "c", "d"], None), ["a", "b", "e"], "half of all");
    }

    #[test]
    fn domains_that_got_nodes_of_other_pods_are_left_out_before_others() {
        let open = ["a", "b"].map(str::to_owned).to_vec();
        let opened = BTreeSet::from(["c".to_owned()]);
        let mut choice = DomainChoice { opened, open, ..DomainChoice::default() };
        assert_eq!(kept_of(&choice, &["a", "b"], &[], None), ["a", "b"]);
        choice.is_narrowed = true;
        assert_eq!(kept_of(&choice, &["a", "b"], &[], None), ["a"], "leaving these out did not help");
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

    #[test]
    fn fewer_domains_than_min_domains_are_kept_only_while_fewer_have_nodes() {
        let of = |existing: usize, min_domains: Option<u32>| {
            let choice = DomainChoice { existing, ..DomainChoice::default() };
            let rule = TopologySpreadConstraint { min_domains, ..TopologySpreadConstraint::default() };
            reason_of_few(&choice, &rule, 0).map(|_| bounds(&choice, min_domains, true))
        };
        assert_eq!([of(0, Some(3)), of(1, Some(3)), of(2, Some(3))], [Some(0..=2), Some(0..=1), Some(0..=0)]);
        assert_eq!([of(3, Some(3)), of(0, Some(1)), of(0, None)], [None, None, None]);
    }
}
