//! Shared terms: keys, types and reasons that all crates use, each defined once.
//!
//! This crate holds the keys of labels, annotations, taints and finalizers; the types that the API, decisions and providers
//! share ([`Taint`], [`NodeClassRef`], [`CapacityType`], [`InterruptionKind`]); the types of conditions; the
//! stages of a claim ([`Stage`]); the registry of reasons ([`Reason`]); the one way to write text of others in our lines
//! ([`foreign`]).
//!
//! It must not contain decisions, amounts and prices (the catalogue has them), API objects, clients, or I/O. It
//! depends on no other crate of the workspace.

mod capacity;
mod condition;
pub mod domains;
pub mod foreign;
mod interruption;
pub mod keys;
pub mod labels;
mod node_class;
mod reason;
mod stage;
mod taint;

pub use capacity::CapacityType;
pub use condition::{ConditionStatus, ConditionType};
pub use foreign::one_line;
pub use interruption::InterruptionKind;
pub use keys::{API_VERSION, GROUP, VERSION};
pub use node_class::NodeClassRef;
pub use reason::{Reason, RegisteredReason};
pub use stage::Stage;
pub use taint::{Taint, TaintEffect};
