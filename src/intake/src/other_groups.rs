//! PodGroups of Volcano and of the plugin coscheduling. Their schedulers place as many of their pods as they say together, or none.
//!
//! The facts: `CheckTaskValid` and `getTaskID` of `pkg/scheduler/api` and the actions `enqueue` and `allocate` in volcano-sh/volcano,
//! `pkg/coscheduling` in kubernetes-sigs/scheduler-plugins.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use poolwright_api::FieldProblem;
use poolwright_api::strict::{UNKNOWN_FIELD, read};
use poolwright_core::{GangScheduler, GroupRole, ObjectKey, PodGroup, UnmodelledRule};
use poolwright_terms::one_line;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::gangs::resource;
use crate::pod::{key_of, uid_of};
use crate::pod_sets::VOLCANO_TASK;

/// A PodGroup of Volcano: the fields that decisions use.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct VolcanoPodGroup {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: VolcanoSpec,
    status: Option<VolcanoStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VolcanoSpec {
    min_member: Option<i32>,
    min_task_member: Option<BTreeMap<String, i32>>,
    queue: Option<String>,
    network_topology: Option<NetworkTopology>,
    sub_group_policy: Option<Vec<Value>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NetworkTopology {
    mode: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct VolcanoStatus {
    phase: Option<String>,
    succeeded: Option<i32>,
}

/// A PodGroup of the plugin coscheduling: the fields that decisions use.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct CoschedulingPodGroup {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: CoschedulingSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CoschedulingSpec {
    min_member: Option<i32>,
}

resource!(VolcanoPodGroup, "scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups");
resource!(CoschedulingPodGroup, "scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups");

/// Reads a PodGroup of another scheduler from a manifest. Fields that it does not have are looked for elsewhere.
pub(crate) fn of_manifest(scheduler: GangScheduler, value: &Value) -> Result<PodGroup, Vec<FieldProblem>> {
    Ok(match scheduler {
        GangScheduler::Volcano => volcano_pod_group(&read_known(value)?),
        GangScheduler::Coscheduling => coscheduling_pod_group(&read_known(value)?),
    })
}

/// Reads an object that may have more fields than its type.
fn read_known<T: DeserializeOwned>(value: &Value) -> Result<T, Vec<FieldProblem>> {
    let mut problems = match read(value) {
        Ok(object) => return Ok(object),
        Err(problems) => problems,
    };
    problems.retain(|problem| problem.cause != UNKNOWN_FIELD);
    if problems.is_empty() {
        let problem =
            |error: serde_json::Error| FieldProblem::new("", error.to_string(), "correct the value");
        return T::deserialize(value).map_err(|error| vec![problem(error)]);
    }
    Err(problems)
}

/// Converts a PodGroup of Volcano. A task of `minTaskMember` is a role. The priority decides which pods give way, and does not affect
/// purchases. Nodes for `minMember` pods have its `minResources`.
pub fn volcano_pod_group(from: &VolcanoPodGroup) -> PodGroup {
    let spec = &from.spec;
    let of_task = |(task, least): (&String, &i32)| {
        let label = (VOLCANO_TASK.to_owned(), task.clone());
        let least = number(Some(*least));
        (least > 0).then(|| GroupRole { name: one_line(task).into_owned(), label, least })
    };
    let roles: Vec<GroupRole> = spec.min_task_member.iter().flatten().filter_map(of_task).collect();
    // If it needs fewer pods than its tasks, Volcano counts all pods alike.
    let of_tasks: u64 = roles.iter().map(|role| u64::from(role.least)).sum();
    let counts = of_tasks <= u64::from(number(spec.min_member));
    // Pods that have succeeded count to its minimum. Of which tasks they were is not known.
    let done = number(from.status.as_ref().and_then(|status| status.succeeded));
    let roles = if counts && done == 0 { roles } else { Vec::new() };
    let least = number(spec.min_member).saturating_sub(done);
    let mut group = model(GangScheduler::Volcano, &from.metadata, least, roles);
    let mut add = |field: &str, rule: &str| {
        group.unmodelled.push(UnmodelledRule { field: field.to_owned(), rule: rule.to_owned() });
    };
    // The mode is `hard` if none is written.
    if spec.network_topology.as_ref().is_some_and(|topology| topology.mode.as_deref() != Some("soft")) {
        add("spec.networkTopology", "all pods of a group in one domain of the network");
    }
    if spec.sub_group_policy.as_ref().is_some_and(|all| !all.is_empty()) {
        add("spec.subGroupPolicy", "gangs within a gang");
    }
    if from.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Pending") {
        let queue = spec.queue.as_deref().filter(|queue| !queue.is_empty()).unwrap_or("default");
        group.held = Some(format!(
            "is Pending: Volcano has not admitted it to queue `{}` yet, and tries none of its pods; raise what the queue may use, or wait. If the queue waits only for nodes, run Volcano without its action `enqueue`",
            one_line(queue)
        ));
    }
    group
}

/// Converts a PodGroup of the plugin coscheduling. Nodes for `minMember` pods have its `minResources`.
pub fn coscheduling_pod_group(from: &CoschedulingPodGroup) -> PodGroup {
    model(GangScheduler::Coscheduling, &from.metadata, number(from.spec.min_member), Vec::new())
}

fn model(scheduler: GangScheduler, meta: &ObjectMeta, least: u32, roles: Vec<GroupRole>) -> PodGroup {
    let ObjectKey { namespace, name } = key_of(meta);
    let name = scheduler.model_name(&name);
    PodGroup {
        uid: uid_of(meta),
        min_count: (least > 1 || !roles.is_empty()).then_some(least),
        roles,
        unmodelled: Vec::new(),
        stands_for: Some(format!("PodGroup {namespace}/{name}")),
        held: None,
        key: ObjectKey { namespace, name },
    }
}

/// Returns a number of pods. Their schedulers count a negative one as none.
fn number(pods: Option<i32>) -> u32 {
    u32::try_from(pods.unwrap_or_default()).unwrap_or_default()
}
