//! What a look before use found: one line for each thing that Poolwright needs, with what to do where it lacks.

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
