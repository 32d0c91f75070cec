//! Disruption: empties healthy nodes because of consolidation, drift, expiry or maintenance.
//!
//! [`propose`] chooses the nodes: required disruptions first (`required`), then `consolidation`. The condition `Disrupting` of
//! their claims records the decision. From then on, the planner counts the successors of their pods as demand, so nodes for them
//! are bought first. When every successor has a place on an open node, [`follow`] deletes the claim, and its node is drained like
//! any other. Until then, [`follow`] may call the disruption off. All state of a disruption is in conditions, so a restart
//! changes nothing. The [`MoveRecord`] of past moves survives it too.
//!
//! For consolidation, the solver proposes sets of nodes. A plan without these nodes then shows whether every rule of every pod
//! can be kept, and what that costs. [`over_time`] compares the costs until the pods have ended. `worst_case` counts new nodes at the
//! dearest price that the cloud may choose.
//!
//! [`make_room()`] moves single pods off nodes that stay, so that a plan need not buy a node, or so that another node can be
//! emptied (`exchange`).

pub(crate) mod consolidation;
pub(crate) mod drift;
pub(crate) mod exchange;
pub(crate) mod follow;
pub(crate) mod kept;
pub(crate) mod make_room;
pub(crate) mod move_history;
pub(crate) mod move_record;
pub(crate) mod outlook;
pub(crate) mod over_time;
pub(crate) mod payback;
pub(crate) mod proposal;
pub(crate) mod propose;
pub(crate) mod repack;
pub(crate) mod required;
pub(crate) mod room_cost;
pub(crate) mod room_hosts;
pub(crate) mod room_search;
pub(crate) mod search;
pub(crate) mod search_schedule;
pub(crate) mod worst_case;

pub use crate::disruption::drift::drift;
pub use crate::disruption::follow::{FollowUp, follow};
pub use crate::disruption::kept::Kept;
pub use crate::disruption::make_room::{RoomMade, make_room, wants_room};
pub use crate::disruption::move_history::MoveHistory;
pub use crate::disruption::move_record::MoveRecord;
pub use crate::disruption::outlook::{Elsewhere, Outlook, outlook};
pub use crate::disruption::payback::Shortfall;
pub use crate::disruption::proposal::{NodeToEmpty, Proposal, SearchResult};
pub use crate::disruption::propose::propose;
pub use crate::disruption::search_schedule::SearchSchedule;
