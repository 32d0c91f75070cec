//! Answers about what fits GPUs. The searches have limits, so an answer can be undecided. Plans count it as not fitting, and
//! proofs as fitting.

/// The reason why pods have no places on GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// They do not fit in any way.
    Impossible,
    /// The search reached its limit. They may still fit.
    Undecided,
}

/// What is known about the number of pods that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    /// This many fit.
    pub least: u64,
    /// No more than this many fit. It is more than `least` only where a search was undecided.
    pub most: u64,
}

impl Fit {
    /// Returns the answer that exactly `count` fit.
    pub fn exact(count: u64) -> Self {
        Self { least: count, most: count }
    }

    /// Returns how many fit where `other` applies as well.
    pub fn min(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.min(other.most) }
    }

    /// Returns how many fit where `other` would do as well.
    pub fn max(self, other: Self) -> Self {
        Self { least: self.least.max(other.least), most: self.most.max(other.most) }
    }

    /// Returns whether the number is known.
    pub fn is_decided(self) -> bool {
        self.least == self.most
    }
}
