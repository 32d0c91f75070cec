//! The queue of interruptions: what EventBridge puts there, read and given back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::types::DeleteMessageBatchRequestEntry;
use poolwright_provider_aws_model::events::{
    self, Action, Affected, EndState, EventDetail, Kind, Message, Scope,
};
use poolwright_provider_aws_model::{AccountId, InstanceId, Region, polled};
use poolwright_provider_contract::{Interruption, InterruptionMessage, ProviderError};
use poolwright_terms::InterruptionKind;
use tokio::sync::OnceCell;

use crate::clients::Clients;
use crate::error::{code, provider_error};
use crate::instances;

/// SQS waits at most this long for a message: a long poll, which asks all that hold messages.
pub(crate) const LONG_POLL_SECONDS: i32 = 20;
/// As long as this is enough for a poll to be one, where there are messages.
pub(crate) const SHORT_POLL_SECONDS: i32 = 1;
/// As many messages as one answer may have.
const MAX_MESSAGES: i32 = 10;
/// For how long a message that was received is not given to anybody else: long against recording it, short against its deadline.
const VISIBILITY_TIMEOUT_SECONDS: i32 = 30;
/// An answer may be as late as SQS waits, and then some.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(40);

/// The queue.
pub(crate) struct Queue {
    /// Its name, or its URL.
    name: String,
    url: OnceCell<String>,
    scope: OnceCell<Scope>,
    /// Messages that could not be read or believed, and nobody has counted yet.
    unreadable: AtomicU64,
}

/// What one answer said.
pub(crate) struct Received {
    pub messages: Vec<InterruptionMessage>,
    /// Whether it had as many messages as it may have.
    pub is_full: bool,
}

impl Queue {
    pub fn new(name: String) -> Self {
        Self { name, url: OnceCell::new(), scope: OnceCell::new(), unreadable: AtomicU64::new(0) }
    }

    /// Messages that could not be read or believed since this was asked last.
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

    /// Whose events are believed: this account's, in this region.
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

    /// What is there, after at most so many seconds, and what the answer takes.
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
        let mut messages = Vec::new();
        for message in answer.messages() {
            let Some(receipt) = message.receipt_handle() else { continue };
            let body = message.body().unwrap_or_default();
            match events::read(body.as_bytes(), scope) {
                Ok(Message::Event(event)) => {
                    let noticed = event.at;
                    let interruptions = match event.detail {
                        EventDetail::Instances(affected) => {
                            affected.into_iter().map(|one| interruption(one, noticed)).collect()
                        }
                        EventDetail::CapacityBlockEnds { reservation, end } => {
                            let ids =
                                instances::in_reservation(&clients.ec2, cluster, reservation.as_str()).await;
                            match ids {
                                Ok(ids) => ids.into_iter().map(|id| block_ends(&id, noticed, end)).collect(),
                                // It comes again; the others of this answer need not wait for it.
                                Err(error) => {
                                    tracing::warn!(%error, %reservation, "whose capacity block ends is not known yet");
                                    continue;
                                }
                            }
                        }
                    };
                    messages.push(InterruptionMessage { receipt: Some(receipt.to_owned()), interruptions });
                }
                Ok(Message::Ignored(why)) => {
                    tracing::debug!(%why, "a message of no interest");
                    messages.push(InterruptionMessage {
                        receipt: Some(receipt.to_owned()),
                        interruptions: Vec::new(),
                    });
                }
                // Left where it is: SQS moves it to the dead letters after as many deliveries as the queue says.
                Err(error) => {
                    self.unreadable.fetch_add(1, Ordering::Relaxed);
                    let why = "a message that cannot be read or believed stays in the queue, until it is a dead letter";
                    tracing::warn!(queue = self.name, %error, "{why}");
                }
            }
        }
        Ok(Received {
            messages,
            is_full: answer.messages().len() >= usize::try_from(MAX_MESSAGES).unwrap_or(1),
        })
    }

    /// Deletes what was received with these receipts.
    pub async fn delete(&self, clients: &Clients, receipts: &[String]) -> Result<(), ProviderError> {
        let url = self.url(clients).await?;
        for some in receipts.chunks(usize::try_from(MAX_MESSAGES).unwrap_or(1)) {
            let entries = some
                .iter()
                .enumerate()
                .map(|(index, receipt)| {
                    DeleteMessageBatchRequestEntry::builder()
                        .id(index.to_string())
                        .receipt_handle(receipt)
                        .build()
                })
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| ProviderError::Invalid(format!("sqs:DeleteMessage: {error}")))?;
            // What could not be deleted comes again, which does no harm.
            clients
                .sqs
                .delete_message_batch()
                .queue_url(url)
                .set_entries(Some(entries))
                .send()
                .await
                .map_err(|error| provider_error("sqs:DeleteMessage", error))?;
        }
        Ok(())
    }
}

/// Whether a code of SQS says that there is no such queue: the first is of its older protocol.
fn is_missing(code: &str) -> bool {
    code.contains("NonExistentQueue") || code.contains("QueueDoesNotExist")
}

/// Refuses a queue of another account or region: what comes through it is about somebody else, and would not be believed.
/// The addresses of queues: <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-queue-message-identifiers.html>.
fn check_owner(url: &str, scope: &Scope) -> Result<(), ProviderError> {
    let address = url.split_once("://").map_or(url, |(_, address)| address);
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    let account = path.split('/').next().and_then(|account| account.parse::<AccountId>().ok());
    let region = host.strip_prefix("sqs.").and_then(|rest| rest.split('.').next()?.parse::<Region>().ok());
    let refused = |what: &str, found: &str, here: &str| {
        Err(ProviderError::Invalid(format!(
            "the queue {url} is of the {what} {found}, and these credentials are of {here}: only events of this {what} are acted on. \
             Create a queue here as docs/aws.md says, and correct --aws-interruption-queue"
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

/// What an event says of one instance, in the words of the contract.
pub(crate) fn interruption(affected: Affected, noticed: jiff::Timestamp) -> Interruption {
    let Affected { instance, kind, deadline } = affected;
    let done = |action: Action| match action {
        Action::Terminate => "terminated",
        Action::Stop => "stopped",
        Action::Hibernate => "hibernated",
    };
    let (kind, message) = match kind {
        Kind::SpotInterruption(action) => {
            (InterruptionKind::Reclaim, format!("EC2 takes the spot instance back: it is {}", done(action)))
        }
        Kind::ReservationInterruption(action) => (
            InterruptionKind::ReservationReclaim,
            format!("the owner of the capacity reservation takes it back: the instance is {}", done(action)),
        ),
        Kind::RebalanceRecommendation => (
            InterruptionKind::Rebalance,
            "EC2 recommends to move: it is likelier than usual that it takes the spot instance back"
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

/// The end of a capacity block, to one instance in it.
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
            "the capacity block ends at {end}, and EC2 terminates what runs in it half an hour before"
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
