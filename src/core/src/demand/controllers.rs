//! Controllers as a demand source: pods that a Job, ReplicaSet or parallel StatefulSet outside a gang is about to create.

use jiff::Timestamp;

use crate::demand::forecast::put_in;
use crate::demand::forecast::{ForecastBuilder, ForecastInput};
use crate::demand::source::{DemandSource, Mentions};

pub(super) struct Controllers;

impl DemandSource for Controllers {
    fn name(&self) -> &'static str {
        "controllers"
    }

    fn foresee<'a>(&self, known: &ForecastInput<'a>, ahead: &mut ForecastBuilder<'a>) -> Option<Timestamp> {
        put_in(known, ahead, |unit| unit.part.is_none())
    }

    fn mentions(&self) -> Mentions {
        Mentions::InClaims
    }
}
