//! Preferences about other pods, over zones and other domains: chooses a domain for each pod.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use poolwright_terms::labels::HOSTNAME;

use crate::model::relaxed::WhyRelaxed;
use crate::model::{Operator, Pod, PodKey, PodSpec, Requirement};
use crate::plan::place::preferences::estimates::{Buyers, PriceEstimates};
use crate::plan::place::preferences::kept::{Group, KeptPreferences, PreferenceChoice, PreferenceInputs};
use crate::plan::place::preferences::messages;
use crate::plan::place::preferences::neighbours::{About, Neighbours};
use crate::plan::place::topology::DEARER;
use crate::rules::spread::domains::DomainCounts;
use crate::rules::spread::messages as spread_messages;

/// The aim of a preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// Pod affinity: be in a domain with such pods.
    Near,
    /// Pod anti-affinity: be in a domain without such pods.
    Apart,
    /// Topology spread, with this maximum skew.
    Even(u32),
}

/// A preference about other pods.
pub(crate) struct PodPreference<'a> {
    pub words: String,
    pub about: About<'a>,
    aim: Aim,
}

/// Returns the preferences of a pod in this namespace about other pods, strongest first.
pub(crate) fn of_pods<'a>(spec: &'a PodSpec, namespace: &'a str) -> Vec<PodPreference<'a>> {
    let Some(preferences) = spec.preferences.as_deref() else { return Vec::new() };
    let near = preferences.affinity.iter().map(|preference| (preference, Aim::Near));
    let mut terms: Vec<_> =
        near.chain(preferences.anti_affinity.iter().map(|preference| (preference, Aim::Apart))).collect();
    terms.sort_by_key(|(preference, _)| Reverse(preference.weight));
    let terms = terms.into_iter().map(|(preference, aim)| {
        let words = if aim == Aim::Near { messages::near(preference) } else { messages::apart(preference) };
        PodPreference { words, about: About::Term(&preference.term), aim }
    });
    let spreads = preferences.spreads.iter().map(|rule| PodPreference {
        words: spread_messages::preference(rule),
        about: About::Spread(namespace, rule),
        aim: Aim::Even(rule.max_skew),
    });
    terms.chain(spreads).collect()
}

/// Returns the preferences of a group about other pods, without preferences over hosts.
fn of_group<'a>(group: &Group<'a>) -> Vec<PodPreference<'a>> {
    let first: &'a Pod = group.pods[0];
    let mut preferences = of_pods(&first.spec, first.key.namespace());
    preferences.retain(|preference| preference.about.key() != HOSTNAME);
    preferences
}

/// Chooses a domain for each pod with such preferences.
pub(crate) fn choose<'a>(
    inputs: &PreferenceInputs<'_, 'a>,
    chosen: &mut PreferenceChoice<'a>,
    estimates: &mut PriceEstimates<'_, 'a>,
    groups: &[Group<'a>],
) -> BTreeMap<&'a PodKey, Vec<KeptPreferences>> {
    let mut found = BTreeMap::new();
    let mut preferring: Vec<(&Group<'a>, Vec<PodPreference<'a>>)> = groups
        .iter()
        .map(|group| (group, of_group(group)))
        .filter(|(_, preferences)| !preferences.is_empty())
        .collect();
    if preferring.is_empty() {
        return found;
    }
    let wanted =
        preferring.iter().flat_map(|(_, preferences)| preferences.iter().map(|preference| preference.about));
    let mut neighbours = Neighbours::new(&inputs.snapshot.namespaces, wanted);
    populate(inputs, groups, &mut neighbours);
    // Pods that prefer to be near other pods come after those pods.
    preferring
        .sort_by_key(|(_, preferences)| preferences.iter().any(|preference| preference.aim == Aim::Near));
    for (group, preferences) in &preferring {
        let mut keys: Vec<&str> = Vec::new();
        for preference in preferences {
            if !keys.contains(&preference.about.key()) {
                keys.push(preference.about.key());
            }
        }
        for key in keys {
            let of_key = preferences.iter().filter(|preference| preference.about.key() == key).collect();
            let mut street =
                DomainSearch { chosen, neighbours: &mut neighbours, group, key, preferences: of_key };
            for (pod, kept) in street.choose(estimates) {
                found.entry(&pod.key).or_insert_with(Vec::new).push(kept);
            }
        }
    }
    found
}

/// Counts the pods with known places.
fn populate<'a>(inputs: &PreferenceInputs<'_, 'a>, groups: &[Group<'a>], neighbours: &mut Neighbours<'a>) {
    neighbours.put_known(inputs.snapshot, inputs.rooms, inputs.settled);
    let mut kept: BTreeMap<&PodKey, Vec<Requirement>> = BTreeMap::new();
    for group in groups.iter().filter(|group| !group.kept.is_empty()) {
        kept.extend(group.pods.iter().map(|pod| (&pod.key, group.wanted())));
    }
    for want in inputs.open {
        let (pin, kept) = (inputs.assigned.pin(&want.pod.key), kept.get(&want.pod.key));
        if !pin.is_empty() || kept.is_some() {
            let all = || pin.iter().chain(kept.into_iter().flatten());
            neighbours.put(want.pod, |key| all().find_map(|requirement| fixed(requirement, key)));
        }
    }
}

/// Returns the only value of a label that a requirement allows, if there is one.
fn fixed(requirement: &Requirement, key: &str) -> Option<String> {
    match &requirement.operator {
        Operator::In(values) if requirement.key == key && values.len() == 1 => values.first().cloned(),
        _ => None,
    }
}

/// The choice of domains of one topology key, such as zones, for a group of pods.
struct DomainSearch<'t, 'a> {
    chosen: &'t mut PreferenceChoice<'a>,
    neighbours: &'t mut Neighbours<'a>,
    group: &'t Group<'a>,
    key: &'t str,
    preferences: Vec<&'t PodPreference<'a>>,
}

/// A domain, and the cost of the pods in it.
struct Domain {
    value: String,
    cost: u128,
}

impl<'a> DomainSearch<'_, 'a> {
    fn cost(&self, estimates: &mut PriceEstimates<'_, 'a>, count: u64, value: Option<&str>) -> Option<u128> {
        let crowd = self.group.total(count);
        let buyers =
            Buyers { signature: self.group.signature, requests: &self.group.one, count, crowd: &crowd };
        let mut wanted = self.group.wanted();
        wanted.extend(value.map(|value| self.is(value)));
        estimates.cost(buyers, &wanted)
    }

    fn is(&self, value: &str) -> Requirement {
        Requirement { key: self.key.to_owned(), operator: Operator::In([value.to_owned()].into()) }
    }

    /// Returns the domains where the pods cost at most [`DEARER`] times as much as in the cheapest domain.
    fn domains(&self, estimates: &mut PriceEstimates<'_, 'a>) -> Vec<Domain> {
        let none = Buyers {
            signature: self.group.signature,
            requests: &self.group.one,
            count: 1,
            crowd: &self.group.one,
        };
        let values = estimates.values(none, &self.group.wanted(), self.key);
        let each = (self.group.pods.len() as u64).div_ceil(values.len().max(1) as u64);
        let mut domains: Vec<Domain> = values
            .into_iter()
            .filter_map(|value| Some(Domain { cost: self.cost(estimates, each, Some(&value))?, value }))
            .collect();
        let most = domains.iter().map(|domain| domain.cost).min().unwrap_or(0).saturating_mul(DEARER);
        domains.retain(|domain| domain.cost <= most);
        domains
    }

    /// Chooses a domain for each pod that needs one.
    fn choose(&mut self, estimates: &mut PriceEstimates<'_, 'a>) -> Vec<(&'a Pod, KeptPreferences)> {
        let (group, preferences) = (self.group, self.preferences.clone());
        let domains = self.domains(estimates);
        if domains.is_empty() {
            for preference in preferences {
                self.chosen.drop_for(&preference.words, WhyRelaxed::NotOffered, &group.pods);
            }
            return Vec::new();
        }
        let rules: Vec<usize> =
            preferences.iter().map(|preference| self.neighbours.of(preference.about)).collect();
        if self.is_even_anyway(&domains, &rules) {
            return Vec::new();
        }
        let mut parts: Vec<u64> = vec![0; domains.len()];
        let mut placed: Vec<(&'a Pod, usize, Vec<String>)> = Vec::new();
        let mut unmet: Vec<(&str, WhyRelaxed, &'a Pod)> = Vec::new();
        for pod in &group.pods {
            let about = self.neighbours.about(pod);
            let mut left: Vec<usize> = (0..domains.len()).collect();
            let mut met = Vec::new();
            for (preference, rule) in preferences.iter().zip(&rules) {
                match self.meeting(preference.aim, *rule, about.contains(rule), &domains, &left) {
                    Ok(all) => {
                        left = all;
                        met.push(preference.words.clone());
                    }
                    Err(why) => unmet.push((&preference.words, why, pod)),
                }
            }
            if met.is_empty() {
                continue;
            }
            let crowd = |domain: usize| -> u64 {
                rules.iter().map(|rule| self.neighbours.count(*rule, &domains[domain].value)).sum()
            };
            let near = preferences.iter().any(|preference| preference.aim == Aim::Near);
            // Of equally cheap domains, spread pods go to the one with the fewest pods. Affinity has no such rule.
            let Some(best) = left
                .iter()
                .copied()
                .min_by_key(|domain| (domains[*domain].cost, if near { 0 } else { crowd(*domain) }, *domain))
            else {
                continue;
            };
            let value = &domains[best].value;
            self.neighbours.put(pod, |key| (key == self.key).then(|| value.clone()));
            parts[best] += 1;
            placed.push((pod, best, met));
        }
        // Pods in different domains no longer share nodes, so they may need many more nodes.
        let count = placed.len() as u64;
        let apart = parts.iter().zip(&domains).filter(|(part, _)| **part > 0);
        let apart: Option<u128> =
            apart.map(|(part, domain)| self.cost(estimates, *part, Some(&domain.value))).sum();
        let together = self.cost(estimates, count, None);
        if count > 0 && apart > together.map(|cost| cost.saturating_mul(DEARER)) {
            for (pod, domain, _) in placed {
                self.neighbours.take(pod, self.key, &domains[domain].value);
            }
            for preference in preferences {
                self.chosen.drop_for(&preference.words, WhyRelaxed::TooDear, &group.pods);
            }
            return Vec::new();
        }
        for (preference, why, pod) in unmet {
            self.chosen.drop_for(preference, why, &[pod]);
        }
        let kept = |(pod, domain, met): (&'a Pod, usize, Vec<String>)| {
            (pod, KeptPreferences { requirements: vec![self.is(&domains[domain].value)], preferences: met })
        };
        placed.into_iter().map(kept).collect()
    }

    /// Returns whether the pods keep the maximum skew however they are distributed.
    fn is_even_anyway(&self, domains: &[Domain], rules: &[usize]) -> bool {
        let even = |(preference, rule): (&&PodPreference<'a>, &usize)| {
            let Aim::Even(skew) = preference.aim else { return false };
            let counts = domains.iter().map(|domain| self.neighbours.count(*rule, &domain.value));
            DomainCounts::of(counts).admits_anywhere(self.group.pods.len() as u64, skew)
        };
        domains.len() < 2 && self.preferences.iter().all(|preference| matches!(preference.aim, Aim::Even(_)))
            || self.preferences.iter().zip(rules).all(even)
    }

    /// Returns the remaining domains where a preference is met, or the reason why there are none.
    fn meeting(
        &self,
        aim: Aim,
        rule: usize,
        own: bool,
        domains: &[Domain],
        left: &[usize],
    ) -> Result<Vec<usize>, WhyRelaxed> {
        let count = |domain: usize| self.neighbours.count(rule, &domains[domain].value);
        let among = |good: &dyn Fn(usize) -> bool| -> Vec<usize> {
            left.iter().copied().filter(|domain| good(*domain)).collect()
        };
        let some = |all: Vec<usize>, otherwise| if all.is_empty() { Err(otherwise) } else { Ok(all) };
        let elsewhere = |good: &dyn Fn(usize) -> bool| (0..domains.len()).any(good);
        match aim {
            Aim::Near if !self.neighbours.are_anywhere(rule) => {
                if own {
                    Ok(left.to_vec())
                } else {
                    Err(WhyRelaxed::NoSuchPod)
                }
            }
            Aim::Near => {
                let there = |domain: usize| count(domain) > 0;
                let why = if elsewhere(&there) {
                    WhyRelaxed::Contradicted
                } else {
                    // The domains with such pods have no offerings, or only offerings that are too expensive.
                    WhyRelaxed::NotOffered
                };
                some(among(&there), why)
            }
            Aim::Apart => {
                let free = |domain: usize| count(domain) == 0;
                let why = if elsewhere(&free) { WhyRelaxed::Contradicted } else { WhyRelaxed::Crowded };
                some(among(&free), why)
            }
            Aim::Even(skew) => {
                let counts = DomainCounts::of((0..domains.len()).map(count));
                let even = |domain: usize| counts.admits(domain, own, skew, None);
                some(among(&even), WhyRelaxed::Contradicted)
            }
        }
    }
}
