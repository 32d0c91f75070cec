//! The rules that no world may break, one file each. They see only the API server's objects, the cloud's machines, and the
//! requests of each caller.

mod asked_in_time;
mod bought_for_somebody;
mod buffers_kept;
mod choice_left;
mod claims_outlive;
mod claims_say_why;
mod closed_serves;
mod departures;
mod disruption_budgets;
mod doubts_heeded;
mod empty_goes;
mod gangs_whole;
mod known_prices;
mod leaks;
mod loops_run;
mod moves_save;
mod no_oscillation;
mod notices_heeded;
mod offers;
mod one_instance;
mod only_leaders;
mod placed_in_time;
mod pods_hear_why;
mod pool_limits;
mod repair_breaker;
mod reservation_used;
mod rest;
mod room_first;
mod set_aside;
mod static_size;
mod taken_for_gone;
mod volumes_detached;
mod work_kept;

use std::fmt;
use std::time::Duration;

use poolwright_api::NodeClaim;
use poolwright_core::PoolName;
use poolwright_terms::keys::NODEPOOL_LABEL;

use crate::cloud::Machine;
use crate::cluster::{Cluster, JobPlan};
use crate::wire::Process;

pub use departures::Departures;
pub use only_leaders::Leadership;
pub(crate) use pods_hear_why::TOLD_WITHIN;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule, as a sentence.
    pub rule: &'static str,
    /// The observation that breaks it.
    pub seen: String,
    /// The world time.
    pub at: Duration,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.seen)
    }
}

/// The state that rules check.
pub struct Scene<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Machines that are not gone, by key.
    pub machines: &'a [(String, Machine)],
    /// The world time.
    pub now: Duration,
    /// When the last fault happened that delays work by minutes: a stock-out, a faulty instance, or a fault of a whole
    /// controller.
    pub troubled: Duration,
    /// When the last fault of a whole controller happened.
    pub blown: Duration,
    /// When the last fault of a request, a watch, a cloud call or a whole controller happened.
    pub disturbed: Duration,
    /// When a controller's calendar was set, to a wrong or the right time.
    pub calendars_set: &'a [Duration],
    /// When controllers started.
    pub started: &'a [Duration],
    /// The controllers that run.
    pub processes: &'a [&'a Process],
    /// When a plan failed by the bug of `poison`.
    pub failed_plans: &'a [Duration],
    /// When a user deleted a claim.
    pub withdrawn: &'a [Duration],
    /// Since when all faults have ended and all work is done.
    pub quiet_since: Option<Duration>,
}

impl Scene<'_> {
    /// Returns the pool of a claim.
    fn pool_of(claim: &NodeClaim) -> Option<&String> {
        claim.metadata.labels.as_ref()?.get(NODEPOOL_LABEL)
    }

    /// Returns the plan of the Job of this name.
    fn plan_of(&self, job: &str) -> Option<&JobPlan> {
        self.cluster.jobs.iter().map(|job| &job.plan).find(|plan| plan.name == job)
    }

    /// Returns `minCount` of a Job's PodGroup, if its pods belong to one.
    fn gang(&self, job: &str) -> Option<u32> {
        self.plan_of(job)?.gang
    }

    /// Returns when a request, a watch, a call, an instance or a controller last failed, or the cloud last refused a launch; `None` if
    /// none did.
    fn last_failure(&self) -> Option<Duration> {
        let failed = Some(self.disturbed.max(self.troubled)).filter(|last| !last.is_zero());
        failed.max(self.cluster.cloud.last_refusal())
    }

    /// Returns whether the controller saw another account in the cloud within this time.
    fn was_blind_within(&self, time: Duration) -> bool {
        let until = self.cluster.cloud.blind_until();
        !until.is_zero() && self.now.saturating_sub(until) <= time
    }

    /// Returns whether the claim of this name belongs to a pool with replicas.
    fn is_static(&self, claim: &str) -> bool {
        let pool = self.cluster.claims.get(claim).and_then(|claim| Self::pool_of(claim));
        let pool = pool.and_then(|pool| self.cluster.view().pools.get(&PoolName(pool.clone())));
        pool.is_some_and(|pool| pool.replicas.is_some_and(|replicas| replicas > 0))
    }
}

type Rule = (&'static str, fn(&Scene<'_>, &mut Memory) -> Option<String>);

/// Rules that are checked after every change.
const RULES: [Rule; 24] = [
    (one_instance::RULE, one_instance::check),
    (leaks::RULE, leaks::check),
    (claims_outlive::RULE, claims_outlive::check),
    (pool_limits::RULE, pool_limits::check),
    (gangs_whole::RULE, gangs_whole::check),
    (choice_left::RULE, choice_left::check),
    (reservation_used::KEPT, reservation_used::kept),
    (reservation_used::USED, reservation_used::used),
    (known_prices::RULE, known_prices::check),
    (work_kept::RULE, work_kept::check),
    (claims_say_why::BOUGHT, claims_say_why::bought),
    (bought_for_somebody::RULE, bought_for_somebody::check),
    (no_oscillation::RULE, no_oscillation::check),
    (disruption_budgets::RULE, disruption_budgets::check),
    (room_first::RULE, room_first::check),
    (moves_save::RULE, moves_save::check),
    (volumes_detached::RULE, volumes_detached::check),
    (notices_heeded::RECORDED, notices_heeded::recorded),
    (notices_heeded::KEPT, notices_heeded::kept),
    (asked_in_time::RULE, asked_in_time::check),
    (doubts_heeded::RULE, doubts_heeded::check),
    (taken_for_gone::RULE, taken_for_gone::check),
    (repair_breaker::RULE, repair_breaker::check),
    (rest::RULE, rest::check),
];

/// Rules about durations, checked at this interval.
const LASTING: [Rule; 9] = [
    (claims_say_why::STUCK, claims_say_why::stuck),
    (placed_in_time::RULE, placed_in_time::check),
    (closed_serves::RULE, closed_serves::check),
    (empty_goes::RULE, empty_goes::check),
    (static_size::RULE, static_size::check),
    (pods_hear_why::RULE, pods_hear_why::check),
    (set_aside::RULE, set_aside::check),
    (buffers_kept::RULE, buffers_kept::check),
    (loops_run::RULE, loops_run::check),
];
const EVERY: Duration = Duration::from_secs(30);

/// The memory of the rules between checks.
#[derive(Debug, Default)]
pub struct Memory {
    /// When the rules about durations were last checked.
    looked: Duration,
    claims: claims_outlive::Seen,
    leaks: leaks::Seen,
    work: work_kept::Seen,
    bought: bought_for_somebody::Seen,
    launches: no_oscillation::Seen,
    notices: notices_heeded::Seen,
    asked: asked_in_time::Seen,
    waiting: placed_in_time::Seen,
    kept_out: closed_serves::Seen,
    room: room_first::Seen,
    empty: empty_goes::Seen,
    told: pods_hear_why::Seen,
    moves: moves_save::Seen,
    sizes: static_size::Seen,
    volumes: volumes_detached::Seen,
    gangs: gangs_whole::Seen,
    choices: choice_left::Seen,
    reservation: reservation_used::Seen,
    doubts: doubts_heeded::Seen,
    given_up: taken_for_gone::Seen,
    repairs: repair_breaker::Seen,
    buffers: buffers_kept::Seen,
    leader: loops_run::Seen,
}

impl Memory {
    /// Returns the first broken rule.
    pub fn check(&mut self, scene: &Scene<'_>) -> Option<Violation> {
        let lasting = scene.now.saturating_sub(self.looked) >= EVERY;
        if lasting {
            self.looked = scene.now;
        }
        let lasting = if lasting { &LASTING[..] } else { &[] };
        RULES.iter().chain(lasting).find_map(|(rule, check)| {
            let seen = check(scene, self)?;
            Some(Violation { rule, seen, at: scene.now })
        })
    }
}
