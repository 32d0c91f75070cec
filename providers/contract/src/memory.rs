//! An in-memory cloud for tests. It keeps all promises of [`CloudProvider`] and lets a test inject failures. It creates no Node
//! objects.
//!
//! The cloud ([`MemoryCloud`]) outlives its clients ([`MemoryProvider`]). To simulate a restart, a test drops the provider and
//! makes a new one for the same cloud.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use async_trait::async_trait;
use poolwright_catalog::{Catalogue, OfferingId};
use poolwright_terms::NodeClassRef;

use crate::{
    Clock, CloudProvider, FailedOffering, Instance, InstanceState, InterruptionMessage, LaunchError,
    LaunchRequest, LaunchedInstance, NodeClassKind, ProviderError,
};

/// The kind of its node class.
pub const NODE_CLASS_KIND: &str = "MemoryNodeClass";

/// A failure of one call of [`CloudProvider::launch`] that a test injects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InjectedFailure {
    /// The call fails and has no effect.
    Fails(ProviderError),
    /// The call takes effect, but the caller gets a transient error.
    AnswerLost,
    /// The provider's code panics, and the call has no effect.
    Panics,
}

/// The cloud. It keeps its state across restarts of its clients.
pub struct MemoryCloud {
    catalogue: Arc<Catalogue>,
    now: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    classes: BTreeSet<NodeClassRef>,
    /// Instances by key. Instances that are gone are not here; their keys are in `used`.
    instances: BTreeMap<String, Instance>,
    requests: BTreeMap<String, LaunchRequest>,
    used: BTreeSet<String>,
    held: BTreeSet<String>,
    hidden: BTreeSet<String>,
    /// Why listings fail.
    unlistable: Option<ProviderError>,
    out_of_stock: BTreeSet<OfferingId>,
    over_quota: BTreeSet<OfferingId>,
    injected: VecDeque<InjectedFailure>,
    /// How many look-ups by id still succeed; `None` if all do.
    look_ups: Option<usize>,
    serial: u64,
    /// Unacknowledged messages by receipt.
    pending: BTreeMap<String, InterruptionMessage>,
    /// Receipts of messages that were delivered.
    delivered: BTreeSet<String>,
    notices: u64,
    /// Errors of background polling.
    failures: Vec<ProviderError>,
    /// The number of unreadable messages.
    unreadable: u64,
    listeners: Vec<Waker>,
}

impl MemoryCloud {
    /// Makes the background polling report an error.
    pub fn fail_poll(&self, error: ProviderError) {
        self.lock().failures.push(error);
    }

    /// Sends a message that cannot be parsed.
    pub fn send_unreadable(&self) {
        self.lock().unreadable += 1;
    }

    /// Makes a cloud that sells `catalogue` with the node class `class`.
    pub fn new(catalogue: Arc<Catalogue>, class: NodeClassRef, now: Clock) -> Arc<Self> {
        let state = State { classes: BTreeSet::from([class]), ..State::default() };
        Arc::new(Self { catalogue, now, state: Mutex::new(state) })
    }

    /// Adds a node class.
    pub fn add_class(&self, class: NodeClassRef) {
        self.lock().classes.insert(class);
    }

    /// Sets the offerings that are out of stock. The other offerings are in stock.
    pub fn set_stock_outs(&self, offerings: impl IntoIterator<Item = OfferingId>) {
        self.lock().out_of_stock = offerings.into_iter().collect();
    }

    /// Sets the offerings that exceed the quota. The quota allows the other offerings.
    pub fn set_over_quota(&self, offerings: impl IntoIterator<Item = OfferingId>) {
        self.lock().over_quota = offerings.into_iter().collect();
    }

    /// Makes the next launch fail. Several injected failures apply to consecutive launches.
    pub fn inject_failure(&self, failure: InjectedFailure) {
        self.lock().injected.push_back(failure);
    }

    /// Makes look-ups by id fail after this many.
    pub fn limit_look_ups(&self, most: usize) {
        self.lock().look_ups = Some(most);
    }

    /// Makes listings fail with this error.
    pub fn fail_listings(&self, error: ProviderError) {
        self.lock().unlistable = Some(error);
    }

    /// Hides the instances with these keys from clients, and shows the others. A real cloud may show a new one late.
    pub fn set_hidden(&self, keys: &[&str]) {
        self.lock().hidden = keys.iter().map(|key| (*key).to_owned()).collect();
    }

    /// Holds the instance with this key in the state [`InstanceState::Terminating`] after it is terminated, or stops holding it.
    pub fn hold(&self, key: &str, held: bool) {
        let mut state = self.lock();
        if held {
            state.held.insert(key.to_owned());
        } else {
            state.held.remove(key);
        }
    }

    /// Removes the instance with this key without a request, as a spot interruption or a person at the console does.
    pub fn lose(&self, key: &str) {
        self.lock().instances.remove(key);
    }

    /// Changes the key of an instance, as a person does who changes its tags. An instance with an empty key has no tags and is not
    /// listed.
    pub fn retag(&self, key: &str, new: &str) {
        let mut state = self.lock();
        if let Some(instance) = state.instances.remove(key) {
            state.instances.insert(new.to_owned(), Instance { key: new.to_owned(), ..instance });
        }
    }

    /// Sends a message and returns its new receipt.
    pub fn notify(&self, notice: InterruptionMessage) -> String {
        let mut state = self.lock();
        state.notices += 1;
        let receipt = format!("receipt-{:08}", state.notices);
        state
            .pending
            .insert(receipt.clone(), InterruptionMessage { receipt: Some(receipt.clone()), ..notice });
        wake(&mut state);
        receipt
    }

    /// Redelivers all unacknowledged messages, as a queue does after its visibility timeout.
    pub fn redeliver(&self) {
        let mut state = self.lock();
        state.delivered.clear();
        wake(&mut state);
    }

    /// Returns the receipts of all unacknowledged messages.
    pub fn unacknowledged(&self) -> Vec<String> {
        self.lock().pending.keys().cloned().collect()
    }

    /// Returns all instances, in the order of their keys.
    pub fn instances(&self) -> Vec<Instance> {
        self.lock().instances.values().cloned().collect()
    }

    /// Returns how many instances were ever launched.
    pub fn ever_made(&self) -> u64 {
        self.lock().serial
    }

    /// Returns the request of the instance with this key.
    pub fn request(&self, key: &str) -> Option<LaunchRequest> {
        self.lock().requests.get(key).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_class(state: &State, class: &NodeClassRef) -> Result<(), ProviderError> {
        if state.classes.contains(class) {
            return Ok(());
        }
        let NodeClassRef { kind, name, .. } = class;
        Err(ProviderError::Invalid(format!(
            "{kind} `{name}` does not exist: create it or correct spec.template.spec.nodeClassRef of the pool"
        )))
    }
}

fn wake(state: &mut State) {
    for listener in state.listeners.drain(..) {
        listener.wake();
    }
}

/// A client of a [`MemoryCloud`]. It has no state of its own.
pub struct MemoryProvider {
    cloud: Arc<MemoryCloud>,
    kind: NodeClassKind,
}

impl MemoryProvider {
    /// Makes a client of a cloud.
    pub fn new(cloud: Arc<MemoryCloud>) -> Self {
        Self::of_kind(cloud, NodeClassKind { kind: NODE_CLASS_KIND, plural: "memorynodeclasses" })
    }

    /// Makes a client of a cloud with another kind of node class.
    pub fn of_kind(cloud: Arc<MemoryCloud>, kind: NodeClassKind) -> Self {
        Self { cloud, kind }
    }

    fn launch_now(
        &self,
        state: &mut State,
        request: &LaunchRequest,
    ) -> Result<LaunchedInstance, LaunchError> {
        if let Some(instance) = state.instances.get(&request.key) {
            if instance.state == InstanceState::Terminating {
                return Err(used_up(&request.key).into());
            }
            return Ok(LaunchedInstance { instance: instance.clone(), failed: Vec::new() });
        }
        if state.used.contains(&request.key) {
            return Err(used_up(&request.key).into());
        }
        MemoryCloud::check_class(state, &request.node_class)?;
        if request.offerings.is_empty() {
            let message = format!("the launch for {} names no offering: name at least one", request.claim);
            return Err(ProviderError::Invalid(message).into());
        }
        let mut failed = Vec::new();
        for ranked in &request.offerings {
            let id = &ranked.offering;
            if self.cloud.catalogue.offering(id).is_none() {
                let message = format!("{id} is not in the catalogue: correct the catalogue or the request");
                return Err(ProviderError::Invalid(message).into());
            }
            let error = if state.out_of_stock.contains(id) {
                LaunchError::StockOut("none left".to_owned())
            } else if state.over_quota.contains(id) {
                LaunchError::Quota("the limit is reached".to_owned())
            } else {
                state.serial += 1;
                let instance = Instance {
                    provider_id: format!("memory://{}/{:08}", id.zone, state.serial),
                    key: request.key.clone(),
                    claim: request.claim.clone(),
                    offering: id.clone(),
                    node_class: request.node_class.clone(),
                    launched: (self.cloud.now)(),
                    state: InstanceState::Running,
                };
                state.used.insert(request.key.clone());
                state.instances.insert(request.key.clone(), instance.clone());
                state.requests.insert(request.key.clone(), request.clone());
                return Ok(LaunchedInstance { instance, failed });
            };
            failed.push(FailedOffering { offering: id.clone(), error });
        }
        Err(LaunchError::AllFailed(failed))
    }
}

fn used_up(key: &str) -> ProviderError {
    ProviderError::Invalid(format!(
        "the instance launched with key {key} is terminating or gone: launch with a new key, from a new claim"
    ))
}

#[async_trait]
impl CloudProvider for MemoryProvider {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn node_class_kinds(&self) -> &[NodeClassKind] {
        std::slice::from_ref(&self.kind)
    }

    async fn catalogue(&self, class: &NodeClassRef) -> Result<Arc<Catalogue>, ProviderError> {
        MemoryCloud::check_class(&self.cloud.lock(), class)?;
        Ok(Arc::clone(&self.cloud.catalogue))
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<LaunchedInstance, LaunchError> {
        let mut state = self.cloud.lock();
        match state.injected.pop_front() {
            Some(InjectedFailure::Fails(error)) => Err(error.into()),
            Some(InjectedFailure::AnswerLost) => {
                let _lost = self.launch_now(&mut state, request);
                Err(ProviderError::Transient("the connection was reset; try again".to_owned()).into())
            }
            Some(InjectedFailure::Panics) => {
                drop(state);
                panic!("a fault of the provider's code")
            }
            None => self.launch_now(&mut state, request),
        }
    }

    async fn list(&self) -> Result<Vec<Instance>, ProviderError> {
        let mut all = self.cloud.instances();
        let state = self.cloud.lock();
        if let Some(error) = &state.unlistable {
            return Err(error.clone());
        }
        all.retain(|one| !one.key.is_empty() && !state.hidden.contains(&one.key));
        all.sort_by(|a, b| a.provider_id.cmp(&b.provider_id));
        Ok(all)
    }

    async fn get(&self, provider_id: &str) -> Result<Option<Instance>, ProviderError> {
        let mut state = self.cloud.lock();
        match &mut state.look_ups {
            Some(0) => return Err(ProviderError::Throttled("too many look-ups".to_owned())),
            Some(left) => *left -= 1,
            None => {}
        }
        let found = state.instances.values().find(|one| one.provider_id == provider_id);
        Ok(found.filter(|one| !state.hidden.contains(&one.key)).cloned())
    }

    async fn terminate(&self, key: &str) -> Result<bool, ProviderError> {
        let mut state = self.cloud.lock();
        let held = state.held.contains(key);
        if state.hidden.contains(key) {
            return Ok(true);
        }
        if let Some(instance) = state.instances.get_mut(key) {
            instance.state = InstanceState::Terminating;
            if held {
                return Ok(false);
            }
            state.instances.remove(key);
        }
        Ok(true)
    }

    async fn terminate_by_id(&self, provider_id: &str, key: &str) -> Result<bool, ProviderError> {
        let found = self.get(provider_id).await?.map(|instance| instance.key);
        match found {
            Some(other) if !other.is_empty() && other != key => {
                Err(ProviderError::Invalid(format!("its key is {other}, not {key}")))
            }
            Some(its) => self.terminate(&its).await,
            None => Ok(true),
        }
    }

    async fn interruptions(&self) -> Result<Vec<InterruptionMessage>, ProviderError> {
        let heard = std::future::poll_fn(|context| {
            let mut state = self.cloud.lock();
            let new = |receipt: &String| !state.delivered.contains(receipt);
            let batch: Vec<InterruptionMessage> = state
                .pending
                .iter()
                .filter(|(receipt, _)| new(receipt))
                .map(|(_, one)| one.clone())
                .collect();
            if batch.is_empty() {
                state.listeners.push(context.waker().clone());
                return Poll::Pending;
            }
            state.delivered.extend(batch.iter().filter_map(|one| one.receipt.clone()));
            Poll::Ready(batch)
        });
        Ok(heard.await)
    }

    fn failures(&self) -> Vec<ProviderError> {
        std::mem::take(&mut self.cloud.lock().failures)
    }

    fn unreadable(&self) -> u64 {
        std::mem::take(&mut self.cloud.lock().unreadable)
    }

    async fn acknowledge(&self, receipts: &[String]) -> Result<(), ProviderError> {
        let mut state = self.cloud.lock();
        for receipt in receipts {
            state.pending.remove(receipt);
            state.delivered.remove(receipt);
        }
        Ok(())
    }
}
