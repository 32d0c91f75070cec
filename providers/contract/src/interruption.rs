//! What a cloud says about machines of its own accord: that it takes one back, that one is about to be serviced, that one fails.

use jiff::Timestamp;
use poolwright_terms::InterruptionKind;

/// What a cloud says about one machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interruption {
    /// The cloud's own id of the machine: the last part of its provider id (`i-0f3a` of `aws:///us-east-1a/i-0f3a`).
    pub instance: String,
    /// What is going to happen.
    pub kind: InterruptionKind,
    /// When the cloud said so, by the cloud's clock.
    pub noticed: Timestamp,
    /// When it happens; `None` where the cloud does not say.
    pub deadline: Option<Timestamp>,
    /// What it says, in a sentence for people.
    pub message: String,
}

/// One message of a cloud, which may be about several machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterruptionMessage {
    /// What is given back when all of it is durably recorded, or is known to be about nothing of ours; `None` where the cloud wants
    /// nothing back.
    pub receipt: Option<String>,
    /// What it says. None, where there is nothing in it that matters: then it is given back at once.
    pub interruptions: Vec<Interruption>,
}

/// The cloud's own id of a machine, in its provider id.
pub fn instance_of(provider_id: &str) -> &str {
    provider_id.rsplit('/').next().unwrap_or(provider_id)
}
