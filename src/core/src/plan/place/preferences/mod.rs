//! Preferences of pods: chooses the preferences that new nodes should meet.
//!
//! Before packing, the preferences of each pod are considered, strongest first: `PreferNoSchedule` taints, preferred node
//! affinity, preferred pod affinity and anti-affinity, and `ScheduleAnyway` constraints. A preference is kept if some offering
//! meets it together with the preferences kept before, at no more than [`DEARER`] times the cost without preferences. Kept
//! preferences restrict only new nodes. Existing nodes are used as if there were no preferences. Pods that limits leave unplaced
//! are tried again without the weakest preference, and finally without any.

pub(crate) mod compare;
pub(crate) mod estimates;
pub(crate) mod kept;
pub(crate) mod messages;
pub(crate) mod neighbours;
pub(crate) mod places;

pub(crate) use crate::plan::place::preferences::kept::Record;

use crate::plan::place::preferences::kept::{Group, KeptPreferences, Set};
pub(crate) use crate::plan::place::preferences::kept::{PreferenceChoice, PreferenceInputs};
use crate::plan::place::topology::{Assigned, DEARER};
use crate::rules::pin::{Signature, signature};
use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::labels::HOSTNAME;
use poolwright_terms::{Taint, TaintEffect};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::ResourceList;

use crate::model::relaxed::{PreferencePolicy, WhyRelaxed};
use crate::model::{NodeSelectorTerm, Operator, Pod, PodKey, PodSpec, Requirement, Weighted};
use crate::plan::pending::PendingPod;
use crate::plan::place::preferences::estimates::{Buyers, PriceEstimates};
use crate::rules;
use crate::rules::gpus;
use crate::rules::pin::Pin;
use crate::supply::offerings::{Admissions, Supply};

/// The key of a group: priority, spec, pin, namespace and labels.
type Like<'a> = (Reverse<i32>, &'a PodSpec, &'a Pin, &'a str, &'a BTreeMap<String, String>);

/// Chooses the preferences that new nodes should meet, for each open pod.
pub(crate) fn choose<'a>(inputs: &PreferenceInputs<'_, 'a>) -> PreferenceChoice<'a> {
    let taints = soft_taints(inputs.supply);
    let mut chosen = PreferenceChoice::default();
    let concerned = |want: &&PendingPod<'a>| want.pod.spec.preferences.is_some() || !taints.is_empty();
    let assigned = inputs.assigned;
    let mut likes: BTreeMap<Like<'a>, Vec<&'a Pod>> = BTreeMap::new();
    for want in inputs.open.iter().filter(concerned) {
        let pod = want.pod;
        if !assigned.unplaced.contains_key(&pod.key) {
            let namespace = pod.key.namespace();
            let pin = assigned.pin(&pod.key);
            let like = (Reverse(pod.priority), &*pod.spec, pin, namespace, &*pod.labels);
            likes.entry(like).or_default().push(pod);
        }
    }
    if likes.is_empty() {
        return chosen;
    }
    let followers: BTreeSet<&PodKey> = assigned.bundles.values().flatten().map(|pod| &pod.key).collect();
    let models = inputs.supply.mig_models();
    let mut signatures: BTreeMap<Signature<'a>, usize> = BTreeMap::new();
    let mut specs: Vec<(&'a PodSpec, &'a Pin)> = Vec::new();
    let mut groups: Vec<Group<'a>> = Vec::new();
    for ((_, spec, pin, ..), mut pods) in likes {
        name_what_is_never_kept(&mut chosen, inputs.policy, spec, &taints, &pods);
        let (leading, following): (Vec<_>, Vec<_>) =
            pods.into_iter().partition(|pod| !followers.contains(&pod.key));
        for (preference, _) in of_nodes(spec, &taints).iter().filter(|_| !following.is_empty()) {
            chosen.drop_for(preference, WhyRelaxed::SharedNode, &following);
        }
        pods = leading;
        if pods.is_empty() || inputs.policy == PreferencePolicy::Ignore {
            continue;
        }
        pods.sort_by(|a, b| (a.created, &a.key).cmp(&(b.created, &b.key)));
        let signature = *signatures.entry(signature(spec, pin)).or_insert_with(|| {
            specs.push((spec, pin));
            specs.len() - 1
        });
        let one = gpus::wanted(inputs.options.sharing, &models, spec).0;
        groups.push(Group { pods, pin, signature, one, kept: Vec::new() });
    }
    let mut estimates = PriceEstimates::new(inputs.supply, Admissions::new(inputs.supply, &specs));
    chosen.is_wished = groups.iter().any(|group| group.is_wished(assigned));
    about_nodes(&mut chosen, &mut estimates, &mut groups, (&taints, assigned));
    let places = places::choose(inputs, &mut chosen, &mut estimates, &groups);
    settle(&mut chosen, &groups, places);
    chosen
}

/// Relaxes preferences that can never be kept.
fn name_what_is_never_kept<'a>(
    chosen: &mut PreferenceChoice<'a>,
    policy: PreferencePolicy,
    spec: &PodSpec,
    taints: &BTreeMap<&Taint, BTreeSet<String>>,
    pods: &[&'a Pod],
) {
    let preferences = spec.preferences.as_deref();
    for unread in preferences.iter().flat_map(|preferences| &preferences.unread) {
        let preference = format!("{} (`{}`)", unread.rule, unread.field);
        chosen.drop_for(&preference, WhyRelaxed::Senseless, pods);
    }
    let ignored = policy == PreferencePolicy::Ignore;
    for (preference, _) in of_nodes(spec, taints).iter().filter(|_| ignored) {
        chosen.drop_for(preference, WhyRelaxed::Ignored, pods);
    }
    for preference in places::of_pods(spec, "") {
        if ignored {
            chosen.drop_for(&preference.words, WhyRelaxed::Ignored, pods);
        } else if preference.about.key() == HOSTNAME {
            chosen.drop_for(&preference.words, WhyRelaxed::OverHosts, pods);
        }
    }
}

/// Returns the `PreferNoSchedule` taints, and the pools that have them.
fn soft_taints<'a>(supply: &Supply<'a>) -> BTreeMap<&'a Taint, BTreeSet<String>> {
    let mut taints: BTreeMap<&'a Taint, BTreeSet<String>> = BTreeMap::new();
    for offered in &supply.pools {
        for taint in &offered.pool.taints {
            if taint.effect == TaintEffect::PreferNoSchedule {
                taints.entry(taint).or_default().insert(offered.pool.name.0.clone());
            }
        }
    }
    taints
}

/// Returns the preferences about the node itself, strongest first, each with a description and its requirements.
fn of_nodes(spec: &PodSpec, taints: &BTreeMap<&Taint, BTreeSet<String>>) -> Vec<(String, Vec<Requirement>)> {
    let kept_off = taints
        .iter()
        .filter(|(taint, _)| !spec.tolerations.iter().any(|toleration| rules::tolerates(toleration, taint)))
        .map(|(taint, pools)| {
            let elsewhere =
                Requirement { key: NODEPOOL_LABEL.to_owned(), operator: Operator::NotIn(pools.clone()) };
            (messages::taint(taint), vec![elsewhere])
        });
    // The scheduler adds the scores of its profile to the scores of the pod's own preferences.
    let preferences = spec.preferences.as_deref();
    let own =
        preferences.iter().flat_map(|preferences| &preferences.nodes).map(|preference| (preference, ""));
    let added = preferences
        .iter()
        .flat_map(|preferences| &preferences.added)
        .map(|(preference, file)| (preference, file.as_str()));
    let mut terms: Vec<(&Weighted<NodeSelectorTerm>, &str)> = own.chain(added).collect();
    terms.sort_by_key(|(preference, _)| Reverse(preference.weight));
    let terms = terms
        .into_iter()
        .map(|(preference, file)| (messages::node(preference, file), preference.term.requirements.clone()));
    kept_off.chain(terms).collect()
}

/// Keeps preferences about nodes where possible.
fn about_nodes<'a>(
    chosen: &mut PreferenceChoice<'a>,
    estimates: &mut PriceEstimates<'_, 'a>,
    groups: &mut [Group<'a>],
    (taints, assigned): (&BTreeMap<&Taint, BTreeSet<String>>, &Assigned<'a>),
) {
    let preferences: Vec<Vec<(String, Vec<Requirement>)>> =
        groups.iter().map(|group| of_nodes(group.spec(), taints)).collect();
    // Pods with the same preference can share its nodes.
    let mut crowds: BTreeMap<&Vec<Requirement>, ResourceList> = BTreeMap::new();
    for (group, preferences) in groups.iter().zip(&preferences) {
        for (_, wanted) in preferences {
            crowds.entry(wanted).or_default().add(&group.total(group.pods.len() as u64));
        }
    }
    for (group, preferences) in groups.iter_mut().zip(&preferences) {
        let is_wished = group.is_wished(assigned);
        for (words, wanted) in preferences {
            let crowd = &crowds[wanted];
            let count = group.pods.len() as u64;
            let buyers = Buyers { signature: group.signature, requests: &group.one, count, crowd };
            let before = group.wanted();
            let mut all = before.clone();
            all.extend(wanted.iter().cloned());
            match judge(estimates, buyers, (&before, wanted, &all), group.requires()) {
                // The places of some pods were chosen for their preferences, so these are kept already.
                Ok(()) if !is_wished && estimates.is_same(buyers.signature, &before, &all) => {}
                Ok(()) => {
                    group.kept.push(KeptPreferences {
                        requirements: wanted.clone(),
                        preferences: vec![words.clone()],
                    });
                }
                Err(why) => chosen.drop_for(words, why, &group.pods),
            }
        }
    }
}

/// Checks whether a preference can be kept together with the preferences before it. The requirements are those of the earlier
/// preferences, its own, and both together.
fn judge(
    estimates: &mut PriceEstimates<'_, '_>,
    buyers: Buyers<'_>,
    (before, wanted, all): (&[Requirement], &[Requirement], &[Requirement]),
    requires: bool,
) -> Result<(), WhyRelaxed> {
    let usual = estimates.cost(buyers, &[]).unwrap_or(0);
    match estimates.cost(buyers, all) {
        Some(cost) if cost <= usual.saturating_mul(DEARER) => Ok(()),
        Some(_) => Err(WhyRelaxed::TooDear),
        None if estimates.is_held_back(buyers, all) => Err(WhyRelaxed::HeldBack),
        None if !before.is_empty() && estimates.cost(buyers, wanted).is_some() => {
            Err(WhyRelaxed::Contradicted)
        }
        None if requires => Err(WhyRelaxed::Required),
        None => Err(WhyRelaxed::NotOffered),
    }
}

/// Assigns the kept preferences to each pod.
fn settle<'a>(
    chosen: &mut PreferenceChoice<'a>,
    groups: &[Group<'a>],
    mut places: BTreeMap<&'a PodKey, Vec<KeptPreferences>>,
) {
    let mut known: BTreeMap<(&Pin, Vec<KeptPreferences>), usize> = BTreeMap::new();
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
