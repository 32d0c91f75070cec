//! Pods that a gang is about to have: a JobSet or a LeaderWorkerSet says how many, and what they will be like.

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
