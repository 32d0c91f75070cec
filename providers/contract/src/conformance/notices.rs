//! What the cloud says of its own accord, in worlds that can make it speak.

use std::sync::Arc;

use futures::future::{Either, select};
use poolwright_terms::InterruptionKind;

use super::report::ensure;
use super::{Failure, LOOKS, Setting};
use crate::{CloudProvider, Instance, Interruption, Notice, instance_of};

pub(super) async fn an_interruption_is_told_with_the_instance_and_its_time(
    at: &Setting,
) -> Result<(), Failure> {
    let instance = at.provider.launch(&at.request("a")).await?.instance;
    if !at.world.interrupt(&instance).await? {
        return Ok(());
    }
    let (notice, told) = Hearing::new(&at.provider).wait_for(at, &instance).await?;
    ensure!(told.kind == InterruptionKind::Reclaim, "its kind is {:?}", told.kind);
    let Some(deadline) = told.deadline else {
        return Err("it does not say when the instance is taken".into());
    };
    ensure!(deadline > told.noticed, "it is taken at {deadline}, and that was said at {}", told.noticed);
    ensure!(!told.message.is_empty(), "it says nothing to people");
    give_back(at, &notice).await
}

pub(super) async fn a_notice_that_is_not_given_back_comes_again_also_after_a_restart(
    at: &Setting,
) -> Result<(), Failure> {
    let instance = at.provider.launch(&at.request("a")).await?.instance;
    if !at.world.interrupt(&instance).await? {
        return Ok(());
    }
    let (notice, told) = Hearing::new(&at.provider).wait_for(at, &instance).await?;
    if notice.receipt.is_none() {
        return Ok(());
    }
    let restarted = at.restarted().await?;
    at.world.redeliver().await?;
    let (notice, again) = Hearing::new(&restarted).wait_for(at, &instance).await?;
    ensure!(again == told, "first it was {told:?}, then {again:?}");
    give_back(at, &notice).await
}

pub(super) async fn a_notice_that_was_given_back_does_not_come_again(at: &Setting) -> Result<(), Failure> {
    let first = at.provider.launch(&at.request("a")).await?.instance;
    let second = at.provider.launch(&at.request("b")).await?.instance;
    if !at.world.interrupt(&first).await? {
        return Ok(());
    }
    let (notice, _) = Hearing::new(&at.provider).wait_for(at, &first).await?;
    give_back(at, &notice).await?;
    at.world.redeliver().await?;
    at.world.interrupt(&second).await?;
    let mut hearing = Hearing::new(&at.provider);
    let (notice, _) = hearing.wait_for(at, &second).await?;
    let again = hearing.heard.iter().any(|one| one.instance == instance_of(&first.provider_id));
    ensure!(!again, "what was given back has come again");
    give_back(at, &notice).await
}

pub(super) async fn receipts_that_nobody_knows_are_no_error(at: &Setting) -> Result<(), Failure> {
    let instance = at.provider.launch(&at.request("a")).await?.instance;
    if !at.world.interrupt(&instance).await? {
        return Ok(());
    }
    let (notice, _) = Hearing::new(&at.provider).wait_for(at, &instance).await?;
    give_back(at, &notice).await?;
    give_back(at, &notice).await
}

async fn give_back(at: &Setting, notice: &Notice) -> Result<(), Failure> {
    let receipts: Vec<String> = notice.receipt.iter().cloned().collect();
    Ok(at.provider.acknowledge(&receipts).await?)
}

/// Somebody who hears notices.
struct Hearing {
    provider: Arc<dyn CloudProvider>,
    heard: Vec<Interruption>,
}

impl Hearing {
    fn new(provider: &Arc<dyn CloudProvider>) -> Self {
        Self { provider: Arc::clone(provider), heard: Vec::new() }
    }

    /// The first notice about this instance.
    async fn wait_for(
        &mut self,
        at: &Setting,
        instance: &Instance,
    ) -> Result<(Notice, Interruption), Failure> {
        let id = instance_of(&instance.provider_id);
        let provider = Arc::clone(&self.provider);
        let mut hearing = provider.notices();
        for _ in 0..LOOKS {
            let pause = std::pin::pin!(at.world.pause());
            match select(hearing, pause).await {
                // One that is dropped may have taken notices with it.
                Either::Right(((), still)) => hearing = still,
                Either::Left((batch, _)) => {
                    for notice in batch? {
                        self.heard.extend(notice.interruptions.iter().cloned());
                        if let Some(told) = notice.interruptions.iter().find(|one| one.instance == id) {
                            return Ok((notice.clone(), told.clone()));
                        }
                    }
                    hearing = provider.notices();
                }
            }
        }
        Err(Failure(format!("nothing was said of {id} within {LOOKS} looks")))
    }
}
