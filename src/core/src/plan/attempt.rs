//! Attempts at a plan: place, pack, make claims, learn, and try again.
//!
//! [`Scene::attempt`] is one attempt: it places pods where room is or a rule pins them, packs the others onto new nodes, and makes
//! claims of those nodes. What an attempt shows about rules, limits and gangs, the next one knows.

use crate::plan::wanted::Demand;
use crate::plan::wanted::Settled;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;

use poolwright_solver::StopSignal;

use crate::demand::volumes::Volumes;
use crate::model::plan::{Placement, Plan, UnplacedPod, UnplacedReason};
use crate::model::relaxed::PreferencePolicy;
use crate::model::{PlanOptions, Pod, PodKey, PoolName, Snapshot};
use crate::plan::audit::topology as audit_topology;
use crate::plan::pack::{classes, rounds};
use crate::plan::place::{preferences, spread_hosts, sticky, topology};
use crate::plan::prepare::Prepared;
use crate::plan::{audit, claims, groups, unplaced, wanting};
use crate::rules::colocation::Colocation;
use crate::rules::pin::Pin;
use crate::supply::{daemonsets, limits, offers, rooms};

/// How often a plan is made anew because rules about other pods turned out otherwise than expected.
const ATTEMPTS: usize = 12;

/// A plan that leaves pods over for such rules is made anew at most so often, those first; of many pods less often: with so many
/// the last time.
const REORDERINGS: usize = 3;
const REORDERED_PODS: usize = 3_000;

/// What all attempts at a plan share.
pub(crate) struct Scene<'a> {
    pub snapshot: &'a Snapshot,
    pub volumes: &'a Volumes,
    pub now: Timestamp,
    pub options: &'a PlanOptions,
    pub colocation: Colocation<'a>,
    pub relations: topology::Relations<'a>,
    pub daemons: daemonsets::Daemons<'a>,
    pub groups: groups::Groups<'a>,
    pub demand: Demand<'a>,
    pub rooms: rooms::Rooms<'a>,
}

/// One attempt at a plan. Another may follow that knows what this one taught.
pub(crate) struct Attempt {
    pub plan: Plan,
    /// Pods that were pinned to a place and are left over there, and why.
    pub left: Vec<(PodKey, Pin, String)>,
    pub limits_reached: Vec<(PoolName, String)>,
    /// Rules about hosts, zones and other parts of the cluster that it does not keep.
    pub violations: Vec<audit_topology::Violation>,
    /// What became of preferences before anything was packed.
    pub preferences: preferences::Record,
    /// No plan without preferences costs less; `None` where that is not known.
    pub floor: Option<UsdPerHour>,
}

/// Pods with a place, and pods that want one.
struct Placed<'a> {
    settled: Settled<'a>,
    assigned: topology::Assigned<'a>,
    unplaced: Vec<UnplacedPod>,
}

/// What was packed, to say why some pods were not.
struct Packed<'s, 'a> {
    inputs: unplaced::Inputs<'s, 'a>,
    classes: &'s classes::Classes<'a>,
    outcome: &'s rounds::Outcome<'a>,
    assigned: &'s topology::Assigned<'a>,
    rooms: &'s rooms::Rooms<'a>,
}

impl Packed<'_, '_> {
    /// Says of each pod that is left over why. Returns pods that were pinned to a place and may be had elsewhere.
    fn leave_over(&self, unplaced: &mut Vec<UnplacedPod>) -> Vec<(PodKey, Pin, String)> {
        let mut pinned_and_left = Vec::new();
        for (index, class) in self.classes.classes.iter().enumerate() {
            let Some(left) = self.outcome.left.get(index).filter(|left| !left.is_empty()) else { continue };
            let (reason, message) = self.inputs.explain(class, self.outcome.limit[index]);
            let pin = self.assigned.pin(&left[0].key);
            let (reason, message) = match unplaced::kept_off(class, pin, self.rooms, self.inputs.colocation) {
                Some(kept) if reason == UnplacedReason::NoOfferingFits => {
                    (UnplacedReason::TopologyRule, format!("{kept}; elsewhere: {message}"))
                }
                _ => (reason, message),
            };
            unplaced.extend(left.iter().map(|pod| UnplacedPod {
                pod: pod.key.clone(),
                reason,
                message: message.clone(),
            }));
            // Elsewhere the same limit binds, unless it is about how much of an offering can be had or another pool sells
            // something, or there is room.
            let spec = class.spec;
            let has_room = || {
                self.rooms.all.iter().any(|room| {
                    class.on_whole().fits(&room.free)
                        && crate::rules::admits(spec, &room.labels, &room.taints).is_ok()
                })
            };
            let elsewhere = |limit: u32| {
                let of = self.inputs.limits.all[limit as usize].pool;
                self.inputs.limits.is_stock(limit)
                    || of.is_some_and(|of| self.inputs.supply.others_sell(of, spec))
            };
            let pinned = || left.iter().any(|pod| !self.assigned.pin(&pod.key).is_empty());
            if pinned() && (self.outcome.limit[index].is_none_or(elsewhere) || has_room()) {
                let pins = left.iter().map(|pod| (pod.key.clone(), self.assigned.pin(&pod.key).clone()));
                let pins = pins.filter(|(_, pin)| !pin.is_empty());
                pinned_and_left.extend(pins.map(|(pod, pin)| (pod, pin, message.clone())));
            }
        }
        pinned_and_left
    }
}

impl<'a> Scene<'a> {
    /// What is there to place, and what may be bought for the rest.
    pub fn new(prepared: &'a Prepared<'a>) -> (Self, offers::Supply<'a>) {
        let Prepared { now, volumes, .. } = prepared;
        let (snapshot, options) = (prepared.snapshot.as_ref(), prepared.options.as_ref());
        let mut colocation = Colocation::new(snapshot);
        let relations = topology::Relations::new(snapshot);
        let daemons = daemonsets::Daemons::new(snapshot);
        let groups = groups::Groups::new(snapshot);
        let demand = wanting::collect(snapshot, options, volumes, &groups);
        let rooms = rooms::collect(snapshot, &daemons, &colocation, &volumes.attachable);
        let supply = offers::collect(snapshot, &daemons, &colocation, &volumes.attachable, options, *now);
        spread_hosts::set_least(&mut colocation, snapshot, &daemons, &rooms, &supply);
        let now = *now;
        let scene =
            Self { snapshot, volumes, now, options, colocation, relations, daemons, groups, demand, rooms };
        (scene, supply)
    }
}

impl Scene<'_> {
    /// Places are chosen one after the other, and in another order there may be one for each pod: pods that found none choose
    /// first, as long as that leaves fewer over.
    pub fn best_attempt(
        &self,
        supply: &offers::Supply<'_>,
        policy: PreferencePolicy,
        watch: &mut dyn StopSignal,
    ) -> Attempt {
        let mut first = BTreeSet::new();
        let mut best = self.settled_attempt(supply, policy, &first, watch);
        let most = REORDERINGS.min(REORDERED_PODS / self.demand.wanting.len().max(1));
        for _ in 0..most {
            let left = best.plan.unplaced.iter();
            let left = left.filter(|left| left.reason == UnplacedReason::TopologyRule);
            let before = first.len();
            first.extend(left.map(|left| left.pod.clone()));
            if first.len() == before || watch.should_stop() {
                break;
            }
            let next = self.settled_attempt(supply, policy, &first, watch);
            let better = next.plan.refused.is_empty()
                && (!best.plan.refused.is_empty() || self.left_over(&next.plan) < self.left_over(&best.plan));
            if better {
                best = next;
            }
        }
        best
    }

    /// How many pods are left over, by priority, the highest first.
    pub fn left_over(&self, plan: &Plan) -> Vec<(Reverse<i32>, usize)> {
        let mut counts: BTreeMap<Reverse<i32>, usize> = BTreeMap::new();
        for want in &self.demand.wanting {
            counts.entry(Reverse(want.pod.priority)).or_default();
        }
        for left in &plan.unplaced {
            let priority = self.snapshot.pods.get(&left.pod).map_or(0, |pod| pod.priority);
            *counts.entry(Reverse(priority)).or_default() += 1;
        }
        counts.into_iter().collect()
    }

    /// Plans until nothing new is learnt.
    fn settled_attempt(
        &self,
        supply: &offers::Supply<'_>,
        policy: PreferencePolicy,
        first: &BTreeSet<PodKey>,
        watch: &mut dyn StopSignal,
    ) -> Attempt {
        let mut lessons = topology::Lessons { first: first.clone(), ..topology::Lessons::default() };
        let mut attempts = 1;
        loop {
            let attempt = self.attempt(supply, &lessons, policy, watch);
            let learnt = attempts < ATTEMPTS && self.learn(&mut lessons, &attempt);
            if !learnt && !self.leave_gangs_out(&mut lessons, &attempt.plan, attempts < ATTEMPTS) {
                return attempt;
            }
            attempts += 1;
        }
    }

    /// Places pods: where an earlier plan put them, or where a rule about other pods pins them.
    fn place<'s>(
        &'s self,
        supply: &'s offers::Supply<'s>,
        lessons: &topology::Lessons,
        rooms: &mut rooms::Rooms<'s>,
    ) -> Placed<'s> {
        let Self { snapshot, now, options, colocation, relations, daemons, .. } = self;
        let mut unplaced = self.demand.unplaced.clone();
        // What an earlier plan decided stays decided: no order of events, and no restart, buys for the same pod twice.
        let wanting = self.demand.wanting.clone();
        let mut settled = sticky::settle(wanting, snapshot, rooms, colocation, *now, &lessons.unsettled);
        groups::Groups::leave_out(&lessons.gangs_left_out, &mut settled);
        wanting::give_way(&mut settled.open, options);
        unplaced.append(&mut settled.unplaced);
        let assigned = topology::assign(&topology::Inputs {
            snapshot,
            relations,
            rooms,
            daemons,
            colocation,
            settled: &settled.placed,
            open: &settled.open,
            supply,
            options,
            lessons,
        });
        for (pod, message) in &assigned.unplaced {
            // Where nothing more can be had, that is the reason; the rule only says why it is not elsewhere.
            let had = lessons.bans.get(pod).and_then(|pins| pins.values().next());
            let (reason, message) = match had {
                Some(limit) => (UnplacedReason::LimitReached, format!("{limit}; elsewhere it {message}")),
                None => (UnplacedReason::TopologyRule, message.clone()),
            };
            unplaced.push(UnplacedPod { pod: (*pod).clone(), reason, message });
        }
        Placed { settled, assigned, unplaced }
    }

    /// One attempt: place, pack, make claims, and say why pods are left over.
    fn attempt(
        &self,
        supply: &offers::Supply<'_>,
        lessons: &topology::Lessons,
        policy: PreferencePolicy,
        watch: &mut dyn StopSignal,
    ) -> Attempt {
        let Self { snapshot, volumes, now, options, colocation, daemons, .. } = self;
        let (now, options) = (*now, *options);
        let mut rooms = self.rooms.clone();
        let Placed { settled, assigned, mut unplaced } = self.place(supply, lessons, &mut rooms);
        let chosen = preferences::choose(&preferences::Inputs {
            snapshot,
            supply,
            options,
            policy,
            rooms: &rooms,
            settled: &settled.placed,
            open: &settled.open,
            assigned: &assigned,
        });
        let mut colocation = Cow::Borrowed(colocation);
        let models = supply.mig_models();
        let with = (&assigned, &chosen);
        let classes = classes::group(&settled.open, with, &mut colocation, options.sharing, &models);
        let colocation: &Colocation<'_> = &colocation;
        let admissions = offers::Admissions::new(supply, &classes.signatures);
        let mut limits = limits::Limits::new(supply, snapshot, &options.limits);
        let inputs = rounds::Inputs { supply, admissions: &admissions, classes: &classes, colocation, options };
        let mut outcome = rounds::run(&inputs, &mut rooms, &mut limits, watch);
        let floor = chosen.floor(&inputs, &outcome);
        outcome.unite(&assigned);

        let displaced = settled.open.iter().filter(|want| want.displaced(&rooms)).map(|want| &want.pod.key);
        let maker = claims::Maker {
            displaced: displaced.collect(),
            snapshot,
            supply,
            admissions: &admissions,
            classes: &classes,
            colocation,
            limits: &limits,
            options,
            now,
        };
        let mut plan = Plan {
            refused: std::mem::take(&mut outcome.refused),
            solves: std::mem::take(&mut outcome.solves),
            bound: outcome.bound,
            proof: outcome.proof.unwrap_or_default(),
            baselines: outcome.baselines,
            stopped_early: outcome.stopped_early,
            again_at: settled.again_at,
            pinned_pods: assigned.pinned(),
            covered: outcome.covered,
            commitments: std::mem::take(&mut outcome.commitments),
            ..Plan::default()
        };
        let mut on_rooms: Vec<(usize, &Pod)> = settled.placed;
        if plan.refused.is_empty() {
            plan.claims = maker.claims(&outcome.new);
            on_rooms.append(&mut outcome.on_rooms);
        }
        plan.placements = on_rooms
            .iter()
            .map(|(room, pod)| Placement { pod: pod.key.clone(), target: rooms.all[*room].target.clone() })
            .collect();
        plan.placements.sort();
        let packed = Packed {
            inputs: unplaced::Inputs {
                snapshot,
                volumes,
                supply,
                admissions: &admissions,
                limits: &limits,
                colocation,
                daemons,
                sharing: options.sharing,
            },
            classes: &classes,
            outcome: &outcome,
            assigned: &assigned,
            rooms: &rooms,
        };
        let pinned_and_left = packed.leave_over(&mut unplaced);
        unplaced.sort();
        plan.unplaced = unplaced;
        let mut limits_reached = Vec::new();
        for limit in std::mem::take(&mut outcome.limits_reached) {
            // One over all pools is no pool's condition.
            let Some(pool) = limits.all[limit as usize].pool else { continue };
            limits_reached.push((supply.pools[pool].pool.name.clone(), limits.sentence(limit, supply)));
        }
        let violations = if plan.refused.is_empty() {
            audit_topology::violations(snapshot, &plan.claims, &plan.placements)
        } else {
            Vec::new()
        };
        let (left, preferences) = (pinned_and_left, chosen.record());
        Attempt { plan, left, limits_reached, violations, preferences, floor }
    }

    /// Gangs that the plan has no room for as a whole are left out of the next: the less important half, for the others may
    /// have room then. Whether there were any.
    fn leave_gangs_out(&self, lessons: &mut topology::Lessons, plan: &Plan, half: bool) -> bool {
        if !plan.refused.is_empty() {
            return false;
        }
        let incomplete = self.groups.incomplete(self.snapshot, plan, &lessons.gangs_left_out);
        let count = if half { incomplete.len().div_ceil(2) } else { incomplete.len() };
        lessons.gangs_left_out.extend(incomplete.into_iter().take(count));
        count > 0
    }

    /// Whether a plan shows something that the next attempt should know.
    fn learn(
        &self,
        lessons: &mut topology::Lessons,
        Attempt { plan, left, violations, .. }: &Attempt,
    ) -> bool {
        if !plan.refused.is_empty() {
            return false;
        }
        let mut learnt = false;
        if !violations.is_empty() {
            learnt = lessons.open(&self.relations, self.snapshot, &plan.claims);
            if !learnt {
                learnt = true;
                let placed = |key: &PodKey| plan.placements.iter().any(|placement| placement.pod == *key);
                let mut left = Vec::new();
                for violation in violations {
                    // Where it was planned before, it may do better elsewhere.
                    if !(placed(&violation.pod) && lessons.unsettled.insert(violation.pod.clone())) {
                        left.push(violation);
                    }
                }
                // Without one of them the others may do: the least important goes first, of many a part.
                let priority = |violation: &audit_topology::Violation| {
                    self.snapshot.pods.get(&violation.pod).map_or(0, |pod| pod.priority)
                };
                left.sort_by(|a, b| (priority(a), &b.pod).cmp(&(priority(b), &a.pod)));
                for violation in left.iter().take(left.len().div_ceil(4)) {
                    lessons.given_up.insert(violation.pod.clone(), violation.sentence.clone());
                }
            }
        }
        for (pod, pin, why) in left {
            let bans = lessons.bans.entry(pod.clone()).or_default();
            learnt |= bans.insert(pin.clone(), why.clone()).is_none();
        }
        learnt
    }

    /// Checks the plan, unless an attempt has refused it already.
    pub fn audit(&self, plan: &mut Plan, violations: &[audit_topology::Violation]) {
        if plan.refused.is_empty() {
            plan.refused =
                audit::audit(self.snapshot, self.volumes, self.options, &plan.claims, &plan.placements);
            plan.refused.extend(violations.iter().map(ToString::to_string));
            plan.refused.extend(groups::audit(self.snapshot, plan));
        }
    }
}
