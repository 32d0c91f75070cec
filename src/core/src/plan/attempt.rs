//! One attempt at a plan: places pods, chooses preferences, packs, creates claims, and explains unplaced pods.

mod homes;
mod left_without_place;
mod limits_beside;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_solver::{Proof, StopSignal};

use crate::demand::Members;
use crate::model::plan::{OverTime, PlacedPod, Plan, UnplacedPod, UnplacedReason};
use crate::model::relaxed::PreferencePolicy;
use crate::model::{ObjectKey, Pod, PodKey, PoolName};
use crate::plan::attempt::left_without_place::short;
use crate::plan::audit::topology as audit_topology;
use crate::plan::context::PlanContext;
use crate::plan::left_by::LeftBy;
use crate::plan::pack::horizon::Horizons;
use crate::plan::pack::solves::packing::Packing;
use crate::plan::pack::{classes, solves};
use crate::plan::pending::{PendingPod, Settled};
use crate::plan::place::{preferences, sticky, topology};
use crate::plan::unplaced::allowed::AllowedTypes;
use crate::plan::unplaced::left_over::{LeftOver, LeftPods};
use crate::plan::{claims, groups, pending, unplaced};
use crate::rules::colocation::Colocation;
use crate::supply::spot_mix::SpotMix;
use crate::supply::{limits, offerings, rooms, spot_mix};

/// One attempt at a plan. Another attempt may follow and use its lessons.
pub(crate) struct Attempt {
    pub plan: Plan,
    /// What packing left out.
    pub left: LeftPods,
    pub limits_reached: Vec<(PoolName, String)>,
    /// The violations of rules about hosts, zones and other domains.
    pub violations: Vec<audit_topology::Violation>,
    /// The preferences that were decided before packing.
    pub preferences: preferences::Record,
    /// A lower bound for the cost of a plan without preferences; `None` if unknown.
    pub floor: Option<UsdPerHour>,
    /// Offerings of nodes that were not bought, because their claims would not leave the choice that `minValues` asks for.
    pub unlistable: BTreeSet<(usize, usize)>,
    /// The solver's objective, for offerings with known prices.
    pub objective: UsdPerHour,
    /// The domains that spread constraints leave out.
    pub left_out: topology::LeftOut,
    /// The domains in which a limit left a pod without a node, with their topology key.
    pub short: BTreeSet<(String, String)>,
    /// A limit that left pods out, by their spread constraint.
    pub spread_limits: BTreeMap<usize, u32>,
    /// Whether pods were kept off nodes, in this attempt or in one that it learned from.
    pub kept_room: bool,
    /// Whether that is so, and packing left a pod out that some node could hold.
    pub leaves_with_home: bool,
}

/// The pods with a place, and the open pods.
struct Placed<'a> {
    settled: Settled<'a>,
    assigned: topology::Assigned<'a>,
    unplaced: Vec<UnplacedPod>,
    /// Pods of incomplete gangs, with their gang.
    of_gangs: Vec<(&'a Pod, ObjectKey)>,
}

/// The result of packing, and the inputs that later steps need.
struct Packed<'a> {
    colocation: Cow<'a, Colocation<'a>>,
    classes: classes::PodClasses<'a>,
    admissions: offerings::Admissions,
    limits: limits::Limits,
    spot_mixes: BTreeMap<usize, SpotMix>,
    outcome: Packing<'a>,
    /// A lower bound for the cost of a plan without preferences; `None` if unknown.
    floor: Option<UsdPerHour>,
    /// Whether pods without a pin were kept off offerings, so that the lower bound holds only without these.
    keeps_out: bool,
}

impl PlanContext<'_> {
    /// Makes one attempt. Its steps are below, in this order.
    pub fn attempt(
        &self,
        supply: &offerings::Supply<'_>,
        lessons: &topology::Lessons,
        policy: PreferencePolicy,
        stop: &mut dyn StopSignal,
    ) -> Attempt {
        let mut rooms = self.rooms.clone();
        let Placed { settled, assigned, mut unplaced, of_gangs } =
            self.place(supply, (lessons, policy), &mut rooms);
        let preferred = self.prefer(supply, policy, &rooms, &settled, &assigned);
        let mut unlistable = BTreeSet::new();
        let places = (&settled, &assigned, &preferred);
        let mut packed = self.pack(supply, lessons, places, &mut rooms, stop);
        let mut plan = Plan {
            again_at: settled.again_at,
            pinned_pods: assigned.pinned(),
            ..packed.figures(&self.horizons)
        };
        if packed.keeps_out {
            drop_bound(&mut plan);
        }
        let mut on_rooms = settled.placed.clone();
        if plan.refused.is_empty() {
            let made = self.make_claims(supply, &settled.open, &packed, &rooms);
            plan.claims = made.claims;
            unlistable.extend(made.refused.iter().map(|node| node.offering));
            for node in &made.refused {
                packed.limits.give_back(&node.uses);
            }
            packed.limits.take(&made.more.into_iter().collect::<Vec<_>>());
            // The bound is for the pods of refused nodes too, and without the offerings of nodes that an earlier attempt refused.
            if !made.refused.is_empty() || !lessons.unlistable.is_empty() {
                drop_bound(&mut plan);
            }
            unplaced.extend(made.refused.into_iter().flat_map(|node| {
                let (reason, message) = (UnplacedReason::LimitReached, node.message);
                node.pods.into_iter().map(move |pod| UnplacedPod { pod, reason, message: message.clone() })
            }));
            on_rooms.extend(&packed.outcome.on_rooms);
        }
        plan.placements = placements(&on_rooms, &rooms);
        // Sentences about limits count what this plan buys, so they come last.
        let without_place = self.without_place(&assigned, lessons);
        let beside = self.limits_beside_rules(supply, (&packed, &rooms), &without_place);
        unplaced.extend(without_place.iter().zip(beside).map(|((pod, reason, by), beside)| UnplacedPod {
            pod: pod.clone(),
            reason: *reason,
            message: by.sentence(&packed.limits, supply) + &beside,
        }));
        let limit_of = |(_, gang): &(&Pod, ObjectKey)| lessons.gangs_left_out.get(gang)?.limit_reached();
        let mut limits_told: BTreeSet<u32> = of_gangs.iter().filter_map(limit_of).collect();
        let lacking = lessons.gangs_left_out.iter();
        let mut helping = BTreeMap::new();
        let told: BTreeMap<&ObjectKey, String> =
            lacking.map(|(gang, of)| (gang, of.message(&packed.limits, supply, &mut helping))).collect();
        unplaced.extend(of_gangs.into_iter().filter_map(|(pod, gang)| {
            let message = told.get(&gang)?.clone();
            Some(UnplacedPod { pod: pod.key.clone(), reason: UnplacedReason::GangIncomplete, message })
        }));
        let missing = self.groups.missing(self.snapshot, &plan);
        // The solver leaves out all pods if nobody waits for the plan, and then nobody reads why.
        let mut left = if stop.is_abandoned() {
            LeftPods::default()
        } else {
            self.leave_over(supply, &assigned, &packed, (&rooms, &missing), &mut unplaced)
        };
        let spread_limits = self.spread_limits(&without_place, &left);
        let is_of_gang = |pod: &PodKey| self.snapshot.pods.get(pod).is_some_and(|pod| pod.group.is_some());
        let of_gangs = without_place.into_iter().filter(|(pod, ..)| is_of_gang(pod));
        left.of_gangs.extend(of_gangs.map(|(pod, _, by)| (pod, by)));
        unplaced.sort();
        left.beside_rules.extend(self.gang_limits_beside_rules(
            supply,
            (&packed, &rooms),
            (&missing, unplaced.as_slice()),
            lessons,
        ));
        plan.unplaced = unplaced;
        let violations = if plan.refused.is_empty() {
            audit_topology::violations(self.snapshot, &plan.claims, &plan.placements)
        } else {
            Vec::new()
        };
        limits_told.extend(&left.limits);
        let few = lessons.few.iter().filter(|(at, _)| spread_limits.contains_key(*at)).map(|(_, by)| by);
        limits_told.extend(lessons.cut.values().chain(few).filter_map(LeftBy::reached));
        let limits_reached = packed.limits_reached(&limits_told, &left.after_held_back, supply);
        let short = short(lessons, &left);
        let kept_room = packed.outcome.by_kept_room || lessons.kept_room;
        Attempt {
            plan,
            left,
            limits_reached,
            violations,
            preferences: preferred.record(),
            floor: packed.floor,
            kept_room,
            leaves_with_home: kept_room && packed.leaves_with_home(supply, &self.rooms),
            unlistable,
            objective: packed.outcome.objective,
            left_out: assigned.left_out.clone(),
            short,
            spread_limits,
        }
    }

    /// Places pods at the place of an earlier plan, or pins them to a place because of rules about other pods.
    fn place<'s>(
        &'s self,
        supply: &'s offerings::Supply<'s>,
        (lessons, policy): (&topology::Lessons, PreferencePolicy),
        rooms: &mut rooms::Rooms<'s>,
    ) -> Placed<'s> {
        let Self { snapshot, volumes, now, options, colocation, relations, daemons, .. } = self;
        let mut unplaced = self.demand.unplaced.clone();
        // Earlier places are kept. So no order of events and no restart makes Poolwright buy twice for the same pod.
        let pending = self.demand.pending.clone();
        let hosts = || self.hosts();
        let mut settled =
            sticky::settle(pending, snapshot, rooms, colocation, *now, &lessons.unsettled, hosts);
        let of_gangs = groups::Groups::leave_out(&lessons.gangs_left_out, &mut settled);
        pending::collect::give_way(&mut settled.open, options);
        unplaced.append(&mut settled.unplaced);
        let assigned = topology::assign(&topology::TopologyInputs {
            snapshot,
            relations,
            rooms,
            daemons,
            colocation,
            settled: &settled.placed,
            open: &settled.open,
            supply,
            options,
            policy,
            lessons,
            volumes,
            limits: OnceCell::new(),
        });
        Placed { settled, assigned, unplaced, of_gangs }
    }

    /// Chooses the preferences that new nodes should meet.
    fn prefer<'s>(
        &'s self,
        supply: &'s offerings::Supply<'s>,
        policy: PreferencePolicy,
        rooms: &rooms::Rooms<'s>,
        settled: &Settled<'s>,
        assigned: &'s topology::Assigned<'s>,
    ) -> preferences::PreferenceChoice<'s> {
        preferences::choose(&preferences::PreferenceInputs {
            snapshot: self.snapshot,
            supply,
            options: self.options,
            policy,
            rooms,
            settled: &settled.placed,
            open: &settled.open,
            assigned,
        })
    }

    /// Packs open pods onto rooms and new nodes with the solver.
    fn pack<'s>(
        &'s self,
        supply: &'s offerings::Supply<'s>,
        lessons: &'s topology::Lessons,
        (settled, assigned, preferred): (
            &Settled<'s>,
            &'s topology::Assigned<'s>,
            &'s preferences::PreferenceChoice<'s>,
        ),
        rooms: &mut rooms::Rooms<'s>,
        stop: &mut dyn StopSignal,
    ) -> Packed<'s> {
        let options = self.options;
        let mut colocation: Cow<'s, Colocation<'s>> = Cow::Borrowed(&self.colocation);
        let models = supply.mig_models();
        let with = (assigned, preferred);
        let lives = (&self.horizons, &self.losses);
        let first = self.groups.needed_by_roles(self.snapshot, settled);
        let rules = (options, &self.crowds, &first);
        let classes = classes::group(&settled.open, with, &mut colocation, lives, rules, &models);
        let mut admissions = offerings::Admissions::new(supply, &classes.signatures);
        let keeps_out = !lessons.only.is_empty()
            && assigned.left_out.keep_out(&self.relations, supply, &classes.signatures, &mut admissions);
        let mut limits = limits::Limits::new(supply, self.snapshot, options);
        let spot_mixes = spot_mix::of_pools(supply, self.snapshot);
        let hosts = || self.hosts();
        let inputs = solves::SolveInputs {
            supply,
            admissions: &admissions,
            classes: &classes,
            colocation: &colocation,
            hosts: &hosts,
            horizons: &self.horizons,
            keeps_room: lessons.keeps_room,
            losses: &self.losses,
            options,
            unlistable: &lessons.unlistable,
            spot_mixes: &spot_mixes,
        };
        let lives = self.lives_of_rooms(supply, &limits, (&*rooms, &settled.placed), lessons.keeps_room);
        let mut outcome = solves::run(&inputs, rooms, lives, &mut limits, stop);
        let floor = preferred.floor(&inputs, &outcome).filter(|_| !keeps_out);
        if let Some(least) = outcome.least.take() {
            colocation.to_mut().set_least(least);
        }
        outcome.unite(assigned);
        Packed { colocation, classes, admissions, limits, spot_mixes, outcome, floor, keeps_out }
    }

    /// Creates claims for the new nodes.
    fn make_claims<'s>(
        &'s self,
        supply: &'s offerings::Supply<'s>,
        open: &[PendingPod<'s>],
        packed: &Packed<'s>,
        rooms: &rooms::Rooms<'_>,
    ) -> claims::MadeClaims {
        let displaced = open.iter().filter(|want| want.displaced(rooms)).map(|want| &want.pod.key);
        let maker = claims::ClaimBuilder {
            displaced: displaced.collect(),
            snapshot: self.snapshot,
            supply,
            admissions: &packed.admissions,
            classes: &packed.classes,
            colocation: &packed.colocation,
            limits: &packed.limits,
            losses: &self.losses,
            spot_mixes: &packed.spot_mixes,
            options: self.options,
            now: self.now,
        };
        maker.claims(&packed.outcome.new)
    }

    /// Explains each unplaced pod, and returns what later attempts learn from them.
    fn leave_over<'s>(
        &'s self,
        supply: &'s offerings::Supply<'s>,
        assigned: &topology::Assigned<'s>,
        packed: &Packed<'s>,
        (rooms, missing): (&rooms::Rooms<'s>, &BTreeMap<ObjectKey, Members>),
        unplaced: &mut Vec<UnplacedPod>,
    ) -> LeftPods {
        let allowed = AllowedTypes::default();
        let left_over = LeftOver {
            inputs: unplaced::UnplacedInputs {
                snapshot: self.snapshot,
                volumes: self.volumes,
                supply,
                admissions: &packed.admissions,
                limits: &packed.limits,
                colocation: &packed.colocation,
                daemons: &self.daemons,
                options: self.options,
                allowed: &allowed,
                origins: &[],
                is_of_gang: false,
            },
            classes: &packed.classes,
            outcome: &packed.outcome,
            assigned,
            rooms,
            missing,
        };
        left_over.explain(unplaced)
    }
}

impl Packed<'_> {
    /// Returns a plan with the figures of the solver calls, and nothing else.
    fn figures(&mut self, horizons: &Horizons) -> Plan {
        let outcome = &mut self.outcome;
        let over_time = outcome.is_over_time.then(|| OverTime {
            cost: horizons.amount(outcome.objective),
            bound: horizons.amount(outcome.bound.min(outcome.objective)),
        });
        Plan {
            refused: std::mem::take(&mut outcome.refused),
            solves: std::mem::take(&mut outcome.solves),
            bound: if over_time.is_some() { UsdPerHour::ZERO } else { outcome.bound },
            over_time,
            proof: outcome.proof.unwrap_or_default(),
            baselines: outcome.baselines,
            by_weight: outcome.by_weight,
            by_risk: outcome.by_risk,
            by_spot_rules: outcome.by_spot_rules,
            by_min_values: outcome.by_min_values,
            by_node_spread: outcome.by_node_spread,
            by_kept_room: outcome.by_kept_room,
            by_priority: outcome.by_priority,
            in_steps: outcome.steps > 1,
            stopped_early: outcome.stopped_early,
            covered: outcome.covered,
            commitments: std::mem::take(&mut outcome.commitments),
            ..Plan::default()
        }
    }

    /// Returns the reached limits by pool, with those that pods are told of. `after_held_back` has the sentences about limits that are
    /// told only after a stock-out. Limits on all pools together are left out, because they are no condition of a single pool.
    fn limits_reached(
        &self,
        told: &BTreeSet<u32>,
        after_held_back: &BTreeMap<u32, String>,
        supply: &offerings::Supply<'_>,
    ) -> Vec<(PoolName, String)> {
        let of_pool = |limit: &u32| {
            let pool = self.limits.all[*limit as usize].pool?;
            let sentence = after_held_back.get(limit).filter(|_| !told.contains(limit)).cloned();
            let sentence = sentence.unwrap_or_else(|| self.limits.sentence(*limit, supply, 0));
            Some((supply.pools[pool].pool.name.clone(), sentence))
        };
        let all = self.outcome.limits_reached.iter().chain(told).chain(after_held_back.keys());
        all.filter_map(of_pool).collect()
    }
}

/// Removes a bound that may not hold for the pods that have a place.
fn drop_bound(plan: &mut Plan) {
    (plan.bound, plan.proof) = (UsdPerHour::ZERO, Proof::Truncated);
    if let Some(over_time) = &mut plan.over_time {
        over_time.bound = Usd::default();
    }
}

/// Returns the pods that the plan places on existing nodes and claims.
fn placements(on_rooms: &[(usize, &Pod)], rooms: &rooms::Rooms<'_>) -> Vec<PlacedPod> {
    let placement = |(room, pod): &(usize, &Pod)| PlacedPod {
        pod: pod.key.clone(),
        target: rooms.all[*room].target.clone(),
    };
    let mut placements: Vec<PlacedPod> = on_rooms.iter().map(placement).collect();
    placements.sort();
    placements
}
