//! Gangs as a demand source: pods that a JobSet or LeaderWorkerSet is about to create.

use jiff::Timestamp;

use crate::demand::forecast::put_in;
use crate::demand::forecast::{ForecastBuilder, ForecastInput};
use crate::demand::source::{DemandSource, Mentions};

pub(super) struct Gangs;

impl DemandSource for Gangs {
    fn name(&self) -> &'static str {
        "gangs"
    }

    fn foresee<'a>(&self, known: &ForecastInput<'a>, ahead: &mut ForecastBuilder<'a>) -> Option<Timestamp> {
        put_in(known, ahead, |unit| unit.part.is_some())
    }

    fn mentions(&self) -> Mentions {
        Mentions::InClaims
    }
}
