//! Tests of buffers, static pools and limits where GPUs of nodes are shared or cut: Poolwright buys nodes for whole GPUs, counts GPUs of
//! machines, and says what it cannot keep.

use poolwright_catalog::ResourceName;
use poolwright_core::plan::{Plan, PlanOptions, Sharing, plan};
use poolwright_core::why::{self, events::of_plan};
use poolwright_core::*;
use poolwright_solver::NeverStop;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::kit::*;

const SHARED: &str = ResourceName::NVIDIA_GPU_SHARED;

fn planned_with(snapshot: &Snapshot, sharing: Sharing) -> Plan {
    let options = PlanOptions { sharing, ..PlanOptions::default() };
    let plan = plan(snapshot, at(10), &options, &mut NeverStop);
    assert_eq!(plan.refused, Vec::<String>::new());
    plan
}

fn gpu() -> PoolName {
    PoolName("gpu".into())
}

fn buffer(units: u32, requests: poolwright_catalog::ResourceList) -> Vec<Buffer> {
    vec![Buffer { units: Units::Fixed(units), requests, window: None }]
}

/// Returns a g5.xlarge of the pool without a NodeClaim. It has one GPU, and its device plugin advertises it four times.
fn sliced() -> Node {
    let labels = [
        ("poolwright.dev/nodepool", "gpu"),
        ("node.kubernetes.io/instance-type", "g5.xlarge"),
        ("topology.kubernetes.io/zone", "a"),
        ("poolwright.dev/capacity-type", "on-demand"),
    ];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let node = node("sliced", capacity(8, 64, 4));
    Node { labels: node.labels.clone().into_iter().chain(labels).collect(), ..node }
}

/// Returns the condition `Ready` of the pool after a plan.
fn ready(plan: &Plan) -> (ConditionStatus, Reason, String) {
    let conditions = of_plan(plan).into_iter().find_map(|action| match action {
        Action::SetConditions { subject, conditions } if subject == Subject::Pool(gpu()) => Some(conditions),
        _ => None,
    });
    let mut conditions = conditions.expect("the conditions of the pool").into_iter();
    let ready = conditions.find(|update| update.kind == ConditionType::Ready).expect("the summary");
    (ready.status, ready.reason, ready.message)
}

#[test]
fn a_unit_of_a_buffer_takes_what_it_asks_for_of_a_shared_gpu_and_a_whole_gpu_of_a_new_node() {
    let pool = Pool { buffer: buffer(5, requests(1, 1, 1)), ..pool("gpu") };
    let snapshot = with(cluster(aws(), [pool]), [sliced()]);
    let snapshot = with(snapshot, [bound(pod("there", requests(1, 1, 1)), "sliced")]);
    for sharing in [Sharing::Whole, Sharing::Shared] {
        let plan = planned_with(&snapshot, sharing);
        assert_eq!(bought(&plan), ["g5.xlarge: ", "g5.xlarge: "], "the pod has one of four shares");
        let findings = &plan.pools[&gpu()];
        assert_eq!((&findings.buffer_unmet, findings.units_left), (&None, 0));
    }
}

#[test]
fn a_limit_on_gpus_counts_those_of_machines_and_not_how_often_they_are_advertised() {
    let limited = |most: u64| {
        let limits = PoolLimits {
            resources: [(ResourceName::new(ResourceName::NVIDIA_GPU), most)].into(),
            ..PoolLimits::default()
        };
        let pods = (0..5).map(|number| pod(&format!("p{number}"), requests(1, 1, 1)));
        planned(&with(with(cluster(aws(), [Pool { limits, ..pool("gpu") }]), [sliced()]), pods))
    };
    let plan = limited(2);
    assert_eq!((plan.counts.on_existing, plan.counts.on_new, plan.counts.unplaced), (4, 1, 0));
    let plan = limited(1);
    assert_eq!((plan.counts.on_existing, plan.counts.unplaced), (4, 1));
    let said = &plan.unplaced[0].message;
    assert!(
        said.contains("limit nvidia.com/gpu = 1 of pool `gpu` is reached (in use or on order: 1)"),
        "{said}"
    );
}

#[test]
fn a_limit_of_a_namespace_counts_a_share_as_its_part_of_a_gpu_and_a_pod_on_a_new_node_as_a_whole_one() {
    let of_ml = |name: String, requests| {
        let pod = pod(&name, requests);
        Pod { key: PodKey::new("ml", name), ..pod }
    };
    let plain = (capacity(8, 64, 4), requests(1, 1, 1));
    let renamed = (capacity(8, 64, 0).with(SHARED, 4), requests(1, 1, 0).with(SHARED, 1));
    for (allocatable, share) in [plain, renamed] {
        let running = (0..4).map(|number| bound(of_ml(format!("r{number}"), share.clone()), "sliced"));
        let waiting = (0..3).map(|number| of_ml(format!("w{number}"), requests(1, 1, 1)));
        let snapshot = with(cluster(aws(), [pool("gpu")]), [Node { allocatable, ..sliced() }]);
        let mut snapshot = with(with(snapshot, running), waiting);
        let gpus = NamespaceLimit::Gpus;
        let limits = [(gpus, Some(gpus.read("2").unwrap()))].into();
        snapshot.put_namespace(Namespace { name: "ml".into(), labels: [].into(), limits });
        let plan = planned(&snapshot);
        assert_eq!((plan.counts.on_new, plan.counts.unplaced), (1, 2));
        let said = &plan.unplaced[0].message;
        let expected = "limit gpus = 2 of namespace `ml` is reached (in use or on order: 2; it would add 1)";
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn a_replica_within_a_limit_on_gpus_is_bought_beside_a_shared_gpu() {
    let limits = PoolLimits {
        resources: [(ResourceName::new(ResourceName::NVIDIA_GPU), 2)].into(),
        ..PoolLimits::default()
    };
    let requirements = vec![is_in("poolwright.dev/gpu-model", &["a10g"])];
    let pool = Pool { replicas: Some(2), limits, requirements, ..pool("gpu") };
    let plan = planned(&with(cluster(aws(), [pool]), [sliced()]));
    assert_eq!(bought(&plan), ["g5.xlarge: "]);
    let said = plan.pools[&gpu()].limit_reached.clone().unwrap();
    assert!(said.contains("(in use or on order: 2)"), "{said}");
}

#[test]
fn a_static_pool_whose_label_cuts_gpus_buys_nothing_even_in_a_plan_that_may_cut_gpus() {
    let kinds = vec![Kind("a2", capacity(12, 80, 1), Some("a100"), &[("a", "3")])];
    let labels = [("nvidia.com/mig.config".to_owned(), "all-1g.5gb".to_owned())];
    let pool = Pool { labels: labels.into(), replicas: Some(2), ..pool("gpu") };
    let plan = planned_with(&cluster(catalogue(kinds), [pool]), Sharing::Mig { mixed: false });
    assert_eq!(plan.claims, []);
    let (reason, _) = plan.pools[&gpu()].invalid.clone().unwrap();
    assert_eq!(reason, Reason::GpusCut);
}

#[test]
fn units_that_ask_for_shares_get_those_there_are_and_the_pool_says_that_no_node_is_bought_for_others() {
    let unit = requests(1, 1, 0).with(SHARED, 1);
    let pool = Pool { buffer: buffer(3, unit), ..pool("gpu") };
    let shared = Node { allocatable: capacity(8, 64, 0).with(SHARED, 4), ..sliced() };
    let snapshot = with(cluster(aws(), [pool]), [shared]);
    let plan = planned(&snapshot);
    assert_eq!((plan.claims.len(), plan.pools[&gpu()].units_left), (0, 0));
    assert_eq!(ready(&plan).1, Reason::Ready);
    let taken = bound(pod("there", requests(1, 1, 0).with(SHARED, 2)), "sliced");
    let plan = planned(&with(snapshot, [taken]));
    assert_eq!((plan.claims.len(), plan.pools[&gpu()].units_left), (0, 1));
    let (status, reason, said) = ready(&plan);
    assert_eq!((status, reason), (ConditionStatus::True, Reason::BufferUnmet));
    assert!(
        said.contains("spec.buffer[0]: no room is kept for 1 unit: needs 1 nvidia.com/gpu.shared"),
        "{said}"
    );
    assert!(said.contains("Poolwright buys nodes for whole GPUs; ask for nvidia.com/gpu"), "{said}");
}

#[test]
fn units_without_a_known_price_are_told_too() {
    let kinds = vec![Kind("new", capacity(4, 16, 1), Some("a10g"), &[("a", "unknown")])];
    let pool = Pool { buffer: buffer(2, requests(1, 1, 1)), ..pool("gpu") };
    let plan = planned(&cluster(catalogue(kinds), [pool]));
    let said = plan.pools[&gpu()].buffer_unmet.clone().unwrap();
    assert!(said.starts_with("spec.buffer[0]: no room is kept for 2 units: "), "{said}");
    assert!(said.contains("price"), "{said}");
}

#[test]
fn a_pool_is_not_ready_while_a_new_node_of_it_stays_closed_because_it_shares_gpus() {
    let told = |advertised, claim: Claim| {
        let node = Node { allocatable: advertised, ..claimed_node() };
        let snapshot = with(with(cluster(aws(), [pool("gpu")]), [claim]), [node]);
        let plan = planned(&snapshot);
        (ready(&plan), why::pool(&snapshot, &plan, &gpu()).expect("the pool exists").join("\n"))
    };
    let parts = [
        capacity(4, 16, 4),
        capacity(4, 16, 0).with(SHARED, 4),
        capacity(4, 16, 0).with("nvidia.com/mig-1g.5gb", 7),
    ];
    for advertised in parts {
        let ((status, reason, said), explained) = told(advertised, registered());
        assert_eq!((status, reason), (ConditionStatus::False, Reason::GpusShared));
        assert!(said.starts_with("node n stays closed, because it does not advertise the GPUs"), "{said}");
        assert!(said.contains("its device plugin shares GPUs (time slicing, MPS or MIG)"), "{said}");
        assert!(
            explained.contains(&format!("Its new nodes do not open (GpusShared): {said}.")),
            "{explained}"
        );
    }
    // A node that has not begun to advertise, a whole GPU, and a node that is open.
    for (gpus, claim) in [(0, registered()), (1, registered()), (4, initialized())] {
        assert_eq!(told(capacity(4, 16, gpus), claim).0.1, Reason::Ready, "{gpus}");
    }
}

#[test]
fn a_pool_that_buys_nothing_is_not_said_to_keep_nodes_for_its_buffer_or_its_replicas() {
    let labels = [("nvidia.com/mig.config".to_owned(), "all-1g.5gb".to_owned())];
    let kinds = || vec![Kind("a2", capacity(12, 80, 1), Some("a100"), &[("a", "3")])];
    let told = |pool: Pool| {
        let snapshot = cluster(catalogue(kinds()), [Pool { labels: labels.clone().into(), ..pool }]);
        why::pool(&snapshot, &planned(&snapshot), &gpu()).expect("the pool exists")
    };
    let said = told(Pool { buffer: buffer(1, requests(1, 1, 1)), ..pool("gpu") });
    assert!(
        said.iter().any(|line| line == "Its `buffer` asks for free room, but it buys no node for that."),
        "{said:?}"
    );
    let said = told(Pool { replicas: Some(2), ..pool("gpu") });
    assert_eq!(said.last().map(String::as_str), Some("Its `replicas` asks for 2 nodes."), "{said:?}");
}

#[test]
fn a_pool_says_why_it_can_buy_none_of_its_offerings_now() {
    let kinds = || catalogue(vec![Kind("g5.xlarge", capacity(4, 16, 1), None, &[("a", "1")])]);
    let told = |snapshot: &Snapshot| {
        let plan = planned(snapshot);
        (ready(&plan), why::pool(snapshot, &plan, &gpu()).expect("the pool exists").join("\n"))
    };
    let fixed = || Pool { replicas: Some(2), ..pool("gpu") };
    let mut out_of_stock = cluster(kinds(), [fixed()]);
    out_of_stock.held_back.insert((node_class(), id("g5.xlarge", "a")), at(600));
    let ((status, reason, said), explained) = told(&out_of_stock);
    assert_eq!((status, reason), (ConditionStatus::True, Reason::OfferingsHeldBack), "it buys again later");
    assert!(said.contains("its 1 offering failed recently"), "{said}");
    assert!(explained.contains(&format!("It buys no node now (OfferingsHeldBack): {said}.")), "{explained}");
    assert!(explained.ends_with("Its `replicas` asks for 2 nodes."), "{explained}");

    let unpriced = catalogue(vec![Kind("g5.xlarge", capacity(4, 16, 1), None, &[("a", "unknown")])]);
    let ((status, reason, said), explained) = told(&cluster(unpriced, [fixed()]));
    assert_eq!((status, reason), (ConditionStatus::False, Reason::PriceUnknown));
    assert!(said.contains("list the instance types under allowUnknownPrices of pool gpu"), "{said}");
    assert!(explained.contains("It buys no node now (PriceUnknown)"), "{explained}");
}
