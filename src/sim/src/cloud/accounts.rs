//! Another account: for a while, the cloud knows none of the instances by tag or id, as after a change of the credentials.

use std::time::Duration;

use poolwright_provider_contract::Instance;

use super::Cloud;

impl Cloud {
    /// Returns until when the controller sees another account; zero if it never did.
    pub fn blind_until(&self) -> Duration {
        self.lock().blind_until
    }

    /// Returns the launches, and the terminations of running instances, that came while the controller saw another account: when, and
    /// what. Leaves out this many.
    pub fn blind_calls(&self, but: usize) -> Vec<(Duration, String)> {
        self.lock().blind_calls.iter().skip(but).cloned().collect()
    }

    /// Lets the controller see another account for this long.
    pub(super) fn blind_for(&self, length: Duration) {
        let until = self.time.elapsed() + length;
        let mut state = self.lock();
        if !length.is_zero() {
            state.blind_until = state.blind_until.max(until);
        }
    }

    pub(super) fn is_blind(&self) -> bool {
        self.time.elapsed() < self.blind_until()
    }

    /// Returns the instance of this id, if the account has it.
    pub(super) fn find(&self, provider_id: &str) -> Option<Instance> {
        if self.is_blind() { None } else { self.find_anyway(provider_id) }
    }

    /// Returns the instance of this id, whatever account the controller sees.
    pub(super) fn find_anyway(&self, provider_id: &str) -> Option<Instance> {
        let found = self.machines().into_iter().find(|(_, one)| one.instance.provider_id == provider_id);
        found.map(|(_, one)| one.instance)
    }
}
