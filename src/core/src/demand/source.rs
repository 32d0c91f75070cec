//! The interface of a demand source.

use jiff::Timestamp;

use crate::demand::forecast::{ForecastBuilder, ForecastInput};

/// A demand source: it predicts pods or nodes that do not exist yet.
pub trait DemandSource: Sync {
    /// Returns the name of the source, for messages.
    fn name(&self) -> &'static str;

    /// Adds what the source expects to the forecast. Returns when the expectation ends, if it does.
    fn foresee<'a>(&self, known: &ForecastInput<'a>, ahead: &mut ForecastBuilder<'a>) -> Option<Timestamp>;

    /// Returns where a finished plan may mention its pods.
    fn mentions(&self) -> Mentions;
}

/// Where a finished plan may mention the pods of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mentions {
    /// Everywhere: they exist.
    Everywhere,
    /// Only in the claims bought for them: the real pods will take these places.
    InClaims,
    /// Nowhere: the capacity is for any pod.
    Nowhere,
}
