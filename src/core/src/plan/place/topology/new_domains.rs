//! New domains: domains without nodes in which a node could be bought. A spread constraint counts only domains with nodes, so a plan
//! may leave such a domain out.
//!
//! At first no new domain is left out, so that pods are spread widely. A later attempt leaves some out, the dearest first, and counts
//! if it is cheaper. Without `minDomains`, the fullest domain gets no more pods than if none was left out. So the loss of one domain
//! stops no more pods at worst.
//!
//! This wish gives way if pods would be left out, or would need nodes of a much dearer kind. `plan/fewer_domains.rs` then says which
//! new domains are the only ones that count, and which constraints have fewer than their `minDomains`.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_terms::Taint;
use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::labels::CAPACITY_TYPE;

use crate::model::plan::PlannedClaim;
use crate::model::{PodSpec, Snapshot, TopologySpreadConstraint};
use crate::plan::left_by::LeftBy;
use crate::plan::place::topology::inputs::TopologyInputs;
use crate::plan::place::topology::places::{NONE, Places};
use crate::plan::place::topology::relations::Relations;
use crate::plan::place::topology::tally::Tally;
use crate::rules::labels::Labels;
use crate::rules::pin::Pin;
use crate::supply::offerings::{Admissions, Supply};

/// The domains in which nodes could be bought, by spread constraint.
#[derive(Debug, Default)]
pub(crate) struct NewDomains {
    by_spread: BTreeMap<usize, Offered>,
}

#[derive(Debug, Default)]
struct Offered {
    /// The number of waiting pods that the constraint counts.
    pods: u64,
    /// The lowest cost of a pod in each domain.
    costs: BTreeMap<u32, u128>,
}

impl NewDomains {
    /// Adds a waiting pod that a constraint counts.
    pub fn expect(&mut self, spread: usize) {
        self.by_spread.entry(spread).or_default().pods += 1;
    }

    /// Adds a domain for a constraint, with the cost of a pod there.
    pub fn offer(&mut self, spread: usize, value: u32, cost: u128) {
        if value != NONE {
            let costs = &mut self.by_spread.entry(spread).or_default().costs;
            let known = costs.entry(value).or_insert(cost);
            *known = cost.min(*known);
        }
    }

    /// Opens the domains that an earlier attempt used, and these domains, except those in which an earlier attempt could buy nothing
    /// and those that are left out.
    pub fn open(self, inputs: &TopologyInputs<'_, '_>, places: &Places<'_>, tally: &mut Tally) -> LeftOut {
        let TopologyInputs { relations, lessons, .. } = *inputs;
        // The domains that an earlier attempt used and that have no nodes.
        let mut opened: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
        for (key, value) in &lessons.opened {
            for (at, spread) in relations.spreads.iter().enumerate() {
                if relations.keys[spread.key] == key
                    && let Some(value) = places.value(spread.key, value)
                    && !tally.of_spread(at).exists(value as usize)
                {
                    opened.entry(at).or_default().insert(value);
                }
            }
        }
        let mut left_out = LeftOut::default();
        for (at, Offered { mut pods, costs }) in self.by_spread {
            let spread = &relations.spreads[at];
            let (key, names) = (relations.keys[spread.key], &places.values[spread.key]);
            let is_new = |value: u32, name: &str| {
                !tally.of_spread(at).exists(value as usize)
                    && (lessons.closed.is_empty()
                        || !lessons.closed.contains(&(key.to_owned(), name.to_owned())))
            };
            let mut opened = opened.remove(&at).unwrap_or_default();
            // Those that an earlier attempt used come first, because they cannot be left out.
            let mut new: Vec<(bool, u128, &str, u32)> = Vec::new();
            for (value, cost) in costs {
                let name = names[value as usize].as_str();
                if is_new(value, name) {
                    new.push((!opened.remove(&value), cost, name, value));
                }
            }
            new.sort_unstable();
            let (mut existing, offered) = (0, new.len());
            for (_, count) in tally.counts(at) {
                existing += 1;
                pods += count;
            }
            for value in &opened {
                pods += tally.of_spread(at).count(*value as usize);
                tally.open(at, *value);
            }
            let all = (existing + opened.len() + offered) as u64;
            let optional = new.iter().filter(|(is_optional, ..)| *is_optional).count();
            // Who spreads over capacity types wants nodes of each.
            let most = if key == CAPACITY_TYPE { 0 } else { dispensable(spread.rule, all, pods) };
            let most = most.min(optional as u64);
            left_out.most = left_out.most.max(most as usize);
            let fewer = most.min(lessons.fewer_domains as u64);
            let dropped = if fewer == 0 { 0 } else { all - all.min(pods) + fewer };
            let kept = offered - (dropped as usize).min(optional);
            let only = lessons.only.get(&at);
            let choice = left_out.by_spread.entry(at).or_default();
            (choice.existing, choice.is_narrowed) = (existing, only.is_some());
            choice.opened = opened.iter().map(|value| names[*value as usize].clone()).collect();
            choice.shut = lessons.kept_out.get(&at).cloned().unwrap_or_default();
            choice.few = lessons.few.get(&at).cloned();
            for (number, (is_optional, _, name, value)) in new.into_iter().enumerate() {
                if !is_optional || (number < kept && only.is_none_or(|only| only.contains(name))) {
                    tally.open(at, value);
                    choice.open.push(name.to_owned());
                } else {
                    if choice.is_narrowed {
                        choice.shut.insert(name.to_owned());
                    }
                    choice.left_out.insert(value, name.to_owned());
                }
            }
        }
        for (at, values) in opened {
            for value in values {
                tally.open(at, value);
            }
        }
        left_out
    }
}

/// Returns how many of the domains that these pods would be in a constraint can do without. `all` is the number of domains.
fn dispensable(rule: &TopologySpreadConstraint, all: u64, pods: u64) -> u64 {
    let used = all.min(pods);
    let wanted = match rule.min_domains {
        // The API takes 1 for the absence of `minDomains`.
        None | Some(0 | 1) => pods.div_ceil(pods.div_ceil(all.max(1)).max(1)),
        Some(wanted) => u64::from(wanted),
    };
    used.saturating_sub(wanted)
}

/// The new domains that an attempt leaves out, and those that it opens.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftOut {
    pub by_spread: BTreeMap<usize, DomainChoice>,
    /// The most domains that an attempt could leave out for one constraint.
    pub most: usize,
}

/// The domains of one spread constraint.
#[derive(Clone, Debug, Default)]
pub(crate) struct DomainChoice {
    /// The number of domains that count anyway, because they have nodes.
    pub existing: usize,
    /// Further domains that count only because an earlier attempt had new nodes there for other pods.
    pub opened: BTreeSet<String>,
    /// The new domains that count, the cheapest first.
    pub open: Vec<String>,
    /// The new domains that are left out.
    pub left_out: BTreeMap<u32, String>,
    /// Whether an earlier attempt said which new domains are the only ones that count.
    pub is_narrowed: bool,
    /// If so, the domains that other pods keep out of.
    pub shut: BTreeSet<String>,
    /// If there are fewer domains than `minDomains`: the reason of pods that no domain takes. None may open another domain.
    pub few: Option<LeftBy>,
}

impl LeftOut {
    /// Returns whether a domain is left out for a constraint.
    pub fn contains(&self, spread: usize, value: u32) -> bool {
        self.by_spread.get(&spread).is_some_and(|choice| choice.left_out.contains_key(&value))
    }

    /// Returns whether pods with a constraint keep out of all domains that do not count, so that there are fewer than `minDomains`.
    pub fn has_few(&self, spread: usize) -> bool {
        self.by_spread.get(&spread).is_some_and(|choice| choice.few.is_some())
    }

    /// Returns whether a node of a plan, or one that is ordered already, may be launched in a domain that is left out. Then the domain
    /// would count after all, and pods could wait for a node there.
    pub fn may_get_nodes(
        &self,
        relations: &Relations<'_>,
        snapshot: &Snapshot,
        planned: &[PlannedClaim],
    ) -> bool {
        if self.by_spread.values().all(|choice| choice.left_out.is_empty()) {
            return false;
        }
        let planned = planned.iter().map(|claim| {
            (&claim.node_class, &claim.pool, &claim.offerings, &claim.labels, claim.taints.as_slice())
        });
        let ordered = snapshot.claims.values().filter(|claim| claim.launched.is_none());
        let ordered = ordered.map(|claim| {
            (&claim.node_class, &claim.pool, &claim.offerings, &claim.labels, claim.taints.as_slice())
        });
        planned.chain(ordered).any(|(node_class, pool, offerings, of_claim, taints)| {
            let Some(Ok(catalogue)) = snapshot.catalogues.get(node_class) else { return false };
            offerings.iter().filter_map(|ranked| catalogue.offering(&ranked.offering)).any(|offering| {
                let mut labels = of_claim.clone();
                labels.extend(catalogue.node_labels(offering));
                labels.insert(NODEPOOL_LABEL.to_owned(), pool.0.clone());
                self.includes(relations, &labels, taints, |choice, domain| {
                    choice.left_out.values().any(|left_out| left_out == domain)
                })
            })
        })
    }

    /// Returns whether a new domain of a topology key counts for every constraint over this key.
    pub fn is_open(&self, relations: &Relations<'_>, key: &str, value: &str) -> bool {
        let spreads = relations.spreads.iter().enumerate();
        let mut of_key = spreads.filter(|(_, spread)| relations.keys[spread.key] == key);
        of_key.all(|(at, _)| {
            let choice = self.by_spread.get(&at);
            choice.is_some_and(|choice| choice.open.iter().any(|open| open == value))
        })
    }

    /// Returns whether a node with these labels and taints would make a domain count that `is_out` of a constraint's choice.
    fn includes(
        &self,
        relations: &Relations<'_>,
        labels: &impl Labels,
        taints: &[Taint],
        is_out: impl Fn(&DomainChoice, &str) -> bool,
    ) -> bool {
        let has = |key: usize| labels.label(relations.keys[key]).is_some();
        self.by_spread.iter().any(|(at, choice)| {
            let spread = &relations.spreads[*at];
            let own = labels.label(relations.keys[spread.key]);
            own.is_some_and(|own| is_out(choice, own)) && spread.includes(has, labels, taints)
        })
    }

    /// Keeps pods without a pin off offerings in domains that should not count, because any node there would make the domain count.
    /// Pods that only these offerings admit keep them: a limit may leave such pods out, but they would be told that nothing fits them.
    /// Returns whether a pod that is kept off could have used such an offering.
    pub fn keep_out(
        &self,
        relations: &Relations<'_>,
        supply: &Supply<'_>,
        signatures: &[(&PodSpec, &Pin)],
        admissions: &mut Admissions,
    ) -> bool {
        if self.by_spread.values().all(|choice| choice.shut.is_empty()) {
            return false;
        }
        let is_shut = |choice: &DomainChoice, domain: &str| choice.shut.contains(domain);
        let mut out: Vec<BTreeSet<usize>> = Vec::with_capacity(supply.pools.len());
        for (pool, offered) in supply.pools.iter().enumerate() {
            let taints = &offered.pool.taints;
            let offerings = offered.offers.iter().map(|offer| offer.offering);
            let is_out = |offering: &usize| {
                let labels = supply.labels(pool, *offering);
                self.includes(relations, &labels, taints, is_shut)
            };
            out.push(offerings.filter(is_out).collect());
        }
        let mut is_needed = false;
        for (signature, (_, pin)) in signatures.iter().enumerate() {
            let has_others = || {
                supply.pools.iter().zip(&out).enumerate().any(|(pool, (offered, out))| {
                    let mut offerings = offered.offers.iter().map(|offer| offer.offering);
                    offerings.any(|offering| {
                        !out.contains(&offering) && admissions.admits(pool, signature, offering)
                    })
                })
            };
            if !pin.is_empty() || !has_others() {
                continue;
            }
            for (pool, out) in out.iter().enumerate() {
                is_needed |= admissions.withdraw(pool, signature, out);
            }
        }
        is_needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_min_domains_the_fullest_domain_gets_no_more_pods_because_others_are_left_out() {
        for all in 1..=8_u64 {
            for pods in 0..=40_u64 {
                let left_out = dispensable(&TopologySpreadConstraint::default(), all, pods);
                let rest = all.min(pods) - left_out;
                assert!(
                    pods == 0 || pods.div_ceil(rest) == pods.div_ceil(all),
                    "{pods} in {all}: {left_out}"
                );
            }
        }
        let of = |min_domains, all, pods| {
            dispensable(
                &TopologySpreadConstraint { min_domains, ..TopologySpreadConstraint::default() },
                all,
                pods,
            )
        };
        assert_eq!([of(None, 5, 8), of(Some(1), 5, 8), of(None, 5, 5)], [1, 1, 0]);
        assert_eq!(
            [of(Some(4), 5, 5), of(Some(2), 5, 5), of(Some(6), 5, 5), of(Some(2), 5, 3)],
            [1, 3, 0, 1]
        );
    }
}
