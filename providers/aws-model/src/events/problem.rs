//! Errors of unreadable messages, and reasons to ignore readable ones.

use std::fmt;

/// The reason why a message cannot be parsed or is not trusted. Excerpts of the message are short and escaped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The message is larger than SQS allows.
    #[error("a message has {bytes} bytes, and SQS allows 1 MiB")]
    TooLarge {
        /// The size in bytes.
        bytes: usize,
    },
    /// The message is not UTF-8.
    #[error("a message is not UTF-8 from byte {at} on")]
    NotUtf8 {
        /// The position of the first invalid byte.
        at: usize,
    },
    /// The message is not a JSON object, has a duplicate key, or is nested too deeply.
    #[error("a message is not a valid JSON object: {cause}; it begins with `{excerpt}`")]
    NotJson {
        /// The error of the parser.
        cause: String,
        /// The start of the message.
        excerpt: String,
    },
    /// The message contains an SNS envelope in an SNS envelope.
    #[error(
        "a message is wrapped by SNS twice; subscribe the queue to one topic, or send EventBridge's events to it directly"
    )]
    WrappedTwice,
    /// A required field is missing.
    #[error(
        "a message has no field `{field}`; send the events of EventBridge to the queue without an input transformer"
    )]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// A field has the wrong type.
    #[error("the field `{field}` of a message is not {expected}")]
    WrongType {
        /// The field.
        field: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// A field has an invalid value.
    #[error("the field `{field}` of a message is `{found}`, which is not {expected}")]
    BadValue {
        /// The field.
        field: &'static str,
        /// The start of the value.
        found: String,
        /// The expected value.
        expected: &'static str,
    },
    /// The event concerns another account or region, or is forged.
    #[error(
        "a message concerns the {what} `{found}`, and Poolwright runs in `{expected}`, so it ignores the message; check who may send \
         to the queue, and that its EventBridge rules are in this account and region"
    )]
    Foreign {
        /// `account` or `region`.
        what: &'static str,
        /// The value in the message.
        found: String,
        /// The expected value.
        expected: String,
    },
}

/// The reason to ignore a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// The source is neither EC2 nor AWS Health.
    Source(String),
    /// Poolwright does not use this type of event.
    DetailType(String),
    /// The instance is starting or running.
    State(&'static str),
    /// The AWS Health event concerns another service.
    Service(String),
    /// The AWS Health event is not a scheduled change.
    Category(String),
    /// The AWS Health event is closed.
    Closed,
    /// The AWS Health event names no instance.
    NoInstances,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(source) => write!(f, "its source is {source}"),
            Self::DetailType(kind) => write!(f, "Poolwright does not use events of the type {kind}"),
            Self::State(state) => write!(f, "the instance is {state}"),
            Self::Service(service) => write!(f, "it concerns the service {service}"),
            Self::Category(category) => write!(f, "its category is {category}"),
            Self::Closed => f.write_str("the event is closed"),
            Self::NoInstances => f.write_str("it names no instance"),
        }
    }
}
