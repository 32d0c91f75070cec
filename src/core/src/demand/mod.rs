//! demand.

pub(crate) mod profiles;
pub(crate) mod volumes;
