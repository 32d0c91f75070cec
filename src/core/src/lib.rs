//! Decisions: what to buy, keep, open to pods and give back. A snapshot and a time go in, actions with reasons come out.
//!
//! Lives here: the cluster model and its synchronous index, effective pod requests, the scheduling
//! constraints, the planner, the life of a claim, which nodes are emptied although they are well, the batch window, the memory of offerings that failed.
//!
//! May not live here: a Kubernetes or cloud client, an async runtime, a clock, API objects (they are converted at the
//! edge, in the intake room), logging. Every function is a pure function of its arguments.

pub mod action;
pub mod batch;
pub mod demand;
pub mod disruption;
pub mod index;
pub mod lifecycle;
pub mod model;
pub mod outcome;
pub mod plan;
pub mod rules;
pub mod setbacks;
pub(crate) mod supply;
pub mod why;

pub use crate::action::{Action, ConditionUpdate, Notice, NoticeKind, Subject};
pub use crate::model::*;
pub use crate::outcome::{Outcome, Unavailable};
