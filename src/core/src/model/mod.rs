//! The cluster as decisions see it: plain data, converted and validated by `intake`.

pub(crate) mod budget;
pub(crate) mod buffer;
pub(crate) mod claim;
pub(crate) mod claims;
pub(crate) mod disruption;
pub(crate) mod duration;
pub(crate) mod gang;
pub(crate) mod instances;
pub(crate) mod interruption;
pub(crate) mod life;
pub(crate) mod lives;
pub(crate) mod names;
pub(crate) mod node;
pub(crate) mod nodes;
pub(crate) mod options;
pub(crate) mod persistent_map;
pub(crate) mod plan;
pub(crate) mod plan_cache;
pub(crate) mod pod;
pub(crate) mod pod_affinity;
pub(crate) mod pod_group;
pub(crate) mod pod_key;
pub(crate) mod pods;
pub(crate) mod pool;
pub(crate) mod preferences;
pub(crate) mod profile;
pub(crate) mod quota;
pub(crate) mod reclaims;
pub(crate) mod relaxed;
pub(crate) mod retirement;
pub(crate) mod rules;
pub(crate) mod snapshot;
pub(crate) mod stage;
pub(crate) mod unmodelled;
pub(crate) mod volumes;
pub(crate) mod workload;

pub use crate::model::budget::{BudgetLimit, BudgetSelector, CountOrPercent, PodDisruptionBudget};
pub use crate::model::buffer::Buffer;
pub use crate::model::claim::{Claim, Condition, Deadlines, Launched};
pub use crate::model::claims::Claims;
pub use crate::model::disruption::{Cause, Disruption, DisruptionBudget, RepairRule, Schedule, Window};
pub use crate::model::duration::{PodDuration, template};
pub use crate::model::gang::{Gang, GangPart};
pub use crate::model::instances::{Instances, ListedInstance};
pub use crate::model::interruption::Interruption;
pub use crate::model::life::{Ends, Life};
pub use crate::model::lives::{Known, LifeSource, LifeTable, Lives};
pub use crate::model::names::ClaimName;
pub use crate::model::names::PoolName;
pub use crate::model::names::Uid;
pub use crate::model::node::{Node, NodeCondition};
pub use crate::model::nodes::Nodes;
pub use crate::model::options::{PlanOptions, Sharing, SpotRisk};
pub use crate::model::persistent_map::PersistentMap;
pub use crate::model::pod::{DaemonSet, Ending, Pod, PodPhase, PodRole, PodSpec, Protection};
pub use crate::model::pod_affinity::{
    HostPort, Namespace, NamespaceLabels, Namespaces, PodAffinityTerm, TopologySpreadConstraint,
};
pub use crate::model::pod_group::PodGroup;
pub use crate::model::pod_key::{NotAPodKey, ObjectKey, OwnerKey, PodKey};
pub use crate::model::pods::{Beside, Count, OnNode, PodTraits, Pods};
pub use crate::model::pool::{Pool, PoolLimits, PoolProblem};
pub use crate::model::preferences::{Preferences, Weighted};
pub use crate::model::profile::{EnforcedAffinity, Profile, Profiles, Service};
pub use crate::model::quota::Quota;
pub use crate::model::reclaims::Reclaims;
pub use crate::model::retirement::{PricesElsewhere, Retirement, Retirements, about};
pub use crate::model::rules::{NodeSelectorTerm, Operator, Requirement, Toleration, TolerationMatch};
pub use crate::model::snapshot::Snapshot;
pub use crate::model::unmodelled::UnmodelledRule;
pub use crate::model::volumes::{
    Attachment, NodeDrivers, PodVolume, StorageClass, Volume, VolumeClaim, VolumeShape,
};
pub use crate::model::workload::Workload;
pub use poolwright_terms::Stage;
