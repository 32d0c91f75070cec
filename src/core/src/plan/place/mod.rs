//! Placing: pods that stay where they were planned, zones and other domains for rules about other pods, and preferences.

pub(crate) mod preferences;
pub(crate) mod spread_hosts;
pub(crate) mod sticky;
pub(crate) mod topology;
