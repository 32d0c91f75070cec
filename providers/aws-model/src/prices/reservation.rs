//! Capacity reservations and capacity blocks.
//!
//! Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservation-overview.html> and
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-how.html>. An instance in a reservation has the price
//! zero, as with `poolwright plan --commitments`, because the reservation costs the same whether it is used or not. An instance
//! that runs longer than its reservation costs the on-demand price from then on.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{
    InstanceTypeName, Offering, OfferingId, Price, PriceSource, Quote, UsdPerHour, Zone,
};
use poolwright_terms::{CapacityType, labels};

use crate::id::shown;

/// How long before the end of a capacity block Poolwright stops launching into it. EC2 terminates the instances 30 minutes before
/// the end, and warns ten minutes earlier.
pub const BLOCK_STOPS_BEFORE_END: SignedDuration = SignedDuration::from_mins(40);

/// A capacity reservation, from DescribeCapacityReservations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The id: `cr-0123456789abcdef0`.
    pub id: String,
    /// The instance type.
    pub instance_type: String,
    /// The name of the zone.
    pub zone: String,
    /// The kind of reservation.
    pub kind: ReservationKind,
    /// Whether it is interruptible: its owner reclaims instances with two minutes' notice.
    pub interruptible: bool,
    /// Whether its state is `active`.
    pub active: bool,
    /// The platform: `Linux/UNIX`.
    pub platform: String,
    /// The tenancy: `default` or `dedicated`.
    pub tenancy: String,
    /// The number of reserved instances.
    pub total: u32,
    /// The number of free instances.
    pub available: u32,
    /// The start time; `None` if it has started.
    pub starts: Option<Timestamp>,
    /// The end time; `None` if it has no end.
    pub ends: Option<Timestamp>,
}

/// The kind of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationKind {
    /// An on-demand capacity reservation. It lasts until its owner cancels it or it expires.
    OnDemand(Matching),
    /// A capacity block: a period that is paid in advance.
    CapacityBlock,
}

/// The instances that may use a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// Only instances that name the reservation.
    Targeted,
    /// Every instance with matching attributes, of Poolwright or not, so the free instances may be used up at the time of a
    /// launch. An on-demand instance also uses it unless its launch excludes reservations.
    Open,
}

/// The reason why Poolwright does not launch into a reservation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReservationUnusable {
    /// Its state is not `active`.
    #[error("it is not active")]
    NotActive,
    /// It has not started.
    #[error("it starts at {0}")]
    NotBegun(Timestamp),
    /// It has ended.
    #[error("it ended at {0}")]
    Ended(Timestamp),
    /// It is a capacity block whose instances EC2 is about to terminate.
    #[error("it ends at {0}, and EC2 terminates the instances of a capacity block half an hour earlier")]
    Ending(Timestamp),
    /// It is interruptible.
    #[error(
        "it is interruptible: its owner reclaims instances with two minutes' notice, and AWS does not publish how often"
    )]
    Interruptible,
    /// Its platform is not Linux.
    #[error("its platform is `{0}`, not Linux/UNIX")]
    OtherPlatform(String),
    /// Its tenancy is dedicated.
    #[error("its tenancy is `{0}`, not default")]
    OtherTenancy(String),
    /// Its instance type or zone is not a valid label value.
    #[error("`{0}` is not a valid name of a type or a zone")]
    NoName(String),
    /// The catalogue does not have its instance type.
    #[error("the node class does not allow the type {0}")]
    UnknownType(String),
}

/// The free instances of one reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationLot {
    /// The id of the reservation.
    pub id: String,
    /// The kind. A launch into a capacity block must state it.
    pub kind: ReservationKind,
    /// The number of free instances.
    pub available: u32,
}

/// The offerings of reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// One offering for each type and zone, with the free instances of all its reservations.
    pub offerings: Vec<Offering>,
    /// The reservations of each offering, with the earliest end first.
    pub lots: BTreeMap<OfferingId, Vec<ReservationLot>>,
    /// The reservations that Poolwright does not launch into, by id.
    pub unsold: Vec<(String, ReservationUnusable)>,
}

impl Reservation {
    /// Returns why Poolwright does not launch into it now; `None` if it does.
    pub fn unsold(&self, now: Timestamp) -> Option<ReservationUnusable> {
        let is_name = |text: &&String| text.is_empty() || !labels::is_value(text);
        if let Some(name) = [&self.instance_type, &self.zone].into_iter().find(is_name) {
            return Some(ReservationUnusable::NoName(shown(name)));
        }
        if !self.active {
            return Some(ReservationUnusable::NotActive);
        }
        if self.interruptible {
            return Some(ReservationUnusable::Interruptible);
        }
        if self.platform != "Linux/UNIX" {
            return Some(ReservationUnusable::OtherPlatform(shown(&self.platform)));
        }
        if self.tenancy != "default" {
            return Some(ReservationUnusable::OtherTenancy(shown(&self.tenancy)));
        }
        match (self.starts, self.ends) {
            (Some(starts), _) if starts > now => Some(ReservationUnusable::NotBegun(starts)),
            (_, Some(ends)) if ends <= now => Some(ReservationUnusable::Ended(ends)),
            (_, Some(ends))
                if self.kind == ReservationKind::CapacityBlock
                    && ends.duration_since(now) <= BLOCK_STOPS_BEFORE_END =>
            {
                Some(ReservationUnusable::Ending(ends))
            }
            _ => None,
        }
    }
}

impl Reserved {
    /// Makes the offerings of these reservations now, for types that `is_known`. The caller must subtract recent launches from
    /// `available`, because EC2 counts them as free for a moment.
    pub fn of(
        reservations: &[Reservation],
        region: &str,
        now: Timestamp,
        is_known: impl Fn(&InstanceTypeName) -> bool,
    ) -> Self {
        let mut sold: BTreeMap<OfferingId, Vec<&Reservation>> = BTreeMap::new();
        let mut unsold = Vec::new();
        for reservation in reservations {
            let name = InstanceTypeName::from(reservation.instance_type.as_str());
            let why = reservation
                .unsold(now)
                .or_else(|| (!is_known(&name)).then(|| ReservationUnusable::UnknownType(name.to_string())));
            if let Some(why) = why {
                unsold.push((shown(&reservation.id), why));
                continue;
            }
            let zone = Zone::from(reservation.zone.as_str());
            let id = OfferingId { instance_type: name, zone, capacity_type: CapacityType::Reserved };
            sold.entry(id).or_default().push(reservation);
        }
        let mut all = Self { unsold, ..Self::default() };
        let today = now.to_zoned(TimeZone::UTC).date();
        for (id, mut reservations) in sold {
            // Reservations without an end come last.
            reservations.sort_by_key(|one| (one.ends.is_none(), one.ends, &one.id));
            reservations.dedup_by(|later, first| later.id == first.id);
            let ids: Vec<_> = reservations.iter().map(|one| one.id.as_str()).collect();
            let quote = Quote {
                usd_per_hour: UsdPerHour::ZERO,
                source: PriceSource::new(format!("paid in advance: {}", ids.join(", "))),
                as_of: Some(today),
            };
            let available = reservations.iter().fold(0u32, |sum, one| sum.saturating_add(one.available));
            all.offerings.push(Offering {
                id: id.clone(),
                region: Some(region.to_owned()),
                price: Price::Known(quote),
                available: Some(available),
                interruptions: None,
                notice: None,
            });
            let lot = |one: &&Reservation| ReservationLot {
                id: one.id.clone(),
                kind: one.kind,
                available: one.available,
            };
            all.lots.insert(id, reservations.iter().map(lot).collect());
        }
        all
    }
}
