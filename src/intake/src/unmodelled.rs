//! Scheduling rules that the planner does not model: found here and named as their user wrote them, so that a pod that
//! has one is left alone instead of being planned as if the rule were not there. Mere preferences forbid nothing and
//! are not mentioned.

use k8s_openapi::api::core::v1 as k8s;
use poolwright_core::UnmodelledRule;

/// Every rule of this spec that is not modelled, apart from those found where a rule is read: node affinity, tolerations,
/// pod affinity and anti-affinity, topology spread. `path` is that of the spec.
pub(crate) fn find(path: &str, spec: &k8s::PodSpec) -> Vec<UnmodelledRule> {
    let mut found = Vec::new();
    let mut add = |field: String, rule: &str| {
        found.push(UnmodelledRule { field: format!("{path}.{field}"), rule: rule.to_owned() });
    };
    for (at, volume) in spec.volumes.iter().flatten().enumerate() {
        if let Some((source, rule)) = bound_volume(volume) {
            add(format!("volumes[{at}].{source}"), rule);
        }
    }
    if is_some(spec.resource_claims.as_deref()) {
        add("resourceClaims".to_owned(), "dynamic resource allocation (DRA)");
    }
    if spec.scheduling_group.is_some() {
        add("schedulingGroup".to_owned(), "scheduling of a group of pods as one");
    }
    if spec.os.as_ref().is_some_and(|os| os.name != "linux") {
        add("os".to_owned(), "an operating system other than Linux");
    }
    found
}

fn is_some<T>(list: Option<&[T]>) -> bool {
    list.is_some_and(|list| !list.is_empty())
}

/// The source of a volume that can be had on some nodes only, and what that rule is called. Sources that any node can
/// provide are known to be harmless; everything else is not.
fn bound_volume(volume: &k8s::Volume) -> Option<(&'static str, &'static str)> {
    let bound = [
        ("persistentVolumeClaim", volume.persistent_volume_claim.is_some()),
        ("ephemeral", volume.ephemeral.is_some()),
    ];
    if let Some((source, _)) = bound.into_iter().find(|(_, is_used)| *is_used) {
        return Some((source, "volumes that are bound to a zone or a node"));
    }
    let attached = [
        ("csi", volume.csi.is_some()),
        ("awsElasticBlockStore", volume.aws_elastic_block_store.is_some()),
        ("azureDisk", volume.azure_disk.is_some()),
        ("cinder", volume.cinder.is_some()),
        ("fc", volume.fc.is_some()),
        ("flexVolume", volume.flex_volume.is_some()),
        ("flocker", volume.flocker.is_some()),
        ("gcePersistentDisk", volume.gce_persistent_disk.is_some()),
        ("iscsi", volume.iscsi.is_some()),
        ("photonPersistentDisk", volume.photon_persistent_disk.is_some()),
        ("portworxVolume", volume.portworx_volume.is_some()),
        ("quobyte", volume.quobyte.is_some()),
        ("rbd", volume.rbd.is_some()),
        ("scaleIO", volume.scale_io.is_some()),
        ("storageos", volume.storageos.is_some()),
        ("vsphereVolume", volume.vsphere_volume.is_some()),
    ];
    attached
        .into_iter()
        .find(|(_, is_used)| *is_used)
        .map(|(source, _)| (source, "volumes that are attached to a node or limited in number"))
}
