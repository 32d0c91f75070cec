//! Counts pods by rule and domain, and checks whether one more pod may be placed.

use std::collections::BTreeMap;

use poolwright_terms::Taint;
use poolwright_terms::labels::HOSTNAME;

use crate::model::{Pod, Snapshot, TopologySpreadConstraint};
use crate::plan::place::topology::inputs::TopologyInputs;
use crate::plan::place::topology::places::{NONE, Place, Places};
use crate::plan::place::topology::relations::{PodRelations, Relations};
use crate::rules::labels::Labels;
use crate::rules::spread::domains::{DomainCounts, DomainSpread};

/// The reason why a pod may not be placed somewhere. The numbers are indices into the lists of [`Relations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The place has no value of this key.
    NoLabel(usize),
    /// This spread constraint would be violated.
    Uneven(usize),
    /// This affinity selects no pod there.
    Alone(usize),
    /// This anti-affinity term excludes it; `its_own` says whose term it is.
    Apart { anti: usize, its_own: bool },
}

/// The number of pods by rule and domain.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// Counts of spread constraints.
    spreads: Vec<DomainCounts>,
    /// Pods that all terms of an affinity select, by affinity and term.
    affinities: Vec<Vec<Vec<u64>>>,
    /// Whether any placed pod is selected, by affinity.
    somewhere: Vec<bool>,
    /// Pods that an anti-affinity term selects, and pods that have it, by term.
    subjects: Vec<Vec<u64>>,
    owners: Vec<Vec<u64>>,
}

impl Tally {
    /// Counts the existing nodes and their pods.
    pub fn new(relations: &Relations<'_>, places: &Places<'_>, snapshot: &Snapshot) -> Self {
        let zero = |key: usize| vec![0u64; places.values[key].len()];
        let domains = |key: usize| DomainCounts::new(places.values[key].len());
        let mut tally = Self {
            spreads: relations.spreads.iter().map(|spread| domains(spread.key)).collect(),
            affinities: relations
                .affinities
                .iter()
                .map(|set| set.keys.iter().map(|key| zero(*key)).collect())
                .collect(),
            somewhere: vec![false; relations.affinities.len()],
            subjects: relations.antis.iter().map(|anti| zero(anti.key)).collect(),
            owners: relations.antis.iter().map(|anti| zero(anti.key)).collect(),
        };
        let mut by_number = BTreeMap::new();
        let mut beside = snapshot.pods.beside();
        for (node, place) in &places.nodes {
            let eligible = tally.see(relations, place, &node.labels, &node.taints);
            by_number.extend(beside.on(&node.name).map(|there| (there.number, (place, eligible))));
        }
        for ((_, nodes), kind) in snapshot.pods.alike().zip(relations.of_alike()) {
            if kind == 0 {
                continue;
            }
            let kind = &relations.kinds[kind];
            for (node, count) in nodes.iter() {
                let Some((place, eligible)) = by_number.get(node) else { continue };
                let leaving = count.all - count.staying;
                tally.count_many(relations, kind, place, count.staying, |at| eligible[at]);
                tally.count_many(relations, kind, place, leaving, |_| false);
            }
        }
        tally
    }

    /// Adds a node, so that its domains exist for the spread constraints that include it. Returns whether each constraint
    /// includes it.
    pub fn see(
        &mut self,
        relations: &Relations<'_>,
        place: &Place,
        labels: &impl Labels,
        taints: &[Taint],
    ) -> Vec<bool> {
        let includes = |spread: &DomainSpread<'_>| spread.includes(|key| place[key] != NONE, labels, taints);
        let eligible: Vec<bool> = relations.spreads.iter().map(includes).collect();
        for (at, spread) in relations.spreads.iter().enumerate() {
            if eligible[at] {
                self.open(at, place[spread.key]);
            }
        }
        eligible
    }

    /// Adds a domain of a spread constraint.
    pub fn open(&mut self, spread: usize, value: u32) {
        if value != NONE {
            self.spreads[spread].open(value as usize);
        }
    }

    /// Adds a pod at a place, on a node that the spread constraints `seen` include.
    pub fn count(
        &mut self,
        relations: &Relations<'_>,
        kind: &PodRelations,
        place: &Place,
        seen: impl Fn(usize) -> bool,
    ) {
        self.count_many(relations, kind, place, 1, seen);
    }

    /// Adds pods with the same relations at a place.
    fn count_many(
        &mut self,
        relations: &Relations<'_>,
        kind: &PodRelations,
        place: &Place,
        number: u32,
        seen: impl Fn(usize) -> bool,
    ) {
        if number == 0 {
            return;
        }
        let add = |counts: &mut Vec<u64>, key: usize| {
            if place[key] != NONE {
                counts[place[key] as usize] += u64::from(number);
            }
        };
        for at in kind.counted.iter().copied().filter(|at| seen(*at)) {
            let value = place[relations.spreads[at].key];
            if value != NONE {
                self.spreads[at].add(value as usize, u64::from(number));
            }
        }
        for at in &kind.chosen {
            self.somewhere[*at] = true;
            for (term, key) in relations.affinities[*at].keys.iter().enumerate() {
                add(&mut self.affinities[*at][term], *key);
            }
        }
        for at in &kind.subject {
            add(&mut self.subjects[*at], relations.antis[*at].key);
        }
        for at in &kind.antis {
            add(&mut self.owners[*at], relations.antis[*at].key);
        }
    }

    /// Checks whether a pod may be placed at this place now, by the kube-scheduler's rules.
    pub fn check(
        &self,
        relations: &Relations<'_>,
        kind: &PodRelations,
        place: &Place,
    ) -> Result<(), Refusal> {
        if let Some(at) = kind.affinity {
            self.check_affinity(relations, at, kind, place)?;
        }
        self.check_all_but_affinity(relations, kind, place)
    }

    /// Does the same check without affinity.
    pub fn check_all_but_affinity(
        &self,
        relations: &Relations<'_>,
        kind: &PodRelations,
        place: &Place,
    ) -> Result<(), Refusal> {
        for at in &kind.spreads {
            self.check_spread(relations, *at, kind.counted.contains(at), place)?;
        }
        let blocked = |counts: &[Vec<u64>], at: &usize| {
            let value = place[relations.antis[*at].key];
            value != NONE && counts[*at][value as usize] > 0
        };
        if let Some(anti) = kind.antis.iter().find(|at| blocked(&self.subjects, at)) {
            return Err(Refusal::Apart { anti: *anti, its_own: true });
        }
        if let Some(anti) = kind.subject.iter().find(|at| blocked(&self.owners, at)) {
            return Err(Refusal::Apart { anti: *anti, its_own: false });
        }
        Ok(())
    }

    fn check_spread(
        &self,
        relations: &Relations<'_>,
        at: usize,
        counts_itself: bool,
        place: &Place,
    ) -> Result<(), Refusal> {
        let spread = &relations.spreads[at];
        let value = place[spread.key];
        if value == NONE {
            return Err(Refusal::NoLabel(spread.key));
        }
        let TopologySpreadConstraint { max_skew, min_domains, .. } = *spread.rule;
        let admits = self.spreads[at].admits(value as usize, counts_itself, max_skew, min_domains);
        if admits { Ok(()) } else { Err(Refusal::Uneven(at)) }
    }

    fn check_affinity(
        &self,
        relations: &Relations<'_>,
        at: usize,
        kind: &PodRelations,
        place: &Place,
    ) -> Result<(), Refusal> {
        // Nobody is there to be with, whatever the place.
        if !kind.is_seed() && self.is_nowhere(at) {
            return Err(Refusal::Alone(at));
        }
        let keys = &relations.affinities[at].keys;
        let missing = || keys.iter().filter(|key| place[**key] == NONE);
        // A new node gets a host name, so any other missing label is the reason to report.
        if let Some(key) =
            missing().find(|key| relations.keys[**key] != HOSTNAME).or_else(|| missing().next())
        {
            return Err(Refusal::NoLabel(*key));
        }
        let met =
            keys.iter().enumerate().all(|(term, key)| self.affinities[at][term][place[*key] as usize] > 0);
        if met || (kind.is_seed() && self.is_nowhere(at)) { Ok(()) } else { Err(Refusal::Alone(at)) }
    }

    /// Returns whether an affinity selects no placed pod.
    pub fn is_nowhere(&self, affinity: usize) -> bool {
        !self.somewhere[affinity]
    }

    /// Returns the number of pods at a place that spread constraints of or about a pod count. Fewer is better.
    pub fn crowd(&self, relations: &Relations<'_>, kind: &PodRelations, place: &Place) -> u64 {
        let all = kind.spreads.iter().chain(&kind.counted);
        let values =
            all.map(|at| (*at, place[relations.spreads[*at].key])).filter(|(_, value)| *value != NONE);
        values.map(|(at, value)| self.spreads[at].count(value as usize)).sum()
    }

    /// Returns the number of spread constraints of other pods that a pod at this place would violate.
    pub fn strain(&self, relations: &Relations<'_>, kind: &PodRelations, place: &Place) -> usize {
        let others = kind.counted.iter().filter(|at| !kind.spreads.contains(at));
        others.filter(|at| self.check_spread(relations, **at, true, place).is_err()).count()
    }

    /// Returns the counts of a spread constraint.
    pub fn of_spread(&self, spread: usize) -> &DomainCounts {
        &self.spreads[spread]
    }

    /// Returns the number of counted pods of a spread constraint, by existing domain.
    pub fn counts(&self, spread: usize) -> impl Iterator<Item = (usize, u64)> {
        self.spreads[spread].existing()
    }
}

/// Adds the pods with a place on an existing node.
pub(crate) fn settle(
    tally: &mut Tally,
    relations: &Relations<'_>,
    places: &Places<'_>,
    seen: &[Vec<bool>],
    settled: &[(usize, &Pod)],
) {
    for (room, pod) in settled {
        let kind = relations.of(&pod.key);
        if kind > 0 {
            tally.count(relations, &relations.kinds[kind], &places.rooms[*room], |at| seen[*room][at]);
        }
    }
}

/// Adds the DaemonSet pods that existing nodes and claims will get.
pub(crate) fn arrivals(tally: &mut Tally, inputs: &TopologyInputs<'_, '_>, places: &Places<'_>) {
    let TopologyInputs { relations, daemons, rooms, snapshot, .. } = *inputs;
    let nodes = places.nodes.iter().map(|(node, place)| {
        let pods = snapshot.pods.on_node(&node.name).map(AsRef::as_ref);
        (place, &node.labels, &node.taints, daemons.outstanding(&node.labels, &node.taints, pods))
    });
    let claims = rooms.all.iter().zip(&places.rooms).filter(|(room, _)| room.node.is_none());
    let claims = claims.map(|(room, place)| {
        (place, &room.labels, &room.taints, daemons.arriving(&room.labels, &room.taints, None))
    });
    for (place, labels, taints, outstanding) in nodes.chain(claims) {
        for set in daemons.sets(&outstanding) {
            let kind = relations.of_daemonset(&set.key);
            if kind > 0 {
                let includes =
                    |at: usize| relations.spreads[at].includes(|key| place[key] != NONE, labels, taints);
                tally.count(relations, &relations.kinds[kind], place, includes);
            }
        }
    }
}
