//! The rules on labels that unplaced pods may relax if offerings of a pool meet each of them, but none meets all.

use std::collections::BTreeMap;

use crate::model::PodSpec;
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::beyond::{Beyond, nearest_beyond};
use crate::plan::unplaced::inputs::UnplacedInputs;
use crate::plan::unplaced::wants::{Want, met, wants};
use crate::rules;
use crate::supply::offerings::PoolOffering;

/// What to relax. Each change was tried on the offerings of the pool.
pub(crate) struct Relaxed {
    /// The alternatives, each with the indices of the rules to relax together. Empty if one offering meets all rules.
    pub alternatives: Vec<Vec<usize>>,
    /// The limits that keep the nodes away all the same, with what one node uses of each.
    pub limits: Vec<(u32, u64)>,
}

impl UnplacedInputs<'_, '_> {
    /// Returns what the pods may relax to get a node of the pool: as few rules, and as few limits to raise besides, as possible. Returns
    /// `None` if no offering of the pool meets one of the rules.
    pub(crate) fn relaxed(&self, at: usize, class: &PodClass<'_>) -> Option<Relaxed> {
        let alternatives = wants(class.spec);
        let nearest = self.all_met(at, &alternatives)?;
        let all = self.by_broken_rules(at, class, nearest, |offer| self.would_hold(at, offer, class));
        // What else keeps the pods off all of the pool's offerings is told besides.
        let all = if all.is_empty() { self.by_broken_rules(at, class, nearest, |_| true) } else { all };
        if all.contains_key::<[usize]>(&[]) {
            return Some(Relaxed { alternatives: Vec::new(), limits: Vec::new() });
        }
        let limits = |beyond: Vec<Beyond>| nearest_beyond(&beyond, None).unwrap_or_default();
        let changes: Vec<_> = all.into_iter().map(|(rules, beyond)| (rules, limits(beyond))).collect();
        let least = changes.iter().min_by_key(|(rules, limits)| (rules.len() + limits.len(), limits.len()));
        let Some((rules, limits)) = least else {
            // Another rule excludes all offerings, such as one of its volumes. It is told before these.
            let all: Vec<usize> = (0..nearest.len()).collect();
            let alternatives = if all.is_empty() { Vec::new() } else { vec![all] };
            return Some(Relaxed { alternatives, limits: Vec::new() });
        };
        let alike = changes.iter().filter(|(other, beyond)| other.len() == 1 && beyond == limits);
        let alternatives = match rules.len() {
            1 => alike.map(|(rules, _)| rules.clone()).collect(),
            _ => vec![rules.clone()],
        };
        Some(Relaxed { alternatives, limits: limits.clone() })
    }

    /// Returns the offerings of the pool by the rules that they break: the price of each, and the limits that a node of it is beyond.
    fn by_broken_rules(
        &self,
        at: usize,
        class: &PodClass<'_>,
        wanted: &[Want<'_>],
        counts: impl Fn(&PoolOffering) -> bool,
    ) -> BTreeMap<Vec<usize>, Vec<Beyond>> {
        let others = without_own_labels(class.spec);
        let mut all: BTreeMap<Vec<usize>, Vec<Beyond>> = BTreeMap::new();
        for offer in self.supply.pools[at].offers.iter().filter(|offer| counts(offer)) {
            let Some(broken) = self.broken(at, &others, wanted, offer) else { continue };
            let beyond = (self.supply.price_in_time(at, offer), self.beyond_one(at, offer, class));
            all.entry(broken).or_default().push(beyond);
        }
        all
    }

    /// Returns the indices of the rules that an offering breaks, as [`Relaxed`] has them; `None` if another rule excludes it.
    pub(crate) fn breaks(&self, at: usize, class: &PodClass<'_>, offer: &PoolOffering) -> Option<Vec<usize>> {
        let alternatives = wants(class.spec);
        let nearest = self.all_met(at, &alternatives)?;
        self.broken(at, &without_own_labels(class.spec), nearest, offer)
    }

    fn broken(
        &self,
        at: usize,
        others: &PodSpec,
        wanted: &[Want<'_>],
        offer: &PoolOffering,
    ) -> Option<Vec<usize>> {
        let labels = self.supply.labels(at, offer.offering);
        rules::check_labels(others, &labels).ok()?;
        let breaks = |(_, want): &(usize, &Want<'_>)| !rules::matches(&want.requirement, &labels);
        Some(wanted.iter().enumerate().filter(breaks).map(|(index, _)| index).collect())
    }

    /// Returns the first of the alternatives whose rules are each met by an offering of the pool.
    fn all_met<'w, 'p>(&self, at: usize, alternatives: &'w [Vec<Want<'p>>]) -> Option<&'w Vec<Want<'p>>> {
        alternatives.iter().find(|all| all.iter().all(|want| met(want, at, self.supply)))
    }

    /// Returns whether an offering can be bought and would hold the pods if they had no rules on labels.
    pub(crate) fn would_hold(&self, at: usize, offer: &PoolOffering, class: &PodClass<'_>) -> bool {
        offer.availability.is_sold()
            && class.requests.fits(&self.supply.capacities[offer.capacity])
            && self.grants(at, offer, class)
            && self.colocation.admits(class.profile, &self.supply.residents[offer.residents])
    }
}

/// Returns what a pod asks for without its own rules on labels.
pub(crate) fn without_own_labels(spec: &PodSpec) -> PodSpec {
    PodSpec { node_selector: BTreeMap::new(), node_affinity: None, ..spec.clone() }
}
