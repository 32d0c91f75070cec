//! Decisions: what to buy, keep, open to pods and give back. A snapshot and a time go in, actions with reasons come out.
//!
//! Lives here: the cluster model and its synchronous index, effective pod requests, the scheduling
//! constraints, the planner, the life of a claim, which nodes are emptied although they are well, the batch window, the memory of offerings that failed.
//!
//! May not live here: a Kubernetes or cloud client, an async runtime, a clock, API objects (they are converted at the
//! edge, in the intake room), logging. Every function is a pure function of its arguments.

pub mod action;
pub mod batch;
pub mod budgets;
pub mod demand;
pub mod disruption;
pub mod explain;
pub mod index;
pub mod lifecycle;
pub mod model;
pub mod plan;
pub mod requests;
pub mod rules;
pub mod setbacks;
pub mod story;

pub use action::{Action, ConditionStatus, ConditionType, ConditionUpdate, Notice, NoticeKind, Subject};
pub use model::*;

/// Key of the taint (effect `NoExecute`) that a node of ours carries from its first moment until its claim has
/// recognised it, so that nothing runs on a node nobody vouches for.
pub const UNREGISTERED_TAINT: &str = "poolwright.dev/unregistered";
/// Key of the taint (effect `NoSchedule`) on a node that will be given back.
pub const DISRUPTED_TAINT: &str = "poolwright.dev/disrupted";
/// Key of the taint (effect `NoSchedule`, the claim's name as value) on an open node that still waits for the pods it was
/// bought for: nobody else may take their room.
pub const RESERVED_TAINT: &str = "poolwright.dev/reserved";
/// Annotation on a node whose cordon is ours and is lifted when its claim is initialized. Its value is `initialization`.
pub const GATE_ANNOTATION: &str = "poolwright.dev/cordoned-until";
