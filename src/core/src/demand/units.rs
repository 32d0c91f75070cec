//! Units of controllers that create pods from one template. The units of one gang form a family.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use poolwright_catalog::{ResourceList, ResourceName};

use crate::model::{Gang, GangPart, ObjectKey, OwnerKey, Pod, QuotaScopes, Snapshot, Uid, Workload};

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

/// The unused part of a quota.
pub(crate) struct UnusedQuota<'a> {
    scopes: &'a QuotaScopes,
    /// By resource.
    left: BTreeMap<&'a str, u64>,
}

impl UnusedQuota<'_> {
    /// Returns whether it counts pods like this.
    fn counts(&self, pod: &Pod) -> bool {
        self.scopes.match_pod(&pod.scopes)
    }

    /// Returns how many pods with these requests it still allows.
    fn pods(&self, requests: &ResourceList) -> u64 {
        let of = |(name, amount): (&ResourceName, u64)| Some(self.left.get(name.as_str())? / amount);
        requests.iter().filter(|(_, amount)| *amount > 0).filter_map(of).min().unwrap_or(u64::MAX)
    }

    fn take(&mut self, requests: &ResourceList, pods: u64) {
        for (name, amount) in requests.iter() {
            if let Some(rest) = self.left.get_mut(name.as_str()) {
                *rest = rest.saturating_sub(amount.saturating_mul(pods));
            }
        }
    }
}

/// The unused parts of all quotas, by namespace.
pub(crate) struct UnusedQuotas<'a>(BTreeMap<&'a str, Vec<UnusedQuota<'a>>>);

impl<'a> UnusedQuotas<'a> {
    pub fn of(snapshot: &'a Snapshot) -> Self {
        let mut all: BTreeMap<&str, Vec<UnusedQuota<'_>>> = BTreeMap::new();
        for quota in snapshot.quotas.values() {
            let left = quota.left.iter().map(|(resource, left)| (resource.as_str(), *left)).collect();
            let unused = UnusedQuota { scopes: &quota.scopes, left };
            all.entry(quota.key.namespace.as_str()).or_default().push(unused);
        }
        Self(all)
    }

    /// Returns the number of pods like this, at most `wanted`, that the quotas of its namespace allow, and counts them. Each quota
    /// counts only the pods that meet its scopes.
    pub fn take(&mut self, pod: &Pod, wanted: u64) -> u64 {
        let Some(quotas) = self.0.get_mut(pod.key.namespace()) else { return wanted };
        let requests = &pod.spec.requests;
        let counting = quotas.iter().filter(|quota| quota.counts(pod));
        let pods = counting.map(|quota| quota.pods(requests)).min().unwrap_or(u64::MAX).min(wanted);
        for quota in quotas.iter_mut().filter(|quota| quota.counts(pod)) {
            quota.take(requests, pods);
        }
        pods
    }
}
