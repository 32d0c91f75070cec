//! Exact solutions of very small problems.
//!
//! [`solve`] is dynamic programming over multisets of pods. It ignores ceilings, so with scarce nodes it gives only a
//! bound. [`search`] tries plans one node at a time and obeys every rule. A dynamic program of the same kind bounds the
//! rest, with the prices of a relaxation in place of the ceilings. [`pack`] decides whether pods fit given nodes.

mod dynamic;
mod multiset;
mod packing;
mod search;

pub(crate) use dynamic::solve;
pub(crate) use packing::{Packing, UNITS, pack};
pub(crate) use search::search;
