//! The cluster as decisions see it. Everything here was converted and checked at the edge.

mod budget;
mod claim;
mod claims;
mod gang;
mod node;
mod nodes;
mod others;
mod pod;
mod pod_group;
mod pods;
mod pool;
mod quota;
mod rules;
mod shared;
mod snapshot;
mod volumes;
mod wishes;
mod workload;

pub use budget::{Budget, BudgetLimit, BudgetSelector, Share};
pub use claim::{Claim, ClaimName, Condition, Deadlines, Launched, RankedOffering};
pub use claims::Claims;
pub use gang::{Gang, GangPart};
pub use node::Node;
pub use nodes::Nodes;
pub use others::{HostPort, Namespace, NamespaceLabels, Namespaces, PodTerm, SpreadRule};
pub use pod::{DaemonSet, Pod, PodKey, PodPhase, PodRole, PodSpec, Uid, UnmodelledRule};
pub use pod_group::PodGroup;
pub use pods::{Beside, Count, Look, OnNode, Pods};
pub use pool::{NodeClassRef, Pool, PoolLimits, PoolName, PoolProblem};
pub use quota::Quota;
pub use rules::{Effect, NodeTerm, Operator, Requirement, Taint, Toleration, TolerationMatch};
pub use shared::Shared;
pub use snapshot::{Instance, Snapshot};
pub use volumes::{NodeDrivers, PodVolume, StorageClass, Volume, VolumeClaim, VolumeShape};
pub use wishes::{Weighted, Wishes};
pub use workload::Workload;
