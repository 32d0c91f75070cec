//! Planning: which pods want a node, what room there is, what is bought for the rest.

mod audit;
mod audit_company;
mod audit_gpus;
mod bits;
mod claims;
mod classes;
mod company;
mod daemons;
mod demand;
mod demand_source;
pub(crate) mod earlier;
mod gpus;
mod layout;
mod limits;
mod miss;
mod risk;
mod room;
mod rounds;
mod sticky;
mod supply;
mod types;
mod volumes;
mod words;

pub use demand_source::{ExpectedPods, expected};
pub(crate) use demand_source::{is_expected, kept_until};
pub use gpus::Sharing;
pub use risk::SpotRisk;
pub use types::{
    Baselines, Commitment, CommitmentUse, Counts, Placement, Plan, PlannedClaim, PlannedGpu, PlannedInstance,
    PlannedShare, PoolFindings, Solve, Target, UnplacedPod, UnplacedReason,
};

use std::collections::BTreeMap;

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;
use poolwright_solver::{Proof, Watch};

use crate::model::{Pod, PodKey, PoolLimits, Snapshot, Uid};

/// How to plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOptions {
    /// Whether pods count that no scheduler has tried yet: for planning from files.
    pub include_waiting: bool,
    /// Pods of these schedulers count.
    pub schedulers: Vec<String>,
    /// Pods with a lower priority buy nothing; they run where room is left.
    pub min_priority: Option<i32>,
    /// How many offerings a claim may carry, the planned one included; at least one.
    pub max_offerings: usize,
    /// An alternative may cost at most this many percent more than the planned offering.
    pub max_dearer_percent: u32,
    /// Whether to work out what naive planning would cost.
    pub baselines: bool,
    /// How far the solver goes, each time it is asked.
    pub solver: poolwright_solver::Options,
    /// Ceilings over all pools together, besides those of each.
    pub limits: PoolLimits,
    /// What may be done with the GPUs of nodes that are bought.
    pub sharing: Sharing,
    /// What interruptions of spot nodes are counted to cost; `None` for nothing.
    pub spot_risk: Option<SpotRisk>,
    /// Money paid beforehand.
    pub commitments: Vec<Commitment>,
    /// Whether to keep what the solver was asked and what it answered, in [`Plan::solves`].
    pub keep_solves: bool,
    /// Makes claim names of different planners differ: the CLI may leave it empty.
    pub salt: String,
}

impl Default for PlanOptions {
    /// Pods of `default-scheduler` that it could not place; 20 offerings, at most 20 % dearer; baselines.
    fn default() -> Self {
        Self {
            include_waiting: false,
            schedulers: vec!["default-scheduler".to_owned()],
            min_priority: None,
            max_offerings: 20,
            max_dearer_percent: 20,
            baselines: true,
            solver: poolwright_solver::Options::default(),
            limits: PoolLimits::default(),
            sharing: Sharing::Whole,
            spot_risk: None,
            commitments: Vec::new(),
            keep_solves: false,
            salt: String::new(),
        }
    }
}

/// Plans. Same snapshot, time and options: same plan, unless `watch` stops the solver early.
pub fn plan(snapshot: &Snapshot, now: Timestamp, options: &PlanOptions, watch: &mut dyn Watch) -> Plan {
    let (foreseen, believed_until) = demand_source::foresee(snapshot, now);
    let resolved = volumes::resolve(foreseen.as_ref());
    let snapshot = resolved.snapshot.as_ref();
    let company = company::Company::new(snapshot);
    let demand = demand::collect(snapshot, options, &company, &resolved);
    let daemons = daemons::Daemons::new(snapshot);
    let mut rooms = room::collect(snapshot, &daemons, &company, &resolved.attachable);
    let mut unplaced = demand.unplaced;
    // What an earlier plan decided stays decided: no order of events, and no restart, buys for the same pod twice.
    let settled = sticky::settle(demand.wanting, snapshot, &mut rooms, &company, now);
    unplaced.extend(settled.unplaced);

    let mut supply = supply::collect(snapshot, &daemons, &company, &resolved.attachable, options, now);
    let classes = classes::group(&settled.open, &company, options.sharing, &supply.mig_models());
    let admissions = supply::Admissions::new(&supply, &classes.signatures);
    let mut limits = limits::Limits::new(&supply, snapshot, &options.limits);
    let inputs = rounds::Inputs {
        supply: &supply,
        admissions: &admissions,
        classes: &classes,
        company: &company,
        options,
    };
    let outcome = rounds::run(&inputs, &mut rooms, &mut limits, watch);

    let maker = claims::Maker {
        snapshot,
        supply: &supply,
        admissions: &admissions,
        classes: &classes,
        company: &company,
        limits: &limits,
        options,
        now,
    };
    let mut plan = Plan {
        refused: outcome.refused,
        solves: outcome.solves,
        again_at: [settled.again_at, believed_until].into_iter().flatten().min(),
        ..Plan::default()
    };
    let mut on_rooms: Vec<(usize, &Pod)> = settled.placed;
    if plan.refused.is_empty() {
        plan.claims = maker.claims(&outcome.new);
        on_rooms.extend(outcome.on_rooms);
    }
    plan.placements = on_rooms
        .iter()
        .map(|(room, pod)| Placement { pod: pod.key.clone(), target: rooms.all[*room].target.clone() })
        .collect();
    plan.placements.sort();
    if plan.refused.is_empty() {
        plan.refused = audit::audit(&resolved, options, &plan.claims, &plan.placements);
    }
    if !plan.refused.is_empty() {
        plan.claims.clear();
    }
    let seen = miss::Seen {
        snapshot,
        volumes: &resolved,
        supply: &supply,
        admissions: &admissions,
        limits: &limits,
        company: &company,
        daemons: &daemons,
        sharing: options.sharing,
    };
    for (index, class) in classes.classes.iter().enumerate() {
        let Some(left) = outcome.left.get(index).filter(|left| !left.is_empty()) else { continue };
        let (reason, message) = seen.explain(class, outcome.limit[index]);
        unplaced.extend(left.iter().map(|pod| UnplacedPod {
            pod: pod.key.clone(),
            reason,
            message: message.clone(),
        }));
    }
    unplaced.sort();
    plan.unplaced = unplaced;
    for limit in outcome.limits_reached {
        // One over all pools is no pool's condition.
        let Some(pool) = limits.all[limit as usize].pool else { continue };
        let name = &supply.pools[pool].pool.name;
        let sentence = limits.sentence(limit, &supply);
        if let Some(findings) = supply.findings.get_mut(name) {
            findings.limit_reached.get_or_insert(sentence);
        }
    }
    plan.pools = supply.findings;
    let prices: UsdPerHour = plan.claims.iter().filter_map(PlannedClaim::price).sum();
    if plan.refused.is_empty() {
        plan.covered = outcome.covered;
        plan.commitments = outcome.commitments;
    }
    plan.cost = UsdPerHour::from_micros(prices.micros().saturating_sub(plan.covered.micros()));
    plan.risk = plan.claims.iter().map(|claim| risk::of_claim(snapshot, options, claim)).sum();
    plan.bound = outcome.bound.min(plan.cost + plan.risk);
    plan.proof = if plan.bound == plan.cost + plan.risk {
        Proof::Exact
    } else {
        // What adds to the cost alone is no solve's to prove.
        outcome.proof.unwrap_or_default().max(Proof::Complete)
    };
    plan.unknown_price_claims = plan.claims.iter().filter(|claim| claim.price().is_none()).count();
    plan.baselines = outcome.baselines;
    plan.stopped_early = outcome.stopped_early;
    plan.nominations = nominations(snapshot, &plan);
    demand_source::forget(&mut plan);
    let there = |claim: &PlannedClaim| claim.planned_pods.iter().filter(|key| !is_expected(key)).count();
    let on_new = plan.claims.iter().map(there).sum();
    plan.counts = Counts {
        total: plan.placements.len() + on_new + plan.unplaced.len(),
        on_existing: plan.placements.len(),
        on_new,
        unplaced: plan.unplaced.len(),
    };
    plan
}

fn nominations(snapshot: &Snapshot, plan: &Plan) -> BTreeMap<PodKey, (Uid, String)> {
    let on_rooms = plan.placements.iter().map(|placement| {
        let (Target::Claim(crate::ClaimName(name)) | Target::Node(name)) = &placement.target;
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
