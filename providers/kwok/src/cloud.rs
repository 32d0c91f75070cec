//! The simulated cloud behind the provider. It registers nodes when they are due, completes terminations, and deletes nodes
//! without an instance.
//!
//! Every round reads the stored instances and does the next step of each. A round may be interrupted at any point; the next one
//! continues.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use poolwright_provider_contract::ProviderError;

use crate::provider::KwokProvider;
use crate::record::{Record, State, name_in};
use crate::store::{Created, Stored};
use crate::{interruptions, node};

/// The number of nodes that join concurrently.
const CONCURRENCY: usize = 16;
/// The pause after a failed round.
const SHORTLY: Duration = Duration::from_millis(250);

/// Runs the cloud until the future is dropped.
pub(crate) async fn play(provider: &KwokProvider) {
    let mut failing = false;
    loop {
        let pause = match round(provider).await {
            Ok(next_due) => {
                failing = false;
                until(next_due, (provider.now)(), provider.settings.resync)
            }
            Err(error) => {
                // Log only the first of consecutive failures.
                if failing {
                    tracing::debug!(%error, "the kwok cloud could not look after its instances again");
                } else {
                    tracing::warn!(%error, "the kwok cloud could not look after its instances; it tries again");
                }
                failing = true;
                SHORTLY.min(provider.settings.resync)
            }
        };
        tokio::select! {
            () = provider.wake.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Returns the time to wait for the next due step.
fn until(next_due: Option<Timestamp>, now: Timestamp, resync: Duration) -> Duration {
    let Some(due) = next_due else { return resync };
    let left = Duration::try_from(due.duration_since(now)).unwrap_or(Duration::ZERO);
    left.max(Duration::from_millis(1)).min(resync)
}

/// Does the next step of every instance. It returns the time at which the next node is due.
async fn round(provider: &KwokProvider) -> Result<Option<Timestamp>, ProviderError> {
    // List nodes before records. A node in this list had a record when it was created, so if the later list lacks the record, the
    // instance is gone.
    let nodes = provider.store.nodes().await?;
    let inventory = provider.store.list().await?;
    let now = (provider.now)();
    let mut next_due: Option<Timestamp> = None;
    let mut steps = Vec::new();
    let known: BTreeSet<_> = inventory.stored.iter().map(|stored| stored.record.provider_id()).collect();
    provider
        .interruptions
        .set(inventory.stored.iter().filter_map(|stored| interruptions::due(&stored.record, now)));
    for stored in inventory.stored {
        let Record { state, due, never_registers, .. } = &stored.record;
        for at in stored.record.interruption.iter().flat_map(|one| [one.noticed, one.ends]) {
            if at > now {
                next_due = Some(next_due.map_or(at, |soonest| soonest.min(at)));
            }
        }
        match state {
            State::Terminating => steps.push(stored),
            State::Launched | State::Joined if is_taken(&stored.record, now) => steps.push(stored),
            State::Launched if *never_registers => {}
            State::Launched if *due <= now => steps.push(stored),
            State::Launched => next_due = Some(next_due.map_or(*due, |soonest: Timestamp| soonest.min(*due))),
            State::Joined => {}
        }
    }
    let mut outcomes = stream::iter(steps)
        .map(|stored| async move { step(provider, &stored).await })
        .buffer_unordered(CONCURRENCY);
    let mut first_error = None;
    while let Some(outcome) = outcomes.next().await {
        if let Err(error) = outcome {
            first_error.get_or_insert(error);
        }
    }
    if let Some(problem) = inventory.unreadable.first() {
        // The owners of some nodes are unknown, so delete no node.
        tracing::warn!(count = inventory.unreadable.len(), %problem, "instances that cannot be read");
    } else {
        for node in nodes.iter().filter(|node| is_lost(node, &known)) {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            tracing::info!(node = name, "the node lost its instance and goes");
            provider.store.delete_node(node).await?;
        }
    }
    first_error.map_or(Ok(next_due), Err)
}

/// Returns whether the node belongs to an instance that no longer exists. `known` contains the provider ids of all instances.
fn is_lost(node: &Node, known: &BTreeSet<String>) -> bool {
    node::provider_id(node).is_some_and(|id| name_in(id).is_some() && !known.contains(id))
}

/// Returns whether the cloud reclaims the instance now.
fn is_taken(record: &Record, now: Timestamp) -> bool {
    record.interruption.as_ref().is_some_and(|one| one.ends <= now)
}

async fn step(provider: &KwokProvider, stored: &Stored) -> Result<(), ProviderError> {
    match stored.record.state {
        State::Launched | State::Joined if is_taken(&stored.record, (provider.now)()) => {
            let record = Record { state: State::Terminating, ..stored.record.clone() };
            match provider.store.replace(stored, record).await? {
                Some(changed) => {
                    tracing::info!(instance = changed.record.provider_id(), "instance taken back");
                    provider.finish_termination(&changed).await.map(|_| ())
                }
                // The next round reads the new state.
                None => Ok(()),
            }
        }
        State::Terminating => provider.finish_termination(stored).await.map(|_| ()),
        State::Launched | State::Joined => join(provider, stored).await,
    }
}

/// Registers the node once.
async fn join(provider: &KwokProvider, stored: &Stored) -> Result<(), ProviderError> {
    let record = &stored.record;
    let store = &provider.store;
    let wanted = node::node(record, store.namespace(), (provider.now)());
    if let Created::Taken = store.create_node(&wanted).await? {
        match store.node(&record.claim).await? {
            Some(node) if node::is_of(&node, record) => {}
            Some(other) => {
                tracing::error!(
                    node = record.claim,
                    instance = record.provider_id(),
                    found = node::provider_id(&other).unwrap_or("none"),
                    "a node of this name exists and belongs to another instance; the instance cannot join: delete that \
                     node if nothing runs on it"
                );
                return Ok(());
            }
            None => return Ok(()),
        }
    }
    let joined = Record { state: State::Joined, ..record.clone() };
    if store.replace(stored, joined).await?.is_some() {
        tracing::info!(node = record.claim, instance = record.provider_id(), "node joined");
        return Ok(());
    }
    // Another process registered the node, or a termination came first. In the second case the next round deletes the node.
    provider.wake.notify_one();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_round_is_when_a_node_is_due_and_at_the_latest_at_the_resync() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let resync = Duration::from_secs(10);
        assert_eq!(until(None, at(100), resync), resync);
        assert_eq!(until(Some(at(103)), at(100), resync), Duration::from_secs(3));
        assert_eq!(until(Some(at(1000)), at(100), resync), resync);
        assert_eq!(until(Some(at(90)), at(100), resync), Duration::from_millis(1));
    }

    #[test]
    fn only_own_nodes_without_an_instance_are_lost() {
        let record = crate::record::tests::record();
        let mut node = node::node(&record, "poolwright-kwok", record.due);
        assert!(is_lost(&node, &BTreeSet::new()));
        assert!(!is_lost(&node, &BTreeSet::from([record.provider_id()])));
        for other in [None, Some("aws:///us-east-1a/i-0f3a")] {
            node.spec.as_mut().expect("a spec").provider_id = other.map(str::to_owned);
            assert!(!is_lost(&node, &BTreeSet::new()), "{other:?}");
        }
    }
}
