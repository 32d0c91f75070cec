//! Gangs of a manifest: pods of one object that start together. The plan buys room for all of them or for none, as for the pods of
//! a PodGroup.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_core::{GangScheduler, GroupRole, ObjectKey, Pod, PodGroup, PodPhase, Uid};
use serde_json::Value;

use super::Manifest;
use super::objects::Object;
use crate::gang_marks::told_of_unread;
use crate::owned::{Maker, Owned, Turn};
use crate::template::Role;
use crate::workload::{Expansion, GangOf};

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
    /// How many pods of each gang and role a quota withholds. The others of the gang wait for them.
    withheld: Needed,
}

/// Numbers of pods by their gang, and their role in it.
pub(super) type Needed = BTreeMap<(usize, Option<usize>), usize>;

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
        let (gangs, namespace, withheld) = (expansion.gangs.clone(), String::new(), Needed::new());
        Some(OfObject { object: Value::Null, gangs, by_name, makers, later, namespace, withheld })
    }

    /// Counts the pods of each gang for which its others wait.
    pub fn needed(expansion: &Expansion) -> Needed {
        let mut count = Needed::new();
        for made in expansion.pods.iter().filter(|made| made.origin.turn != Turn::Last) {
            if let Some(gang) = made.origin.gang {
                let role = expansion.gangs[gang].roles.iter().position(|role| role.has(&made.pod));
                *count.entry((gang, role)).or_default() += 1;
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
        let missing = |(part, count): ((usize, Option<usize>), usize)| {
            (part, count - created.get(&part).copied().unwrap_or_default())
        };
        let withheld: Needed = needed.into_iter().map(missing).collect();
        let (kind, namespace) = (object.kind.clone(), object.namespace().to_owned());
        if let Some(name) = super::meta(&object.value, "name") {
            let names = pods.iter().map(|pod| pod.key.name().into_owned()).collect();
            self.made.insert((namespace.clone(), kind, name.to_owned()), names);
        }
        let object = || object.value.clone();
        self.all.extend(gangs.map(|gangs| OfObject { object: object(), namespace, withheld, ..gangs }));
    }

    /// Puts the pods of each gang into a PodGroup.
    pub fn form(&self, manifest: &mut Manifest, owned: &Owned) {
        if self.all.is_empty() {
            return;
        }
        let others = manifest.pod_groups.iter().filter(|group| GangScheduler::of(&group.key.name).is_some());
        let others: BTreeMap<ObjectKey, Option<String>> =
            others.map(|group| (group.key.clone(), group.held.clone())).collect();
        let by_name = manifest.pods.iter().enumerate();
        let by_name: BTreeMap<(String, String), usize> = by_name
            .map(|(at, pod)| ((pod.key.namespace().to_owned(), pod.key.name().into_owned()), at))
            .collect();
        for of in &self.all {
            let members = self.members(of, owned);
            // Its operator makes a PodGroup for it, which waits in a queue before its pods do. Of several gangs, each has its own, and
            // which is whose is not known.
            let held = owned.under_object(&of.object).into_iter().find_map(|(namespace, kind, name)| {
                let key = |other: GangScheduler| ObjectKey::new(&namespace, other.model_name(&name));
                let mut keys = GangScheduler::ALL.into_iter().filter(|_| kind == "PodGroup").map(key);
                keys.find_map(|key| others.get(&key).cloned().flatten())
            });
            let held = held.filter(|_| of.gangs.len() == 1);
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
                        // The object says more about its gang than the pods do.
                        let is_free = pod.group.is_none() || pod.gang.is_some() || is_of_other(pod);
                        is_free && pod.phase != PodPhase::Finished
                    })
                    .collect();
                let has_group = |pod: &Pod| pod.group_key().is_some_and(|key| others.contains_key(&key));
                // Of a gang whose pods are all withheld, or belong to a PodGroup of their own, nothing is planned.
                if places.iter().all(|at| has_group(&manifest.pods[*at])) {
                    continue;
                }
                let theirs = of.withheld.iter().filter(|((gang, _), _)| *gang == number);
                let withheld: usize = theirs.map(|(_, count)| count).sum();
                let all = places.len() + withheld;
                let pods: Vec<&Pod> = places.iter().map(|at| &manifest.pods[*at]).collect();
                let roles = of.roles(number, &pods);
                let lacks = |role: &GroupRole| {
                    let there = pods.iter().filter(|pod| role.has(pod)).count();
                    u32::try_from(there).is_ok_and(|there| there < role.least)
                };
                // Without enough pods of a role, none of the others starts, however many there are.
                let optional = if roles.iter().any(lacks) { 0 } else { gang.optional };
                let least = beyond(all, optional).max(1);
                if least < 2 && (all < 2 || roles.is_empty()) {
                    // They start one by one, whatever a PodGroup that is not there may say.
                    for at in places {
                        let pod = &mut manifest.pods[at];
                        if is_of_other(pod) && !has_group(pod) {
                            pod.group = None;
                        }
                    }
                    continue;
                }
                for at in places {
                    manifest.pods[at].group = Some(gang.name.clone());
                    manifest.pods[at].gang = None;
                }
                manifest.pod_groups.push(PodGroup {
                    key: ObjectKey::new(&of.namespace, &gang.name),
                    uid: Uid(gang.name.clone()),
                    min_count: Some(least),
                    roles,
                    unmodelled: Vec::new(),
                    stands_for: Some(gang.name.clone()),
                    held: held.clone(),
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

/// Says of each pod that waits that it is planned singly, if a label names a group that is not read.
pub(super) fn unread(pods: &[Pod]) -> Vec<String> {
    let waits = |pod: &&Pod| {
        let is_over = matches!(pod.phase, PodPhase::Bound { .. } | PodPhase::Finished);
        !is_over && pod.group.is_none() && pod.deleting_since.is_none()
    };
    let mut all: BTreeMap<(&str, String), Vec<&Pod>> = BTreeMap::new();
    for pod in pods.iter().filter(waits) {
        let namespace = pod.key.namespace();
        if let Some(said) = told_of_unread(namespace, &pod.labels) {
            all.entry((namespace, said)).or_default().push(pod);
        }
    }
    let told = |((_, said), pods): ((&str, String), Vec<&Pod>)| {
        let others = match pods.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        format!("Pod {}{others}: {said}", pods[0].key)
    };
    all.into_iter().map(told).collect()
}

/// Returns whether a pod names the PodGroup of another scheduler.
fn is_of_other(pod: &Pod) -> bool {
    pod.group.as_deref().and_then(GangScheduler::of).is_some()
}

impl OfObject {
    /// Returns the roles of a gang with these pods, and how many pods the others need of each. If none of the gang may be missing, its
    /// number says enough. Of a stored pod, the labels tell the role.
    fn roles(&self, number: usize, pods: &[&Pod]) -> Vec<GroupRole> {
        let gang = &self.gangs[number];
        let of = |(at, role): (usize, &Role)| {
            let there = pods.iter().filter(|pod| role.has(pod)).count();
            let withheld = self.withheld.get(&(number, Some(at))).copied().unwrap_or_default();
            let least = beyond(there + withheld, role.spare);
            let label = (role.label.0.to_owned(), role.label.1.clone());
            (least > 0).then(|| GroupRole { name: role.name.clone(), label, least })
        };
        let roles = gang.roles.iter().enumerate().filter(|_| gang.optional > 0);
        roles.filter_map(of).collect()
    }
}

/// Returns how many pods are left if so many are missing. A negative number adds pods.
fn beyond(pods: usize, missing: i64) -> u32 {
    let pods = i64::try_from(pods).unwrap_or(i64::MAX);
    u32::try_from(pods.saturating_sub(missing).max(0)).unwrap_or(u32::MAX)
}
