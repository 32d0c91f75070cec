//! What an API server refuses of new workloads that keep their pods running, of how they roll out, and of PodDisruptionBudgets
//! (`pkg/apis/apps/validation` and `pkg/apis/policy/validation` in Kubernetes).

use poolwright_api::{FieldProblem, key_segment};
use serde_json::Value;

use super::names::items;
use super::refusals::Problems;

/// The deadline in seconds of a rollout that states none.
const DEADLINE: i64 = 600;

/// Checks a workload that keeps its pods running.
pub(super) fn keeps_running(kind: &str, spec: &Value) -> Problems {
    let mut problems = if kind == "ReplicationController" { Vec::new() } else { selector(spec) };
    let pods = &spec["template"]["spec"];
    let mut refuse = |field: &str, cause: String, next: &str| {
        problems.push(FieldProblem::new(format!("spec.template.spec.{field}"), cause, next));
    };
    let policy = pods["restartPolicy"].as_str();
    if let Some(policy) = policy.filter(|policy| ["OnFailure", "Never"].contains(policy)) {
        let cause = format!("an API server refuses `{policy}` in a {kind}");
        refuse("restartPolicy", cause, "write Always, or use a Job, whose pods end");
    }
    if pods["activeDeadlineSeconds"].is_i64() {
        let cause = format!("an API server refuses it in a {kind}");
        refuse("activeDeadlineSeconds", cause, "remove it, or use a Job, whose pods end");
    }
    match kind {
        "Deployment" => deployment(spec, &mut problems),
        "DaemonSet" => daemon_set(&spec["updateStrategy"], &mut problems),
        "StatefulSet" => stateful_set(spec, &mut problems),
        _ => {}
    }
    problems
}

/// Checks that the selector of a workload selects the pods of its template.
fn selector(spec: &Value) -> Problems {
    if !spec.is_object() {
        return Vec::new();
    }
    if spec["selector"].is_null() {
        let next = "add matchLabels with labels of the template";
        return vec![FieldProblem::new("spec.selector", "missing", next)];
    }
    let says = |field: &str| match &spec["selector"][field] {
        Value::Null => false,
        Value::Object(labels) => !labels.is_empty(),
        Value::Array(rules) => !rules.is_empty(),
        // A value of another type is told elsewhere.
        _ => true,
    };
    if spec["selector"].is_object() && !says("matchLabels") && !says("matchExpressions") {
        let (cause, next) =
            ("an API server refuses an empty selector", "add matchLabels with labels of the template");
        return vec![FieldProblem::new("spec.selector", cause, next)];
    }
    // A template that is missing is told elsewhere.
    if !spec["template"].is_object() {
        return Vec::new();
    }
    let labels = &spec["template"]["metadata"]["labels"];
    let lacks = |(key, value): &(&String, &Value)| value.is_string() && labels[key.as_str()] != **value;
    let problem = |(key, value): (&String, &Value)| {
        let value = value.as_str().unwrap_or_default();
        FieldProblem::new(
            format!("spec.selector.matchLabels{}", key_segment(key)),
            format!("the labels of the template do not have `{key}: {value}`"),
            "write the same labels in both",
        )
    };
    let wanted = spec["selector"]["matchLabels"].as_object().into_iter().flatten();
    let mut problems: Problems = wanted.filter(lacks).map(problem).collect();
    for (at, rule) in items(&spec["selector"]["matchExpressions"]).iter().enumerate() {
        if !is_met(rule, labels) {
            let path = format!("spec.selector.matchExpressions[{at}]");
            let cause = "the labels of the template do not meet it";
            problems.push(FieldProblem::new(path, cause, "change it, or the labels"));
        }
    }
    problems
}

/// Returns whether labels meet an expression. One that is malformed is told elsewhere.
fn is_met(rule: &Value, labels: &Value) -> bool {
    let Some(key) = rule["key"].as_str().filter(|key| !key.is_empty()) else { return true };
    let value = &labels[key];
    let listed = items(&rule["values"]);
    match rule["operator"].as_str().unwrap_or_default() {
        "In" => listed.is_empty() || listed.contains(value),
        "NotIn" => !listed.contains(value),
        "Exists" => !value.is_null(),
        "DoesNotExist" => value.is_null(),
        _ => true,
    }
}

/// Checks how a Deployment rolls out (`ValidateDeploymentStrategy`, `ValidateRollingUpdateDeployment`). Both amounts are a quarter
/// if they are not written.
fn deployment(spec: &Value, into: &mut Problems) {
    let (path, rolling) = ("spec.strategy.rollingUpdate", &spec["strategy"]["rollingUpdate"]);
    if spec["strategy"]["type"] == "Recreate" {
        only_rolls(path, rolling, "Recreate", into);
    } else {
        let gone = share(&format!("{path}.maxUnavailable"), &rolling["maxUnavailable"], true, into);
        let more = share(&format!("{path}.maxSurge"), &rolling["maxSurge"], false, into);
        if (gone, more) == (Some(0), Some(0)) {
            both_zero(path, into);
        }
    }
    let (deadline, ready) = (&spec["progressDeadlineSeconds"], spec["minReadySeconds"].as_i64().unwrap_or(0));
    if deadline.is_null() && ready >= DEADLINE {
        let cause = format!("`{ready}` is not below progressDeadlineSeconds, which is {DEADLINE} by default");
        let next = "lower it, or write a longer progressDeadlineSeconds";
        into.push(FieldProblem::new("spec.minReadySeconds", cause, next));
    } else if let Some(deadline) = deadline.as_i64().filter(|deadline| (0..=ready).contains(deadline)) {
        let cause = format!("`{deadline}` is not above minReadySeconds ({ready})");
        into.push(FieldProblem::new("spec.progressDeadlineSeconds", cause, "raise it"));
    }
}

/// Checks how a DaemonSet rolls out (`ValidateRollingUpdateDaemonSet`). One of the two amounts is zero, and `maxUnavailable` is 1 if
/// it is not written.
fn daemon_set(strategy: &Value, into: &mut Problems) {
    if strategy["type"] == "OnDelete" {
        return;
    }
    let (path, rolling) = ("spec.updateStrategy.rollingUpdate", &strategy["rollingUpdate"]);
    let mut amount = |field: &str, default: i64| match &rolling[field] {
        Value::Null => Some(default),
        written => share(&format!("{path}.{field}"), written, true, into),
    };
    match (amount("maxUnavailable", 1), amount("maxSurge", 0)) {
        (Some(0), Some(0)) => both_zero(path, into),
        (Some(gone), Some(more)) if gone > 0 && more > 0 => {
            let cause = format!("an API server refuses it with a maxUnavailable of {gone}");
            let next = "write `maxUnavailable: 0`, or remove it";
            into.push(FieldProblem::new(format!("{path}.maxSurge"), cause, next));
        }
        _ => {}
    }
}

fn stateful_set(spec: &Value, into: &mut Problems) {
    let policy = spec["podManagementPolicy"].as_str().filter(|policy| !policy.is_empty());
    if let Some(policy) = policy.filter(|policy| !["OrderedReady", "Parallel"].contains(policy)) {
        let cause = format!("`{policy}` is not a policy of a StatefulSet");
        into.push(FieldProblem::new("spec.podManagementPolicy", cause, "use OrderedReady or Parallel"));
    }
    if let Some(start) = spec["ordinals"]["start"].as_i64().filter(|start| *start < 0) {
        let cause = format!("`{start}` is negative");
        into.push(FieldProblem::new("spec.ordinals.start", cause, "write zero or more"));
    }
    let strategy = &spec["updateStrategy"];
    if strategy["type"] == "OnDelete" {
        only_rolls("spec.updateStrategy.rollingUpdate", &strategy["rollingUpdate"], "OnDelete", into);
    }
}

/// Checks how the groups of a LeaderWorkerSet roll out (`generalValidate` in its webhook). `maxUnavailable` is 1 and `maxSurge` is 0
/// if they are not written.
pub(super) fn groups(spec: &Value, into: &mut Problems) {
    let path = "spec.rolloutStrategy.rollingUpdateConfiguration";
    let rolling = &spec["rolloutStrategy"]["rollingUpdateConfiguration"];
    let mut amount = |field: &str, default: i64| match &rolling[field] {
        Value::Null => Some(default),
        written => share(&format!("{path}.{field}"), written, true, into),
    };
    let (gone, more) = (amount("maxUnavailable", 1), amount("maxSurge", 0));
    let replicas = if spec["replicas"].is_null() { Some(1) } else { spec["replicas"].as_i64() };
    let (Some(gone), Some(0), Some(replicas @ 1..)) = (gone, more, replicas) else { return };
    // A part of the groups is rounded down.
    let is_share = rolling["maxUnavailable"].is_string();
    if is_share && gone > 0 && replicas.saturating_mul(gone) < 100 {
        let cause = format!("`{gone}%` of {replicas} groups is less than one, and maxSurge is 0");
        into.push(FieldProblem::new(format!("{path}.maxUnavailable"), cause, "raise one of them"));
    } else if gone == 0 {
        both_zero(path, into);
    }
}

fn both_zero(path: &str, into: &mut Problems) {
    let cause = "an API server refuses 0 if maxSurge is 0 too";
    into.push(FieldProblem::new(format!("{path}.maxUnavailable"), cause, "raise one of them"));
}

fn only_rolls(path: &str, rolling: &Value, kind: &str, into: &mut Problems) {
    if rolling.is_object() {
        let cause = format!("an API server refuses it with the type {kind}");
        into.push(FieldProblem::new(path, cause, "remove it, or write `type: RollingUpdate`"));
    }
}

/// Checks the amounts of a PodDisruptionBudget (`ValidatePodDisruptionBudgetSpec`).
pub(super) fn budget(spec: &Value) -> Problems {
    let mut problems = Vec::new();
    for field in ["minAvailable", "maxUnavailable"] {
        share(&format!("spec.{field}"), &spec[field], true, &mut problems);
    }
    problems
}

/// Checks a number of pods or a percentage (`ValidatePositiveIntOrPercent`), which may be at most 100 % if it is `bounded`
/// (`IsNotMoreThan100Percent`). Returns the number, if it is one.
fn share(path: &str, value: &Value, bounded: bool, into: &mut Problems) -> Option<i64> {
    let (cause, next) = match value {
        Value::String(text) => {
            let digits =
                text.strip_suffix('%').filter(|digits| digits.bytes().all(|one| one.is_ascii_digit()));
            match digits.and_then(|digits| digits.parse::<i64>().ok()) {
                Some(percent) if bounded && percent > 100 => {
                    (format!("`{text}` is more than 100%"), "lower it")
                }
                Some(percent) => return Some(percent),
                None => (
                    format!("`{text}` is neither a number of pods nor a percentage"),
                    "write a number such as 1, or a percentage such as `50%`",
                ),
            }
        }
        other => match other.as_i64() {
            Some(number) if number < 0 => (format!("`{number}` is negative"), "write zero or more"),
            number => return number,
        },
    };
    into.push(FieldProblem::new(path, cause, next));
    None
}
