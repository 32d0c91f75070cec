//! Decisions: what to buy, keep, open to pods and give back. A snapshot and a time go in, actions with reasons come out.
//!
//! Lives here, in the order of the data. A room uses itself and the rooms above it, never one below; `tests/it/rooms.rs` holds that.
//!
//! | room | job |
//! |---|---|
//! | `model` | the cluster, the offers, the options and the plan, as plain data |
//! | `action` | what the controller is to do, as data |
//! | `rules` | whether a pod may run on a node: one scheduling rule, one file |
//! | `setbacks` | the back-off of offerings that failed or were taken back |
//! | `outcome` | results of calls, remembered as setbacks and answered with actions |
//! | `index` | what the watches said last; it gives snapshots |
//! | `batch` | the batch window: when to plan |
//! | `demand` | the pods that want a node and those still to come, volumes and scheduler profiles applied |
//! | `supply` | free room, offers, limits, commitments, interruption risk |
//! | `plan` | place, pack, make claims, audit |
//! | `lifecycle` | the life of a claim: launch, register, open, drain, give back |
//! | `disruption` | drift, expiry and consolidation: which healthy nodes leave |
//! | `why` | the reasons, in words for people |
//!
//! `lifecycle` never asks `plan`: what both need stands in `demand` and `supply`.
//!
//! The rooms are modules and not crates: one unit is optimised as a whole, calls between rooms inline, and the test holds the walls as
//! well as the compiler would.
//!
//! May not live here: a Kubernetes or cloud client, an async runtime, a clock, API objects (the intake crate converts them), logging.
//! Every function is a pure function of its arguments.

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

pub use crate::action::{Action, ConditionUpdate, Event, EventType, Subject};
pub use crate::model::*;
pub use crate::outcome::{Outcome, Unavailable};
