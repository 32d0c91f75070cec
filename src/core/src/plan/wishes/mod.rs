//! Preferences: what new nodes should be like for the pods they are bought for, besides what they must.
//!
//! Before anything is packed, the preferences of each pod are gone through, the strongest first: taints that it would
//! rather keep off, preferred node affinity, preferred pod affinity and anti-affinity, spread that is a preference. Each is
//! kept if, together with those kept before, something on offer meets it that costs no more than [`DEARER`] times what the
//! pod would cost without it. What is kept narrows what is bought for the pod, and nothing else: room that is there is used
//! as if there were no preferences. What limits leave over is tried with one preference less, the weakest first, and at last
//! without any.

mod compare;
mod market;
mod neighbours;
mod places;
mod words;

pub(crate) use words::RELAXED;
pub(super) use words::Record;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::ResourceList;
use poolwright_catalog::labels::HOSTNAME;

use self::market::{Market, Shoppers};
use super::wanting::Wanting;
use super::room::Rooms;
use super::supply::{Admissions, Supply};
use super::topology::{Assigned, Pin};
use super::{PlanOptions, Preferences, RelaxedReason, classes, gpus};
use crate::model::{
    Effect, NodeTerm, Operator, Pod, PodKey, PodSpec, Requirement, Snapshot, Taint, Weighted,
};
use crate::rules::{self, NODEPOOL_LABEL};

/// A preference is relaxed that makes pods cost more than so many times as much as they would without it.
pub(super) const DEARER: u128 = 2;

/// What preferences are weighed against.
pub(super) struct Inputs<'s, 'a> {
    pub snapshot: &'a Snapshot,
    pub supply: &'s Supply<'a>,
    pub options: &'s PlanOptions,
    pub preferences: Preferences,
    pub rooms: &'s Rooms<'a>,
    /// Pods that are planned on rooms already.
    pub settled: &'s [(usize, &'a Pod)],
    pub open: &'s [Wanting<'a>],
    pub assigned: &'a Assigned<'a>,
}

/// Some preferences that are met by the same nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    requirements: Vec<Requirement>,
    /// In words.
    wishes: Vec<String>,
}

/// What is wished for each pod that will need a node.
#[derive(Debug, Default)]
pub(super) struct Chosen<'a> {
    by_pod: BTreeMap<&'a PodKey, usize>,
    sets: Vec<Set>,
    dropped: BTreeMap<(String, RelaxedReason), BTreeSet<&'a PodKey>>,
}

/// Preferences that are kept.
#[derive(Debug)]
struct Set {
    /// The strongest first.
    kept: Vec<Kept>,
    /// What is required of nodes, with all of them, then with the weakest left out one after the other; not without any.
    levels: Vec<Pin>,
}

impl<'a> Chosen<'a> {
    /// What a new node should meet for a pod, as requirements: most is wished for first. Empty for most pods.
    pub fn levels(&self, pod: &PodKey) -> &[Pin] {
        self.by_pod.get(pod).map_or(&[], |set| &self.sets[*set].levels)
    }

    /// Whether anything is wished for anybody.
    pub fn narrows(&self) -> bool {
        !self.by_pod.is_empty()
    }

    /// What to tell of it when the plan is made.
    pub fn record(&self) -> Record {
        let own = |pods: &BTreeSet<&'a PodKey>| pods.iter().map(|key| (*key).clone()).collect();
        Record {
            kept: self
                .by_pod
                .iter()
                .map(|(key, set)| ((*key).clone(), self.sets[*set].kept.clone()))
                .collect(),
            dropped: self.dropped.iter().map(|(what, pods)| (what.clone(), own(pods))).collect(),
        }
    }

    fn drop_for(&mut self, wish: &str, reason: RelaxedReason, pods: &[&'a Pod]) {
        let known = self.dropped.entry((wish.to_owned(), reason)).or_default();
        known.extend(pods.iter().map(|pod| &pod.key));
    }
}

/// Pods that are equal in all that matters here.
struct Group<'a> {
    pods: Vec<&'a Pod>,
    pin: &'a Pin,
    signature: usize,
    /// What one takes of a new node.
    one: ResourceList,
    kept: Vec<Kept>,
}

impl Group<'_> {
    fn spec(&self) -> &PodSpec {
        &self.pods[0].spec
    }

    /// Whether it requires anything of its nodes itself.
    fn requires(&self) -> bool {
        let spec = self.spec();
        let own = !spec.node_selector.is_empty() || spec.node_affinity.is_some();
        own || spec.enforced.is_some() || !spec.volumes.is_empty() || !self.pin.is_empty()
    }

    fn total(&self, count: u64) -> ResourceList {
        times(&self.one, count)
    }

    /// What its nodes must meet for the preferences kept so far.
    fn wanted(&self) -> Vec<Requirement> {
        self.kept.iter().flat_map(|kept| kept.requirements.iter().cloned()).collect()
    }
}

fn times(one: &ResourceList, count: u64) -> ResourceList {
    let mut all = ResourceList::new();
    for (name, amount) in one.iter() {
        all.set(name.clone(), amount.saturating_mul(count));
    }
    all
}

/// Priority, spec, what it is pinned to, namespace and labels.
type Like<'a> = (Reverse<i32>, &'a PodSpec, &'a Pin, &'a str, &'a BTreeMap<String, String>);

/// Chooses what new nodes should be like for each open pod that has preferences.
pub(super) fn choose<'a>(inputs: &Inputs<'_, 'a>) -> Chosen<'a> {
    let taints = soft_taints(inputs.supply);
    let mut chosen = Chosen::default();
    let concerned = |want: &&Wanting<'a>| want.pod.spec.wishes.is_some() || !taints.is_empty();
    let assigned = inputs.assigned;
    let mut likes: BTreeMap<Like<'a>, Vec<&'a Pod>> = BTreeMap::new();
    for want in inputs.open.iter().filter(concerned) {
        let pod = want.pod;
        if !assigned.unplaced.contains_key(&pod.key) {
            let namespace = pod.key.namespace();
            let pin = assigned.pin(&pod.key);
            let like = (Reverse(pod.priority), &pod.spec, pin, namespace, &pod.labels);
            likes.entry(like).or_default().push(pod);
        }
    }
    if likes.is_empty() {
        return chosen;
    }
    let followers: BTreeSet<&PodKey> = assigned.bundles.values().flatten().map(|pod| &pod.key).collect();
    let models = inputs.supply.mig_models();
    let mut signatures: BTreeMap<classes::Signature<'a>, usize> = BTreeMap::new();
    let mut specs: Vec<(&'a PodSpec, &'a Pin)> = Vec::new();
    let mut groups: Vec<Group<'a>> = Vec::new();
    for ((_, spec, pin, ..), mut pods) in likes {
        name_what_is_never_kept(&mut chosen, inputs.preferences, spec, &taints, &pods);
        let (leading, following): (Vec<_>, Vec<_>) =
            pods.into_iter().partition(|pod| !followers.contains(&pod.key));
        for (wish, _) in of_nodes(spec, &taints).iter().filter(|_| !following.is_empty()) {
            chosen.drop_for(wish, RelaxedReason::SharedNode, &following);
        }
        pods = leading;
        if pods.is_empty() || inputs.preferences == Preferences::Ignore {
            continue;
        }
        pods.sort_by(|a, b| (a.created, &a.key).cmp(&(b.created, &b.key)));
        let signature = *signatures.entry(classes::signature(spec, pin)).or_insert_with(|| {
            specs.push((spec, pin));
            specs.len() - 1
        });
        let one = gpus::wanted(inputs.options.sharing, &models, spec).0;
        groups.push(Group { pods, pin, signature, one, kept: Vec::new() });
    }
    let mut market = Market::new(inputs.supply, Admissions::new(inputs.supply, &specs));
    about_nodes(&mut chosen, &mut market, &mut groups, &taints);
    let places = places::choose(inputs, &mut chosen, &mut market, &groups);
    settle(&mut chosen, &groups, places);
    chosen
}

/// Names what is relaxed whatever is on offer.
fn name_what_is_never_kept<'a>(
    chosen: &mut Chosen<'a>,
    preferences: Preferences,
    spec: &PodSpec,
    taints: &BTreeMap<&Taint, BTreeSet<String>>,
    pods: &[&'a Pod],
) {
    let wishes = spec.wishes.as_deref();
    for unread in wishes.iter().flat_map(|wishes| &wishes.unread) {
        let wish = format!("{} (`{}`)", unread.rule, unread.field);
        chosen.drop_for(&wish, RelaxedReason::Senseless, pods);
    }
    let ignored = preferences == Preferences::Ignore;
    for (wish, _) in of_nodes(spec, taints).iter().filter(|_| ignored) {
        chosen.drop_for(wish, RelaxedReason::Ignored, pods);
    }
    for wish in places::of_pods(spec, "") {
        if ignored {
            chosen.drop_for(&wish.words, RelaxedReason::Ignored, pods);
        } else if wish.about.key() == HOSTNAME {
            chosen.drop_for(&wish.words, RelaxedReason::OverHosts, pods);
        }
    }
}

/// Taints of pools that pods would rather keep off, and the pools that have them.
fn soft_taints<'a>(supply: &Supply<'a>) -> BTreeMap<&'a Taint, BTreeSet<String>> {
    let mut taints: BTreeMap<&'a Taint, BTreeSet<String>> = BTreeMap::new();
    for offered in &supply.pools {
        for taint in &offered.pool.taints {
            if taint.effect == Effect::PreferNoSchedule {
                taints.entry(taint).or_default().insert(offered.pool.name.0.clone());
            }
        }
    }
    taints
}

/// Preferences about the node itself, the strongest first: in words, and as requirements.
fn of_nodes(spec: &PodSpec, taints: &BTreeMap<&Taint, BTreeSet<String>>) -> Vec<(String, Vec<Requirement>)> {
    let kept_off = taints
        .iter()
        .filter(|(taint, _)| !spec.tolerations.iter().any(|toleration| rules::tolerates(toleration, taint)))
        .map(|(taint, pools)| {
            let elsewhere =
                Requirement { key: NODEPOOL_LABEL.to_owned(), operator: Operator::NotIn(pools.clone()) };
            (words::taint(taint), vec![elsewhere])
        });
    // The scheduler adds the scores of its own to those of the pod's.
    let wishes = spec.wishes.as_deref();
    let own = wishes.iter().flat_map(|wishes| &wishes.nodes).map(|wish| (wish, ""));
    let added = wishes.iter().flat_map(|wishes| &wishes.added).map(|(wish, file)| (wish, file.as_str()));
    let mut terms: Vec<(&Weighted<NodeTerm>, &str)> = own.chain(added).collect();
    terms.sort_by_key(|(wish, _)| Reverse(wish.weight));
    let terms =
        terms.into_iter().map(|(wish, file)| (words::node(wish, file), wish.term.requirements.clone()));
    kept_off.chain(terms).collect()
}

/// Keeps what can be kept of preferences about nodes.
fn about_nodes<'a>(
    chosen: &mut Chosen<'a>,
    market: &mut Market<'_, 'a>,
    groups: &mut [Group<'a>],
    taints: &BTreeMap<&Taint, BTreeSet<String>>,
) {
    let wishes: Vec<Vec<(String, Vec<Requirement>)>> =
        groups.iter().map(|group| of_nodes(group.spec(), taints)).collect();
    // Pods that wish for the same share its nodes.
    let mut crowds: BTreeMap<&Vec<Requirement>, ResourceList> = BTreeMap::new();
    for (group, wishes) in groups.iter().zip(&wishes) {
        for (_, wanted) in wishes {
            crowds.entry(wanted).or_default().add(&group.total(group.pods.len() as u64));
        }
    }
    for (group, wishes) in groups.iter_mut().zip(&wishes) {
        for (words, wanted) in wishes {
            let crowd = &crowds[wanted];
            let count = group.pods.len() as u64;
            let who = Shoppers { signature: group.signature, one: &group.one, count, crowd };
            let before = group.wanted();
            let mut all = before.clone();
            all.extend(wanted.iter().cloned());
            match judge(market, who, (&before, wanted, &all), group.requires()) {
                Ok(()) if market.is_same(who.signature, &before, &all) => {}
                Ok(()) => {
                    group.kept.push(Kept { requirements: wanted.clone(), wishes: vec![words.clone()] });
                }
                Err(reason) => chosen.drop_for(words, reason, &group.pods),
            }
        }
    }
}

/// Whether a preference can be kept beside those before it; the requirements are those before, its own, and all together.
fn judge(
    market: &mut Market<'_, '_>,
    who: Shoppers<'_>,
    (before, wanted, all): (&[Requirement], &[Requirement], &[Requirement]),
    requires: bool,
) -> Result<(), RelaxedReason> {
    let usual = market.cost(who, &[]).unwrap_or(0);
    match market.cost(who, all) {
        Some(cost) if cost <= usual.saturating_mul(DEARER) => Ok(()),
        Some(_) => Err(RelaxedReason::TooDear),
        None if market.is_held_back(who, all) => Err(RelaxedReason::HeldBack),
        None if !before.is_empty() && market.cost(who, wanted).is_some() => Err(RelaxedReason::Contradicted),
        None if requires => Err(RelaxedReason::Required),
        None => Err(RelaxedReason::NotOffered),
    }
}

/// Gives every pod what is kept for it.
fn settle<'a>(chosen: &mut Chosen<'a>, groups: &[Group<'a>], mut places: BTreeMap<&'a PodKey, Vec<Kept>>) {
    let mut known: BTreeMap<(&Pin, Vec<Kept>), usize> = BTreeMap::new();
    for group in groups {
        for pod in &group.pods {
            let mut kept = group.kept.clone();
            kept.extend(places.remove(&pod.key).unwrap_or_default());
            if kept.is_empty() {
                continue;
            }
            let set = *known.entry((group.pin, kept)).or_insert_with_key(|(pin, kept)| {
                let level = |most: usize| {
                    let wanted = kept[..most].iter().flat_map(|one| one.requirements.iter().cloned());
                    let mut level: Pin = pin.iter().cloned().chain(wanted).collect();
                    level.sort();
                    level.dedup();
                    level
                };
                let levels = (1..=kept.len()).rev().map(level).collect();
                chosen.sets.push(Set { kept: kept.clone(), levels });
                chosen.sets.len() - 1
            });
            chosen.by_pod.insert(&pod.key, set);
        }
    }
}
