//! Finds scheduling rules that the planner does not model, and names them as their user wrote them. Poolwright does not plan a
//! pod with such a rule, instead of planning it as if the rule did not exist. Preferences forbid nothing, so they
//! do not appear here.

use k8s_openapi::api::core::v1 as k8s;
use poolwright_core::UnmodelledRule;

use crate::pod_groups;

/// Returns all rules of this spec that are not modelled, except those found by their own readers: node affinity, tolerations, pod
/// affinity and anti-affinity, topology spread. `path` is the path of the spec.
pub(crate) fn find(path: &str, spec: &k8s::PodSpec) -> Vec<UnmodelledRule> {
    let mut found = Vec::new();
    let mut add = |field: String, rule: &str| {
        found.push(UnmodelledRule { field: format!("{path}.{field}"), rule: rule.to_owned() });
    };
    for (at, volume) in spec.volumes.iter().flatten().enumerate() {
        if let Some((source, rule)) = exclusive_volume(volume) {
            add(format!("volumes[{at}].{source}"), rule);
        }
    }
    if is_some(spec.resource_claims.as_deref()) {
        add("resourceClaims".to_owned(), "dynamic resource allocation (DRA)");
    }
    if spec.scheduling_group.is_some() && pod_groups::group_of(spec).is_none() {
        add("schedulingGroup".to_owned(), "scheduling of a group of pods that is no PodGroup");
    }
    if spec.os.as_ref().is_some_and(|os| os.name != "linux") {
        add("os".to_owned(), "an operating system other than Linux");
    }
    found
}

fn is_some<T>(list: Option<&[T]>) -> bool {
    list.is_some_and(|list| !list.is_empty())
}

/// Returns a volume source that pods of a node may be unable to share, and the name of the rule. Claims are handled in `volumes`;
/// the scheduler ignores all other sources.
fn exclusive_volume(volume: &k8s::Volume) -> Option<(&'static str, &'static str)> {
    let exclusive = [
        ("awsElasticBlockStore", volume.aws_elastic_block_store.is_some()),
        ("gcePersistentDisk", volume.gce_persistent_disk.is_some()),
        ("iscsi", volume.iscsi.is_some()),
        ("rbd", volume.rbd.is_some()),
    ];
    exclusive.into_iter().find(|(_, is_used)| *is_used).map(|(source, _)| {
        (source, "a disk by name that pods of a node cannot share; a PersistentVolumeClaim can be planned")
    })
}
