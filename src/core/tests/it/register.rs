//! Tests of registration, from an instance to a joined node.

use poolwright_core::lifecycle::Decision;
use poolwright_core::*;
use poolwright_terms::keys::{CORDONED_UNTIL_ANNOTATION, UNREGISTERED_TAINT};
use poolwright_terms::{ConditionType, Taint, TaintEffect};

use crate::kit::*;

fn waiting() -> Claim {
    Claim {
        labels: [("team".to_owned(), "vision".to_owned())].into(),
        annotations: [("owner".to_owned(), "us".to_owned())].into(),
        taints: vec![taint("gpu", "yes")],
        startup_taints: vec![taint("boot", "")],
        ..true_since(launched(claim()), ConditionType::Launched, 10)
    }
}

#[test]
fn a_node_that_joined_gets_what_was_promised_loses_the_guard_and_is_gated() {
    let unregistered = Taint { effect: TaintEffect::NoExecute, ..taint(UNREGISTERED_TAINT, "") };
    let joined = Node {
        labels: [("topology.kubernetes.io/zone".to_owned(), "a".to_owned())].into(),
        taints: vec![unregistered, taint("boot", ""), taint("node.kubernetes.io/not-ready", "")],
        ..claimed_node()
    };
    let decision = decide(&with(with(cluster(aws(), [pool("gpu")]), [waiting()]), [joined]), at(12));
    let labels = [
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/os", "linux"),
        ("node.kubernetes.io/instance-type", "g5.xlarge"),
        ("poolwright.dev/capacity-type", "on-demand"),
        ("poolwright.dev/gpu-count", "1"),
        ("poolwright.dev/gpu-model", "a10g"),
        ("poolwright.dev/instance-cpu", "4"),
        ("poolwright.dev/instance-family", "g5"),
        ("poolwright.dev/instance-memory", "16384"),
        ("poolwright.dev/nodeclaim", "c"),
        ("poolwright.dev/nodepool", "gpu"),
        ("poolwright.dev/provider", "aws"),
        ("poolwright.dev/registered", "true"),
        ("team", "vision"),
        ("topology.kubernetes.io/region", "us-east-1"),
    ];
    let map = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    assert_eq!(
        decision.actions,
        [Action::Register {
            claim: ClaimName("c".into()),
            node: "n".into(),
            labels: map(&labels),
            annotations: map(&[("owner", "us"), (CORDONED_UNTIL_ANNOTATION, "initialization")]),
            taints: vec![taint("boot", ""), taint("node.kubernetes.io/not-ready", ""), taint("gpu", "yes")],
        }]
    );
}

#[test]
fn a_node_with_another_provider_id_is_not_ours() {
    let other = Node { provider_id: Some("kwok://other".into()), ..claimed_node() };
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [waiting()]), [other]);
    assert_eq!(decide(&snapshot, at(12)), Decision { actions: vec![], wake_at: Some(at(910)) });
}

#[test]
fn a_node_that_never_joins_is_given_up() {
    let snapshot = with(cluster(aws(), [pool("gpu")]), [waiting()]);
    let actions = decide(&snapshot, at(910)).actions;
    assert!(matches!(&actions[0], Action::HoldBack { message, .. }
        if message == "g5.xlarge/a/on-demand: its node did not join the cluster within 15 min after launch; check the instance's boot log, network and join token"));
    assert!(matches!(&actions[1], Action::RecordEvent(event) if event.reason == "RegistrationTimeout"));
    assert!(matches!(&actions[2], Action::DeleteClaim { only_if_empty: false, .. }));
}
