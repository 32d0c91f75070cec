//! Tests of node classes: from a provider's report to the status.

use poolwright_provider_contract::NodeClassKind;
use poolwright_terms::reasons;
use serde_json::json;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a time")
}

fn object() -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "poolwright.dev/v1alpha1", "kind": "EC2NodeClass",
        "metadata": {"name": "gpu", "uid": "1", "generation": 2}, "spec": {"role": "nodes"},
    }))
    .expect("an object")
}

fn told(kind: &'static str, outcome: ConditionOutcome, message: &str) -> NodeClassCondition {
    NodeClassCondition { kind, outcome, reason: Reason::Ready.into(), message: message.to_owned() }
}

fn report(fields: Value, conditions: Vec<NodeClassCondition>) -> NodeClassStatus {
    let fields = fields.as_object().expect("fields").clone().into_iter().collect();
    NodeClassStatus { uid: Some("1".to_owned()), generation: Some(2), fields, conditions }
}

fn status_of(object: &DynamicObject, kind: &str) -> (String, String, Timestamp) {
    let all = conditions(&object.data["status"]);
    let one = all.iter().find(|one| one.type_ == kind).unwrap_or_else(|| panic!("no {kind}: {all:?}"));
    (one.status.clone(), one.message.clone(), one.last_transition_time.0)
}

#[test]
fn a_node_class_status_is_written_once_and_times_change_with_the_state() {
    let mut object = object();
    let found = report(
        json!({"subnets": [{"id": "subnet-1", "zone": "a"}]}),
        vec![told("SubnetsReady", ConditionOutcome::True, "1 subnet")],
    );
    assert!(apply(&mut object, &found, None, at(0)));
    assert_eq!(object.data["status"]["subnets"][0]["id"], "subnet-1");
    assert_eq!(object.data["status"]["observedGeneration"], 2);
    assert_eq!(object.data["spec"]["role"], "nodes");
    assert_eq!(status_of(&object, "Ready").0, "True");
    assert!(!apply(&mut object, &found, None, at(60)), "nothing is new");
    let lost =
        report(json!({"subnets": null}), vec![told("SubnetsReady", ConditionOutcome::False, "tag a subnet")]);
    assert!(apply(&mut object, &lost, None, at(120)));
    assert_eq!(object.data["status"].get("subnets"), None);
    let expected = ("False".to_owned(), "tag a subnet".to_owned(), at(120));
    assert_eq!(status_of(&object, "Ready"), expected);
    let other = report(json!({}), vec![told("SubnetsReady", ConditionOutcome::False, "not allowed")]);
    assert!(apply(&mut object, &other, None, at(180)));
    assert_eq!(status_of(&object, "Ready"), ("False".to_owned(), "not allowed".to_owned(), at(120)));
}

#[test]
fn an_unanswered_check_keeps_the_status_of_an_unchanged_class() {
    let mut object = object();
    let well = report(
        json!({"subnets": [{"id": "subnet-1", "zone": "a"}]}),
        vec![
            told("SubnetsReady", ConditionOutcome::True, "1 subnet"),
            told("Validated", ConditionOutcome::True, "allowed"),
        ],
    );
    assert!(apply(&mut object, &well, None, at(0)));
    let silent = |generation| NodeClassStatus {
        generation: Some(generation),
        ..report(
            json!({}),
            vec![
                told("SubnetsReady", ConditionOutcome::NoAnswer, "timeout"),
                told("Validated", ConditionOutcome::Unknown, "tried later"),
            ],
        )
    };
    assert!(apply(&mut object, &silent(2), None, at(60)));
    assert_eq!(status_of(&object, "SubnetsReady"), ("True".to_owned(), "1 subnet".to_owned(), at(0)));
    assert_eq!(object.data["status"]["subnets"][0]["id"], "subnet-1");
    assert_eq!(status_of(&object, "Ready"), ("Unknown".to_owned(), "tried later".to_owned(), at(60)));
    assert!(apply(&mut object, &silent(3), None, at(120)));
    assert_eq!(status_of(&object, "SubnetsReady"), ("Unknown".to_owned(), "timeout".to_owned(), at(120)));
}

#[test]
fn a_class_that_cannot_be_used_says_what_speaks_against_it_before_what_is_not_known() {
    let mut object = object();
    let mixed = report(
        json!({}),
        vec![
            told("SubnetsReady", ConditionOutcome::NoAnswer, "timeout"),
            told("ImagesReady", ConditionOutcome::False, "no image"),
            told("Validated", ConditionOutcome::Unknown, "tried later"),
        ],
    );
    assert!(apply(&mut object, &mixed, None, at(0)));
    assert_eq!(status_of(&object, "Ready").1, "no image");
}

#[test]
fn whether_the_cloud_is_heard_is_written_beside_the_rest_and_does_not_decide_whether_the_class_is_ready() {
    let mut object = object();
    let well = report(json!({}), vec![told("SubnetsReady", ConditionOutcome::True, "1 subnet")]);
    let hearing = |outcome, message| told("InterruptionQueueReady", outcome, message);
    assert!(apply(&mut object, &well, Some(&hearing(ConditionOutcome::False, "no such queue")), at(0)));
    assert_eq!(status_of(&object, "InterruptionQueueReady").1, "no such queue");
    assert_eq!(status_of(&object, "Ready").0, "True");
    let silent = hearing(ConditionOutcome::NoAnswer, "timeout");
    assert!(!apply(&mut object, &well, Some(&silent), at(60)), "what was known stands");
    assert!(apply(&mut object, &well, Some(&hearing(ConditionOutcome::True, "it is read")), at(120)));
    let expected = ("True".to_owned(), "it is read".to_owned(), at(120));
    assert_eq!(status_of(&object, "InterruptionQueueReady"), expected);
    assert!(apply(&mut object, &well, None, at(180)), "no queue is configured any more");
    assert!(conditions(&object.data["status"]).iter().all(|one| one.type_ != "InterruptionQueueReady"));
}

reasons! {
    enum HazeReason;
    Foggy: "Nobody sees the cloud.", "Wait.";
}

#[test]
fn an_event_has_the_reason_of_the_provider_the_registry_or_else_a_general_one() {
    let of = |name| registered(name, HazeReason::TABLE);
    assert_eq!(of("Foggy"), HazeReason::Foggy.into());
    assert_eq!(of("Ready"), Reason::Ready.into());
    assert_eq!(of("OfAnEarlierVersion"), Reason::NodeClassNotReady.into());
}

#[test]
fn the_status_is_written_to_the_resource_that_the_provider_names() {
    let written = NodeClassKind { kind: "HazeNodeClass", plural: "hazenodeclasses" }.resource();
    assert_eq!(
        (written.api_version.as_str(), written.kind.as_str()),
        ("poolwright.dev/v1alpha1", "HazeNodeClass")
    );
    assert_eq!(written.plural, "hazenodeclasses");
}
