//! Repeated attempts at a plan. Each attempt uses the lessons of earlier ones about rules, limits and gangs.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use poolwright_solver::StopSignal;

use crate::model::PodKey;
use crate::model::plan::{Plan, UnplacedPod, UnplacedReason};
use crate::model::relaxed::PreferencePolicy;
use crate::plan::attempt::Attempt;
use crate::plan::audit::topology as audit_topology;
use crate::plan::context::PlanContext;
use crate::plan::effort::Effort;
use crate::plan::place::topology;
use crate::supply::offerings;

/// The most attempts that rules about other pods may cause.
const ATTEMPTS: usize = 12;

/// If such rules leave pods unplaced, planning is repeated with these pods first, at most `REPETITIONS` times. It is repeated as often
/// in fewer domains, to save money, and to stay within limits. It is repeated less often with many pods, and never with more than
/// `REPEATED_PODS`.
const REPETITIONS: usize = 3;
const REPEATED_PODS: usize = 3_000;

/// The work of an attempt in fewer domains, as a multiple of the first attempt's, and the least that it may do: about a tenth of a second.
const MORE_WORK: u64 = 2;
const LEAST_WORK: u64 = 200_000;

impl PlanContext<'_> {
    /// Returns the best attempt. Places are chosen pod by pod, so another order may place more pods. Unplaced pods choose first
    /// in the next attempt, and the attempt that leaves the fewest pods unplaced is kept. Then attempts in fewer domains follow:
    /// first those that spread pods as widely, then those that limits ask for.
    pub fn best_attempt(
        &self,
        supply: &offerings::Supply<'_>,
        policy: PreferencePolicy,
        stop: &mut dyn StopSignal,
    ) -> Attempt {
        let mut first: BTreeSet<PodKey> = BTreeSet::new();
        let mut first_of_best = BTreeSet::new();
        let mut counted = Effort::counted(stop);
        let mut best = self.settled_attempt(supply, policy, topology::Lessons::default(), &mut counted);
        // Fewer domains can make a proof much harder, and the plan there is already.
        let work = counted.work().saturating_mul(MORE_WORK).max(LEAST_WORK);
        let most = REPETITIONS.min(REPEATED_PODS / self.demand.pending.len().max(1));
        for _ in 0..most {
            let left = best.plan.unplaced.iter();
            let left = left.filter(|left| left.reason == UnplacedReason::TopologyRule);
            let before = first.len();
            first.extend(left.map(|left| left.pod.clone()));
            if first.len() == before || stop.should_stop() {
                break;
            }
            let start = topology::Lessons { first: first.clone(), ..topology::Lessons::default() };
            let next = self.settled_attempt(supply, policy, start, stop);
            let better = next.plan.refused.is_empty()
                && (!best.plan.refused.is_empty() || self.left_over(&next.plan) < self.left_over(&best.plan));
            if better {
                best = next;
                first_of_best.clone_from(&first);
            }
        }
        if best.plan.claims.is_empty() {
            return best;
        }
        // The more domains, the better, so they are left out one after the other, and each must save something.
        for fewer in 1..=most.min(best.left_out.most) {
            if stop.should_stop() {
                break;
            }
            let first = first_of_best.clone();
            let start = topology::Lessons { fewer_domains: fewer, first, ..topology::Lessons::default() };
            let next = self.settled_attempt(supply, policy, start, &mut Effort::limited(stop, work));
            if self.saves(&next, &best) {
                best = next;
            }
        }
        let mut within_limits = self.domains_within_limits(supply, &best);
        for _ in 0..most {
            let Some(only) = within_limits else { break };
            if stop.should_stop() {
                break;
            }
            let first = first_of_best.clone();
            let start = topology::Lessons { only, first, ..topology::Lessons::default() };
            let next = self.settled_attempt(supply, policy, start, &mut Effort::limited(stop, work));
            within_limits = self.domains_within_limits(supply, &next);
            if self.saves(&next, &best) {
                best = next;
            }
        }
        best
    }

    /// Returns whether an attempt in fewer domains is better than another one: it leaves out fewer pods, or it costs less for the same
    /// pods, and gives up no more preferences.
    fn saves(&self, next: &Attempt, best: &Attempt) -> bool {
        let left = |attempt: &Attempt| -> Vec<PodKey> {
            attempt.plan.unplaced.iter().map(|left| left.pod.clone()).collect()
        };
        let unpriced =
            |attempt: &Attempt| attempt.plan.claims.iter().filter(|claim| claim.price().is_none()).count();
        let is_cheaper = || {
            next.objective < best.objective && unpriced(next) <= unpriced(best) && left(next) == left(best)
        };
        next.plan.refused.is_empty()
            && next.violations.is_empty()
            && (self.left_over(&next.plan) < self.left_over(&best.plan) || is_cheaper())
            && next.preferences.dropped == best.preferences.dropped
            && !next.left_out.may_get_nodes(&self.relations, self.snapshot, &next.plan.claims)
    }

    /// Returns the priorities of unplaced pods, the highest first. The plan with the lesser list leaves out fewer pods of the highest
    /// priority in which they differ.
    pub fn left_over(&self, plan: &Plan) -> Vec<i32> {
        let priority = |left: &UnplacedPod| self.snapshot.pods.get(&left.pod).map_or(0, |pod| pod.priority);
        let mut priorities: Vec<i32> = plan.unplaced.iter().map(priority).collect();
        priorities.sort_unstable_by_key(|priority| Reverse(*priority));
        priorities
    }

    /// Repeats attempts until nothing new is learned, beginning with these lessons.
    fn settled_attempt(
        &self,
        supply: &offerings::Supply<'_>,
        policy: PreferencePolicy,
        mut lessons: topology::Lessons,
        stop: &mut dyn StopSignal,
    ) -> Attempt {
        let mut attempts = 1;
        // The fullest attempt whose claims did not all leave a choice. Without these offerings, less may have room.
        let mut fullest: Option<Attempt> = None;
        loop {
            let attempt = self.attempt(supply, &lessons, policy, stop);
            if stop.is_abandoned() {
                return attempt;
            }
            let learnt = attempts < ATTEMPTS && self.learn(&mut lessons, &attempt);
            let again = learnt
                || give_up_rest(&mut lessons, &attempt)
                || self.leave_gangs_out(&mut lessons, &attempt, attempts < ATTEMPTS);
            let fewer =
                |one: &Attempt, other: &Attempt| self.left_over(&one.plan) < self.left_over(&other.plan);
            if !again {
                return match fullest {
                    Some(before) if !fewer(&attempt, &before) => before,
                    _ => attempt,
                };
            }
            let is_whole = attempt.violations.is_empty() && attempt.left.pinned.is_empty();
            if is_whole
                && !attempt.unlistable.is_empty()
                && fullest.as_ref().is_none_or(|before| fewer(&attempt, before))
            {
                fullest = Some(attempt);
            }
            attempts += 1;
        }
    }

    /// Excludes incomplete gangs from the next attempt. With `half`, excludes only the less important half, because the others
    /// may then fit. Returns whether any was excluded.
    fn leave_gangs_out(&self, lessons: &mut topology::Lessons, attempt: &Attempt, half: bool) -> bool {
        let plan = &attempt.plan;
        if !plan.refused.is_empty() {
            return false;
        }
        let (left, known) = (&attempt.left.of_gangs, &lessons.gangs_left_out);
        let incomplete = self.groups.incomplete(self.snapshot, plan, left, known);
        let count = if half { incomplete.len().div_ceil(2) } else { incomplete.len() };
        lessons.gangs_left_out.extend(incomplete.into_iter().take(count));
        count > 0
    }

    /// Learns from an attempt. Returns whether the next attempt may be better.
    fn learn(
        &self,
        lessons: &mut topology::Lessons,
        Attempt { plan, left, violations, unlistable, .. }: &Attempt,
    ) -> bool {
        if !plan.refused.is_empty() {
            return false;
        }
        let mut learnt = false;
        for offering in unlistable {
            learnt |= lessons.unlistable.insert(*offering);
        }
        if !violations.is_empty() {
            learnt = lessons.open(&self.relations, self.snapshot, &plan.claims);
            if !learnt {
                learnt = true;
                let placed = |key: &PodKey| plan.placements.iter().any(|placement| placement.pod == *key);
                let mut left = Vec::new();
                for violation in violations {
                    // This pod kept its place of an earlier plan, and may fit better elsewhere.
                    if !(placed(&violation.pod) && lessons.unsettled.insert(violation.pod.clone())) {
                        left.push(violation);
                    }
                }
                // Without some of these pods, the others may fit. The least important ones are given up first.
                let priority = |violation: &audit_topology::Violation| {
                    self.snapshot.pods.get(&violation.pod).map_or(0, |pod| pod.priority)
                };
                left.sort_by(|a, b| (priority(a), &b.pod).cmp(&(priority(b), &a.pod)));
                for violation in left.iter().take(left.len().div_ceil(4)) {
                    lessons.given_up.insert(violation.pod.clone(), violation.sentence.clone());
                }
            }
        }
        if !left.pinned.is_empty() {
            let pins = left.pinned.iter().map(|(_, pin, _)| pin);
            lessons.close(&self.relations, self.snapshot, &plan.claims, pins);
        }
        for (pod, pin, why) in &left.pinned {
            let bans = lessons.bans.entry(pod.clone()).or_default();
            learnt |= bans.insert(pin.clone(), why.clone()).is_none();
        }
        learnt
    }
}

/// Gives up all pods that break a rule, and those that a limit left out of a place. Then the next attempt plans only pods that this
/// one placed within the rules, so it rarely breaks one. Returns whether there were any.
fn give_up_rest(lessons: &mut topology::Lessons, Attempt { plan, left, violations, .. }: &Attempt) -> bool {
    if violations.is_empty() || !plan.refused.is_empty() {
        return false;
    }
    let before = lessons.given_up.len();
    for violation in violations {
        lessons.unsettled.insert(violation.pod.clone());
        lessons.given_up.insert(violation.pod.clone(), violation.sentence.clone());
    }
    for (pod, pin, why) in &left.pinned {
        lessons.bans.entry(pod.clone()).or_default().insert(pin.clone(), why.clone());
        lessons.given_up.entry(pod.clone()).or_default();
    }
    lessons.given_up.len() > before
}
