//! The stories of pods, claims, nodes and pools, for people: what was asked, what was considered, what decided. Plain text,
//! a few lines each, from the same snapshot and the same plan that decisions are made from.

pub(crate) mod claim;
pub(crate) mod event_note;
pub mod events;
pub(crate) mod pod;
pub(crate) mod pool;
pub(crate) mod rulings;

pub use crate::why::claim::{claim, node};
pub use crate::why::event_note::event_note;
pub use crate::why::pod::{MOST_LINES, pod, pods};
pub use crate::why::pool::pool;
pub use crate::why::rulings::{Candidacy, Ruling, rulings};
