//! Cases about termination: nothing that costs money is left, and no key launches a second time.

use super::launching::expect_instances;
use super::report::ensure;
use super::setting::same_instance;
use super::{Failure, MAX_POLLS, NodeView, Setting};
use crate::{Instance, InstanceState, LaunchError, ProviderError};

pub(super) async fn a_terminated_instance_is_gone_with_its_node(at: &Setting) -> Result<(), Failure> {
    let instance = at.provider.launch(&at.request("a")).await?.instance;
    let seen = at.node_of(&instance).await?.is_some();
    at.terminate(&*at.provider, &instance.key).await?;
    expect_instances(at, 0).await?;
    if seen { expect_node_gone(at, &instance).await } else { Ok(()) }
}

pub(super) async fn terminating_twice_is_fine(at: &Setting) -> Result<(), Failure> {
    let instance = at.provider.launch(&at.request("a")).await?.instance;
    at.terminate(&*at.provider, &instance.key).await?;
    at.terminate(&*at.provider, &instance.key).await?;
    expect_instances(at, 0).await
}

pub(super) async fn terminating_an_unknown_key_says_gone(at: &Setting) -> Result<(), Failure> {
    let key = at.request("never-launched").key;
    ensure!(at.provider.terminate(&key).await?, "an instance that never was is said to be still going");
    Ok(())
}

pub(super) async fn terminating_one_instance_leaves_the_others(at: &Setting) -> Result<(), Failure> {
    let one = at.provider.launch(&at.request("a")).await?.instance;
    let other = at.provider.launch(&at.request("b")).await?.instance;
    let seen = at.node_of(&other).await?.is_some();
    at.terminate(&*at.provider, &one.key).await?;
    let all = at.provider.list().await?;
    ensure!(matches!(&all[..], [left] if same_instance(left, &other)), "left are {all:?}");
    if seen {
        let sight = at.world.node(&other).await?;
        let is_there = !matches!(sight, NodeView::Absent | NodeView::NotVisible);
        ensure!(is_there, "the node of the other is {sight:?}");
    }
    Ok(())
}

pub(super) async fn an_instance_is_terminated_by_a_provider_that_did_not_launch_it(
    at: &Setting,
) -> Result<(), Failure> {
    let instance = at.provider.launch(&at.request("a")).await?.instance;
    let seen = at.node_of(&instance).await?.is_some();
    let restarted = at.restarted().await?;
    at.terminate(&*restarted, &instance.key).await?;
    expect_instances(at, 0).await?;
    if seen { expect_node_gone(at, &instance).await } else { Ok(()) }
}

pub(super) async fn a_terminating_instance_is_listed_as_such_and_its_key_cannot_be_launched(
    at: &Setting,
) -> Result<(), Failure> {
    let request = at.request("a");
    let instance = at.provider.launch(&request).await?.instance;
    at.node_of(&instance).await?;
    if !at.world.hold(&instance, true).await? {
        return Ok(());
    }
    ensure!(!at.provider.terminate(&instance.key).await?, "it is said to be gone while it is held");
    let listed = at.provider.list().await?;
    let wanted = Instance { state: InstanceState::Terminating, ..instance.clone() };
    ensure!(matches!(&listed[..], [one] if same_instance(one, &wanted)), "listed are {listed:?}");
    let found = at.provider.get(&instance.provider_id).await?;
    ensure!(found.as_ref().is_some_and(|found| same_instance(found, &wanted)), "found was {found:?}");
    for provider in [&at.provider, &at.restarted().await?] {
        match provider.launch(&request).await {
            Err(LaunchError::Provider(ProviderError::Invalid(_))) => {}
            other => return Err(Failure(format!("launching its key again gave {other:?}"))),
        }
    }
    at.world.hold(&instance, false).await?;
    at.terminate(&*at.provider, &instance.key).await?;
    expect_instances(at, 0).await
}

pub(super) async fn a_termination_that_was_begun_is_finished_after_a_restart(
    at: &Setting,
) -> Result<(), Failure> {
    let instance = at.provider.launch(&at.request("a")).await?.instance;
    let seen = at.node_of(&instance).await?.is_some();
    if !at.world.hold(&instance, true).await? {
        return Ok(());
    }
    ensure!(!at.provider.terminate(&instance.key).await?, "it is said to be gone while it is held");
    let restarted = at.restarted().await?;
    at.world.hold(&instance, false).await?;
    at.terminate(&*restarted, &instance.key).await?;
    expect_instances(at, 0).await?;
    if seen { expect_node_gone(at, &instance).await } else { Ok(()) }
}

async fn expect_node_gone(at: &Setting, instance: &Instance) -> Result<(), Failure> {
    for _ in 0..MAX_POLLS {
        if at.world.node(instance).await? == NodeView::Absent {
            return Ok(());
        }
        at.world.pause().await;
    }
    Err(Failure(format!("{} is gone and its node is still there", instance.provider_id)))
}
