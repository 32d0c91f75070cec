//! Repeated attempts at a plan. Each attempt uses the lessons of earlier ones about rules, limits and gangs.

mod with_kept_room;
mod within_limits;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use poolwright_solver::StopSignal;

use crate::model::PodKey;
use crate::model::plan::{Plan, UnplacedPod, UnplacedReason};
use crate::model::relaxed::PreferencePolicy;
use crate::plan::attempt::Attempt;
use crate::plan::audit::topology as audit_topology;
use crate::plan::context::PlanContext;
use crate::plan::cut::Cut;
use crate::plan::effort::Effort;
use crate::plan::place::topology;
use crate::supply::offerings;

/// The most attempts that rules about other pods may cause, and those of one step of a search for pods to leave out.
const ATTEMPTS: usize = 12;
const ATTEMPTS_OF_STEP: usize = 4;

/// If such rules leave pods unplaced, planning is repeated with these pods first, at most `REPETITIONS` times. It is repeated as often
/// in fewer domains, to save money, and to stay within limits. It is repeated less often with many pods, and never with more than
/// `REPEATED_PODS`.
const REPETITIONS: usize = 3;
const REPEATED_PODS: usize = 3_000;

/// The work of an attempt in fewer domains or in another order, as a multiple of the first attempt's, and the least that it may do: about
/// a tenth of a second.
const MORE_WORK: u64 = 2;
const LEAST_WORK: u64 = 200_000;

/// The work of a search for pods to leave out, as a multiple of the largest attempt before.
const WORK_OF_SEARCH: u64 = 4;

/// With at most so many pods, the pods that break a rule are also given up step by step after such a search.
const GIVEN_UP_TOO: usize = 250;

/// The last of several attempts at a plan.
struct LastAttempt {
    attempt: Attempt,
    /// The attempt before gangs were left out, if any were. It shows in which domains their pods had room.
    with_gangs: Option<Attempt>,
    /// The work of all attempts, without a search for pods to leave out.
    work: u64,
}

/// The best attempt so far.
struct BestAttempt {
    last: LastAttempt,
    /// The order and the domains with which its attempts began.
    start: topology::Lessons,
}

/// The inputs of further attempts.
struct Further<'s, 'a> {
    supply: &'s offerings::Supply<'a>,
    policy: PreferencePolicy,
    /// The most attempts of each kind.
    most: usize,
    /// The most work of each.
    work: u64,
}

impl LastAttempt {
    /// Returns the attempt that shows why pods are left out.
    fn shown(&self) -> &Attempt {
        self.with_gangs.as_ref().unwrap_or(&self.attempt)
    }
}

impl PlanContext<'_> {
    /// Returns the best attempt of those that begin with these lessons. Places are chosen pod by pod, so another order may place more
    /// pods. Unplaced pods choose first in the next attempt, and the attempt that leaves the fewest pods unplaced is kept. Attempts in
    /// fewer domains follow: first those that spread pods as widely, then those that limits ask for. The latter come first if a limit
    /// has left pods of single domains out, because no other order can help these. Attempts in fewer domains than `minDomains` come
    /// last.
    fn best_of(
        &self,
        supply: &offerings::Supply<'_>,
        policy: PreferencePolicy,
        lessons: &topology::Lessons,
        stop: &mut dyn StopSignal,
    ) -> Attempt {
        let last = self.settled_attempt(supply, policy, lessons.clone(), stop);
        // Another order or fewer domains can make a proof much harder, and the plan there is already.
        let work = last.work.saturating_mul(MORE_WORK).max(LEAST_WORK);
        let most = REPETITIONS.min(REPEATED_PODS / self.demand.pending.len().max(1));
        let further = Further { supply, policy, most, work };
        let start = topology::Lessons { kept_room: last.attempt.kept_room, ..lessons.clone() };
        let mut best = BestAttempt { last, start };
        let shown = best.last.shown();
        let leaves_out = shown.plan.unplaced.iter().any(|left| left.reason.may_be_for_others());
        let limits_first = leaves_out && !shown.short.is_empty();
        if limits_first {
            self.keep_within_limits(&further, &mut best, false, stop);
        }
        self.let_unplaced_choose_first(&further, &mut best, stop);
        if best.last.shown().plan.claims.is_empty() {
            return best.last.attempt;
        }
        // The more domains, the better, so they are left out one after the other, and each must save something.
        // Limits may have left them out already.
        let dispensable = if best.start.only.is_empty() { best.last.attempt.left_out.most } else { 0 };
        for fewer in 1..=most.min(dispensable) {
            if stop.should_stop() {
                break;
            }
            let start = topology::Lessons { fewer_domains: fewer, ..best.start.clone() };
            let next = self.settled_attempt(supply, policy, start, &mut Effort::limited(stop, work));
            if self.saves(&next.attempt, &best.last.attempt) {
                best.last = next;
            }
        }
        if !limits_first {
            self.keep_within_limits(&further, &mut best, false, stop);
        }
        self.keep_within_limits(&further, &mut best, true, stop);
        best.last.attempt
    }

    /// Makes further attempts, in which pods choose first that rules about other pods left without a place.
    fn let_unplaced_choose_first(
        &self,
        further: &Further<'_, '_>,
        best: &mut BestAttempt,
        stop: &mut dyn StopSignal,
    ) {
        let Further { supply, policy, most, work } = *further;
        let mut first: BTreeSet<PodKey> = BTreeSet::new();
        for _ in 0..most {
            let last = &best.last;
            let left = last.attempt.plan.unplaced.iter().chain(&last.shown().plan.unplaced);
            let left = left.filter(|left| left.reason == UnplacedReason::TopologyRule);
            let before = first.len();
            first.extend(left.map(|left| left.pod.clone()));
            if first.len() == before || stop.should_stop() {
                break;
            }
            let start = topology::Lessons { first: first.clone(), ..best.start.clone() };
            let next = self.settled_attempt(supply, policy, start.clone(), &mut Effort::limited(stop, work));
            let (plan, before) = (&next.attempt.plan, &best.last.attempt.plan);
            let better = plan.refused.is_empty()
                && (!before.refused.is_empty() || self.left_over(plan) < self.left_over(before));
            if better {
                *best = BestAttempt { last: next, start };
            }
        }
    }

    /// Returns whether an attempt that keeps the rules leaves out fewer pods than another one, or as many at a lower cost.
    fn is_fuller(&self, one: &Attempt, other: &Attempt) -> bool {
        let (left, left_by_other) = (self.left_over(&one.plan), self.left_over(&other.plan));
        let is_cheaper = one.objective < other.objective && unpriced(one) <= unpriced(other);
        one.plan.refused.is_empty()
            && one.violations.is_empty()
            && (left < left_by_other || (left == left_by_other && is_cheaper))
    }

    /// Returns the priorities of unplaced pods, the highest first. The plan with the lesser list leaves out fewer pods of the highest
    /// priority in which they differ.
    pub fn left_over(&self, plan: &Plan) -> Vec<i32> {
        let priority = |left: &UnplacedPod| self.snapshot.pods.get(&left.pod).map_or(0, |pod| pod.priority);
        let mut priorities: Vec<i32> = plan.unplaced.iter().map(priority).collect();
        priorities.sort_unstable_by_key(|priority| Reverse(*priority));
        priorities
    }

    /// Repeats attempts until nothing new is learned, beginning with these lessons. If these say which pods a limit leaves out, another
    /// attempt is a step of a search for these pods, and the result may break rules.
    fn settled_attempt(
        &self,
        supply: &offerings::Supply<'_>,
        policy: PreferencePolicy,
        mut lessons: topology::Lessons,
        stop: &mut dyn StopSignal,
    ) -> LastAttempt {
        let is_step = !lessons.cut.is_empty();
        let most = if is_step { ATTEMPTS_OF_STEP } else { ATTEMPTS };
        let (mut attempts, mut work, mut largest) = (1, 0_u64, 0_u64);
        let mut with_gangs: Option<Attempt> = None;
        // The fullest attempt whose claims did not all leave a choice. Without these offerings, less may have room.
        let mut fullest: Option<Attempt> = None;
        let mut is_searched = is_step;
        // What a search for pods to leave out has found. If pods are given up step by step, more may have room.
        let mut found: Option<LastAttempt> = None;
        // What such a search has found before the lessons of an attempt could take domains away that `minDomains` asks for.
        let mut is_tried = is_step;
        let mut tried: Option<LastAttempt> = None;
        let fewer = |one: &Attempt, other: &Attempt| self.left_over(&one.plan) < self.left_over(&other.plan);
        let last = loop {
            let mut counted = Effort::counted(stop);
            let attempt = self.attempt(supply, &lessons, policy, &mut counted);
            lessons.kept_room |= attempt.kept_room;
            let spent = counted.work();
            (work, largest) = (work.saturating_add(spent), largest.max(spent));
            if stop.is_abandoned() {
                return LastAttempt { attempt, with_gangs, work };
            }
            let is_early = attempts < most;
            let of_search = largest.saturating_mul(WORK_OF_SEARCH).max(LEAST_WORK);
            if is_early
                && !is_tried
                && self.may_lose_domains(&attempt)
                && let Some(cut) = Cut::new(self, &attempt)
            {
                is_tried = true;
                let inputs = (supply, policy, &lessons);
                tried = self.cut_to_limits(inputs, cut, &mut Effort::limited(stop, of_search));
            }
            let learnt = is_early && self.learn(&mut lessons, &attempt);
            if !learnt
                && !is_searched
                && let Some(cut) = Cut::new(self, &attempt)
            {
                is_searched = true;
                let inputs = (supply, policy, &lessons);
                found = self.cut_to_limits(inputs, cut, &mut Effort::limited(stop, of_search));
                if let Some(found) = found.take_if(|_| self.demand.pending.len() > GIVEN_UP_TOO) {
                    let attempt = match fullest {
                        Some(before) if !fewer(&found.attempt, &before) => before,
                        _ => found.attempt,
                    };
                    break LastAttempt { attempt, with_gangs: with_gangs.or(found.with_gangs), work };
                }
            }
            let gives_up = !learnt
                && !is_step
                && ((is_early && self.give_up_some(&mut lessons, &attempt))
                    || give_up_rest(&mut lessons, &attempt));
            let again = learnt || gives_up || self.leave_gangs_out(&mut lessons, &attempt, is_early);
            if !again {
                let attempt = match fullest {
                    Some(before) if !fewer(&attempt, &before) => before,
                    _ => attempt,
                };
                break match found {
                    Some(found) if !self.is_fuller(&attempt, &found.attempt) => {
                        let with_gangs = with_gangs.or(found.with_gangs);
                        LastAttempt { attempt: found.attempt, with_gangs, work }
                    }
                    _ => LastAttempt { attempt, with_gangs, work },
                };
            }
            let leaves_gangs = !learnt && !gives_up;
            let is_whole = attempt.violations.is_empty() && attempt.left.pinned.is_empty();
            if is_whole
                && !attempt.unlistable.is_empty()
                && fullest.as_ref().is_none_or(|before| fewer(&attempt, before))
            {
                fullest = Some(attempt);
            } else if leaves_gangs && !attempt.left_out.by_spread.is_empty() {
                with_gangs.get_or_insert(attempt);
            }
            attempts += 1;
        };
        match tried {
            Some(tried) if fewer(&tried.attempt, &last.attempt) => LastAttempt { work: last.work, ..tried },
            _ => last,
        }
    }

    /// Returns whether what an attempt teaches may take domains away that `minDomains` asks for. Pods that a limit left without a node
    /// keep out of their place from then on, although the limit may only have been used up in other domains.
    fn may_lose_domains(&self, Attempt { left, violations, .. }: &Attempt) -> bool {
        let asks = |at: &usize| self.relations.spreads[*at].rule.min_domains.is_some_and(|wanted| wanted > 1);
        !left.pinned.is_empty()
            && violations.iter().any(|broken| self.spreads_of(&broken.pod).iter().any(asks))
    }

    /// Searches for the pods to leave out after an attempt that broke a spread, so that the others keep it within the limits. Returns
    /// the attempt that leaves out the fewest; `None` if none of the attempts keeps the rules.
    fn cut_to_limits(
        &self,
        (supply, policy, lessons): (&offerings::Supply<'_>, PreferencePolicy, &topology::Lessons),
        mut cut: Cut<'_>,
        stop: &mut dyn StopSignal,
    ) -> Option<LastAttempt> {
        let mut best: Option<LastAttempt> = None;
        loop {
            let pods = cut.pods();
            if pods.is_empty() {
                return best;
            }
            let start = topology::Lessons { cut: pods, ..lessons.clone() };
            let next = self.settled_attempt(supply, policy, start, stop);
            if stop.is_abandoned() || !next.attempt.plan.refused.is_empty() {
                return best;
            }
            let goes_on = cut.learn(&next.attempt);
            let left = self.left_over(&next.attempt.plan);
            let is_better = |best: &LastAttempt| left < self.left_over(&best.attempt.plan);
            if next.attempt.violations.is_empty() && best.as_ref().is_none_or(is_better) {
                best = Some(next);
            }
            if !goes_on {
                return best;
            }
        }
    }

    /// Excludes incomplete gangs from the next attempt. With `half`, excludes only the less important half, because the others
    /// may then fit. Returns whether any was excluded.
    fn leave_gangs_out(&self, lessons: &mut topology::Lessons, attempt: &Attempt, half: bool) -> bool {
        let plan = &attempt.plan;
        if !plan.refused.is_empty() {
            return false;
        }
        let known = &lessons.gangs_left_out;
        let left = (&attempt.left.of_gangs, &attempt.left.beside_rules);
        let incomplete = self.groups.incomplete(self.snapshot, plan, left, known);
        let count = if half { incomplete.len().div_ceil(2) } else { incomplete.len() };
        lessons.gangs_left_out.extend(incomplete.into_iter().take(count));
        count > 0
    }

    /// Learns from an attempt. Returns whether the next attempt may be better.
    fn learn(
        &self,
        lessons: &mut topology::Lessons,
        Attempt { plan, left, violations, unlistable, left_out, .. }: &Attempt,
    ) -> bool {
        if !plan.refused.is_empty() {
            return false;
        }
        let mut learnt = false;
        for offering in unlistable {
            learnt |= lessons.unlistable.insert(*offering);
        }
        if !violations.is_empty() {
            let was_open = |key: &str, value: &str| left_out.is_open(&self.relations, key, value);
            learnt |= lessons.open(&self.relations, self.snapshot, &plan.claims, was_open);
            if !learnt {
                let placed: BTreeSet<&PodKey> =
                    plan.placements.iter().map(|placement| &placement.pod).collect();
                for violation in violations.iter().filter(|violation| placed.contains(&violation.pod)) {
                    // This pod kept its place of an earlier plan, and may fit better elsewhere.
                    learnt |= lessons.unsettled.insert(violation.pod.clone());
                }
            }
        }
        let is_spread = |left: &UnplacedPod| !self.spreads_of(&left.pod).is_empty();
        if plan.unplaced.iter().any(|left| left.reason.may_be_for_others() && is_spread(left)) {
            learnt |= lessons.close_unused(&self.relations, self.snapshot, &plan.claims);
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

    /// Gives up the least important quarter of the pods that break a rule, because the others may fit without them. Returns whether
    /// there were any.
    fn give_up_some(&self, lessons: &mut topology::Lessons, Attempt { violations, .. }: &Attempt) -> bool {
        let priority = |violation: &audit_topology::Violation| {
            self.snapshot.pods.get(&violation.pod).map_or(0, |pod| pod.priority)
        };
        let mut left: Vec<&audit_topology::Violation> = violations.iter().collect();
        left.sort_by(|a, b| (priority(a), &b.pod).cmp(&(priority(b), &a.pod)));
        let before = lessons.given_up.len();
        for violation in left.iter().take(left.len().div_ceil(4)) {
            lessons.given_up.insert(violation.pod.clone(), violation.sentence.clone());
        }
        lessons.given_up.len() > before
    }
}

/// Returns the number of new nodes without a known price.
fn unpriced(attempt: &Attempt) -> usize {
    attempt.plan.claims.iter().filter(|claim| claim.price().is_none()).count()
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
