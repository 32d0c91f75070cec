//! Tests of several clouds in one controller, and of new instances that their cloud does not know yet.

use futures::FutureExt;

use super::*;

impl Scene {
    /// Makes a claim say that its node has not joined.
    fn not_joined(&self, name: &str) {
        let claim = self.inventory.observers.world.claim(&ClaimName(name.to_owned())).expect("the claim");
        self.put(Claim { node_name: None, ..(*claim).clone() });
    }

    /// Lists so many seconds after the launches. Returns how many instances count as there.
    async fn there_after(&self, earlier: &mut Earlier, seconds: i64) -> Result<usize, ProviderError> {
        self.list_after(earlier, SignedDuration::from_secs(seconds)).await.map(|listed| listed.len())
    }
}

#[tokio::test]
async fn a_cloud_that_cannot_be_listed_holds_up_no_other() {
    let scene = Scene::with(&["a"]).await;
    let broken = MemoryCloud::new(Arc::new(builtin()), class(), Arc::new(|| Timestamp::UNIX_EPOCH));
    broken.fail_listings(ProviderError::Transient("the connection was reset".to_owned()));
    let kind = NodeClassKind { kind: "OtherNodeClass", plural: "othernodeclasses" };
    let clouds: Vec<Arc<dyn CloudProvider>> = vec![
        Arc::new(MemoryProvider::of_kind(broken, kind)),
        Arc::new(MemoryProvider::new(scene.cloud.clone())),
    ];
    let providers = Providers::new(clouds).expect("no two for one kind");
    let observers = ObserverContext { providers, ..scene.inventory.observers.clone() };
    let inventory = Inventory { observers, ..scene.inventory.clone() };
    assert_eq!(inventory.list_clouds().now_or_never(), None, "it goes on for ever");

    let ObserverContext { world, providers, metrics, .. } = &inventory.observers;
    let began = |kind: &str| world.view(|all| all.instances.as_ref().and_then(|all| all.listed_at(kind)));
    assert!(began(NODE_CLASS_KIND).is_some());
    assert_eq!(began("OtherNodeClass"), None);
    let judged: Vec<bool> = providers.all().iter().map(Cloud::is_judged).collect();
    assert_eq!(judged, [false, true]);
    let failed = metrics.provider_errors.with_label_values(&["memory", "list", "transient"]).get();
    assert_eq!(failed, 1);
}

#[tokio::test]
async fn a_new_instance_that_its_cloud_does_not_know_is_gone_after_two_searches_some_time_apart() {
    let scene = Scene::with(&["a"]).await;
    scene.not_joined("a");
    scene.cloud.set_hidden(&["a"]);
    let mut earlier = Earlier::default();
    for (seconds, there) in [(40, 1), (50, 1), (60, 0)] {
        assert_eq!(scene.there_after(&mut earlier, seconds).await, Ok(there), "{seconds} s after its launch");
    }
    let old = scene.there_after(&mut Earlier::default(), 301).await;
    assert_eq!(old, Ok(0), "no cloud takes that long to show it");
}

#[tokio::test]
async fn searches_for_a_new_instance_count_from_the_last_time_that_its_cloud_showed_it() {
    let scene = Scene::with(&["a"]).await;
    scene.not_joined("a");
    let mut earlier = Earlier::default();
    for (seconds, hidden, there) in
        [(40, &["a"][..], 1), (50, &[][..], 1), (65, &["a"][..], 1), (85, &["a"][..], 0)]
    {
        scene.cloud.set_hidden(hidden);
        assert_eq!(scene.there_after(&mut earlier, seconds).await, Ok(there), "{seconds} s after its launch");
    }
}

#[tokio::test]
async fn a_new_instance_that_its_cloud_does_not_know_does_not_prove_that_a_listing_is_right() {
    let scene = Scene::with(&THREE).await;
    scene.not_joined("b");
    scene.node("c", false);
    for name in THREE {
        scene.cloud.lose(name);
    }
    let mut earlier = Earlier::default();
    let answer = scene.there_after(&mut earlier, 40).await;
    assert!(matches!(answer, Err(ProviderError::Transient(_))), "the node of a is ready: {answer:?}");
    assert_eq!(scene.there_after(&mut earlier, 60).await, Ok(0));
}
