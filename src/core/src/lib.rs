//! Decides which nodes to buy, open to pods, keep and terminate. The input is a snapshot and a time. The output is a list of
//! actions with reasons.
//!
//! The crate consists of these modules, in the order in which data flows. A module uses only itself and the modules above it in
//! this table, which `tests/it/layers.rs` checks.
//!
//! | module | contents |
//! |---|---|
//! | `model` | the cluster, the options of a plan and the plan, as plain data |
//! | `action` | actions of the controller, as data |
//! | `rules` | scheduling rules: whether a pod may run on a node. One file for each rule |
//! | `setbacks` | back-off for offerings that failed or whose instances the cloud reclaimed |
//! | `outcome` | results of the executor's calls, and the actions that follow from them |
//! | `index` | the cluster as watches last showed it; source of snapshots |
//! | `batch` | the batch window: when to plan |
//! | `demand` | pending pods and pods that controllers will create, with volumes and scheduler profiles applied |
//! | `supply` | free capacity on nodes, offerings, limits, commitments, interruption risk |
//! | `plan` | the planner: place, pack, create claims, audit |
//! | `lifecycle` | the stages of a claim: launch, register, open, drain, terminate |
//! | `disruption` | consolidation, drift and expiry: which healthy nodes to empty |
//! | `why` | explanations for people: `poolwright explain`, events and conditions |
//!
//! `lifecycle` never uses `plan`. Both use `demand` and `supply`.
//!
//! They are modules of one crate so that the compiler can inline calls between them. The test keeps them as separate as crates
//! would be.
//!
//! The crate must not contain a Kubernetes or cloud client, an async runtime, a clock, API objects (`intake` converts them), or
//! logging. Every function is a pure function of its arguments.

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
