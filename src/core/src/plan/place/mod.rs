//! Placing happens before packing. It keeps earlier places, chooses zones and other domains for rules about other pods, and
//! chooses the preferences to meet.

pub(crate) mod preferences;
pub(crate) mod spread_hosts;
pub(crate) mod sticky;
pub(crate) mod topology;
