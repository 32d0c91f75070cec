//! Tests of messages about unplaced pods.

use poolwright_core::plan::UnplacedReason;
use poolwright_core::{NodeSelectorTerm, Pod, Pool};
use poolwright_terms::{Taint, TaintEffect};

use crate::kit::*;

fn message_for(pools: impl IntoIterator<Item = Pool>, pod: Pod) -> String {
    let plan = planned(&with(cluster(aws(), pools), [pod]));
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::NoOfferingFits);
    plan.unplaced[0].message.clone()
}

fn a10g_and_l4() -> Pool {
    Pool { requirements: vec![is_in("poolwright.dev/gpu-model", &["a10g", "l4"])], ..pool("gpu") }
}

#[test]
fn a_gpu_that_the_pool_does_not_have() {
    let mut wants = pod("a", requests(1, 1, 8));
    wants.spec.node_selector.insert("poolwright.dev/gpu-model".into(), "h100".into());
    assert_eq!(
        message_for([a10g_and_l4()], wants),
        "needs 8 x h100 in one node; pool `gpu` allows only a10g, l4"
    );
}

#[test]
fn more_gpus_than_any_node_has() {
    assert_eq!(
        message_for([a10g_and_l4()], pod("a", requests(1, 1, 8))),
        "needs 8 nvidia.com/gpu in one node; the largest offering of pool `gpu` for it, g5.12xlarge, has 4"
    );
}

#[test]
fn enough_of_each_but_not_at_once() {
    let kinds = catalogue(vec![
        Kind("wide", capacity(64, 16, 0), None, &[("a", "1.00")]),
        Kind("deep", capacity(4, 256, 0), None, &[("a", "1.00")]),
    ]);
    let plan = planned(&with(cluster(kinds, [pool("cpu")]), [pod("a", requests(32, 128, 0))]));
    assert_eq!(
        plan.unplaced[0].message,
        "no offering of pool `cpu` fits all of 32 cpu, 128Gi memory; the nearest is deep, which has 4 cpu of 32"
    );
}

#[test]
fn a_resource_that_no_node_has() {
    let tpu = requests(1, 1, 0).with("google.com/tpu", 4);
    assert_eq!(
        message_for([pool("gpu")], pod("a", tpu)),
        "needs 4 google.com/tpu, which no offering of pool `gpu` has for it; no instance type in the catalogue has it, so no node can be bought for it"
    );
}

#[test]
fn a_label_that_no_node_will_have() {
    let mut wants = pod("a", requests(1, 1, 0));
    wants.spec.node_selector.insert("team".into(), "vision".into());
    assert_eq!(
        message_for([pool("gpu")], wants),
        "wants label `team` (vision); nodes of pool `gpu` do not have it: add it to spec.template.metadata.labels if its nodes will have it"
    );
    let mut zone = pod("a", requests(1, 1, 0));
    zone.spec.node_selector.insert("topology.kubernetes.io/zone".into(), "z".into());
    assert_eq!(
        message_for([pool("gpu")], zone),
        "wants `topology.kubernetes.io/zone` z; pool `gpu` has only a, b"
    );
}

#[test]
fn labels_that_no_one_offering_has_together() {
    let mut wants = pod("a", requests(1, 1, 0));
    wants.spec.node_selector.insert("topology.kubernetes.io/zone".into(), "b".into());
    let terms = vec![NodeSelectorTerm { requirements: vec![is_in("poolwright.dev/gpu-model", &["l4"])] }];
    wants.spec.node_affinity = Some(terms);
    assert_eq!(
        message_for([pool("gpu")], wants),
        "no single offering of pool `gpu` has all of `topology.kubernetes.io/zone b`, `poolwright.dev/gpu-model l4`; relax one of them"
    );
}

#[test]
fn the_pool_where_the_pod_gets_furthest_is_the_one_named() {
    let tainted = Pool { taints: vec![taint("x", "")], ..pool("a-tainted") };
    assert!(message_for([tainted, pool("z-open")], pod("a", requests(1, 1, 8))).contains("pool `z-open`"));
}

#[test]
fn of_a_gpu_pod_the_pool_with_gpus_is_named_whatever_else_keeps_it_off() {
    let cpus = || Pool {
        requirements: vec![is_in("node.kubernetes.io/instance-type", &["cpu"])],
        ..pool("a-plain")
    };
    let gpus = || Pool { taints: vec![taint("gpu", "")], ..pool("z-gpu") };
    let all = catalogue(vec![
        Kind("cpu", capacity(8, 32, 0), None, &[("a", "0.40")]),
        Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.00")]),
    ]);
    let message = |pod: Pod| {
        let plan = planned(&with(cluster(all.clone(), [cpus(), gpus()]), [pod]));
        plan.unplaced[0].message.clone()
    };
    assert_eq!(
        message(pod("a", requests(1, 1, 1))),
        "does not tolerate taint `gpu:NoSchedule` of pool `z-gpu`; add a toleration, or a pool without the taint"
    );
    let mut zoned = pod("a", requests(1, 1, 1));
    zoned.spec.node_selector.insert("topology.kubernetes.io/zone".into(), "z".into());
    assert!(
        message(zoned).contains("pool `z-gpu`"),
        "two things keep it off, and still it is the pool with GPUs"
    );
    assert!(message(pod("a", requests(16, 1, 0))).contains("pool `a-plain`"));
}

#[test]
fn a_mig_instance_is_told_how_to_be_planned() {
    let mig = requests(1, 1, 0).with("nvidia.com/mig-1g.10gb", 1);
    let message = message_for([pool("gpu")], pod("a", mig));
    assert!(
        message.ends_with("`poolwright plan --sharing mig` plans GPUs that are cut into such instances"),
        "{message}"
    );
}

#[test]
fn a_stock_out_says_what_failed_and_when_it_is_tried_again() {
    let mut snapshot = with(cluster(aws(), [pool("gpu")]), [pod("a", requests(40, 1, 4))]);
    snapshot.held_back.insert((node_class(), id("g5.12xlarge", "a")), at(60));
    let plan = planned(&snapshot);
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::OfferingsHeldBack);
    assert_eq!(
        plan.unplaced[0].message,
        "the offerings of pool `gpu` that fit it failed recently (g5.12xlarge/a/on-demand); the first is tried again at 2027-01-15T08:01:00Z"
    );
}

#[test]
fn without_a_pool_the_message_says_to_create_one() {
    let plan = planned(&with(cluster(aws(), []), [pod("a", requests(1, 1, 1))]));
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::NoUsablePool);
    assert_eq!(plan.unplaced[0].message, "no NodePool exists; create one");
}

#[test]
fn a_pod_that_names_its_pool_is_told_about_that_pool() {
    let mut wants = pod("a", requests(1, 1, 1));
    wants.spec.node_selector.insert("poolwright.dev/nodepool".into(), "research".into());
    let heavy = Pool { weight: 100, ..pool("gpu") };
    let tainted = Pool { taints: vec![taint("dedicated", "")], ..pool("research") };
    assert_eq!(
        message_for([heavy.clone(), tainted], wants.clone()),
        "does not tolerate taint `dedicated:NoSchedule` of pool `research`; add a toleration, or a pool without the taint"
    );
    let mut lost = Pool { ..pool("research") };
    lost.node_class.name = "gone".into();
    let plan = planned(&with(cluster(aws(), [heavy, lost]), [wants]));
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::NoUsablePool);
    let message = &plan.unplaced[0].message;
    assert!(
        message.starts_with("pool `research` cannot be used: ") && message.contains("`gone`"),
        "{message}"
    );
}

#[test]
fn a_taint_that_an_agent_removes_belongs_to_the_startup_taints_of_its_pool() {
    let cilium = Taint {
        key: "node.cilium.io/agent-not-ready".into(),
        value: "true".into(),
        effect: TaintEffect::NoExecute,
    };
    let waiting = |pool: Pool| {
        let plan = planned(&with(cluster(aws(), [pool]), [pod("p", requests(1, 1, 1))]));
        plan.unplaced.first().map(|left| left.message.clone())
    };
    assert_eq!(
        waiting(Pool { taints: vec![cilium.clone()], ..pool("gpu") }).as_deref(),
        Some(
            "does not tolerate taint `node.cilium.io/agent-not-ready=true:NoExecute` of pool `gpu`, which an agent removes; list it under startupTaints of the pool instead of taints"
        )
    );
    assert_eq!(waiting(Pool { startup_taints: vec![cilium], ..pool("gpu") }), None, "the advice helps");
}
