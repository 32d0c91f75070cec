//! Value units: the integers for prices inside the solver.

/// The value units in one micro-dollar. Pod prices and the worth of patterns are whole numbers of these.
pub(crate) const UNITS: u64 = 1 << 10;
