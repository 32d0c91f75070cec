//! Tests of interruptions: from a notice to its record and its acknowledgement.

use std::time::Duration;

use axum::http::Method;
use jiff::SignedDuration;
use poolwright_catalog::{OfferingId, builtin};
use poolwright_core::batch::BatchWindow;
use poolwright_core::setbacks::Setbacks;
use poolwright_core::{ClaimName, ListedInstance, Uid};
use poolwright_provider_contract::memory::{MemoryCloud, MemoryProvider, NODE_CLASS_KIND};
use poolwright_terms::NodeClassRef;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::edge::clock::testing::TestClock;
use crate::edge::clock::{Clock, SharedClock};
use crate::edge::signal::{self, Sender};
use crate::edge::stoppable::Stoppable;
use crate::executor::context::testing::leading;
use crate::fake_api::{FakeApi, Fault};
use crate::leader::LeaderTerm;
use crate::loops::leader_loop::Leading;
use crate::observed::ready::Ready;
use crate::observed::world::World;

struct Scene {
    api: FakeApi,
    cloud: Arc<MemoryCloud>,
    world: Arc<World>,
    interruptions: Interruptions,
    leader: Sender<Option<LeaderTerm>>,
    clock: Arc<TestClock>,
}

fn class() -> NodeClassRef {
    NodeClassRef { group: "poolwright.dev".into(), kind: NODE_CLASS_KIND.into(), name: "default".into() }
}

fn path(name: &str) -> String {
    format!("/apis/poolwright.dev/v1alpha1/nodeclaims/{name}")
}

fn offering() -> OfferingId {
    builtin().offerings()[0].id.clone()
}

impl Scene {
    /// A cloud of which the first listing is known.
    fn new() -> Self {
        let scene = Self::before_the_first_listing();
        scene.world.set_instances(&[NODE_CLASS_KIND], scene.clock.now(), Vec::new());
        scene
    }

    fn before_the_first_listing() -> Self {
        let clock = Arc::new(TestClock::new());
        let shared: SharedClock = clock.clone();
        let now = shared.clone();
        let cloud = MemoryCloud::new(Arc::new(builtin()), class(), Arc::new(move || now.now()));
        let api = FakeApi::default();
        let (context, leader) = leading(&api, &shared, vec![Arc::new(MemoryProvider::new(cloud.clone()))]);
        let expires = clock.moment().after(Duration::from_hours(1));
        leader.replace(Some(LeaderTerm { expires, number: 1 }));
        let world = context.world.clone();
        let executor = Executor::new(context.clone(), 4, Stoppable::default());
        let interruptions = Interruptions::new(context, executor);
        Self { api, cloud, world, interruptions, leader, clock }
    }

    /// Adds a claim, launched as this instance if one is given.
    fn claim(&self, name: &str, instance: Option<&str>) {
        let offering = poolwright_intake::offering_ref(&offering());
        let mut object = json!({
            "apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim",
            "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": {"poolwright.dev/nodepool": "gpu"},
                "creationTimestamp": self.clock.now()},
            "spec": {"nodeClassRef": {"group": class().group, "kind": class().kind, "name": class().name},
                "offerings": [{"instanceType": offering.instance_type, "zone": offering.zone,
                    "capacityType": offering.capacity_type, "allocatable": {"cpu": "4"}}]},
        });
        if let Some(instance) = instance {
            object["status"] = json!({"providerID": format!("memory://a/{instance}"), "offering": offering});
        }
        self.api.put(&path(name), object.clone());
        self.world
            .claim_created(&serde_json::from_value(self.api.get(&path(name)).unwrap()).unwrap())
            .unwrap();
    }

    fn says(&self, instances: &[&str], kind: poolwright_terms::InterruptionKind) -> String {
        let noticed = self.clock.now();
        let interruptions = instances.iter().map(|instance| contract::Interruption {
            instance: (*instance).to_owned(),
            kind,
            noticed,
            deadline: noticed.checked_add(SignedDuration::from_mins(2)).ok(),
            message: "it is taken back".to_owned(),
        });
        self.cloud.notify(InterruptionMessage { receipt: None, interruptions: interruptions.collect() })
    }

    /// Runs the loop until nothing more happens.
    async fn hear(&self) {
        let _ = timeout(Duration::from_secs(30), self.interruptions.listen_to_all()).await;
    }

    fn recorded(&self, name: &str) -> Option<Value> {
        let kind = self.api.get(&path(name))?["status"]["interruption"]["kind"].clone();
        (!kind.is_null()).then_some(kind)
    }

    fn count(&self, kind: &str, outcome: &str) -> u64 {
        self.interruptions.context.metrics.interruptions.with_label_values(&["memory", kind, outcome]).get()
    }
}

use poolwright_terms::InterruptionKind::{Ending, Rebalance, Reclaim};

#[tokio::test(start_paused = true)]
async fn an_interruption_is_recorded_with_its_conditions_and_acknowledged() {
    let scene = Scene::new();
    scene.claim("a", Some("i-1"));
    scene.says(&["i-1"], Reclaim);
    scene.hear().await;
    let status = scene.api.get(&path("a")).unwrap()["status"].clone();
    assert_eq!(status["interruption"]["kind"], "Reclaim");
    assert_eq!(status["interruption"]["deadline"], "2026-01-01T00:02:00Z");
    let conditions = status["conditions"].as_array().unwrap();
    let said: Vec<_> = conditions
        .iter()
        .map(|one| (one["type"].as_str().unwrap(), one["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(said, [("Interrupted", "Reclaim"), ("Disrupting", "Interrupted")]);
    assert_eq!(scene.cloud.unacknowledged(), Vec::<String>::new());
    let claim = scene.world.claim(&ClaimName("a".into())).unwrap();
    assert!(claim.leaving().is_some(), "it is known at once");
    let due = scene.world.plan_at().unwrap();
    assert!(due <= scene.clock.monotonic() + Duration::from_millis(150), "planned without the usual wait");
    assert_eq!(scene.count("Reclaim", "recorded"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_or_late_interruption_changes_nothing_and_is_acknowledged() {
    let scene = Scene::new();
    scene.claim("a", Some("i-1"));
    scene.says(&["i-1"], Reclaim);
    scene.hear().await;
    let before = scene.api.get(&path("a"));
    scene.says(&["i-1"], Reclaim);
    scene.clock.advance(Duration::from_secs(5));
    scene.says(&["i-1"], Rebalance);
    scene.hear().await;
    assert_eq!(scene.api.get(&path("a")), before);
    assert_eq!(scene.cloud.unacknowledged(), Vec::<String>::new());
    assert_eq!((scene.count("Reclaim", "known"), scene.count("Rebalance", "known")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_fails_keeps_its_notice_and_holds_up_no_other() {
    let scene = Scene::new();
    scene.claim("a", Some("i-1"));
    scene.claim("b", Some("i-2"));
    for _ in 0..16 {
        scene.api.fault(Method::PUT, "nodeclaims/a", Fault::Fails(500));
    }
    let both = scene.says(&["i-1", "i-2"], Reclaim);
    scene.hear().await;
    assert_eq!((scene.recorded("a"), scene.recorded("b")), (None, Some(json!("Reclaim"))));
    assert_eq!(scene.cloud.unacknowledged(), [both]);
    scene.api.clear_faults();
    scene.cloud.redeliver();
    scene.hear().await;
    assert_eq!(scene.recorded("a"), Some(json!("Reclaim")));
    assert_eq!(scene.cloud.unacknowledged(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_interruption_of_a_foreign_instance_is_acknowledged_and_a_possibly_own_one_after_five_minutes() {
    let scene = Scene::new();
    scene.says(&["i-of-another-cluster"], Reclaim);
    scene.hear().await;
    assert_eq!(scene.cloud.unacknowledged(), Vec::<String>::new());
    assert_eq!(scene.count("Reclaim", "unknown"), 1);
    // A launch is in progress: its instance is not known yet.
    scene.claim("a", None);
    let receipt = scene.says(&["i-1"], Reclaim);
    scene.hear().await;
    assert_eq!(scene.cloud.unacknowledged(), [receipt]);
    scene.claim("b", Some("i-1"));
    scene.cloud.redeliver();
    scene.hear().await;
    assert_eq!(scene.cloud.unacknowledged(), Vec::<String>::new());
    assert_eq!(scene.recorded("b"), Some(json!("Reclaim")));
    scene.says(&["i-2"], Reclaim);
    scene.clock.advance(Duration::from_mins(5));
    scene.hear().await;
    assert_eq!(scene.cloud.unacknowledged(), Vec::<String>::new());
    assert_eq!(scene.count("Reclaim", "unknown"), 2);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_listed_and_has_no_claim_is_left_to_come_again() {
    let scene = Scene::new();
    let listed = ListedInstance {
        provider_id: "memory://a/i-1".into(),
        claim_uid: Uid("uid-a".into()),
        node_class: class(),
        launched: scene.clock.now(),
    };
    scene.world.set_instances(&[NODE_CLASS_KIND], scene.clock.now(), vec![listed]);
    let receipt = scene.says(&["i-1"], Reclaim);
    scene.hear().await;
    assert_eq!(scene.cloud.unacknowledged(), [receipt]);
    assert_eq!(scene.count("Reclaim", "later"), 1);
}

#[tokio::test(start_paused = true)]
async fn before_the_first_listing_a_notice_about_an_unknown_instance_is_left_to_come_again() {
    let scene = Scene::before_the_first_listing();
    let receipt = scene.says(&["i-1"], Reclaim);
    scene.hear().await;
    assert_eq!(scene.cloud.unacknowledged(), [receipt]);
    scene.world.set_instances(&[NODE_CLASS_KIND], scene.clock.now(), Vec::new());
    scene.cloud.redeliver();
    scene.hear().await;
    assert_eq!(scene.cloud.unacknowledged(), Vec::<String>::new());
    assert_eq!((scene.count("Reclaim", "later"), scene.count("Reclaim", "unknown")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_instance_that_we_give_back_ourselves_is_no_news() {
    let scene = Scene::new();
    scene.claim("a", Some("i-1"));
    let mut object = scene.api.get(&path("a")).unwrap();
    object["metadata"]["deletionTimestamp"] = json!(scene.clock.now());
    object["metadata"]["finalizers"] = json!(["poolwright.dev/termination"]);
    object["status"]["conditions"] = json!([{"type": "InstanceTerminating", "status": "True", "reason": "Terminating",
        "message": "", "lastTransitionTime": scene.clock.now()}]);
    scene.api.put(&path("a"), object);
    scene.world.claim_seen(&serde_json::from_value(scene.api.get(&path("a")).unwrap()).unwrap());
    scene.says(&["i-1"], Ending);
    scene.hear().await;
    assert_eq!((scene.recorded("a"), scene.count("Ending", "expected")), (None, 1));
    assert_eq!(scene.cloud.unacknowledged(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_does_not_lead_hears_nothing() {
    let scene = Scene::new();
    scene.claim("a", Some("i-1"));
    scene.leader.replace(None);
    let receipt = scene.says(&["i-1"], Reclaim);
    let leading = Leading {
        terms: scene.interruptions.context.writer.terms().clone(),
        ready: Ready::new(signal::sender(Vec::new()).subscribe()),
        shutdown: CancellationToken::new(),
    };
    let _ = timeout(Duration::from_secs(30), leading.run(scene.interruptions.clone())).await;
    assert_eq!((scene.recorded("a"), scene.cloud.unacknowledged()), (None, vec![receipt]));
}

#[tokio::test(start_paused = true)]
async fn a_reclaimed_offering_is_avoided_in_the_next_plan_and_after_a_restart() {
    let scene = Scene::new();
    scene.claim("a", Some("i-1"));
    scene.says(&["i-1"], Reclaim);
    scene.hear().await;
    let until = |world: &World| {
        let snapshot = world.begin_plan();
        snapshot.reclaims.get(&(class(), offering())).map(|reclaims| reclaims.until)
    };
    let first = until(&scene.world);
    assert_eq!(first, scene.clock.now().checked_add(SignedDuration::from_mins(5)).ok());
    assert_eq!(until(&scene.world), first);
    let restarted =
        World::new(BatchWindow::default(), Setbacks::default(), scene.interruptions.context.clock.clone());
    restarted.claim_created(&serde_json::from_value(scene.api.get(&path("a")).unwrap()).unwrap()).unwrap();
    assert_eq!(until(&restarted), first);
}

#[tokio::test(start_paused = true)]
async fn five_hundred_at_once_are_all_recorded_and_given_back() {
    let scene = Scene::new();
    for number in 0..500 {
        scene.claim(&format!("c-{number}"), Some(&format!("i-{number}")));
        scene.says(&[&format!("i-{number}")], Reclaim);
    }
    scene.hear().await;
    assert_eq!(scene.count("Reclaim", "recorded"), 500);
    assert_eq!(scene.cloud.unacknowledged(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn notices_about_one_instance_that_come_together_are_one_write() {
    let scene = Scene::new();
    scene.claim("a", Some("i-1"));
    for kind in [Rebalance, Reclaim, Reclaim] {
        scene.says(&["i-1"], kind);
    }
    scene.hear().await;
    assert_eq!(scene.recorded("a"), Some(json!("Reclaim")));
    assert_eq!(scene.api.writes(), [format!("PUT {}/status", path("a"))]);
    let known = scene.count("Reclaim", "known") + scene.count("Rebalance", "known");
    assert_eq!(known, 2, "the write of the first contains them");
    assert_eq!(scene.cloud.unacknowledged(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_notice_about_one_instance_that_comes_during_the_write_of_another_is_recorded_too() {
    let scene = Scene::new();
    scene.claim("a", Some("i-1"));
    scene.api.fault(Method::PUT, "nodeclaims/a", Fault::NoAnswer);
    scene.says(&["i-1"], Rebalance);
    let later = async {
        sleep(Duration::from_secs(1)).await;
        scene.says(&["i-1"], Reclaim);
    };
    futures::join!(later, scene.hear());
    assert_eq!(scene.recorded("a"), Some(json!("Reclaim")));
    assert_eq!(scene.cloud.unacknowledged(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn notices_that_cannot_be_recorded_delay_no_other_between_their_attempts() {
    let scene = Scene::new();
    for number in 0..100 {
        scene.claim(&format!("c-{number}"), Some(&format!("i-{number}")));
        scene.says(&[&format!("i-{number}")], Reclaim);
        scene.api.fault(Method::PUT, "nodeclaims/c-", Fault::Fails(500));
    }
    scene.claim("z", Some("i-z"));
    scene.says(&["i-z"], Reclaim);
    let _ = timeout(BETWEEN_ATTEMPTS.0 / 2, scene.interruptions.listen_to_all()).await;
    assert_eq!((scene.recorded("c-0"), scene.recorded("z")), (None, Some(json!("Reclaim"))));
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_of_the_api_server_a_notice_is_recorded_before_it_comes_again() {
    let scene = Scene::new();
    scene.claim("a", Some("i-1"));
    for _ in 1..ATTEMPTS {
        scene.api.fault(Method::PUT, "nodeclaims/a", Fault::Fails(503));
    }
    scene.says(&["i-1"], Reclaim);
    let _ = timeout(Duration::from_secs(20), scene.interruptions.listen_to_all()).await;
    assert_eq!(scene.recorded("a"), Some(json!("Reclaim")));
    assert_eq!(scene.cloud.unacknowledged(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_record_without_an_answer_delays_decisions_for_two_seconds_and_is_repeated() {
    let scene = Scene::new();
    scene.claim("a", Some("i-1"));
    scene.api.fault(Method::PUT, "nodeclaims/a", Fault::NoAnswer);
    scene.says(&["i-1"], Reclaim);
    let waited = async {
        // By then, the notice has been received.
        sleep(Duration::from_millis(10)).await;
        let begun = tokio::time::Instant::now();
        scene.interruptions.executor.unrecorded().all_recorded().await;
        begun.elapsed()
    };
    let (waited, ()) = futures::join!(waited, scene.hear());
    assert!(waited > ANSWER / 2 && waited <= ANSWER, "{waited:?}");
    assert_eq!(scene.recorded("a"), Some(json!("Reclaim")));
}

#[tokio::test(start_paused = true)]
async fn a_failed_poll_is_counted_once_and_delays_no_other_interruption() {
    let scene = Scene::new();
    scene.claim("a", Some("i-a"));
    let errors = |error: &str| {
        scene
            .interruptions
            .context
            .metrics
            .provider_errors
            .with_label_values(&["memory", "look", error])
            .get()
    };
    scene.cloud.fail_poll(ProviderError::Throttled("slower".to_owned()));
    scene.cloud.fail_poll(ProviderError::Invalid("not allowed".to_owned()));
    scene.says(&["i-a"], Reclaim);
    let _ = timeout(AFTER_FAILURE.0 / 2, scene.interruptions.listen_to_all()).await;
    assert_eq!(scene.count("Reclaim", "recorded"), 1, "no pause is made for it");
    assert_eq!((errors("throttled"), errors("invalid"), errors("transient")), (1, 1, 0));
    // Failures of a cloud without notices are counted at each poll.
    scene.cloud.fail_poll(ProviderError::Transient("lost".to_owned()));
    let _ = timeout(LIMIT * 2, scene.interruptions.listen_to_all()).await;
    assert_eq!((errors("throttled"), errors("transient")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn messages_that_cannot_be_read_are_counted_each_time_they_come() {
    let scene = Scene::new();
    let counted = || scene.interruptions.context.metrics.unreadable.with_label_values(&["memory"]).get();
    scene.cloud.send_unreadable();
    scene.cloud.send_unreadable();
    let _ = timeout(LIMIT * 2, scene.interruptions.listen_to_all()).await;
    assert_eq!(counted(), 2);
    scene.cloud.send_unreadable();
    let _ = timeout(LIMIT * 2, scene.interruptions.listen_to_all()).await;
    assert_eq!(counted(), 3);
}
