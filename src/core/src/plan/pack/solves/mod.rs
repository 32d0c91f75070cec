//! Solver calls, one for each tier of pools from the highest weight down, then one for offerings with unknown prices. If that leaves
//! pods out, a plan may begin with nodes at unknown prices. Every solution is verified before it is used.

pub(crate) mod adopt;
pub(crate) mod apply;
pub(crate) mod call;
pub(crate) mod candidates;
pub(crate) mod columns;
pub(crate) mod even;
pub(crate) mod existing;
pub(crate) mod flexible;
pub(crate) mod floor;
pub(crate) mod further;
pub(crate) mod gang_loss;
pub(crate) mod inputs;
pub(crate) mod kept_solves;
pub(crate) mod naive;
pub(crate) mod noted_rules;
pub(crate) mod packing;
pub(crate) mod pass;
pub(crate) mod problem;
pub(crate) mod reserve;
pub(crate) mod rivals;
pub(crate) mod rounds;
pub(crate) mod spot;
pub(crate) mod steps;
pub(crate) mod tiers;
pub(crate) mod together;
pub(crate) mod unpriced;
pub(crate) mod worth;

pub(crate) use crate::plan::pack::solves::inputs::SolveInputs;
use poolwright_solver::StopSignal;

use crate::plan::pack::room_lives::RoomLife;
use crate::plan::pack::solves::candidates::{Fits, candidates};
use crate::plan::pack::solves::packing::Packing;
use crate::plan::pack::solves::pass::Run;
use crate::plan::pack::solves::tiers::Tiers;
use crate::plan::pack::solves::unpriced::NOMINAL;
use crate::supply::limits::Limits;
use crate::supply::offerings::Availability;
use crate::supply::rooms::Rooms;

/// Packs pods: makes passes, and returns the result of the best one.
pub(crate) fn run<'a>(
    inputs: &SolveInputs<'_, 'a>,
    rooms: &mut Rooms<'_>,
    mut lives: Vec<Option<RoomLife>>,
    limits: &mut Limits,
    stop: &mut dyn StopSignal,
) -> Packing<'a> {
    let mut priced = candidates(inputs, limits, Availability::weighed);
    let mut nominal = candidates(inputs, limits, |availability| match availability {
        Availability::Unpriced => Some(NOMINAL),
        _ => None,
    });
    let fits = Fits::new(inputs.supply, inputs.classes);
    let holding = fits.holding(&priced, inputs);
    reserve::raise_uses(&mut priced, &holding, inputs, limits);
    let (holding, by_kept_room) = if inputs.keeps_room {
        rivals::keep(inputs, &mut priced, holding, (&*rooms, lives.as_mut_slice()), limits)
    } else {
        (holding, false)
    };
    let tiers = Tiers::new(&priced, holding);
    let holding = fits.holding(&nominal, inputs);
    reserve::raise_uses(&mut nominal, &holding, inputs, limits);
    let unpriced = (!nominal.is_empty()).then(|| Tiers::new(&nominal, holding));
    let before = limits.clone();
    let has_gangs = inputs.classes.classes.iter().any(|class| class.loss.is_of_gang());
    let starts_again = tiers.rounds() > 1 || has_gangs || unpriced.is_some();
    let start = starts_again.then(|| (rooms.clone(), lives.clone()));
    let mut run = Run::new(inputs, rooms, lives, limits);
    if !run.pass(&tiers, unpriced.as_ref(), false, stop) {
        return Packing { by_kept_room, ..run.outcome };
    }
    if run.contested
        && !stop.should_stop()
        && let Some((mut rooms, lives)) = start.clone()
    {
        let mut limits = before.clone();
        let mut other = Run::new(inputs, &mut rooms, lives, &mut limits);
        if other.pass(&tiers, unpriced.as_ref(), true, stop) && other.rank() < run.rank() {
            run.become_like(other);
        }
    }
    if let Some((rooms, lives)) = &start
        && !stop.should_stop()
    {
        run.serve_more((&tiers, unpriced.as_ref()), (rooms, lives, &before), stop);
    }
    if let (Some((rooms, lives)), Some(unpriced)) = (&start, &unpriced)
        && !stop.should_stop()
    {
        run.begin_unpriced((&tiers, unpriced), (rooms, lives, &before), stop);
    }
    if run.outcome.steps > 1
        && !stop.is_abandoned()
        && let Some((rooms, lives)) = &start
    {
        for later in run.cheaper_steps(&tiers, before.clone()) {
            let (mut rooms, mut limits) = (rooms.clone(), before.clone());
            let mut other = Run::new(inputs, &mut rooms, lives.clone(), &mut limits);
            other.later = later.into();
            if other.pass(&tiers, unpriced.as_ref(), false, stop) && other.rank() < run.rank() {
                run.become_like(other);
            }
        }
    }
    let mut counts_whole_gangs = false;
    // The shares of gangs counted less than an interruption loses, so a search that counts more may find a better plan.
    if run.undercounts()
        && !stop.should_stop()
        && let Some((mut rooms, lives)) = start
    {
        let mut limits = before.clone();
        let mut other = Run::new(inputs, &mut rooms, lives, &mut limits);
        other.counts_whole_gangs = true;
        if other.pass(&tiers, unpriced.as_ref(), false, stop) && other.is_better_than(&run) {
            // Its own bound counts too much.
            let bound = (run.outcome.bound, run.outcome.proof);
            run.become_like(other);
            (run.outcome.bound, run.outcome.proof) = bound;
            counts_whole_gangs = true;
        }
    }
    if !run.fill_evenly(stop) {
        return Packing { by_kept_room, ..run.outcome };
    }
    // Simpler ways count shares of gangs, and are tested with the least counts of before.
    if !counts_whole_gangs && run.outcome.least.is_none() && !stop.is_abandoned() {
        run.adopt_simpler(&tiers, unpriced.as_ref(), &before, stop);
    }
    run.note_rules(&tiers);
    if inputs.options.baselines && !stop.is_abandoned() {
        run.baselines(&tiers, before);
    }
    let left = run.queues.into_iter().map(Vec::from).collect();
    Packing { left, by_kept_room, ..run.outcome }
}
