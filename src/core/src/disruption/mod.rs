//! Nodes that are well and are emptied all the same: because they drifted, are too old, or because their work costs less
//! elsewhere.
//!
//! What is decided is which nodes leave ([`propose`]): first those that must (`required`), then those that consolidation empties
//! (`consolidation`). Their claims say so (`Disrupting`), and from then on the planner counts the
//! successors of their pods as demand. So what these need is bought first, and room they count on is theirs. When every
//! successor has room on a node that is open, the claim is deleted and its node drained like any other; until then a change of
//! the world calls it off ([`follow`]). All of it is read from what is recorded, so a restart changes nothing.
//!
//! Which nodes are emptied for money the solver proposes; whether that is possible under every rule of every pod, and what it
//! costs then, the planner says, for a cluster in which they leave.

pub(crate) mod consolidation;
pub(crate) mod drift;
pub(crate) mod follow;
pub(crate) mod past_moves;
pub(crate) mod payback;
pub(crate) mod proposal;
pub(crate) mod propose;
pub(crate) mod repack;
pub(crate) mod required;
pub(crate) mod search;

pub use crate::disruption::drift::drift;
pub use crate::disruption::follow::{Followed, follow};
pub use crate::disruption::past_moves::Moves;
pub use crate::disruption::proposal::{NodeToEmpty, Proposal, SearchResult};
pub use crate::disruption::propose::propose;
