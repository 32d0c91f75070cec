//! place.

pub(crate) mod fewest;
pub(crate) mod preferences;
pub(crate) mod sticky;
pub(crate) mod topology;
