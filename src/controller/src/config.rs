//! Settings of the controller, with defaults for production clusters.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use poolwright_catalog::UsdPerHour;
use poolwright_core::lifecycle::PlacementMode;
use poolwright_core::plan::{MinValuesPolicy, PreferencePolicy, SpotRisk};
use poolwright_core::{DisruptionBudget, MonthlyBudget, NamespaceLimits, PoolLimits, Profiles};
use poolwright_intake::Commitments;
use poolwright_ledger::Store;

use crate::leader::LeaseSettings;

/// The commitments file and its contents at the start.
#[derive(Clone, Debug)]
pub struct CommittedFile {
    /// Its path.
    pub path: PathBuf,
    /// Its contents at the start.
    pub commitments: Commitments,
}

/// Returns the problems of a commitments file for a controller. Reservations are a problem too, because a controller knows them
/// only from node classes.
pub fn unfit(file: &Commitments) -> Vec<String> {
    let mut problems = file.problems();
    problems.extend(file.first_reservation().map(|at| {
        format!(
            "{at}: the controller reads reservations from node classes; name this one in \
             spec.capacityReservationSelectorTerms of the node class, and keep `commitments` alone here"
        )
    }));
    problems
}

/// The settings of the controller.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address of `/healthz`, `/readyz` and `/metrics`; `None` to serve nothing.
    pub http: Option<SocketAddr>,
    /// Leader election.
    pub lease: LeaseSettings,
    /// How long the batch window stays open after the last new pod.
    pub batch_idle: Duration,
    /// The longest time that the batch window stays open.
    pub batch_max: Duration,
    /// How long one solver call may search.
    pub solver_limit: Duration,
    /// How long an offering is held back after a failure. Doubles with each failure in a row.
    pub setback_first: Duration,
    /// The longest time that an offering is held back.
    pub setback_most: Duration,
    /// How pods are directed to the nodes that they were planned for.
    pub placement: PlacementMode,
    /// Names of the schedulers whose pods are planned.
    pub schedulers: Vec<String>,
    /// Profiles of the schedulers, which add rules to their pods.
    pub profiles: Profiles,
    /// The lowest priority of pods that nodes are bought for; `None` for no limit.
    pub min_priority: Option<i32>,
    /// Whether preferences of pods influence which nodes are bought.
    pub preferences: PreferencePolicy,
    /// Whether nodes are bought for which `minValues` of their pool is not met.
    pub min_values: MinValuesPolicy,
    /// The most that the nodes of a pool without a money limit of its own may cost; `None` for no limit.
    pub default_usd_per_hour: Option<UsdPerHour>,
    /// Limits of every namespace that states none of its own.
    pub namespace_limits: NamespaceLimits,
    /// Monthly budgets of namespaces, by name.
    pub namespace_budgets: BTreeMap<String, MonthlyBudget>,
    /// The counted cost of spot interruptions; `None` to compare offerings only by price.
    pub spot_risk: Option<SpotRisk>,
    /// Limits over all pools together, in addition to each pool's own.
    pub limits: PoolLimits,
    /// Commitments that plans use; `None` for none.
    pub commitments: Option<CommittedFile>,
    /// Disruption budgets over all pools, in addition to each pool's own.
    pub disruption_budgets: Vec<DisruptionBudget>,
    /// The kinds of node class that no provider of this controller launches with, each with what would change that:
    /// `start the controller with --mist-cluster`.
    pub disabled_kinds: BTreeMap<&'static str, String>,
    /// The number of claims that are created concurrently.
    pub create_concurrency: usize,
    /// The number of objects that the executor works on concurrently.
    pub act_concurrency: usize,
    /// How often to list instances of providers.
    pub list_interval: Duration,
    /// How often to read the providers' catalogues.
    pub catalogue_interval: Duration,
    /// The directory for inputs of plans that fail; `None` to save none.
    pub save_failures: Option<PathBuf>,
    /// Where to write the ledger; `None` to write none.
    pub ledger: Option<Store>,
    /// How long to wait for pending calls at shutdown.
    pub drain: Duration,
}

impl Config {
    /// Returns the defaults, for this identity (the pod's name) and the namespace of the Lease.
    pub fn new(identity: impl Into<String>, namespace: impl Into<String>) -> Self {
        Self {
            http: Some(SocketAddr::from(([0, 0, 0, 0], 8080))),
            lease: LeaseSettings::new(identity, namespace),
            batch_idle: Duration::from_secs(1),
            batch_max: Duration::from_secs(10),
            solver_limit: Duration::from_secs(3),
            setback_first: Duration::from_mins(1),
            setback_most: Duration::from_hours(1),
            placement: PlacementMode::default(),
            schedulers: vec!["default-scheduler".to_owned()],
            profiles: Profiles::new(),
            min_priority: None,
            preferences: PreferencePolicy::default(),
            min_values: MinValuesPolicy::default(),
            default_usd_per_hour: None,
            namespace_limits: NamespaceLimits::new(),
            namespace_budgets: BTreeMap::new(),
            spot_risk: Some(SpotRisk::default()),
            limits: PoolLimits::default(),
            commitments: None,
            disruption_budgets: Vec::new(),
            disabled_kinds: BTreeMap::new(),
            create_concurrency: 10,
            act_concurrency: 32,
            list_interval: Duration::from_secs(30),
            catalogue_interval: Duration::from_mins(5),
            save_failures: None,
            ledger: None,
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
