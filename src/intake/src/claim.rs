//! Converts NodeClaims in both directions.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use poolwright_api as api;
use poolwright_api::FieldProblem;
use poolwright_catalog::{OfferingId, Price, RankedOffering, UsdPerHour, Zone};
use poolwright_core::plan::PlannedClaim;
use poolwright_core::{Claim, ClaimName, Interruption, Launched, PoolName};
use poolwright_terms::keys;

use crate::conditions::conditions;
use crate::convert::{allocatable_amounts, amounts, core_deadlines, deadlines, is_kept};
use crate::error::{IntakeError, Keep, first_of, object_name};
use crate::pod::uid_of;

/// The maximum length of a cloud's message in a claim.
const MESSAGE_BYTES: usize = 512;

/// Converts a NodeClaim to core's model.
pub fn node_claim(from: &api::NodeClaim) -> Result<Claim, IntakeError> {
    let name = || object_name("NodeClaim", None, from.metadata.name.as_deref());
    convert(from).map_err(|problems| first_of(problems, name()))
}

/// Converts a NodeClaim, or returns all problems.
pub(crate) fn convert(from: &api::NodeClaim) -> Result<Claim, Vec<FieldProblem>> {
    let (meta, spec) = (&from.metadata, &from.spec);
    let mut problems = Vec::new();
    let offerings = spec.offerings.iter().enumerate();
    let offerings: Vec<RankedOffering> =
        offerings.filter_map(|(at, offering)| ranked(at, offering).keep(&mut problems)).collect();
    if spec.offerings.is_empty() {
        let cause = "the claim lists no offerings";
        problems.push(FieldProblem::new("spec.offerings", cause, "delete the claim"));
    }
    let pool = pool(meta).keep(&mut problems);
    let deadlines = core_deadlines("spec.deadlines", &spec.deadlines).keep(&mut problems);
    let (Some(first), Some(pool), Some(deadlines)) = (offerings.first(), pool, deadlines) else {
        return Err(problems);
    };
    if !problems.is_empty() {
        return Err(problems);
    }
    let status = from.status.as_ref();
    let launched = status.and_then(|status| {
        let ordered = status.offering.as_ref().map_or_else(|| first.offering.clone(), offering_id);
        Some(Launched { provider_id: status.provider_id.clone()?, offering: ordered })
    });
    Ok(Claim {
        name: ClaimName(meta.name.clone().unwrap_or_default()),
        uid: uid_of(meta),
        pool,
        node_class: spec.node_class_ref.clone(),
        labels: spec.labels.clone(),
        annotations: spec.annotations.clone(),
        taints: spec.taints.clone(),
        startup_taints: spec.startup_taints.clone(),
        readiness_gates: spec.readiness_gates.iter().map(|gate| gate.condition_type.clone()).collect(),
        do_not_disrupt: is_kept(meta),
        bought_again: meta
            .annotations
            .as_ref()
            .is_some_and(|annotations| annotations.contains_key(keys::BOUGHT_AGAIN_ANNOTATION)),
        planned_pods: spec.pods.iter().filter_map(|text| text.parse().ok()).collect(),
        reason: meta
            .annotations
            .as_ref()
            .and_then(|all| all.get(keys::REASON_ANNOTATION).cloned())
            .unwrap_or_default(),
        deadlines,
        created: meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        deleting_since: meta.deletion_timestamp.as_ref().map(|time| time.0),
        launched,
        node_name: status.and_then(|status| status.node_name.clone()),
        interruption: status.and_then(|status| status.interruption.as_ref()).map(interruption),
        conditions: status.map(|status| conditions(&status.conditions)).unwrap_or_default(),
        offerings,
    })
}

fn ranked(at: usize, from: &api::ClaimOffering) -> Result<RankedOffering, Vec<FieldProblem>> {
    let path = format!("spec.offerings[{at}]");
    let mut problems = Vec::new();
    let price = from.usd_per_hour.as_deref().map(|text| {
        let at = || format!("{path}.usdPerHour");
        let error = |error| FieldProblem::new(at(), format!("{error}"), "delete the claim");
        text.parse::<UsdPerHour>().map_err(error)
    });
    let price = price.transpose().keep(&mut problems);
    let allocatable = amounts(&format!("{path}.allocatable"), &from.allocatable).keep(&mut problems);
    let (Some(price), Some(allocatable)) = (price, allocatable) else { return Err(problems) };
    Ok(RankedOffering {
        offering: OfferingId {
            instance_type: from.instance_type.as_str().into(),
            zone: Zone::new(from.zone.as_str()),
            capacity_type: from.capacity_type,
        },
        price,
        allocatable,
    })
}

/// Returns the pool of a claim: from its label, or from its owner if the label was removed.
fn pool(meta: &ObjectMeta) -> Result<PoolName, FieldProblem> {
    let label = meta.labels.as_ref().and_then(|labels| labels.get(keys::NODEPOOL_LABEL));
    let owner = || {
        meta.owner_references.iter().flatten().find(|owner| owner.kind == "NodePool").map(|owner| &owner.name)
    };
    label.or_else(owner).map(|name| PoolName(name.clone())).ok_or_else(|| {
        FieldProblem::new(
            "metadata.labels",
            format!("the label {} is missing, so its NodePool is unknown", keys::NODEPOOL_LABEL),
            "set the label to the name of the NodePool, or delete the claim",
        )
    })
}

/// Converts an interruption to core's model.
pub fn interruption(from: &api::Interruption) -> Interruption {
    Interruption {
        kind: from.kind,
        noticed: from.noticed.0,
        deadline: from.deadline.as_ref().map(|time| time.0),
        message: from.message.clone(),
    }
}

/// Converts an interruption to the API's form: times in whole seconds, and the deadline rounded down.
pub fn api_interruption(from: &Interruption) -> api::Interruption {
    let whole = |time: Timestamp| Time(Timestamp::from_second(time.as_second()).unwrap_or(time));
    let message = &from.message;
    api::Interruption {
        kind: from.kind,
        noticed: whole(from.noticed),
        deadline: from.deadline.map(whole),
        message: message[..message.floor_char_boundary(MESSAGE_BYTES)].to_owned(),
    }
}

/// Converts an offering's identity to core's model.
pub fn offering_id(from: &api::OfferingRef) -> OfferingId {
    OfferingId {
        instance_type: from.instance_type.as_str().into(),
        zone: Zone::new(from.zone.as_str()),
        capacity_type: from.capacity_type,
    }
}

/// Converts an offering's identity to the API's form.
pub fn offering_ref(from: &OfferingId) -> api::OfferingRef {
    api::OfferingRef {
        instance_type: from.instance_type.to_string(),
        zone: from.zone.to_string(),
        capacity_type: from.capacity_type,
    }
}

/// Returns a price with its source, for a claim's status; `None` if it is unknown.
pub fn claim_price(from: &Price) -> Option<api::ClaimPrice> {
    let Price::Known(quote) = from else { return None };
    Some(api::ClaimPrice {
        usd_per_hour: quote.usd_per_hour.to_string(),
        source: quote.source.to_string(),
        as_of: quote.as_of.map(|day| day.to_string()),
    })
}

/// Returns the NodeClaim to create for a planned node. It has its labels, its pool as owner, and the finalizer that keeps it
/// until its instance is gone.
pub fn claim_object(planned: &PlannedClaim) -> api::NodeClaim {
    let offering = |ranked: &RankedOffering| api::ClaimOffering {
        instance_type: ranked.offering.instance_type.to_string(),
        zone: ranked.offering.zone.to_string(),
        capacity_type: ranked.offering.capacity_type,
        usd_per_hour: ranked.price.map(|price| price.to_string()),
        allocatable: allocatable_amounts(&ranked.allocatable),
    };
    let gate = |kind: &String| api::ReadinessGate { condition_type: kind.clone() };
    let owner = OwnerReference {
        api_version: poolwright_terms::API_VERSION.to_owned(),
        kind: "NodePool".to_owned(),
        name: planned.pool.0.clone(),
        uid: planned.pool_uid.0.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let mut claim = api::NodeClaim::new(
        &planned.name.0,
        api::NodeClaimSpec {
            node_class_ref: planned.node_class.clone(),
            offerings: planned.offerings.iter().map(offering).collect(),
            together: i32::try_from(planned.together).ok().filter(|together| *together > 0),
            labels: planned.labels.clone(),
            annotations: planned.annotations.clone(),
            taints: planned.taints.clone(),
            startup_taints: planned.startup_taints.clone(),
            readiness_gates: planned.readiness_gates.iter().map(gate).collect(),
            pods: planned.planned_pods.iter().map(ToString::to_string).collect(),
            deadlines: deadlines(planned.deadlines),
        },
    );
    claim.metadata.labels = Some([(keys::NODEPOOL_LABEL.to_owned(), planned.pool.0.clone())].into());
    let mut annotations = BTreeMap::from([(keys::REASON_ANNOTATION.to_owned(), planned.reason.clone())]);
    if !planned.bought_again.is_empty() {
        let pods: Vec<String> = planned.bought_again.iter().map(ToString::to_string).collect();
        annotations.insert(keys::BOUGHT_AGAIN_ANNOTATION.to_owned(), pods.join(", "));
    }
    claim.metadata.annotations = Some(annotations);
    claim.metadata.finalizers = Some(vec![keys::TERMINATION_FINALIZER.to_owned()]);
    claim.metadata.owner_references = Some(vec![owner]);
    claim
}
