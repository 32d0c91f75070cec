//! Cases about interruption messages. They pass at once in worlds that cannot interrupt an instance.

use std::sync::Arc;

use futures::future::{Either, select};
use poolwright_terms::InterruptionKind;

use super::report::ensure;
use super::{Failure, MAX_POLLS, Setting};
use crate::{CloudProvider, Instance, Interruption, InterruptionMessage, instance_of};

pub(super) async fn an_interruption_names_the_instance_and_its_deadline(at: &Setting) -> Result<(), Failure> {
    let instance = at.provider.launch(&at.request("a")).await?.instance;
    if !at.world.interrupt(&instance).await? {
        return Ok(());
    }
    let (notice, told) = Consumer::new(&at.provider).wait_for(at, &instance).await?;
    ensure!(told.kind == InterruptionKind::Reclaim, "its kind is {:?}", told.kind);
    let Some(deadline) = told.deadline else {
        return Err("it does not say when the instance is taken".into());
    };
    ensure!(deadline > told.noticed, "it is taken at {deadline}, and that was said at {}", told.noticed);
    ensure!(!told.message.is_empty(), "it says nothing to people");
    acknowledge(at, &notice).await
}

pub(super) async fn an_unacknowledged_message_is_redelivered_also_after_a_restart(
    at: &Setting,
) -> Result<(), Failure> {
    let instance = at.provider.launch(&at.request("a")).await?.instance;
    if !at.world.interrupt(&instance).await? {
        return Ok(());
    }
    let (notice, told) = Consumer::new(&at.provider).wait_for(at, &instance).await?;
    if notice.receipt.is_none() {
        return Ok(());
    }
    let restarted = at.restarted().await?;
    at.world.redeliver().await?;
    let (notice, again) = Consumer::new(&restarted).wait_for(at, &instance).await?;
    ensure!(again == told, "first it was {told:?}, then {again:?}");
    acknowledge(at, &notice).await
}

pub(super) async fn an_acknowledged_message_is_not_redelivered(at: &Setting) -> Result<(), Failure> {
    let first = at.provider.launch(&at.request("a")).await?.instance;
    let second = at.provider.launch(&at.request("b")).await?.instance;
    if !at.world.interrupt(&first).await? {
        return Ok(());
    }
    let (notice, _) = Consumer::new(&at.provider).wait_for(at, &first).await?;
    acknowledge(at, &notice).await?;
    at.world.redeliver().await?;
    at.world.interrupt(&second).await?;
    let mut hearing = Consumer::new(&at.provider);
    let (notice, _) = hearing.wait_for(at, &second).await?;
    let again = hearing.heard.iter().any(|one| one.instance == instance_of(&first.provider_id));
    ensure!(!again, "what was given back has come again");
    acknowledge(at, &notice).await
}

pub(super) async fn acknowledging_an_unknown_receipt_is_no_error(at: &Setting) -> Result<(), Failure> {
    let instance = at.provider.launch(&at.request("a")).await?.instance;
    if !at.world.interrupt(&instance).await? {
        return Ok(());
    }
    let (notice, _) = Consumer::new(&at.provider).wait_for(at, &instance).await?;
    acknowledge(at, &notice).await?;
    acknowledge(at, &notice).await
}

async fn acknowledge(at: &Setting, notice: &InterruptionMessage) -> Result<(), Failure> {
    let receipts: Vec<String> = notice.receipt.iter().cloned().collect();
    Ok(at.provider.acknowledge(&receipts).await?)
}

/// A consumer of interruption messages.
struct Consumer {
    provider: Arc<dyn CloudProvider>,
    heard: Vec<Interruption>,
}

impl Consumer {
    fn new(provider: &Arc<dyn CloudProvider>) -> Self {
        Self { provider: Arc::clone(provider), heard: Vec::new() }
    }

    /// Waits for the first message about an instance.
    async fn wait_for(
        &mut self,
        at: &Setting,
        instance: &Instance,
    ) -> Result<(InterruptionMessage, Interruption), Failure> {
        let id = instance_of(&instance.provider_id);
        let provider = Arc::clone(&self.provider);
        let mut hearing = provider.interruptions();
        for _ in 0..MAX_POLLS {
            let pause = std::pin::pin!(at.world.pause());
            match select(hearing, pause).await {
                // Keep the pending call: dropping it could lose messages.
                Either::Right(((), still)) => hearing = still,
                Either::Left((batch, _)) => {
                    for notice in batch? {
                        self.heard.extend(notice.interruptions.iter().cloned());
                        if let Some(told) = notice.interruptions.iter().find(|one| one.instance == id) {
                            return Ok((notice.clone(), told.clone()));
                        }
                    }
                    hearing = provider.interruptions();
                }
            }
        }
        Err(Failure(format!("nothing was said of {id} within {MAX_POLLS} looks")))
    }
}
