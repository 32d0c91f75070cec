//! The SQS queue to which EventBridge sends events of instances.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message as SqsMessage};
use futures::future::join_all;
use poolwright_provider_aws_model::events::{
    self, Action, Affected, EndState, EventDetail, Kind, Message, Scope,
};
use poolwright_provider_aws_model::{AccountId, InstanceId, Region, polled};
use poolwright_provider_contract::{Interruption, InterruptionMessage, ProviderError};
use poolwright_terms::InterruptionKind;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::clients::Clients;
use crate::error::{code, provider_error};
use crate::instances;

/// The wait of a long poll, in seconds. SQS allows no more.
pub(crate) const LONG_POLL_SECONDS: i32 = 20;
/// The wait while the queue has messages, in seconds. Any wait above zero makes SQS query all of its servers.
pub(crate) const SHORT_POLL_SECONDS: i32 = 1;
/// The number of messages in one answer. SQS allows no more.
const MAX_MESSAGES: i32 = 10;
/// The number of messages that one call deletes. SQS allows no more.
const MAX_DELETIONS: usize = 10;
/// The number of concurrent delete calls.
const CONCURRENT_DELETES: usize = 8;
/// How long SQS hides a received message from other calls, in seconds. Storing an interruption takes less, and a deadline leaves
/// more.
const VISIBILITY_TIMEOUT_SECONDS: i32 = 30;
/// The timeout of a receive call. It is longer than a long poll.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(40);
/// The timeout of looking up the instances of a capacity block, because the other messages of the answer wait for it.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The queue.
pub(crate) struct Queue {
    /// The name or the URL.
    name: String,
    url: OnceCell<String>,
    scope: OnceCell<Scope>,
    /// The number of messages that could not be parsed or trusted, since it was last read.
    unreadable: AtomicU64,
}

/// The messages of one answer.
pub(crate) struct Received {
    pub messages: Vec<InterruptionMessage>,
    /// Whether the answer had no message, not even one that cannot be read.
    pub is_empty: bool,
}

impl Queue {
    pub fn new(name: String) -> Self {
        Self { name, url: OnceCell::new(), scope: OnceCell::new(), unreadable: AtomicU64::new(0) }
    }

    /// Returns the number of messages since the last call that could not be parsed or trusted.
    pub fn unreadable(&self) -> u64 {
        self.unreadable.swap(0, Ordering::Relaxed)
    }

    async fn url(&self, clients: &Clients) -> Result<&str, ProviderError> {
        let url = self.url.get_or_try_init(async || {
            if self.name.starts_with("https://") || self.name.starts_with("http://") {
                return Ok(self.name.clone());
            }
            let found = clients.sqs.get_queue_url().queue_name(&self.name).send().await;
            match found {
                Ok(found) => Ok(found.queue_url().unwrap_or_default().to_owned()),
                Err(error) if code(&error).is_some_and(is_missing) => Err(self.missing(clients)),
                Err(error) => Err(provider_error("sqs:GetQueueUrl", error)),
            }
        });
        Ok(url.await?)
    }

    fn missing(&self, clients: &Clients) -> ProviderError {
        ProviderError::Invalid(format!(
            "there is no SQS queue `{}` in {} of this account: create it as docs/aws.md says, or correct --aws-interruption-queue",
            self.name, clients.region
        ))
    }

    /// Returns the account and region whose events the provider trusts: its own.
    async fn scope(&self, clients: &Clients) -> Result<&Scope, ProviderError> {
        let scope = self.scope.get_or_try_init(async || {
            let identity = clients
                .sts
                .get_caller_identity()
                .send()
                .await
                .map_err(|error| provider_error("sts:GetCallerIdentity", error))?;
            let unusable = |error: &dyn std::fmt::Display| {
                ProviderError::Invalid(format!("sts:GetCallerIdentity: {error}"))
            };
            let account: AccountId =
                identity.account().unwrap_or_default().parse().map_err(|error| unusable(&error))?;
            let region: Region = clients.region.parse().map_err(|error| unusable(&error))?;
            Ok(Scope { account, region })
        });
        scope.await
    }

    /// Waits at most `wait` seconds for messages and parses them.
    pub async fn receive(
        &self,
        clients: &Clients,
        cluster: &str,
        wait: i32,
    ) -> Result<Received, ProviderError> {
        let (url, scope) = futures::try_join!(self.url(clients), self.scope(clients))?;
        check_owner(url, scope)?;
        let patient = TimeoutConfig::builder().operation_attempt_timeout(RECEIVE_TIMEOUT).build();
        let answer = clients
            .sqs
            .receive_message()
            .queue_url(url)
            .max_number_of_messages(MAX_MESSAGES)
            .wait_time_seconds(wait)
            .visibility_timeout(VISIBILITY_TIMEOUT_SECONDS)
            .customize()
            .config_override(aws_sdk_sqs::config::Config::builder().timeout_config(patient))
            .send()
            .await
            .map_err(|error| match code(&error) {
                Some(code) if is_missing(code) => self.missing(clients),
                _ => provider_error("sqs:ReceiveMessage", error),
            })?;
        let reading = answer.messages().iter().map(|message| self.read(clients, cluster, scope, message));
        Ok(Received {
            messages: join_all(reading).await.into_iter().flatten().collect(),
            is_empty: answer.messages().is_empty(),
        })
    }

    /// Parses a message. Returns `None` for one that stays in the queue.
    async fn read(
        &self,
        clients: &Clients,
        cluster: &str,
        scope: &Scope,
        message: &SqsMessage,
    ) -> Option<InterruptionMessage> {
        let receipt = Some(message.receipt_handle()?.to_owned());
        let interruptions = match events::read(message.body().unwrap_or_default().as_bytes(), scope) {
            Ok(Message::Event(event)) => {
                let noticed = event.at;
                match event.detail {
                    EventDetail::Instances(affected) => {
                        affected.into_iter().map(|one| interruption(one, noticed)).collect()
                    }
                    EventDetail::CapacityBlockEnds { reservation, end } => {
                        let ids = instances::in_reservation(&clients.ec2, cluster, reservation.as_str());
                        let ids = timeout(LOOKUP_TIMEOUT, ids).await.unwrap_or_else(|_| {
                            let why = format!("ec2:DescribeInstances: no answer within {LOOKUP_TIMEOUT:?}");
                            Err(ProviderError::Transient(why))
                        });
                        match ids {
                            Ok(ids) => ids.into_iter().map(|id| block_ends(&id, noticed, end)).collect(),
                            Err(error) => {
                                tracing::warn!(%error, %reservation, "the instances of an ending capacity block could not be listed; \
                                               SQS delivers the message again");
                                return None;
                            }
                        }
                    }
                }
            }
            Ok(Message::Ignored(why)) => {
                tracing::debug!(%why, "message ignored");
                Vec::new()
            }
            // Leave the message in the queue. SQS moves it to the dead-letter queue after the configured number of deliveries.
            Err(error) => {
                self.unreadable.fetch_add(1, Ordering::Relaxed);
                let why = "a message that cannot be parsed or trusted stays in the queue until it moves to the dead-letter queue";
                tracing::warn!(queue = self.name, %error, "{why}");
                return None;
            }
        };
        Some(InterruptionMessage { receipt, interruptions })
    }

    /// Deletes messages by their receipts. Returns the first error; the other messages are deleted all the same. SQS delivers a
    /// message that was not deleted again, which does no harm.
    pub async fn delete(&self, clients: &Clients, receipts: &[String]) -> Result<(), ProviderError> {
        let url = self.url(clients).await?;
        let mut result = Ok(());
        for some in receipts.chunks(MAX_DELETIONS * CONCURRENT_DELETES) {
            let calls = some.chunks(MAX_DELETIONS).map(|batch| delete_batch(clients, url, batch));
            result = join_all(calls).await.into_iter().fold(result, Result::and);
        }
        result
    }
}

/// Deletes messages with one call.
async fn delete_batch(clients: &Clients, url: &str, receipts: &[String]) -> Result<(), ProviderError> {
    let entries = receipts
        .iter()
        .enumerate()
        .map(|(index, receipt)| {
            DeleteMessageBatchRequestEntry::builder().id(index.to_string()).receipt_handle(receipt).build()
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| ProviderError::Invalid(format!("sqs:DeleteMessage: {error}")))?;
    let call = clients.sqs.delete_message_batch().queue_url(url).set_entries(Some(entries)).send();
    call.await.map(drop).map_err(|error| provider_error("sqs:DeleteMessage", error))
}

/// Returns whether an error code of SQS means that the queue does not exist. The first code belongs to the older protocol.
fn is_missing(code: &str) -> bool {
    code.contains("NonExistentQueue") || code.contains("QueueDoesNotExist")
}

/// Rejects a queue of another account or region, because its events concern other instances. For the format of queue URLs see
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-queue-message-identifiers.html>.
fn check_owner(url: &str, scope: &Scope) -> Result<(), ProviderError> {
    let address = url.split_once("://").map_or(url, |(_, address)| address);
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    let account = path.split('/').next().and_then(|account| account.parse::<AccountId>().ok());
    let region = host.strip_prefix("sqs.").and_then(|rest| rest.split('.').next()?.parse::<Region>().ok());
    let refused = |what: &str, found: &str, here: &str| {
        Err(ProviderError::Invalid(format!(
            "the queue {url} belongs to {what} {found}, but Poolwright uses {what} {here} and ignores events of any other: create a queue \
             there as docs/aws.md says, and correct --aws-interruption-queue"
        )))
    };
    match (account, region) {
        (Some(account), _) if account != scope.account => {
            refused("account", account.as_str(), scope.account.as_str())
        }
        (_, Some(region)) if region != scope.region => {
            refused("region", region.as_str(), scope.region.as_str())
        }
        _ => Ok(()),
    }
}

/// Converts the part of an event about one instance to an interruption.
pub(crate) fn interruption(affected: Affected, noticed: jiff::Timestamp) -> Interruption {
    let Affected { instance, kind, deadline } = affected;
    let done = |action: Action| match action {
        Action::Terminate => "terminated",
        Action::Stop => "stopped",
        Action::Hibernate => "hibernated",
    };
    let (kind, message) = match kind {
        Kind::SpotInterruption(action) => {
            (InterruptionKind::Reclaim, format!("EC2 reclaims the spot instance: it is {}", done(action)))
        }
        Kind::ReservationInterruption(action) => (
            InterruptionKind::ReservationReclaim,
            format!("the owner of the capacity reservation reclaims it: the instance is {}", done(action)),
        ),
        Kind::RebalanceRecommendation => (
            InterruptionKind::Rebalance,
            "EC2 recommends a rebalance: the risk that it reclaims this spot instance is higher than usual"
                .to_owned(),
        ),
        Kind::State(state) => {
            let state = match state {
                EndState::Stopping => "is being stopped",
                EndState::Stopped => "is stopped",
                EndState::ShuttingDown => "is being terminated",
                EndState::Terminated => "is terminated",
            };
            (InterruptionKind::Ending, format!("the instance {state}"))
        }
        Kind::ScheduledChange { code } => (InterruptionKind::Maintenance, format!("AWS Health: {code}")),
    };
    Interruption { instance: instance.to_string(), kind, noticed, deadline, message }
}

/// Makes the interruption of an instance whose capacity block ends.
pub(crate) fn block_ends(
    instance: &InstanceId,
    noticed: jiff::Timestamp,
    end: jiff::Timestamp,
) -> Interruption {
    Interruption {
        instance: instance.to_string(),
        kind: InterruptionKind::ReservationEnd,
        noticed,
        deadline: Some(polled::capacity_block_termination(end)),
        message: format!(
            "the capacity block ends at {end}; EC2 terminates its instances half an hour earlier"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_of_another_account_or_region_is_refused_by_its_address() {
        let scope = Scope {
            account: "123456789012".parse().expect("an account"),
            region: "us-east-1".parse().expect("a region"),
        };
        let told = |url: &str| check_owner(url, &scope).map_err(|error| error.to_string());
        for ours in [
            "https://sqs.us-east-1.amazonaws.com/123456789012/events",
            "https://us-east-1.queue.amazonaws.com/123456789012/events",
            "https://vpce-0.sqs.us-east-1.vpce.amazonaws.com/123456789012/events",
            "http://127.0.0.1:5000/123456789012/events",
            "http://127.0.0.1:5000/queue/events",
        ] {
            assert_eq!(told(ours), Ok(()), "{ours}");
        }
        let other = told("https://sqs.us-east-1.amazonaws.com/999999999999/events").unwrap_err();
        assert!(other.contains("account 999999999999") && other.contains("123456789012"), "{other}");
        let other = told("https://sqs.eu-west-1.amazonaws.com/123456789012/events").unwrap_err();
        assert!(other.contains("region eu-west-1") && other.contains("--aws-interruption-queue"), "{other}");
    }
}
