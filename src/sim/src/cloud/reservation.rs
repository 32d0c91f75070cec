//! A capacity reservation: some instances of one type in one zone, paid in advance, until it ends.

use std::time::Duration;

use poolwright_catalog::{Catalogue, Offering, OfferingId, Price, PriceSource, Quote, UsdPerHour};
use poolwright_terms::CapacityType;

use super::Machine;

/// How long before its end a reservation is announced to end. It takes no more instances then.
const TOLD_BEFORE: Duration = Duration::from_mins(10);

/// A capacity reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its offering, of the capacity type `reserved`.
    pub offering: OfferingId,
    /// The number of instances.
    pub instances: u32,
    /// When it ends, in world time; `None` if it never does. Its instances end with it.
    pub ends: Option<Duration>,
}

impl Reservation {
    /// Returns when the cloud says that it ends, and when it does.
    pub fn end(&self) -> Option<(Duration, Duration)> {
        self.ends.map(|ends| (ends.saturating_sub(TOLD_BEFORE), ends))
    }

    /// Returns how many instances can be launched now besides these machines.
    pub fn free<'m>(&self, there: impl Iterator<Item = &'m Machine>, now: Duration) -> u32 {
        if self.end().is_some_and(|(told, _)| told <= now) {
            return 0;
        }
        let used = there.filter(|machine| machine.instance.offering == self.offering).count();
        self.instances.saturating_sub(u32::try_from(used).unwrap_or(u32::MAX))
    }

    /// Returns its offering in a catalogue, with this number of free instances.
    pub(super) fn offered(&self, listed: &Catalogue, free: u32) -> Offering {
        let on_demand = OfferingId { capacity_type: CapacityType::OnDemand, ..self.offering.clone() };
        Offering {
            id: self.offering.clone(),
            region: listed.offering(&on_demand).and_then(|offering| offering.region.clone()),
            price: Price::Known(Quote {
                usd_per_hour: UsdPerHour::ZERO,
                source: PriceSource::from("paid in advance"),
                as_of: None,
            }),
            available: Some(free),
            interruptions: None,
            notice: None,
        }
    }
}
