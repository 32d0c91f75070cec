//! `poolwright plan`: turns flags into input, input into a plan, and a plan into a document, and prints the document.

mod alternatives;
pub mod assumed_volumes;
pub mod buyable;
mod cluster;
pub mod commitments;
mod compared;
pub mod daemons;
mod existing;
mod files;
mod given;
mod gpu_notes;
pub mod joined;
pub mod limits;
mod lives;
mod lost;
mod makers;
mod missing;
mod namespace;
mod narrowed;
mod pool;
mod preempt;
mod prepaid;
#[cfg(test)]
mod tests;
mod told;
mod traced;
mod unknown_namespaces;
mod unseen;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use clap::ValueEnum;
use jiff::Timestamp;
use poolwright_catalog::{Catalogue, UsdPerHour};
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_core::disruption::{MoveHistory, RoomMade, make_room};
use poolwright_core::plan::{Plan, PlanOptions, Sharing, SpotRisk, plan};
use poolwright_core::{Gang, PodKey, PoolName, Snapshot, why};
use poolwright_intake::manifest::RefusedPods;
use poolwright_report::plan::{CatalogueSummary, DocumentContext, PodNames, Refusal, document};
use poolwright_terms::CapacityType;

use crate::args::{InputFlags, PlanFlags, SearchFlags, SharingMode};
use crate::catalogue::{self, Selection};
use crate::exit::{ExitStatus, Failure};
use crate::snapshot::SavedCluster;
use crate::solve_timer::SolveTimer;
use crate::{not_sold, overrides, price_age, print, scheduler, solve};

use commitments::Prepaid;
pub use compared::Planned;
pub use given::{Given, notes_on};
#[cfg(test)]
pub use pool::implicit;
pub use pool::sold_by_missing;

/// The input of a plan, with what is needed to describe it.
#[derive(Clone)]
pub struct Input {
    /// The snapshot of the cluster, or of what the manifests or the trace contain.
    pub snapshot: Snapshot,
    /// The catalogue that the plan chooses from.
    catalogue: CatalogueSummary,
    /// Notes on how the input was understood.
    notes: Vec<String>,
    /// Objects of the input that make pods, but are not read.
    unread: Vec<String>,
    /// Objects of the input that are left out, because they cannot be read: `NodePool gpu`.
    left_out: BTreeSet<String>,
    /// Objects whose pods are bound to nodes that the input does not have.
    on_unknown_nodes: Vec<String>,
    /// Pods that an API server refuses to create.
    refused: Vec<RefusedPods>,
    /// Pods that preempt no others.
    polite: BTreeSet<PodKey>,
    /// Pods that preempt others on the nodes of the input.
    preempting: Vec<preempt::Preempting>,
    names: PodNames,
    /// The namespace of pods that the user names without one.
    namespace: String,
    /// Whether the plan includes pods that no scheduler has tried yet.
    include_waiting: bool,
    /// Says what of the learned durations of pods could not be read; `None` if all was read, or if there is no controller.
    pub lives_unread: Option<String>,
    /// Why controllers of pods may be missing in the input, and what to do about it; `None` if none is missing.
    pub makers_unread: Option<String>,
    /// What the controller of the cluster says about pools that are not ready or that something holds up, by pool.
    pub told_of_pools: BTreeMap<PoolName, String>,
    /// Says that no controller leads, or that this cannot be known; `None` if one leads, or if there is no cluster.
    pub leadership: Option<String>,
    /// Gangs of the cluster. They matter only for the question whether pods can move.
    pub gangs: Vec<Gang>,
    /// The time of the plan, if it is not the time of the clock.
    time: Option<Timestamp>,
    /// What may be bought, before the flags select from it.
    uncut: narrowed::Uncut,
    /// The origin of the objects.
    origin: missing::Origin,
}

impl Input {
    /// Returns the time of the plan: that of a snapshot, or else of the clock. Ages in a snapshot are those of its moment.
    pub fn now(&self, clock: &impl Clock) -> Timestamp {
        self.time.unwrap_or_else(|| clock.now())
    }

    /// Says that a pod gets or loses its place by preemption, and whether that is all that happens to it.
    pub fn preemption(&self, pod: &PodKey) -> Option<(String, bool)> {
        let concerns = |one: &&preempt::Preempting| one.pod == *pod || one.victims.contains(pod);
        let one = self.preempting.iter().find(concerns)?;
        let is_planned = self.snapshot.pods.unbound().any(|waiting| waiting.key == *pod);
        let end = match (one.pod == *pod, is_planned) {
            (true, _) => "",
            (false, true) => "; its controller makes it anew",
            (false, false) => "; it has no controller that makes it anew",
        };
        Some((format!("{one}{end}."), !is_planned))
    }

    /// Returns a sentence about old prices of offerings that the pools may buy.
    pub fn price_age(&self) -> Option<String> {
        price_age::note(
            why::oldest_price(&self.snapshot),
            price_age::today(),
            price_age::BUYABLE,
            price_age::CATALOGUE,
        )
    }
}

/// A plan in which pods may give way.
pub struct PlanWithRoom {
    /// The plan.
    pub plan: Plan,
    /// A sentence about each pod that gives way, and about each pod that takes its room.
    pub explanations: BTreeMap<PodKey, String>,
}

/// Plans as the controller does: pods give way where that costs less than a new node. The moves that the controller remembers are
/// not known here.
pub fn plan_with_room(
    snapshot: &Snapshot,
    now: Timestamp,
    options: &PlanOptions,
    timer: &mut SolveTimer<'_>,
) -> PlanWithRoom {
    let plan = plan(snapshot, now, options, timer);
    match make_room(snapshot, &plan, &MoveHistory::default(), now, options, timer) {
        Some(RoomMade { plan, explanations, .. }) => PlanWithRoom { plan, explanations },
        None => PlanWithRoom { plan, explanations: BTreeMap::new() },
    }
}

/// Adds to the messages of pods without a node which flags leave out the offerings that would hold them, or which objects
/// cannot be read.
pub fn tell_of_flags(
    plan: &mut Plan,
    input: &Input,
    now: Timestamp,
    options: &PlanOptions,
    search: &SearchFlags,
) {
    lost::tell(plan, input);
    narrowed::tell(plan, input, now, options, search.time_limit());
}

/// Plans and prints the plan.
pub fn run(flags: &PlanFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let namespace = flags.namespace.as_deref();
    let (mut input, mut options) = prepare(&flags.input, namespace, &flags.search)?;
    if let Some(namespace) = namespace {
        input.narrow_to(namespace)?;
    }
    input.notes.extend(overrides::in_snapshot(&flags.overrides, &mut input.snapshot)?);
    options.keep_solves = flags.save_problem.is_some() || flags.explain.is_some();
    let clock = SystemClock::new();
    let mut timer = SolveTimer::new(&clock, flags.search.time_limit());
    let now = input.now(&clock);
    let work = || plan_with_room(&input.snapshot, now, &options, &mut timer);
    let PlanWithRoom { mut plan, explanations } = print::Progress::during("planning", work);
    let times = timer.times();
    let of_pods = plan.unplaced.iter_mut().map(|left| &mut left.message);
    let of_buffers = plan.pools.values_mut().flat_map(|found| found.buffer_left.iter_mut());
    for message in of_pods.chain(of_buffers) {
        overrides::in_message(&flags.overrides, message);
    }
    tell_of_flags(&mut plan, &input, now, &options, &flags.search);
    input.notes.extend(explanations.iter().map(|(pod, text)| format!("Pod {pod}: {text}")));
    // The problems are saved first, because they are most useful for a plan that is refused.
    if let Some(path) = &flags.save_problem {
        solve::save(path, plan.solves.iter().map(|solve| &solve.problem))?;
    }
    let explained = flags
        .explain
        .as_deref()
        .map(|pod| alternatives::of_pod(&plan, pod, namespace, &input))
        .transpose()?;
    let unpriced = why::unpriced(&input.snapshot, &plan, &options, None);
    input.notes.extend(unpriced.iter().map(|unpriced| unpriced.note.clone()));
    input.notes.extend(why::uncounted_daemonsets(&input.snapshot, &plan));
    input.notes.extend(why::unknown_volume_limits(&input.snapshot, &plan, None));
    input.notes.extend(why::split_volumes(&input.snapshot, &plan));
    input.notes.extend(input.price_age());
    let buys: BTreeSet<&PoolName> = plan.claims.iter().map(|claim| &claim.pool).collect();
    let not_ready = input.told_of_pools.iter().filter(|(pool, _)| buys.contains(pool));
    let not_ready = not_ready.map(|(pool, told)| {
        let told = told.trim_end_matches('.');
        format!("NodePool {pool}: the plan buys there, but the controller may not. {told}")
    });
    let not_ready: Vec<String> = not_ready.collect();
    input.notes.splice(0..0, not_ready);
    input.notes = joined::joined(input.notes);
    let asked = DocumentContext {
        snapshot: &input.snapshot,
        catalogue: input.catalogue,
        unread: input.unread,
        on_unknown_nodes: input.on_unknown_nodes,
        refused: input
            .refused
            .into_iter()
            .map(|RefusedPods { object, pods, .. }| Refusal { object, pods })
            .collect(),
        notes: input.notes,
        names: input.names,
        counts_risk: options.spot_risk.is_some(),
    };
    let mut document = document(plan, asked, times).map_err(|refused| Failure::Other(refused.into()))?;
    document.explanation = explained;
    for of in &mut document.commitments {
        let terms = options.commitments.iter().find(|terms| terms.name == of.name);
        let existing = terms.map(|terms| terms.left.saturating_sub(of.usd_per_hour));
        of.existing_usd_per_hour = existing.filter(|existing| *existing > UsdPerHour::ZERO);
    }
    document.unpriced_types = unpriced.map_or(0, |unpriced| unpriced.types);
    print::plan(&document, flags.output, out).map_err(Failure::writing)?;
    let leaves_out = document.pods.unplaced > 0
        || !document.refused.is_empty()
        || !document.unread.is_empty()
        || !document.on_unknown_nodes.is_empty();
    if flags.fail_on_unplaced && leaves_out {
        return Ok(ExitStatus::PodsLeftOut);
    }
    Ok(ExitStatus::Done)
}

/// Reads the input and the options of a plan. `namespace` is that of pods and objects that are named without one.
pub fn prepare(
    flags: &InputFlags,
    namespace: Option<&str>,
    search: &SearchFlags,
) -> Result<(Input, PlanOptions), Failure> {
    let saved = flags.cluster.snapshot.as_deref().map(SavedCluster::read).transpose()?;
    let own = saved.as_ref().map(|saved| &saved.header.catalogue);
    let catalogue = catalogue::load_or(&flags.prices.catalogue, own)?;
    prepare_given(flags, namespace, search, catalogue, saved.map(|saved| Given::Saved(Box::new(saved))))
}

/// Does the same as [`prepare`], with this catalogue, and for these objects, if there are any, instead of those that the flags name.
pub fn prepare_given(
    flags: &InputFlags,
    namespace: Option<&str>,
    search: &SearchFlags,
    catalogue: Catalogue,
    given: Option<Given>,
) -> Result<(Input, PlanOptions), Failure> {
    let limits = limits::limits(&flags.limit)?;
    let namespace_limits = limits::namespace_limits(&flags.namespace_limit)?;
    if !flags.existing.is_empty() && flags.filename.is_empty() && flags.trace.is_none() {
        return Err(Failure::bad_input(
            "--existing: only for the pods of -f or --trace; add one of them (a plan for a cluster reads its nodes anyway)",
        ));
    }
    if flags.gpu_map.is_some() && flags.trace.is_none() {
        return Err(Failure::bad_input(
            "--gpu-map: only used with --trace; add --trace, or remove --gpu-map",
        ));
    }
    let (prepaid, catalogue) = match &flags.commitments {
        Some(path) => commitments::read(path, catalogue)?,
        None => (Prepaid::default(), catalogue),
    };
    let offers = Offers::new(flags, catalogue);
    let scheduler = scheduler::read(flags.scheduler_config.as_deref())?;
    let existing = existing::read(&flags.existing);
    let mut input = if let Some(trace) = &flags.trace {
        traced::input(trace, flags.gpu_map.as_deref(), flags.sharing, &offers)?
    } else {
        let read = |saved: Option<&SavedCluster>| cluster::read_all(flags, saved, &scheduler.profiles, "-f");
        match given {
            Some(Given::Cluster(objects)) => cluster::input(*objects, &offers)?,
            Some(Given::Saved(saved)) => cluster::input(read(Some(&*saved))?, &offers)?,
            Some(Given::Files { sources, at }) => {
                let of_files = files::input((sources, Vec::new()), namespace, &existing, &offers)?;
                Input { time: Some(at), ..of_files }
            }
            None if flags.filename.is_empty() => cluster::input(read(None)?, &offers)?,
            None => files::input(files::read(&flags.filename, &existing)?, namespace, &existing, &offers)?,
        }
    };
    let lost_there = existing.left_out().clone();
    existing::add(existing, &mut input.snapshot, &mut input.notes)?;
    input.notes.extend(daemons::size(&mut input.snapshot));
    let Snapshot { pools, pods, nodes, .. } = &input.snapshot;
    let (pools, nodes) = (pools.values().map(|pool| &**pool), nodes.values().map(|node| &**node));
    input.notes.extend(not_sold::unknown(&offers.catalogue, pools, pods.unbound(), nodes));
    if input.origin == missing::Origin::Files {
        input.preempting = preempt::place(&mut input.snapshot, &scheduler.profiles, &input.polite);
        input.notes.extend(input.preempting.iter().map(ToString::to_string));
    }
    let sold =
        limits::Sold::of(&offers.catalogue, input.snapshot.catalogues.values().flatten(), sharing(flags)?);
    input.notes.extend(sold.judge(&limits)?);
    input.notes.extend(sold.notes(input.snapshot.pools.values().map(|pool| &**pool)));
    // A cluster shows everything.
    if input.origin != missing::Origin::Cluster {
        let now = input.now(&SystemClock::new());
        lives::put_in_declared(&mut input.snapshot, now);
        input.notes.splice(0..0, unseen::notes(&input.snapshot));
        input.notes.extend(unknown_namespaces::notes(&input.snapshot, [&input.left_out, &lost_there]));
    }
    let Prepaid { terms, reserved } = prepaid;
    input.notes.extend(prepaid::notes(&input.snapshot, &offers.catalogue, &reserved, &terms));
    if let Some(namespace) = namespace {
        namespace.clone_into(&mut input.namespace);
    }
    input.notes.extend(scheduler.notes.iter().cloned());
    let usual = PlanOptions::default();
    let options = PlanOptions {
        include_waiting: input.include_waiting,
        schedulers: scheduler::names(&scheduler, usual.schedulers.clone()),
        profiles: scheduler.profiles,
        limits,
        namespace_limits,
        sharing: sharing(flags)?,
        spot_risk: SpotRisk::losing(flags.prices.at_risk),
        commitments: terms,
        preferences: flags.preferences.into(),
        min_values: flags.pool_rules.min_values_policy.into(),
        default_usd_per_hour: flags
            .pool_rules
            .default_limit
            .usd_per_hour()
            .filter(|_| !input.snapshot.has_implicit_pool()),
        solver: search.options(),
        ..usual
    };
    input.notes.extend(gpu_notes::notes(&input.snapshot, flags.sharing));
    Ok((input, options))
}

fn sharing(flags: &InputFlags) -> Result<Sharing, Failure> {
    if flags.mig_mixed && flags.sharing != SharingMode::Mig {
        return Err(Failure::bad_input("--mig-mixed: only used with --sharing mig; add it"));
    }
    Ok(match flags.sharing {
        SharingMode::None => Sharing::Whole,
        SharingMode::TimeSlicing | SharingMode::Mps => Sharing::Shared,
        SharingMode::Mig => Sharing::Mig { mixed: flags.mig_mixed },
    })
}

/// The catalogue, and the selection by the flags.
#[derive(Clone)]
struct Offers {
    catalogue: Catalogue,
    wanted: Selection,
    /// The flags about capacity types as they are written; `None` if there are none.
    written_capacity: Option<String>,
    /// Whether reservations may be among the offerings.
    prepaid: bool,
}

impl Offers {
    fn new(flags: &InputFlags, catalogue: Catalogue) -> Self {
        let mut capacity_types: BTreeSet<_> =
            flags.capacity_type.iter().flat_map(|choice| choice.types()).copied().collect();
        if flags.spot {
            capacity_types.extend([CapacityType::OnDemand, CapacityType::Spot]);
        }
        let choices = flags.capacity_type.iter().filter_map(ValueEnum::to_possible_value);
        let choices: Vec<String> = choices.map(|choice| choice.get_name().to_owned()).collect();
        let choices = (!choices.is_empty()).then(|| format!("--capacity-type {}", choices.join(",")));
        let spot = flags.spot.then(|| "--spot".to_owned());
        let written: Vec<String> = choices.into_iter().chain(spot).collect();
        let written_capacity = (!written.is_empty()).then(|| written.join(" "));
        // Prepaid capacity may always be used.
        let prepaid = flags.commitments.is_some();
        if prepaid && !capacity_types.is_empty() {
            capacity_types.insert(CapacityType::Reserved);
        }
        let wanted = Selection {
            provider: flags.provider.clone(),
            capacity_types: capacity_types.into_iter().collect(),
        };
        Self { catalogue, wanted, written_capacity, prepaid }
    }
}
