//! What a pod itself brings that keeps it from the places where rules about other pods would have it: its volumes, its rules on
//! labels, or a taint that it does not tolerate.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::ResourceList;
use poolwright_terms::Taint;

use crate::model::{Pod, PodSpec, Toleration, TolerationMatch};
use crate::plan::place::topology::inputs::TopologyInputs;
use crate::plan::place::topology::places::{Place, Places};
use crate::rules::gpus::{GpuForm, GpuNeed};
use crate::rules::{self, format, gpus};
use crate::supply::offerings::PoolOffering;

/// The thing that keeps a pod from places, and the change that helps.
pub(crate) struct Barrier {
    pub cause: String,
    pub change: String,
}

/// Returns the values of these keys in the places that a rule admits, in words.
pub(crate) fn named(
    places: &Places<'_>,
    keys: &[usize],
    is_open: impl Fn(&Place) -> bool,
) -> BTreeSet<String> {
    let nodes = places.nodes.iter().map(|(_, place)| place);
    let all = nodes.chain(&places.rooms).chain(places.offers.iter().flatten());
    let value = |key: usize, place: &Place| places.values[key].get(place[key] as usize).cloned();
    let words = |place: &Place| {
        keys.iter().filter_map(|key| value(*key, place)).collect::<Vec<String>>().join(" and ")
    };
    all.filter(|place| is_open(place)).map(words).collect()
}

/// Returns what alone keeps a pod from the offerings in these places; `None` if nothing of its own does. A pod that must be with others
/// is told also of the limits that would keep it from them then. Those of other pods are told besides the rule.
pub(crate) fn find(
    inputs: &TopologyInputs<'_, '_>,
    pod: &Pod,
    places: &Places<'_>,
    is_open: impl Fn(&Place) -> bool,
) -> Option<Barrier> {
    let asked = gpus::wanted(inputs.options.sharing, &inputs.supply.mig_models(), &pod.spec);
    let (mut barrier, (at, offer)) = own(inputs, (pod, &asked), places, &is_open)?;
    let mut rooms = inputs.rooms.all.iter().zip(&places.rooms);
    let has_room = rooms.any(|(room, place)| is_open(place) && pod.spec.requests.fits(&room.free));
    if !pod.spec.affinity.is_empty()
        && !has_room
        && let Some(limits) = inputs.beyond(at, offer, asked.1.as_ref())
    {
        barrier.change = format!("{}, and raise {limits}", barrier.change);
    }
    Some(barrier)
}

/// Returns the same, with the offering that would hold the pod after the change: one within the limits, if there is any. `requests` are
/// those of the pod without GPUs that are shared or cut, and `need` is its request for these.
fn own<'s>(
    inputs: &TopologyInputs<'s, '_>,
    (pod, (requests, need)): (&Pod, &(ResourceList, Option<GpuNeed>)),
    places: &Places<'_>,
    is_open: &impl Fn(&Place) -> bool,
) -> Option<(Barrier, (usize, &'s PoolOffering))> {
    let supply = inputs.supply;
    let mut open: Vec<(usize, &'s PoolOffering)> = Vec::new();
    for (at, (pool, of_pool)) in supply.pools.iter().zip(&places.offers).enumerate() {
        for (offer, place) in pool.offers.iter().zip(of_pool) {
            if offer.availability.is_sold() && is_open(place) {
                open.push((at, offer));
            }
        }
    }
    if !pod.spec.affinity.is_empty() {
        open.sort_by_cached_key(|(at, offer)| inputs.is_beyond(*at, offer, need.as_ref()));
    }
    let sharing = inputs.options.sharing;
    let holding = |spec: &PodSpec| {
        open.iter().copied().find(|(at, offer)| {
            let taints = &supply.pools[*at].pool.taints;
            let kind = supply.instance_type(*at, offer.offering);
            rules::admits(spec, &supply.labels(*at, offer.offering), taints).is_ok()
                && requests.fits(&supply.capacities[offer.capacity])
                && GpuForm::all(sharing, kind).iter().any(|form| form.grants(sharing, kind, need.as_ref()))
        })
    };
    if holding(&pod.spec).is_some() {
        return None;
    }
    let without_volumes = PodSpec { volumes: Vec::new(), ..PodSpec::clone(&pod.spec) };
    if let Some((at, offer)) = holding(&without_volumes) {
        let labels = supply.labels(at, offer.offering);
        let known = inputs.volumes.places.get(&pod.key).into_iter().flatten();
        let elsewhere = known.filter(|(_, terms)| rules::check_affinity(Some(terms), &labels).is_err());
        let elsewhere: Vec<&str> = elsewhere.map(|(words, _)| words.as_str()).collect();
        let (are, volume) = match elsewhere.len() {
            1 => ("is", "a volume that is"),
            _ => ("are", "volumes that are"),
        };
        if !elsewhere.is_empty() {
            let cause = format!("{} {are} usable only elsewhere", elsewhere.join(", "));
            return Some((Barrier { cause, change: format!("use {volume} usable there") }, (at, offer)));
        }
    }
    for (key, value) in &pod.spec.node_selector {
        let mut spec = pod.spec.clone();
        spec.node_selector.remove(key);
        if let Some(held) = holding(&spec) {
            let cause = format!("its nodeSelector `{key}: {value}` excludes the nodes there");
            return Some((Barrier { cause, change: format!("drop `{key}` from its nodeSelector") }, held));
        }
    }
    if let Some(held) = holding(&PodSpec { node_affinity: None, ..PodSpec::clone(&pod.spec) }) {
        let cause = "its required node affinity excludes the nodes there".to_owned();
        return Some((Barrier { cause, change: "relax that".to_owned() }, held));
    }
    let all = vec![Toleration { key: None, matches: TolerationMatch::Exists, effect: None }];
    let tolerant = PodSpec { tolerations: all.clone(), ..PodSpec::clone(&pod.spec) };
    if let Some((at, offer)) = holding(&tolerant) {
        let pool = supply.pools[at].pool;
        let taints: Vec<&Taint> = rules::untolerated(&pod.spec.tolerations, &pool.taints).collect();
        let cause = format!(
            "it does not tolerate {} of {}, which buys there",
            format::taints(&taints),
            pool.in_words()
        );
        let change = format!("add a toleration of {}", format::quoted(&taints));
        return Some((Barrier { cause, change }, (at, offer)));
    }
    let anywhere = PodSpec {
        volumes: Vec::new(),
        node_selector: BTreeMap::new(),
        node_affinity: None,
        tolerations: all,
        ..PodSpec::clone(&pod.spec)
    };
    let cause = "several of its own rules and volumes exclude the nodes there".to_owned();
    holding(&anywhere).map(|held| (Barrier { cause, change: "relax them together".to_owned() }, held))
}
