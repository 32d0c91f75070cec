//! Gangs of a manifest: pods of one object that start together. The plan buys room for all of them or for none, as for the pods of
//! a PodGroup.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_core::{ObjectKey, Pod, PodGroup, PodPhase, Uid};
use serde_json::Value;

use super::Manifest;
use super::objects::Object;
use crate::owned::{Maker, Owned, Turn};
use crate::workload::{Expansion, GangOf, Made};

/// The gangs of the objects so far, and the pods of each controller.
#[derive(Default)]
pub(super) struct Gangs {
    all: Vec<OfObject>,
    /// The names of the pods that a controller of the manifest lacks, by namespace, kind and name.
    made: BTreeMap<(String, String, String), Vec<String>>,
}

/// The gangs of one object.
pub(super) struct OfObject {
    object: Value,
    gangs: Vec<GangOf>,
    /// The gang of each pod with a name that is known.
    by_name: BTreeMap<String, usize>,
    makers: Vec<Maker>,
    /// The makers of pods that do not start with the others.
    later: Vec<Maker>,
    namespace: String,
    /// How many pods of each gang a quota withholds. The others of the gang do not start without them.
    withheld: BTreeMap<usize, usize>,
    /// The gangs of which a quota withholds pods that none of the others can do without, such as a master.
    starved: BTreeSet<usize>,
}

/// Numbers of pods by their gang, the beginning of their names, and how many of these the others can do without.
pub(super) type Needed = BTreeMap<(usize, String, usize), usize>;

impl Gangs {
    /// Returns the gangs of an object, before the pods that it has already are removed.
    pub fn of(expansion: &Expansion) -> Option<OfObject> {
        if expansion.gangs.is_empty() {
            return None;
        }
        let mut by_name = BTreeMap::new();
        let (mut makers, mut later): (Vec<Maker>, Vec<Maker>) = (Vec::new(), Vec::new());
        for made in &expansion.pods {
            let list = if made.origin.gang.is_some() { &mut makers } else { &mut later };
            // The pods of one template follow each other.
            if list.last() != Some(&made.origin.maker) {
                list.push(made.origin.maker.clone());
            }
            by_name.extend(made.origin.gang.map(|gang| (made.pod.key.name().into_owned(), gang)));
        }
        let (gangs, namespace) = (expansion.gangs.clone(), String::new());
        let (withheld, starved) = (BTreeMap::new(), BTreeSet::new());
        Some(OfObject { object: Value::Null, gangs, by_name, makers, later, namespace, withheld, starved })
    }

    /// Counts the pods of each gang for which its others wait.
    pub fn needed(pods: &[Made]) -> Needed {
        let mut count = Needed::new();
        for origin in pods.iter().map(|made| &made.origin).filter(|origin| origin.turn != Turn::Last) {
            if let Some(gang) = origin.gang {
                *count.entry((gang, origin.prefix.clone(), origin.spare)).or_default() += 1;
            }
        }
        count
    }

    /// Adds an object with the pods that it lacks, without those that a quota withholds. `needed` counts the pods of its gangs that it
    /// lacks, and `created` those that no quota withholds.
    pub fn add(
        &mut self,
        object: &Object,
        gangs: Option<OfObject>,
        pods: &[Pod],
        [needed, created]: [Needed; 2],
    ) {
        let (mut withheld, mut starved) = (BTreeMap::<usize, usize>::new(), BTreeSet::new());
        for (part, count) in needed {
            let missing = count - created.get(&part).copied().unwrap_or_default();
            let (gang, _, spare) = part;
            *withheld.entry(gang).or_default() += missing;
            if missing > spare {
                starved.insert(gang);
            }
        }
        let (kind, namespace) = (object.kind.clone(), object.namespace().to_owned());
        if let Some(name) = super::meta(&object.value, "name") {
            let names = pods.iter().map(|pod| pod.key.name().into_owned()).collect();
            self.made.insert((namespace.clone(), kind, name.to_owned()), names);
        }
        let object = || object.value.clone();
        self.all.extend(gangs.map(|gangs| OfObject {
            object: object(),
            namespace,
            withheld,
            starved,
            ..gangs
        }));
    }

    /// Puts the pods of each gang into a PodGroup.
    pub fn form(&self, manifest: &mut Manifest, owned: &Owned) {
        if self.all.is_empty() {
            return;
        }
        let by_name = manifest.pods.iter().enumerate();
        let by_name: BTreeMap<(String, String), usize> = by_name
            .map(|(at, pod)| ((pod.key.namespace().to_owned(), pod.key.name().into_owned()), at))
            .collect();
        for of in &self.all {
            let members = self.members(of, owned);
            for (number, gang) in of.gangs.iter().enumerate() {
                let is_of = |name: &String| match of.by_name.get(name) {
                    Some(known) => *known == number,
                    // The names of the pods that exist are not known if its controllers make them up.
                    None => of.gangs.len() == 1,
                };
                let names = members.iter().filter(|name| is_of(name));
                let places = names.filter_map(|name| by_name.get(&(of.namespace.clone(), name.clone())));
                let places: Vec<usize> = places
                    .copied()
                    .filter(|at| {
                        let pod = &manifest.pods[*at];
                        pod.group.is_none() && pod.phase != PodPhase::Finished
                    })
                    .collect();
                // Of a gang whose pods are all withheld, or belong to a PodGroup of their own, nothing is planned.
                if places.is_empty() {
                    continue;
                }
                let withheld = of.withheld.get(&number).copied().unwrap_or_default();
                let all = i64::try_from(places.len() + withheld).unwrap_or(i64::MAX);
                // None of the others starts, however many there are.
                let optional = if of.starved.contains(&number) { 0 } else { gang.optional };
                let least = u32::try_from(all.saturating_sub(optional).max(1)).unwrap_or(u32::MAX);
                if all < 2 || least < 2 {
                    continue;
                }
                for at in places {
                    manifest.pods[at].group = Some(gang.name.clone());
                }
                manifest.pod_groups.push(PodGroup {
                    key: ObjectKey::new(&of.namespace, &gang.name),
                    uid: Uid(gang.name.clone()),
                    min_count: Some(least),
                    unmodelled: Vec::new(),
                    stands_for: Some(gang.name.clone()),
                });
            }
        }
    }

    /// Returns the names of all pods of an object: those that it lacks, and those that it or its controllers have.
    fn members(&self, of: &OfObject, owned: &Owned) -> BTreeSet<String> {
        let later = owned.under_makers(&of.namespace, &of.later);
        let mut members: BTreeSet<String> = BTreeSet::new();
        members.extend(of.by_name.keys().cloned());
        let under =
            owned.under_object(&of.object).into_iter().chain(owned.under_makers(&of.namespace, &of.makers));
        for name in under.filter(|name| !later.contains(name)) {
            members.extend(self.made.get(&name).into_iter().flatten().cloned());
            if name.1 == "Pod" {
                members.insert(name.2);
            }
        }
        members
    }
}
