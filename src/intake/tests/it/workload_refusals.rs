//! Tests that written Jobs, CronJobs and workloads that keep their pods running are errors if an API server refuses them: one table
//! for each kind.

use serde_json::{Value, json};

use crate::core_refusals::check;
use crate::json_kit::{apps, ending, object, template};

#[test]
fn jobs_that_an_api_server_refuses() {
    let rule = |rule: Value| json!({"rules": [rule]});
    let codes = |codes: Value| json!({"rules": [{"action": "FailJob", "onExitCodes": codes}]});
    let place = "spec.podFailurePolicy";
    check(
        &object("batch/v1", "Job", "train", json!({"template": ending()})),
        [
            ("spec.activeDeadlineSeconds", json!(0), ""),
            ("spec.activeDeadlineSeconds", json!(-1), "spec.activeDeadlineSeconds: `-1` is negative"),
            (
                "spec.template.spec.activeDeadlineSeconds",
                json!(0),
                "spec.template.spec.activeDeadlineSeconds: `0` is not from 1 to 2147483647",
            ),
            (
                "spec.backoffLimitPerIndex",
                json!(1),
                "spec.backoffLimitPerIndex: an API server refuses it without completionMode Indexed",
            ),
            (
                "spec.selector",
                json!({"matchLabels": {"app": "a"}}),
                "spec.selector: an API server refuses a selector that it has not made itself",
            ),
            (
                place,
                rule(json!({"action": "FailJob"})),
                "spec.podFailurePolicy.rules[0]: it has neither onExitCodes nor onPodConditions; add one of them",
            ),
            (
                place,
                rule(json!({"action": "FailIndex", "onPodConditions": [{"type": "DisruptionTarget"}]})),
                "spec.podFailurePolicy.rules[0].action: an API server refuses FailIndex without backoffLimitPerIndex",
            ),
            (place, codes(json!({"operator": "In", "values": [1, 3]})), ""),
            (
                place,
                codes(json!({"operator": "In", "values": [3, 1]})),
                "spec.podFailurePolicy.rules[0].onExitCodes.values: the exit codes do not rise from one to the next",
            ),
            (
                place,
                codes(json!({"operator": "In", "values": [0, 1]})),
                "spec.podFailurePolicy.rules[0].onExitCodes.values: an API server refuses 0 with the operator In",
            ),
            (
                place,
                codes(json!({"operator": "NotIn", "values": [0], "containerName": "b"})),
                "spec.podFailurePolicy.rules[0].onExitCodes.containerName: the pod has no container `b`",
            ),
        ],
    );
    let spec = json!({"completionMode": "Indexed", "completions": 4, "template": ending()});
    check(
        &object("batch/v1", "Job", "train", spec),
        [
            ("metadata.name", json!("a.b"), "metadata.name: an API server refuses the name `a.b-3`"),
            (
                "spec.parallelism",
                json!(100_001),
                "spec.parallelism: this asks for 100001 pods, more than the 100000",
            ),
            ("spec.maxFailedIndexes", json!(2), "spec.backoffLimitPerIndex: missing"),
            ("spec.successPolicy", json!({"rules": []}), "spec.successPolicy.rules: missing; add a rule"),
            ("spec.successPolicy", rule(json!({"succeededIndexes": "0,2-3", "succeededCount": 3})), ""),
            (
                "spec.successPolicy",
                rule(json!({"succeededIndexes": "0,2-4"})),
                "spec.successPolicy.rules[0].succeededIndexes: `0,2-4` is no list of indexes below 4 that rise",
            ),
            (
                "spec.successPolicy",
                rule(json!({"succeededIndexes": "0,2", "succeededCount": 3})),
                "spec.successPolicy.rules[0].succeededCount: `3` is not from 0 to 2, the number of indexes",
            ),
        ],
    );
}

#[test]
fn cron_jobs_that_an_api_server_refuses() {
    let spec = json!({"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": ending()}}});
    check(
        &object("batch/v1", "CronJob", "nightly", spec),
        [
            ("spec.schedule", json!("*/5 0-6,12 1,15 jan-Mar MON"), ""),
            ("spec.schedule", json!("@daily"), ""),
            ("spec.schedule", json!(""), "spec.schedule: missing; add it, such as `0 3 * * *`"),
            ("spec.schedule", json!("0 3 * *"), "spec.schedule: `0 3 * *` is no schedule"),
            ("spec.schedule", json!("0 24 * * *"), "spec.schedule: `0 24 * * *` is no schedule"),
            ("spec.schedule", json!("0 3 * * fri-mon"), "spec.schedule: `0 3 * * fri-mon` is no schedule"),
            ("spec.schedule", json!("*/0 3 * * *"), "spec.schedule: `*/0 3 * * *` is no schedule"),
            (
                "spec.schedule",
                json!("CRON_TZ=UTC 0 3 * * *"),
                "spec.schedule: an API server refuses a time zone in a schedule; write it as spec.timeZone",
            ),
            ("spec.timeZone", json!("US/Pacific"), ""),
            ("spec.timeZone", json!("Etc/UTC"), ""),
            (
                "spec.timeZone",
                json!("europe/berlin"),
                "spec.timeZone: `europe/berlin` is not the name of a time zone; did you mean `Europe/Berlin`?",
            ),
            (
                "spec.timeZone",
                json!("Mars/Base"),
                "spec.timeZone: `Mars/Base` is not the name of a time zone; write a name of the IANA database",
            ),
            ("spec.timeZone", json!(""), "spec.timeZone: `` is not the name of a time zone"),
            ("spec.startingDeadlineSeconds", json!(-1), "spec.startingDeadlineSeconds: `-1` is negative"),
            ("spec.concurrencyPolicy", json!("allow"), "spec.concurrencyPolicy: `allow` does not exist"),
            (
                "spec.jobTemplate.spec.selector",
                json!({"matchLabels": {"app": "a"}}),
                "spec.jobTemplate.spec.selector: an API server refuses it, because it makes a selector for each Job",
            ),
        ],
    );
}

#[test]
fn rollouts_that_an_api_server_refuses() {
    let rolling = |amounts: Value| json!({"rollingUpdate": amounts});
    let at = "spec.strategy";
    let expression = json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db"]}]});
    check(
        &apps("Deployment", "web", 1),
        [
            (
                "spec.template.spec.activeDeadlineSeconds",
                json!(60),
                "spec.template.spec.activeDeadlineSeconds: an API server refuses it in a Deployment",
            ),
            (at, rolling(json!({"maxSurge": "150%", "maxUnavailable": 0})), ""),
            (
                at,
                rolling(json!({"maxSurge": 0, "maxUnavailable": "0%"})),
                "spec.strategy.rollingUpdate.maxUnavailable: an API server refuses 0 if maxSurge is 0 too",
            ),
            (
                at,
                rolling(json!({"maxUnavailable": "150%"})),
                "spec.strategy.rollingUpdate.maxUnavailable: `150%` is more than 100%",
            ),
            (
                at,
                rolling(json!({"maxSurge": "5"})),
                "spec.strategy.rollingUpdate.maxSurge: `5` is neither a number of pods nor a percentage",
            ),
            (
                at,
                json!({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
                "spec.strategy.rollingUpdate: an API server refuses it with the type Recreate",
            ),
            (
                "spec.minReadySeconds",
                json!(600),
                "spec.minReadySeconds: `600` is not below progressDeadlineSeconds",
            ),
            (
                "spec.progressDeadlineSeconds",
                json!(0),
                "spec.progressDeadlineSeconds: `0` is not above minReadySeconds (0); raise it",
            ),
            (
                "spec.selector",
                expression,
                "spec.selector.matchExpressions[0]: the labels of the template do not meet it",
            ),
        ],
    );
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template()});
    check(
        &object("apps/v1", "DaemonSet", "agent", spec),
        [
            ("spec.updateStrategy", rolling(json!({"maxSurge": 1, "maxUnavailable": 0})), ""),
            (
                "spec.updateStrategy",
                rolling(json!({"maxSurge": 1})),
                "spec.updateStrategy.rollingUpdate.maxSurge: an API server refuses it with a maxUnavailable of 1",
            ),
            (
                "spec.updateStrategy",
                rolling(json!({"maxUnavailable": 0})),
                "spec.updateStrategy.rollingUpdate.maxUnavailable: an API server refuses 0 if maxSurge is 0 too",
            ),
        ],
    );
    check(
        &apps("StatefulSet", "db", 1),
        [(
            "spec.updateStrategy",
            json!({"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
            "spec.updateStrategy.rollingUpdate: an API server refuses it with the type OnDelete",
        )],
    );
}
