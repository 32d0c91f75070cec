//! The `poolwright.dev` API: what users write and what Poolwright reports, as Kubernetes custom resources.
//!
//! This crate holds NodePool and NodeClaim with their defaults, validation rules and printer columns; durations and amounts as
//! the API writes them; and a reader that rejects unknown fields ([`strict`]).
//!
//! It must not contain node classes (each cloud's crate has its own), keys and shared types (`poolwright_terms` has them),
//! decisions, conversion to the model of core (`intake` does that), a client, or I/O.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printer column states its type, and several are strings"
)]

mod amount;
mod common;
mod crds;
mod disruption;
mod duration;
mod int_or_text;
mod node_claim;
mod node_pool;
mod patterns;
mod problem;
mod spelling;
pub mod strict;
mod units;

pub use amount::Amount;
pub use common::{Deadlines, conditions_schema, time_schema};
pub use crds::{crds, render};
pub use disruption::{
    ConsolidationPolicy, Disruption, DisruptionBudget, DisruptionReason, NodeConditionStatus, RepairRule,
    RetirePolicy,
};
pub use duration::{
    DurationError, DurationText, Expiry, ExpiryText, Idle, IdleText, format_duration, parse_duration,
};
pub use node_claim::{
    ClaimOffering, ClaimPrice, Interruption, NodeClaim, NodeClaimSpec, NodeClaimStatus, OfferingRef,
};
pub use node_pool::{
    BudgetAction, BufferUnits, MonthlyBudget, MonthlySpend, NodePool, NodePoolSpec, NodePoolStatus,
    NodeTemplate, NodeTemplateMetadata, NodeTemplateSpec, Operator, ReadinessGate, Requirement, ScaleToZero,
    Spot,
};
pub use patterns::PATTERNS;
pub use problem::{FieldProblem, key_segment};
pub use spelling::meant;
pub use units::Units;
