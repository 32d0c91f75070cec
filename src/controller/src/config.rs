//! What can be set, with defaults that fit a production cluster.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use poolwright_core::lifecycle::Placement;
use poolwright_core::plan::{PreferencePolicy, SpotRisk};
use poolwright_core::{NodeBudget, PoolLimits, Profiles};
use poolwright_intake::Commitments;

use crate::leader::LeaseSettings;

/// The file, and what it said at the start.
#[derive(Clone, Debug)]
pub struct CommittedFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it said.
    pub said: Commitments,
}

/// What of a file a controller cannot use, whatever is sold: it knows reservations by node classes alone.
pub fn unfit(file: &Commitments) -> Vec<String> {
    let mut problems = file.problems();
    problems.extend(file.first_reservation().map(|at| {
        format!(
            "{at}: the controller takes reservations from node classes; name this one in \
             spec.capacityReservationSelectorTerms of the node class, and keep `commitments` alone here"
        )
    }));
    problems
}

/// How the controller behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where `/healthz`, `/readyz` and `/metrics` are served; nowhere if `None`.
    pub http: Option<SocketAddr>,
    /// Leadership.
    pub lease: LeaseSettings,
    /// A batch of pods is planned when none was added for this long.
    pub batch_idle: Duration,
    /// A batch of pods is planned after this long at the latest.
    pub batch_max: Duration,
    /// How long the solver may look for something better.
    pub solver_limit: Duration,
    /// How long an offering that failed is not bought. Each failure in a row doubles it.
    pub setback_first: Duration,
    /// No offering is held back for longer.
    pub setback_most: Duration,
    /// How pods come to the nodes they were planned for.
    pub placement: Placement,
    /// Pods of these schedulers are planned.
    pub schedulers: Vec<String>,
    /// What the configuration of schedulers adds to the rules of their pods.
    pub profiles: Profiles,
    /// Pods with a lower priority buy nothing; `None` to plan for all.
    pub min_priority: Option<i32>,
    /// Whether preferences of pods steer what is bought for them.
    pub preferences: PreferencePolicy,
    /// What interruptions of spot nodes are counted to cost; `None` to compare offerings by price alone.
    pub spot_risk: Option<SpotRisk>,
    /// Ceilings over all pools together, besides those of each.
    pub limits: PoolLimits,
    /// Money paid beforehand that plans count with; `None` for none.
    pub commitments: Option<CommittedFile>,
    /// How many nodes may be disturbed at a time over all pools, besides what each pool says.
    pub disruption_budgets: Vec<NodeBudget>,
    /// How many claims are created at a time.
    pub create_concurrency: usize,
    /// How many objects are worked on at a time.
    pub act_concurrency: usize,
    /// How often providers are asked which instances there are.
    pub list_interval: Duration,
    /// How often providers are asked what they sell.
    pub catalogue_interval: Duration,
    /// How long calls on their way may take to end when the controller is told to stop.
    pub drain: Duration,
}

impl Config {
    /// The defaults, for this identity (the pod's name) and the namespace of the Lease.
    pub fn new(identity: impl Into<String>, namespace: impl Into<String>) -> Self {
        Self {
            http: Some(SocketAddr::from(([0, 0, 0, 0], 8080))),
            lease: LeaseSettings::new(identity, namespace),
            batch_idle: Duration::from_secs(1),
            batch_max: Duration::from_secs(10),
            solver_limit: Duration::from_secs(3),
            setback_first: Duration::from_mins(1),
            setback_most: Duration::from_hours(1),
            placement: Placement::default(),
            schedulers: vec!["default-scheduler".to_owned()],
            profiles: Profiles::new(),
            min_priority: None,
            preferences: PreferencePolicy::default(),
            spot_risk: Some(SpotRisk::default()),
            limits: PoolLimits::default(),
            commitments: None,
            disruption_budgets: Vec::new(),
            create_concurrency: 10,
            act_concurrency: 32,
            list_interval: Duration::from_secs(30),
            catalogue_interval: Duration::from_mins(5),
            drain: Duration::from_secs(20),
        }
    }

    pub(crate) fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            !self.batch_idle.is_zero() && self.batch_idle <= self.batch_max,
            "the batch window's idle time ({:?}) must be above zero and not longer than its ceiling ({:?})",
            self.batch_idle,
            self.batch_max,
        );
        anyhow::ensure!(!self.solver_limit.is_zero(), "the solver's time limit must be above zero");
        anyhow::ensure!(
            self.setback_first >= Duration::from_secs(1) && self.setback_first <= self.setback_most,
            "an offering that failed must be held back for at least a second and at most {:?}, not {:?}",
            self.setback_most,
            self.setback_first,
        );
        anyhow::ensure!(
            self.create_concurrency > 0 && self.act_concurrency > 0,
            "concurrency must be at least 1: with 0 the controller would do nothing"
        );
        anyhow::ensure!(
            self.list_interval >= Duration::from_secs(1) && self.catalogue_interval >= Duration::from_secs(1),
            "the intervals at which providers are asked must be at least a second"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_accepted_and_a_window_that_never_closes_is_not() {
        let mut config = Config::new("me", "poolwright");
        config.check().unwrap();
        config.batch_idle = config.batch_max + Duration::from_secs(1);
        assert!(config.check().unwrap_err().to_string().contains("not longer than its ceiling"));
    }
}
