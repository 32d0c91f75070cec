//! PodGroups of the kube-scheduler in Kubernetes 1.36. Other schedulers have kinds of the same name in other API groups
//! ([`crate::other_groups`]).

use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::api::scheduling::v1alpha2 as k8s;
use poolwright_api::FieldProblem;
use poolwright_core::{PodGroup, UnmodelledRule};

use crate::error::{IntakeError, OfObject, object_name};
use crate::pod::{key_of, uid_of};

/// Converts a PodGroup. Fails only for a policy that an API server would refuse.
///
/// `disruptionMode` and `priority` decide which pods the scheduler preempts, and do not affect purchases. `resourceClaims` have
/// no effect without pods that name them, and Poolwright does not plan such pods (`spec.resourceClaims` of the pod).
pub fn pod_group(from: &k8s::PodGroup) -> Result<PodGroup, IntakeError> {
    let meta = &from.metadata;
    convert(from).map_err(|problem| {
        let namespace = meta.namespace.as_deref().or(Some("default"));
        problem.of(object_name("PodGroup", namespace, meta.name.as_deref()))
    })
}

pub(crate) fn convert(from: &k8s::PodGroup) -> Result<PodGroup, FieldProblem> {
    let (meta, spec) = (&from.metadata, &from.spec);
    let mut unmodelled = Vec::new();
    let mut add = |field: &str, rule: &str| {
        unmodelled.push(UnmodelledRule { field: field.to_owned(), rule: rule.to_owned() });
    };
    let policy = &spec.scheduling_policy;
    let min_count = match (&policy.gang, &policy.basic) {
        (Some(_), Some(_)) => {
            let cause = "a PodGroup is a gang or basic, not both";
            return Err(FieldProblem::new("spec.schedulingPolicy", cause, "remove one of them"));
        }
        (Some(gang), None) => {
            let count = u32::try_from(gang.min_count).ok().filter(|count| *count > 0);
            let cause = || format!("{} is not a number of pods", gang.min_count);
            let problem =
                || FieldProblem::new("spec.schedulingPolicy.gang.minCount", cause(), "write at least 1");
            Some(count.ok_or_else(problem)?)
        }
        (None, Some(_)) => None,
        (None, None) => {
            add("spec.schedulingPolicy", "a policy that is neither basic nor gang");
            None
        }
    };
    let constraints = spec.scheduling_constraints.as_ref();
    if constraints.and_then(|all| all.topology.as_ref()).is_some_and(|all| !all.is_empty()) {
        add("spec.schedulingConstraints.topology", "all pods of a group in one topology domain");
    }
    Ok(PodGroup {
        key: key_of(meta),
        uid: uid_of(meta),
        min_count,
        roles: Vec::new(),
        unmodelled,
        stands_for: None,
        held: None,
    })
}

/// Returns the PodGroup that a pod belongs to, by name.
pub(crate) fn group_of(spec: &PodSpec) -> Option<String> {
    spec.scheduling_group.as_ref()?.pod_group_name.clone().filter(|name| !name.is_empty())
}
