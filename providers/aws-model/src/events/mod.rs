//! Parses the messages of the interruption queue: EventBridge events of EC2 and AWS Health.
//!
//! Anyone with permission to send to the queue can send anything. So the parser accepts only events of this account and region,
//! and it is strict: a duplicate key, a field of another type or an invalid date makes a message unreadable. It ignores the field
//! `resources`, because AWS's own examples disagree about its content.
//!
//! Sources: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instance-state-changes.html>,
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html>,
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html>,
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitor-interruptible-cr.html>,
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-monitor.html>,
//! <https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html>.

mod detail;
mod envelope;
mod fields;
mod problem;
mod strict;

use jiff::{SignedDuration, Timestamp};

use crate::account::{AccountId, CapacityReservationId, Region};
use crate::id::InstanceId;

pub use envelope::known;
pub use problem::{Ignored, Unreadable};

/// The maximum size of a message in bytes. SQS allows 1 MiB since August 2025, and 256 KiB before.
pub const MAX_BYTES: usize = 1 << 20;

/// How long before a spot interruption EC2 sends its warning.
pub(crate) const NOTICE: SignedDuration = SignedDuration::from_secs(120);

/// The account and region whose events are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The account of the instances.
    pub account: AccountId,
    /// The region of the instances.
    pub region: Region,
}

/// A parsed message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// An event that matters.
    Event(Event),
    /// An event that does not matter. Delete the message.
    Ignored(Ignored),
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The id of the event. It stays the same when the event is delivered again.
    pub id: String,
    /// The account.
    pub account: AccountId,
    /// The region.
    pub region: Region,
    /// The time at which AWS sent the event.
    pub at: Timestamp,
    /// The content of the event.
    pub detail: EventDetail,
}

/// The content of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventDetail {
    /// An event about instances. The list has no duplicates, is in the order of the ids, and is never empty.
    Instances(Vec<Affected>),
    /// The end of a Capacity Block. EC2 starts to terminate its instances half an hour earlier.
    CapacityBlockEnds {
        /// The reservation.
        reservation: CapacityReservationId,
        /// The end.
        end: Timestamp,
    },
}

/// An event about one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affected {
    /// The instance.
    pub instance: InstanceId,
    /// The kind of event.
    pub kind: Kind,
    /// The time of the interruption, if it is known.
    pub deadline: Option<Timestamp>,
}

/// The kind of an event about an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// EC2 reclaims a spot instance.
    SpotInterruption(Action),
    /// The owner of an interruptible capacity reservation reclaims it.
    ReservationInterruption(Action),
    /// EC2 reports an elevated risk of a spot interruption.
    RebalanceRecommendation,
    /// The instance is stopping, terminating or gone.
    State(EndState),
    /// Maintenance or retirement, with the code of AWS Health: `AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED`.
    ScheduledChange {
        /// The code.
        code: String,
    },
}

/// The action by which EC2 reclaims an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// EC2 terminates the instance.
    Terminate,
    /// EC2 stops the instance.
    Stop,
    /// EC2 hibernates the instance. The hibernation starts at once.
    Hibernate,
}

/// The states of an instance that no longer runs pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndState {
    /// The instance is stopping.
    Stopping,
    /// The instance is stopped.
    Stopped,
    /// The instance is terminating.
    ShuttingDown,
    /// The instance is terminated.
    Terminated,
}

/// Parses the body of a message.
///
/// # Errors
///
/// The message is unreadable, and always will be. You may delete it after you have counted it.
pub fn read(body: &[u8], scope: &Scope) -> Result<Message, Unreadable> {
    if body.len() > MAX_BYTES {
        return Err(Unreadable::TooLarge { bytes: body.len() });
    }
    let text = std::str::from_utf8(body).map_err(|error| Unreadable::NotUtf8 { at: error.valid_up_to() })?;
    let outer = strict::object(text)?;
    let Some(inner) = fields::wrapped_by_sns(&outer)? else { return message(&outer, scope) };
    let inner = strict::object(inner)?;
    if fields::wrapped_by_sns(&inner)?.is_some() {
        return Err(Unreadable::WrappedTwice);
    }
    message(&inner, scope)
}

fn message(object: &strict::Object, scope: &Scope) -> Result<Message, Unreadable> {
    let envelope = match envelope::read(object, scope)? {
        Ok(envelope) => envelope,
        Err(ignored) => return Ok(Message::Ignored(ignored)),
    };
    Ok(match detail::read(&envelope, scope)? {
        Err(ignored) => Message::Ignored(ignored),
        Ok(detail) => Message::Event(Event {
            id: envelope.id.to_owned(),
            account: scope.account.clone(),
            region: scope.region.clone(),
            at: envelope.at,
            detail,
        }),
    })
}
