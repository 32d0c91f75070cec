//! The interface of a demand source.

use jiff::Timestamp;

use crate::demand::forecast::{ForecastBuilder, ForecastInput};

/// A demand source, which predicts pods or nodes that do not exist yet.
pub trait DemandSource: Sync {
    /// Returns the name of the source, for messages.
    fn name(&self) -> &'static str;

    /// Adds the pods or nodes that the source expects to the forecast. Returns the time at which the expectation ends or must be
    /// checked again, if any.
    fn foresee<'a>(&self, known: &ForecastInput<'a>, ahead: &mut ForecastBuilder<'a>) -> Option<Timestamp>;

    /// Returns the places where a finished plan may mention its pods.
    fn mentions(&self) -> Mentions;
}

/// The places where a finished plan may mention the pods of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mentions {
    /// Everywhere, because the pods exist.
    Everywhere,
    /// Only in the claims bought for them, because the real pods will take these places.
    InClaims,
    /// Nowhere, because the capacity is for any pod.
    Nowhere,
}
