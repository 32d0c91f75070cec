//! Planning: which pods want a node, what room there is, what is bought for the rest.

pub(crate) mod audit;
pub(crate) mod claims;
pub(crate) mod misfit;
pub(crate) mod misfit_seen;
pub(crate) mod misfit_volumes;
pub(crate) mod pack;
pub(crate) mod place;
pub(crate) mod replicas;

pub use crate::demand::expected::{ExpectedPods, expected};
use crate::demand::{buffer, expected, gangs, profiles, successors, volumes, waiting, wanting};
pub use crate::model::memory::Memory;
pub use crate::model::options::{PlanOptions, Sharing, SpotRisk};
pub use crate::model::plan::{
    Baselines, Commitment, CommitmentUse, Counts, Moved, MovedTo, Placement, Plan, PlannedClaim, PlannedGpu,
    PlannedInstance, PlannedShare, PoolFindings, Solve, Target, UnplacedPod, UnplacedReason,
};
pub use crate::model::relaxed::{Preferences, RelaxedPreference, RelaxedReason};
use crate::plan::audit::topology as audit_topology;
use crate::plan::pack::{classes, rounds};
use crate::plan::place::preferences;
use crate::plan::place::{sticky, topology};
use crate::rules::colocation;
use crate::rules::pin::Pin;
pub use crate::supply::commitments::left as left_of_commitments;
use crate::supply::{
    commitments, daemonsets, interruption_backoff, interruption_risk, limits, offers, rooms,
};

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;
use poolwright_solver::Proof;
pub use poolwright_solver::{NeverStop, StopSignal};

use crate::model::{Pod, PodKey, PoolName, Snapshot, Uid};

/// How often a plan is made anew because rules about other pods turned out otherwise than expected.
const ATTEMPTS: usize = 12;

/// A plan that leaves pods over for such rules is made anew at most so often, those first; of many pods less often: with so many
/// the last time.
const REORDERINGS: usize = 3;
const REORDERED_PODS: usize = 3_000;

/// Plans. Same snapshot, time and options: same plan, unless `watch` stops the solver early.
pub fn plan(snapshot: &Snapshot, now: Timestamp, options: &PlanOptions, watch: &mut dyn StopSignal) -> Plan {
    let expected::Foreseen { snapshot: mut foreseen, believed_until, successors } =
        expected::foresee(snapshot, now);
    let mut standing = snapshot.pools.values().filter(|pool| pool.replicas.is_some() || buffer::wants(pool));
    let look_again = standing.next().map(|_| now.checked_add(replicas::LOOK).unwrap_or(Timestamp::MAX));
    let ordered = match look_again {
        Some(_) => {
            buffer::add(foreseen.to_mut(), now, options);
            replicas::order(foreseen.to_mut(), now, options)
        }
        None => replicas::Ordered::default(),
    };
    let what_is_left = commitments::less_what_is_used(&foreseen, options);
    let options = what_is_left.as_ref();
    let ruled = profiles::apply(foreseen, options);
    let resolved = volumes::resolve(ruled.as_ref());
    let snapshot = resolved.snapshot.as_ref();
    let mut company = colocation::Company::new(snapshot);
    let relations = topology::Relations::new(snapshot);
    let daemons = daemonsets::Daemons::new(snapshot);
    let groups = gangs::Groups::new(snapshot);
    let demand = waiting::collect(snapshot, options, &resolved, &groups);
    let attachable = &resolved.attachable;
    let rooms = rooms::collect(snapshot, &daemons, &company, attachable);
    let mut supply = offers::collect(snapshot, &daemons, &company, attachable, options, now);
    company.set_least(snapshot, &daemons, &rooms, &supply);
    let scene = Scene {
        snapshot,
        volumes: &resolved,
        now,
        options,
        company,
        relations,
        daemons,
        groups,
        demand,
        rooms,
    };
    let Attempt { mut plan, limits_reached, violations, .. } = scene.weigh(&supply, watch);
    for (pool, sentence) in limits_reached.into_iter().chain(ordered.limits) {
        if let Some(findings) = supply.findings.get_mut(&pool) {
            findings.limit_reached.get_or_insert(sentence);
        }
    }
    if plan.refused.is_empty() {
        plan.refused = audit::audit(&resolved, options, &plan.claims, &plan.placements);
        plan.refused.extend(violations.iter().map(ToString::to_string));
        plan.refused.extend(gangs::audit(snapshot, &plan));
    }
    plan.again_at = [plan.again_at, believed_until, look_again].into_iter().flatten().min();
    buffer::forget(&mut plan);
    if !plan.refused.is_empty() {
        plan.claims.clear();
        plan.covered = UsdPerHour::ZERO;
        plan.commitments.clear();
    }
    // What static pools lack they get whatever becomes of the rest.
    plan.bound += replicas::cost(&ordered.claims);
    plan.bound +=
        ordered.claims.iter().map(|claim| interruption_backoff::of_claim(snapshot, now, claim)).sum();
    plan.claims.extend(ordered.claims);
    plan.claims.sort_by(|a, b| a.name.cmp(&b.name));
    plan.pools = supply.findings;
    let prices: UsdPerHour = plan.claims.iter().filter_map(PlannedClaim::price).sum();
    plan.cost = UsdPerHour::from_micros(prices.micros().saturating_sub(plan.covered.micros()));
    let beside = |claim| {
        interruption_risk::of_claim(snapshot, options, claim)
            + interruption_backoff::of_claim(snapshot, now, claim)
    };
    plan.risk = plan.claims.iter().map(beside).sum();
    plan.bound = plan.bound.min(plan.cost + plan.risk);
    plan.proof = if plan.bound == plan.cost + plan.risk {
        Proof::Exact
    } else {
        // What adds to the cost alone is no solve's to prove.
        plan.proof.max(Proof::Complete)
    };
    plan.unknown_price_claims = plan.claims.iter().filter(|claim| claim.price().is_none()).count();
    plan.nominations = nominations(snapshot, &plan);
    plan.moved = successors::moved(&successors, &plan);
    expected::forget(&mut plan);
    let there = |claim: &PlannedClaim| claim.planned_pods.iter().filter_map(PodKey::existing).count();
    let on_new = plan.claims.iter().map(there).sum();
    plan.counts = Counts {
        total: plan.placements.len() + on_new + plan.unplaced.len(),
        on_existing: plan.placements.len(),
        on_new,
        unplaced: plan.unplaced.len(),
    };
    plan
}

/// What stays the same when a plan is made anew.
struct Scene<'a> {
    snapshot: &'a Snapshot,
    volumes: &'a volumes::Resolved<'a>,
    now: Timestamp,
    options: &'a PlanOptions,
    company: colocation::Company<'a>,
    relations: topology::Relations<'a>,
    daemons: daemonsets::Daemons<'a>,
    groups: gangs::Groups<'a>,
    demand: wanting::Demand<'a>,
    rooms: rooms::Rooms<'a>,
}

/// A plan that may be made anew.
struct Attempt {
    plan: Plan,
    /// Pods that were pinned to a place and are left over there, and why.
    left: Vec<(PodKey, Pin, String)>,
    limits_reached: Vec<(PoolName, String)>,
    /// Rules about hosts, zones and other parts of the cluster that it does not keep.
    violations: Vec<audit_topology::Violation>,
    /// What became of preferences before anything was packed.
    wishes: preferences::Record,
    /// No plan without preferences costs less; `None` where that is not known.
    floor: Option<UsdPerHour>,
}

impl Scene<'_> {
    /// Places are chosen one after the other, and in another order there may be one for each pod: pods that found none choose
    /// first, as long as that leaves fewer over.
    fn best_attempt(
        &self,
        supply: &offers::Supply<'_>,
        preferences: Preferences,
        watch: &mut dyn StopSignal,
    ) -> Attempt {
        let mut first = BTreeSet::new();
        let mut best = self.settled_attempt(supply, preferences, &first, watch);
        let most = REORDERINGS.min(REORDERED_PODS / self.demand.wanting.len().max(1));
        for _ in 0..most {
            let left = best.plan.unplaced.iter();
            let left = left.filter(|left| left.reason == UnplacedReason::TopologyRule);
            let before = first.len();
            first.extend(left.map(|left| left.pod.clone()));
            if first.len() == before || watch.should_stop() {
                break;
            }
            let next = self.settled_attempt(supply, preferences, &first, watch);
            let better = next.plan.refused.is_empty()
                && (!best.plan.refused.is_empty() || self.left_over(&next.plan) < self.left_over(&best.plan));
            if better {
                best = next;
            }
        }
        best
    }

    /// How many pods are left over, by priority, the highest first.
    fn left_over(&self, plan: &Plan) -> Vec<(Reverse<i32>, usize)> {
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
        preferences: Preferences,
        first: &BTreeSet<PodKey>,
        watch: &mut dyn StopSignal,
    ) -> Attempt {
        let mut lessons = topology::Lessons { first: first.clone(), ..topology::Lessons::default() };
        let mut attempts = 1;
        loop {
            let attempt = self.attempt(supply, &lessons, preferences, watch);
            let learnt = attempts < ATTEMPTS && self.learn(&mut lessons, &attempt);
            if !learnt && !self.leave_gangs_out(&mut lessons, &attempt.plan, attempts < ATTEMPTS) {
                return attempt;
            }
            attempts += 1;
        }
    }

    fn attempt(
        &self,
        supply: &offers::Supply<'_>,
        lessons: &topology::Lessons,
        preferences: Preferences,
        watch: &mut dyn StopSignal,
    ) -> Attempt {
        let Self { snapshot, volumes, now, options, company, relations, daemons, .. } = self;
        let (now, options) = (*now, *options);
        let mut rooms = self.rooms.clone();
        let mut unplaced = self.demand.unplaced.clone();
        // What an earlier plan decided stays decided: no order of events, and no restart, buys for the same pod twice.
        let wanting = self.demand.wanting.clone();
        let mut settled = sticky::settle(wanting, snapshot, &mut rooms, company, now, &lessons.unsettled);
        settled.leave_out(&lessons.gangs_left_out);
        buffer::give_way(&mut settled.open, options);
        unplaced.extend(settled.unplaced);
        let assigned = topology::assign(&topology::Inputs {
            snapshot,
            relations,
            rooms: &rooms,
            daemons,
            company,
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
        let chosen = preferences::choose(&preferences::Inputs {
            snapshot,
            supply,
            options,
            preferences,
            rooms: &rooms,
            settled: &settled.placed,
            open: &settled.open,
            assigned: &assigned,
        });
        let mut company = Cow::Borrowed(company);
        let models = supply.mig_models();
        let with = (&assigned, &chosen);
        let classes = classes::group(&settled.open, with, &mut company, options.sharing, &models);
        let company: &colocation::Company<'_> = &company;
        let admissions = offers::Admissions::new(supply, &classes.signatures);
        let mut limits = limits::Limits::new(supply, snapshot, &options.limits);
        let inputs = rounds::Inputs { supply, admissions: &admissions, classes: &classes, company, options };
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
            company,
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
        let seen = misfit::Seen {
            snapshot,
            volumes,
            supply,
            admissions: &admissions,
            limits: &limits,
            company,
            daemons,
            sharing: options.sharing,
        };
        let mut pinned_and_left = Vec::new();
        for (index, class) in classes.classes.iter().enumerate() {
            let Some(left) = outcome.left.get(index).filter(|left| !left.is_empty()) else { continue };
            let (reason, message) = seen.explain(class, outcome.limit[index]);
            let pin = assigned.pin(&left[0].key);
            let (reason, message) = match misfit::kept_off(class, pin, &rooms, company) {
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
                rooms.all.iter().any(|room| {
                    class.on_whole().fits(&room.free)
                        && crate::rules::admits(spec, &room.labels, &room.taints).is_ok()
                })
            };
            let elsewhere = |limit: u32| {
                let of = limits.all[limit as usize].pool;
                limits.is_stock(limit) || of.is_some_and(|of| supply.others_sell(of, spec))
            };
            let pinned = || left.iter().any(|pod| !assigned.pin(&pod.key).is_empty());
            if pinned() && (outcome.limit[index].is_none_or(elsewhere) || has_room()) {
                let pins = left.iter().map(|pod| (pod.key.clone(), assigned.pin(&pod.key).clone()));
                let pins = pins.filter(|(_, pin)| !pin.is_empty());
                pinned_and_left.extend(pins.map(|(pod, pin)| (pod, pin, message.clone())));
            }
        }
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
        let (left, wishes) = (pinned_and_left, chosen.record());
        Attempt { plan, left, limits_reached, violations, wishes, floor }
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
}

fn nominations(snapshot: &Snapshot, plan: &Plan) -> BTreeMap<PodKey, (Uid, String)> {
    let on_rooms = plan.placements.iter().map(|placement| {
        let (Target::Claim(crate::model::ClaimName(name)) | Target::Node(name)) = &placement.target;
        (&placement.pod, name)
    });
    let on_new =
        plan.claims.iter().flat_map(|claim| claim.planned_pods.iter().map(move |pod| (pod, &claim.name.0)));
    on_rooms
        .chain(on_new)
        .filter_map(|(key, target)| {
            let pod = snapshot.pods.get(key)?;
            Some((key.clone(), (pod.uid.clone(), target.clone())))
        })
        .collect()
}
