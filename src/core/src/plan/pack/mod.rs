//! pack.

pub(crate) mod classes;
pub(crate) mod layout;
pub(crate) mod rounds;
