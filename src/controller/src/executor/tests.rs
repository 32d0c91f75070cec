//! Tests of the executor with a fake API server and a fake cloud, including lost answers.

mod denied;
mod doubted;
mod last_seen;
mod names;
mod repeated;
mod reserve;
mod room;

use axum::http::Method;
use poolwright_catalog::{Catalogue, OfferingId, RankedOffering, ResourceList, Zone, builtin};
use poolwright_core::plan::PlannedClaim;
use poolwright_core::{Claim, ClaimName, Deadlines, ObjectKey, PodKey, PoolName, Uid};
use poolwright_provider_contract::memory::{InjectedFailure, MemoryCloud, MemoryProvider, NODE_CLASS_KIND};
use poolwright_terms::{CapacityType, NodeClassRef};
use serde_json::{Value, json};

use super::*;
use crate::edge::clock::SharedClock;
use crate::edge::clock::testing::TestClock;
use crate::edge::signal::Sender;
use crate::executor::context::testing::leading;
use crate::fake_api::{FakeApi, Fault};
use crate::leader::LeaderTerm;
use crate::observed::world::World;

const CLAIM: &str = "/apis/poolwright.dev/v1alpha1/nodeclaims/gpu-1";

struct Scene {
    api: FakeApi,
    cloud: Arc<MemoryCloud>,
    world: Arc<World>,
    executor: Arc<Executor>,
    leader: Sender<Option<LeaderTerm>>,
    clock: Arc<TestClock>,
}

fn class() -> NodeClassRef {
    NodeClassRef { group: "poolwright.dev".into(), kind: NODE_CLASS_KIND.into(), name: "default".into() }
}

fn offerings() -> Vec<OfferingId> {
    let catalogue: Catalogue = builtin();
    let ids = catalogue.offerings().iter().map(|offering| offering.id.clone());
    ids.filter(|id| id.capacity_type == CapacityType::OnDemand && id.zone != Zone::new(Zone::ANY))
        .take(2)
        .collect()
}

pub(crate) fn planned() -> PlannedClaim {
    let ranked = |offering| RankedOffering {
        offering,
        price: Some("1.006".parse().unwrap()),
        allocatable: ResourceList::new().with("cpu", 4000).with("nvidia.com/gpu", 1),
    };
    PlannedClaim {
        name: ClaimName("gpu-1".into()),
        pool: PoolName("gpu".into()),
        pool_uid: Uid("pool".into()),
        node_class: class(),
        offerings: offerings().into_iter().map(ranked).collect(),
        together: 0,
        choice: vec![],
        labels: [].into(),
        annotations: [].into(),
        taints: vec![],
        startup_taints: vec![],
        readiness_gates: vec![],
        planned_pods: vec![PodKey::new("default", "train")],
        bought_again: vec![],
        deadlines: Deadlines::default(),
        gpus: Vec::new(),
        reason: "a pod waits".into(),
    }
}

impl Scene {
    fn new() -> Self {
        let test_clock = Arc::new(TestClock::new());
        let clock: SharedClock = test_clock.clone();
        let now = clock.clone();
        let cloud = MemoryCloud::new(Arc::new(builtin()), class(), Arc::new(move || now.now()));
        let api = FakeApi::default();
        let (context, leader) = leading(&api, &clock, vec![Arc::new(MemoryProvider::new(cloud.clone()))]);
        let world = context.world.clone();
        let executor = Executor::new(context, 4, Stoppable::default());
        Self { api, cloud, world, executor, leader, clock: test_clock }
    }

    async fn created() -> Self {
        let scene = Self::new();
        assert_eq!(scene.executor.create_claim(&planned(), None).await, CreateResult::Created);
        scene
    }

    fn claim(&self) -> Arc<Claim> {
        self.world.claim(&ClaimName("gpu-1".into())).unwrap()
    }

    /// Simulates a restart: reads the world again from the API server.
    fn relist(&self) {
        let object = self.api.get(CLAIM).map(|object| serde_json::from_value(object).unwrap());
        self.world.change(|state| {
            let claims = object.iter().map(|object| poolwright_intake::node_claim(object).unwrap());
            let end_of_expectations = "2027-01-01T00:00:00Z".parse().unwrap();
            state.index.reset_claims(claims, end_of_expectations)
        });
    }

    fn condition(&self, kind: &str) -> Option<Value> {
        let object = self.api.get(CLAIM)?;
        object["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == kind).cloned()
    }

    fn pod_on(&self, node: &str) {
        self.api.put(
            "/api/v1/pods/train",
            json!({"metadata": {"name": "train", "namespace": "default", "uid": "p"},
                "spec": {"nodeName": node, "containers": []}, "status": {"phase": "Running"}}),
        );
    }

    /// Creates a scene with a launched claim whose node has joined and is recorded.
    async fn with_node() -> Self {
        let scene = Self::created().await;
        assert!(matches!(scene.executor.launch(&scene.claim()).await, Progress::Done));
        let id = scene.claim().launched.clone().unwrap().provider_id;
        let node = json!({"metadata": {"name": "n", "uid": "n"}, "spec": {"providerID": id,
            "taints": [{"key": "poolwright.dev/unregistered", "effect": "NoExecute"}]}});
        scene.api.put("/api/v1/nodes/n", node.clone());
        scene.world.change(|state| {
            state.index.apply_node(poolwright_intake::node(&serde_json::from_value(node).unwrap()).unwrap())
        });
        let annotations = [("poolwright.dev/cordoned-until".to_owned(), "initialization".to_owned())].into();
        let registered = scene.executor.register(&scene.claim(), "n", &[].into(), &annotations, &[]).await;
        assert!(matches!(registered, Progress::Done), "{registered:?}");
        scene
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_with_an_unanswered_creation_is_created_once() {
    let scene = Scene::new();
    scene.api.fault(Method::POST, "nodeclaims", Fault::AnswerLost);
    scene.api.fault(Method::POST, "nodeclaims", Fault::Fails(500));
    assert_eq!(scene.executor.create_claim(&planned(), None).await, CreateResult::Created);
    assert_eq!(scene.claim().planned_pods, [PodKey::new("default", "train")]);
}

#[tokio::test(start_paused = true)]
async fn a_launch_with_a_lost_response_or_record_buys_one_instance() {
    for lost in ["nothing", "the provider's answer", "the record", "the record's answer"] {
        let scene = Scene::created().await;
        match lost {
            "the provider's answer" => scene.cloud.inject_failure(InjectedFailure::AnswerLost),
            "the record" => scene.api.fault(Method::PUT, "/status", Fault::Fails(409)),
            "the record's answer" => scene.api.fault(Method::PUT, "/status", Fault::AnswerLost),
            _ => {}
        }
        for _restart in 0..3 {
            scene.relist();
            scene.executor.launch(&scene.claim()).await;
        }
        assert_eq!(scene.cloud.ever_made(), 1, "{lost}");
        let launched = scene.claim().launched.clone().unwrap();
        assert_eq!(launched.provider_id, scene.cloud.instances()[0].provider_id, "{lost}");
        assert_eq!(scene.condition("Launched").unwrap()["status"], "True", "{lost}");
    }
}

#[tokio::test]
async fn nothing_is_bought_for_a_claim_that_was_deleted_behind_our_back() {
    let scene = Scene::created().await;
    let mut object = scene.api.get(CLAIM).unwrap();
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:00Z");
    scene.api.put(CLAIM, object);
    assert!(matches!(scene.executor.launch(&scene.claim()).await, Progress::NothingToDo));
    assert_eq!(scene.cloud.ever_made(), 0);
    assert!(scene.claim().deleting_since.is_some(), "and now it is known");
}

#[tokio::test]
async fn nothing_is_bought_or_written_when_we_do_not_lead() {
    let scene = Scene::created().await;
    scene.leader.replace(None);
    let writes = scene.api.writes().len();
    assert!(matches!(scene.executor.launch(&scene.claim()).await, Progress::NotLeading));
    assert!(matches!(scene.executor.terminate(&scene.claim(), false).await, Progress::NotLeading));
    assert_eq!(scene.executor.create_claim(&planned(), None).await, CreateResult::NotLeading);
    assert_eq!((scene.cloud.ever_made(), scene.api.writes().len()), (0, writes));
}

#[tokio::test]
async fn the_next_offering_is_taken_when_the_first_is_out_of_stock_and_that_is_remembered() {
    let scene = Scene::created().await;
    let [first, second] = offerings().try_into().unwrap();
    scene.cloud.set_stock_outs([first.clone()]);
    assert!(matches!(scene.executor.launch(&scene.claim()).await, Progress::Done));
    assert_eq!(scene.claim().launched.as_ref().unwrap().offering, second);
    let message = scene.condition("Launched").unwrap()["message"].to_string();
    assert!(message.contains(&first.to_string()) && message.contains(&second.to_string()), "{message}");
    scene.world.view(|all| assert!(all.held_back.contains_key(&(class(), first.clone()))));
}

#[tokio::test]
async fn a_claim_that_nothing_can_be_had_for_goes_and_its_pods_are_planned_at_once() {
    let scene = Scene::created().await;
    scene.cloud.set_stock_outs(offerings());
    assert!(matches!(scene.executor.launch(&scene.claim()).await, Progress::Done));
    assert_eq!(scene.condition("Launched").unwrap()["reason"], "StockOut");
    assert!(scene.claim().deleting_since.is_some());
    let due = scene.world.plan_at().unwrap();
    assert!(due <= scene.executor.context.clock.monotonic(), "without waiting for the batch window");
    scene.world.view(|all| assert_eq!(all.held_back.len(), 2));
}

#[tokio::test]
async fn a_launch_that_can_never_work_says_so_and_does_not_spin() {
    let scene = Scene::created().await;
    let why = poolwright_provider_contract::ProviderError::Invalid("no such image".into());
    scene.cloud.inject_failure(InjectedFailure::Fails(why));
    let outcome = scene.executor.launch(&scene.claim()).await;
    assert!(matches!(outcome, Progress::Retry(wait, _) if wait >= Duration::from_secs(30)), "{outcome:?}");
    assert_eq!(scene.condition("Launched").unwrap()["message"], "no such image");
    assert_eq!(scene.world.launch_problems()[&class()], "no such image");
}

#[tokio::test]
async fn an_action_that_panics_frees_its_lane_and_is_retried_with_back_off() {
    let scene = Scene::created().await;
    let launch = || vec![Action::Launch { claim: ClaimName("gpu-1".into()) }];
    let submit = async || {
        scene.executor.submit(launch(), &Snapshot::default());
        while scene.executor.lanes.busy() > 0 {
            tokio::task::yield_now().await;
        }
    };
    let failures = || scene.executor.context.metrics.task_failures.with_label_values(&["action"]).get();
    for panics in 1..=2 {
        scene.cloud.inject_failure(InjectedFailure::Panics);
        submit().await;
        assert_eq!((failures(), scene.cloud.ever_made()), (panics, 0));
        let wait =
            scene.executor.next_retry().unwrap().saturating_sub(scene.executor.context.clock.monotonic());
        assert_eq!(wait, Duration::from_millis(500) * u32::try_from(panics).unwrap(), "it doubles");
        submit().await;
        assert_eq!(scene.cloud.ever_made(), 0, "it waits");
        scene.clock.advance(wait);
    }
    submit().await;
    assert_eq!((failures(), scene.cloud.ever_made()), (2, 1));
}

#[tokio::test]
async fn a_node_is_cordoned_when_it_registers_and_opened_once() {
    let scene = Scene::with_node().await;
    let node = scene.api.get("/api/v1/nodes/n").unwrap();
    assert_eq!(node["spec"]["unschedulable"], true);
    assert_eq!(node["spec"]["taints"], json!([]), "the unregistered taint is gone");
    assert_eq!(scene.claim().node_name.as_deref(), Some("n"));
    assert!(matches!(scene.executor.open("n", None).await, Progress::Done));
    let node = scene.api.get("/api/v1/nodes/n").unwrap();
    assert!(node["spec"]["unschedulable"].is_null());
    assert!(
        matches!(scene.executor.open("n", None).await, Progress::NothingToDo),
        "the cordon is not ours any more"
    );
}

#[tokio::test]
async fn work_is_never_killed_by_a_late_view() {
    let scene = Scene::with_node().await;
    scene.pod_on("n");
    assert!(matches!(scene.executor.delete_empty_claim(&scene.claim()).await, Progress::Again(_)));
    assert!(scene.api.get(CLAIM).unwrap()["metadata"]["deletionTimestamp"].is_null());
    scene.executor.delete_claim(&scene.claim().name, &scene.claim().uid).await;
    assert!(matches!(scene.executor.terminate(&scene.claim(), false).await, Progress::Again(_)));
    assert_eq!(scene.cloud.instances().len(), 1);
}

#[tokio::test]
async fn a_node_that_joined_while_the_watch_was_silent_is_not_given_up() {
    let scene = Scene::created().await;
    assert!(matches!(scene.executor.launch(&scene.claim()).await, Progress::Done));
    let id = scene.claim().launched.clone().unwrap().provider_id;
    scene
        .api
        .put("/api/v1/nodes/n", json!({"metadata": {"name": "n", "uid": "n"}, "spec": {"providerID": id}}));
    assert!(matches!(scene.executor.delete_failed_claim(&scene.claim()).await, Progress::Again(_)));
    scene.api.remove("/api/v1/nodes/n");
    assert!(matches!(scene.executor.delete_failed_claim(&scene.claim()).await, Progress::Done));
}

#[tokio::test]
async fn a_node_that_told_of_its_gpus_while_the_watch_was_silent_is_not_given_up() {
    let scene = Scene::with_node().await;
    let mut node = scene.api.get("/api/v1/nodes/n").unwrap();
    node["status"] = json!({"allocatable": {"nvidia.com/gpu": "1"}});
    scene.api.put("/api/v1/nodes/n", node);
    assert!(matches!(scene.executor.delete_failed_claim(&scene.claim()).await, Progress::Again(_)));
    // The read updated the world, so a decision that is repeated now is carried out.
    assert!(matches!(scene.executor.delete_failed_claim(&scene.claim()).await, Progress::Done));
}

#[tokio::test]
async fn when_the_time_of_a_node_is_up_it_goes_with_the_work_on_it() {
    let scene = Scene::with_node().await;
    scene.pod_on("n");
    scene.executor.delete_claim(&scene.claim().name, &scene.claim().uid).await;
    scene.executor.terminate(&scene.claim(), true).await;
    assert!(scene.cloud.instances().is_empty());
}

#[tokio::test]
async fn an_eviction_that_a_budget_rejects_is_repeated_soon() {
    let scene = Scene::with_node().await;
    scene.api.fault(Method::POST, "/pods/train/eviction", Fault::Fails(429));
    let pod = (ObjectKey::new("default", "train"), Uid("p".into()));
    let outcome = scene.executor.evict(&pod.0, &pod.1, "its node will be terminated").await;
    assert!(matches!(outcome, Progress::Again(_)), "{outcome:?}");
    assert_eq!(scene.executor.context.metrics.evictions.with_label_values(&["refused", "Deleted"]).get(), 1);
}

#[tokio::test]
async fn a_pod_that_is_told_to_end_is_this_very_one() {
    let scene = Scene::with_node().await;
    let path = "/api/v1/namespaces/default/pods/train";
    scene.api.put(
        path,
        json!({"metadata": {"name": "train", "namespace": "default", "uid": "p", "finalizers": ["x"]}}),
    );
    let end = async |uid: &str| {
        let key = ObjectKey::new("default", "train");
        scene.executor.end_pod(&key, &Uid(uid.into()), jiff::SignedDuration::from_secs(90)).await
    };
    assert!(matches!(end("another").await, Progress::NothingToDo));
    assert!(scene.api.get(path).unwrap()["metadata"]["deletionTimestamp"].is_null());
    assert!(matches!(end("p").await, Progress::Done));
    assert!(scene.api.get(path).unwrap()["metadata"]["deletionTimestamp"].is_string());
}

#[tokio::test]
async fn a_termination_removes_the_instance_the_node_and_the_claim() {
    for lost in ["nothing", "the node's deletion", "the finalizer"] {
        let scene = Scene::with_node().await;
        match lost {
            "the node's deletion" => scene.api.fault(Method::DELETE, "/nodes/", Fault::Fails(500)),
            "the finalizer" => scene.api.fault(Method::PATCH, "nodeclaims", Fault::AnswerLost),
            _ => {}
        }
        assert!(matches!(scene.executor.delete_empty_claim(&scene.claim()).await, Progress::Done));
        for _again in 0..2 {
            if let Some(claim) = scene.world.claim(&ClaimName("gpu-1".into())) {
                scene.executor.terminate(&claim, false).await;
            }
        }
        assert!(scene.cloud.instances().is_empty(), "{lost}");
        assert_eq!((scene.api.get("/api/v1/nodes/n"), scene.api.get(CLAIM)), (None, None), "{lost}");
        assert!(scene.world.claim(&ClaimName("gpu-1".into())).is_none(), "{lost}");
    }
}

#[tokio::test]
async fn an_instance_that_has_gone_is_known_so_before_its_claim_goes() {
    let scene = Scene::with_node().await;
    let listed = || scene.world.view(|all| all.instances.as_ref().map(|listed| listed.iter().count()));
    let instances = scene.cloud.instances().into_iter().map(|one| poolwright_core::ListedInstance {
        provider_id: one.provider_id,
        claim_uid: Uid(one.key),
        node_class: class(),
        launched: one.launched,
    });
    scene.world.set_instances(&[NODE_CLASS_KIND], scene.executor.context.clock.now(), instances.collect());
    assert!(matches!(scene.executor.delete_empty_claim(&scene.claim()).await, Progress::Done));
    assert_eq!(listed(), Some(1));
    scene.api.fault(Method::DELETE, "/nodes/", Fault::Fails(500));
    scene.executor.terminate(&scene.claim(), false).await;
    assert!(scene.api.get(CLAIM).is_some(), "its node is still to be deleted");
    assert_eq!(listed(), Some(0));
}

#[tokio::test]
async fn the_reaper_takes_what_no_claim_explains_and_spares_what_one_does() {
    let scene = Scene::with_node().await;
    let instance = scene.cloud.instances().remove(0);
    let class = class();
    let key = Uid(instance.key.clone());
    scene.executor.reap(&instance.provider_id, &key, &class).await;
    assert_eq!(scene.cloud.instances().len(), 1, "its claim exists");

    let mut object = scene.api.get(CLAIM).unwrap();
    object["metadata"]["finalizers"] = json!([]);
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:00Z");
    scene.api.put(CLAIM, object);
    scene.pod_on("n");
    assert!(matches!(scene.executor.reap(&instance.provider_id, &key, &class).await, Progress::Again(_)));
    assert_eq!(scene.cloud.instances().len(), 1, "work runs on it");

    scene.api.remove("/api/v1/pods/train");
    assert!(matches!(scene.executor.reap(&instance.provider_id, &key, &class).await, Progress::Done));
    assert_eq!((scene.cloud.instances().len(), scene.api.get("/api/v1/nodes/n")), (0, None));
}

#[test]
fn all_actions_on_one_claim_use_one_lane() {
    let mut snapshot = Snapshot::default();
    let node = poolwright_core::Node {
        name: "n".into(),
        provider_id: None,
        labels: [(poolwright_terms::keys::NODECLAIM_LABEL.to_owned(), "gpu-1".to_owned())].into(),
        taints: vec![],
        allocatable: ResourceList::new(),
        ready: true,
        cordoned: false,
        cordoned_until_initialized: false,
        do_not_disrupt: false,
        deleting_since: None,
        unhealthy_conditions: Vec::new(),
    };
    snapshot.nodes.insert("n".into(), Arc::new(node));
    let claim = ClaimName("gpu-1".into());
    let actions = [
        Action::Launch { claim: claim.clone() },
        Action::Open { node: "n".into(), reserve_for: None },
        Action::Nominate { pod: ObjectKey::new("a", "b"), uid: Uid("u".into()), node: "n".into() },
        Action::SetConditions { subject: Subject::Claim(claim), conditions: vec![] },
    ];
    for action in actions {
        assert_eq!(lane(&action, &snapshot), "nodeclaim/gpu-1");
    }
    assert_eq!(lane(&Action::Open { node: "other".into(), reserve_for: None }, &snapshot), "node/other");
}
