//! Solver calls, one for each tier of pools from the highest weight down, then one for offerings with unknown prices. If that leaves
//! pods out, a plan may begin with nodes at unknown prices. Every solution is verified before it is used.

pub(crate) mod adopt;
pub(crate) mod apply;
pub(crate) mod candidates;
pub(crate) mod columns;
pub(crate) mod even;
pub(crate) mod existing;
pub(crate) mod flexible;
pub(crate) mod floor;
pub(crate) mod gang_loss;
pub(crate) mod inputs;
pub(crate) mod naive;
pub(crate) mod problem;
pub(crate) mod reserve;
pub(crate) mod spot;
pub(crate) mod steps;
pub(crate) mod tiers;
pub(crate) mod together;
pub(crate) mod unpriced;
pub(crate) mod worth;

pub(crate) use crate::plan::pack::solves::inputs::SolveInputs;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::sync::Arc;

use poolwright_catalog::{ResourceList, ResourceName, UsdPerHour};
use poolwright_solver as solver;
use poolwright_solver::{BitSet, Proof, Solution, StopSignal};

use crate::model::Pod;
use crate::model::baseline::Baselines;
use crate::model::plan::{CommitmentUse, PlannedGpu, Solve};
use crate::plan::pack::room_lives::RoomLife;
use crate::plan::pack::solves::candidates::{Fits, NodeCandidate, candidates};
use crate::plan::pack::solves::columns::{Columns, Source, Sources};
use crate::plan::pack::solves::floor::TooEarly;
use crate::plan::pack::solves::tiers::{Tiers, WayNode, uncharged};
use crate::plan::place::topology::Assigned;
use crate::plan::spot_rule::SpotRule;
use crate::rules;
use crate::rules::colocation::{Colocation, Present};
use crate::rules::gpus::{GpuForm, GpuNeed};
use crate::supply::limits::Limits;
use crate::supply::offerings::{Availability, PoolOffering};
use crate::supply::rooms::Rooms;

/// The value used for every unknown price, so that the number of nodes is minimized.
const NOMINAL: UsdPerHour = UsdPerHour::from_micros(UsdPerHour::MICROS_PER_USD);

/// One node to buy.
#[derive(Clone, Debug)]
pub(crate) struct NewNode<'a> {
    /// Index into the candidates of its solver call.
    pub candidate: usize,
    /// Index into [`Supply::pools`].
    pub pool: usize,
    pub offer: PoolOffering,
    /// The number of pods by class.
    pub content: BTreeMap<usize, u32>,
    pub pods: Vec<&'a Pod>,
    pub form: GpuForm,
    pub gpus: Vec<PlannedGpu>,
    /// What it counts with in the limits: at least what it uses, and more if its launch may become a larger node.
    pub uses: Vec<(u32, u64)>,
    /// Whether it leaves the cloud a choice that further pods could take away.
    leaves_choice: bool,
    /// The resources that its pods leave.
    pub free: ResourceList,
    /// The pods on it, as colocation rules count them.
    pub present: Present,
}

/// The result of packing.
#[derive(Debug, Default)]
pub(crate) struct Packing<'a> {
    pub new: Vec<NewNode<'a>>,
    /// Pods on existing nodes, with the index into [`Rooms::all`].
    pub on_rooms: Vec<(usize, &'a Pod)>,
    /// Unplaced pods, by class.
    pub left: Vec<Vec<&'a Pod>>,
    /// The limit that excluded the last unplaced pod, by class.
    pub limit: Vec<Option<u32>>,
    /// The rule on spot nodes that excluded the last unplaced pod, by class.
    pub spot_rule: Vec<Option<SpotRule>>,
    /// The classes with pods that lost their place in the layout of GPUs. They fit another node, so only a limit keeps them from it.
    pub without_layout: BTreeSet<usize>,
    /// Limits that kept a pod out of its preferred pools.
    pub limits_reached: BTreeSet<u32>,
    pub bound: UsdPerHour,
    /// The solver's objective, for offerings with known prices.
    pub objective: UsdPerHour,
    /// Whether objective and bound count costs over time.
    pub is_over_time: bool,
    /// The weakest proof of the solver calls that add to the bound; `None` if there were none.
    pub proof: Option<Proof>,
    pub baselines: Baselines,
    /// Whether a pod on a new node could also use pools of a lower weight.
    pub by_weight: bool,
    /// Whether a pod on a new node could also use offerings whose interruptions count.
    pub by_risk: bool,
    /// Whether new nodes are of a pool with rules on spot nodes.
    pub by_spot_rules: bool,
    /// Whether new nodes are of a pool with `minValues`.
    pub by_min_values: bool,
    /// Whether a pod on a new node, or a pod that is left out, has a topology spread over nodes.
    pub by_node_spread: bool,
    /// Whether there are several steps, and pods on new nodes differ in priority.
    pub by_priority: bool,
    /// The number of tiers that bought nodes.
    pub steps: usize,
    /// The number of solver calls that bought nodes of offerings with known prices.
    pub calls: usize,
    /// What the solver counted for pods on their further choices. It is in none of the other figures.
    pub charged: UsdPerHour,
    /// The cost of the room whose use costs money.
    pub room_cost: UsdPerHour,
    /// The least count of each spread constraint over nodes, if it has risen because nothing more can be bought.
    pub least: Option<Vec<u64>>,
    pub refused: Vec<String>,
    pub stopped_early: bool,
    pub solves: Vec<Solve>,
    /// The amount that commitments pay.
    pub covered: UsdPerHour,
    /// The use of each commitment.
    pub commitments: Vec<CommitmentUse>,
}

impl<'a> Packing<'a> {
    /// Places bundled pods on the node of their leader.
    pub fn unite(&mut self, assigned: &Assigned<'a>) {
        if assigned.bundles.is_empty() {
            return;
        }
        let with = |pods: &[&'a Pod]| -> Vec<&'a Pod> {
            pods.iter().flat_map(|pod| assigned.with(&pod.key).iter().copied()).collect()
        };
        for node in &mut self.new {
            let more = with(&node.pods);
            node.pods.extend(more);
        }
        let followed = |(room, pod): &(usize, &'a Pod)| -> Vec<(usize, &'a Pod)> {
            assigned.with(&pod.key).iter().map(|follower| (*room, *follower)).collect()
        };
        let more: Vec<_> = self.on_rooms.iter().flat_map(followed).collect();
        self.on_rooms.extend(more);
        for left in &mut self.left {
            let more = with(left);
            left.extend(more);
        }
    }
}

pub(crate) fn run<'a>(
    inputs: &SolveInputs<'_, 'a>,
    rooms: &mut Rooms<'_>,
    lives: Vec<Option<RoomLife>>,
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
        return run.outcome;
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
        return run.outcome;
    }
    // Simpler ways count shares of gangs, and are tested with the least counts of before.
    if !counts_whole_gangs && run.outcome.least.is_none() && !stop.is_abandoned() {
        run.adopt_simpler(&tiers, unpriced.as_ref(), &before, stop);
    }
    run.note_rules(&tiers);
    if inputs.options.baselines && !stop.is_abandoned() {
        run.baselines(&tiers, before);
    }
    run.outcome.left = run.queues.into_iter().map(Vec::from).collect();
    run.outcome
}

/// The problem of a tier whose solution would have spot nodes too early, so that others come first.
struct Floored {
    /// The problem, without the floors that make spot nodes wait.
    problem: solver::Problem,
    /// The classes of its pods.
    classes: Vec<usize>,
    /// A bound for plans that place as many pods as a solution of the problem, and its proof.
    bound: (UsdPerHour, Proof),
}

struct Run<'r, 's, 'a, 'n> {
    inputs: &'r SolveInputs<'s, 'a>,
    /// The rules about pods on one node. Least counts of spread constraints may rise at the end.
    colocation: Cow<'r, Colocation<'a>>,
    rooms: &'r mut Rooms<'n>,
    /// The rooms whose use costs money, with their ends.
    lives: Vec<Option<RoomLife>>,
    limits: &'r mut Limits,
    /// The signatures that each room admits.
    room_admits: Vec<BitSet>,
    /// Pods not placed yet, by class.
    queues: Vec<VecDeque<&'a Pod>>,
    /// The value of a pod, by class, if a limit leaves some out; empty if all are worth the same.
    worth: Vec<u64>,
    /// The pods that each round placed, by class.
    served: Vec<Vec<usize>>,
    /// The pods that the first solve of each round leaves to later rounds, by class, for the rounds to come.
    later: VecDeque<Vec<usize>>,
    /// What a pod is charged on its further choices, by class and candidate, if all tiers are solved together; else empty.
    charges: Vec<BTreeMap<usize, UsdPerHour>>,
    /// The nodes that the next solver call buys, without a search.
    given: Option<Vec<WayNode>>,
    /// Whether another choice of the pods that a round serves might be better.
    contested: bool,
    /// Whether each pod of a gang counts with the loss of the whole gang, instead of a share.
    counts_whole_gangs: bool,
    /// What replaces the solution of the first round of a tier because of a floor, if something does.
    floored: Option<Floored>,
    outcome: Packing<'a>,
}

impl<'r, 's, 'a, 'n> Run<'r, 's, 'a, 'n> {
    fn new(
        inputs: &'r SolveInputs<'s, 'a>,
        rooms: &'r mut Rooms<'n>,
        lives: Vec<Option<RoomLife>>,
        limits: &'r mut Limits,
    ) -> Self {
        let classes = &inputs.classes.classes;
        let commitments = inputs.options.commitments.iter().map(|terms| CommitmentUse {
            name: terms.name.clone(),
            left: terms.left,
            used: UsdPerHour::ZERO,
        });
        Self {
            inputs,
            colocation: Cow::Borrowed(inputs.colocation),
            rooms,
            lives,
            limits,
            room_admits: Vec::new(),
            queues: classes.iter().map(|class| class.pods.iter().copied().collect()).collect(),
            worth: Vec::new(),
            served: Vec::new(),
            later: VecDeque::new(),
            charges: Vec::new(),
            given: None,
            contested: false,
            counts_whole_gangs: false,
            floored: None,
            outcome: Packing {
                limit: vec![None; classes.len()],
                spot_rule: vec![None; classes.len()],
                commitments: commitments.collect(),
                ..Packing::default()
            },
        }
    }
}

impl<'a, 'n> Run<'_, '_, 'a, 'n> {
    /// Takes over the result of another pass.
    fn become_like(&mut self, other: Run<'_, '_, 'a, 'n>) {
        mem::swap(self.rooms, other.rooms);
        mem::swap(self.limits, other.limits);
        (self.lives, self.queues) = (other.lives, other.queues);
        (self.served, self.outcome) = (other.served, other.outcome);
    }
}

impl Run<'_, '_, '_, '_> {
    /// Solves all tiers. If it `weighs`, pods that a limit leaves out are chosen by what their next choices cost. Returns false if a
    /// solution failed verification.
    fn pass(
        &mut self,
        tiers: &Tiers<'_>,
        unpriced: Option<&Tiers<'_>>,
        weighs: bool,
        stop: &mut dyn StopSignal,
    ) -> bool {
        self.admit_rooms();
        self.instances_that_are_there();
        for round in 0..tiers.rounds() {
            if weighs {
                self.worth = self.worth(tiers, round);
            }
            let before: Vec<usize> = self.queues.iter().map(VecDeque::len).collect();
            let takes_part = |class: usize| tiers.takes_part(class, round);
            let admitted = |class: usize| tiers.admitted(class, round);
            if !self.tier(tiers.candidates, takes_part, admitted, true, stop) {
                return false;
            }
            let served: Vec<usize> =
                before.iter().zip(&self.queues).map(|(before, left)| before - left.len()).collect();
            self.contested |= self.is_contested(tiers, round, &served);
            self.served.push(served);
        }
        self.worth.clear();
        self.charges.clear();
        // Plans that charge no more cost at least the rest.
        self.outcome.bound = self.outcome.bound.saturating_sub(self.outcome.charged);
        let Some(unpriced) = unpriced else { return true };
        let admitted = |class: usize| unpriced.without_preferences(class);
        self.tier(unpriced.candidates, |_| true, admitted, false, stop)
    }

    /// Notes by which rules the plan may cost more than another.
    fn note_rules(&mut self, tiers: &Tiers<'_>) {
        let known = |node: &&NewNode<'_>| node.offer.availability.price().is_some();
        let on_new = self.outcome.new.iter().filter(known).flat_map(|node| node.content.keys().copied());
        let on_new: BTreeSet<usize> = on_new.collect();
        let classes = &self.inputs.classes.classes;
        for class in on_new.iter().copied() {
            let loses = !classes[class].loss.is_zero();
            let is_risky = |one: &NodeCandidate| one.is_reclaimed || (loses && one.interruptions > 0);
            self.outcome.by_weight |= tiers.differ_in_weight(class);
            self.outcome.by_risk |= tiers.any_home(class, is_risky);
        }
        let mixes = self.inputs.spot_mixes;
        self.outcome.by_spot_rules = self.outcome.new.iter().any(|node| mixes.contains_key(&node.pool));
        let pools = &self.inputs.supply.pools;
        self.outcome.by_min_values =
            self.outcome.new.iter().any(|node| !pools[node.pool].pool.min_values.is_empty());
        let left = (0..self.queues.len()).filter(|class| !self.queues[*class].is_empty());
        let mut concerned = on_new.iter().copied().chain(left);
        self.outcome.by_node_spread =
            concerned.any(|class| !self.colocation.spreads_of(classes[class].profile).is_empty());
        let priorities: BTreeSet<i32> = on_new.iter().map(|class| classes[*class].priority).collect();
        self.outcome.by_priority = self.outcome.steps > 1 && priorities.len() > 1;
    }

    fn admit_rooms(&mut self) {
        let signatures = &self.inputs.classes.signatures;
        let admits = |room: &Arc<crate::supply::rooms::Room<'_>>| {
            let mut bits = BitSet::new(signatures.len());
            for (index, (spec, pin)) in signatures.iter().enumerate() {
                if rules::admits(spec, &room.labels, &room.taints).is_ok()
                    && pin.iter().all(|requirement| rules::matches(requirement, &room.labels))
                {
                    bits.insert(index);
                }
            }
            bits
        };
        self.room_admits = self.rooms.all.iter().map(admits).collect();
    }

    /// Places pods that request MIG instances by name on existing nodes with free instances. These cost nothing, so the solver is
    /// not needed.
    fn instances_that_are_there(&mut self) {
        for (class, wanted) in self.inputs.classes.classes.iter().enumerate() {
            if !wanted
                .spec
                .requests
                .iter()
                .any(|(name, _)| name.as_str().starts_with(ResourceName::MIG_PREFIX))
            {
                continue;
            }
            for at in 0..self.rooms.all.len() {
                while self.room_admits[at].contains(wanted.signature)
                    && wanted.spec.requests.fits(&self.rooms.all[at].free)
                    && self.colocation.admits_one(wanted.profile, &self.rooms.all[at].present)
                    && let Some(pod) = self.queues[class].pop_front()
                {
                    self.outcome.on_rooms.push((at, pod));
                    self.rooms.take(at, &wanted.spec.requests, wanted.profile);
                }
            }
        }
    }

    /// Solves one tier until nothing more can be placed. Returns false if a solution failed verification.
    ///
    /// A solution may leave room for more pods, under the limits or on nodes, so the tier is solved again. Only the first solve
    /// adds to the bound, because only its problem covers all plans.
    fn tier(
        &mut self,
        candidates: &[NodeCandidate],
        takes_part: impl Fn(usize) -> bool,
        admitted: impl Fn(usize) -> Vec<usize>,
        priced: bool,
        stop: &mut dyn StopSignal,
    ) -> bool {
        let (mut bound, mut later) = (priced, self.later.pop_front());
        let sets_aside = later.is_some();
        loop {
            let aside = self.set_aside(later.take());
            let before = self.waiting();
            if !self.round(candidates, &takes_part, &admitted, priced, bound, stop) {
                return false;
            }
            let is_last = self.waiting() == before && aside.is_empty();
            self.put_back(aside);
            bound = false;
            let within = |candidate: &usize| self.limits.allow(&candidates[*candidate].uses);
            let left: Vec<usize> = (0..self.queues.len())
                .filter(|class| !self.queues[*class].is_empty() && takes_part(*class))
                .collect();
            let more = left.iter().any(|class| {
                admitted(*class).iter().any(within)
                    || self.on_rooms(*class).next().is_some()
                    || self.on_new(*class).next().is_some()
            });
            if is_last || !more || stop.is_abandoned() {
                self.bound_floored(&left, stop);
                // The solver did not say of these pods that a limit leaves them out.
                for class in &left {
                    let is_untold = sets_aside || self.outcome.without_layout.contains(class);
                    if is_untold && self.outcome.limit[*class].is_none() {
                        let beyond = |at: &usize| self.limits.first_beyond(&candidates[*at].uses);
                        let limit = admitted(*class).iter().find_map(beyond);
                        self.outcome.limit[*class] = limit;
                    }
                }
                let reached = left.iter().filter_map(|class| self.outcome.limit[*class]);
                self.outcome.limits_reached.extend(reached);
                return true;
            }
        }
    }

    /// Makes one solver call. Returns false if its solution failed verification.
    fn round(
        &mut self,
        candidates: &[NodeCandidate],
        takes_part: impl Fn(usize) -> bool,
        admitted: impl Fn(usize) -> Vec<usize>,
        priced: bool,
        bound: bool,
        stop: &mut dyn StopSignal,
    ) -> bool {
        let classes: Vec<usize> = (0..self.queues.len())
            .filter(|class| !self.queues[*class].is_empty() && takes_part(*class))
            .collect();
        if classes.is_empty() {
            return true;
        }
        let homes: Vec<Vec<usize>> = classes.iter().map(|class| admitted(*class)).collect();
        let there = self.there(candidates, &classes, &homes);
        let sources: Vec<Sources<'_>> = (classes.iter().zip(&homes).zip(&there.at_a_cost))
            .map(|((class, candidates), rooms)| {
                let horizon = self.inputs.classes.classes[*class].horizon;
                Sources { horizon, candidates, rooms }
            })
            .collect();
        let columns = Columns::new(candidates.len(), self.rooms.all.len(), &sources);
        let mut problem = self.problem(candidates, &classes, &columns, &there);
        let mut spot = self.spot_shares(candidates, &columns);
        problem.node_shares = mem::take(&mut spot.shares);
        let solved = match self.given.take() {
            Some(nodes) => {
                let Some(given) = self.solution_of(&nodes, &problem, (&classes, &columns)) else {
                    return false;
                };
                Ok(given)
            }
            None => solver::solve(&problem, &self.inputs.options.solver, stop),
        };
        if self.inputs.options.keep_solves {
            let keys = |class: &usize| self.queues[*class].iter().map(|pod| pod.key.clone()).collect();
            let pods = classes.iter().map(keys).collect();
            let solution = solved.as_ref().ok().cloned();
            self.outcome.solves.push(uncharged(Solve { problem: problem.clone(), pods, solution }));
        }
        let Some(solution) = self.checked(&problem, solved) else { return false };
        let mut lacking = self.lacking_on_demand(candidates, &columns, &solution);
        if !lacking.is_empty() {
            // Without these pools' spot nodes, pods may get those of another pool that must wait.
            lacking.extend(self.waiting_for_on_demand(candidates, &columns));
        }
        let (columns, lacking) = (&columns, &lacking);
        let call = TooEarly { candidates, columns, problem: &problem, solution: &solution, lacking };
        let instead = if lacking.is_empty() {
            None
        } else {
            match self.on_demand_first(call, stop) {
                Some(instead) => Some(instead),
                None => return false,
            }
        };
        let done = instead.as_ref().map_or(&solution, |first| &first.solution);
        // A plan that keeps the floor costs no less than one with too many spot nodes, unless it leaves more pods out.
        let left = Self::left_out(&solution);
        let first = instead.as_ref().filter(|_| bound && left == 0);
        let with_floor = first.and_then(|first| self.bound_with_floor(call, first, stop));
        self.apply(candidates, (&classes, &there), columns, done);
        let closed = instead.as_ref().map_or(lacking, |first| &first.closed);
        self.note_spot_rules((candidates, columns), &classes, (&spot, closed), done);
        let buys = |group: &solver::solution::NewNodes| {
            matches!(columns.all[group.candidate as usize].source, Source::New(_))
        };
        let buys_any = done.new_nodes.iter().any(buys);
        if priced {
            let charged = done.charges.preferences;
            self.outcome.charged += charged;
            self.outcome.objective += done.objective().saturating_sub(charged);
            self.outcome.calls += usize::from(buys_any);
            let over_time =
                self.inputs.horizons.weighs() || there.at_a_cost.iter().any(|rooms| !rooms.is_empty());
            self.outcome.is_over_time |= over_time;
        }
        if bound {
            self.outcome.steps += usize::from(buys_any);
            let higher = with_floor.filter(|(least, _)| *least > solution.bound);
            let known = higher.unwrap_or((solution.bound, solution.proof));
            if instead.is_some() {
                self.floored = Some(Floored { problem, classes, bound: known });
            } else {
                self.outcome.bound += known.0;
                self.outcome.proof = self.outcome.proof.max(Some(known.1));
            }
        }
        let is_asked = |solution: &Solution| solution.stopped == solver::Stopped::Asked;
        self.outcome.stopped_early |= is_asked(&solution) || is_asked(done);
        true
    }

    /// Returns a solution that passes the checker; `None` if it does not.
    fn checked(
        &mut self,
        problem: &solver::Problem,
        solved: Result<Solution, solver::ProblemError>,
    ) -> Option<Solution> {
        let solution = match solved {
            Ok(solution) => solution,
            Err(error) => {
                self.outcome.refused.push(error.to_string());
                return None;
            }
        };
        if let Err(violations) = solver::check(problem, &solution) {
            self.outcome.refused.extend(violations.iter().map(ToString::to_string));
            return None;
        }
        Some(solution)
    }

    /// Returns the number of unplaced pods.
    fn waiting(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// Returns the rooms that fit a pod of the class.
    fn on_rooms(&self, class: usize) -> impl Iterator<Item = usize> {
        let class = &self.inputs.classes.classes[class];
        // It is unknown how an existing node could share or repartition its GPUs, so pods get only whole GPUs there.
        let possible = matches!(class.gpu_need, None | Some(GpuNeed::Whole(_)));
        (0..self.rooms.all.len()).filter(move |room| {
            possible
                && self.room_admits[*room].contains(class.signature)
                && rules::is_host(class.spec, &self.rooms.all[*room].labels)
                && class.on_whole().fits(&self.rooms.all[*room].free)
                && self.colocation.admits(class.profile, &self.rooms.all[*room].present)
        })
    }

    /// Returns the nodes bought so far that fit another pod of the class.
    fn on_new(&self, class: usize) -> impl Iterator<Item = usize> {
        let class = &self.inputs.classes.classes[class];
        (0..self.outcome.new.len()).filter(move |at| {
            let node = &self.outcome.new[*at];
            class.gpu_need.is_none()
                && !node.leaves_choice
                && self.inputs.admissions.admits(node.pool, class.signature, node.offer.offering)
                && class.requests.fits(&node.free)
                && self.colocation.admits(class.profile, &node.present)
        })
    }
}
