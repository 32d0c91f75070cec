//! The offerings on which a job may run, each with a plan for it alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{InstanceType, Offering, OfferingId, Price, ResourceName, UsdPerHour};
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_core::plan::PlanOptions;
use poolwright_core::{PodSpec, Snapshot};
use poolwright_report::plan::{Document, Verdict};
use poolwright_terms::one_line;

use super::model::{may_use, wants_gpus};
use super::zones;
use crate::args::SearchFlags;
use crate::exit::Failure;
use crate::not_sold;
use crate::plan::Input;
use crate::print::{Progress, counted, percent};
use crate::what_if::{market, offerings};

/// How long all plans may search together, about.
const ALL_PLANS: Duration = Duration::from_mins(1);

/// How long each plan may search at least.
const LEAST: Duration = Duration::from_millis(100);

/// An offering, and what becomes of the job there.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The offering.
    pub offering: Offering,
    /// Its type.
    pub kind: InstanceType,
    /// What becomes of the job.
    pub outcome: Outcome,
}

impl Offer {
    /// Returns the name of its type.
    pub fn type_name(&self) -> &str {
        self.offering.id.instance_type.as_str()
    }

    /// Returns the model of its GPUs.
    pub fn gpu_model(&self) -> Option<&str> {
        Some(self.kind.gpu.as_ref()?.model.as_str())
    }
}

/// What becomes of a job on nodes of one offering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It runs.
    Runs {
        /// The number of nodes.
        nodes: usize,
        /// What they cost together, less what commitments pay.
        usd_per_hour: UsdPerHour,
    },
    /// Nodes of it do not hold the job; the reason.
    Unfit(String),
    /// Its price is unknown; the reason.
    Unpriced(String),
}

/// Plans for a job, with one offering at a time.
pub struct Planner<'a> {
    input: &'a Input,
    options: &'a PlanOptions,
    search: &'a SearchFlags,
    at: Timestamp,
    /// Its monotonic clock started with the planner.
    clock: SystemClock,
    /// The number of calls of [`Self::offers`] that share the time that is left.
    calls_left: usize,
    /// The notes of the first plan, and what it says about objects whose pods are not planned.
    pub notes: Vec<String>,
    has_planned: bool,
    /// The plans whose search ended too early: the name of the offering, and the gap to the lower bound, if there is one.
    cut_short: Vec<(String, Option<f64>)>,
    /// The number of offerings with GPU models that no pod may use.
    left_out: usize,
    progress: Progress,
}

impl<'a> Planner<'a> {
    /// Creates a planner for the objects of an input. [`Self::offers`] will be called `calls` times.
    pub fn new(
        input: &'a Input,
        options: &'a PlanOptions,
        search: &'a SearchFlags,
        at: Timestamp,
        calls: usize,
    ) -> Self {
        let clock = SystemClock::new();
        Self {
            input,
            options,
            search,
            at,
            clock,
            calls_left: calls,
            notes: Vec::new(),
            has_planned: false,
            cut_short: Vec::new(),
            left_out: 0,
            progress: Progress::begin("planning for the job"),
        }
    }

    /// Plans for this job on each offering that may be bought: those with a GPU model, or else those with GPUs if a pod requests some.
    pub fn offers(&mut self, job: &Snapshot, model: Option<&str>) -> Result<Vec<Offer>, Failure> {
        let needs_gpus = job.pods.unbound().any(|pod| uses_gpus(&pod.spec));
        let is_wanted = |kind: &InstanceType| match (&kind.gpu, model) {
            (Some(gpu), Some(model)) => gpu.count > 0 && gpu.model.as_str() == model,
            (Some(gpu), None) => gpu.count > 0 || !needs_gpus,
            (None, Some(_)) => false,
            (None, None) => !needs_gpus,
        };
        let mut sold: BTreeMap<&OfferingId, (&Offering, &InstanceType)> = BTreeMap::new();
        let kind_of = |offering: &Offering| {
            let mut catalogues = job.catalogues.values().filter_map(|sold| sold.as_deref().ok());
            catalogues.find_map(|catalogue| catalogue.instance_type(&offering.id.instance_type))
        };
        for offering in offerings(job) {
            if let Some(kind) = kind_of(offering).filter(|kind| is_wanted(kind)) {
                sold.entry(&offering.id).or_insert((offering, kind));
            }
        }
        if model.is_none() {
            self.left_out += drop_unusable(&mut sold, job);
        }
        let largest = job.pods.unbound().map(|pod| whole_gpus(&pod.spec)).max().unwrap_or(0);
        let zones_matter = zones::matter(job, self.options);
        // One of all offerings that need the same plan.
        let mut asked: Vec<&Offering> = Vec::new();
        let mut places: Vec<Result<usize, Outcome>> = Vec::new();
        for &(offering, kind) in sold.values() {
            if let Some(known) = without_plan(offering, kind, largest) {
                places.push(Err(known));
                continue;
            }
            let of_type = asked.iter().enumerate().rev();
            let mut of_type =
                of_type.take_while(|(_, other)| other.id.instance_type == offering.id.instance_type);
            let same = of_type.find(|(_, other)| !zones_matter && zones::are_alike(other, offering));
            let same = same.map(|(place, _)| place);
            places.push(Ok(same.unwrap_or(asked.len())));
            if same.is_none() {
                asked.push(offering);
            }
        }
        let begun = self.clock.monotonic();
        let end = begun + share(ALL_PLANS.saturating_sub(begun), self.calls_left);
        self.calls_left = self.calls_left.saturating_sub(1);
        let mut outcomes = Vec::with_capacity(asked.len());
        for (done, offering) in asked.iter().enumerate() {
            let left = end.saturating_sub(self.clock.monotonic());
            let name = one_line(offering.id.instance_type.as_str());
            self.progress.say(format!("planning for {name}, {} of {}", done + 1, asked.len()));
            outcomes.push(self.planned(job, &offering.id, share(left, asked.len() - done))?);
        }
        if !self.has_planned
            && let Some((first, _)) = sold.values().next()
        {
            // What the plan says about its input holds without a type that holds a pod, too.
            self.planned(job, &first.id, LEAST)?;
        }
        let offer = |((offering, kind), place): ((&Offering, &InstanceType), Result<usize, Outcome>)| {
            let outcome = match place {
                Ok(place) => outcomes[place].clone(),
                Err(known) => known,
            };
            Offer { offering: offering.clone(), kind: kind.clone(), outcome }
        };
        Ok(sold.into_values().zip(places).map(offer).collect())
    }

    /// Plans for the job with this offering alone, in this time.
    fn planned(&mut self, job: &Snapshot, id: &OfferingId, time: Duration) -> Result<Outcome, Failure> {
        let mut only = job.clone();
        market::in_catalogues(&mut only, |catalogue| catalogue.filtered(|_, other| other.id == *id));
        let (at, options) = (self.at, self.options);
        let time = self.search.time_limit().map_or(time, |most| most.min(time));
        let time_limit = SignedDuration::try_from(time).ok();
        let search = SearchFlags { time_limit, ..self.search.clone() };
        let document = self.input.with_snapshot(only).planned(at, options, &search)?.document;
        if !self.has_planned {
            self.has_planned = true;
            self.notes = notes(&document);
        }
        let outcome = outcome(&document);
        if let Outcome::Runs { usd_per_hour, .. } = outcome
            && usd_per_hour > UsdPerHour::ZERO
            && let Verdict::Within(gap) = document.verdict()
        {
            let gap = document.is_bounded().then_some(gap);
            if gap.is_none_or(|gap| gap > search.options().gap_target) {
                self.cut_short.push((format!("{} ({})", id.instance_type, id.capacity_type), gap));
            }
        }
        Ok(outcome)
    }

    /// Says how many offerings have no row, because no pod may use their GPU models.
    pub fn left_out(&self) -> Option<String> {
        (self.left_out > 0).then(|| {
            format!(
                "left out: {} with GPU models that no pod asks for; --compare prices the job on other models",
                counted(self.left_out, "offering")
            )
        })
    }

    /// Says which plans are not proven to be cheap enough, because the search ended at its limit of time or work.
    pub fn cut_short(&self) -> Option<String> {
        let names: BTreeSet<&str> = self.cut_short.iter().map(|(name, _)| name.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let largest = self.cut_short.iter().try_fold(0.0_f64, |largest, (_, gap)| Some(largest.max((*gap)?)));
        let gap = match largest {
            None => "no lower bound is known".to_owned(),
            Some(gap) if self.cut_short.len() > 1 => format!("gap up to {}", percent(gap)),
            Some(gap) => format!("gap {}", percent(gap)),
        };
        (!names.is_empty()).then(|| {
            format!(
                "the search for {} ended before it proved its plan the cheapest ({gap}), so the job may need fewer nodes there",
                not_sold::first_of(&names)
            )
        })
    }
}

/// Drops the offerings with GPU models that no pod may use, unless there is no other. Returns their number.
fn drop_unusable(sold: &mut BTreeMap<&OfferingId, (&Offering, &InstanceType)>, job: &Snapshot) -> usize {
    let pods = job.pods.unbound().filter(|pod| uses_gpus(&pod.spec));
    let specs: BTreeSet<&PodSpec> = pods.map(|pod| &*pod.spec).collect();
    let model_of = |kind: &InstanceType| kind.gpu.as_ref().map(|gpu| gpu.model.as_str().to_owned());
    let mut models: BTreeSet<Option<String>> = sold.values().map(|(_, kind)| model_of(kind)).collect();
    models.retain(|model| model.as_ref().is_none_or(|model| specs.iter().any(|spec| may_use(spec, model))));
    if models.is_empty() || specs.is_empty() {
        return 0;
    }
    let before = sold.len();
    sold.retain(|_, (_, kind)| models.contains(&model_of(kind)));
    before - sold.len()
}

/// Returns the part of the time that is left which the next of so many has.
fn share(left: Duration, all: usize) -> Duration {
    let all = u32::try_from(all).unwrap_or(u32::MAX).max(1);
    (left / all).max(LEAST)
}

/// Returns what becomes of the job on an offering, if that is known without a plan. `largest` is the most GPUs of a pod.
fn without_plan(offering: &Offering, kind: &InstanceType, largest: u64) -> Option<Outcome> {
    let gpus = kind.gpu.as_ref().map_or(0, |gpu| u64::from(gpu.count));
    if let Price::Unknown(why) = &offering.price {
        return Some(Outcome::Unpriced(why.to_string()));
    }
    (gpus < largest).then(|| {
        Outcome::Unfit(format!(
            "does not hold one pod: it has {}, and a pod requests {largest}",
            counted(usize::try_from(gpus).unwrap_or(usize::MAX), "GPU")
        ))
    })
}

/// Returns whether a pod uses GPUs, whole ones or parts.
fn uses_gpus(spec: &PodSpec) -> bool {
    let is_gpu = |name: &str| name.starts_with("nvidia.com/");
    wants_gpus(spec)
        || spec.gpu_share.is_some()
        || spec.requests.iter().any(|(name, _)| is_gpu(name.as_str()))
}

fn whole_gpus(spec: &PodSpec) -> u64 {
    spec.requests.get(ResourceName::NVIDIA_GPU)
}

/// Reads the outcome from the plan.
fn outcome(plan: &Document) -> Outcome {
    match plan.unplaced.first() {
        Some(first) => Outcome::Unfit(format!(
            "{} without a node: {}",
            counted(plan.unplaced.len(), "pod"),
            first.message
        )),
        None if plan.nodes.is_empty() => Outcome::Unfit("the plan buys no node for the job".to_owned()),
        None => Outcome::Runs { nodes: plan.nodes.len(), usd_per_hour: plan.cost_usd_per_hour },
    }
}

/// Returns what a plan says about its input. That is the same with each offering.
fn notes(plan: &Document) -> Vec<String> {
    let refused = plan.refused.iter().map(|one| {
        format!(
            "the API server refuses {} of {}, which count as absent",
            counted(one.pods, "pod"),
            one.object
        )
    });
    let unread = plan.unread.iter().map(|object| format!("{object} makes pods, but is not read"));
    let elsewhere = plan
        .on_unknown_nodes
        .iter()
        .map(|object| format!("{object} has pods on nodes that are not in the file"));
    refused.chain(unread).chain(elsewhere).chain(plan.notes.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_share_the_time_that_is_left_and_each_has_some() {
        assert_eq!(share(ALL_PLANS, 3), Duration::from_secs(20));
        assert_eq!(share(Duration::from_secs(20), 1), Duration::from_secs(20));
        for (left, plans) in [(ALL_PLANS, 1_000_000), (Duration::ZERO, 1), (Duration::ZERO, 0)] {
            assert_eq!(share(left, plans), LEAST);
        }
    }
}
