//! Attempts in the domains that limits let have nodes.

use poolwright_solver::StopSignal;

use crate::model::PodKey;
use crate::plan::attempt::Attempt;
use crate::plan::attempts::{BestAttempt, Further, unpriced};
use crate::plan::context::PlanContext;
use crate::plan::effort::Effort;
use crate::plan::fewer_domains::{FewerDomains, Narrowing};
use crate::plan::place::topology;

/// The most attempts of each kind with fewer domains than `minDomains`.
const BELOW_MIN: usize = 2;

impl PlanContext<'_> {
    /// Makes further attempts in the domains that limits let have nodes. Pods of other spreads stay in all their domains, unless that
    /// leaves pods out. With `below_min`, pods that a limit leaves out may have fewer domains than their `minDomains`. Such an attempt
    /// counts only if it leaves out fewer pods, never because it costs less.
    pub(super) fn keep_within_limits(
        &self,
        further: &Further<'_, '_>,
        best: &mut BestAttempt,
        below_min: bool,
        stop: &mut dyn StopSignal,
    ) {
        let Further { supply, policy, most, work } = *further;
        let most = if below_min { most.min(BELOW_MIN) } else { most };
        if most == 0 {
            // To look for such domains takes time, and no attempt would use them.
            return;
        }
        for for_others in [false, true] {
            let narrowing = Narrowing { for_others, below_min };
            let mut within_limits = self.domains_within_limits(supply, best.last.shown(), narrowing);
            for _ in 0..most {
                let Some(FewerDomains { only, kept_out, few }) = within_limits else { break };
                if stop.should_stop() {
                    break;
                }
                let start = topology::Lessons { only, kept_out, few, ..best.start.clone() };
                let next =
                    self.settled_attempt(supply, policy, start.clone(), &mut Effort::limited(stop, work));
                within_limits = self.domains_within_limits(supply, next.shown(), narrowing);
                let is_fuller =
                    || self.left_over(&next.attempt.plan) < self.left_over(&best.last.attempt.plan);
                if self.saves(&next.attempt, &best.last.attempt) && (!below_min || is_fuller()) {
                    *best = BestAttempt { last: next, start };
                }
            }
        }
    }

    /// Returns whether an attempt in fewer domains is better than another one: it leaves out fewer pods, or it costs less for the same
    /// pods, and gives up no more preferences.
    pub(super) fn saves(&self, next: &Attempt, best: &Attempt) -> bool {
        let left = |attempt: &Attempt| -> Vec<PodKey> {
            attempt.plan.unplaced.iter().map(|left| left.pod.clone()).collect()
        };
        // Pods that are kept off offerings for the sake of others would be told that nothing fits them.
        let unserved = |attempt: &Attempt| -> Vec<PodKey> {
            let left = attempt.plan.unplaced.iter().filter(|left| !left.reason.may_be_for_others());
            left.map(|left| left.pod.clone()).collect()
        };
        let is_cheaper = || {
            next.objective < best.objective && unpriced(next) <= unpriced(best) && left(next) == left(best)
        };
        next.plan.refused.is_empty()
            && next.violations.is_empty()
            && (self.left_over(&next.plan) < self.left_over(&best.plan) || is_cheaper())
            && unserved(next) == unserved(best)
            && next.preferences.dropped == best.preferences.dropped
            && !next.left_out.may_get_nodes(&self.relations, self.snapshot, &next.plan.claims)
    }
}
