//! Instances of this cluster, as EC2 tells of them.

use std::collections::BTreeSet;

use aws_sdk_ec2::types::{Filter, Instance as Described, InstanceLifecycleType, InstanceStateName};
use jiff::Timestamp;
use poolwright_catalog::OfferingId;
use poolwright_provider_aws_model::{InstanceId, ProviderId};
use poolwright_provider_contract::{Instance, InstanceState, LaunchRequest, ProviderError};
use poolwright_terms::{CapacityType, GROUP, NodeClassRef};

use crate::error::provider_error;
use crate::launch::{Launched, order};
use crate::resolve::KIND;
use crate::tags;

/// How the key of an instance begins that no claim has taken yet; its id follows.
const OPEN: &str = "open-";

/// As many as one answer may have.
const PAGE: i32 = 1000;

/// An instance of ours, and the launch it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnInstance {
    pub id: InstanceId,
    /// As the rest of Poolwright knows it.
    pub instance: Instance,
    /// The keys of the order it was launched with, one of which it is for, where it has no tag yet that says which.
    pub open: Option<BTreeSet<String>>,
}

/// What EC2 shows of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// What is there, terminating ones included, in order of provider ids.
    pub found: Vec<OwnInstance>,
    /// What was there: EC2 shows an instance as terminated for about an hour.
    pub gone: BTreeSet<InstanceId>,
}

impl OwnInstance {
    /// The instance that a fleet answered with, which no listing shows yet.
    pub fn launched(request: &LaunchRequest, launched: &Launched, now: Timestamp) -> Self {
        let zone = launched.offering.zone.to_string();
        let instance = Instance {
            provider_id: ProviderId { zone, instance: launched.id.clone() }.to_string(),
            key: request.key.clone(),
            claim: request.claim.clone(),
            offering: launched.offering.clone(),
            node_class: request.node_class.clone(),
            launched: now,
            state: InstanceState::Running,
        };
        Self { id: launched.id.clone(), instance, open: None }
    }

    /// Whether it was launched for several claims, and none has taken it.
    pub fn is_unassigned(&self) -> bool {
        is_unassigned(&self.instance.key)
    }

    /// The same instance, for this launch.
    pub fn assigned_to(self, request: &LaunchRequest) -> Self {
        let instance = Instance { key: request.key.clone(), claim: request.claim.clone(), ..self.instance };
        Self { instance, ..self }
    }
}

/// Whether this is the key of an instance that no claim has taken.
pub(crate) fn is_unassigned(key: &str) -> bool {
    key.starts_with(OPEN)
}

/// Every instance of the cluster.
pub(crate) async fn list(ec2: &aws_sdk_ec2::Client, cluster: &str) -> Result<Listing, ProviderError> {
    let filter = |name: &str, value: &str| Filter::builder().name(name).values(value).build();
    let mut pages = ec2
        .describe_instances()
        .filters(filter(&format!("tag:{}", tags::CLUSTER), cluster))
        .max_results(PAGE)
        .into_paginator()
        .send();
    let mut listing = Listing::default();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| provider_error("ec2:DescribeInstances", error))?;
        let described = page.reservations().iter().flat_map(aws_sdk_ec2::types::Reservation::instances);
        for described in described {
            let is_gone =
                described.state().and_then(|state| state.name()) == Some(&InstanceStateName::Terminated);
            match described.instance_id().and_then(|id| id.parse().ok()) {
                Some(id) if is_gone => {
                    listing.gone.insert(id);
                }
                _ => listing.found.extend(read(described)),
            }
        }
    }
    listing.found.sort_by(|a, b| a.instance.provider_id.cmp(&b.instance.provider_id));
    Ok(listing)
}

/// Instances of the cluster that run in this capacity reservation.
pub(crate) async fn in_reservation(
    ec2: &aws_sdk_ec2::Client,
    cluster: &str,
    reservation: &str,
) -> Result<Vec<InstanceId>, ProviderError> {
    let filter = |name: &str, value: &str| Filter::builder().name(name).values(value).build();
    let mut pages = ec2
        .describe_instances()
        .filters(filter(&format!("tag:{}", tags::CLUSTER), cluster))
        .filters(filter("capacity-reservation-id", reservation))
        .max_results(PAGE)
        .into_paginator()
        .send();
    let mut ids = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| provider_error("ec2:DescribeInstances", error))?;
        let described = page.reservations().iter().flat_map(aws_sdk_ec2::types::Reservation::instances);
        ids.extend(described.filter_map(read).map(|found| found.id));
    }
    Ok(ids)
}

/// What EC2 says of one instance; `None` when it is gone, or was not launched by us: whatever has our cluster's tag and neither a
/// claim's nor that of an order was given that tag by somebody else.
pub(crate) fn read(described: &Described) -> Option<OwnInstance> {
    let state = match described.state().and_then(|state| state.name())? {
        InstanceStateName::Terminated => return None,
        InstanceStateName::ShuttingDown => InstanceState::Terminating,
        // A stopped one costs its disks and will never be a node again; whoever asks about its claim must see it.
        _ => InstanceState::Running,
    };
    let id: InstanceId = described.instance_id()?.parse().ok()?;
    let zone = described.placement().and_then(|placement| placement.availability_zone())?;
    let mut tags = tags::read(described.tags());
    let mut tag = |key: &str| tags.remove(key).unwrap_or_default();
    let reserved = tag(tags::CAPACITY_TYPE) == CapacityType::Reserved.as_str();
    let capacity_type = match described.instance_lifecycle() {
        Some(InstanceLifecycleType::Spot) => CapacityType::Spot,
        _ if reserved => CapacityType::Reserved,
        _ => CapacityType::OnDemand,
    };
    let launched = described.launch_time().map_or(0, aws_sdk_ec2::primitives::DateTime::secs);
    let (mut key, claim, class) = (tag(tags::CLAIM_UID), tag(tags::CLAIM), tag(tags::CLASS));
    let mut open = None;
    if key.is_empty() {
        open = Some(order::keys(&tags)).filter(|keys| !keys.is_empty());
        // Until one of these claims takes it, it is nobody's: a key that no claim has, so that it is given back in the end.
        key = format!("{OPEN}{id}");
        open.as_ref()?;
    }
    let instance = Instance {
        provider_id: ProviderId { zone: zone.to_owned(), instance: id.clone() }.to_string(),
        key,
        claim,
        offering: OfferingId {
            instance_type: described.instance_type()?.as_str().into(),
            zone: zone.into(),
            capacity_type,
        },
        node_class: NodeClassRef { group: GROUP.to_owned(), kind: KIND.to_owned(), name: class },
        launched: Timestamp::from_second(launched).unwrap_or(Timestamp::UNIX_EPOCH),
        state,
    };
    Some(OwnInstance { id, instance, open })
}

/// Puts tags on an instance. `false` when EC2 does not know it (yet).
pub(crate) async fn tag(
    ec2: &aws_sdk_ec2::Client,
    id: &InstanceId,
    tags: &tags::Tags,
) -> Result<bool, ProviderError> {
    match ec2.create_tags().resources(id.to_string()).set_tags(Some(tags::write(tags))).send().await {
        Ok(_) => Ok(true),
        Err(error) if crate::error::code(&error) == Some("InvalidInstanceID.NotFound") => Ok(false),
        Err(error) => Err(provider_error("ec2:CreateTags", error)),
    }
}

/// Asks for the end of these instances. What is gone already is fine.
pub(crate) async fn terminate(ec2: &aws_sdk_ec2::Client, ids: &[InstanceId]) -> Result<(), ProviderError> {
    let asked = ec2
        .terminate_instances()
        .set_instance_ids(Some(ids.iter().map(ToString::to_string).collect()))
        .send()
        .await;
    let Err(error) = asked else { return Ok(()) };
    if crate::error::code(&error) != Some("InvalidInstanceID.NotFound") {
        return Err(provider_error("ec2:TerminateInstances", error));
    }
    if ids.len() <= 1 {
        return Ok(());
    }
    // One that is gone spoils the call for all: each by itself then.
    let mut first = Ok(());
    for id in ids {
        let one = Box::pin(terminate(ec2, std::slice::from_ref(id))).await;
        first = first.and(one);
    }
    first
}
