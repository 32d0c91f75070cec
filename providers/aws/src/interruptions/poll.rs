//! Polling of EC2 for interruptions. It covers events that were missed while no replica was running, and clusters without a
//! queue.
//!
//! | call | interruption |
//! |---|---|
//! | DescribeInstances | the instance is stopping, stopped or shutting down |
//! | DescribeSpotInstanceRequests, for spot instances | a marked request: EC2 reclaims the instance two minutes later; a terminated or stopped one: the instance is ending |
//! | DescribeInstanceStatus, for instances with scheduled events | maintenance at the scheduled time |
//! | DescribeCapacityReservations, for reserved instances | a capacity block that ends within the time of EC2's own warning |
//!
//! The poller reports an interruption at every poll until it is acknowledged. A failed call does not affect the results of the
//! other calls; it doubles the pause before the next poll, because AWS may be throttling.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_ec2::primitives::DateTime;
use aws_sdk_ec2::types::{
    CapacityReservationType, Filter, InstanceLifecycleType, InstanceStateName, Reservation,
};
use jiff::Timestamp;
use poolwright_provider_aws_model::InstanceId;
use poolwright_provider_aws_model::events::{Affected, EndState, Kind};
use poolwright_provider_aws_model::polled::{self, SpotRequestState};
use poolwright_provider_contract::{Clock, Interruption, InterruptionMessage, ProviderError};
use poolwright_terms::InterruptionKind;

use super::queue::{block_ends, interruption};
use crate::error::provider_error;
use crate::{instances, tags};

/// The prefix of all receipts of the poller. Receipts of SQS never start with it.
const RECEIPT_PREFIX: &str = "seen ";
/// The longest pause between two polls while polls fail.
const MAX_PAUSE: Duration = Duration::from_mins(10);
/// The number of instances in one filter.
const MAX_INSTANCES_PER_FILTER: usize = 200;
/// The number of errors that the poller keeps. The caller reads them every minute.
const MAX_FAILURES: usize = 100;
/// The number of reservations in one call.
const MAX_RESERVATIONS_PER_CALL: usize = 100;

/// The poller.
pub(crate) struct Poller {
    ec2: aws_sdk_ec2::Client,
    cluster: String,
    now: Clock,
    every: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The pause before the next poll. It is zero before the first poll.
    pause: Duration,
    /// The receipts that were acknowledged.
    recorded: BTreeSet<String>,
    is_failing: bool,
    /// The errors since the last call of [`Self::failures`].
    failures: Vec<ProviderError>,
}

/// The fields of an instance of this cluster that the poller needs.
struct PolledInstance {
    id: InstanceId,
    is_spot: bool,
    reservation: Option<String>,
    ends: Option<EndState>,
}

impl Poller {
    pub fn new(ec2: aws_sdk_ec2::Client, cluster: String, now: Clock, every: Duration) -> Self {
        Self { ec2, cluster, now, every, state: Mutex::default() }
    }

    /// Returns a poller with another interval.
    pub fn every(&self, every: Duration) -> Self {
        Self::new(self.ec2.clone(), self.cluster.clone(), self.now.clone(), every)
    }

    /// Returns whether a receipt comes from a poller.
    pub fn is_receipt(receipt: &str) -> bool {
        receipt.starts_with(RECEIPT_PREFIX)
    }

    /// Acknowledges interruptions by their receipts.
    pub fn acknowledge(&self, receipts: Vec<String>) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).recorded.extend(receipts);
    }

    /// Returns the errors since the last call.
    pub fn failures(&self) -> Vec<ProviderError> {
        std::mem::take(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).failures)
    }

    /// Waits for the next poll and returns what it found.
    pub async fn next(&self) -> Vec<InterruptionMessage> {
        let pause = self.state.lock().unwrap_or_else(PoisonError::into_inner).pause;
        tokio::time::sleep(pause).await;
        let (seen, errors) = self.poll((self.now)()).await;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if errors.is_empty() {
            (state.pause, state.is_failing) = (self.every, false);
        } else {
            let longest = MAX_PAUSE.max(self.every);
            state.pause = (pause.max(self.every) * 2).min(longest);
            for error in &errors {
                // Warn only once, so that repeated failures do not fill the log.
                if state.is_failing {
                    tracing::debug!(%error, "EC2 could not be polled for interruptions again");
                } else {
                    tracing::warn!(%error, "EC2 could not be polled for interruptions; trying again");
                }
            }
            state.is_failing = true;
            // Keep the list bounded even if no caller reads it.
            let room = MAX_FAILURES.saturating_sub(state.failures.len());
            state.failures.extend(errors.iter().take(room).cloned());
        }
        let mut messages = BTreeMap::new();
        for one in seen {
            let receipt = receipt(&one);
            messages.insert(
                receipt.clone(),
                InterruptionMessage { receipt: Some(receipt), interruptions: vec![one] },
            );
        }
        if errors.is_empty() {
            state.recorded.retain(|receipt| messages.contains_key(receipt));
        }
        messages.retain(|receipt, _| !state.recorded.contains(receipt));
        messages.into_values().collect()
    }

    /// Polls once. It returns the interruptions and the errors.
    async fn poll(&self, now: Timestamp) -> (Vec<Interruption>, Vec<ProviderError>) {
        let own = match self.instances().await {
            Ok(own) => own,
            Err(error) => return (Vec::new(), vec![error]),
        };
        let mut seen: Vec<Interruption> = own
            .iter()
            .filter_map(|one| Some(instance_interruption(&one.id, Kind::State(one.ends?), now, None)))
            .collect();
        let mut errors = Vec::new();
        let (spot, scheduled, blocks) =
            futures::join!(self.spot(&own), self.scheduled(&own, now), self.blocks(&own, now));
        for part in [spot, scheduled, blocks] {
            match part {
                Ok(part) => seen.extend(part),
                Err(error) => errors.push(error),
            }
        }
        (seen, errors)
    }

    /// Lists the instances of this cluster that are not terminated.
    async fn instances(&self) -> Result<Vec<PolledInstance>, ProviderError> {
        let ours = Filter::builder().name(format!("tag:{}", tags::CLUSTER)).values(&self.cluster).build();
        let mut pages = self.ec2.describe_instances().filters(ours).max_results(1000).into_paginator().send();
        let mut own = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| provider_error("ec2:DescribeInstances", error))?;
            for described in page.reservations().iter().flat_map(Reservation::instances) {
                let Some(found) = instances::read(described) else { continue };
                own.push(PolledInstance {
                    id: found.id,
                    is_spot: described.instance_lifecycle() == Some(&InstanceLifecycleType::Spot),
                    reservation: described.capacity_reservation_id().map(str::to_owned),
                    ends: match described.state().and_then(|state| state.name()) {
                        Some(InstanceStateName::Stopping) => Some(EndState::Stopping),
                        Some(InstanceStateName::Stopped) => Some(EndState::Stopped),
                        Some(InstanceStateName::ShuttingDown) => Some(EndState::ShuttingDown),
                        _ => None,
                    },
                });
            }
        }
        Ok(own)
    }

    /// Reads the requests of spot instances.
    async fn spot(&self, own: &[PolledInstance]) -> Result<Vec<Interruption>, ProviderError> {
        let spot: Vec<&PolledInstance> = own.iter().filter(|one| one.is_spot).collect();
        let mut seen = Vec::new();
        for some in spot.chunks(MAX_INSTANCES_PER_FILTER) {
            let ids = some.iter().map(|one| one.id.to_string()).collect();
            let filter = Filter::builder().name("instance-id").set_values(Some(ids)).build();
            let mut pages =
                self.ec2.describe_spot_instance_requests().filters(filter).into_paginator().send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| provider_error("ec2:DescribeSpotInstanceRequests", error))?;
                for request in page.spot_instance_requests() {
                    let Some(one) = some.iter().find(|one| Some(one.id.as_str()) == request.instance_id())
                    else {
                        continue;
                    };
                    let status = request.status();
                    let fate = status.and_then(|status| status.code()).and_then(SpotRequestState::of);
                    let updated = status.and_then(|status| status.update_time()).and_then(time);
                    let (Some(fate), Some(updated)) = (fate, updated) else { continue };
                    let kind = match fate {
                        SpotRequestState::Marked(action) => Kind::SpotInterruption(action),
                        SpotRequestState::Ended => Kind::State(one.ends.unwrap_or(EndState::ShuttingDown)),
                    };
                    seen.push(instance_interruption(&one.id, kind, updated, fate.deadline(updated)));
                }
            }
        }
        Ok(seen)
    }

    /// Reads scheduled events. The call covers the whole account, because few instances have such events.
    async fn scheduled(
        &self,
        own: &[PolledInstance],
        now: Timestamp,
    ) -> Result<Vec<Interruption>, ProviderError> {
        if own.is_empty() {
            return Ok(Vec::new());
        }
        let codes = polled::SCHEDULED_EVENT_CODES.map(str::to_owned).to_vec();
        let filter = Filter::builder().name("event.code").set_values(Some(codes)).build();
        let mut pages = self.ec2.describe_instance_status().filters(filter).into_paginator().send();
        let mut all = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| provider_error("ec2:DescribeInstanceStatus", error))?;
            for status in page.instance_statuses() {
                let Some(one) = own.iter().find(|one| Some(one.id.as_str()) == status.instance_id()) else {
                    continue;
                };
                let to_come = status
                    .events()
                    .iter()
                    .filter(|event| polled::is_pending(event.description().unwrap_or_default()));
                // Report the earliest of several events.
                let first = to_come
                    .filter_map(|event| {
                        let code = event.code()?.as_str();
                        polled::SCHEDULED_EVENT_CODES
                            .contains(&code)
                            .then(|| (event.not_before().and_then(time), code))
                    })
                    .min_by_key(|(at, _)| at.unwrap_or(Timestamp::MAX));
                if let Some((deadline, code)) = first {
                    all.push(Interruption {
                        instance: one.id.to_string(),
                        kind: InterruptionKind::Maintenance,
                        noticed: now,
                        deadline,
                        message: format!("a scheduled event of EC2: {code}"),
                    });
                }
            }
        }
        Ok(all)
    }

    /// Reads the capacity blocks of reserved instances.
    async fn blocks(
        &self,
        own: &[PolledInstance],
        now: Timestamp,
    ) -> Result<Vec<Interruption>, ProviderError> {
        let ids: BTreeSet<&String> = own.iter().filter_map(|one| one.reservation.as_ref()).collect();
        let ids: Vec<String> = ids.into_iter().cloned().collect();
        let mut seen = Vec::new();
        for some in ids.chunks(MAX_RESERVATIONS_PER_CALL) {
            let asked =
                self.ec2.describe_capacity_reservations().set_capacity_reservation_ids(Some(some.to_vec()));
            let answer = asked
                .send()
                .await
                .map_err(|error| provider_error("ec2:DescribeCapacityReservations", error))?;
            for reservation in answer.capacity_reservations() {
                // Instances in other reservations keep running after the end, at the on-demand price.
                if reservation.reservation_type() != Some(&CapacityReservationType::CapacityBlock) {
                    continue;
                }
                let Some(end) = reservation.end_date().and_then(time) else { continue };
                let warned = polled::capacity_block_warning(end);
                if now < warned {
                    continue;
                }
                let id = reservation.capacity_reservation_id();
                let inside = own.iter().filter(|one| id.is_some() && one.reservation.as_deref() == id);
                seen.extend(inside.map(|one| block_ends(&one.id, warned, end)));
            }
        }
        Ok(seen)
    }
}

fn instance_interruption(
    id: &InstanceId,
    kind: Kind,
    noticed: Timestamp,
    deadline: Option<Timestamp>,
) -> Interruption {
    interruption(Affected { instance: id.clone(), kind, deadline }, noticed)
}

fn time(at: &DateTime) -> Option<Timestamp> {
    Timestamp::from_second(at.secs()).ok()
}

/// Returns the receipt of an interruption. It is the same each time the poller finds the interruption.
fn receipt(seen: &Interruption) -> String {
    let deadline = seen.deadline.map(|at| at.to_string()).unwrap_or_default();
    format!("{RECEIPT_PREFIX}{} {} {deadline}", seen.instance, seen.kind.as_str())
}
