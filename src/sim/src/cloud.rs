//! The cloud behind the provider trait: what it sells, which instances run, and what goes wrong with them.
//!
//! The cloud ([`Cloud`]) outlives those who call it ([`CloudOf`]), as a real one does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use poolwright_catalog::{Catalogue, OfferingId, ResourceName, UsdPerHour};
use poolwright_provider_contract::{
    CloudProvider, FailedOffering, Instance, InstanceState, LaunchError, LaunchRequest, LaunchedInstance,
    NodeClassKey, ProviderError,
};
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep;

use crate::accidents::{Accidents, Site, one_of, span};
use crate::dice::Dice;
use crate::record::Record;
use crate::run::Sabotage;
use crate::time::Time;
use crate::wire::Process;

/// The kind of node class that it launches with.
pub const NODE_CLASS_KIND: &str = "KwokNodeClass";

/// How long an offering stays out of stock.
const STOCK_OUT: (u64, u64) = (60_000, 900_000);
/// From an order to a node that joins.
const JOINS: (u64, u64) = (20_000, 150_000);
/// From a termination to an instance that is gone.
const GOES: (u64, u64) = (2_000, 45_000);
/// From a launch to a list that shows it, where it does not at once.
const UNLISTED: (u64, u64) = (5_000, 40_000);

/// A machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// As it is listed.
    pub instance: Instance,
    /// What its node carries.
    pub request: LaunchRequest,
    /// What it costs.
    pub price: Option<UsdPerHour>,
    /// When its node joins; `None` when it never does.
    pub joins: Option<Duration>,
    /// GPUs that its node does not have.
    pub lacks: u64,
    /// When it dies by itself.
    pub dies: Option<Duration>,
    /// Not listed before this.
    listed_from: Duration,
    /// When it was launched.
    pub launched: Duration,
    /// When it is gone, once it was terminated.
    pub gone: Option<Duration>,
}

/// What happened in the cloud that the rest of the world feels.
#[derive(Clone, Debug)]
pub enum CloudEvent {
    /// An instance was launched.
    Launched(Box<Machine>),
    /// An instance was told to go, or has died.
    Terminated {
        /// Its id.
        provider_id: String,
    },
}

/// The cloud.
pub struct Cloud {
    catalogue: Arc<Catalogue>,
    time: Time,
    accidents: Accidents,
    record: Record,
    seed: u64,
    calls: AtomicU64,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// By idempotency key. What is gone stays: a key is never used twice.
    machines: BTreeMap<String, Machine>,
    /// Offerings that are out of stock, until then.
    empty: BTreeMap<OfferingId, Duration>,
    events: Vec<CloudEvent>,
    serial: u64,
    version: u64,
}

impl Cloud {
    /// A cloud that sells this.
    pub fn new(
        catalogue: Arc<Catalogue>,
        time: Time,
        accidents: Accidents,
        record: Record,
        seed: u64,
    ) -> Arc<Self> {
        let (calls, state, changed) = (AtomicU64::new(0), Mutex::default(), Notify::new());
        Arc::new(Self { catalogue, time, accidents, record, seed, calls, state, changed })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happened since the last time.
    pub fn events(&self) -> Vec<CloudEvent> {
        std::mem::take(&mut self.lock().events)
    }

    /// Returns when something happened.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// How often something has changed here.
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// Every machine that is not gone, by key.
    pub fn machines(&self) -> Vec<(String, Machine)> {
        let now = self.time.elapsed();
        let all = self.lock();
        let there = all.machines.iter().filter(|(_, one)| one.gone.is_none_or(|gone| gone > now));
        there.map(|(key, one)| (key.clone(), one.clone())).collect()
    }

    /// Whether this instance runs.
    pub fn is_running(&self, provider_id: &str) -> bool {
        self.lock().machines.values().any(|one| one.instance.provider_id == provider_id && one.gone.is_none())
    }

    /// The machine of this key, while it runs.
    pub fn running(&self, key: &str) -> Option<Machine> {
        self.lock().machines.get(key).filter(|one| one.gone.is_none()).cloned()
    }

    /// Labels that the node of this offering carries.
    pub fn labels_of(&self, offering: &OfferingId) -> BTreeMap<String, String> {
        self.catalogue.offering(offering).map(|found| self.catalogue.node_labels(found)).unwrap_or_default()
    }

    /// When an instance that was told to go is gone.
    pub fn gone_at(&self, provider_id: &str) -> Option<Duration> {
        let state = self.lock();
        state.machines.values().find(|one| one.instance.provider_id == provider_id)?.gone
    }

    /// An instance dies by itself.
    pub fn die(&self, provider_id: &str) {
        let now = self.time.elapsed();
        let mut state = self.lock();
        let found = state.machines.values_mut().find(|one| one.instance.provider_id == provider_id);
        let Some(machine) = found.filter(|one| one.gone.is_none()) else { return };
        machine.gone = Some(now);
        machine.instance.state = InstanceState::Terminating;
        state.version += 1;
        state.events.push(CloudEvent::Terminated { provider_id: provider_id.to_owned() });
        drop(state);
        self.record.say(format_args!("cloud {provider_id} dies"));
        self.changed.notify_one();
    }

    fn launch(&self, request: &LaunchRequest) -> Result<LaunchedInstance, LaunchError> {
        let now = self.time.elapsed();
        let mut state = self.lock();
        if let Some(machine) = state.machines.get(&request.key) {
            if machine.instance.state == InstanceState::Terminating {
                let message = format!("the instance of key {} is terminating", request.key);
                return Err(ProviderError::Invalid(message).into());
            }
            return Ok(LaunchedInstance { instance: machine.instance.clone(), failed: Vec::new() });
        }
        state.empty.retain(|_, until| *until > now);
        let mut failed = Vec::new();
        for ranked in &request.offerings {
            let id = &ranked.offering;
            let Some(offering) = self.catalogue.offering(id) else {
                return Err(ProviderError::Invalid(format!("{id} is not sold")).into());
            };
            let runs_out = self.accidents.at(Site::Stock, |rates, dice| {
                dice.per_mille(rates.stock_out).then(|| span(dice, STOCK_OUT.0, STOCK_OUT.1))
            });
            if let Some(length) = runs_out {
                state.empty.insert(id.clone(), now + length);
            }
            if state.empty.contains_key(id) {
                let error = LaunchError::StockOut("none left in this zone".to_owned());
                failed.push(FailedOffering { offering: id.clone(), error });
                continue;
            }
            state.serial += 1;
            let mut dice = Dice::nth(self.seed, "machine", state.serial);
            let flaw = self.accidents.at(Site::Instance, |rates, dice| {
                let flaw = one_of(
                    dice,
                    &[(rates.never_joins, 0), (rates.lacks_gpu, 1), (rates.dies, 2), (rates.unlisted, 3)],
                )?;
                Some((flaw, span(dice, 30_000, 1_200_000), span(dice, UNLISTED.0, UNLISTED.1)))
            });
            let is = |kind: u8| flaw.filter(|(flaw, ..)| *flaw == kind);
            let instance = Instance {
                provider_id: format!("sim://{}/i-{:05}", id.zone, state.serial),
                key: request.key.clone(),
                claim: request.claim.clone(),
                offering: id.clone(),
                node_class: request.node_class.clone(),
                launched: self.time.now(),
                state: InstanceState::Running,
            };
            let gpus = ranked.allocatable.get(ResourceName::NVIDIA_GPU);
            let machine = Machine {
                instance: instance.clone(),
                request: LaunchRequest { offerings: vec![ranked.clone()], ..request.clone() },
                price: offering.price.known(),
                joins: is(0).is_none().then(|| now + span(&mut dice, JOINS.0, JOINS.1)),
                lacks: u64::from(is(1).is_some()).min(gpus),
                dies: is(2).map(|(_, after, _)| now + after),
                listed_from: is(3).map_or(now, |(.., after)| now + after),
                launched: now,
                gone: None,
            };
            let price = machine.price.map_or_else(|| "unknown".to_owned(), |price| price.to_string());
            self.record.say(format_args!(
                "cloud launches {} as {id} at {price} $/h for {}",
                instance.provider_id, request.claim
            ));
            state.version += 1;
            state.events.push(CloudEvent::Launched(Box::new(machine.clone())));
            state.machines.insert(request.key.clone(), machine);
            drop(state);
            self.changed.notify_one();
            return Ok(LaunchedInstance { instance, failed });
        }
        Err(LaunchError::AllFailed(failed))
    }

    fn terminate(&self, key: &str) -> bool {
        let now = self.time.elapsed();
        let mut state = self.lock();
        let Some(machine) = state.machines.get_mut(key) else { return true };
        if let Some(gone) = machine.gone {
            return gone <= now;
        }
        let serial = self.calls.fetch_add(1, Ordering::Relaxed);
        machine.gone = Some(now + span(&mut Dice::nth(self.seed, "goes", serial), GOES.0, GOES.1));
        machine.instance.state = InstanceState::Terminating;
        let provider_id = machine.instance.provider_id.clone();
        self.record.say(format_args!("cloud terminates {provider_id}"));
        state.version += 1;
        state.events.push(CloudEvent::Terminated { provider_id });
        drop(state);
        self.changed.notify_one();
        false
    }

    fn listed(&self) -> Vec<Instance> {
        let now = self.time.elapsed();
        let mut listed: Vec<Instance> = self
            .machines()
            .into_iter()
            .filter(|(_, one)| one.listed_from <= now)
            .map(|(_, one)| one.instance)
            .collect();
        listed.sort_by(|one, other| one.provider_id.cmp(&other.provider_id));
        listed
    }

    fn find(&self, provider_id: &str) -> Option<Instance> {
        let found = self.machines().into_iter().find(|(_, one)| one.instance.provider_id == provider_id);
        found.map(|(_, one)| one.instance)
    }
}

/// The cloud as one process calls it.
pub struct CloudOf {
    /// The cloud.
    pub cloud: Arc<Cloud>,
    /// Who calls.
    pub process: Arc<Process>,
    /// What is wrong with who calls.
    pub sabotage: Option<Sabotage>,
}

#[derive(Clone, Copy)]
enum Fate {
    Throttled,
    Fails,
    AnswerLost,
    Swallowed,
}

impl CloudOf {
    /// Makes a call, with whatever goes wrong. It goes on when the caller is gone.
    async fn call<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Cloud) -> T + Send + 'static,
    ) -> Result<T, ProviderError> {
        if !self.process.is_heard() {
            return std::future::pending().await;
        }
        let cloud = self.cloud.clone();
        let number = cloud.calls.fetch_add(1, Ordering::Relaxed);
        let mut dice = Dice::nth(cloud.seed, "cloud", number);
        let (way, takes) = (span(&mut dice, 5, 40), span(&mut dice, 50, 1_500));
        let fate = cloud.accidents.at(Site::Cloud, |rates, dice| {
            let fails = if dice.per_mille(500) { Fate::Throttled } else { Fate::Fails };
            one_of(
                dice,
                &[
                    (rates.cloud_fails, fails),
                    (rates.cloud_answer_lost, Fate::AnswerLost),
                    (rates.cloud_swallowed, Fate::Swallowed),
                ],
            )
        });
        let (answer, answered) = oneshot::channel();
        if let Some(Fate::Swallowed) = fate {
            let Process { identity, incarnation, .. } = &*self.process;
            cloud.record.say(format_args!("{identity}.{incarnation} cloud {what} is swallowed"));
            return std::future::pending().await;
        }
        let process = self.process.clone();
        tokio::spawn(async move {
            sleep(way).await;
            let done = match fate {
                Some(Fate::Throttled) => Err(ProviderError::Throttled("too many requests".to_owned())),
                Some(Fate::Fails) => Err(ProviderError::Transient("internal error".to_owned())),
                Some(Fate::AnswerLost) => {
                    work(&cloud);
                    Err(ProviderError::Transient("connection reset by peer".to_owned()))
                }
                None | Some(Fate::Swallowed) => Ok(work(&cloud)),
            };
            if let Err(error) = &done {
                cloud.record.say(format_args!(
                    "{}.{} cloud {what} -> {error} !",
                    process.identity, process.incarnation
                ));
            }
            sleep(takes).await;
            if process.is_heard() {
                let _ = answer.send(done);
            } else {
                let mut answer = answer;
                answer.closed().await;
            }
        });
        answered.await.unwrap_or_else(|_| Err(ProviderError::Transient("no answer".to_owned())))
    }
}

#[async_trait]
impl CloudProvider for CloudOf {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn node_class_kinds(&self) -> &'static [&'static str] {
        &[NODE_CLASS_KIND]
    }

    async fn catalogue(&self, _: &NodeClassKey) -> Result<Arc<Catalogue>, ProviderError> {
        self.call("catalogue", |cloud| cloud.catalogue.clone()).await
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<LaunchedInstance, LaunchError> {
        let mut request = request.clone();
        if self.sabotage == Some(Sabotage::KeysChange) {
            let call = self.cloud.calls.load(Ordering::Relaxed);
            request.key = format!("{}/{call}", request.key);
        }
        self.call("launch", move |cloud| cloud.launch(&request)).await?
    }

    async fn list(&self) -> Result<Vec<Instance>, ProviderError> {
        self.call("list", Cloud::listed).await
    }

    async fn get(&self, provider_id: &str) -> Result<Option<Instance>, ProviderError> {
        let id = provider_id.to_owned();
        self.call("get", move |cloud| cloud.find(&id)).await
    }

    async fn terminate(&self, key: &str) -> Result<bool, ProviderError> {
        let key = key.to_owned();
        if self.sabotage == Some(Sabotage::NothingTerminates) {
            return self.call("terminate", |_| false).await;
        }
        self.call("terminate", move |cloud| cloud.terminate(&key)).await
    }
}
