//! Resolves the capacity reservations and capacity blocks that a node class selects.

use std::collections::BTreeMap;

use aws_sdk_ec2::primitives::DateTime;
use aws_sdk_ec2::types::{
    CapacityReservation, CapacityReservationState, CapacityReservationType, Filter,
    InstanceMatchCriteria as Matches,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use poolwright_provider_aws_model::prices::{Matching, Reservation, ReservationKind};
use poolwright_provider_contract::ProviderError;

use super::tag_filters;
use crate::error::provider_error;
use crate::node_class::{
    CapacityReservationSelectorTerm, InstanceMatchCriteria, ResolvedCapacityReservation,
};

/// A reservation, with its status entry and its offering.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResolvedReservation {
    pub shown: ResolvedCapacityReservation,
    pub held: Reservation,
}

/// Returns the reservations that match at least one term, sorted by id. An empty result is no error: reservations come and go,
/// and Poolwright can launch nodes without them.
pub(super) async fn find(
    ec2: &aws_sdk_ec2::Client,
    terms: &[CapacityReservationSelectorTerm],
) -> Result<Vec<ResolvedReservation>, ProviderError> {
    let mut found = BTreeMap::new();
    for term in terms {
        let mut pages =
            ec2.describe_capacity_reservations().set_filters(Some(filters(term))).into_paginator().send();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| provider_error("ec2:DescribeCapacityReservations", error))?;
            let all = page.capacity_reservations().iter().filter_map(of);
            found.extend(all.map(|one| (one.held.id.clone(), one)));
        }
    }
    Ok(found.into_values().collect())
}

fn filters(term: &CapacityReservationSelectorTerm) -> Vec<Filter> {
    let filter = |name: &str, value: &str| Filter::builder().name(name).values(value).build();
    let mut filters = vec![filter("state", CapacityReservationState::Active.as_str())];
    if let Some(id) = &term.id {
        filters.push(filter("capacity-reservation-id", id));
    }
    filters.extend(term.tags.iter().flat_map(tag_filters));
    if let Some(owner) = &term.owner_id {
        filters.push(filter("owner-id", owner));
    }
    if let Some(criteria) = term.instance_match_criteria {
        filters.push(filter(
            "instance-match-criteria",
            match criteria {
                InstanceMatchCriteria::Open => "open",
                InstanceMatchCriteria::Targeted => "targeted",
            },
        ));
    }
    filters
}

/// Converts a reservation. Reservations without the fields that a launch needs are left out.
fn of(from: &CapacityReservation) -> Option<ResolvedReservation> {
    let held = held(from)?;
    let criteria = match from.instance_match_criteria() {
        Some(Matches::Open) => InstanceMatchCriteria::Open,
        _ => InstanceMatchCriteria::Targeted,
    };
    let shown = ResolvedCapacityReservation {
        id: held.id.clone(),
        instance_type: held.instance_type.clone(),
        zone: held.zone.clone(),
        owner_id: from.owner_id().unwrap_or_default().to_owned(),
        instance_match_criteria: criteria,
        capacity_block: held.kind == ReservationKind::CapacityBlock,
        available_instances: Some(i64::from(held.available)),
        ends: held.ends.map(Time),
    };
    Some(ResolvedReservation { shown, held })
}

fn held(from: &CapacityReservation) -> Option<Reservation> {
    let time = |at: Option<&DateTime>| Timestamp::from_second(at?.secs()).ok();
    let count = |number: Option<i32>| u32::try_from(number?).ok();
    Some(Reservation {
        id: from.capacity_reservation_id()?.to_owned(),
        instance_type: from.instance_type()?.to_owned(),
        zone: from.availability_zone()?.to_owned(),
        kind: match from.reservation_type() {
            Some(CapacityReservationType::CapacityBlock) => ReservationKind::CapacityBlock,
            _ => ReservationKind::OnDemand(match from.instance_match_criteria() {
                Some(Matches::Open) => Matching::Open,
                _ => Matching::Targeted,
            }),
        },
        interruptible: from.interruptible().unwrap_or_default(),
        active: from.state() == Some(&CapacityReservationState::Active),
        platform: from.instance_platform()?.as_str().to_owned(),
        tenancy: from.tenancy().map_or("default", |tenancy| tenancy.as_str()).to_owned(),
        total: count(from.total_instance_count())?,
        available: count(from.available_instance_count())?,
        starts: time(from.start_date()),
        ends: time(from.end_date()),
    })
}
