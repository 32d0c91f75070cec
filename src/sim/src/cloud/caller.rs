//! Calls of the cloud, with faults.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::Method;
use poolwright_catalog::{Catalogue, RankedOffering};
use poolwright_provider_contract::{
    CloudProvider, FailedOffering, Instance, InstanceState, InterruptionMessage, LaunchError, LaunchRequest,
    LaunchedInstance, NodeClassKind, ProviderError,
};
use poolwright_terms::NodeClassRef;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::Cloud;
use crate::accidents::{Rates, Site, one_of, span};
use crate::dice::Dice;
use crate::run::Sabotage;
use crate::wire::{Process, Witness};

/// The cloud, as one process calls it.
pub struct CloudOf {
    /// The cloud.
    pub cloud: Arc<Cloud>,
    /// The kinds of node class that it supports.
    pub kinds: Vec<NodeClassKind>,
    /// The process that calls.
    pub process: Arc<Process>,
    /// Sees each call that changes something, before it is carried out.
    pub witness: Witness,
    /// A bug of the controller, to test the rules.
    pub sabotage: Option<Sabotage>,
}

/// The message of a panic that is a fault of the world.
const PANIC: &str = "a fault of the provider's code";
/// The calls that change something in the cloud.
const CHANGES: [&str; 3] = ["launch", "terminate", "acknowledge"];
/// How often a buggy controller repeats such a call, and the time between. A process may be cut off for 90 seconds.
const REPEATS: (u32, Duration) = (24, Duration::from_secs(5));

#[derive(Clone, Copy)]
enum Fate {
    Throttled,
    Fails,
    AnswerLost,
    Swallowed,
}

impl CloudOf {
    /// Makes a call, with faults. The call continues if the caller is gone.
    async fn call<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Cloud) -> T + Send + 'static,
    ) -> Result<T, ProviderError> {
        let cloud = self.cloud.clone();
        let now = cloud.time.elapsed();
        self.process.calls(what, now);
        if !self.process.is_heard() {
            return std::future::pending().await;
        }
        let panics = |rates: &Rates, dice: &mut Dice| dice.per_mille(rates.cloud_panics).then_some(());
        if cloud.accidents.at(Site::Panic, panics).is_some() {
            let Process { identity, incarnation, .. } = &*self.process;
            cloud.record.say(format_args!("{identity}.{incarnation} cloud {what} panics"));
            match self.sabotage {
                Some(Sabotage::PanicsUnnoticed) if what == "list" => self.process.end_task(now).await,
                Some(Sabotage::PanicsUnnoticed) => {}
                _ => self.process.panic(now, PANIC),
            }
        }
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
        let (process, witness) = (self.process.clone(), self.witness.clone());
        if self.sabotage == Some(Sabotage::CloudCallsGoOn) && CHANGES.contains(&what) {
            self.repeat(what);
        }
        tokio::spawn(async move {
            sleep(way).await;
            if CHANGES.contains(&what) && !matches!(fate, Some(Fate::Throttled | Fate::Fails)) {
                witness(&process, &Method::POST, what);
            }
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

    /// Repeats a call for a while, whoever leads. Such calls are idempotent, so the repetitions have no effect of their own.
    fn repeat(&self, what: &'static str) {
        let (process, witness) = (self.process.clone(), self.witness.clone());
        tokio::spawn(async move {
            let (times, pause) = REPEATS;
            for _ in 0..times {
                sleep(pause).await;
                if process.is_heard() && !process.is_paused() {
                    witness(&process, &Method::POST, what);
                }
            }
        });
    }
}

#[async_trait]
impl CloudProvider for CloudOf {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn node_class_kinds(&self) -> &[NodeClassKind] {
        &self.kinds
    }

    async fn catalogue(&self, class: &NodeClassRef) -> Result<Arc<Catalogue>, ProviderError> {
        let class = class.clone();
        if self.sabotage == Some(Sabotage::PricesMisread) {
            return self.call("catalogue", |cloud| Ok(cloud.misread_catalogue())).await?;
        }
        if self.sabotage == Some(Sabotage::ReservationUnseen) {
            return self.call("catalogue", |cloud| Ok(cloud.catalogue_without_reservation())).await?;
        }
        self.call("catalogue", move |cloud| cloud.check(&class).map(|()| cloud.catalogue())).await?
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<LaunchedInstance, LaunchError> {
        let mut request = request.clone();
        if self.sabotage == Some(Sabotage::KeysChange) {
            let call = self.cloud.calls.load(Ordering::Relaxed);
            request.key = format!("{}/{call}", request.key);
        }
        if self.sabotage == Some(Sabotage::NothingIsOrdered) {
            let none = |one: &RankedOffering| FailedOffering {
                offering: one.offering.clone(),
                error: LaunchError::StockOut("so it believes".to_owned()),
            };
            return Err(LaunchError::AllFailed(request.offerings.iter().map(none).collect()));
        }
        self.call("launch", move |cloud| cloud.launch(&request)).await?
    }

    async fn list(&self) -> Result<Vec<Instance>, ProviderError> {
        self.call("list", Cloud::listed).await
    }

    async fn get(&self, provider_id: &str) -> Result<Option<Instance>, ProviderError> {
        let id = provider_id.to_owned();
        match self.sabotage {
            Some(Sabotage::ListingsBelieved) => self.call("get", |_| None).await,
            Some(Sabotage::DoubtsIgnored) => self.call("get", move |cloud| cloud.find_anyway(&id)).await,
            // Else the look by id would heal it.
            Some(Sabotage::EndsNotAwaited) => {
                let runs = |one: &Instance| one.state == InstanceState::Running;
                self.call("get", move |cloud| cloud.find(&id).filter(runs)).await
            }
            _ => self.call("get", move |cloud| cloud.find(&id)).await,
        }
    }

    async fn terminate(&self, key: &str) -> Result<bool, ProviderError> {
        let key = key.to_owned();
        if self.sabotage == Some(Sabotage::NothingTerminates) {
            return self.call("terminate", |_| false).await;
        }
        if self.sabotage == Some(Sabotage::EndsNotAwaited) {
            return self
                .call("terminate", move |cloud| {
                    cloud.terminate(&key);
                    true
                })
                .await;
        }
        self.call("terminate", move |cloud| cloud.terminate(&key)).await
    }

    async fn interruptions(&self) -> Result<Vec<InterruptionMessage>, ProviderError> {
        self.process.calls("notices", self.cloud.time.elapsed());
        self.cloud.mail_is_due().await;
        let mut heard = self.call("notices", Cloud::hear).await?;
        if self.sabotage == Some(Sabotage::NoticesForgotten) {
            let receipts: Vec<String> = heard.into_iter().filter_map(|notice| notice.receipt).collect();
            self.cloud.give_back(&receipts);
            return Ok(Vec::new());
        }
        if self.sabotage == Some(Sabotage::LatestDeadlineKept) {
            self.cloud.put_off(&mut heard);
        }
        Ok(heard)
    }

    async fn acknowledge(&self, receipts: &[String]) -> Result<(), ProviderError> {
        let receipts = receipts.to_vec();
        self.call("acknowledge", move |cloud| cloud.give_back(&receipts)).await
    }
}
