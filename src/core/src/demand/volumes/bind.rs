//! Binding of PersistentVolumeClaims to volumes, as in the kube-scheduler's `VolumeBinding` and `VolumeRestrictions`.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_terms::labels::{HOSTNAME, ZONE};

use crate::demand::volumes::shared::Reach;
use crate::model::plan::UnplacedReason;
use crate::model::{
    NodeSelectorTerm, ObjectKey, Operator, Pod, PodKey, PodVolume, Requirement, Snapshot, StorageClass,
    Volume, VolumeClaim,
};
use crate::rules::csi_labels::{ZONAL_DRIVERS, is_unattached, repeats};
use crate::rules::fields::NODE_NAME_FIELD;
use crate::rules::requirement::matches;

const ONE_POD: &str = "ReadWriteOncePod";

/// A volume that a pod can use.
#[derive(Clone, Debug)]
pub(crate) struct UsableVolume {
    /// Its name in messages.
    pub words: String,
    /// The places where it can be used: AND-ed lists of OR-ed terms.
    pub topology: Vec<Vec<NodeSelectorTerm>>,
    /// The CSI driver that attaches it, and the driver's handle of it.
    pub attached: Option<(String, String)>,
    /// Its claim, if it is not bound yet and only some places reach the volume that the first pod gets.
    pub reached: Option<(ObjectKey, Reach)>,
}

/// The reason why a pod must wait for a volume.
pub(crate) struct VolumeWait {
    pub reason: UnplacedReason,
    pub message: String,
}

fn unusable(message: String) -> VolumeWait {
    VolumeWait { reason: UnplacedReason::VolumeUnusable, message }
}

fn pending(message: String) -> VolumeWait {
    VolumeWait { reason: UnplacedReason::VolumePending, message }
}

/// Assigns volumes to pods in the order of the calls.
pub(crate) struct Binder<'a> {
    snapshot: &'a Snapshot,
    /// The default StorageClass.
    default_class: Option<&'a str>,
    /// `ReadWriteOncePod` claims that a bound pod uses.
    in_use: BTreeMap<ObjectKey, &'a PodKey>,
    /// Claims that only one of their pods can use now, with that pod: `ReadWriteOncePod` claims, and claims whose node is selected.
    first: BTreeMap<ObjectKey, &'a PodKey>,
    /// The volumes of unbound claims. All pods of a claim get the same.
    chosen: BTreeMap<ObjectKey, UsableVolume>,
    /// Volumes that several unbound claims could be bound to.
    contested: BTreeSet<&'a str>,
    /// Contested volumes that are assigned.
    given: BTreeSet<&'a str>,
    /// The volumes of claims that are bound, but whose volume is not known ([`Binder::find_static`]).
    fixed: BTreeMap<&'a ObjectKey, &'a Volume>,
}

impl<'a> Binder<'a> {
    /// Creates a binder. `waiting` are the pods that will be bound, in the order of the calls.
    pub fn new(snapshot: &'a Snapshot, waiting: &[&'a Pod]) -> Self {
        let default = StorageClass::default_of(snapshot.storage_classes.values().map(AsRef::as_ref));
        let mut binder = Self {
            snapshot,
            default_class: default.map(|class| class.name.as_str()),
            in_use: BTreeMap::new(),
            first: BTreeMap::new(),
            chosen: BTreeMap::new(),
            contested: BTreeSet::new(),
            given: BTreeSet::new(),
            fixed: BTreeMap::new(),
        };
        binder.find_static();
        binder.find_users();
        binder.find_contested(waiting);
        binder
    }

    /// Finds volumes for the claims of files that the volume controller will bind as soon as it sees them.
    /// They want no StorageClass, so no pod decides where their volumes are. As in the controller, a volume
    /// that is kept for a claim comes first, and then the smallest.
    fn find_static(&mut self) {
        let snapshot = self.snapshot;
        let claims = snapshot.volume_claims.values().map(AsRef::as_ref);
        let mut open: Vec<&'a VolumeClaim> =
            claims.filter(|claim: &&'a VolumeClaim| claim.bound && claim.volume.is_none()).collect();
        open.retain(|claim| claim.over_quota.is_none());
        if open.is_empty() {
            return;
        }
        open.sort_by(|a, b| a.key.cmp(&b.key));
        let named = snapshot.volume_claims.values().filter_map(|claim| claim.volume.as_deref());
        let mut taken: BTreeSet<&'a str> = named.collect();
        for is_kept in [true, false] {
            for claim in &open {
                if self.fixed.contains_key(&claim.key) {
                    continue;
                }
                let class = claim.class.as_deref().unwrap_or_default();
                let is_free = |volume: &&'a Volume| {
                    let is_for_it = if is_kept {
                        volume.claim.as_ref() == Some(&claim.key)
                    } else {
                        volume.claim.is_none() && volume.available && suits(volume, claim, class)
                    };
                    is_for_it
                        && !volume.deleting
                        && !taken.contains(volume.name.as_str())
                        && misfit(volume, claim).is_none()
                };
                let all = snapshot.volumes.values().map(AsRef::as_ref);
                let mut free: Vec<&'a Volume> = all.filter(is_free).collect();
                free.sort_by_key(|volume| (volume.shape.size, &volume.name));
                if let Some(volume) = free.first() {
                    taken.insert(&volume.name);
                    self.fixed.insert(&claim.key, volume);
                }
            }
        }
    }

    fn find_users(&mut self) {
        for pod in self.snapshot.pods.bound_with_volumes() {
            for key in pod.volumes.iter().filter_map(|volume| claim_of(pod, volume)) {
                let claim = self.snapshot.volume_claims.get(&key);
                if claim.is_some_and(|claim| claim.shape.access_modes.contains(ONE_POD)) {
                    self.in_use.entry(key).or_insert(&pod.key);
                }
            }
        }
    }

    fn find_contested(&mut self, waiting: &[&'a Pod]) {
        let claims: BTreeSet<ObjectKey> = waiting
            .iter()
            .flat_map(|pod| pod.volumes.iter().filter_map(|volume| claim_of(pod, volume)))
            .collect();
        let mut seen: BTreeSet<&'a str> = BTreeSet::new();
        for key in claims {
            let Some(claim) = self.snapshot.volume_claims.get(&key) else { continue };
            let Some(class) = self.class_of(claim).filter(|class| class.waits_for_pod) else { continue };
            if claim.volume.is_some() || class.provisioner.is_some() {
                continue;
            }
            for volume in self.candidates(claim, class) {
                if !seen.insert(&volume.name) {
                    self.contested.insert(&volume.name);
                }
            }
        }
    }

    /// Returns the pod's volumes, or the reason why it must wait.
    pub fn bind(&mut self, pod: &'a Pod) -> Result<Vec<UsableVolume>, VolumeWait> {
        let bound: Result<Vec<UsableVolume>, VolumeWait> =
            pod.volumes.iter().map(|volume| self.bind_one(pod, volume)).collect();
        if bound.is_err() {
            // A pod that waits for one volume keeps no other from the pods after it.
            for key in pod.volumes.iter().filter_map(|volume| claim_of(pod, volume)) {
                if self.first.get(&key).is_some_and(|first| **first == pod.key) {
                    self.first.remove(&key);
                }
            }
        }
        bound
    }

    fn bind_one(&mut self, pod: &'a Pod, volume: &PodVolume) -> Result<UsableVolume, VolumeWait> {
        let (name, ephemeral) = match volume {
            PodVolume::Claim { name, ephemeral } => (name, *ephemeral),
            PodVolume::Attached { driver, handle } => {
                let attached = Some((driver.clone(), handle.clone()));
                return Ok(UsableVolume {
                    words: format!("volume `{handle}`"),
                    topology: Vec::new(),
                    attached,
                    reached: None,
                });
            }
        };
        let key = ObjectKey::new(pod.key.namespace(), name);
        let snapshot = self.snapshot;
        let Some(claim) = snapshot.volume_claims.get(&key) else {
            return Err(if ephemeral {
                pending(format!(
                    "waits for PersistentVolumeClaim `{name}`, which Kubernetes creates for it (an ephemeral volume)"
                ))
            } else {
                unusable(format!(
                    "uses PersistentVolumeClaim `{name}`, which does not exist in namespace `{}`; create it, or correct the name",
                    key.namespace
                ))
            });
        };
        if let Some(why) = &claim.over_quota {
            return Err(unusable(format!(
                "uses PersistentVolumeClaim `{name}`, which cannot be created, because {why}; raise the quota"
            )));
        }
        if claim.deleting {
            return Err(unusable(format!(
                "uses PersistentVolumeClaim `{name}`, which is being deleted; create it again when it is gone"
            )));
        }
        if ephemeral && claim.ephemeral_for.as_ref() != Some(&pod.uid) {
            return Err(unusable(format!(
                "needs a PersistentVolumeClaim `{name}` of its own (an ephemeral volume), but another one has that name; delete that one or rename the pod"
            )));
        }
        if let Some(other) = self.in_use.get(&key).filter(|other| **other != &pod.key) {
            return Err(pending(format!(
                "PersistentVolumeClaim `{name}` is for one pod at a time (ReadWriteOncePod), and pod {other} uses it; this pod is planned when that one has ended"
            )));
        }
        let is_for_one_pod = claim.shape.access_modes.contains(ONE_POD);
        if is_for_one_pod || (!claim.bound && claim.selected_node.is_some()) {
            let first = *self.first.entry(key.clone()).or_insert(&pod.key);
            if first != &pod.key {
                return Err(pending(if is_for_one_pod {
                    format!(
                        "PersistentVolumeClaim `{name}` is for one pod at a time (ReadWriteOncePod), and pod {first} comes first; this pod waits until that one has ended, so, if that one gets no node, see `poolwright explain pod {first}`"
                    )
                } else {
                    format!(
                        "PersistentVolumeClaim `{name}` is not bound yet, and pod {first} comes first on the node that the scheduler has chosen for its volume; this pod waits until the claim is bound, so, if that pod gets no node, see `poolwright explain pod {first}`"
                    )
                }));
            }
        }
        if claim.bound {
            return self.bound(claim);
        }
        if let Some(chosen) = self.chosen.get(&key) {
            return Ok(chosen.clone());
        }
        let chosen = self.unbound(claim)?;
        self.chosen.insert(key, chosen.clone());
        Ok(chosen)
    }

    fn bound(&self, claim: &VolumeClaim) -> Result<UsableVolume, VolumeWait> {
        let name = &claim.key.name;
        let fixed = self.fixed.get(&claim.key).map(|volume| volume.name.as_str());
        let Some(volume) = claim.volume.as_deref().or(fixed) else {
            return Err(pending(format!(
                "waits until PersistentVolumeClaim `{name}`, which wants no StorageClass, is bound to a PersistentVolume without one; no free one that is there fits it"
            )));
        };
        let Some(found) = self.snapshot.volumes.get(volume).filter(|_| !claim.lost) else {
            return Err(unusable(format!(
                "uses PersistentVolumeClaim `{name}`, but its PersistentVolume `{volume}` does not exist; restore the volume, or recreate the claim"
            )));
        };
        // A claim of a file counts as bound before the volume controller has judged its volume.
        if let Some(other) = found.claim.as_ref().filter(|other| **other != claim.key) {
            return Err(pending(format!(
                "waits until PersistentVolumeClaim `{name}` is bound to PersistentVolume `{volume}`, which is kept for claim {other}; name another volume"
            )));
        }
        let has_other_class = claim.class.as_ref().is_some_and(|class| *class != found.class);
        let misfit = misfit(found, claim).or_else(|| has_other_class.then_some("has another StorageClass"));
        if let Some(misfit) = misfit.filter(|_| found.claim.is_none()) {
            return Err(pending(format!(
                "waits until PersistentVolumeClaim `{name}` is bound to PersistentVolume `{volume}`, which {misfit}; correct one of them"
            )));
        }
        Ok(UsableVolume {
            words: format!("PersistentVolumeClaim `{name}` (volume `{volume}`)"),
            topology: found.topology.clone(),
            attached: found.attached.clone(),
            reached: None,
        })
    }

    fn class_of(&self, claim: &VolumeClaim) -> Option<&'a StorageClass> {
        let name = claim.class.as_deref().or(self.default_class)?;
        self.snapshot.storage_classes.get(name).map(AsRef::as_ref)
    }

    fn unbound(&mut self, claim: &'a VolumeClaim) -> Result<UsableVolume, VolumeWait> {
        let name = &claim.key.name;
        if let Some(volume) = &claim.volume {
            return Err(pending(format!(
                "waits until PersistentVolumeClaim `{name}` is bound to PersistentVolume `{volume}`"
            )));
        }
        let Some(wanted) = claim.class.as_deref().or(self.default_class) else {
            return Err(unusable(format!(
                "uses PersistentVolumeClaim `{name}`, which is not bound and names no StorageClass, and the cluster has no default; set spec.storageClassName of the claim"
            )));
        };
        if wanted.is_empty() {
            return Err(pending(format!(
                "waits until PersistentVolumeClaim `{name}`, which wants no StorageClass, is bound to a PersistentVolume without one"
            )));
        }
        let Some(class) = self.class_of(claim) else {
            return Err(unusable(format!(
                "uses PersistentVolumeClaim `{name}`, which is not bound, and its StorageClass `{wanted}` does not exist; create the class, or correct spec.storageClassName of the claim"
            )));
        };
        if !class.waits_for_pod {
            return Err(pending(format!(
                "waits until PersistentVolumeClaim `{name}` is bound: StorageClass `{wanted}` binds at once (Immediate), without waiting for the pod; if it stays so, look at its events (`kubectl describe pvc {name}`)"
            )));
        }
        let words = format!("PersistentVolumeClaim `{name}` (StorageClass `{wanted}`)");
        let driver = class.provisioner.clone().map(|driver| (driver, format!("claim {}", claim.key)));
        if let Some(node) = &claim.selected_node {
            let operator = Operator::In([node.clone()].into());
            let requirement = Requirement { key: NODE_NAME_FIELD.to_owned(), operator };
            let topology = vec![vec![NodeSelectorTerm { requirements: vec![requirement] }]];
            return Ok(UsableVolume { words, topology, attached: driver, reached: None });
        }
        let mut candidates = self.candidates(claim, class);
        if let Some(kept) = candidates.iter().find(|volume| volume.claim.as_ref() == Some(&claim.key)) {
            return Ok(UsableVolume {
                words,
                topology: kept.topology.clone(),
                attached: kept.attached.clone(),
                reached: is_for_one_node(claim, class).then(|| (claim.key.clone(), Reach::Node)),
            });
        }
        if class.provisioner.is_none() {
            if candidates.is_empty() {
                return Err(unusable(format!(
                    "uses PersistentVolumeClaim `{name}`, but no free PersistentVolume of StorageClass `{wanted}` fits it, and the class has no provisioner; add a volume"
                )));
            }
            if candidates.iter().any(|volume| self.contested.contains(volume.name.as_str())) {
                // Several claims could get the same volume, so each claim is planned with a volume of its own.
                candidates.retain(|volume| !self.given.contains(volume.name.as_str()));
                candidates.truncate(1);
                let Some(own) = candidates.first() else {
                    return Err(unusable(format!(
                        "uses PersistentVolumeClaim `{name}`, but earlier claims get every PersistentVolume of StorageClass `{wanted}` that fits it; add a volume"
                    )));
                };
                self.given.insert(&own.name);
            }
        }
        let attached = driver.or_else(|| candidates.first().and_then(|volume| volume.attached.clone()));
        let reached = reach(claim, class, &candidates).map(|reach| (claim.key.clone(), reach));
        Ok(UsableVolume { words, topology: places(class, &candidates), attached, reached })
    }

    /// Returns the existing volumes that an unbound claim could be bound to, the smallest first.
    fn candidates(&self, claim: &VolumeClaim, class: &StorageClass) -> Vec<&'a Volume> {
        let is_candidate = |volume: &&'a Volume| {
            let kept = volume.claim.as_ref() == Some(&claim.key);
            !volume.deleting
                && misfit(volume, claim).is_none()
                && (kept || (volume.claim.is_none() && volume.available && suits(volume, claim, &class.name)))
        };
        let all = self.snapshot.volumes.values().map(AsRef::as_ref);
        let mut found: Vec<&Volume> = all.filter(is_candidate).collect();
        found.sort_by_key(|volume| (volume.shape.size, &volume.name));
        found
    }
}

/// Says why a claim cannot be bound to a volume, not even to one that is kept for it; `None` if it can.
fn misfit(volume: &Volume, claim: &VolumeClaim) -> Option<&'static str> {
    let (has, wants) = (&volume.shape, &claim.shape);
    if has.size < wants.size {
        Some("is too small for it")
    } else if has.block != wants.block {
        Some("has another volumeMode")
    } else if has.attributes_class != wants.attributes_class {
        Some("has another volumeAttributesClassName")
    } else {
        None
    }
}

/// Returns whether a claim that wants a volume of this StorageClass can choose this one.
fn suits(volume: &Volume, claim: &VolumeClaim, class: &str) -> bool {
    volume.class == class
        && claim.shape.access_modes.is_subset(&volume.shape.access_modes)
        && claim.selector.iter().all(|wanted| matches(wanted, &volume.labels))
}

/// Returns whether only one node at a time can use the volume of a claim.
fn is_for_one_node(claim: &VolumeClaim, class: &StorageClass) -> bool {
    let driver = class.provisioner.as_deref().unwrap_or_default();
    claim.is_for_one_node() && !is_unattached(driver)
}

/// Returns which places reach the volume that a claim gets with its first pod; `None` if all do, as far as is known.
fn reach(claim: &VolumeClaim, class: &StorageClass, candidates: &[&Volume]) -> Option<Reach> {
    let of_volumes = candidates.iter().flat_map(|volume| &volume.topology).flatten();
    let of_class = class.allowed.iter().flatten();
    let requirements = of_volumes.chain(of_class).flat_map(|term| &term.requirements);
    let keys: BTreeSet<&str> = requirements.map(|requirement| requirement.key.as_str()).collect();
    let is_zone = |key: &&str| *key == ZONE || repeats(key) == Some(ZONE);
    let driver = class.provisioner.as_deref().unwrap_or_default();
    if is_for_one_node(claim, class) || keys.contains(HOSTNAME) {
        Some(Reach::Node)
    } else if keys.iter().any(is_zone) || ZONAL_DRIVERS.contains(&driver) {
        Some(Reach::Zone)
    } else {
        None
    }
}

/// Returns the places where a claim can get a volume, which is an existing candidate or a new volume of the class.
fn places(class: &StorageClass, candidates: &[&Volume]) -> Vec<Vec<NodeSelectorTerm>> {
    let mut anywhere: Vec<NodeSelectorTerm> = Vec::new();
    if class.provisioner.is_some() {
        match &class.allowed {
            None => return Vec::new(),
            Some(allowed) => anywhere.extend(allowed.iter().cloned()),
        }
    }
    // A single volume may keep its several lists of terms. If there are several volumes, each contributes the conjunction of its
    // lists.
    if let ([only], true) = (candidates, class.provisioner.is_none()) {
        return only.topology.clone();
    }
    for volume in candidates {
        match conjunction(&volume.topology) {
            None => return Vec::new(),
            Some(terms) => anywhere.extend(terms),
        }
    }
    vec![anywhere]
}

/// Combines AND-ed lists of OR-ed terms into one list of OR-ed terms; `None` if there are no lists.
fn conjunction(lists: &[Vec<NodeSelectorTerm>]) -> Option<Vec<NodeSelectorTerm>> {
    let (first, rest) = lists.split_first()?;
    let mut terms = first.clone();
    for list in rest {
        let both = |one: &NodeSelectorTerm, other: &NodeSelectorTerm| NodeSelectorTerm {
            requirements: one.requirements.iter().chain(&other.requirements).cloned().collect(),
        };
        // An empty term matches nothing.
        let asks = |term: &&NodeSelectorTerm| !term.requirements.is_empty();
        terms = terms
            .iter()
            .filter(asks)
            .flat_map(|one| list.iter().filter(asks).map(move |other| both(one, other)))
            .collect();
    }
    Some(terms)
}

/// Returns the key of the claim that a volume of a pod names.
pub(crate) fn claim_of(pod: &Pod, volume: &PodVolume) -> Option<ObjectKey> {
    match volume {
        PodVolume::Claim { name, .. } => Some(ObjectKey::new(pod.key.namespace(), name)),
        PodVolume::Attached { .. } => None,
    }
}
