//! Notes about shared and cut GPUs: what `--sharing` does not change, and labels that could keep new nodes closed.

use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_core::{Pool, Snapshot};
use poolwright_terms::labels::{DEVICE_PLUGIN_CONFIG, MIG_CONFIG, MIG_DISABLED};

use crate::args::SharingMode;

/// Returns the notes about a plan in which pods may share GPUs like this.
pub fn notes(snapshot: &Snapshot, sharing: SharingMode) -> Vec<String> {
    let pools = snapshot.pools.values().flat_map(|pool| of_pool(pool, sharing));
    unused(snapshot, sharing).into_iter().chain(pools).collect()
}

/// Says that nothing asks for parts of GPUs, so that `--sharing` is of no use.
fn unused(snapshot: &Snapshot, sharing: SharingMode) -> Option<String> {
    let shares = || snapshot.pods.unbound().any(|pod| pod.spec.gpu_share.is_some());
    let instances = || {
        let units = snapshot.pools.values().flat_map(|pool| &pool.buffer);
        let mut units = units.map(|units| &units.requests);
        snapshot.pods.unbound().any(|pod| has_instances(&pod.spec.requests)) || units.any(has_instances)
    };
    let (is_used, how) = match sharing {
        SharingMode::None => return None,
        SharingMode::TimeSlicing | SharingMode::Mps => {
            (shares(), "only pods of a trace ask for shares (gpu_milli)")
        }
        SharingMode::Mig => {
            (shares() || instances(), "requests name MIG instances, such as nvidia.com/mig-1g.10gb")
        }
    };
    (!is_used).then(|| {
        format!(
            "--sharing {sharing}: nothing here asks for a part of a GPU, so pods and units of buffers get whole GPUs; {how}"
        )
    })
}

fn has_instances(requests: &ResourceList) -> bool {
    requests.iter().any(|(name, _)| name.as_str().starts_with(ResourceName::MIG_PREFIX))
}

fn of_pool(pool: &Pool, sharing: SharingMode) -> Vec<String> {
    let name = &pool.name;
    let mut notes = Vec::new();
    if sharing != SharingMode::None && pool.replicas.is_some() {
        notes.push(format!(
            "pool {name}: --sharing does not count for the nodes of a static pool: they offer whole GPUs"
        ));
    }
    let cut = pool.labels.get(MIG_CONFIG).filter(|config| config.as_str() != MIG_DISABLED);
    if let Some(config) = cut.filter(|_| sharing == SharingMode::Mig && pool.replicas.is_none()) {
        notes.push(format!(
            "pool {name}: --sharing mig chooses the instances itself, whatever the label `{MIG_CONFIG}: {config}` of its template says"
        ));
    }
    if let Some(config) = pool.labels.get(DEVICE_PLUGIN_CONFIG) {
        notes.push(format!(
            "pool {name}: its template has the label `{DEVICE_PLUGIN_CONFIG}: {config}`; if this configuration shares or cuts GPUs, new \
             nodes stay closed, because Poolwright buys nodes for whole GPUs"
        ));
    }
    notes
}
