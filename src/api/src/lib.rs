//! The `poolwright.dev` API: what users write and what Poolwright reports, as Kubernetes custom resources.
//!
//! Lives here: NodePool, NodeClaim, KwokNodeClass and EC2NodeClass with their defaults, validation rules and printer columns;
//! durations and amounts as the API writes them; the CRD manifests.
//!
//! May not live here: keys and shared types (`poolwright_terms` has them), decisions, conversion to the decision model (the intake room does that), a client, any I/O.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printer column states its type, and several are strings"
)]

mod amount;
mod common;
mod crds;
mod disruption;
mod duration;
mod ec2_node_class;
mod kwok_node_class;
pub mod names;
mod node_claim;
mod node_pool;

pub use amount::Amount;
pub use common::Deadlines;
pub use crds::{crd_files, crds, render};
pub use disruption::{
    ConsolidationPolicy, Disruption, DisruptionBudget, DisruptionReason, NodeConditionStatus, RepairRule,
};
pub use duration::{DurationError, DurationText, Expiry, ExpiryText, format_duration, parse_duration};
pub use ec2_node_class::{
    AmiFamily, AmiSelectorTerm, BlockDeviceMapping, CapacityReservationSelectorTerm, EC2NodeClass,
    EC2NodeClassSpec, EbsVolume, Ec2NodeClassStatus, Efa, HttpTokens, InstanceMatchCriteria,
    InstanceStorePolicy, KubeletSettings, MetadataOptions, PlacementGroup, ResolvedCapacityReservation,
    ResolvedImage, ResolvedPlacementGroup, ResolvedSecurityGroup, ResolvedSubnet, SecurityGroupSelectorTerm,
    SubnetSelectorTerm, Switch, TagSelector, UserData, VolumeType,
};
pub use kwok_node_class::{
    Faults, InterruptionFault, KwokNodeClass, KwokNodeClassSpec, KwokNodeClassStatus, LaunchFault,
    OfferingSelector,
};
pub use node_claim::{
    ClaimOffering, ClaimPrice, Interruption, NodeClaim, NodeClaimSpec, NodeClaimStatus, OfferingRef,
};
pub use node_pool::{
    BufferUnits, NodePool, NodePoolSpec, NodePoolStatus, NodeTemplate, NodeTemplateMetadata,
    NodeTemplateSpec, Operator, ReadinessGate, Requirement, ScaleToZero,
};
