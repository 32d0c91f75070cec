//! Interruptions: the events by which a cloud announces that an instance stops, fails or undergoes maintenance.

use jiff::Timestamp;
use poolwright_terms::InterruptionKind;

/// An interruption of one instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interruption {
    /// The cloud's id of the instance, which is the last part of the provider id: `i-0f3a` in `aws:///us-east-1a/i-0f3a`.
    pub instance: String,
    /// The kind of interruption.
    pub kind: InterruptionKind,
    /// The time of the announcement, by the cloud's clock.
    pub noticed: Timestamp,
    /// The time at which the interruption happens; `None` if the cloud does not state one.
    pub deadline: Option<Timestamp>,
    /// A description for people, in one sentence.
    pub message: String,
}

/// One message of a cloud. It may contain interruptions of several instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterruptionMessage {
    /// The receipt that you pass to [`crate::CloudProvider::acknowledge`] after you have stored all interruptions, or have found
    /// that none of them concerns the cluster; `None` if the message needs no acknowledgement.
    pub receipt: Option<String>,
    /// The interruptions. The list is empty if the message concerns no instance; acknowledge such a message at once.
    pub interruptions: Vec<Interruption>,
}

/// Returns the cloud's id of an instance, given its provider id.
pub fn instance_of(provider_id: &str) -> &str {
    provider_id.rsplit('/').next().unwrap_or(provider_id)
}
