//! Tests of initialization, from a joined node to a node that is open to pods.

use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_core::*;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::kit::*;

fn cordoned() -> Node {
    Node { cordoned: true, cordoned_until_initialized: true, ..claimed_node() }
}

fn with_node(node: Node) -> Snapshot {
    let claim = Claim { startup_taints: vec![taint("boot", "")], ..registered() };
    with(with(cluster(aws(), [pool("gpu")]), [claim]), [node])
}

/// Returns the reason and message of `Initialized=False`.
fn waits_for(node: Node) -> (String, String) {
    let actions = decide(&with_node(node), at(30)).actions;
    match &actions[..] {
        [Action::SetConditions { conditions, .. }] if conditions[0].status == ConditionStatus::False => {
            (conditions[0].reason.to_string(), conditions[0].message.clone())
        }
        actions => panic!("{actions:?}"),
    }
}

#[test]
fn a_node_that_keeps_the_promise_is_opened_and_recorded() {
    let message = "node n is ready and advertises the promised resources";
    let subject = Subject::Claim(ClaimName("c".into()));
    assert_eq!(
        decide(&with_node(cordoned()), at(30)).actions,
        [
            Action::Open { node: "n".into(), reserve_for: None },
            Action::RecordEvent(Event {
                subject: subject.clone(),
                kind: EventType::Normal,
                reason: Reason::Initialized,
                message: format!("{message}; it is open to all pods"),
            }),
            Action::SetConditions {
                subject,
                conditions: vec![ConditionUpdate {
                    kind: ConditionType::Initialized,
                    status: ConditionStatus::True,
                    reason: Reason::Initialized,
                    message: message.into(),
                }],
            },
        ]
    );
}

#[test]
fn a_node_stays_closed_until_it_is_ready_complete_and_free_of_startup_taints() {
    assert_eq!(
        waits_for(Node { ready: false, ..cordoned() }),
        ("NodeNotReady".into(), "node n is not ready".into())
    );
    let lifted_any_moment = taint("node.kubernetes.io/not-ready", "");
    assert_eq!(
        waits_for(Node { taints: vec![lifted_any_moment], ..cordoned() }),
        ("NodeNotReady".into(), "node n is not ready".into())
    );
    assert_eq!(
        waits_for(Node { allocatable: capacity(4, 16, 0), ..cordoned() }),
        ("ResourcesDiffer".into(), "node n: nvidia.com/gpu: 1 promised, 0 advertised".into())
    );
    assert_eq!(
        waits_for(Node { allocatable: capacity(8, 16, 1), ..cordoned() }),
        ("ResourcesDiffer".into(), "node n: cpu: 4000m promised, 8000m advertised".into())
    );
    assert_eq!(
        waits_for(Node { taints: vec![taint("boot", "")], ..cordoned() }),
        ("StartupTaintsPresent".into(), "node n still has the startup taints `boot:NoSchedule`".into())
    );
}

#[test]
fn estimated_resources_may_differ_slightly_and_devices_may_not() {
    let memory = capacity(4, 16, 1).get(ResourceName::MEMORY);
    let with_memory = |bytes: u64| {
        let allocatable = capacity(4, 16, 1).with(ResourceName::MEMORY, bytes);
        Node { allocatable, ..cordoned() }
    };
    for bytes in [memory / 100 * 96, memory, memory / 100 * 110] {
        let actions = decide(&with_node(with_memory(bytes)), at(30)).actions;
        assert!(matches!(actions[0], Action::Open { .. }), "{bytes}: {actions:?}");
    }
    for bytes in [memory / 100 * 94, memory / 100 * 112] {
        assert_eq!(waits_for(with_memory(bytes)).0, "ResourcesDiffer");
    }
    assert_eq!(waits_for(Node { allocatable: capacity(4, 16, 2), ..cordoned() }).0, "ResourcesDiffer");
}

#[test]
fn a_node_stays_closed_until_the_conditions_that_its_pool_asks_for_are_true() {
    let condition = |status: &str| {
        let (kind, status) = ("GpuValidated".into(), status.into());
        let condition = NodeCondition { kind, status, since: at(25), cause: String::new() };
        Node { unhealthy_conditions: vec![condition], ..cordoned() }
    };
    let asks = |node: Node| {
        let claim = Claim { readiness_gates: vec!["Ready".into(), "GpuValidated".into()], ..registered() };
        let snapshot = with(with(cluster(aws(), [pool("gpu")]), [claim]), [node]);
        let actions = decide(&snapshot, at(30)).actions;
        let open = actions.iter().any(|action| matches!(action, Action::Open { .. }));
        let said = actions.iter().find_map(|action| match action {
            Action::SetConditions { conditions, .. } => Some(conditions[0].message.clone()),
            _ => None,
        });
        (open, said.unwrap_or_default())
    };
    assert_eq!(asks(cordoned()), (false, "node n: it does not have the condition GpuValidated yet".into()));
    let (open, said) = asks(condition("False"));
    assert!(!open);
    assert_eq!(said, format!("node n: condition GpuValidated=False since {}", at(25)));
    assert!(asks(condition("True")).0);
}

#[test]
fn taints_of_the_readiness_controller_are_waited_for_whoever_put_them_there() {
    let (reason, message) = waits_for(Node { taints: vec![taint("readiness.k8s.io/gpu", "")], ..cordoned() });
    let said = "node n still has the startup taints `readiness.k8s.io/gpu:NoSchedule`";
    assert_eq!((reason.as_str(), message.as_str()), ("StartupTaintsPresent", said));
}

#[test]
fn a_node_that_shares_its_gpus_stays_closed_and_the_likely_cause_is_named() {
    let cause = "Most likely its device plugin shares GPUs (time slicing, MPS or MIG)";
    let told = |allocatable: ResourceList| {
        let (reason, message) = waits_for(Node { allocatable, ..cordoned() });
        assert_eq!(reason, "ResourcesDiffer");
        message
    };
    let sliced = told(capacity(4, 16, 4));
    let expected = format!("node n: nvidia.com/gpu: 1 promised, 4 advertised. {cause}");
    assert!(sliced.starts_with(&expected), "{sliced}");
    for part in ["nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb"] {
        let cut = told(capacity(4, 16, 0).with(part, 4));
        assert!(cut.contains(cause), "{cut}");
    }
    assert!(!told(capacity(4, 16, 0)).contains(cause), "the device plugin has not begun");
}

#[test]
fn the_reason_to_wait_is_recorded_once() {
    let snapshot = with_node(Node { ready: false, ..cordoned() });
    let Action::SetConditions { conditions, .. } = &decide(&snapshot, at(30)).actions[0] else {
        panic!("it says what it waits for")
    };
    let mut claim = (*snapshot.claims[&ClaimName("c".into())]).clone();
    let update = conditions[0].clone();
    let recorded = Condition {
        status: update.status,
        since: at(30),
        reason: Some(update.reason),
        message: update.message,
    };
    claim.conditions.insert(update.kind, recorded);
    assert_eq!(decide(&with(snapshot, [claim]), at(31)).actions, []);
}

#[test]
fn a_node_that_never_keeps_its_promise_is_given_up_and_says_what_was_missing() {
    let actions = decide(&with_node(Node { allocatable: capacity(4, 16, 0), ..cordoned() }), at(920)).actions;
    let why = "g5.xlarge/a/on-demand: its node was not usable within 15 min after it joined: node n: nvidia.com/gpu: 1 promised, 0 advertised";
    assert_eq!(actions[0], Action::HoldBack { claim: ClaimName("c".into()), message: why.into() });
    assert!(matches!(&actions[1], Action::RecordEvent(event) if event.reason == "InitializationTimeout"));
    assert!(matches!(&actions[2], Action::DeleteClaim { only_if_empty: false, .. }));
}

#[test]
fn a_crash_between_recording_and_opening_leaves_no_node_closed() {
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [initialized()]), [cordoned()]);
    let snapshot = with(snapshot, [bound(pod("p", requests(1, 1, 1)), "n")]);
    assert_eq!(decide(&snapshot, at(40)).actions, [Action::Open { node: "n".into(), reserve_for: None }]);
}

#[test]
fn a_pod_that_the_scheduler_does_not_place_as_planned_is_named() {
    let nominated = Pod { nominated_node: Some("n".into()), ..pod("p", requests(1, 1, 1)) };
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [initialized()]), [claimed_node()]);
    let snapshot = with(snapshot, [nominated]);
    assert_eq!(decide(&snapshot, at(89)).actions, []);
    assert_eq!(decide(&snapshot, at(89)).wake_at, Some(at(90)));
    let actions = decide(&snapshot, at(90)).actions;
    assert!(
        matches!(&actions[..], [Action::RecordEvent(event)] if event.subject == Subject::Pod(object_key("p"))
            && event.message == "is planned for node n, which is open, but the scheduler does not place it there (0/0 nodes are available); the node is kept for it: correct or delete the pod"),
        "{actions:?}"
    );
}
