//! NodeClaims. Each node has one claim, from the decision to buy it until its instance is terminated.

use crate::model::names::ClaimName;
use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{OfferingId, RankedOffering};
use poolwright_terms::{ConditionStatus, ConditionType, InterruptionKind, NodeClassRef, Reason, Taint};
use serde::{Deserialize, Serialize};

use crate::model::disruption::Cause;
use crate::model::duration::SEPARATOR;
use crate::model::interruption::Interruption;
use crate::model::names::PoolName;
use crate::model::names::Uid;
use crate::model::pod_key::PodKey;

/// A NodeClaim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Its name.
    pub name: ClaimName,
    /// Its UID, which is the idempotency key of the launch.
    pub uid: Uid,
    /// Its pool.
    pub pool: PoolName,
    /// The node class to launch with.
    pub node_class: NodeClassRef,
    /// The offerings to launch: the planned offering first, then alternatives if it is out of stock, best first. Never empty.
    pub offerings: Vec<RankedOffering>,
    /// Labels that the node gets from the pool's template.
    pub labels: BTreeMap<String, String>,
    /// Annotations that the node gets from the pool's template.
    pub annotations: BTreeMap<String, String>,
    /// Taints that the node keeps.
    pub taints: Vec<Taint>,
    /// Startup taints: the node has them at first, and another component removes them later.
    pub startup_taints: Vec<Taint>,
    /// Types of node conditions that must be true before the node opens.
    pub readiness_gates: Vec<String>,
    /// The pods it was bought for.
    pub planned_pods: Vec<PodKey>,
    /// The reason for buying it: a sentence, not a [`Reason`]; empty if none is recorded.
    pub reason: String,
    /// Whether an annotation forbids disruption of its node.
    pub do_not_disrupt: bool,
    /// Whether it was bought because pods lost the place that an earlier plan gave them on a node that still exists.
    pub bought_again: bool,
    /// The time limit of each stage.
    pub deadlines: Deadlines,
    /// The creation time.
    pub created: Timestamp,
    /// The deletion timestamp; `None` if it is not being deleted.
    pub deleting_since: Option<Timestamp>,
    /// The launched instance; `None` until one is recorded.
    pub launched: Option<Launched>,
    /// The name of its node; `None` until registered.
    pub node_name: Option<String>,
    /// The interruption that its cloud has announced, if any.
    pub interruption: Option<Interruption>,
    /// Conditions, as recorded in its status.
    pub conditions: BTreeMap<ConditionType, Condition>,
}

/// A launched instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launched {
    /// The cloud's id, equal to the node's `spec.providerID`.
    pub provider_id: String,
    /// The offering that was launched: one of the claim's offerings.
    pub offering: OfferingId,
}

/// The time limits of the stages of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlines {
    /// The limit from the creation of the claim to a launched instance.
    pub launch: SignedDuration,
    /// The limit from the launch to a registered node.
    pub registration: SignedDuration,
    /// The limit from the registration to a node that is ready and advertises the promised resources.
    pub initialization: SignedDuration,
    /// The limit from the deletion of the claim to the termination of its instance, after which pods that still run are killed.
    /// `None` waits as long as budgets and protected pods require.
    pub termination: Option<SignedDuration>,
}

impl Default for Deadlines {
    /// Creates timeouts of 5, 15 and 15 minutes, without a termination deadline.
    fn default() -> Self {
        Self {
            launch: SignedDuration::from_mins(5),
            registration: SignedDuration::from_mins(15),
            initialization: SignedDuration::from_mins(15),
            termination: None,
        }
    }
}

/// A recorded condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// True, False or Unknown.
    pub status: ConditionStatus,
    /// The time of the last change of the status.
    pub since: Timestamp,
    /// The reason; `None` if this version does not know it.
    pub reason: Option<Reason>,
    /// The message, a sentence.
    pub message: String,
}

impl Claim {
    /// Returns the time since which a condition is true; `None` if it is not true.
    pub fn since(&self, kind: ConditionType) -> Option<Timestamp> {
        self.conditions.get(&kind).filter(|c| c.status == ConditionStatus::True).map(|c| c.since)
    }

    /// Returns the kind of its node: the instance type in its pool.
    pub fn kind_of_node(&self) -> String {
        format!("{}{SEPARATOR}{}", self.current_offering().offering.instance_type, self.pool)
    }

    /// Returns whether its interruption is imminent ([`Interruption::is_imminent`]).
    pub fn ends_soon(&self, now: Timestamp) -> bool {
        self.interruption.as_ref().is_some_and(|one| one.is_imminent(now))
    }

    /// Returns whether its cloud says that the instance is being stopped or terminated. Pods that still run on it are lost.
    pub fn is_ending(&self) -> bool {
        self.interruption.as_ref().is_some_and(|one| one.kind == InterruptionKind::Ending)
    }

    /// Returns the time at which the instance ends even if pods still run on it: the termination deadline, or shortly before the
    /// cloud reclaims it.
    pub fn ends_at(&self) -> Option<Timestamp> {
        let begun = self.deleting_since.zip(self.deadlines.termination);
        let own = begun.map(|(begun, length)| begun.checked_add(length).unwrap_or(Timestamp::MAX));
        let cloud = self.interruption.as_ref().and_then(Interruption::usable_until);
        [own, cloud].into_iter().flatten().min()
    }

    /// Returns the cause for which its node is disrupted. `None` if it is not disrupted, or only because it is empty.
    pub fn leaving(&self) -> Option<Cause> {
        let recorded = self.conditions.get(&ConditionType::Disrupting)?;
        let cause = recorded.reason.and_then(Cause::of).filter(|cause| *cause != Cause::Empty);
        cause.filter(|_| recorded.status == ConditionStatus::True)
    }

    /// Returns the offering of its instance or, before launch, the offering to try first.
    pub fn current_offering(&self) -> &RankedOffering {
        self.launched
            .as_ref()
            .and_then(|launched| self.offerings.iter().find(|ranked| ranked.offering == launched.offering))
            .unwrap_or(&self.offerings[0])
    }
}
