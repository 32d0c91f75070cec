//! `poolwright job`: the price of one job on each type and zone, as spot, on demand and reserved.
//!
//! Each row is a plan that may buy only one offering, made by the code that the controller runs. So every rule about pods and nodes counts.
//! `poolwright_report::job` tells how long the job takes there.

mod csv_lines;
pub mod model;
mod offers;
mod page;
mod rows;
mod table;
#[cfg(test)]
mod tests;
mod zones;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::slice;
use std::sync::Arc;

use poolwright_catalog::{Catalogue, UsdPerHour};
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_core::plan::PlanOptions;
use poolwright_core::{Pool, Snapshot, SpotRules};
use poolwright_report::job::Work;
use poolwright_report::money::six_decimals;
use poolwright_terms::{CapacityType, labels};
use serde::Serialize;

use crate::args::{Asked, JobFlags, JobFormat, SearchFlags, Shape};
use crate::exit::{ExitStatus, Failure};
use crate::plan::{Given, prepare_given};
use crate::print::{TableLayout, counted};
use crate::source::{self, Source};
use crate::what_if::pattern::instead;
use crate::{catalogue, not_sold, price_age};

use offers::{Offer, Outcome, Planner};
use rows::Row;

/// What a job costs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// `poolwright.dev/v1alpha1`.
    api_version: &'static str,
    /// `JobPrices`.
    kind: &'static str,
    /// The answer in one line.
    pub verdict: String,
    /// The job, as it was given.
    pub job: String,
    /// The hours that it takes without interruptions.
    pub hours: f64,
    /// The ways to run it, the cheapest first, and last those that cannot be priced.
    pub rows: Vec<Row>,
    /// GPU models that nothing has that may be bought, and types that are not sold as spot.
    pub not_sold: Vec<String>,
    /// What the figures rest on.
    pub assumptions: Vec<String>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Prices the job and prints the answer.
pub fn run(flags: &JobFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let answer = answered(flags)?;
    let printed = match flags.output {
        JobFormat::Table => table::print(&answer, TableLayout::list(false), out),
        JobFormat::Json => serde_json::to_writer_pretty(&mut *out, &answer)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out)),
        JobFormat::Csv => csv_lines::print(&answer, out),
        JobFormat::Html => page::print(&answer, out),
    };
    printed.map_err(Failure::writing)?;
    Ok(ExitStatus::Done)
}

fn answered(flags: &JobFlags) -> Result<Answer, Failure> {
    answered_within(flags, &SearchFlags::default())
}

fn answered_within(flags: &JobFlags, search: &SearchFlags) -> Result<Answer, Failure> {
    let catalogue = catalogue::load(&flags.catalogue)?;
    let models = models(flags, &catalogue)?;
    let at = SystemClock::new().now();
    let (name, sources) = match &flags.job {
        Asked::Shape(shape) => {
            let source = Source { name: shape.to_string(), text: manifest(shape) };
            (source.name.clone(), vec![source])
        }
        Asked::File(path) => (path.display().to_string(), source::manifests(slice::from_ref(path))?),
    };
    let given = Some(Given::Files { sources, at });
    let (input, options) = prepare_given(&flags.input(), None, search, catalogue.clone(), given)?;
    let options = PlanOptions { baselines: false, ..options };
    check(&name, &input.snapshot, &models)?;
    let job = alone(&input.snapshot);
    let (mut offers, mut not_sold) = (Vec::new(), Vec::new());
    let wanted: Vec<Option<&str>> = if models.is_empty() {
        vec![None]
    } else {
        models.iter().map(|model| Some(model.as_str())).collect()
    };
    let mut planner = Planner::new(&input, &options, search, at, wanted.len());
    for model in wanted {
        let job = model.map_or_else(|| job.clone(), |model| model::asking_for(&job, model));
        let found = planner.offers(&job, model)?;
        if let Some(model) = model.filter(|_| found.is_empty()) {
            not_sold.push(unsold(model, &catalogue));
        }
        offers.extend(found);
    }
    let about_rows = [planner.cut_short(), planner.left_out()];
    let mut notes = planner.notes;
    notes.extend(about_rows.into_iter().flatten());
    notes.extend(one_pod(&flags.job, &offers));
    not_sold.extend(without_spot(&offers));
    if offers.is_empty() && not_sold.is_empty() {
        return Err(Failure::bad_input(format!("{name}: nothing may be bought that its pods could use")));
    }
    let oldest = price_age::oldest(offers.iter().map(|offer| &offer.offering));
    notes.extend(price_age::note(oldest, price_age::today(), price_age::BUYABLE, price_age::CATALOGUE));
    let work = Work {
        takes: flags.hours,
        checkpoint: flags.checkpoint.map(jiff::SignedDuration::unsigned_abs),
        restart: flags.restart.unsigned_abs(),
    };
    let rows = rows::rows(&offers, &work);
    Ok(Answer {
        api_version: poolwright_terms::API_VERSION,
        kind: "JobPrices",
        verdict: verdict(&rows),
        job: name,
        hours: six_decimals(flags.hours.as_secs_f64() / 3600.0),
        assumptions: assumptions(flags, &offers),
        rows,
        not_sold,
        notes,
    })
}

/// Returns the models to price the job on, each once; none for those that its pods ask for.
///
/// # Errors
///
/// The catalogue does not have one of them.
fn models(flags: &JobFlags, catalogue: &Catalogue) -> Result<Vec<String>, Failure> {
    let kinds = catalogue.types().values().filter_map(|kind| kind.gpu.as_ref()).filter(|gpu| gpu.count > 0);
    let known: BTreeSet<&str> = kinds.map(|gpu| gpu.model.as_str()).collect();
    let shape = match &flags.job {
        Asked::Shape(shape) => Some((shape.to_string(), &shape.model)),
        Asked::File(_) => None,
    };
    let compared = flags.compare.iter().map(|model| (format!("--compare {model}"), model));
    let mut models: Vec<String> = Vec::new();
    for (written, model) in shape.into_iter().chain(compared) {
        if !known.contains(model.as_str()) {
            return Err(Failure::bad_input(format!(
                "{written}: no type of the catalogue has this GPU; {}",
                instead(model, &known)
            )));
        }
        if !models.contains(model) {
            models.push(model.clone());
        }
    }
    Ok(models)
}

/// Returns the manifest of a shape.
fn manifest(Shape { pods, gpus, model }: &Shape) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: job}}\nspec:\n  parallelism: {pods}\n  completions: {pods}\n  \
         completionMode: Indexed\n  template:\n    spec:\n      restartPolicy: Never\n      \
         nodeSelector: {{{}: \"{model}\"}}\n      containers:\n      - name: worker\n        image: job\n        \
         resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}\n",
        labels::GPU_MODEL
    )
}

/// Checks that there is a job that can be priced on nodes of its own.
fn check(name: &str, snapshot: &Snapshot, models: &[String]) -> Result<(), Failure> {
    let refused = |why: &str| Err(Failure::bad_input(format!("{name}: {why}")));
    if snapshot.nodes.values().next().is_some() {
        return refused(
            "has nodes, and a job is priced on nodes of its own; remove them, or see `poolwright what-if`",
        );
    }
    let mut pods = snapshot.pods.unbound().peekable();
    if pods.peek().is_none() {
        return refused("no object in it makes a pod that waits for a node; name the manifest of a job");
    }
    if !models.is_empty() && !pods.any(|pod| model::wants_gpus(&pod.spec)) {
        return refused(
            "no pod requests whole GPUs (nvidia.com/gpu), so --compare has nothing to compare; remove the flag",
        );
    }
    Ok(())
}

/// Returns the snapshot with pools that buy nodes for the job alone. Their rules about several offerings cannot hold for one.
fn alone(snapshot: &Snapshot) -> Snapshot {
    let pools = snapshot.pools.values().filter(|pool| pool.replicas.is_none());
    let pools = pools.map(|pool| Pool {
        buffer: Vec::new(),
        min_values: BTreeMap::new(),
        spot: SpotRules::default(),
        ..Pool::clone(pool)
    });
    let pools = pools.map(|pool| (pool.name.clone(), Arc::new(pool))).collect();
    Snapshot { pools, ..snapshot.clone() }
}

/// Says that nothing with a model may be bought, and which providers of the catalogue sell it.
fn unsold(model: &str, catalogue: &Catalogue) -> String {
    let has = catalogue
        .types()
        .values()
        .filter(|kind| kind.gpu.as_ref().is_some_and(|gpu| gpu.count > 0 && gpu.model.as_str() == model));
    let providers: BTreeSet<&str> = has.map(|kind| kind.provider.as_str()).collect();
    let providers: Vec<&str> = providers.into_iter().collect();
    format!("{model}: not sold here; the catalogue has it of {} (--provider)", providers.join(", "))
}

/// Says how to write a job of several pods, if its one pod requests more GPUs than any type has.
fn one_pod(job: &Asked, offers: &[Offer]) -> Option<String> {
    let Asked::Shape(Shape { pods: 1, gpus, model }) = job else { return None };
    let most = offers.iter().filter_map(|offer| Some(offer.kind.gpu.as_ref()?.count)).max()?;
    let is_several = most > 0 && *gpus > most && gpus.is_multiple_of(most);
    is_several.then(|| {
        format!(
            "{gpus}x{model} is one pod, and no type has as many GPUs; {}x{most}x{model} is {} with {} each",
            gpus / most,
            counted((gpus / most) as usize, "pod"),
            counted(most as usize, "GPU")
        )
    })
}

/// Names the types that would hold the job and are not sold as spot.
fn without_spot(offers: &[Offer]) -> Option<String> {
    let is_spot = |offer: &&Offer| offer.offering.id.capacity_type == CapacityType::Spot;
    let as_spot: BTreeSet<&str> = offers.iter().filter(is_spot).map(Offer::type_name).collect();
    let holds = offers.iter().filter(|offer| matches!(offer.outcome, Outcome::Runs { .. }));
    let others: BTreeSet<&str> = holds.map(Offer::type_name).filter(|name| !as_spot.contains(name)).collect();
    let others: Vec<&str> = others.into_iter().collect();
    (!others.is_empty()).then(|| {
        format!("as spot: {}; there is no spot offering, or no pool may buy it", not_sold::first_of(&others))
    })
}

/// Says how to run the job at the lowest price.
fn verdict(rows: &[Row]) -> String {
    let Some((row, usd)) = rows.first().and_then(|row| Some((row, row.usd_per_job?))) else {
        return "No way to run the job has a known cost.".to_owned();
    };
    let mut said = format!("Cheapest: {usd:#} for the job");
    if let (Some(nodes), Some(price)) = (row.nodes, row.usd_per_hour) {
        // A string takes everything.
        let _ = write!(
            said,
            ", {price:#} on {nodes} x {} in {} ({})",
            row.instance_type,
            row.place(),
            row.capacity_type
        );
    }
    if let (Some(hours), Some(interruptions)) = (row.finish_hours, row.interruptions) {
        let _ = write!(said, "; it ends after {hours:.1} h, with {interruptions:.2} interruptions expected");
    }
    said + "."
}

/// Says what the figures rest on.
fn assumptions(flags: &JobFlags, offers: &[Offer]) -> Vec<String> {
    let mut all = Vec::new();
    let models: BTreeSet<Option<&str>> = offers.iter().map(Offer::gpu_model).collect();
    let hours = six_decimals(flags.hours.as_secs_f64() / 3600.0);
    if models.len() > 1 {
        all.push(format!(
            "The job takes {hours} h on each GPU model: Poolwright does not know which is faster. Price a model with hours of its own \
             if you know them."
        ));
    }
    if let Asked::Shape(Shape { pods, gpus, .. }) = &flags.job {
        let gpus = counted(*gpus as usize, "GPU");
        all.push(match *pods {
            1 => format!("The job is 1 pod with {gpus}. It requests no CPU and no memory."),
            pods => {
                let pods = counted(pods as usize, "pod");
                format!("The job is {pods} with {gpus} each. They request no CPU and no memory.")
            }
        });
    }
    let lost = match flags.checkpoint {
        Some(every) => {
            format!("the work since the last checkpoint is lost, and there is one every {every:#}")
        }
        None => "the job starts over, because it has no checkpoints (--checkpoint)".to_owned(),
    };
    all.push(format!(
        "An interruption of one spot node stops the whole job: {lost}. It works again after {:#}. Other nodes are not interrupted.",
        flags.restart
    ));
    all.push(
        "All nodes are paid from the start of the work to its end, also while the job restarts. Saving a checkpoint takes no time."
            .to_owned(),
    );
    let is_prepaid = |offer: &Offer| offer.offering.price.known() == Some(UsdPerHour::ZERO);
    if offers.iter().any(is_prepaid) {
        all.push("A reservation costs nothing more, because it is paid for.".to_owned());
    }
    all
}
