//! The implementation of [`CloudProvider`] for KWOK.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kube::Client;
use poolwright_catalog::{Catalogue, Offering, ProviderName, RankedOffering, ResourceName};
use poolwright_provider_contract::{
    Clock, CloudProvider, FailedOffering, Instance, InterruptionMessage, LaunchError, LaunchRequest,
    LaunchedInstance, NodeClassKind, ProviderError, missing_class,
};
use poolwright_terms::NodeClassRef;
use tokio::sync::Notify;

use crate::class::{self, Class, Flaws};
use crate::interruptions::Interruptions;
use crate::record::{Interrupted, NodePlan, Record, Refused, State, check_claim, name_in, name_of};
use crate::store::{Created, Store, Stored};

/// The number of attempts at a change that conflicts with other changes.
const ATTEMPTS: usize = 5;

/// The configuration of the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The namespace in which the instances are stored as ConfigMaps. The first launch creates it. If you simulate two clusters
    /// in one API server, use two namespaces.
    pub namespace: String,
    /// The longest time between two rounds of [`KwokProvider::run`]. Launches and due nodes start a round earlier.
    pub resync: Duration,
    /// The timeout of API calls. A call that takes longer fails as transient.
    pub call_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: "poolwright-kwok".to_owned(),
            resync: Duration::from_secs(10),
            call_timeout: Duration::from_secs(30),
        }
    }
}

/// The KWOK provider. All of its state is in the API server, so several providers may run at the same time.
pub struct KwokProvider {
    pub(crate) store: Store,
    pub(crate) now: Clock,
    pub(crate) settings: Settings,
    /// Starts a round of [`KwokProvider::run`] after a launch or a termination.
    pub(crate) wake: Notify,
    /// The interruption messages, which [`KwokProvider::run`] updates.
    pub(crate) interruptions: Interruptions,
    catalogue: Arc<Catalogue>,
    /// A cache of the offerings of each provider in the catalogue.
    parts: Mutex<BTreeMap<ProviderName, Arc<Catalogue>>>,
}

impl KwokProvider {
    /// Makes a provider that sells `catalogue`. Nodes join only while [`KwokProvider::run`] runs, in this process or another.
    pub fn new(client: Client, catalogue: Arc<Catalogue>, now: Clock, settings: Settings) -> Self {
        Self {
            store: Store::new(client, settings.namespace.clone(), settings.call_timeout),
            now,
            settings,
            wake: Notify::new(),
            interruptions: Interruptions::default(),
            catalogue,
            parts: Mutex::default(),
        }
    }

    /// Runs the simulated cloud until `shutdown` completes: it registers due nodes, completes terminations, and deletes nodes
    /// without an instance. You may interrupt it at any point, and several may run at the same time.
    pub async fn run(&self, shutdown: impl Future<Output = ()> + Send) {
        tokio::select! {
            biased;
            () = shutdown => {}
            () = crate::cloud::play(self) => {}
        }
    }

    async fn class(&self, key: &NodeClassRef) -> Result<Class, ProviderError> {
        class::check_kind(key)?;
        let Some(object) = self.store.class(&key.name).await? else {
            return Err(missing_class(class::KIND, &key.name, self.store.class_names().await.as_deref()));
        };
        Class::read(&key.name, &object)
    }

    /// Returns the offerings that a class sells.
    fn sold(&self, class: &Class, name: &str) -> Result<Arc<Catalogue>, ProviderError> {
        let Some(provider) = &class.provider else { return Ok(Arc::clone(&self.catalogue)) };
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let part = parts
            .entry(provider.clone())
            .or_insert_with(|| Arc::new(self.catalogue.filtered(|kind, _| kind.provider == *provider)));
        if part.offerings().is_empty() {
            let mut known: Vec<_> =
                self.catalogue.types().values().map(|kind| kind.provider.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            return Err(ProviderError::Invalid(format!(
                "{} `{name}` sells what provider `{provider}` sells, of which the catalogue has nothing: correct \
                 spec.provider (the catalogue has: {})",
                class::KIND,
                known.join(", ")
            )));
        }
        Ok(Arc::clone(part))
    }

    /// Tries the offerings in order.
    async fn choose(&self, request: &LaunchRequest) -> Result<Record, LaunchError> {
        let class = self.class(&request.node_class).await?;
        let sold = self.sold(&class, &request.node_class.name)?;
        check_claim(&request.claim)?;
        if let Some(error) = class.launch_error() {
            return Err(error.into());
        }
        if request.offerings.is_empty() {
            let message =
                format!("the launch for claim `{}` names no offering: name at least one", request.claim);
            return Err(ProviderError::Invalid(message).into());
        }
        let mut failed: Vec<FailedOffering> = Vec::new();
        for ranked in &request.offerings {
            let id = &ranked.offering;
            let offering = sold.offering(id).ok_or_else(|| {
                ProviderError::Invalid(format!(
                    "{} `{}` does not sell {id}: correct the catalogue or spec.provider of the class",
                    class::KIND,
                    request.node_class.name
                ))
            })?;
            match class.refusal(id) {
                Some(error) => failed.push(FailedOffering { offering: id.clone(), error }),
                None => {
                    return self
                        .record(request, ranked, &class, &sold, offering, &failed)
                        .map_err(Into::into);
                }
            }
        }
        Err(LaunchError::AllFailed(failed))
    }

    fn record(
        &self,
        request: &LaunchRequest,
        ranked: &RankedOffering,
        class: &Class,
        sold: &Catalogue,
        offering: &Offering,
        failed: &[FailedOffering],
    ) -> Result<Record, ProviderError> {
        let Flaws { never_registers, missing_gpus, interrupted } = class.flaws(&offering.id);
        let launched = (self.now)();
        let later = |from: Timestamp, length, field| {
            from.checked_add(length).map_err(|_| {
                ProviderError::Invalid(format!(
                    "{} `{}`: {field} goes beyond the end of time: shorten it",
                    class::KIND,
                    request.node_class.name
                ))
            })
        };
        let due = later(launched, class.registration_delay, "spec.registrationDelay")?;
        let interruption = match interrupted {
            None => None,
            Some((after, notice)) => {
                let noticed = later(launched, after, "spec.faults.interruptions")?;
                let ends = later(noticed, notice, "spec.faults.interruptions")?;
                Some(Interrupted { noticed, ends, heard: false })
            }
        };
        let mut labels = request.labels.clone();
        labels.extend(sold.node_labels(offering));
        let capacity = ranked.allocatable.clone();
        let gpus = capacity.get(ResourceName::NVIDIA_GPU).saturating_sub(missing_gpus);
        Ok(Record {
            state: State::Launched,
            key: request.key.clone(),
            claim: request.claim.clone(),
            node_class: request.node_class.clone(),
            offering: offering.id.clone(),
            launched,
            due,
            never_registers,
            interruption,
            refused: failed.iter().map(Refused::new).collect(),
            node: NodePlan {
                labels,
                annotations: request.annotations.clone(),
                taints: request.taints.clone(),
                allocatable: capacity.clone().with(ResourceName::NVIDIA_GPU, gpus),
                capacity,
            },
        })
    }

    /// Deletes the node of the instance and then the instance. It returns `true` when both are gone.
    pub(crate) async fn finish_termination(&self, stored: &Stored) -> Result<bool, ProviderError> {
        let record = &stored.record;
        if let Some(node) = self.store.node(&record.claim).await?
            && crate::node::is_of(&node, record)
        {
            if node.metadata.deletion_timestamp.is_none() {
                self.store.delete_node(&node).await?;
            }
            // A finalizer keeps the node, so the instance is not gone either.
            let left = self.store.node(&record.claim).await?;
            if left.is_some_and(|node| crate::node::is_of(&node, record)) {
                return Ok(false);
            }
        }
        self.store.delete(stored).await?;
        tracing::info!(instance = record.provider_id(), claim = record.claim, "instance terminated");
        Ok(true)
    }
}

/// Returns the instance that was launched with the key before, unless it is terminating.
fn found(stored: &Stored) -> Result<LaunchedInstance, LaunchError> {
    let record = &stored.record;
    if record.state == State::Terminating {
        let message = format!(
            "instance {} was launched with key {} and is terminating: launch with a new key, from a new claim",
            record.provider_id(),
            record.key
        );
        return Err(ProviderError::Invalid(message).into());
    }
    Ok(LaunchedInstance { instance: record.instance(), failed: record.failed() })
}

#[async_trait]
impl CloudProvider for KwokProvider {
    fn name(&self) -> &'static str {
        "kwok"
    }

    fn node_class_kinds(&self) -> &[NodeClassKind] {
        &[class::NODE_CLASS]
    }

    async fn catalogue(&self, key: &NodeClassRef) -> Result<Arc<Catalogue>, ProviderError> {
        let class = self.class(key).await?;
        self.sold(&class, &key.name)
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<LaunchedInstance, LaunchError> {
        let name = name_of(&request.key)?;
        if let Some(stored) = self.store.get(&name).await? {
            return found(&stored);
        }
        let record = self.choose(request).await?;
        match self.store.create(&record).await? {
            Created::New => {
                tracing::info!(
                    instance = record.provider_id(),
                    claim = record.claim,
                    offering = %record.offering,
                    "instance launched"
                );
                self.wake.notify_one();
                Ok(LaunchedInstance { instance: record.instance(), failed: record.failed() })
            }
            // Another process launched this key after our lookup. Use its instance.
            Created::Taken => {
                let stored = self.store.get(&name).await?.ok_or_else(|| {
                    let key = &request.key;
                    ProviderError::Transient(format!(
                        "the instance of key {key} came and went while it was launched"
                    ))
                })?;
                found(&stored)
            }
        }
    }

    async fn list(&self) -> Result<Vec<Instance>, ProviderError> {
        let inventory = self.store.list().await?;
        // A partial list would look like missing instances.
        if let Some(problem) = inventory.unreadable.into_iter().next() {
            return Err(problem);
        }
        let mut all: Vec<_> = inventory.stored.iter().map(|stored| stored.record.instance()).collect();
        all.sort_by(|a, b| a.provider_id.cmp(&b.provider_id));
        Ok(all)
    }

    async fn get(&self, provider_id: &str) -> Result<Option<Instance>, ProviderError> {
        let Some(name) = name_in(provider_id) else { return Ok(None) };
        let stored = self.store.get(name).await?;
        let instance = stored.map(|stored| stored.record.instance());
        Ok(instance.filter(|instance| instance.provider_id == provider_id))
    }

    async fn terminate(&self, key: &str) -> Result<bool, ProviderError> {
        let name = name_of(key)?;
        for _ in 0..ATTEMPTS {
            let Some(mut stored) = self.store.get(&name).await? else { return Ok(true) };
            if stored.record.state != State::Terminating {
                let record = Record { state: State::Terminating, ..stored.record.clone() };
                // Store the intent first, so that the termination continues after a crash.
                match self.store.replace(&stored, record).await? {
                    Some(changed) => stored = changed,
                    None => continue,
                }
            }
            let gone = self.finish_termination(&stored).await?;
            if !gone {
                self.wake.notify_one();
            }
            return Ok(gone);
        }
        Err(ProviderError::Transient(format!("the instance of key {key} changes all the time; ask again")))
    }

    async fn interruptions(&self) -> Result<Vec<InterruptionMessage>, ProviderError> {
        Ok(self.interruptions.next(|| (self.now)()).await)
    }

    async fn acknowledge(&self, receipts: &[String]) -> Result<(), ProviderError> {
        for name in receipts {
            for attempt in 1.. {
                let Some(stored) = self.store.get(name).await? else { break };
                let Some(one) = stored.record.interruption.clone().filter(|one| !one.heard) else { break };
                let interruption = Some(Interrupted { heard: true, ..one });
                let record = Record { interruption, ..stored.record.clone() };
                if self.store.replace(&stored, record).await?.is_some() {
                    break;
                }
                if attempt == ATTEMPTS {
                    let message = format!("instance {name} changes all the time; confirm it again");
                    return Err(ProviderError::Transient(message));
                }
            }
            self.interruptions.forget(name);
        }
        Ok(())
    }
}
