//! Supply: what pods can use. Free room on nodes and claims, offers of the pools, limits, commitments, and what interruptions add to a price.

pub(crate) mod cached;
pub(crate) mod commitments;
pub(crate) mod daemonsets;
pub(crate) mod interruption_backoff;
pub(crate) mod interruption_risk;
pub(crate) mod limits;
pub(crate) mod offerings;
pub(crate) mod rooms;
