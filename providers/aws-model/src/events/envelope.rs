//! Parses the envelope of an EventBridge event: account, region, time and type.

use jiff::Timestamp;
use poolwright_terms::foreign::excerpt;

use super::Scope;
use super::fields::{bad, needed, object, text, time};
use super::problem::{Ignored, Unreadable};
use super::strict::Object;
use crate::account::{AccountId, Region};

/// The types of events that Poolwright uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DetailType {
    SpotInterruption,
    Rebalance,
    State,
    Health,
    ReservationInterruption,
    CapacityBlock,
}

/// The envelope of an event.
pub(super) struct Envelope<'a> {
    pub(super) id: &'a str,
    pub(super) at: Timestamp,
    pub(super) kind: DetailType,
    /// The region in the envelope, if it has one.
    pub(super) region: Option<&'a str>,
    pub(super) detail: &'a Object,
}

/// Parses the envelope and checks the account. `detail` checks the region, because it depends on the type of event which field
/// names it.
pub(super) fn read<'a>(
    message: &'a Object,
    scope: &Scope,
) -> Result<Result<Envelope<'a>, Ignored>, Unreadable> {
    if let Some(version) = text(message, "version")?.filter(|version| *version != "0") {
        return Err(bad("version", version, "the version 0 of EventBridge's envelope"));
    }
    let source = needed(message, "source")?;
    let spelled = text(message, "detail-type")?;
    // One page of AWS's documentation spells the field with an underscore.
    let other = text(message, "detail_type")?;
    let kind = match (spelled, other) {
        (Some(one), Some(two)) if one != two => {
            return Err(bad("detail_type", two, "what detail-type says"));
        }
        (one, two) => one.or(two).ok_or(Unreadable::Missing { field: "detail-type" })?,
    };
    // EventBridge always sets this field. Simulators and rules with input transformers may omit it. Poolwright knows its own
    // instances without it.
    if let Some(found) = text(message, "account")? {
        let account: AccountId =
            found.parse().map_err(|_| bad("account", found, "an account of twelve digits"))?;
        if account != scope.account {
            return Err(foreign("account", account.as_str(), scope.account.as_str()));
        }
    }
    let Some((_, _, kind)) = KNOWN.into_iter().find(|(from, name, _)| (*from, *name) == (source, kind))
    else {
        let is_known = KNOWN.iter().any(|(from, ..)| *from == source);
        return Ok(Err(if is_known {
            Ignored::DetailType(excerpt(kind))
        } else {
            Ignored::Source(excerpt(source))
        }));
    };
    let spelled = text(message, "id")?;
    // The same page uses this key.
    let id = spelled.or(text(message, "customer_event_id")?).ok_or(Unreadable::Missing { field: "id" })?;
    if id.is_empty() || id.len() > 128 || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(bad("id", id, "an id of at most 128 plain characters"));
    }
    Ok(Ok(Envelope {
        id,
        at: time("time", needed(message, "time")?)?,
        kind,
        region: text(message, "region")?,
        detail: object(message, "detail")?,
    }))
}

/// The events that Poolwright uses: source, detail-type and type.
const KNOWN: [(&str, &str, DetailType); 8] = [
    ("aws.ec2", "EC2 Spot Instance Interruption Warning", DetailType::SpotInterruption),
    ("aws.ec2", "EC2 Instance Rebalance Recommendation", DetailType::Rebalance),
    ("aws.ec2", "EC2 Instance State-change Notification", DetailType::State),
    // AWS's documentation has used both names.
    (
        "aws.ec2",
        "EC2 Capacity Reservation Instance Interruption Warning",
        DetailType::ReservationInterruption,
    ),
    (
        "aws.ec2",
        "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
        DetailType::ReservationInterruption,
    ),
    // AWS's page has the first name in its heading and the second in its example.
    ("aws.ec2", "Capacity Block Reservation Expiration Warning", DetailType::CapacityBlock),
    ("aws.ec2", "Capacity Block Expiration Warning", DetailType::CapacityBlock),
    ("aws.health", "AWS Health Event", DetailType::Health),
];

/// Returns the source and detail-type of all events that EventBridge rules must send to the queue.
pub fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
    KNOWN.into_iter().map(|(source, kind, _)| (source, kind))
}

/// Checks that an event concerns the region of this account that Poolwright uses.
pub(super) fn check_region(found: &str, scope: &Scope) -> Result<(), Unreadable> {
    let region: Region = found.parse().map_err(|_| bad("region", found, "a region such as us-east-1"))?;
    if region == scope.region {
        return Ok(());
    }
    Err(foreign("region", region.as_str(), scope.region.as_str()))
}

pub(super) fn foreign(what: &'static str, found: &str, expected: &str) -> Unreadable {
    Unreadable::Foreign { what, found: excerpt(found), expected: expected.to_owned() }
}
