//! Converts Kubernetes and Poolwright objects to the model of core, and decisions back to objects.
//!
//! This crate holds the conversion of pods, nodes, DaemonSets, pools and claims in both directions, the detection of
//! scheduling rules that the planner does not model, manifests (YAML or JSON) with strict field checking, the admission of new
//! pods, the expansion of workloads into pods, and the readers of two files: a scheduler's configuration and commitments.
//!
//! It must not decide anything, or use clients, files or clocks. Every function is a pure function of its arguments.

mod admission;
mod budget;
mod claim;
mod commitments;
mod conditions;
mod convert;
mod daemonset;
mod duration;
mod ending;
mod error;
mod gang_marks;
mod gangs;
pub mod manifest;
mod namespace;
mod new_volumes;
mod node;
mod other_groups;
mod others;
mod owned;
mod pod;
mod pod_groups;
mod pod_sets;
mod pool;
mod preferences;
mod quota;
mod quota_scope;
pub mod refused;
mod requests;
mod rules;
mod scheduler;
mod services;
mod template;
mod unmodelled;
mod volumes;
mod workload;
mod workloads;

pub use admission::Admission;
pub use budget::budget;
pub use claim::{
    api_interruption, claim_object, claim_price, interruption, node_claim, offering_id, offering_ref,
};
pub use commitments::{Amount, Commitments, ReservedNodes, commitments, readable_commitments};
pub use conditions::{conditions, merge_conditions};
pub use convert::{allocatable_amounts, deadlines, node_taint, node_taints};
pub use daemonset::daemonset;
pub use duration::ignored_annotations;
pub use error::IntakeError;
pub use gang_marks::{ignored_in_pod, is_group_mark, planned_singly};
pub use gangs::{JobSet, LeaderWorkerSet, job_set, leader_worker_set};
pub use manifest::Manifest;
pub use namespace::{ignored_in_namespace, namespace};
pub use new_volumes::unread_of_drivers;
pub use node::node;
pub use other_groups::{CoschedulingPodGroup, VolcanoPodGroup, coscheduling_pod_group, volcano_pod_group};
pub use pod::pod;
pub use pod_groups::pod_group;
pub use pool::{disruption_budget, max_spot_share, node_pool, on_demand_floor};
pub use quota::quota;
pub use scheduler::{SchedulerConfig, scheduler_config};
pub use services::service;
pub use volumes::{
    BIND_COMPLETED, DEFAULT_CLASS, SELECTED_NODE, attachment, node_drivers, storage_class, volume,
    volume_claim,
};
pub use workload::MAX_PODS;
pub use workloads::{job, replica_set, replication_controller, stateful_set};
