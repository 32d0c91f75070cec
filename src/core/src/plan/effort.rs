//! Limits for the work of one attempt of several, so that a later attempt does not use up the time of a plan.

use poolwright_solver::{Progress, Solution, StopSignal};

/// A [`StopSignal`] that also stops when this much work is spent, in the solver's units.
pub(crate) struct Effort<'a> {
    of: &'a mut dyn StopSignal,
    most: u64,
    spent: u64,
}

impl<'a> Effort<'a> {
    /// Counts work without a limit.
    pub const fn counted(of: &'a mut dyn StopSignal) -> Self {
        Self::limited(of, u64::MAX)
    }

    pub const fn limited(of: &'a mut dyn StopSignal, most: u64) -> Self {
        Self { of, most, spent: 0 }
    }

    /// Returns the work so far.
    pub const fn work(&self) -> u64 {
        self.spent
    }
}

impl StopSignal for Effort<'_> {
    fn should_stop(&mut self) -> bool {
        self.of.should_stop() || self.spent >= self.most
    }

    fn is_half_over(&mut self) -> bool {
        self.of.is_half_over() || self.spent >= self.most / 2
    }

    fn is_abandoned(&mut self) -> bool {
        self.of.is_abandoned()
    }

    fn improved(&mut self, plan: &Solution) {
        self.of.improved(plan);
    }

    fn progress(&mut self, progress: &Progress) {
        self.of.progress(progress);
    }

    fn spent(&mut self, units: u64) {
        self.spent = self.spent.saturating_add(units);
        self.of.spent(units);
    }
}

#[cfg(test)]
mod tests {
    use poolwright_solver::NeverStop;

    use super::*;

    #[test]
    fn an_attempt_stops_when_its_work_is_spent() {
        let mut never = NeverStop;
        let mut counted = Effort::counted(&mut never);
        counted.spent(7);
        assert!(!counted.should_stop() && !counted.is_half_over());
        assert_eq!(counted.work(), 7);
        let mut limited = Effort::limited(&mut never, 10);
        limited.spent(9);
        assert!(limited.is_half_over() && !limited.should_stop());
        limited.spent(1);
        assert!(limited.should_stop() && !limited.is_abandoned());
    }
}
