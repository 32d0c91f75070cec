//! What the solves work with.

use crate::model::PlanOptions;
use crate::plan::pack::classes::Classes;
use crate::rules::colocation::Company;
use crate::supply::offers::{Admissions, Supply};

pub(crate) struct Inputs<'s, 'a> {
    pub supply: &'s Supply<'a>,
    pub admissions: &'s Admissions,
    pub classes: &'s Classes<'a>,
    pub company: &'s Company<'a>,
    pub options: &'s PlanOptions,
}
