//! ResourceQuotas of a manifest: the new objects that an API server would not create, and the pods that are missing then.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as k8s;
use poolwright_core::{PodVolume, VolumeClaim};
use serde::Deserialize;
use serde_json::{Value, json};

use super::objects::{Object, group, meta};
use super::read::Shared;
use super::there::There;
use super::{Manifest, RefusedPods};
use crate::admission::{Admission, OverQuota, Quotas, Usage};
use crate::owned::{Had, Maker, Owned, Service, Turn};
use crate::template::{Expansion, Made};
use crate::volumes;

/// The kinds on which other objects depend although they are not read, with their groups.
const NEEDED: [(&str, &str); 3] =
    [("", "ServiceAccount"), ("apps", "ControllerRevision"), ("trainer.kubeflow.org", "TrainingRuntime")];

impl Object {
    /// Returns the place of the object in the order of reading. What a quota refuses must be known before others depend on it, and
    /// the quotas before that.
    pub(super) fn rank(&self) -> u8 {
        match self.kind.as_str() {
            "ResourceQuota" => 0,
            kind if Admission::KINDS.contains(&kind) => 1,
            kind if NEEDED.contains(&(group(&self.api_version), kind)) => 2,
            _ => 3,
        }
    }

    /// Counts an object that a cluster has to the quotas that do not say what is in use.
    pub(super) fn count_to_quotas(&self, shared: &mut Shared) {
        let namespace = self.namespace();
        if !self.is_namespaced() || !shared.quotas.count_stored_of(namespace) {
            return;
        }
        let usage = match (group(&self.api_version), self.kind.as_str()) {
            ("", "Pod") => k8s::Pod::deserialize(&self.value).ok().and_then(|pod| {
                let spec = pod.spec.as_ref()?;
                Usage::of_pod("spec", Some(namespace), spec, pod.status.as_ref()).ok()
            }),
            ("", "PersistentVolumeClaim") => {
                let claim = k8s::PersistentVolumeClaim::deserialize(&self.value).ok();
                let claim = claim.and_then(|claim| volumes::convert_claim(&claim).ok());
                claim.map(|claim| Usage::of_claim(&claim, shared.default_class.as_deref()))
            }
            (group, kind) => Some(Usage::of_object(group, kind, namespace, &self.value)),
        };
        if let Some(usage) = usage {
            shared.quotas.count(&usage);
        }
    }

    /// Counts the object to the quotas of its namespace, or says why it cannot be created. Pods and PersistentVolumeClaims are
    /// counted where they are read. Quotas are not refused, because they decide about all others.
    pub(super) fn over_quota(&self, shared: &mut Shared) -> Option<OverQuota> {
        let (group, kind, namespace) = (group(&self.api_version), self.kind.as_str(), self.namespace());
        let is_counted_elsewhere = group.is_empty() && ["Pod", "PersistentVolumeClaim"].contains(&kind);
        if is_counted_elsewhere || kind == "ResourceQuota" || !self.is_namespaced() {
            return None;
        }
        // Of a kind that is not read, the stored object may be there beside the written one.
        let name = meta(&self.value, "name").unwrap_or_default();
        if !self.is_new() || shared.owned.has_stored(namespace, kind, name) {
            return None;
        }
        shared.quotas.admit(&Usage::of_object(group, kind, namespace, &self.value)).err()
    }

    /// Records that the object cannot be created, so that nothing follows from it but a note. `pods` are those that are missing for
    /// that; `None` if nobody knows how many.
    pub(super) fn refuse(
        &self,
        over: &OverQuota,
        pods: Option<usize>,
        manifest: &mut Manifest,
        shared: &mut Shared,
    ) {
        let (and, next) = match pods {
            Some(0) => (String::new(), "create it"),
            Some(1) => (" and its pod is not planned".to_owned(), "plan it"),
            Some(more) => (format!(" and its {more} pods are not planned"), "plan them"),
            None => (" and its pods are not planned".to_owned(), "plan them"),
        };
        let name = self.name();
        manifest
            .notes
            .push(format!("{name}: it cannot be created{and}, because {over}; raise the quota to {next}"));
        if pods != Some(0) {
            let (object, namespace) = (name.clone(), self.namespace().to_owned());
            manifest.refused.push(RefusedPods { object, namespace, pods: pods.unwrap_or(0) });
        }
        manifest.not_created.insert(name);
        shared.forget(self, over);
    }

    /// Counts a PersistentVolumeClaim to the quotas if it is new. One that cannot be created is marked, and pods that use it wait.
    /// Returns notes.
    pub(super) fn admit_claim(&self, claim: &mut VolumeClaim, shared: &mut Shared) -> Vec<String> {
        if !self.is_new() {
            return Vec::new();
        }
        let mut notes = Vec::new();
        notes.extend(self.unknown_class(std::iter::once(&*claim), shared));
        if let Err(over) = shared.quotas.admit(&Usage::of_claim(claim, shared.default_class.as_deref())) {
            let name = self.name();
            notes.push(format!(
                "{name}: it cannot be created, because {over}; raise the quota to plan the pods that use it"
            ));
            claim.over_quota = Some(over.to_string());
        }
        notes
    }

    /// Returns a note if a quota for one StorageClass cannot count a claim, because nobody knows the class of the claim.
    fn unknown_class<'a>(
        &self,
        mut claims: impl Iterator<Item = &'a VolumeClaim>,
        shared: &Shared,
    ) -> Option<String> {
        let is_limited = shared.default_class.is_none() && shared.quotas.limit_a_class(self.namespace());
        (is_limited && claims.any(|claim| claim.class.is_none())).then(|| {
            format!(
                "{}: quotas for one StorageClass do not count a PersistentVolumeClaim that names none; add the default StorageClass to the files",
                self.name()
            )
        })
    }

    /// Removes the pods that the quotas of their namespace do not allow, and counts the others with all that comes with them. An
    /// operator that makes a Service first makes no pod without it. A pod of a StatefulSet is created after its PersistentVolumeClaims,
    /// and a pod with ephemeral volumes before: it then waits for them. Without the first pod of a gang, such as the leader of a group,
    /// its controller does not try the others. The object has `had` pods already. Returns why pods were removed, and notes.
    pub(super) fn hold_back(
        &self,
        expansion: &mut Expansion,
        had: usize,
        shared: &mut Shared,
    ) -> (Option<OverQuota>, Vec<String>) {
        let (namespace, is_new) = (self.namespace(), self.is_new());
        if expansion.pods.is_empty() || !shared.quotas.limit(namespace) || (self.kind == "Pod" && !is_new) {
            return (None, Vec::new());
        }
        let mut notes: Vec<String> =
            self.unknown_class(expansion.claims.iter(), shared).into_iter().collect();
        let Shared { quotas, owned, default_class, .. } = shared;
        let (owned, default_class) = (&*owned, default_class.as_deref());
        let Expansion { pods, claims, .. } = expansion;
        // The controllers between an object and its pods are there if it is.
        let makes_makers = is_new && had == 0;
        if makes_makers && let Some(kind) = self.made_first() {
            let usage = Usage::of_object(group_of(kind), kind, namespace, &Value::Null);
            if let Err(over) = quotas.admit(&usage) {
                pods.clear();
                return (Some(over), notes);
            }
        }
        let is_to_come =
            |claim: &&VolumeClaim| !owned.has(namespace, "PersistentVolumeClaim", &claim.key.name);
        let usages: BTreeMap<String, Usage> = claims
            .iter()
            .filter(is_to_come)
            .map(|claim| (claim.key.name.clone(), Usage::of_claim(claim, default_class)))
            .collect();
        let mut services: BTreeMap<String, Result<(), OverQuota>> = BTreeMap::new();
        let mut makers: BTreeMap<Maker, Result<(), OverQuota>> = BTreeMap::new();
        let mut without: BTreeMap<String, OverQuota> = BTreeMap::new();
        let mut why = None;
        // Its status tells of pods that are not in the files. A quota with a status counts them already.
        let counts_stored = quotas.count_stored_of(namespace);
        let mut there = if counts_stored { There::First(0) } else { There::of(self).without(had) };
        let mut without_first: BTreeSet<usize> = BTreeSet::new();
        pods.retain(|made| {
            if there.has(made) {
                return true;
            }
            let gang = made.origin.gang;
            if gang.is_some_and(|gang| without_first.contains(&gang)) {
                return false;
            }
            let maker = &made.origin.maker;
            let of_service = |service: &Service| {
                let admit = || admit_service(service, namespace, quotas, owned);
                services.entry(service.name.clone()).or_insert_with(admit).clone()
            };
            let of_makers = if makes_makers {
                made.origin.services.iter().try_for_each(of_service).and_then(|()| {
                    let admit = || admit_maker(maker, namespace, quotas, owned);
                    makers.entry(maker.clone()).or_insert_with(admit).clone()
                })
            } else {
                Ok(())
            };
            let admitted = of_makers
                .and_then(|()| {
                    own_claims(made, &usages, false).try_for_each(|(_, claim)| quotas.admit(claim))
                })
                .and_then(|()| quotas.admit(&made.usage));
            if let Err(over) = admitted {
                why.get_or_insert(over);
                if made.origin.turn == Turn::First {
                    without_first.extend(gang);
                }
                return false;
            }
            for (name, claim) in own_claims(made, &usages, true) {
                if let Err(over) = quotas.admit(claim) {
                    without.insert(name.clone(), over);
                }
            }
            true
        });
        for claim in claims {
            claim.over_quota = without.get(&claim.key.name).map(ToString::to_string);
        }
        if let Some(over) = without.values().next() {
            let count = match without.len() {
                1 => "a PersistentVolumeClaim".to_owned(),
                more => format!("{more} PersistentVolumeClaims"),
            };
            notes.push(format!(
                "{}: {count} of its pods cannot be created, because {over}; raise the quota to plan the pods that wait",
                self.name()
            ));
        }
        (why, notes)
    }

    /// Removes the pods that an API server refuses for another reason, such as a LimitRange, from those that a stored object lacks. If
    /// the files show none of its pods, those that it has by its status are not refused. Returns a note if there are some.
    pub(super) fn leave_out_refused(&self, pods: &mut Vec<Made>, had: Option<Had>) -> Option<String> {
        let mut there = if had.is_some() { There::First(0) } else { There::of(self) };
        let (had, before) = (had.map_or(0, |had| had.all), pods.len());
        let mut why = None;
        pods.retain(|made| {
            let is_there = there.has(made);
            let refusal = made.refusal.as_ref().filter(|_| !is_there);
            if let Some(refusal) = refusal {
                why.get_or_insert_with(|| refusal.clone());
            }
            refusal.is_none()
        });
        let (why, held) = (why?, before - pods.len());
        let are = if held == 1 { "is" } else { "are" };
        Some(format!("{} cannot be created and {are} not planned; {why}", part_of_pods(held, had + before)))
    }

    /// Says that the quotas do not allow `held` of the `all` pods that the object lacks.
    pub(super) fn held_back(&self, over: &OverQuota, held: usize, all: usize) -> String {
        if self.kind == "Pod" {
            return format!(
                "it cannot be created and is not planned, because {over}; raise the quota to plan it"
            );
        }
        let (are, them) = if held == 1 { ("is", "it") } else { ("are", "them") };
        format!(
            "{} cannot be created and {are} not planned, because {over}; raise the quota to plan {them}",
            part_of_pods(held, all)
        )
    }

    /// Returns the kind of an object that must exist before the controllers of the pods, or the pods.
    fn made_first(&self) -> Option<&'static str> {
        match (group(&self.api_version), self.kind.as_str()) {
            ("apps", "StatefulSet") => Some("ControllerRevision"),
            ("trainer.kubeflow.org", "TrainJob") => Some("JobSet"),
            _ => None,
        }
    }
}

/// Says how many of its pods: `2 of its 3 pods`, or `its pod` if it is the only one.
fn part_of_pods(part: usize, all: usize) -> String {
    if all == 1 { "its pod".to_owned() } else { format!("{part} of its {all} pods") }
}

/// Counts a Service that comes before pods of a new object, unless the files have it.
fn admit_service(
    service: &Service,
    namespace: &str,
    quotas: &mut Quotas,
    owned: &Owned,
) -> Result<(), OverQuota> {
    if owned.has(namespace, "Service", &service.name) {
        return Ok(());
    }
    let object = json!({"spec": {"type": service.kind}});
    let usage = Usage::of_object("", "Service", namespace, &object);
    quotas.admit(&usage).map_err(|over| over.of_needed(format!("Service `{}`", service.name)))
}

/// Counts the controller that makes pods of a new object, if it is another one.
fn admit_maker(maker: &Maker, namespace: &str, quotas: &mut Quotas, owned: &Owned) -> Result<(), OverQuota> {
    let kind = match maker {
        Maker::Itself => return Ok(()),
        Maker::Other(kind, name) if owned.has(namespace, kind, name) => return Ok(()),
        Maker::Other(kind, _) | Maker::Begins(kind, _) => *kind,
    };
    quotas.admit(&Usage::of_object(group_of(kind), kind, namespace, &Value::Null))
}

/// Returns the claims that controllers will create for a pod: those of its ephemeral volumes, or those of its StatefulSet.
fn own_claims<'a>(
    made: &'a Made,
    usages: &'a BTreeMap<String, Usage>,
    of_ephemeral: bool,
) -> impl Iterator<Item = (&'a String, &'a Usage)> {
    made.pod.volumes.iter().filter_map(move |volume| match volume {
        PodVolume::Claim { name, ephemeral } if *ephemeral == of_ephemeral => Some((name, usages.get(name)?)),
        _ => None,
    })
}

/// Returns the API group of a kind that other controllers make.
fn group_of(kind: &str) -> &'static str {
    match kind {
        "Job" => "batch",
        "ControllerRevision" | "ReplicaSet" | "StatefulSet" => "apps",
        "JobSet" => "jobset.x-k8s.io",
        "RayCluster" => "ray.io",
        _ => "",
    }
}
