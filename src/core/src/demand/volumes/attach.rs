//! Volume limits of nodes by CSI driver (the kube-scheduler's `NodeVolumeLimits`), expressed as resources.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::ResourceList;
use poolwright_terms::labels::INSTANCE_TYPE;

use crate::demand::volumes::bind::{UsableVolume, claim_of};
use crate::model::{Pod, PodPhase, PodVolume, Snapshot};
use crate::rules::format::ATTACHABLE;
use crate::rules::labels::Labels;

/// The limit for drivers without a limit.
const UNLIMITED: u64 = 1 << 20;

/// The number of further volumes that nodes can attach, for the drivers that pending pods need and that some node limits. Other
/// drivers are not counted.
#[derive(Debug, Default)]
pub(crate) struct Attachable {
    drivers: BTreeMap<String, Driver>,
}

#[derive(Debug, Default)]
struct Driver {
    /// The limits of nodes. Nodes without a limit are left out.
    by_node: BTreeMap<String, u64>,
    /// The smallest limit seen, by instance type.
    by_type: BTreeMap<String, u64>,
    /// The number of volumes that the pods on each node use.
    used: BTreeMap<String, u64>,
}

impl Attachable {
    /// Counts volumes of these drivers.
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
            // A volume that several pods on a node use is attached once.
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

    /// Returns whether no volumes are counted.
    pub fn is_empty(&self) -> bool {
        self.drivers.is_empty()
    }

    /// Returns the requests of a pod for the attachment of these volumes.
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

    /// Returns the number of further volumes that a node can attach, by driver. `name` is `None` for a node that has not joined.
    /// A node that reports no limit gets the smallest limit seen for its type, or no limit if none was seen.
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

/// Returns the driver and handle of every volume of a bound pod.
fn handles<'a>(snapshot: &'a Snapshot, pod: &'a Pod) -> impl Iterator<Item = (String, String)> + 'a {
    pod.volumes.iter().filter_map(move |volume| match volume {
        PodVolume::Attached { driver, handle } => Some((driver.clone(), handle.clone())),
        PodVolume::Claim { .. } => {
            let claim = snapshot.volume_claims.get(&claim_of(pod, volume)?)?;
            snapshot.volumes.get(claim.volume.as_deref()?)?.attached.clone()
        }
    })
}
