//! Nodes.

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as k8s;
use poolwright_api::FieldProblem;
use poolwright_core::{Node, NodeCondition};
use poolwright_terms::keys::{CORDON_TAINT, CORDONED_UNTIL_ANNOTATION};
use poolwright_terms::{Taint, TaintEffect};

use crate::convert::{is_kept, readable};
use crate::error::{IntakeError, Keep, first_of, object_name};
use crate::rules::taints;

/// Converts a node.
pub fn node(from: &k8s::Node) -> Result<Node, IntakeError> {
    let name = || object_name("Node", None, from.metadata.name.as_deref());
    convert(from).map_err(|problems| first_of(problems, name()))
}

/// Converts a node, or returns all problems.
pub(crate) fn convert(from: &k8s::Node) -> Result<Node, Vec<FieldProblem>> {
    let meta = &from.metadata;
    let spec = from.spec.as_ref();
    let status = from.status.as_ref();
    let cordoned = spec.and_then(|spec| spec.unschedulable) == Some(true);
    let taints = taints("spec.taints", spec.and_then(|spec| spec.taints.as_deref()).unwrap_or_default());
    let (allocatable, mut problems) =
        readable("status.allocatable", status.and_then(|status| status.allocatable.as_ref()));
    let Some(mut taints) = taints.keep(&mut problems).filter(|_| problems.is_empty()) else {
        return Err(problems);
    };
    // The node controller adds the taint a moment after the cordon.
    if cordoned && !taints.iter().any(|taint| taint.key == CORDON_TAINT) {
        taints.push(Taint {
            key: CORDON_TAINT.to_owned(),
            value: String::new(),
            effect: TaintEffect::NoSchedule,
        });
    }
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let annotations = meta.annotations.as_ref();
    Ok(Node {
        name: meta.name.clone().unwrap_or_default(),
        provider_id: spec.and_then(|spec| spec.provider_id.clone()).filter(|id| !id.is_empty()),
        labels: meta.labels.clone().unwrap_or_default(),
        taints,
        allocatable,
        ready: conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"),
        cordoned,
        cordoned_until_initialized: annotations
            .is_some_and(|annotations| annotations.contains_key(CORDONED_UNTIL_ANNOTATION)),
        do_not_disrupt: is_kept(meta),
        deleting_since: meta.deletion_timestamp.as_ref().map(|time| time.0),
        unhealthy_conditions: conditions
            .iter()
            .filter(|one| !is_usual(one))
            .map(unhealthy_condition)
            .collect(),
    })
}

/// Returns whether a condition has the value of a healthy node.
fn is_usual(condition: &k8s::NodeCondition) -> bool {
    let status = match condition.type_.as_str() {
        "Ready" => "True",
        "MemoryPressure" | "DiskPressure" | "PIDPressure" | "NetworkUnavailable" => "False",
        _ => return false,
    };
    condition.status == status
}

fn unhealthy_condition(condition: &k8s::NodeCondition) -> NodeCondition {
    // A condition without a transition time counts as new.
    let since = condition.last_transition_time.as_ref().map_or(Timestamp::MAX, |time| time.0);
    let said = [&condition.reason, &condition.message].into_iter().flatten();
    let said: Vec<&str> = said.map(String::as_str).filter(|words| !words.is_empty()).collect();
    let (kind, status) = (condition.type_.clone(), condition.status.clone());
    NodeCondition { kind, status, since, cause: said.join(": ") }
}
