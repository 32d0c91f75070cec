//! What arrives on the queue of interruptions: EventBridge's envelopes around what EC2 and AWS Health have to say.
//!
//! Anybody who may write to the queue can write anything there, so a message is believed about this account and this region
//! alone, and read strictly: a key that is there twice, a field of another type or a date that is none make it unreadable. What
//! `resources` says is never looked at: AWS's own examples disagree about what is in it.
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

/// The most bytes of a message: what SQS takes (1 MiB since August 2025, 256 KiB before).
pub const MAX_BYTES: usize = 1 << 20;

/// How long before it takes an instance back EC2 says so.
pub(crate) const NOTICE: SignedDuration = SignedDuration::from_secs(120);

/// Whose events are believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The account that the instances are in.
    pub account: AccountId,
    /// The region that they are in.
    pub region: Region,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Something happens.
    Event(Event),
    /// Nothing that matters here: the message can be deleted.
    Ignored(Ignored),
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event's id: the same when it is delivered twice.
    pub id: String,
    /// The account it is about.
    pub account: AccountId,
    /// The region it is about.
    pub region: Region,
    /// When it was sent, by AWS's clock.
    pub at: Timestamp,
    /// What happens.
    pub detail: EventDetail,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventDetail {
    /// To instances, in the order of their ids, each once; at least one.
    Instances(Vec<Affected>),
    /// A Capacity Block ends. EC2 begins to terminate its instances half an hour before.
    CapacityBlockEnds {
        /// The reservation.
        reservation: CapacityReservationId,
        /// When it ends.
        end: Timestamp,
    },
}

/// What happens to one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affected {
    /// The instance.
    pub instance: InstanceId,
    /// What.
    pub kind: Kind,
    /// When it happens, where that is known.
    pub deadline: Option<Timestamp>,
}

/// What happens to an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// EC2 takes a spot instance back.
    SpotInterruption(Action),
    /// The owner of an interruptible capacity reservation takes it back.
    ReservationInterruption(Action),
    /// EC2 thinks it likelier than usual that it will take the instance back.
    RebalanceRecommendation,
    /// It is on its way out, or gone.
    State(EndState),
    /// Maintenance or retirement, by the code that AWS Health has for it: `AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED`.
    ScheduledChange {
        /// The code.
        code: String,
    },
}

/// What EC2 does to an instance that it takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// It is terminated.
    Terminate,
    /// It is stopped.
    Stop,
    /// It is hibernated, which begins at once.
    Hibernate,
}

/// States of an instance that does no more work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndState {
    /// It is being stopped.
    Stopping,
    /// It is stopped.
    Stopped,
    /// It is being terminated.
    ShuttingDown,
    /// It is gone.
    Terminated,
}

/// Reads the body of a message. Errors are of messages that will never be readable: they can be deleted after they were counted.
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
