//! Preflight checks: whether a cloud account has what Poolwright needs, and how to fix each problem.

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;

use crate::flags::FlagValues;

/// The preflight checks of a cloud. They launch, create and change nothing.
#[async_trait]
pub trait Preflight: Send + Sync {
    /// Returns the error for the user if a flag is missing that the checks need. The error names the flag.
    fn missing_flag(&self, flags: &FlagValues) -> Option<String>;

    /// Runs all checks. A check that cannot run has the verdict [`Verdict::Undetermined`].
    async fn run_checks(&self, request: CheckRequest) -> Vec<CheckResult>;
}

/// The input of the checks.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckRequest {
    /// The flags that were set.
    pub flags: FlagValues,
    /// The minor version of the cluster's Kubernetes, such as `1.36`; `None` if it is unknown.
    pub kubernetes: Option<String>,
    /// The node classes of this cloud, as objects. [`crate::NodeClass::read`] has accepted each of them.
    pub node_classes: Vec<Value>,
    /// The current time.
    pub now: Timestamp,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// The group of the check, such as `AWS permissions`. Results of one group are adjacent.
    pub group: &'static str,
    /// The name of the check, such as `ec2:CreateFleet`.
    pub name: String,
    /// The verdict.
    pub verdict: Verdict,
}

/// The verdict of a check. The variants have the names that `poolwright check -o json` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No problem, with the value that was found.
    Fine(String),
    /// A problem.
    Wrong {
        /// The cause.
        why: String,
        /// The command, policy or change that fixes it.
        fix: String,
    },
    /// Not checked, with the reason and, if there is one, a way for the user to check.
    Undetermined(String),
}

impl CheckResult {
    /// Returns the result of a check.
    pub fn new(group: &'static str, name: impl Into<String>, verdict: Verdict) -> Self {
        Self { group, name: name.into(), verdict }
    }
}

impl Verdict {
    /// Creates a verdict without a problem, with the value that was found.
    pub fn fine(value: impl Into<String>) -> Self {
        Self::Fine(value.into())
    }

    /// Creates a verdict with a problem.
    pub fn wrong(why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Wrong { why: why.into(), fix: fix.into() }
    }

    /// Creates a verdict for a check that could not run.
    pub fn undetermined(why: impl Into<String>) -> Self {
        Self::Undetermined(why.into())
    }

    /// Returns whether there is a problem.
    pub fn is_wrong(&self) -> bool {
        matches!(self, Self::Wrong { .. })
    }
}
