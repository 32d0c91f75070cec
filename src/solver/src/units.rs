//! Value units: the integers for prices inside the solver.

/// Value units in one micro-dollar. Prices of pods and worths of contents are whole numbers of these.
pub(crate) const UNITS: u64 = 1 << 10;
