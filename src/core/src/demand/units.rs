//! Units of controllers that create pods from one template. The units of one gang form a family.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::{Gang, GangPart, ObjectKey, OwnerKey, Snapshot, Uid, Workload};

/// Controllers that create pods from one template: one Job, ReplicaSet or StatefulSet, or the controllers of one part of a
/// gang.
pub(crate) struct Unit<'a> {
    /// The owner in the keys of its expected pods.
    pub owner: Arc<OwnerKey>,
    /// The controllers that exist.
    pub controllers: Vec<&'a Workload>,
    /// The part of a gang, if the unit belongs to one.
    pub part: Option<&'a GangPart>,
}

impl<'a> Unit<'a> {
    pub fn of_workload(workload: &'a Workload) -> Self {
        Self { owner: Arc::new(workload.owner_key()), controllers: vec![workload], part: None }
    }

    fn of_part(snapshot: &'a Snapshot, gang: &Gang, part: &'a GangPart) -> Self {
        let named = |name: &String| {
            let key = (part.controller.clone(), ObjectKey::new(&gang.key.namespace, name));
            snapshot.workloads.get(&key).map(AsRef::as_ref)
        };
        Self {
            owner: Arc::new(gang.owner_key(part)),
            controllers: part.controllers.iter().filter_map(named).collect(),
            part: Some(part),
        }
    }

    /// Returns the number of pods that controllers of the unit will create that do not exist yet.
    pub fn unborn(&self) -> u64 {
        let Some(part) = self.part.filter(|part| part.creates_missing) else { return 0 };
        let missing = part.controllers.len().saturating_sub(self.controllers.len());
        u64::try_from(missing).unwrap_or(u64::MAX).saturating_mul(part.pods_per_controller)
    }
}

/// Returns the families that have a `wanted` unit. The units of a gang form one family, and every other unit is a family by
/// itself. Controllers outside gangs are filtered with `may_be` before their unit is built, because most of them are finished.
pub(crate) fn families<'a>(
    snapshot: &'a Snapshot,
    may_be: impl Fn(&Workload) -> bool,
    wanted: impl Fn(&Unit<'a>) -> bool,
) -> Vec<Vec<Unit<'a>>> {
    let mut families = Vec::new();
    let mut of_gangs: BTreeSet<&Uid> = BTreeSet::new();
    for gang in snapshot.gangs.values() {
        let units: Vec<Unit<'_>> =
            gang.parts.iter().map(|part| Unit::of_part(snapshot, gang, part)).collect();
        of_gangs.extend(units.iter().flat_map(|unit| &unit.controllers).map(|workload| &workload.uid));
        if units.iter().any(&wanted) {
            families.push(units);
        }
    }
    let alone = |workload: &&Arc<Workload>| may_be(workload) && !of_gangs.contains(&workload.uid);
    let singles = snapshot.workloads.values().filter(alone).map(|workload| Unit::of_workload(workload));
    families.extend(singles.filter(wanted).map(|unit| vec![unit]));
    families
}

/// The unused part of quotas, by namespace and resource.
pub(crate) type UnusedQuota<'a> = BTreeMap<(&'a str, &'a str), u64>;

/// Returns the unused part of the quotas of all namespaces. If several quotas limit one resource, the smallest part counts.
pub(crate) fn quotas(snapshot: &Snapshot) -> UnusedQuota<'_> {
    let mut all = UnusedQuota::new();
    for quota in snapshot.quotas.values() {
        for (resource, left) in &quota.left {
            let known = all.entry((quota.key.namespace.as_str(), resource.as_str())).or_insert(*left);
            *known = (*known).min(*left);
        }
    }
    all
}
