//! Demand: the pods that want a node, those that wait and those that are still to come.
//!
//! Both planning and the life of claims read from here who is still to come and where an earlier plan put it.

pub(crate) mod buffer;
pub(crate) mod expected;
pub(crate) mod gangs;
pub(crate) mod nominations;
pub(crate) mod profiles;
pub(crate) mod static_pools;
pub(crate) mod successors;
pub(crate) mod template_volumes;
pub(crate) mod units;
pub(crate) mod volumes;
pub(crate) mod waiting;
pub(crate) mod wanting;
