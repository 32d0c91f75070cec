//! Parses the `detail` of an event.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use poolwright_terms::foreign::excerpt;

use super::envelope::{DetailType, Envelope, check_region, foreign};
use super::fields::{bad, needed, objects, parsed, text, time, time_of_either_form};
use super::problem::{Ignored, Unreadable};
use super::{Action, Affected, EndState, EventDetail, Kind, NOTICE, Scope};
use crate::id::InstanceId;

type Read = Result<Result<EventDetail, Ignored>, Unreadable>;

/// Parses the `detail` of an event and checks that the event concerns this region.
pub(super) fn read(envelope: &Envelope<'_>, scope: &Scope) -> Read {
    match (envelope.kind, envelope.region) {
        // An AWS Health event names the affected region in its detail. AWS's example of a capacity block event has no region.
        (DetailType::Health, _) | (DetailType::CapacityBlock, None) => {}
        (_, Some(region)) => check_region(region, scope)?,
        (_, None) => return Err(Unreadable::Missing { field: "region" }),
    }
    match envelope.kind {
        DetailType::SpotInterruption => {
            let action = action(envelope)?;
            // Hibernation starts with the warning.
            let notice = if action == Action::Hibernate { SignedDuration::ZERO } else { NOTICE };
            one(envelope, Kind::SpotInterruption(action), Some(later(envelope.at, notice)?))
        }
        DetailType::ReservationInterruption => {
            let action = action(envelope)?;
            let end = match text(envelope.detail, "instance-termination-time")? {
                Some(found) => time("instance-termination-time", found)?,
                None => later(envelope.at, NOTICE)?,
            };
            one(envelope, Kind::ReservationInterruption(action), Some(end))
        }
        DetailType::Rebalance => one(envelope, Kind::RebalanceRecommendation, None),
        DetailType::State => state(envelope),
        DetailType::Health => health(envelope, scope),
        DetailType::CapacityBlock => Ok(Ok(EventDetail::CapacityBlockEnds {
            reservation: parsed(
                envelope.detail,
                "capacity-reservation-id",
                "a capacity reservation such as cr-0123456789abcdef0",
            )?,
            end: time_of_either_form("end-date", needed(envelope.detail, "end-date")?)?,
        })),
    }
}

fn later(at: Timestamp, by: SignedDuration) -> Result<Timestamp, Unreadable> {
    at.checked_add(by).map_err(|_| bad("time", &at.to_string(), "a time that anything can follow"))
}

fn one(envelope: &Envelope<'_>, kind: Kind, deadline: Option<Timestamp>) -> Read {
    let instance =
        parsed(envelope.detail, "instance-id", "the id of an instance such as i-0123456789abcdef0")?;
    Ok(Ok(EventDetail::Instances(vec![Affected { instance, kind, deadline }])))
}

fn action(envelope: &Envelope<'_>) -> Result<Action, Unreadable> {
    match needed(envelope.detail, "instance-action")? {
        "terminate" => Ok(Action::Terminate),
        "stop" => Ok(Action::Stop),
        "hibernate" => Ok(Action::Hibernate),
        other => Err(bad("instance-action", other, "terminate, stop or hibernate")),
    }
}

fn state(envelope: &Envelope<'_>) -> Read {
    let state = match needed(envelope.detail, "state")? {
        "stopping" => EndState::Stopping,
        "stopped" => EndState::Stopped,
        "shutting-down" => EndState::ShuttingDown,
        "terminated" => EndState::Terminated,
        "pending" => return Ok(Err(Ignored::State("pending"))),
        "running" => return Ok(Err(Ignored::State("running"))),
        other => return Err(bad("state", other, "a state of an instance")),
    };
    one(envelope, Kind::State(state), None)
}

fn health(envelope: &Envelope<'_>, scope: &Scope) -> Read {
    let detail = envelope.detail;
    // An organization can collect the events of all its accounts.
    if let Some(account) =
        text(detail, "affectedAccount")?.filter(|account| *account != scope.account.as_str())
    {
        return Err(foreign("account", account, scope.account.as_str()));
    }
    let region = text(detail, "eventRegion")?.or(envelope.region);
    check_region(region.ok_or(Unreadable::Missing { field: "region" })?, scope)?;
    let service = needed(detail, "service")?;
    if service != "EC2" {
        return Ok(Err(Ignored::Service(excerpt(service))));
    }
    let category = needed(detail, "eventTypeCategory")?;
    if category != "scheduledChange" {
        return Ok(Err(Ignored::Category(excerpt(category))));
    }
    if text(detail, "statusCode")? == Some("closed") {
        return Ok(Err(Ignored::Closed));
    }
    let code = needed(detail, "eventTypeCode")?;
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if code.is_empty() || code.len() > 100 || !code.bytes().all(plain) {
        return Err(bad("eventTypeCode", code, "a code such as AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"));
    }
    let deadline =
        text(detail, "startTime")?.map(|found| time_of_either_form("startTime", found)).transpose()?;
    let mut instances = BTreeSet::new();
    for entity in objects(detail, "affectedEntities")? {
        let over = text(entity, "status")? == Some("RESOLVED");
        // The entity can also be a volume, a host or an account.
        let instance = needed(entity, "entityValue")?.parse::<InstanceId>();
        if let (false, Ok(instance)) = (over, instance) {
            instances.insert(instance);
        }
    }
    if instances.is_empty() {
        return Ok(Err(Ignored::NoInstances));
    }
    let kind = Kind::ScheduledChange { code: code.to_owned() };
    let affected = instances.into_iter().map(|instance| Affected { instance, kind: kind.clone(), deadline });
    Ok(Ok(EventDetail::Instances(affected.collect())))
}
