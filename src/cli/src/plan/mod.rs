//! `poolwright plan`: flags to input, input to plan, plan to document, document to print.

mod cluster;
mod files;
mod limits;
mod pool;
mod publish;
mod traced;

use std::collections::BTreeSet;
use std::io::Write;

use poolwright_catalog::Catalogue;
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_core::Snapshot;
use poolwright_core::plan::{PlanOptions, plan};

use crate::args::PlanFlags;
use crate::budget::Budget;
use crate::catalogue::{self, Selection};
use crate::document::CatalogueSummary;
use crate::exit::{Failure, Outcome};
use crate::{print, solve};

/// Everything to plan from, and how to speak of it.
struct Input {
    snapshot: Snapshot,
    /// What may be chosen from.
    catalogue: CatalogueSummary,
    /// What the reader should know about how the input was understood.
    notes: Vec<String>,
    names: PodNames,
    /// The pool was made up because the user gave none; it is not mentioned.
    implicit_pool: bool,
    /// Pods count that no scheduler has tried yet.
    include_waiting: bool,
}

/// How pods are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PodNames {
    /// `namespace/name`.
    Qualified,
    /// The name alone: a trace has no namespaces.
    Bare,
}

/// Plans and prints the plan.
pub fn run(flags: &PlanFlags, out: &mut impl Write) -> Result<Outcome, Failure> {
    let limits = limits::limits(&flags.limit)?;
    let catalogue = catalogue::load(&flags.catalogue)?;
    let offers = Offers::new(flags, catalogue);
    let input = if let Some(trace) = &flags.trace {
        traced::input(trace, flags.gpu_map.as_deref(), &offers)?
    } else if flags.filename.is_empty() {
        cluster::input(flags, &offers)?
    } else {
        files::input(&flags.filename, &offers)?
    };
    let options = PlanOptions {
        include_waiting: input.include_waiting,
        limits,
        solver: flags.search.options(),
        keep_solves: flags.save_problem.is_some(),
        ..PlanOptions::default()
    };
    let clock = SystemClock::new();
    let mut budget = Budget::new(&clock, flags.search.time_limit());
    let plan = plan(&input.snapshot, clock.now(), &options, &mut budget);
    // Before anything else: a plan that is refused is the one that its problems are wanted of.
    if let Some(path) = &flags.save_problem {
        solve::save(path, plan.solves.iter().map(|solve| &solve.problem))?;
    }
    let document = publish::document(plan, input, budget.times())?;
    print::plan(&document, flags.output, out).map_err(Failure::writing)?;
    if flags.fail_on_unplaced && document.pods.unplaced > 0 {
        return Ok(Outcome::PodsLeftOut);
    }
    Ok(Outcome::Done)
}

/// The catalogue, and what the flags want of it.
struct Offers {
    catalogue: Catalogue,
    wanted: Selection,
}

impl Offers {
    fn new(flags: &PlanFlags, catalogue: Catalogue) -> Self {
        let capacity_types: BTreeSet<_> =
            flags.capacity_type.iter().flat_map(|choice| choice.types()).copied().collect();
        let wanted = Selection {
            provider: flags.provider.clone(),
            capacity_types: capacity_types.into_iter().collect(),
        };
        Self { catalogue, wanted }
    }
}
