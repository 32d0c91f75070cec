//! Tests of listings that may be wrong, with a cloud in memory.

mod clouds;

use jiff::SignedDuration;
use poolwright_catalog::{OfferingId, RankedOffering, ResourceList, builtin};
use poolwright_core::{Claim, ClaimName, Condition, Interruption};
use poolwright_provider_contract::memory::{MemoryCloud, MemoryProvider, NODE_CLASS_KIND};
use poolwright_provider_contract::{CloudProvider, LaunchRequest};
use poolwright_terms::{ConditionStatus, ConditionType, InterruptionKind, Reason};
use serde_json::json;

use super::*;
use crate::config::Config;
use crate::edge::clock::SharedClock;
use crate::edge::clock::testing::TestClock;
use crate::edge::events::Events;
use crate::edge::metrics::Metrics;
use crate::fake_api::FakeApi;
use crate::observed::providers::Providers;
use crate::observed::reader::Reader;

struct Scene {
    cloud: Arc<MemoryCloud>,
    inventory: Inventory,
}

fn class() -> NodeClassRef {
    NodeClassRef { group: "poolwright.dev".into(), kind: NODE_CLASS_KIND.into(), name: "default".into() }
}

fn offering() -> OfferingId {
    builtin().offerings()[0].id.clone()
}

fn request(name: &str) -> LaunchRequest {
    let ranked = RankedOffering { offering: offering(), price: None, allocatable: ResourceList::new() };
    LaunchRequest {
        key: name.to_owned(),
        claim: name.to_owned(),
        node_class: class(),
        offerings: vec![ranked],
        together: 0,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        taints: Vec::new(),
        batch: None,
    }
}

impl Scene {
    /// Makes a cloud with an instance for each of these claims. Their nodes are ready.
    async fn with(claims: &[&str]) -> Self {
        let clock: SharedClock = Arc::new(TestClock::new());
        let now = clock.clone();
        let cloud = MemoryCloud::new(Arc::new(builtin()), class(), Arc::new(move || now.now()));
        let provider: Arc<dyn CloudProvider> = Arc::new(MemoryProvider::new(cloud.clone()));
        let providers = Providers::new(vec![provider.clone()]).expect("no two for one kind");
        let metrics = Metrics::new().expect("the metrics of a test");
        let events = Events::new(clock.clone(), metrics.clone()).0;
        let reader = Reader::new(FakeApi::default().client());
        let config = Config::new("me", "poolwright");
        let observers = ObserverContext::new(&config, reader, providers, events, metrics, clock);
        let interval = Duration::from_secs(30);
        let inventory = Inventory { observers, catalogue_interval: interval, list_interval: interval };
        let scene = Self { cloud, inventory };
        for name in claims {
            let instance = provider.launch(&request(name)).await.expect("an instance").instance;
            scene.claim(name, &instance.provider_id);
            scene.node(name, true);
        }
        scene
    }

    fn put(&self, claim: Claim) {
        self.inventory.observers.world.change(|state| state.index.apply_claim(claim));
    }

    fn claim(&self, name: &str, provider_id: &str) {
        let offering = poolwright_intake::offering_ref(&offering());
        let object = json!({
            "apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim",
            "metadata": {"name": name, "uid": name, "labels": {"poolwright.dev/nodepool": "gpu"},
                "creationTimestamp": self.inventory.observers.clock.now()},
            "spec": {"nodeClassRef": {"group": class().group, "kind": class().kind, "name": class().name},
                "offerings": [{"instanceType": offering.instance_type, "zone": offering.zone,
                    "capacityType": offering.capacity_type, "allocatable": {"cpu": "4"}}]},
            "status": {"providerID": provider_id, "offering": offering, "nodeName": name},
        });
        let object = serde_json::from_value(object).expect("a claim");
        self.put(poolwright_intake::node_claim(&object).expect("a claim"));
    }

    /// Makes claims say that their instances are being terminated.
    fn terminating(&self, claims: &[&str]) {
        self.record(claims, ConditionType::InstanceTerminating, Reason::Terminating);
    }

    /// Records a condition of claims as true.
    fn record(&self, claims: &[&str], kind: ConditionType, reason: Reason) {
        let ObserverContext { world, clock, .. } = &self.inventory.observers;
        for name in claims {
            let mut claim = Claim::clone(&world.claim(&ClaimName((*name).to_owned())).expect("the claim"));
            let condition = Condition {
                status: ConditionStatus::True,
                since: clock.now(),
                reason: Some(reason),
                message: String::new(),
            };
            claim.conditions.insert(kind, condition);
            self.put(claim);
        }
    }

    /// Makes the node of a claim ready or not ready.
    fn node(&self, name: &str, ready: bool) {
        let status = if ready { "True" } else { "False" };
        let object = json!({"metadata": {"name": name, "uid": name},
            "status": {"conditions": [{"type": "Ready", "status": status}]}});
        let object = serde_json::from_value(object).expect("a node");
        let node = poolwright_intake::node(&object).expect("a node");
        self.inventory.observers.world.change(|state| state.index.apply_node(node));
    }

    /// Lists long after the launches.
    async fn list(&self) -> Result<Vec<ListedInstance>, ProviderError> {
        self.list_after(&mut Earlier::default(), SignedDuration::from_hours(1)).await
    }

    /// Lists this long after the launches.
    async fn list_after(
        &self,
        earlier: &mut Earlier,
        age: SignedDuration,
    ) -> Result<Vec<ListedInstance>, ProviderError> {
        let at = self.inventory.observers.clock.now() + age;
        self.inventory.list(&self.inventory.observers.providers.all()[0], earlier, at).await
    }

    fn doubt(&self) -> Option<String> {
        self.inventory.observers.providers.all()[0].doubt()
    }
}

const THREE: [&str; 3] = ["a", "b", "c"];

#[tokio::test]
async fn an_instance_that_the_listing_lacks_and_the_cloud_finds_by_its_id_is_listed() {
    let scene = Scene::with(&["a"]).await;
    scene.cloud.retag("a", "");
    let listed = scene.list().await.expect("a listing");
    assert_eq!(listed.iter().map(|one| one.claim_uid.0.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(scene.doubt(), None);
    assert_eq!(scene.inventory.observers.metrics.instances_unlisted.get(), 1);
}

#[tokio::test]
async fn a_cloud_that_finds_nothing_is_doubted_while_the_nodes_are_ready_and_sells_nothing() {
    let scene = Scene::with(&THREE).await;
    assert_eq!(scene.list().await.expect("a listing").len(), 3);
    for name in THREE {
        scene.cloud.lose(name);
    }
    let Err(ProviderError::Invalid(why)) = scene.list().await else { panic!("the listing is believed") };
    assert!(why.contains("3 of 3 instances"), "{why}");
    assert_eq!(scene.doubt(), Some(why.clone()));
    assert!(matches!(scene.inventory.catalogue(&class()).await, Ok(Err(told)) if told == why));
    for name in THREE {
        scene.node(name, false);
    }
    assert_eq!(scene.list().await, Ok(Vec::new()));
    assert_eq!(scene.doubt(), None, "the cluster confirms it");
    assert!(matches!(scene.inventory.catalogue(&class()).await, Ok(Ok(_))));
}

#[tokio::test]
async fn a_doubt_outlasts_the_deletion_of_claims_until_their_nodes_are_not_ready() {
    let scene = Scene::with(&THREE).await;
    for name in THREE {
        scene.cloud.lose(name);
    }
    assert!(scene.list().await.is_err());
    scene.terminating(&THREE);
    assert!(scene.list().await.is_err());
    assert!(scene.doubt().is_some());
    for name in THREE {
        scene.node(name, false);
    }
    assert_eq!(scene.list().await, Ok(Vec::new()));
    assert_eq!(scene.doubt(), None);
}

#[tokio::test]
async fn a_cloud_that_terminated_instances_is_not_doubted_while_their_nodes_are_still_ready() {
    let scene = Scene::with(&THREE).await;
    scene.terminating(&THREE);
    for name in THREE {
        scene.cloud.lose(name);
    }
    assert_eq!(scene.list().await, Ok(Vec::new()));
    assert_eq!(scene.doubt(), None);
}

#[tokio::test]
async fn a_doubt_begins_although_a_later_look_up_fails() {
    let claims = ["a", "b", "c", "d", "e"];
    let scene = Scene::with(&claims).await;
    for name in claims {
        scene.cloud.lose(name);
    }
    scene.cloud.limit_look_ups(3);
    assert!(matches!(scene.list().await, Err(ProviderError::Invalid(_))));
    assert!(scene.doubt().is_some());
}

#[tokio::test]
async fn a_cloud_is_judged_from_its_first_listing_on() {
    for is_right in [true, false] {
        let scene = Scene::with(&THREE).await;
        let provider = &scene.inventory.observers.providers.all()[0];
        assert!(!provider.is_judged());
        for name in THREE.iter().filter(|_| !is_right) {
            scene.cloud.lose(name);
        }
        assert_eq!(scene.list().await.is_ok(), is_right);
        assert!(provider.is_judged());
    }
}

#[tokio::test]
async fn a_cloud_that_finds_nothing_is_believed_when_no_node_is_ready() {
    let scene = Scene::with(&THREE).await;
    for name in THREE {
        scene.cloud.lose(name);
    }
    for name in THREE {
        scene.node(name, false);
    }
    assert_eq!(scene.list().await, Ok(Vec::new()));
    assert_eq!(scene.doubt(), None);
}

#[tokio::test]
async fn a_cloud_that_announced_the_end_of_its_instances_is_believed_at_once() {
    let scene = Scene::with(&THREE).await;
    for name in THREE {
        let ObserverContext { world, clock, .. } = &scene.inventory.observers;
        let claim = world.claim(&ClaimName(name.to_owned())).expect("the claim");
        let (kind, message) = (InterruptionKind::Reclaim, String::new());
        let interruption = Some(Interruption { kind, noticed: clock.now(), deadline: None, message });
        scene.put(Claim { interruption, ..(*claim).clone() });
        scene.cloud.lose(name);
    }
    assert_eq!(scene.list().await, Ok(Vec::new()));
    assert_eq!(scene.doubt(), None);
}

#[tokio::test]
async fn a_small_cluster_that_loses_all_instances_is_doubted_and_one_that_loses_its_only_one_is_not() {
    for (claims, is_doubted) in [(&["a", "b"][..], true), (&["a"][..], false)] {
        let scene = Scene::with(claims).await;
        for name in claims {
            scene.cloud.lose(name);
        }
        assert_eq!(scene.list().await.is_err(), is_doubted, "{claims:?}");
        assert_eq!(scene.doubt().is_some(), is_doubted, "{claims:?}");
    }
}

#[tokio::test]
async fn a_single_instance_is_doubted_once_its_node_has_stayed_ready_for_longer_than_it_can_alone() {
    let scene = Scene::with(&["a"]).await;
    scene.cloud.lose("a");
    assert_eq!(scene.list().await, Ok(Vec::new()), "it may have ended moments ago");
    // The next listing is an hour later.
    scene.record(&["a"], ConditionType::InstanceUnlisted, Reason::InstanceUnlisted);
    let Err(ProviderError::Invalid(why)) = scene.list().await else { panic!("the listing is believed") };
    assert!(why.contains("1 of 1 instances"), "{why}");
    scene.terminating(&["a"]);
    assert!(scene.list().await.is_err(), "the doubt outlasts the deletion of its claim");
    scene.node("a", false);
    assert_eq!(scene.list().await, Ok(Vec::new()));
    assert_eq!(scene.doubt(), None);
}

#[tokio::test]
async fn an_instance_that_cannot_be_looked_up_counts_as_there_and_does_not_hold_up_the_others() {
    let scene = Scene::with(&THREE).await;
    scene.cloud.lose("a");
    scene.node("a", false);
    scene.cloud.retag("b", "");
    let listed = async || -> Vec<String> {
        let listed = scene.list().await.expect("a listing");
        let mut claims: Vec<_> = listed.into_iter().map(|one| one.claim_uid.0).collect();
        claims.sort();
        claims
    };
    scene.cloud.limit_look_ups(0);
    assert_eq!(listed().await, THREE);
    let failed = &scene.inventory.observers.metrics.provider_errors;
    assert_eq!(failed.with_label_values(&["memory", "get", "throttled"]).get(), 2);
    scene.cloud.limit_look_ups(2);
    assert_eq!(listed().await, ["b", "c"], "the next round looks again");
}

#[tokio::test]
async fn a_doubt_stays_while_instances_that_could_end_it_cannot_be_looked_up() {
    let scene = Scene::with(&THREE).await;
    for name in THREE {
        scene.cloud.lose(name);
    }
    assert!(scene.list().await.is_err());
    scene.cloud.limit_look_ups(0);
    assert!(matches!(scene.list().await, Err(ProviderError::Throttled(_))));
    assert!(scene.doubt().is_some());
}

fn gone(unconfirmed: usize, confirmed: usize, is_ready: bool) -> Vec<Absent> {
    let of = |is_unconfirmed| Absent {
        provider_id: "i-1".to_owned(),
        claim_uid: Uid("u".to_owned()),
        node_class: class(),
        is_unconfirmed,
        is_ready: is_ready && is_unconfirmed,
        is_new: false,
        runs_on: false,
    };
    (0..unconfirmed).map(|_| of(true)).chain((0..confirmed).map(|_| of(false))).collect()
}

#[test]
fn a_listing_without_most_instances_is_doubted_unless_the_cluster_confirms_it() {
    assert!(doubt(&gone(3, 0, true), 4).is_some());
    assert!(doubt(&gone(300, 0, true), 400).unwrap().contains("300 of 400 instances"));
    assert_eq!(doubt(&gone(0, 300, true), 400), None, "their nodes are not ready either");
    assert_eq!(doubt(&gone(3, 0, true), 6), None, "half of them may have been terminated by somebody");
    for few in [2, 3] {
        assert_eq!(
            doubt(&gone(few, 0, false), few),
            None,
            "{few} that never joined may have failed to start"
        );
    }
}
