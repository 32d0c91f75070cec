//! `VolumeRestrictions`, `NodeVolumeLimits`, `VolumeBinding` and `VolumeZone`.
//!
//! The model has one list of places for a volume, which the kube-scheduler splits over two plugins. So a volume in another zone
//! gets the message about node affinity. A volume that does not exist yet counts against no limit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use poolwright_core::rules::check_volumes;
use poolwright_core::{ObjectKey, Pod, PodVolume, Volume, VolumeClaim};

use super::super::binding::{Supply, Unbound, waits_for_pod};
use super::super::cluster::{Around, Cluster, NodeInfo, NodeLabels};
use super::super::reason::{Fits, Reason, Unfit};

const ONE_POD: &str = "ReadWriteOncePod";

/// The volumes of a pod.
#[derive(Clone, Default)]
pub(super) struct Volumes<'a> {
    /// The volumes of its claims; `None` for a deleted volume.
    bound: Vec<Option<&'a Volume>>,
    /// Its claims that are bound where it goes (`WaitForFirstConsumer`).
    unbound: Vec<Unbound<'a>>,
    /// Claims that only one pod may use at a time.
    single: BTreeSet<ObjectKey>,
    /// The number of uses of these claims by other pods.
    in_use: i64,
    was_in_use: bool,
    /// Driver and handle of each volume attached for it.
    attached: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Volumes<'a> {
    /// Collects the volumes of a pod. The error is the reason why no node fits the pod.
    pub fn new(cluster: &'a Cluster, pod: &'a Pod) -> Result<Self, String> {
        let mut volumes = Self::default();
        let around = &cluster.around;
        let mut immediate = false;
        for used in &pod.volumes {
            let PodVolume::Claim { name, ephemeral } = used else { continue };
            let Some(claim) = claim_of(around, pod, used) else {
                return Err(if *ephemeral {
                    format!(
                        "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{name}\""
                    )
                } else {
                    format!("persistentvolumeclaim \"{name}\" not found")
                });
            };
            if claim.lost {
                let volume = claim.volume.as_deref().unwrap_or_default();
                return Err(format!(
                    "persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume \"{volume}\""
                ));
            }
            if claim.deleting {
                return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
            }
            if *ephemeral && claim.ephemeral_for.as_ref() != Some(&pod.uid) {
                return Err(format!(
                    "PVC {} was not created for pod {} (pod is not owner)",
                    claim.key, pod.key
                ));
            }
            if claim.shape.access_modes.contains(ONE_POD) {
                volumes.single.insert(claim.key.clone());
            }
            if claim.bound {
                let volume = claim.volume.as_ref().and_then(|name| around.volumes.get(name));
                volumes.bound.push(volume.map(AsRef::as_ref));
            } else if claim.volume.is_some() || !waits_for_pod(around, claim) {
                immediate = true;
            } else {
                volumes.unbound.push(Unbound::new(around, claim));
            }
        }
        if immediate {
            return Err("pod has unbound immediate PersistentVolumeClaims".to_owned());
        }
        volumes.attached = attached(around, pod).collect();
        if !volumes.single.is_empty() {
            let all = cluster.nodes().iter().flat_map(|at| &at.pods);
            volumes.in_use = all.map(|other| volumes.conflicts(&other.pod)).sum();
            volumes.was_in_use = volumes.in_use > 0;
        }
        Ok(volumes)
    }

    fn conflicts(&self, other: &Pod) -> i64 {
        if self.single.is_empty() {
            return 0;
        }
        let used = other.volumes.iter().filter_map(|volume| key_of(other, volume));
        used.filter(|key| self.single.contains(key)).count() as i64
    }

    /// Adds or removes a pod. Like the kube-scheduler, does nothing if no claim was in use at the start.
    pub fn update(&mut self, other: &Pod, by: i64) {
        if self.was_in_use {
            self.in_use += by * self.conflicts(other);
        }
    }

    pub fn check(&self, cluster: &Cluster, at: &NodeInfo) -> Fits {
        if self.in_use > 0 {
            return Err(Unfit::resolvable(Reason::VolumeInUse));
        }
        if !self.attached.is_empty() {
            self.check_limits(&cluster.around, at)?;
        }
        let labels = NodeLabels(&at.node);
        let elsewhere = |volume: &&Volume| check_volumes(&volume.topology, &labels).is_err();
        // Like the kube-scheduler, reports only the first problem.
        for volume in &self.bound {
            match volume {
                None => return Err(Unfit::unresolvable(Reason::VolumeGone)),
                Some(volume) if elsewhere(volume) => {
                    return Err(Unfit::unresolvable(Reason::VolumeElsewhere));
                }
                Some(_) => {}
            }
        }
        let mut taken = BTreeSet::new();
        for claim in &self.unbound {
            match claim.on(&labels, &taken) {
                None => return Err(Unfit::unresolvable(Reason::NoVolume)),
                Some(Supply::Volume(name)) => {
                    taken.insert(name);
                }
                Some(Supply::Class(_)) => {}
            }
        }
        Ok(())
    }

    fn check_limits(&self, around: &Around, at: &NodeInfo) -> Fits {
        let Some(drivers) = around.node_drivers.get(&at.node.name).filter(|one| !one.limits.is_empty())
        else {
            return Ok(());
        };
        // A volume that several pods of a node use is attached only once.
        let there: BTreeSet<(&str, &str)> =
            at.pods.iter().flat_map(|other| attached(around, &other.pod)).collect();
        let mut after: BTreeMap<&str, u64> = BTreeMap::new();
        for (driver, _) in there.union(&self.attached) {
            *after.entry(driver).or_default() += 1;
        }
        let grows = |driver: &str| self.attached.iter().any(|one| one.0 == driver && !there.contains(one));
        let full = |(driver, count): (&&str, &u64)| {
            drivers.limits.get(*driver).is_some_and(|limit| count > limit) && grows(driver)
        };
        if after.iter().any(full) { Err(Unfit::resolvable(Reason::TooManyVolumes)) } else { Ok(()) }
    }
}

fn key_of(pod: &Pod, volume: &PodVolume) -> Option<ObjectKey> {
    match volume {
        PodVolume::Claim { name, .. } => Some(ObjectKey::new(pod.key.namespace(), name)),
        PodVolume::Attached { .. } => None,
    }
}

fn claim_of<'a>(around: &'a Around, pod: &Pod, volume: &PodVolume) -> Option<&'a Arc<VolumeClaim>> {
    around.volume_claims.get(&key_of(pod, volume)?)
}

/// Returns driver and handle of each volume attached for a pod.
fn attached<'a>(around: &'a Around, pod: &'a Pod) -> impl Iterator<Item = (&'a str, &'a str)> {
    pod.volumes.iter().filter_map(|volume| match volume {
        PodVolume::Attached { driver, handle } => Some((driver.as_str(), handle.as_str())),
        PodVolume::Claim { .. } => {
            let bound = claim_of(around, pod, volume)?.volume.as_ref()?;
            let (driver, handle) = around.volumes.get(bound)?.attached.as_ref()?;
            Some((driver, handle))
        }
    })
}
