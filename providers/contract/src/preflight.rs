//! A look at an account before use: one finding for each thing that Poolwright needs, with the fix where it lacks.

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;

use crate::flags::FlagValues;

/// Looks at an account. Nothing is launched, made or changed.
#[async_trait]
pub trait Preflight: Send + Sync {
    /// Why these flags are not enough to look at anything: a sentence that names the flag to add.
    fn missing_flag(&self, flags: &FlagValues) -> Option<String>;

    /// Looks at everything. A part that cannot be looked at is a finding, too.
    async fn look(&self, question: Question) -> Vec<Finding>;
}

/// What to look at.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The flags that were set.
    pub flags: FlagValues,
    /// The minor version of the cluster's Kubernetes: `1.36`; `None` where it is not known.
    pub kubernetes: Option<String>,
    /// The node classes of this cloud, as objects. Each is one that [`crate::NodeClass::read`] has read.
    pub node_classes: Vec<Value>,
    /// The time.
    pub now: Timestamp,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it belongs to: `AWS permissions`. Findings of one group follow each other.
    pub group: &'static str,
    /// What was looked at: `ec2:CreateFleet`.
    pub what: String,
    /// What was found.
    pub verdict: Verdict,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be; with what it is.
    Fine(String),
    /// Not as it should be.
    Wrong {
        /// Why.
        why: String,
        /// The one command, line of a policy or change that makes it right.
        fix: String,
    },
    /// It could not be determined; with why, and how a person finds out.
    Undetermined(String),
}

impl Finding {
    /// A finding.
    pub fn new(group: &'static str, what: impl Into<String>, verdict: Verdict) -> Self {
        Self { group, what: what.into(), verdict }
    }
}

impl Verdict {
    /// As it should be.
    pub fn fine(what: impl Into<String>) -> Self {
        Self::Fine(what.into())
    }

    /// Not as it should be.
    pub fn wrong(why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Wrong { why: why.into(), fix: fix.into() }
    }

    /// It could not be determined.
    pub fn undetermined(why: impl Into<String>) -> Self {
        Self::Undetermined(why.into())
    }

    /// Whether it is not as it should be.
    pub fn is_wrong(&self) -> bool {
        matches!(self, Self::Wrong { .. })
    }
}
