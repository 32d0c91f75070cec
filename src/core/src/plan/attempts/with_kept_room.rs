//! Attempts that keep room on expensive nodes. No pod is left out because of kept room.

use std::collections::BTreeSet;

use poolwright_solver::StopSignal;

use crate::model::PodKey;
use crate::model::relaxed::PreferencePolicy;
use crate::plan::attempt::Attempt;
use crate::plan::context::PlanContext;
use crate::plan::place::topology::Lessons;
use crate::supply::offerings::Supply;

impl PlanContext<'_> {
    /// Returns the best attempt. It keeps room only if each pod that it leaves out is left out without kept room, too.
    pub(crate) fn best_attempt(
        &self,
        supply: &Supply<'_>,
        policy: PreferencePolicy,
        stop: &mut dyn StopSignal,
    ) -> Attempt {
        let lessons = Lessons { keeps_room: self.keeps_room, ..Lessons::default() };
        let keeping = self.best_of(supply, policy, &lessons, stop);
        if stop.is_abandoned() || !may_lack_room(&keeping) {
            return keeping;
        }
        let free = self.best_of(supply, policy, &Lessons::default(), stop);
        let waits_anyway = left_out(&keeping).is_subset(&left_out(&free));
        if keeps_rules(&keeping) && (waits_anyway || !keeps_rules(&free)) { keeping } else { free }
    }
}

/// Returns whether an attempt may lack the room that it keeps, or that earlier attempts kept when they left pods out: gangs, for example.
fn may_lack_room(attempt: &Attempt) -> bool {
    let leaves_out = || attempt.plan.unplaced.iter().any(|left| left.reason.may_be_for_others());
    attempt.kept_room && (attempt.leaves_with_home || !keeps_rules(attempt) || leaves_out())
}

/// Returns whether an attempt keeps all rules.
fn keeps_rules(attempt: &Attempt) -> bool {
    attempt.plan.refused.is_empty() && attempt.violations.is_empty()
}

/// Returns the pods that an attempt leaves out.
fn left_out(attempt: &Attempt) -> BTreeSet<&PodKey> {
    attempt.plan.unplaced.iter().map(|left| &left.pod).collect()
}
