//! The audit of topology checks the rules of every planned pod about hosts, zones and other domains, with all planned pods in
//! place. It shares no code with [`crate::plan::place::topology`], which chose the places, except for the scheduling rules.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use poolwright_terms::Taint;
use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::labels::HOSTNAME;

use crate::model::plan::{PlacedPod, PlannedClaim, Target};
use crate::model::{Claim, Pod, PodAffinityTerm, PodKey, PodSpec, Snapshot};
use crate::rules;
use crate::rules::claim_node::labels_of_claim;
use crate::rules::identity::Identity;
use crate::rules::labels::Labels;
use crate::rules::selector_index::SelectorIndex;
use crate::rules::spread::audit::{self, Planned};
use crate::rules::spread::constraint::{CountsAlike, includes};
use crate::supply::daemonsets::DaemonSets;

/// A violated rule of a planned pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub pod: PodKey,
    /// The message.
    pub sentence: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pod {} {}", self.pod, self.sentence)
    }
}

/// An existing or planned node.
struct AuditedNode<'a> {
    /// Its name, if it exists.
    name: Option<&'a str>,
    labels: LabelSource<'a>,
    taints: &'a [Taint],
    /// Counts of pods by index into [`AuditedCluster::identities`]: all pods, and those that are not being deleted.
    pods: BTreeMap<usize, (u64, u64)>,
}

impl<'a> AuditedNode<'a> {
    fn new(name: Option<&'a str>, labels: LabelSource<'a>, taints: &'a [Taint]) -> Self {
        Self { name, labels, taints, pods: BTreeMap::new() }
    }
}

/// The labels of a node.
enum LabelSource<'a> {
    /// An existing node.
    Node(&'a BTreeMap<String, String>),
    /// An existing node, with labels that its claim promises in addition.
    ClaimLabels(&'a BTreeMap<String, String>, ClaimLabels<'a>),
    /// A planned node.
    Planned(BTreeMap<String, String>),
}

/// The labels that a claim promises. They are computed only if a label is missing on the node.
struct ClaimLabels<'a> {
    snapshot: &'a Snapshot,
    claim: &'a Claim,
    all: OnceCell<BTreeMap<String, String>>,
}

impl Labels for LabelSource<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        let own = match self {
            Self::Node(labels) | Self::ClaimLabels(labels, _) => *labels,
            Self::Planned(labels) => labels,
        };
        own.label(key).or_else(|| {
            let Self::ClaimLabels(_, ClaimLabels { snapshot, claim, all }) = self else { return None };
            all.get_or_init(|| labels_of_claim(snapshot, claim, None)).label(key)
        })
    }
}

/// The traits of pods that rules of other pods use: namespace, labels and anti-affinity terms.
type PodTraits<'a> = (&'a str, &'a BTreeMap<String, String>, &'a Vec<PodAffinityTerm>);

/// A pod that is planned.
struct Newcomer<'a> {
    pod: &'a Pod,
    identity: usize,
    spot: usize,
}

/// A filter for the pods that are relevant to planned pods: pods that a rule of a planned pod selects, and pods that exclude a
/// planned pod.
struct RelevantPods<'a> {
    /// One identity for each distinct kind of planned pod.
    newcomers: Vec<Identity<'a>>,
}

/// The number of kinds of planned pods above which all pods count as relevant.
const MOST_SORTS: usize = 64;

impl<'a> RelevantPods<'a> {
    fn new(snapshot: &'a Snapshot, claims: &'a [PlannedClaim], placements: &'a [PlacedPod]) -> Self {
        let planned = claims.iter().flat_map(|claim| &claim.planned_pods);
        let planned = planned.chain(placements.iter().map(|placement| &placement.pod));
        let mut sorts = BTreeMap::new();
        for pod in planned.filter_map(|key| snapshot.pods.get(key)) {
            let asks = (&pod.spec.spreads, &pod.spec.affinity, &pod.spec.anti_affinity);
            let sort = (pod.key.namespace(), &pod.labels, asks);
            sorts.entry(sort).or_insert_with(|| Identity::of_pod(pod, &snapshot.namespaces));
        }
        Self { newcomers: sorts.into_values().collect() }
    }

    fn matters(&self, other: Identity<'_>) -> bool {
        let to = |newcomer: &Identity<'_>| {
            let spec = newcomer.spec;
            let mut terms = spec.affinity.iter().chain(&spec.anti_affinity);
            terms.any(|term| rules::selects(term, other))
                || spec.spreads.iter().any(|rule| rules::counts(rule, newcomer.namespace, other))
                || other.spec.anti_affinity.iter().any(|term| rules::selects(term, *newcomer))
        };
        self.newcomers.len() > MOST_SORTS || self.newcomers.iter().any(to)
    }
}

#[derive(Default)]
struct AuditedCluster<'a> {
    spots: Vec<AuditedNode<'a>>,
    identities: Vec<Identity<'a>>,
    known: BTreeMap<PodTraits<'a>, usize>,
    newcomers: Vec<Newcomer<'a>>,
}

/// The affinity terms of waiting pods, their node, and their identity.
type WaitingAffinity<'a> = (&'a [PodAffinityTerm], usize, usize);

/// The domains that hold pods selected by affinity terms.
struct Arrived<'w, 'a> {
    world: &'w AuditedCluster<'a>,
    about: &'w BTreeMap<&'w [PodAffinityTerm], BTreeSet<usize>>,
    /// The domains, by terms and index of the term.
    values: BTreeMap<(&'w [PodAffinityTerm], usize), BTreeSet<&'w str>>,
}

impl<'w> Arrived<'w, '_> {
    fn arrive(&mut self, spot: usize, identity: usize) {
        for (terms, _) in self.about.iter().filter(|(_, about)| about.contains(&identity)) {
            for (at, term) in terms.iter().enumerate() {
                let value = self.world.value(spot, &term.topology_key);
                self.values.entry((*terms, at)).or_default().extend(value);
            }
        }
    }

    /// Returns whether the pods that this affinity requires have arrived.
    fn meets(&self, (terms, spot, _): &WaitingAffinity<'w>) -> bool {
        terms.iter().enumerate().all(|(at, term)| {
            let value = self.world.value(*spot, &term.topology_key);
            let values = self.values.get(&(*terms, at));
            value.is_some_and(|value| values.is_some_and(|all| all.contains(value)))
        })
    }

    /// Returns whether a pod with this affinity may be the first of its group.
    fn begins(&self, (terms, spot, identity): &WaitingAffinity<'w>) -> bool {
        let nowhere = |at| self.values.get(&(*terms, at)).is_none_or(BTreeSet::is_empty);
        self.about[terms].contains(identity)
            && (0..terms.len()).all(nowhere)
            && terms.iter().all(|term| self.world.value(*spot, &term.topology_key).is_some())
    }
}

/// Returns all violations of a plan.
pub(crate) fn violations(
    snapshot: &Snapshot,
    claims: &[PlannedClaim],
    placements: &[PlacedPod],
) -> Vec<Violation> {
    let asks = |spec: &PodSpec| !spec.affinity.is_empty() || !spec.spreads.is_empty();
    let mut bound = snapshot.pods.alike().map(|(look, _)| &look.example().spec);
    let mut waiting = snapshot.pods.unbound().map(|pod| &pod.spec);
    if !bound.any(|spec| !spec.anti_affinity.is_empty())
        && !waiting.any(|spec| !spec.anti_affinity.is_empty() || asks(spec))
    {
        return alternatives(snapshot, claims);
    }
    if placements.is_empty() && claims.iter().all(|claim| claim.planned_pods.is_empty()) {
        return alternatives(snapshot, claims);
    }
    let world = AuditedCluster::new(snapshot, claims, placements);
    let mut found = world.spreads();
    found.extend(world.affinities());
    found.extend(world.antis());
    found.extend(alternatives(snapshot, claims));
    found
}

/// Checks the alternatives of claims. Any offering of a claim may be launched, so all offerings must be in the same domains of
/// its pods' rules.
fn alternatives(snapshot: &Snapshot, claims: &[PlannedClaim]) -> Vec<Violation> {
    let mut found = Vec::new();
    for claim in claims.iter().filter(|claim| claim.offerings.len() > 1) {
        let Some(Ok(catalogue)) = snapshot.catalogues.get(&claim.node_class) else { continue };
        let offerings = claim.offerings.iter().filter_map(|ranked| catalogue.offering(&ranked.offering));
        let labels: Vec<_> = offerings.map(|offering| catalogue.node_labels(offering)).collect();
        for pod in claim.planned_pods.iter().filter_map(|key| snapshot.pods.get(key)) {
            let spreads = pod.spec.spreads.iter().map(|rule| &rule.topology_key);
            let terms = pod.spec.affinity.iter().chain(&pod.spec.anti_affinity);
            let mut keys = spreads.chain(terms.map(|term| &term.topology_key));
            if let Some(key) =
                keys.find(|key| labels.iter().any(|other| other.get(*key) != labels[0].get(*key)))
            {
                let sentence =
                    format!("has a rule over `{key}`, in which the offerings of claim {} differ", claim.name);
                found.push(Violation { pod: pod.key.clone(), sentence });
            }
        }
    }
    found
}

/// Looks up a key in a sorted list.
fn spot_of<K: Ord + Copy>(spots: &[(K, usize)], key: K) -> Option<usize> {
    spots.binary_search_by_key(&key, |(known, _)| *known).ok().map(|at| spots[at].1)
}

impl<'a> AuditedCluster<'a> {
    fn new(snapshot: &'a Snapshot, claims: &'a [PlannedClaim], placements: &'a [PlacedPod]) -> Self {
        let mut world = Self::default();
        let matter = RelevantPods::new(snapshot, claims, placements);
        // These lists index the nodes by name and by number.
        let mut by_node: Vec<(&str, usize)> = Vec::with_capacity(snapshot.nodes.len());
        let mut by_number: Vec<(u32, usize)> = Vec::with_capacity(snapshot.nodes.len());
        let mut by_claim: BTreeMap<&str, usize> = BTreeMap::new();
        let mut beside = snapshot.pods.beside();
        for node in snapshot.nodes.values() {
            by_node.push((&node.name, world.spots.len()));
            by_number.extend(beside.on(&node.name).map(|there| (there.number, world.spots.len())));
            world.spots.push(AuditedNode::new(
                Some(&node.name),
                LabelSource::Node(&node.labels),
                &node.taints,
            ));
        }
        by_number.sort_unstable();
        for claim in snapshot.claims.values() {
            let id = claim.launched.as_ref().map(|launched| launched.provider_id.as_str());
            let by_id = id.and_then(|id| snapshot.nodes.with_provider_id(id));
            let node = by_id.or_else(|| snapshot.nodes.get(claim.node_name.as_ref()?));
            let at = match node.and_then(|node| spot_of(&by_node, node.name.as_str())) {
                Some(at) => at,
                None if claim.deleting_since.is_some() => continue,
                None => {
                    let labels = LabelSource::Planned(labels_of_claim(snapshot, claim, None));
                    world.spots.push(AuditedNode::new(None, labels, &claim.taints));
                    world.spots.len() - 1
                }
            };
            if let LabelSource::Node(labels) = world.spots[at].labels {
                world.spots[at].labels =
                    LabelSource::ClaimLabels(labels, ClaimLabels { snapshot, claim, all: OnceCell::new() });
            }
            by_claim.insert(&claim.name.0, at);
        }
        for (look, nodes) in snapshot.pods.alike() {
            if !matter.matters(Identity::of_pod(look.example(), &snapshot.namespaces)) {
                continue;
            }
            let identity = world.identity(snapshot, look.example());
            for (node, count) in nodes.iter() {
                if let Some(at) = spot_of(&by_number, *node) {
                    let counts = world.spots[at].pods.entry(identity).or_default();
                    counts.0 += u64::from(count.all);
                    counts.1 += u64::from(count.staying);
                }
            }
        }
        for claim in claims {
            let Some(Ok(catalogue)) = snapshot.catalogues.get(&claim.node_class) else { continue };
            let Some(offering) = catalogue.offering(claim.offering()) else { continue };
            let mut labels = claim.labels.clone();
            labels.extend(catalogue.node_labels(offering));
            labels.insert(NODEPOOL_LABEL.to_owned(), claim.pool.0.clone());
            labels.insert(HOSTNAME.to_owned(), format!("(claim {})", claim.name));
            let at = world.spots.len();
            world.spots.push(AuditedNode::new(None, LabelSource::Planned(labels), &claim.taints));
            for key in &claim.planned_pods {
                world.plan(snapshot, key, at);
            }
        }
        world.arrivals(snapshot, &matter);
        for placement in placements {
            let at = match &placement.target {
                Target::Node(name) => spot_of(&by_node, name.as_str()),
                Target::Claim(name) => by_claim.get(name.0.as_str()).copied(),
            };
            if let Some(at) = at {
                world.plan(snapshot, &placement.pod, at);
            }
        }
        world
    }

    fn plan(&mut self, snapshot: &'a Snapshot, key: &PodKey, spot: usize) {
        if let Some(pod) = snapshot.pods.get(key) {
            let identity = self.identity(snapshot, pod);
            let counts = self.spots[spot].pods.entry(identity).or_default();
            counts.0 += 1;
            counts.1 += 1;
            self.newcomers.push(Newcomer { pod, identity, spot });
        }
    }

    /// Adds pods that DaemonSets will create.
    fn arrivals(&mut self, snapshot: &'a Snapshot, matter: &RelevantPods<'_>) {
        let identity = |set| Identity::of_daemonset(set, &snapshot.namespaces);
        if !snapshot.daemonsets.values().any(|set| matter.matters(identity(set))) {
            return;
        }
        let daemons = DaemonSets::new(snapshot);
        for at in 0..self.spots.len() {
            let spot = &self.spots[at];
            let outstanding = match spot.name {
                Some(name) => {
                    let there = snapshot.pods.on_node(name).map(AsRef::as_ref);
                    daemons.outstanding(&spot.labels, spot.taints, there)
                }
                None => daemons.arriving(&spot.labels, spot.taints, None),
            };
            for set in daemons.sets(&outstanding) {
                let identity = self.number(Identity::of_daemonset(set, &snapshot.namespaces));
                let counts = self.spots[at].pods.entry(identity).or_default();
                counts.0 += 1;
                counts.1 += 1;
            }
        }
    }

    fn identity(&mut self, snapshot: &'a Snapshot, pod: &'a Pod) -> usize {
        self.number(Identity::of_pod(pod, &snapshot.namespaces))
    }

    fn number(&mut self, identity: Identity<'a>) -> usize {
        let key = (identity.namespace, identity.labels, &identity.spec.anti_affinity);
        let next = self.identities.len();
        let at = *self.known.entry(key).or_insert(next);
        if at == next {
            self.identities.push(identity);
        }
        at
    }

    fn value(&self, spot: usize, key: &str) -> Option<&str> {
        self.spots[spot].labels.label(key)
    }

    fn spreads(&self) -> Vec<Violation> {
        let mut groups: BTreeMap<CountsAlike<'_>, Vec<&Newcomer<'_>>> = BTreeMap::new();
        for newcomer in &self.newcomers {
            let (namespace, spec) = (newcomer.pod.key.namespace(), &newcomer.pod.spec);
            for rule in &spec.spreads {
                groups.entry(CountsAlike::new(namespace, spec, rule)).or_default().push(newcomer);
            }
        }
        groups.into_iter().flat_map(|(alike, members)| self.spread(alike, &members)).collect()
    }

    fn spread(&self, alike: CountsAlike<'_>, members: &[&Newcomer<'_>]) -> Vec<Violation> {
        let CountsAlike { namespace, rule, all, .. } = alike;
        let counted: BTreeSet<usize> = (0..self.identities.len())
            .filter(|at| rules::counts(rule, namespace, self.identities[*at]))
            .collect();
        let owner = &members[0].pod.spec;
        let included = |spot: &&AuditedNode<'_>| {
            all.iter().all(|rule| spot.labels.label(&rule.topology_key).is_some())
                && includes(rule, owner, &spot.labels, spot.taints)
        };
        let nodes = self.spots.iter().filter(included).filter_map(|spot| {
            let pods = spot.pods.iter().filter(|(identity, _)| counted.contains(identity));
            let staying = pods.map(|(_, (_, staying))| staying).sum();
            Some((spot.labels.label(&rule.topology_key)?, staying))
        });
        let planned = members.iter().map(|member| Planned {
            pod: &member.pod.key,
            domain: self.value(member.spot, &rule.topology_key),
            is_counted: counted.contains(&member.identity),
        });
        let broken = audit::violations(rule, nodes, &planned.collect::<Vec<_>>());
        broken.into_iter().map(|(pod, sentence)| Violation { pod, sentence }).collect()
    }

    /// Checks pod affinity by looking for an order in which the pods can be scheduled.
    fn affinities(&self) -> Vec<Violation> {
        let bound: Vec<&Newcomer<'_>> =
            self.newcomers.iter().filter(|newcomer| !newcomer.pod.spec.affinity.is_empty()).collect();
        let sets: BTreeSet<&[PodAffinityTerm]> =
            bound.iter().map(|newcomer| newcomer.pod.spec.affinity.as_slice()).collect();
        let about: BTreeMap<&[PodAffinityTerm], BTreeSet<usize>> = sets
            .iter()
            .map(|terms| {
                let all = |at: &usize| terms.iter().all(|term| rules::selects(term, self.identities[*at]));
                (*terms, (0..self.identities.len()).filter(all).collect())
            })
            .collect();
        let mut there = Arrived { world: self, about: &about, values: BTreeMap::new() };
        let mut waiting: BTreeMap<(&[PodAffinityTerm], usize, usize), Vec<&Newcomer<'_>>> = BTreeMap::new();
        let mut later: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for newcomer in &bound {
            *later.entry((newcomer.spot, newcomer.identity)).or_default() += 1;
            let key = (newcomer.pod.spec.affinity.as_slice(), newcomer.spot, newcomer.identity);
            waiting.entry(key).or_default().push(newcomer);
        }
        for (spot, node) in self.spots.iter().enumerate() {
            for (identity, (count, _)) in &node.pods {
                if *count > later.get(&(spot, *identity)).copied().unwrap_or(0) {
                    there.arrive(spot, *identity);
                }
            }
        }
        loop {
            let next = waiting
                .keys()
                .find(|key| there.meets(key))
                .or_else(|| waiting.keys().find(|key| there.begins(key)));
            let Some(next) = next.copied() else { break };
            waiting.remove(&next);
            there.arrive(next.1, next.2);
        }
        let left = waiting.into_values().flatten();
        left.map(|newcomer| Violation {
            pod: newcomer.pod.key.clone(),
            sentence: "must be with other pods (required pod affinity) that are not where it is planned"
                .to_owned(),
        })
        .collect()
    }

    fn antis(&self) -> Vec<Violation> {
        let terms: BTreeSet<&PodAffinityTerm> =
            self.identities.iter().flat_map(|identity| &identity.spec.anti_affinity).collect();
        let terms: Vec<&PodAffinityTerm> = terms.into_iter().collect();
        let index = SelectorIndex::new(terms.iter().map(|term| term.selector.as_deref()));
        // For each identity, the terms that it has and the terms that select it.
        let own = |one: &Identity<'_>| -> BTreeSet<usize> {
            one.spec.anti_affinity.iter().filter_map(|term| terms.binary_search(&term).ok()).collect()
        };
        let about = |one: &Identity<'_>| -> BTreeSet<usize> {
            let candidates = index.candidates(one.labels).into_iter();
            candidates.filter(|at| rules::selects(terms[*at], *one)).collect()
        };
        let of: Vec<(BTreeSet<usize>, BTreeSet<usize>)> =
            self.identities.iter().map(|one| (own(one), about(one))).collect();
        // For each term and domain, the pods that have the term and the pods that it selects.
        let mut counts: BTreeMap<(usize, &str), (u64, u64)> = BTreeMap::new();
        for spot in &self.spots {
            for (identity, (count, _)) in &spot.pods {
                let (own, about) = &of[*identity];
                for term in own.union(about) {
                    let Some(value) = spot.labels.label(&terms[*term].topology_key) else { continue };
                    let counts = counts.entry((*term, value)).or_default();
                    counts.0 += if own.contains(term) { *count } else { 0 };
                    counts.1 += if about.contains(term) { *count } else { 0 };
                }
            }
        }
        let mut found = Vec::new();
        for newcomer in &self.newcomers {
            let (own, about) = &of[newcomer.identity];
            for term in own.union(about) {
                let key = &terms[*term].topology_key;
                let Some(value) = self.value(newcomer.spot, key) else { continue };
                let (owners, subjects) = counts.get(&(*term, value)).copied().unwrap_or_default();
                let (is_owner, is_subject) = (own.contains(term), about.contains(term));
                let away = is_owner && subjects > u64::from(is_subject);
                let kept_away = is_subject && owners > u64::from(is_owner);
                if away || kept_away {
                    let sentence = format!(
                        "would be in {value} with a pod from which required pod anti-affinity over `{key}` keeps it away"
                    );
                    found.push((*term, Violation { pod: newcomer.pod.key.clone(), sentence }));
                }
            }
        }
        found.sort_by_key(|(term, _)| *term);
        found.into_iter().map(|(_, violation)| violation).collect()
    }
}
