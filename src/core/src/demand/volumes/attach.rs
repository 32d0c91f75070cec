//! How many volumes of each CSI driver a node takes: the kube-scheduler's `NodeVolumeLimits`, as amounts of a resource.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::ResourceList;
use poolwright_terms::labels::INSTANCE_TYPE;

use crate::demand::volumes::bind::{UsableVolume, claim_of};
use crate::model::{Pod, PodPhase, PodVolume, Snapshot};
use crate::rules::format::ATTACHABLE;
use crate::rules::labels::Labels;

/// Where a driver has no limit.
const UNLIMITED: u64 = 1 << 20;

/// How many more volumes nodes take, of the drivers that waiting pods need and that some node limits. Volumes of all other
/// drivers are not counted.
#[derive(Debug, Default)]
pub(crate) struct Attachable {
    drivers: BTreeMap<String, Driver>,
}

#[derive(Debug, Default)]
struct Driver {
    /// By node: its limit, `None` where it has none.
    by_node: BTreeMap<String, u64>,
    /// By instance type: the smallest limit seen.
    by_type: BTreeMap<String, u64>,
    /// By node: volumes of pods that are there.
    used: BTreeMap<String, u64>,
}

impl Attachable {
    /// For these drivers.
    pub(crate) fn new(snapshot: &Snapshot, wanted: BTreeSet<&str>) -> Self {
        let mut drivers: BTreeMap<String, Driver> = BTreeMap::new();
        for node in snapshot.node_drivers.values() {
            let kind = snapshot.nodes.get(&node.node).and_then(|node| node.labels.get(INSTANCE_TYPE));
            for (name, limit) in node.limits.iter().filter(|(name, _)| wanted.contains(name.as_str())) {
                let driver = drivers.entry(name.clone()).or_default();
                driver.by_node.insert(node.node.clone(), *limit);
                if let Some(kind) = kind {
                    let smallest = driver.by_type.entry(kind.clone()).or_insert(*limit);
                    *smallest = (*smallest).min(*limit);
                }
            }
        }
        if !drivers.is_empty() {
            // A volume that several pods of a node use is attached once.
            let mut attached: BTreeSet<(&str, String, String)> = BTreeSet::new();
            for pod in snapshot.pods.bound_with_volumes() {
                if let PodPhase::Bound { node } = &pod.phase {
                    attached.extend(
                        handles(snapshot, pod).map(|(driver, handle)| (node.as_str(), driver, handle)),
                    );
                }
            }
            for (node, driver, _) in attached {
                if let Some(driver) = drivers.get_mut(&driver) {
                    *driver.used.entry(node.to_owned()).or_default() += 1;
                }
            }
        }
        Self { drivers }
    }

    /// Whether no volumes are counted.
    pub fn is_empty(&self) -> bool {
        self.drivers.is_empty()
    }

    /// What a pod with these volumes asks for.
    pub(crate) fn requests(&self, volumes: &[UsableVolume]) -> ResourceList {
        let mut requests = ResourceList::new();
        let attached: BTreeSet<_> = volumes.iter().filter_map(|volume| volume.attached.as_ref()).collect();
        for (driver, _) in attached.into_iter().filter(|(driver, _)| self.drivers.contains_key(driver)) {
            let name = resource(driver);
            let count = requests.get(&name) + 1;
            requests.set(name.as_str(), count);
        }
        requests
    }

    /// What a node takes, less what is attached to it. `name` is `None` while it is not there. A node that says nothing
    /// (yet) takes as many as the smallest of its type that does; of a type that nobody has seen, as many as are wanted.
    pub fn of(&self, name: Option<&str>, labels: &impl Labels) -> ResourceList {
        let mut room = ResourceList::new();
        for (driver, seen) in &self.drivers {
            let own = name.and_then(|name| seen.by_node.get(name));
            let limit = own.or_else(|| seen.by_type.get(labels.label(INSTANCE_TYPE)?)).copied();
            let used = name.and_then(|name| seen.used.get(name)).copied().unwrap_or(0);
            room.set(resource(driver).as_str(), limit.unwrap_or(UNLIMITED).saturating_sub(used));
        }
        room
    }
}

fn resource(driver: &str) -> String {
    format!("{ATTACHABLE}{driver}")
}

/// Driver and handle of every volume of a pod that is on a node.
fn handles<'a>(snapshot: &'a Snapshot, pod: &'a Pod) -> impl Iterator<Item = (String, String)> + 'a {
    pod.volumes.iter().filter_map(move |volume| match volume {
        PodVolume::Attached { driver, handle } => Some((driver.clone(), handle.clone())),
        PodVolume::Claim { .. } => {
            let claim = snapshot.volume_claims.get(&claim_of(pod, volume)?)?;
            snapshot.volumes.get(claim.volume.as_deref()?)?.attached.clone()
        }
    })
}
