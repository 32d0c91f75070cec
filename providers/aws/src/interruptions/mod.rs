//! Interruptions of instances, from two sources: the SQS queue, and polling of EC2.
//!
//! SQS delivers messages to the caller of ReceiveMessage even if the caller has stopped waiting, and then hides them from others
//! for a while. A call to the queue therefore continues in the background until the next caller takes its result.

mod health;
mod poll;
mod queue;

use std::sync::Arc;
use std::time::Duration;

use poolwright_provider_contract::{Clock, InterruptionMessage, NodeClassCondition, ProviderError};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::clients::Clients;
use crate::settings::Settings;

use health::QueueHealth;
use poll::Poller;
use queue::{Queue, Received};

/// The default interval between two polls of EC2. It is shorter than a spot warning, which is two minutes.
const POLL_INTERVAL: Duration = Duration::from_mins(1);

/// The largest number of concurrent receive calls. When EC2 reclaims a whole zone, many warnings arrive at once, and each must be
/// handled within two minutes.
const CONCURRENT_RECEIVES: usize = 8;

/// The two sources, and the calls that are in flight.
pub(crate) struct Interruptions {
    clients: Clients,
    cluster: String,
    now: Clock,
    queue: Option<(Arc<Queue>, Arc<QueueHealth>)>,
    poller: Arc<Poller>,
    receives: Mutex<Receives>,
    polls: Mutex<JoinSet<Vec<InterruptionMessage>>>,
}

/// The receive calls in flight.
#[derive(Default)]
struct Receives {
    calls: JoinSet<Result<Received, ProviderError>>,
    /// How many more calls than one to have in flight.
    extra: usize,
}

impl Receives {
    /// Doubles the number of calls with each answer that has messages. The next one may have more of them, even if this one is not
    /// full: SQS often returns fewer messages than it has.
    fn answered(&mut self, is_empty: bool) {
        self.extra = if is_empty { 0 } else { (self.extra * 2 + 1).min(CONCURRENT_RECEIVES - 1) };
    }
}

impl Interruptions {
    pub fn new(clients: &Clients, settings: &Settings, now: Clock) -> Self {
        Self {
            clients: clients.clone(),
            cluster: settings.cluster.clone(),
            queue: settings
                .queue
                .as_ref()
                .map(|name| (Arc::new(Queue::new(name.clone())), Arc::new(QueueHealth::new(name.clone())))),
            poller: Arc::new(Poller::new(
                clients.ec2.clone(),
                settings.cluster.clone(),
                Arc::clone(&now),
                POLL_INTERVAL,
            )),
            now,
            receives: Mutex::default(),
            polls: Mutex::default(),
        }
    }

    pub fn set_poll_interval(&mut self, pause: Duration) {
        self.poller = Arc::new(self.poller.every(pause));
    }

    /// Waits for the next messages from either source.
    pub async fn interruptions(&self) -> Result<Vec<InterruptionMessage>, ProviderError> {
        tokio::select! {
            biased;
            seen = self.polled() => Ok(seen),
            heard = self.received() => heard,
        }
    }

    async fn polled(&self) -> Vec<InterruptionMessage> {
        let mut polls = self.polls.lock().await;
        loop {
            if polls.is_empty() {
                let poller = Arc::clone(&self.poller);
                polls.spawn(async move { poller.next().await });
            }
            match polls.join_next().await {
                Some(Ok(seen)) if !seen.is_empty() => return seen,
                Some(Err(error)) => {
                    tracing::error!(%error, "the task that polls EC2 for interruptions failed");
                }
                _ => {}
            }
        }
    }

    async fn received(&self) -> Result<Vec<InterruptionMessage>, ProviderError> {
        let Some((queue, health)) = &self.queue else { return std::future::pending().await };
        let mut receives = self.receives.lock().await;
        let wait = if receives.extra > 0 { queue::SHORT_POLL_SECONDS } else { queue::LONG_POLL_SECONDS };
        while receives.calls.len() <= receives.extra {
            let (queue, clients, cluster) = (Arc::clone(queue), self.clients.clone(), self.cluster.clone());
            let (health, now) = (Arc::clone(health), Arc::clone(&self.now));
            receives.calls.spawn(async move {
                let result = queue.receive(&clients, &cluster, wait).await;
                health.record_receive(&result, now());
                result
            });
        }
        match receives.calls.join_next().await {
            Some(Ok(Ok(heard))) => {
                receives.answered(heard.is_empty);
                Ok(heard.messages)
            }
            Some(Ok(Err(error))) => {
                receives.answered(true);
                Err(error)
            }
            Some(Err(error)) => Err(ProviderError::Transient(format!(
                "the task that calls sqs:ReceiveMessage failed: {error}"
            ))),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the polling errors since the last call. They do not come from [`Self::interruptions`], because its caller pauses
    /// after an error, and that would delay the queue.
    pub fn failures(&self) -> Vec<ProviderError> {
        self.poller.failures()
    }

    /// Returns the number of messages since the last call that could not be parsed or trusted.
    pub fn unreadable(&self) -> u64 {
        self.queue.as_ref().map_or(0, |(queue, _)| queue.unreadable())
    }

    /// Returns the condition of the queue; `None` if no queue is configured.
    pub fn condition(&self) -> Option<NodeClassCondition> {
        self.queue.as_ref().map(|(_, health)| health.condition((self.now)()))
    }

    pub async fn acknowledge(&self, receipts: &[String]) -> Result<(), ProviderError> {
        let (seen, heard): (Vec<String>, Vec<String>) =
            receipts.iter().cloned().partition(|receipt| Poller::is_receipt(receipt));
        self.poller.acknowledge(seen);
        match &self.queue {
            Some((queue, health)) if !heard.is_empty() => {
                let result = queue.delete(&self.clients, &heard).await;
                health.record_delete(&result);
                result
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_with_messages_is_read_by_up_to_eight_calls_at_once_and_an_empty_one_by_one() {
        let mut receives = Receives::default();
        let calls = [false, false, false, false, false, true, false].map(|is_empty| {
            receives.answered(is_empty);
            receives.extra + 1
        });
        assert_eq!(calls, [2, 4, 8, 8, 8, 1, 2]);
    }
}
