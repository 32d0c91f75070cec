//! Supply: the free capacity of nodes and claims, the offerings of pools, limits, commitments, and interruption risk.

pub(crate) mod cached;
pub(crate) mod commitments;
pub(crate) mod daemonsets;
pub(crate) mod flexibility;
pub(crate) mod held_back;
pub(crate) mod interruption_backoff;
pub(crate) mod interruption_risk;
pub(crate) mod limits;
pub(crate) mod monthly_budget;
pub(crate) mod namespace_use;
pub(crate) mod offerings;
pub(crate) mod rooms;
pub(crate) mod spot_mix;
pub(crate) mod unclaimed;
pub(crate) mod unmet;
pub(crate) mod wider;
