//! Topology: chooses zones and other domains for pods with topology spread, pod affinity or pod anti-affinity over any label.
//!
//! Before packing, each pod with such a rule gets a place: values of the topology keys for which the kube-scheduler's rules hold.
//! The place becomes a pin, which is an additional requirement on nodes for the solver and for the alternatives of claims. Places
//! are chosen pod by pod. Existing room is preferred, then the lowest price, then the domain with the fewest similar pods.
//!
//! A plan is correct if the rules hold with all its pods in place. Then the scheduler can bind them in some order, because it
//! retries pods that wait for others.

pub(crate) mod barrier;
pub(crate) mod bundles;
pub(crate) mod inputs;
pub(crate) mod messages;
pub(crate) mod new_domains;
pub(crate) mod place_prices;
pub(crate) mod places;
pub(crate) mod relations;
pub(crate) mod tally;
pub(crate) mod uneven;
pub(crate) mod wishes;

pub(crate) use crate::plan::place::topology::relations::Relations;

pub(crate) use crate::plan::place::topology::inputs::{Lessons, TopologyInputs, domain_of};
pub(crate) use crate::plan::place::topology::new_domains::LeftOut;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use poolwright_catalog::{MigModel, ResourceList, ResourceName};
use poolwright_terms::labels::{CAPACITY_TYPE, HOSTNAME};

use crate::model::{Operator, Pod, PodKey, PodSpec, Requirement};
use crate::plan::pending::PendingPod;
use crate::plan::place::topology::bundles::Bundles;
use crate::plan::place::topology::new_domains::NewDomains;
use crate::plan::place::topology::place_prices::{PlaceLayout, PlacePrices};
use crate::plan::place::topology::places::{NONE, Place, Places};
use crate::plan::place::topology::relations::PodRelations;
use crate::plan::place::topology::tally::{Refusal, Tally};
use crate::plan::place::topology::wishes::{PlaceLabels, Wishes};
use crate::rules;
use crate::rules::gpus;
use crate::rules::pin::{self, Pin, Signature};
use crate::supply::offerings::Admissions;

/// The factor that limits which domains are opened for a spread constraint, and to which places and nodes preferences lead. A place is
/// left out if pods cost more than this many times as much there as in the cheapest one.
pub(crate) const DEARER: u128 = 2;

/// The chosen places.
#[derive(Debug, Default)]
pub(crate) struct Assigned<'a> {
    pub pins: BTreeMap<&'a PodKey, Pin>,
    /// Pods with no place, with the reason.
    pub unplaced: BTreeMap<&'a PodKey, String>,
    /// Bundled pods, by their leader.
    pub bundles: BTreeMap<&'a PodKey, Vec<&'a Pod>>,
    /// Pods whose preferences decided between places.
    pub wished: BTreeSet<&'a PodKey>,
    /// The domains in which no pod with a spread constraint gets a new node, although one could be bought there.
    pub left_out: LeftOut,
    nowhere: Pin,
}

impl<'a> Assigned<'a> {
    /// Returns the number of pods with a place.
    pub fn pinned(&self) -> usize {
        let pinned = self.pins.values().filter(|pin| !pin.is_empty()).count();
        pinned + self.bundles.values().map(Vec::len).sum::<usize>()
    }

    /// Returns the pods that are bundled with this one.
    pub fn with(&self, leader: &PodKey) -> &[&'a Pod] {
        self.bundles.get(leader).map_or(&[], Vec::as_slice)
    }

    /// Returns the pin of a pod; empty for most pods.
    pub fn pin(&self, pod: &PodKey) -> &Pin {
        self.pins.get(pod).unwrap_or(&self.nowhere)
    }
}

/// Chooses a place for every open pod that a topology rule affects.
pub(crate) fn assign<'a>(inputs: &TopologyInputs<'_, 'a>) -> Assigned<'a> {
    let mut assigned = Assigned::default();
    let Lessons { given_up, cut, .. } = inputs.lessons;
    let leaves_out = !given_up.is_empty() || !cut.is_empty();
    for pod in inputs.open.iter().map(|want| want.pod).filter(|_| leaves_out) {
        let cut = || cut.contains_key(&pod.key).then(String::new);
        if let Some(why) = given_up.get(&pod.key).cloned().or_else(cut) {
            assigned.unplaced.insert(&pod.key, why);
        }
    }
    let concerned = |want: &&PendingPod<'a>| inputs.relations.of(&want.pod.key) > 0;
    let mut pods: Vec<&'a Pod> = inputs.open.iter().filter(concerned).map(|want| want.pod).collect();
    pods.retain(|pod| !assigned.unplaced.contains_key(&pod.key));
    if pods.is_empty() {
        return assigned;
    }
    let size = |pod: &Pod| {
        let of = |name| pod.spec.requests.get(name);
        Reverse((of(ResourceName::NVIDIA_GPU), of(ResourceName::CPU), of(ResourceName::MEMORY)))
    };
    // Pods without rules of their own come first, so that all others count them.
    let bound = |pod: &Pod| inputs.relations.kinds[inputs.relations.of(&pod.key)].is_bound();
    let later = |pod: &Pod| !inputs.lessons.first.contains(&pod.key);
    pods.sort_by_cached_key(|pod| (Reverse(pod.priority), later(pod), bound(pod), size(pod), &pod.key));
    Assignment::new(inputs, &pods).run(pods, assigned)
}

/// The pin of pods without a place yet.
static NO_PIN: Pin = Pin::new();

/// Returns the parts of a pod that decide which nodes admit it, whatever other pods are there.
pub(crate) fn signature(spec: &PodSpec) -> Signature<'_> {
    pin::signature(spec, &NO_PIN)
}

struct Assignment<'s, 'a> {
    inputs: &'s TopologyInputs<'s, 'a>,
    models: Vec<&'static MigModel>,
    places: Places<'a>,
    tally: Tally,
    /// One spec for each signature.
    signatures: BTreeMap<Signature<'a>, (usize, &'a PodSpec)>,
    admissions: Admissions,
    /// The layouts of places, by topology keys.
    layouts: BTreeMap<&'s [usize], PlaceLayout>,
    /// Prices, by signature, colocation profile and topology keys.
    place_prices: BTreeMap<(usize, usize, &'s [usize]), PlacePrices>,
    /// The rooms that admit each signature.
    admitting: BTreeMap<usize, Vec<usize>>,
    /// The free resources of rooms, less the requests of pods placed so far.
    free: Vec<Arc<ResourceList>>,
    /// The spread constraints that include the node of each room.
    seen: Vec<Vec<bool>>,
    bundles: Bundles<'a>,
    wishes: Wishes<'a>,
    /// Pods whose preferences decided between places.
    wished: BTreeSet<&'a PodKey>,
    left_out: LeftOut,
}

/// A place that a pod may get, with what counts for or against it.
struct RankedPlace<'u> {
    /// The number of rules of other pods that it breaks.
    strain: usize,
    /// Zero if existing room is there.
    cost: u128,
    crowd: u64,
    cell: usize,
    /// The preferences that are not met, the strongest first.
    unmet: &'u [bool],
    /// Whether it is in a domain that a spread constraint of the pod leaves out.
    is_left_out: bool,
}

impl<'u> RankedPlace<'u> {
    fn without_preferences(&self) -> (usize, bool, u128, u64, usize) {
        (self.strain, self.is_left_out, self.cost, self.crowd, self.cell)
    }

    /// Returns the rank. Preferences do not lead away from existing room, nor to a place that costs more than `most`.
    fn with_preferences(&self, most: u128) -> (usize, bool, bool, &'u [bool], bool, u128, u64, usize) {
        let is_new = self.cost > 0;
        let unmet: &'u [bool] = if is_new { self.unmet } else { &[] };
        let is_dear = self.cost > most;
        (self.strain, is_new, is_dear, unmet, self.is_left_out, self.cost, self.crowd, self.cell)
    }
}

impl<'s, 'a> Assignment<'s, 'a> {
    fn new(inputs: &'s TopologyInputs<'s, 'a>, pods: &[&'a Pod]) -> Self {
        let TopologyInputs { relations, rooms, supply, .. } = *inputs;
        let places = Places::new(&relations.keys, inputs.snapshot, rooms, supply);
        let mut tally = Tally::new(relations, &places, inputs.snapshot);
        let see = |(room, place)| {
            let room: &Arc<crate::supply::rooms::Room<'_>> = room;
            tally.see(relations, place, &room.labels, &room.taints)
        };
        let seen: Vec<Vec<bool>> = rooms.all.iter().zip(&places.rooms).map(see).collect();
        tally::settle(&mut tally, relations, &places, &seen, inputs.settled);
        if relations.concern_daemonsets() {
            tally::arrivals(&mut tally, inputs, &places);
        }
        let mut signatures: BTreeMap<Signature<'a>, (usize, &'a PodSpec)> = BTreeMap::new();
        for pod in pods {
            let next = signatures.len();
            signatures.entry(signature(&pod.spec)).or_insert((next, &*pod.spec));
        }
        let mut specs: Vec<_> = signatures.values().copied().collect();
        specs.sort_by_key(|(at, _)| *at);
        let specs: Vec<_> = specs.into_iter().map(|(_, spec)| (spec, &NO_PIN)).collect();
        let admissions = Admissions::new(supply, &specs);
        let mut assignment = Self {
            inputs,
            models: supply.mig_models(),
            free: rooms.all.iter().map(|room| room.free.clone()).collect(),
            places,
            tally,
            signatures,
            admissions,
            layouts: BTreeMap::new(),
            place_prices: BTreeMap::new(),
            admitting: BTreeMap::new(),
            seen,
            bundles: Bundles::default(),
            wishes: Wishes::new(inputs, pods),
            wished: BTreeSet::new(),
            left_out: LeftOut::default(),
        };
        assignment.open_values(pods);
        assignment
    }

    /// Opens domains for spread constraints: domains where a pod costs not much more than in the cheapest, and domains that an
    /// earlier attempt used. A domain without nodes is opened only if needed where everything is expensive, or where an earlier
    /// attempt could buy nothing.
    fn open_values(&mut self, pods: &[&'a Pod]) {
        let relations = self.inputs.relations;
        let mut new = NewDomains::default();
        for pod in pods {
            let kind: &'s PodRelations = &relations.kinds[relations.of(&pod.key)];
            for at in &kind.counted {
                new.expect(*at);
            }
            if kind.spreads.is_empty() {
                continue;
            }
            let (requests, keys) = (self.requests(pod), kind.keys.as_slice());
            let signature = self.signatures[&signature(&pod.spec)].0;
            let cells = self.cells(pod, kind);
            let Some(place_prices) =
                self.place_prices.get_mut(&(signature, self.inputs.colocation.of(&pod.key), keys))
            else {
                continue;
            };
            let mut cost = |cell: &usize| place_prices.cost(*cell, &requests, self.inputs.supply);
            let costs: Vec<u128> = cells.iter().map(&mut cost).collect();
            let most = costs.iter().min().map_or(0, |least| least.saturating_mul(DEARER));
            for (cell, cost) in cells.iter().zip(&costs) {
                for at in &kind.spreads {
                    let key = relations.spreads[*at].key;
                    let value = self.layouts[keys].cells[*cell][key];
                    // Who spreads over capacity types wants nodes of each, and knows that on-demand costs more.
                    let is_wanted = relations.keys[key] == CAPACITY_TYPE && *cost < u128::MAX;
                    if *cost <= most || is_wanted {
                        new.offer(*at, value, *cost);
                    }
                }
            }
        }
        self.left_out = new.open(self.inputs, &self.places, &mut self.tally);
    }

    fn run(mut self, mut pods: Vec<&'a Pod>, mut assigned: Assigned<'a>) -> Assigned<'a> {
        // Pods with affinity wait until the pods that they need have a place.
        loop {
            let before = pods.len();
            let mut left = Vec::new();
            for (at, pod) in pods.iter().enumerate() {
                match self.choose(pod, &pods[at..]) {
                    ChosenPlace::Pinned(pin) => {
                        assigned.pins.insert(&pod.key, pin);
                    }
                    // Pods that no node can hold are explained later, all together.
                    ChosenPlace::NoSupply => {
                        assigned.pins.insert(&pod.key, Pin::new());
                    }
                    ChosenPlace::Refused => left.push(*pod),
                }
            }
            pods = left;
            if pods.is_empty() || pods.len() == before {
                break;
            }
        }
        for pod in pods {
            let why = self.why(pod);
            assigned.unplaced.insert(&pod.key, why);
        }
        assigned.wished = std::mem::take(&mut self.wished);
        assigned.left_out = std::mem::take(&mut self.left_out);
        for bundle in self.bundles.all.into_iter().filter(|bundle| !bundle.followers.is_empty()) {
            let mut pin = assigned.pin(&bundle.leader.key).clone();
            for pod in &bundle.followers {
                pin.extend(assigned.pins.remove(&pod.key).unwrap_or_default());
                pin.extend(bundles::requirements(&pod.spec, &bundle.leader.spec));
            }
            pin.sort();
            pin.dedup();
            assigned.pins.insert(&bundle.leader.key, pin);
            assigned.bundles.insert(&bundle.leader.key, bundle.followers);
        }
        assigned
    }

    /// Returns the cells with a room or an offering that fits a pod, ignoring rules about other pods.
    fn cells(&mut self, pod: &'a Pod, kind: &'s PodRelations) -> Vec<usize> {
        self.prepare(pod, kind);
        let requests = self.requests(pod);
        let keys = kind.keys.as_slice();
        let signature = self.signatures[&signature(&pod.spec)].0;
        let (layout, place_prices) = (
            &self.layouts[keys],
            &self.place_prices[&(signature, self.inputs.colocation.of(&pod.key), keys)],
        );
        let banned = self.inputs.lessons.bans.get(&pod.key);
        // Room that earlier pods may take counts too, because only the solver decides where they go.
        let rooms = self.admitting[&signature].iter().copied();
        let rooms = rooms.filter(|room| pod.spec.requests.fits(&self.inputs.rooms.all[*room].free));
        let with_room: BTreeSet<usize> = rooms.map(|room| layout.of_room[room]).collect();
        (0..layout.cells.len())
            .filter(|cell| {
                (with_room.contains(cell) || place_prices.sells(*cell, &requests, self.inputs.supply))
                    && !banned.is_some_and(|pins| pins.contains_key(&self.pin(kind, &layout.cells[*cell])))
            })
            .collect()
    }

    fn prepare(&mut self, pod: &'a Pod, kind: &'s PodRelations) {
        let keys = kind.keys.as_slice();
        let layout = self.layouts.entry(keys).or_insert_with(|| PlaceLayout::new(keys, &self.places));
        let (at, spec) = self.signatures[&signature(&pod.spec)];
        let TopologyInputs { supply, rooms, .. } = *self.inputs;
        let profile = self.inputs.colocation.of(&pod.key);
        let colocation = self.inputs.colocation;
        let welcome = |residents: usize| colocation.admits(profile, &supply.residents[residents]);
        self.place_prices
            .entry((at, profile, keys))
            .or_insert_with(|| PlacePrices::new(layout, supply, &self.admissions, at, welcome));
        self.admitting.entry(at).or_insert_with(|| {
            let admits = |room: &usize| {
                let room = &rooms.all[*room];
                rules::admits(spec, &room.labels, &room.taints).is_ok()
            };
            (0..rooms.all.len()).filter(admits).collect()
        });
    }

    /// Returns the requests of a pod on a new node.
    fn requests(&self, pod: &Pod) -> ResourceList {
        gpus::wanted(self.inputs.options.sharing, &self.models, &pod.spec).0
    }

    /// Returns the rooms that still fit a pod.
    fn rooms_for(&self, pod: &Pod, signature: usize) -> impl Iterator<Item = usize> {
        let rooms = self.admitting[&signature].iter().copied();
        rooms.filter(|room| pod.spec.requests.fits(&self.free[*room]))
    }

    fn choose(&mut self, pod: &'a Pod, rest: &[&'a Pod]) -> ChosenPlace {
        let relations = self.inputs.relations;
        let kind: &'s PodRelations = &relations.kinds[relations.of(&pod.key)];
        let mut cells = self.cells(pod, kind);
        if cells.is_empty() {
            // Without a pin, the pod would get a node whose place nobody knows, where its place before has no capacity.
            let is_banned = self.inputs.lessons.bans.contains_key(&pod.key);
            return if is_banned { ChosenPlace::Refused } else { ChosenPlace::NoSupply };
        }
        let keys = kind.keys.as_slice();
        // The first pod of a group that must share a node may begin on a new node, whose name is unknown.
        let begins = kind.affinity.filter(|own| {
            relations.affinities[*own].on_node && kind.is_seed() && self.tally.is_nowhere(*own)
        });
        let allowed = |cell: &usize| {
            let place = &self.layouts[keys].cells[*cell];
            let checked = if begins.is_some_and(|own| self.is_new(keys, place) && self.has_keys(own, place)) {
                self.tally.check_all_but_affinity(relations, kind, place)
            } else {
                self.tally.check(relations, kind, place)
            };
            checked.is_ok() && !self.keeps_out(kind, place)
        };
        cells.retain(allowed);
        if cells.is_empty() {
            return self.join(pod, kind).map_or(ChosenPlace::Refused, ChosenPlace::Pinned);
        }
        if let Some(affinity) = kind.affinity.filter(|own| kind.is_seed() && self.tally.is_nowhere(*own)) {
            cells = self.best_for_all(affinity, kind, cells, rest);
        }
        let requests = self.requests(pod);
        let signature = self.signatures[&signature(&pod.spec)].0;
        let in_room: BTreeMap<usize, usize> =
            self.rooms_for(pod, signature).map(|room| (self.layouts[keys].of_room[room], room)).collect();
        let unmet = self.unmet(pod, kind, &cells);
        let mut ranked: Vec<RankedPlace<'_>> = Vec::new();
        for (cell, unmet) in cells.into_iter().zip(&unmet) {
            let place = &self.layouts[keys].cells[cell];
            let strain = self.tally.strain(relations, kind, place);
            let crowd = self.tally.crowd(relations, kind, place);
            let cost = if in_room.contains_key(&cell) {
                0
            } else if let Some(place_prices) =
                self.place_prices.get_mut(&(signature, self.inputs.colocation.of(&pod.key), keys))
            {
                1 + place_prices.cost(cell, &requests, self.inputs.supply).min(u128::MAX - 1)
            } else {
                u128::MAX
            };
            let is_out = |at: &usize| self.left_out.contains(*at, place[relations.spreads[*at].key]);
            let is_left_out = kind.spreads.iter().any(is_out);
            ranked.push(RankedPlace { strain, cost, crowd, cell, unmet, is_left_out });
        }
        let new = ranked.iter().map(|place| place.cost).filter(|cost| *cost > 0);
        let most = new.min().map_or(0, |least| least.saturating_mul(DEARER));
        let Some(best) = ranked.iter().min_by_key(|place| place.with_preferences(most)) else {
            return ChosenPlace::Refused;
        };
        let cell = best.cell;
        if ranked.iter().min_by_key(|place| place.without_preferences()).is_some_and(|one| one.cell != cell) {
            self.wished.insert(&pod.key);
        }
        let place = self.layouts[keys].cells[cell].clone();
        for at in kind.spreads.iter().chain(&kind.counted) {
            self.tally.open(*at, place[relations.spreads[*at].key]);
        }
        if let Some(room) = in_room.get(&cell) {
            Arc::make_mut(&mut self.free[*room]).saturating_sub(&pod.spec.requests);
            self.tally.count(relations, kind, &place, |at| self.seen[*room][at]);
        } else {
            self.tally.count(relations, kind, &place, |_| true);
            if kind.chosen.iter().any(|at| relations.affinities[*at].on_node) {
                self.bundles.begin(pod, place.clone(), requests, &kind.chosen);
            }
        }
        if self.wishes.count_pods() {
            let labels = self.labels(kind, &place);
            self.wishes.put(pod, &labels);
        }
        ChosenPlace::Pinned(self.pin(kind, &place))
    }

    /// Returns whether a pod keeps out of a place, because one of its spreads has fewer domains than `minDomains` and would get another.
    fn keeps_out(&self, kind: &PodRelations, place: &Place) -> bool {
        kind.spreads.iter().filter(|at| self.left_out.has_few(**at)).any(|at| {
            let value = place[self.inputs.relations.spreads[*at].key];
            value != NONE && !self.tally.of_spread(*at).exists(value as usize)
        })
    }

    /// Returns, for each of these cells, the preferences of a pod that are not met there.
    fn unmet(&self, pod: &'a Pod, kind: &'s PodRelations, cells: &[usize]) -> Vec<Vec<bool>> {
        if !self.wishes.has(pod) {
            return vec![Vec::new(); cells.len()];
        }
        let layout = &self.layouts[kind.keys.as_slice()];
        let keys: Vec<&str> = kind.keys.iter().map(|key| self.inputs.relations.keys[*key]).collect();
        let places: Vec<PlaceLabels> =
            cells.iter().map(|cell| self.labels(kind, &layout.cells[*cell])).collect();
        self.wishes.unmet(pod, &keys, &places)
    }

    /// Returns the labels of a place for the keys of a pod's rules. The host name of a new node is unknown.
    fn labels(&self, kind: &PodRelations, place: &Place) -> PlaceLabels {
        let keys = kind.keys.iter().copied();
        let known = keys.filter(|key| place[*key] != NONE && self.inputs.relations.keys[*key] != HOSTNAME);
        let label = |key: usize| {
            let value = self.places.values[key][place[key] as usize].clone();
            (self.inputs.relations.keys[key].to_owned(), value)
        };
        known.map(label).collect()
    }

    /// Returns whether a place is a new node for pods with rules over these keys.
    fn is_new(&self, keys: &[usize], place: &Place) -> bool {
        let host = self.inputs.relations.keys.iter().position(|key| *key == HOSTNAME);
        host.is_some_and(|host| keys.contains(&host) && place[host] == NONE)
    }

    /// Returns whether a new node in a place has the topology keys of an affinity. Every node has a host name.
    fn has_keys(&self, affinity: usize, place: &Place) -> bool {
        let relations = self.inputs.relations;
        let keys = &relations.affinities[affinity].keys;
        keys.iter().all(|key| relations.keys[*key] == HOSTNAME || place[*key] != NONE)
    }

    /// Adds a pod that must share a node with others to the bundle of one of them.
    fn join(&mut self, pod: &'a Pod, kind: &'s PodRelations) -> Option<Pin> {
        let relations = self.inputs.relations;
        let affinity = kind.affinity.filter(|own| relations.affinities[*own].on_node)?;
        let (requests, gpu_need) = gpus::wanted(self.inputs.options.sharing, &self.models, &pod.spec);
        if gpu_need.is_some() {
            // The solver decides which pods share a GPU, so such pods cannot be bundled.
            return None;
        }
        let keys = kind.keys.as_slice();
        let own = self.signatures[&signature(&pod.spec)].0;
        for at in self.bundles.with(affinity).to_vec() {
            let bundle = &self.bundles.all[at];
            let leader_kind: &'s PodRelations = &relations.kinds[relations.of(&bundle.leader.key)];
            let theirs = self.signatures[&signature(&bundle.leader.spec)].0;
            let mut together = bundle.requests.clone();
            together.add(&requests);
            let sells = |of: &Pod, signature: usize, keys: &'s [usize]| {
                let profile = self.inputs.colocation.of(&of.key);
                let (Some(layout), Some(place_prices)) =
                    (self.layouts.get(keys), self.place_prices.get(&(signature, profile, keys)))
                else {
                    return false;
                };
                let same = |cell: &Place| keys.iter().all(|key| cell[*key] == bundle.place[*key]);
                layout
                    .cells
                    .iter()
                    .position(same)
                    .is_some_and(|cell| place_prices.sells(cell, &together, self.inputs.supply))
            };
            let place = bundle.place.clone();
            if keys.iter().all(|key| leader_kind.keys.contains(key))
                && self.has_keys(affinity, &place)
                && bundle.welcomes(pod, &self.inputs.snapshot.namespaces)
                && self.tally.check_all_but_affinity(relations, kind, &place).is_ok()
                && sells(pod, own, keys)
                && sells(bundle.leader, theirs, leader_kind.keys.as_slice())
            {
                self.tally.count(relations, kind, &place, |_| true);
                self.bundles.join(at, pod, &requests, &kind.chosen);
                return Some(self.pin(kind, &place));
            }
        }
        None
    }

    /// Returns the cells for the first pod of a group that most of its other pods can use too.
    fn best_for_all(
        &mut self,
        affinity: usize,
        kind: &'s PodRelations,
        cells: Vec<usize>,
        rest: &[&'a Pod],
    ) -> Vec<usize> {
        let relations = self.inputs.relations;
        let mut uses: BTreeMap<usize, usize> = cells.iter().map(|cell| (*cell, 0)).collect();
        for pod in rest {
            let other: &'s PodRelations = &relations.kinds[relations.of(&pod.key)];
            if other.affinity == Some(affinity) && other.keys == kind.keys {
                for cell in self.cells(pod, other) {
                    if let Some(count) = uses.get_mut(&cell) {
                        *count += 1;
                    }
                }
            }
        }
        let most = uses.values().copied().max().unwrap_or(0);
        cells.into_iter().filter(|cell| uses[cell] == most).collect()
    }

    /// Returns the pin for a place.
    fn pin(&self, kind: &PodRelations, place: &Place) -> Pin {
        let of = |key: &usize| {
            let name = self.inputs.relations.keys[*key];
            let operator = match place[*key] {
                // The host name of a new node is unknown.
                NONE if name == HOSTNAME => Operator::Exists,
                NONE => Operator::DoesNotExist,
                value => Operator::In([self.places.values[*key][value as usize].clone()].into()),
            };
            Requirement { key: name.to_owned(), operator }
        };
        kind.keys.iter().map(of).collect()
    }

    /// Says which rule keeps a pod from every place that could hold it. Empty if earlier attempts could buy nothing in any, or if the pod
    /// only keeps out of domains that do not count.
    fn why(&mut self, pod: &'a Pod) -> String {
        let relations = self.inputs.relations;
        let kind: &'s PodRelations = &relations.kinds[relations.of(&pod.key)];
        let cells = self.cells(pod, kind);
        if cells.is_empty() {
            return String::new();
        }
        let layout = &self.layouts[kind.keys.as_slice()];
        let only_keeps_out = |cell: &usize| {
            let place = &layout.cells[*cell];
            self.keeps_out(kind, place) && self.tally.check(relations, kind, place).is_ok()
        };
        if cells.iter().any(only_keeps_out) {
            return String::new();
        }
        let refusals: Vec<(&Place, Refusal)> = cells
            .iter()
            .filter_map(|cell| {
                let place = &layout.cells[*cell];
                Some((place, self.tally.check(relations, kind, place).err()?))
            })
            .collect();
        messages::refused(self.inputs, (pod, kind), &self.places, &self.tally, &refusals)
    }
}

/// The result of the search for a place.
enum ChosenPlace {
    /// A place.
    Pinned(Pin),
    /// Rules about other pods forbid every place that could hold the pod.
    Refused,
    /// No place could hold the pod.
    NoSupply,
}
