//! The cluster as decisions see it: plain data, converted and validated by `intake`.

pub(crate) mod arrivals;
pub(crate) mod baseline;
pub(crate) mod budget;
pub(crate) mod buffer;
pub(crate) mod claim;
pub(crate) mod claims;
pub(crate) mod daemon_sizes;
pub(crate) mod daemonset;
pub(crate) mod disruption;
pub(crate) mod duration;
pub(crate) mod gang;
pub(crate) mod gang_mark;
pub(crate) mod group_role;
pub(crate) mod idle;
pub(crate) mod instances;
pub(crate) mod interruption;
pub(crate) mod life;
pub(crate) mod life_table;
pub(crate) mod lives;
pub(crate) mod marked_gangs;
pub(crate) mod monthly_budget;
pub(crate) mod names;
pub(crate) mod namespace_limits;
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
pub(crate) mod request;
pub(crate) mod retirement;
pub(crate) mod rules;
pub(crate) mod saved;
pub(crate) mod shared;
mod sized_daemonset;
pub(crate) mod snapshot;
pub(crate) mod solve;
pub(crate) mod spot;
pub(crate) mod stage;
pub(crate) mod unmodelled;
pub(crate) mod volumes;
pub(crate) mod workload;

pub use crate::model::arrivals::{Arrivals, Bursts, Chosen};
pub use crate::model::budget::{
    BudgetLimit, BudgetSelector, CountOrPercent, PodDisruptionBudget, UnhealthyPods,
};
pub use crate::model::buffer::{Buffer, Units};
pub use crate::model::claim::{Claim, Condition, Deadlines, Launched};
pub use crate::model::claims::Claims;
pub use crate::model::daemonset::DaemonSet;
pub use crate::model::disruption::{Cause, Disruption, DisruptionBudget, RepairRule, Schedule, Window};
pub use crate::model::duration::{PodDuration, Reported, template};
pub use crate::model::gang::{Gang, GangPart};
pub use crate::model::gang_mark::GangMark;
pub use crate::model::group_role::GroupRole;
pub use crate::model::idle::{BREAK_EVEN, Gaps, Keep, ScaleToZero};
pub use crate::model::instances::{Instances, ListedInstance};
pub use crate::model::interruption::Interruption;
pub use crate::model::life::{Ends, Life};
pub use crate::model::life_table::LifeTable;
pub use crate::model::lives::{Known, LifeSource, Lives};
pub use crate::model::monthly_budget::{
    BudgetOutlook, BudgetState, Month, MonthSpend, MonthlyBudget, PaidNode,
};
pub use crate::model::names::ClaimName;
pub use crate::model::names::PoolName;
pub use crate::model::names::Uid;
pub use crate::model::namespace_limits::{
    CeilingOrigin, NamespaceCeiling, NamespaceLimit, NamespaceLimits, SpentBudget, SpentBudgets, StatedLimits,
};
pub use crate::model::node::{Node, NodeCondition};
pub use crate::model::nodes::Nodes;
pub use crate::model::options::{MinValuesPolicy, PlanOptions, Sharing, SpotRisk};
pub use crate::model::persistent_map::PersistentMap;
pub use crate::model::pod::{Ending, Pod, PodHealth, PodPhase, PodRole, PodSpec, Protection};
pub use crate::model::pod_affinity::{
    HostPort, LimitsByNamespace, Namespace, NamespaceLabels, Namespaces, PodAffinityTerm,
    TopologySpreadConstraint,
};
pub use crate::model::pod_group::{GangScheduler, PodGroup};
pub use crate::model::pod_key::{NotAPodKey, ObjectKey, OwnerKey, PodKey};
pub use crate::model::pods::{Beside, Count, OnNode, PodTraits, Pods};
pub(crate) use crate::model::pool::PoolInWords;
pub use crate::model::pool::{Pool, PoolLimits, PoolProblem};
pub use crate::model::preferences::{Preferences, Weighted};
pub use crate::model::profile::{EnforcedAffinity, Profile, Profiles, Service};
pub use crate::model::quota::{PodScopes, Quota, QuotaScope, QuotaScopes};
pub use crate::model::reclaims::Reclaims;
pub use crate::model::request::{RequestOrigin, RequestPart};
pub use crate::model::retirement::{PricesElsewhere, Retirement, Retirements, about};
pub use crate::model::rules::{NodeSelectorTerm, Operator, Requirement, Toleration, TolerationMatch};
pub use crate::model::saved::SavedSnapshot;
pub use crate::model::shared::Shared;
pub use crate::model::snapshot::Snapshot;
pub use crate::model::spot::SpotRules;
pub use crate::model::unmodelled::UnmodelledRule;
pub use crate::model::volumes::{
    Attachment, NodeDrivers, PodVolume, StorageClass, Volume, VolumeClaim, VolumeShape,
};
pub use crate::model::workload::Workload;
pub use poolwright_terms::Stage;
