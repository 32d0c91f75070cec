//! The cluster as decisions see it. Everything here was converted and checked at the edge.

pub(crate) mod bits;
pub(crate) mod budget;
pub(crate) mod buffer;
pub(crate) mod claim;
pub(crate) mod claims;
pub(crate) mod disruption;
pub(crate) mod gang;
pub(crate) mod instances;
pub(crate) mod interruption;
pub(crate) mod memory;
pub(crate) mod node;
pub(crate) mod nodes;
pub(crate) mod options;
pub(crate) mod others;
pub(crate) mod plan;
pub(crate) mod pod;
pub(crate) mod pod_group;
pub(crate) mod pod_key;
pub(crate) mod pods;
pub(crate) mod pool;
pub(crate) mod preferences;
pub(crate) mod profile;
pub(crate) mod quota;
pub(crate) mod relaxed;
pub(crate) mod rules;
pub(crate) mod shared;
pub(crate) mod snapshot;
pub(crate) mod taken_back;
pub(crate) mod volumes;
pub(crate) mod workload;

pub use crate::model::budget::{Budget, BudgetLimit, BudgetSelector, Share};
pub use crate::model::buffer::Buffer;
pub use crate::model::claim::{Claim, ClaimName, Condition, Deadlines, Launched};
pub use crate::model::claims::Claims;
pub use crate::model::disruption::{Cause, Disruption, NodeBudget, RepairRule, Schedule, Window};
pub use crate::model::gang::{Gang, GangPart};
pub use crate::model::instances::{Instances, ListedInstance};
pub use crate::model::interruption::Interruption;
pub use crate::model::node::{Node, NodeCondition};
pub use crate::model::nodes::Nodes;
pub use crate::model::options::{PlanOptions, Sharing, SpotRisk};
pub use crate::model::others::{HostPort, Namespace, NamespaceLabels, Namespaces, PodTerm, SpreadRule};
pub use crate::model::pod::{
    DaemonSet, Ending, Pod, PodPhase, PodRole, PodSpec, Protection, Uid, UnmodelledRule,
};
pub use crate::model::pod_group::PodGroup;
pub use crate::model::pod_key::{NotAPodKey, ObjectKey, OwnerKey, PodKey};
pub use crate::model::pods::{Beside, Count, Look, OnNode, Pods};
pub use crate::model::pool::{Pool, PoolLimits, PoolName, PoolProblem};
pub use crate::model::preferences::{Weighted, Wishes};
pub use crate::model::profile::{EnforcedAffinity, Profile, Profiles, Service};
pub use crate::model::quota::Quota;
pub use crate::model::rules::{NodeTerm, Operator, Requirement, Toleration, TolerationMatch};
pub use crate::model::shared::Shared;
pub use crate::model::snapshot::Snapshot;
pub use crate::model::taken_back::TakenBack;
pub use crate::model::volumes::{
    Attachment, NodeDrivers, PodVolume, StorageClass, Volume, VolumeClaim, VolumeShape,
};
pub use crate::model::workload::Workload;
