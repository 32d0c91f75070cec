//! What is paid for beforehand: capacity reservations and capacity blocks.
//!
//! Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservation-overview.html> and
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-how.html>. An hour in a reservation costs nothing
//! more, for the reservation costs the same whether it is used or not; so its price is zero, as with
//! `poolwright plan --commitments`. What runs on past the end of a reservation is paid for by the hour.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{
    InstanceTypeName, Offering, OfferingId, Price, PriceSource, Quote, UsdPerHour, Zone,
};
use poolwright_terms::{CapacityType, labels};

use crate::id::shown;

/// EC2 begins to end what runs in a capacity block 30 minutes before its end, and warns ten minutes earlier.
pub const BLOCK_STOPS_BEFORE_END: SignedDuration = SignedDuration::from_mins(40);

/// A reservation, as DescribeCapacityReservations says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its id: `cr-0123456789abcdef0`.
    pub id: String,
    /// What is reserved.
    pub instance_type: String,
    /// Where, by the name of the zone.
    pub zone: String,
    /// How.
    pub kind: ReservationKind,
    /// Whether it is lent out by its owner, who takes instances back at two minutes' notice.
    pub interruptible: bool,
    /// Whether its state is `active`.
    pub active: bool,
    /// What may run on it: `Linux/UNIX`.
    pub platform: String,
    /// `default` or `dedicated`.
    pub tenancy: String,
    /// Instances it is for.
    pub total: u32,
    /// Instances of it that are free.
    pub available: u32,
    /// When it begins; `None` where it has begun.
    pub starts: Option<Timestamp>,
    /// When it ends; `None` where somebody must end it.
    pub ends: Option<Timestamp>,
}

/// How capacity is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationKind {
    /// On demand, until somebody ends it or it expires.
    OnDemand(Matching),
    /// For a time that is paid for beforehand.
    CapacityBlock,
}

/// Which instances a reservation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// Those that name it.
    Targeted,
    /// Any that fits, ours or another's: its free instances may be gone by the time of an order. An on-demand order takes
    /// from it too unless it says that it wants none.
    Open,
}

/// Why a reservation is not sold from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReservationUnusable {
    /// Its state is another.
    #[error("it is not active")]
    NotActive,
    /// Not yet.
    #[error("it begins at {0}")]
    NotBegun(Timestamp),
    /// No longer.
    #[error("it ended at {0}")]
    Ended(Timestamp),
    /// Its instances are about to be ended.
    #[error("it ends at {0}, and EC2 ends what runs in a capacity block half an hour before")]
    Ending(Timestamp),
    /// Only lent.
    #[error(
        "it is interruptible: its owner takes instances back at two minutes' notice, and how often nobody says"
    )]
    Interruptible,
    /// Not for our nodes.
    #[error("its platform is `{0}`, not Linux/UNIX")]
    OtherPlatform(String),
    /// On hardware of one's own.
    #[error("its tenancy is `{0}`, not default")]
    OtherTenancy(String),
    /// Names that cannot stand in labels.
    #[error("`{0}` cannot be the name of a type or a zone")]
    NoName(String),
    /// Nothing is known of its type.
    #[error("{0} is not among the types that the node class takes")]
    UnknownType(String),
}

/// The free instances of one reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationLot {
    /// The reservation.
    pub id: String,
    /// Its kind: an order from a capacity block says so.
    pub kind: ReservationKind,
    /// Its free instances.
    pub available: u32,
}

/// What can be had of reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// One for each type and zone, with the free instances of all its reservations.
    pub offerings: Vec<Offering>,
    /// What is behind each: what an order names, those that end first at the front.
    pub lots: BTreeMap<OfferingId, Vec<ReservationLot>>,
    /// Reservations that are not sold from, by id.
    pub unsold: Vec<(String, ReservationUnusable)>,
}

impl Reservation {
    /// Why it is not sold from now, if it is not.
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
    /// What can be had of these reservations now, of the types that `is_known`. Instances that were ordered a moment ago
    /// and that EC2 still counts as free are the caller's to take off `available`.
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
            // What never ends comes last.
            reservations.sort_by_key(|one| (one.ends.is_none(), one.ends, &one.id));
            reservations.dedup_by(|later, first| later.id == first.id);
            let ids: Vec<_> = reservations.iter().map(|one| one.id.as_str()).collect();
            let quote = Quote {
                usd_per_hour: UsdPerHour::ZERO,
                source: PriceSource::new(format!("paid for beforehand: {}", ids.join(", "))),
                as_of: Some(today),
            };
            let available = reservations.iter().fold(0u32, |sum, one| sum.saturating_add(one.available));
            all.offerings.push(Offering {
                id: id.clone(),
                region: Some(region.to_owned()),
                price: Price::Known(quote),
                available: Some(available),
                interruptions: None,
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
