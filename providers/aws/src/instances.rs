//! The instances of this cluster, as EC2 describes them.

use std::collections::{BTreeMap, BTreeSet};

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

/// The prefix of the key of an instance that is not assigned to a claim. The instance id follows.
const OPEN: &str = "open-";

/// The page size of DescribeInstances.
const PAGE: i32 = 1000;

/// An instance of this cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnInstance {
    pub id: InstanceId,
    /// The instance in the terms of the contract.
    pub instance: Instance,
    /// The keys of the batch that it was launched for, if it has no tags of a claim yet.
    pub open: Option<BTreeSet<String>>,
}

/// The instances that EC2 shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// The instances that are not terminated, in the order of their provider ids.
    pub found: Vec<OwnInstance>,
    /// The terminated instances. EC2 shows them for about an hour.
    pub gone: BTreeSet<InstanceId>,
    /// An instance of each cluster, by the id of the cluster.
    pub clusters: BTreeMap<String, InstanceId>,
}

impl Listing {
    /// Adds an instance of the answer of EC2.
    pub fn add(&mut self, described: &Described) {
        let is_gone =
            described.state().and_then(|state| state.name()) == Some(&InstanceStateName::Terminated);
        match described.instance_id().and_then(|id| id.parse().ok()) {
            Some(id) if is_gone => {
                self.gone.insert(id);
            }
            _ => {
                let Some(found) = read(described) else { return };
                if let Some(cluster) = tags::read(described.tags()).remove(tags::CLUSTER_ID) {
                    self.clusters.entry(cluster).or_insert_with(|| found.id.clone());
                }
                self.found.push(found);
            }
        }
    }
}

impl OwnInstance {
    /// Makes an instance from the answer of CreateFleet, before any listing shows it.
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

    /// Returns whether the instance was launched for a batch and is not assigned to a claim.
    pub fn is_unassigned(&self) -> bool {
        is_unassigned(&self.instance.key)
    }

    /// Returns the instance, assigned to the claim of this request.
    pub fn assigned_to(self, request: &LaunchRequest) -> Self {
        let instance = Instance { key: request.key.clone(), claim: request.claim.clone(), ..self.instance };
        Self { instance, ..self }
    }
}

/// Returns whether this is the key of an unassigned instance.
pub(crate) fn is_unassigned(key: &str) -> bool {
    key.starts_with(OPEN)
}

/// Lists all instances of the cluster.
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
        described.for_each(|described| listing.add(described));
    }
    listing.found.sort_by(|a, b| a.instance.provider_id.cmp(&b.instance.provider_id));
    Ok(listing)
}

/// Lists the instances of the cluster that run in a capacity reservation.
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

/// Looks an instance up by its id, whatever its tags, and returns it with them. It returns `None` if the instance is terminated
/// or EC2 does not know it.
pub(crate) async fn by_id(
    ec2: &aws_sdk_ec2::Client,
    id: &InstanceId,
) -> Result<Option<(Instance, tags::Tags)>, ProviderError> {
    match ec2.describe_instances().instance_ids(id.to_string()).send().await {
        Ok(answer) => {
            let mut all = answer.reservations().iter().flat_map(aws_sdk_ec2::types::Reservation::instances);
            Ok(all.next().and_then(|one| Some((described_as(one)?.instance, tags::read(one.tags())))))
        }
        Err(error) if crate::error::code(&error) == Some("InvalidInstanceID.NotFound") => Ok(None),
        Err(error) => Err(provider_error("ec2:DescribeInstances", error)),
    }
}

/// Reads one instance. It returns `None` if the instance is terminated, or if it has neither the tags of a claim nor those of an
/// order: then somebody else has added the tag of the cluster.
pub(crate) fn read(described: &Described) -> Option<OwnInstance> {
    described_as(described).filter(|found| !found.is_unassigned() || found.open.is_some())
}

/// Reads one instance with any tags. It returns `None` if the instance is terminated.
fn described_as(described: &Described) -> Option<OwnInstance> {
    let state = match described.state().and_then(|state| state.name())? {
        InstanceStateName::Terminated => return None,
        InstanceStateName::ShuttingDown => InstanceState::Terminating,
        // A stopped instance still costs money for its disks and never becomes a node again, so its claim must see it.
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
        // No claim has this key, so the instance is terminated unless a claim of its batch takes it.
        key = format!("{OPEN}{id}");
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

/// Adds tags to an instance. It returns `false` if EC2 does not know the instance (yet).
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

/// Terminates instances. It is no error if an instance is gone.
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
    // One missing instance fails the whole call, so terminate each instance by itself.
    let mut first = Ok(());
    for id in ids {
        let one = Box::pin(terminate(ec2, std::slice::from_ref(id))).await;
        first = first.and(one);
    }
    first
}
