//! Supply: what pods can use. Free room on nodes and claims, offers of the pools, limits, commitments, and what interruptions add to a price.

pub(crate) mod commitments;
pub(crate) mod daemonsets;
pub(crate) mod interruption_backoff;
pub(crate) mod interruption_risk;
pub(crate) mod known;
pub(crate) mod limits;
pub(crate) mod offers;
pub(crate) mod rooms;
