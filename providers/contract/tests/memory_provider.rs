//! Tests the suite on the cloud in memory, and on clouds that each break one promise: a suite that passes everything would prove
//! nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{
    Arch, Catalogue, CatalogueOrigin, Gpu, InstanceType, Offering, OfferingId, Price, Quote, RankedOffering,
    ResourceList, ResourceName, UsdPerHour,
};
use poolwright_provider_contract::conformance::{Failure, Fixture, NodeView, Report, World, run_all};
use poolwright_provider_contract::memory::{InjectedFailure, MemoryCloud, MemoryProvider, NODE_CLASS_KIND};
use poolwright_provider_contract::{
    Clock, CloudProvider, Instance, InstanceState, Interruption, InterruptionMessage, LaunchError,
    LaunchRequest, LaunchedInstance, NodeClassKind, ProviderError, instance_of,
};
use poolwright_terms::{CapacityType, InterruptionKind, NodeClassRef};

/// Creates a provider of a cloud. The second argument is the number of providers that were created for this cloud before.
type Connect = fn(Arc<MemoryCloud>, u64) -> Arc<dyn CloudProvider>;

struct InMemory {
    connect: Connect,
}

struct InMemoryWorld {
    cloud: Arc<MemoryCloud>,
    connect: Connect,
    connected: AtomicU64,
}

#[async_trait(?Send)]
impl Fixture for InMemory {
    async fn world(&self, _case: &'static str) -> Result<Box<dyn World>, Failure> {
        Ok(Box::new(InMemoryWorld { cloud: cloud(), connect: self.connect, connected: AtomicU64::new(0) }))
    }
}

#[async_trait(?Send)]
impl World for InMemoryWorld {
    async fn provider(&self) -> Result<Arc<dyn CloudProvider>, Failure> {
        let before = self.connected.fetch_add(1, Ordering::Relaxed);
        Ok((self.connect)(Arc::clone(&self.cloud), before))
    }

    fn node_class(&self) -> NodeClassRef {
        class()
    }

    fn prefix(&self) -> String {
        "memory".to_owned()
    }

    async fn set_stock_outs(&self, offerings: &[OfferingId]) -> Result<(), Failure> {
        self.cloud.set_stock_outs(offerings.iter().cloned());
        Ok(())
    }

    async fn node(&self, _instance: &Instance) -> Result<NodeView, Failure> {
        Ok(NodeView::NotVisible)
    }

    async fn hold(&self, instance: &Instance, held: bool) -> Result<bool, Failure> {
        self.cloud.hold(&instance.key, held);
        Ok(true)
    }

    async fn interrupt(&self, instance: &Instance) -> Result<bool, Failure> {
        let deadline = instance.launched.checked_add(SignedDuration::from_mins(2)).ok();
        let interruptions = vec![Interruption {
            instance: instance_of(&instance.provider_id).to_owned(),
            kind: InterruptionKind::Reclaim,
            noticed: instance.launched,
            deadline,
            message: "spot capacity is taken back".to_owned(),
        }];
        self.cloud.notify(InterruptionMessage { receipt: None, interruptions });
        Ok(true)
    }

    async fn redeliver(&self) -> Result<(), Failure> {
        self.cloud.redeliver();
        Ok(())
    }

    async fn pause(&self) {}
}

fn class() -> NodeClassRef {
    NodeClassRef { group: "poolwright.dev".into(), kind: NODE_CLASS_KIND.into(), name: "default".into() }
}

fn clock() -> Clock {
    let seconds = AtomicI64::new(1_790_000_000);
    Arc::new(move || {
        Timestamp::from_second(seconds.fetch_add(1, Ordering::Relaxed)).expect("a time within jiff's range")
    })
}

fn cloud() -> Arc<MemoryCloud> {
    let kind = |name: &str, gpus: u32| InstanceType {
        name: name.into(),
        provider: "aws".into(),
        arch: Arch::Amd64,
        allocatable: ResourceList::new()
            .with(ResourceName::CPU, 3920)
            .with(ResourceName::NVIDIA_GPU, u64::from(gpus)),
        gpu: (gpus > 0).then(|| Gpu { model: "a10g".into(), count: gpus, memory_mib: None }),
    };
    let offering = |name: &str, zone: &str, micros| Offering {
        id: OfferingId {
            instance_type: name.into(),
            zone: zone.into(),
            capacity_type: CapacityType::OnDemand,
        },
        region: None,
        price: Price::Known(Quote {
            usd_per_hour: UsdPerHour::from_micros(micros),
            source: "a test".into(),
            as_of: None,
        }),
        available: None,
        interruptions: None,
        notice: None,
    };
    let catalogue = Catalogue::new(
        CatalogueOrigin { source: "a test".to_owned(), as_of: None },
        vec![kind("m5.xlarge", 0), kind("g5.xlarge", 1)],
        vec![
            offering("m5.xlarge", "b", 192_000),
            offering("g5.xlarge", "b", 1_006_000),
            offering("g5.xlarge", "a", 1_006_000),
        ],
    );
    MemoryCloud::new(Arc::new(catalogue), class(), clock())
}

fn request(cloud: &MemoryProvider, catalogue: &Catalogue) -> LaunchRequest {
    assert_eq!(cloud.name(), "memory");
    let offering = &catalogue.offerings()[0];
    LaunchRequest {
        key: "uid-1".to_owned(),
        claim: "gpu-1".to_owned(),
        node_class: class(),
        offerings: vec![RankedOffering {
            offering: offering.id.clone(),
            price: offering.price.known(),
            allocatable: catalogue.types()[&offering.id.instance_type].allocatable.clone(),
        }],
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        taints: Vec::new(),
        together: 0,
        batch: None,
    }
}

async fn suite(connect: Connect) -> Report {
    let report = run_all(&InMemory { connect }).await;
    println!("{report}");
    report
}

#[tokio::test]
async fn the_cloud_in_memory_passes_the_suite() {
    let report = suite(|cloud, _| Arc::new(MemoryProvider::new(cloud))).await;
    assert!(report.passed(), "{report}");
}

#[tokio::test]
async fn a_launch_with_a_lost_response_is_found_by_its_key() {
    let cloud = cloud();
    let provider = MemoryProvider::new(Arc::clone(&cloud));
    let catalogue = provider.catalogue(&class()).await.expect("the class exists");
    let request = request(&provider, &catalogue);
    cloud.inject_failure(InjectedFailure::Fails(ProviderError::Throttled("slow down".to_owned())));
    cloud.inject_failure(InjectedFailure::AnswerLost);
    let throttled = provider.launch(&request).await;
    assert!(matches!(throttled, Err(LaunchError::Provider(ProviderError::Throttled(_)))), "{throttled:?}");
    assert_eq!(cloud.ever_made(), 0);
    let lost = provider.launch(&request).await;
    assert!(matches!(lost, Err(LaunchError::Provider(ProviderError::Transient(_)))), "{lost:?}");
    provider.launch(&request).await.expect("the third attempt finds what the second made");
    assert_eq!(cloud.ever_made(), 1);
    assert_eq!(cloud.request("uid-1").as_ref(), Some(&request));
}

#[tokio::test]
async fn an_instance_can_be_lost_and_a_quota_reached() {
    let cloud = cloud();
    let provider = MemoryProvider::new(Arc::clone(&cloud));
    let catalogue = provider.catalogue(&class()).await.expect("the class exists");
    let request = request(&provider, &catalogue);
    provider.launch(&request).await.expect("nothing is in the way");
    cloud.lose(&request.key);
    assert!(provider.list().await.expect("the cloud answers").is_empty());
    cloud.set_over_quota([request.offerings[0].offering.clone()]);
    let refused = provider.launch(&LaunchRequest { key: "uid-2".to_owned(), ..request }).await;
    let Err(LaunchError::AllFailed(failed)) = refused else { panic!("{refused:?}") };
    assert!(matches!(failed[0].error, LaunchError::Quota(_)), "{failed:?}");
}

/// The promise that a broken cloud breaks.
#[derive(Clone, Copy, PartialEq)]
enum Breaks {
    Acknowledge,
    KeyAcrossRestart,
    NoticesComeOnce,
    OrderOfList,
    ReportOfStockOut,
    Terminate,
    TerminatingState,
    UnknownClass,
}

struct Broken {
    inner: MemoryProvider,
    breaks: Breaks,
    restarts: u64,
    terminated: Mutex<Vec<String>>,
}

#[async_trait]
impl CloudProvider for Broken {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn node_class_kinds(&self) -> &[NodeClassKind] {
        self.inner.node_class_kinds()
    }

    async fn catalogue(&self, class: &NodeClassRef) -> Result<Arc<Catalogue>, ProviderError> {
        let answer = self.inner.catalogue(class).await;
        match self.breaks {
            Breaks::UnknownClass => answer.map_err(|_| ProviderError::Invalid("not found".to_owned())),
            _ => answer,
        }
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<LaunchedInstance, LaunchError> {
        let mut request = request.clone();
        if self.breaks == Breaks::KeyAcrossRestart {
            request.key = format!("{}-{}", request.key, self.restarts);
        }
        let mut launched = self.inner.launch(&request).await?;
        if self.breaks == Breaks::ReportOfStockOut {
            launched.failed.clear();
        }
        Ok(launched)
    }

    async fn list(&self) -> Result<Vec<Instance>, ProviderError> {
        let mut all = self.inner.list().await?;
        match self.breaks {
            Breaks::OrderOfList => all.sort_by(|a, b| a.key.cmp(&b.key)),
            Breaks::TerminatingState => all.iter_mut().for_each(|one| one.state = InstanceState::Running),
            _ => {}
        }
        Ok(all)
    }

    async fn get(&self, provider_id: &str) -> Result<Option<Instance>, ProviderError> {
        self.inner.get(provider_id).await
    }

    async fn terminate(&self, key: &str) -> Result<bool, ProviderError> {
        if self.breaks == Breaks::Terminate {
            // The first call for a key reports that the instance is gone, and does nothing.
            let mut terminated = self.terminated.lock().expect("no test panics while it holds this");
            if !terminated.iter().any(|one| one == key) {
                terminated.push(key.to_owned());
                return Ok(true);
            }
        }
        self.inner.terminate(key).await
    }

    async fn interruptions(&self) -> Result<Vec<InterruptionMessage>, ProviderError> {
        let all = self.inner.interruptions().await?;
        if self.breaks == Breaks::NoticesComeOnce {
            let receipts: Vec<String> = all.iter().filter_map(|one| one.receipt.clone()).collect();
            self.inner.acknowledge(&receipts).await?;
        }
        Ok(all)
    }

    async fn acknowledge(&self, receipts: &[String]) -> Result<(), ProviderError> {
        if self.breaks == Breaks::Acknowledge { Ok(()) } else { self.inner.acknowledge(receipts).await }
    }
}

fn broken(cloud: Arc<MemoryCloud>, restarts: u64, breaks: Breaks) -> Arc<dyn CloudProvider> {
    let inner = MemoryProvider::new(cloud);
    Arc::new(Broken { inner, breaks, restarts, terminated: Mutex::new(Vec::new()) })
}

#[tokio::test]
async fn a_broken_promise_fails_the_case_about_it() {
    let expectations: [(Connect, &str); 8] = [
        (|c, n| broken(c, n, Breaks::Acknowledge), "an_acknowledged_message_is_not_redelivered"),
        (
            |c, n| broken(c, n, Breaks::NoticesComeOnce),
            "an_unacknowledged_message_is_redelivered_also_after_a_restart",
        ),
        (|c, n| broken(c, n, Breaks::KeyAcrossRestart), "a_key_is_remembered_across_a_restart"),
        (|c, n| broken(c, n, Breaks::OrderOfList), "the_list_is_in_order_of_provider_ids"),
        (|c, n| broken(c, n, Breaks::ReportOfStockOut), "a_stock_out_gets_the_next_offering_and_is_reported"),
        (|c, n| broken(c, n, Breaks::Terminate), "a_terminated_instance_is_gone_with_its_node"),
        (
            |c, n| broken(c, n, Breaks::TerminatingState),
            "a_terminating_instance_is_listed_as_such_and_its_key_cannot_be_launched",
        ),
        (|c, n| broken(c, n, Breaks::UnknownClass), "an_unknown_node_class_is_invalid_and_says_what_to_do"),
    ];
    for (connect, case) in expectations {
        let failed = suite(connect).await.failed();
        assert!(failed.contains(&case), "{case} is not among {failed:?}");
    }
}
