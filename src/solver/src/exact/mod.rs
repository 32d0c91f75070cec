//! Very small problems, exactly.
//!
//! [`solve`] is dynamic programming over multisets of pods. It ignores ceilings, so with scarce nodes it is a bound only.
//! [`search`] tries plans one node at a time and honours every rule; what the rest costs at least is the same dynamic
//! program, with the prices of a relaxation in place of the ceilings.

mod dynamic;
mod multiset;
mod search;

pub(crate) use dynamic::solve;
pub(crate) use search::search;
