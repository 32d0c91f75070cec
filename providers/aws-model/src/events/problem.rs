//! Why a message is unreadable, or of no interest.

use std::fmt;

/// Why a message cannot be read, or is not believed. What it repeats of the message is short and escaped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// More than a queue takes.
    #[error("a message of {bytes} bytes is more than the 1 MiB that SQS takes")]
    TooLarge {
        /// How many bytes.
        bytes: usize,
    },
    /// Not text.
    #[error("a message is not UTF-8 from byte {at} on")]
    NotUtf8 {
        /// The first byte that is none.
        at: usize,
    },
    /// Not a JSON object, or one with a key twice, or too deep.
    #[error("a message is not a JSON object that can be read: {cause}; it begins with `{excerpt}`")]
    NotJson {
        /// What the reader says.
        cause: String,
        /// The beginning.
        excerpt: String,
    },
    /// SNS in SNS.
    #[error(
        "a message is wrapped by SNS twice; subscribe the queue to one topic, or send EventBridge's events to it directly"
    )]
    WrappedTwice,
    /// A field that is needed.
    #[error(
        "a message has no field `{field}`; the queue takes events of EventBridge as they are, without an input transformer"
    )]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// A field of another type.
    #[error("the field `{field}` of a message is not {expected}")]
    WrongType {
        /// The field.
        field: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A value that means nothing.
    #[error("the field `{field}` of a message is `{found}`, which is not {expected}")]
    BadValue {
        /// The field.
        field: &'static str,
        /// Its beginning.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
    /// About somebody else, or forged.
    #[error(
        "a message is about the {what} `{found}` and this is `{expected}`: it is not acted on; see who may send to the queue, and that its \
         rules are of this account and region"
    )]
    Foreign {
        /// Account or region.
        what: &'static str,
        /// What the message says.
        found: String,
        /// What it should say.
        expected: String,
    },
}

/// Why a message that can be read is of no interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// It is not from EC2 or AWS Health.
    Source(String),
    /// It is another kind of event.
    DetailType(String),
    /// The instance starts, or runs.
    State(&'static str),
    /// AWS Health about another service.
    Service(String),
    /// AWS Health about something that is not a scheduled change.
    Category(String),
    /// AWS Health about a change that is over.
    Closed,
    /// AWS Health about no instance.
    NoInstances,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(source) => write!(f, "its source is {source}"),
            Self::DetailType(kind) => write!(f, "nothing follows from events of the type {kind}"),
            Self::State(state) => write!(f, "the instance is {state}"),
            Self::Service(service) => write!(f, "it is about the service {service}"),
            Self::Category(category) => write!(f, "it is of the category {category}"),
            Self::Closed => f.write_str("the change is over"),
            Self::NoInstances => f.write_str("it names no instance"),
        }
    }
}
