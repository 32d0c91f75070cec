//! Haze: a cloud with one instance type, whose instances are entries of a map.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, CustomResourceExt, KubeSchema};
use poolwright_api::{FieldProblem, conditions_schema, strict};
use poolwright_catalog::{Arch, Catalogue, Gpu, read_csv};
use poolwright_provider_contract::market::{GpuFacts, Market, MarketReader, TypeFacts};
use poolwright_provider_contract::preflight::{CheckRequest, CheckResult, Preflight, Verdict};
use poolwright_provider_contract::{
    Clock, CloudProvider, ConditionOutcome, Connect, ConnectError, Connected, Flag, FlagValues, Instance,
    InstanceState, LaunchError, LaunchRequest, LaunchedInstance, MarketRegistration, NodeClass,
    NodeClassCondition, NodeClassFacts, NodeClassKind, NodeClassStatus, NodeClassStatusSource, ProviderError,
    Registration, Site, leaves_out_nothing, sells_all,
};
use poolwright_terms::{NodeClassRef, RegisteredReason, reasons};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub const REGISTRATION: Registration = Registration {
    name: "haze",
    short: "Haze",
    title: "Haze: a cloud of one type",
    node_class: NodeClass {
        kind: KIND,
        crd: HazeNodeClass::crd,
        patterns: &[],
        conditions: &[SKY_READY],
        read,
        sells: sells_all,
        leaves_out: leaves_out_nothing,
        adds: &[],
    },
    reasons: HazeReason::TABLE,
    flags: &[ACCOUNT],
    enabled_by: Some(ACCOUNT.name),
    connect: &Haze,
    preflight: Some(&Haze),
    market: Some(MarketRegistration { flags: &[SKY], reader: &Haze }),
    karpenter: None,
    examples: &[],
};

reasons! {
    /// Why a condition of a HazeNodeClass has its status.
    enum HazeReason;
    SkyClear: "The haze has room for nodes.", "Nothing.";
}

/// The type of the condition.
const SKY_READY: &str = "SkyReady";

const KIND: NodeClassKind = NodeClassKind { kind: "HazeNodeClass", plural: "hazenodeclasses" };

const ACCOUNT: Flag = Flag {
    name: "haze-account",
    value: Some("NAME"),
    env: None,
    requires: None,
    help: "Launch nodes on Haze, in this account",
    more: "",
    validate: None,
};

const SKY: Flag = Flag {
    name: "haze-sky",
    value: Some("NAME"),
    env: None,
    requires: Some("provider"),
    help: "With --provider haze: the part of the sky",
    more: "",
    validate: None,
};

/// Launches nodes in the haze.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "poolwright.dev",
    version = "v1alpha1",
    kind = "HazeNodeClass",
    plural = "hazenodeclasses",
    status = "HazeNodeClassStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct HazeNodeClassSpec {
    /// The density of the haze.
    pub density: i32,
}

/// What the provider found.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HazeNodeClassStatus {
    /// `Ready` and `SkyReady`.
    #[serde(default)]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}

fn read(object: &Value) -> Result<NodeClassFacts, Vec<FieldProblem>> {
    strict::read::<HazeNodeClass>(object)?;
    Ok(NodeClassFacts { provider: Some("haze".to_owned()), ..NodeClassFacts::default() })
}

fn sold() -> Catalogue {
    read_csv(&[("haze.csv", include_str!("haze.csv"))]).expect("a catalogue")
}

struct Haze;

#[async_trait]
impl Connect for Haze {
    async fn connect(&self, site: &Site) -> Result<Option<Connected>, ConnectError> {
        let provider = || Arc::new(Provider { now: Arc::clone(&site.clock), instances: Mutex::default() });
        Ok(site.flags.has(ACCOUNT.name).then(|| Connected { provider: provider(), background: None }))
    }
}

#[async_trait]
impl Preflight for Haze {
    fn missing_flag(&self, flags: &FlagValues) -> Option<String> {
        (!flags.has(ACCOUNT.name)).then(|| "--provider haze: give --haze-account".to_owned())
    }

    async fn run_checks(&self, request: CheckRequest) -> Vec<CheckResult> {
        let classes = format!("{} node class", request.node_classes.len());
        vec![CheckResult::new("Haze account", "node classes", Verdict::fine(classes))]
    }
}

#[async_trait]
impl MarketReader for Haze {
    async fn read(&self, flags: &FlagValues, _: Timestamp) -> Result<Market, ProviderError> {
        let catalogue = sold();
        let facts = TypeFacts {
            name: "haze-1".into(),
            arch: Some(Arch::Amd64),
            gpus: Some(GpuFacts {
                gpu: Gpu { model: "l4".into(), count: 1, memory_mib: None },
                logical_count: 1,
                share_thousandths: None,
                can_be_cut: false,
            }),
            fabric_interfaces: 0,
            local_nvme_gb: 0,
            vcpus: 4,
            memory_mib: 16384,
            is_spot: false,
            zones: catalogue.offerings().iter().map(|offering| offering.id.zone.clone()).collect(),
            left_out: None,
            note: "",
        };
        let sky = flags.get(SKY.name).unwrap_or("all of it");
        Ok(Market { types: vec![facts], catalogue, notes: vec![format!("the sky: {sky}")] })
    }
}

struct Provider {
    now: Clock,
    instances: Mutex<BTreeMap<String, Instance>>,
}

impl Provider {
    fn instances(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Instance>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl CloudProvider for Provider {
    fn name(&self) -> &'static str {
        "haze"
    }

    fn node_class_kinds(&self) -> &[NodeClassKind] {
        &[KIND]
    }

    async fn catalogue(&self, _: &NodeClassRef) -> Result<Arc<Catalogue>, ProviderError> {
        Ok(Arc::new(sold()))
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<LaunchedInstance, LaunchError> {
        let first = request.offerings.first().expect("an offering").offering.clone();
        let mut instances = self.instances();
        let instance = instances.entry(request.key.clone()).or_insert_with(|| Instance {
            provider_id: format!("haze://{}", request.claim),
            key: request.key.clone(),
            claim: request.claim.clone(),
            offering: first,
            node_class: request.node_class.clone(),
            launched: (self.now)(),
            state: InstanceState::Running,
        });
        Ok(LaunchedInstance { instance: instance.clone(), failed: Vec::new() })
    }

    async fn list(&self) -> Result<Vec<Instance>, ProviderError> {
        Ok(self.instances().values().cloned().collect())
    }

    async fn get(&self, provider_id: &str) -> Result<Option<Instance>, ProviderError> {
        Ok(self.instances().values().find(|one| one.provider_id == provider_id).cloned())
    }

    async fn terminate(&self, key: &str) -> Result<bool, ProviderError> {
        self.instances().remove(key);
        Ok(true)
    }

    fn node_class_status_source(&self) -> Option<&dyn NodeClassStatusSource> {
        Some(self)
    }
}

#[async_trait]
impl NodeClassStatusSource for Provider {
    async fn status(&self, _: &NodeClassRef) -> Result<Option<NodeClassStatus>, ProviderError> {
        let clear = NodeClassCondition {
            kind: SKY_READY,
            outcome: ConditionOutcome::True,
            reason: HazeReason::SkyClear.into(),
            message: "the sky is clear".to_owned(),
        };
        let (fields, conditions) = (BTreeMap::new(), vec![clear]);
        Ok(Some(NodeClassStatus { uid: None, generation: None, fields, conditions }))
    }

    fn reasons(&self) -> &'static [RegisteredReason] {
        HazeReason::TABLE
    }
}
