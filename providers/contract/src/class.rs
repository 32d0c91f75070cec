//! What a provider says of a node class, for those who wrote it: what its fields were found to mean, and whether it can be used.

use std::collections::BTreeMap;

use async_trait::async_trait;
use poolwright_terms::NodeClassRef;
use serde_json::Value;

use crate::provider::ProviderError;

/// A node class as it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassReport {
    /// The UID of the object that was looked at.
    pub uid: Option<String>,
    /// The generation of its spec that was looked at.
    pub generation: Option<i64>,
    /// Fields of its status beside the conditions. One that is null is not there; one that is not here is left as it was, for nobody
    /// knows better.
    pub fields: BTreeMap<String, Value>,
    /// Every condition but `Ready`, in the order in which they are told: the first that does not hold is what a person should look at.
    pub conditions: Vec<ClassCondition>,
}

/// One thing that must hold of a class so that it can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCondition {
    /// The type of the condition: `SubnetsReady`.
    pub kind: &'static str,
    /// Whether it holds.
    pub holds: Holds,
    /// The reason, one word for programs.
    pub reason: String,
    /// What was found, or what to do.
    pub message: String,
}

/// Whether a condition of a class holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// It does.
    Yes,
    /// It does not: somebody must do something.
    No,
    /// That is known when the conditions before it hold.
    NotYet,
    /// Nobody answered: what was known before stands.
    NoAnswer,
}

/// A provider that can say what its node classes mean.
#[async_trait]
pub trait ClassReports: Send + Sync {
    /// What the class of this name means now; `None` when there is no such class. An error where the class itself could not be read;
    /// what is wrong with it, or could not be found out about it, is in the report.
    async fn report(&self, class: &NodeClassRef) -> Result<Option<ClassReport>, ProviderError>;

    /// Whether it hears what the cloud says of machines, as a condition that is written to each of its classes beside those of the
    /// report; `None` where nobody has set up anything to hear it by. A class can be used whatever this says: deaf, a provider still
    /// launches. No call is made for it, so it may be asked at any time.
    fn hearing(&self) -> Option<ClassCondition> {
        None
    }
}
