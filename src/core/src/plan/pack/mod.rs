//! pack.

pub(crate) mod class_risk;
pub(crate) mod classes;
pub(crate) mod layout;
pub(crate) mod rounds;
