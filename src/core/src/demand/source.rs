//! A source of demand.

use jiff::Timestamp;

use crate::demand::forecast::{ForecastBuilder, ForecastInput};

/// A source of demand: it knows of pods or nodes that the API server does not show yet.
pub trait DemandSource: Sync {
    /// The name of the source, for people.
    fn name(&self) -> &'static str;

    /// Adds to the cluster ahead what the source foresees. Returns until when it believes that, if the clock can end it.
    fn foresee<'a>(&self, known: &ForecastInput<'a>, ahead: &mut ForecastBuilder<'a>) -> Option<Timestamp>;

    /// Which of its pods a plan may mention when it is done.
    fn mentions(&self) -> Mentions;
}

/// Where a plan that is done may mention the pods of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mentions {
    /// Everywhere: they exist.
    Everywhere,
    /// Only in the lists of the claims that are bought for them: the pods that come take their places.
    InClaims,
    /// Nowhere: the room is for any pod.
    Nowhere,
}
