//! The market of the cloud: prices, stock and quotas over time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use poolwright_catalog::{Catalogue, Offering, OfferingId, Price, Quote, ResourceName, UsdPerHour};
use poolwright_provider_contract::LaunchError;
use poolwright_terms::CapacityType;

use super::{Machine, Reservation};
use crate::accidents::{Accidents, Site, span};

/// How long an offering stays out of stock, in milliseconds.
const STOCK_OUT: (u64, u64) = (60_000, 900_000);
/// How often spot prices may change.
const PRICES_MOVE: Duration = Duration::from_mins(10);
/// The range of spot prices, in thousandths of the catalogue's price.
const MOVED: (usize, usize) = (600, 1_500);

/// When a buggy controller begins to misread prices.
const MISREAD_FROM: Duration = Duration::from_mins(12);

/// The quota of vCPUs for each family and capacity type.
pub type Quotas = BTreeMap<(String, CapacityType), u64>;

/// The offerings, their prices and stock.
#[derive(Debug)]
pub(super) struct Market {
    /// The catalogue with its initial prices.
    listed: Arc<Catalogue>,
    now: Arc<Catalogue>,
    /// The number of past occasions for a price change.
    moved: u128,
    quotas: Quotas,
    /// Offerings out of stock, and until when.
    empty: BTreeMap<OfferingId, Duration>,
    reservation: Option<Reservation>,
    /// The catalogue with the reservation, after this many occasions and with this many free instances.
    with_reservation: Option<((u128, u32), Arc<Catalogue>)>,
}

impl Market {
    pub fn new(listed: Arc<Catalogue>, quotas: Quotas) -> Self {
        Self {
            now: listed.clone(),
            listed,
            moved: 0,
            quotas,
            empty: BTreeMap::new(),
            reservation: None,
            with_reservation: None,
        }
    }

    pub fn reserve(&mut self, reservation: Reservation) {
        self.reservation = Some(reservation);
    }

    pub fn reservation(&self) -> Option<&Reservation> {
        self.reservation.as_ref()
    }

    /// Returns the current catalogue, with the instances of the reservation that are free besides these machines.
    pub fn catalogue<'m>(
        &mut self,
        now: Duration,
        there: impl Iterator<Item = &'m Machine>,
        accidents: &Accidents,
    ) -> Arc<Catalogue> {
        let listed = self.priced(now, accidents);
        let Some(reservation) = &self.reservation else { return listed };
        let state = (self.moved, reservation.free(there, now));
        if let Some((known, catalogue)) = &self.with_reservation
            && *known == state
        {
            return catalogue.clone();
        }
        let mut offerings = listed.offerings().to_vec();
        offerings.push(reservation.offered(&self.listed, state.1));
        let catalogue = Arc::new(selling(&self.listed, offerings));
        self.with_reservation = Some((state, catalogue.clone()));
        catalogue
    }

    /// Returns the catalogue with the current prices, without the reservation.
    fn priced(&mut self, now: Duration, accidents: &Accidents) -> Arc<Catalogue> {
        let times = now.as_millis() / PRICES_MOVE.as_millis();
        while self.moved < times {
            self.moved += 1;
            let thousandths = accidents.at(Site::Price, |rates, dice| {
                let spot = self.listed.offerings().iter().filter(|one| is_spot(one));
                dice.per_mille(rates.prices_move)
                    .then(|| spot.map(|_| MOVED.0 + dice.below(MOVED.1 - MOVED.0)).collect::<Vec<_>>())
            });
            if let Some(thousandths) = thousandths {
                self.now = Arc::new(moved(&self.listed, &thousandths));
            }
        }
        self.now.clone()
    }

    /// Returns the current catalogue as a buggy controller reads it: after a while, dear offerings seem cheap.
    pub fn misread<'m>(
        &mut self,
        now: Duration,
        there: impl Iterator<Item = &'m Machine>,
        accidents: &Accidents,
    ) -> Arc<Catalogue> {
        let catalogue = self.catalogue(now, there, accidents);
        if now < MISREAD_FROM {
            return catalogue;
        }
        let offerings = catalogue.offerings().iter().map(|offering| {
            let mut offering = offering.clone();
            if let Price::Known(quote) = &offering.price {
                // A tenth of a dollar, divided by the price in dollars.
                let usd_per_hour =
                    UsdPerHour::from_micros(100_000_000_000 / quote.usd_per_hour.micros().max(1));
                offering.price = Price::Known(Quote { usd_per_hour, ..quote.clone() });
            }
            offering
        });
        Arc::new(selling(&self.listed, offerings.collect()))
    }

    /// Returns the least and the highest price that an offering ever has; `None` if it is unknown.
    pub fn price_range(&self, id: &OfferingId) -> Option<(UsdPerHour, UsdPerHour)> {
        if id.capacity_type == CapacityType::Reserved {
            return Some((UsdPerHour::ZERO, UsdPerHour::ZERO));
        }
        let offering = self.listed.offerings().iter().find(|one| one.id == *id)?;
        let price = offering.price.known()?;
        let of = |thousandths: usize| {
            UsdPerHour::from_micros(price.micros() * u64::try_from(thousandths).unwrap_or(1_000) / 1_000)
        };
        Some(if is_spot(offering) { (of(MOVED.0), of(MOVED.1)) } else { (price, price) })
    }

    /// Makes exactly these offerings out of stock until this time.
    pub fn set_stock_outs(&mut self, offerings: &[OfferingId], until: Duration) {
        self.empty = offerings.iter().map(|id| (id.clone(), until)).collect();
    }

    /// Returns why an offering cannot be launched now besides these machines, if there is a reason.
    pub fn refuses<'m>(
        &mut self,
        id: &OfferingId,
        there: impl Iterator<Item = &'m Machine>,
        now: Duration,
        accidents: &Accidents,
    ) -> Option<LaunchError> {
        if let Some(reservation) = self.reserved(id) {
            let is_used_up = reservation.free(there, now) == 0;
            return is_used_up
                .then(|| LaunchError::StockOut("the reservation is used up or ends".to_owned()));
        }
        self.empty.retain(|_, until| *until > now);
        let runs_out = accidents.at(Site::Stock, |rates, dice| {
            dice.per_mille(rates.stock_out).then(|| span(dice, STOCK_OUT.0, STOCK_OUT.1))
        });
        if let Some(length) = runs_out {
            self.empty.insert(id.clone(), now + length);
        }
        if self.empty.contains_key(id) {
            return Some(LaunchError::StockOut("none left in this zone".to_owned()));
        }
        self.beyond_quota((id, 1), there).map(LaunchError::Quota)
    }

    /// Returns whether this many instances of an offering are in stock and within quota now, besides these machines. It ignores
    /// future faults.
    pub fn has<'m>(
        &self,
        (id, instances): (&OfferingId, u64),
        there: impl Iterator<Item = &'m Machine>,
        now: Duration,
    ) -> bool {
        if let Some(reservation) = self.reserved(id) {
            return u64::from(reservation.free(there, now)) >= instances;
        }
        let in_stock = self.empty.get(id).is_none_or(|until| *until <= now);
        in_stock && self.beyond_quota((id, instances), there).is_none()
    }

    /// Returns the reservation, if this is its offering.
    pub fn reserved(&self, id: &OfferingId) -> Option<&Reservation> {
        self.reservation.as_ref().filter(|reservation| reservation.offering == *id)
    }

    fn beyond_quota<'m>(
        &self,
        (id, instances): (&OfferingId, u64),
        there: impl Iterator<Item = &'m Machine>,
    ) -> Option<String> {
        let of = |id: &OfferingId| {
            let kind = self.listed.instance_type(&id.instance_type)?;
            let processors = kind.allocatable.get(ResourceName::CPU).div_ceil(1_000);
            Some(((kind.family().to_owned(), id.capacity_type), processors))
        };
        let (family, processors) = of(id)?;
        let wanted = processors * instances;
        let quota = *self.quotas.get(&family)?;
        let others = there.filter_map(|machine| of(&machine.instance.offering));
        let used: u64 = others.filter(|(other, _)| *other == family).map(|(_, processors)| processors).sum();
        let (name, capacity) = (family.0, family.1.as_str());
        (used + wanted > quota)
            .then(|| format!("{used} of {quota} {capacity} processors of {name} are in use"))
    }
}

fn is_spot(offering: &Offering) -> bool {
    offering.id.capacity_type == CapacityType::Spot
}

/// Returns the catalogue with spot prices scaled by these thousandths. A spot price stays below the on-demand price.
fn moved(listed: &Catalogue, thousandths: &[usize]) -> Catalogue {
    let mut thousandths = thousandths.iter();
    let offerings = listed.offerings().iter().map(|offering| {
        let mut offering = offering.clone();
        if is_spot(&offering) {
            let by = thousandths.next().map_or(1_000, |by| u64::try_from(*by).unwrap_or(1_000));
            let on_demand = OfferingId { capacity_type: CapacityType::OnDemand, ..offering.id.clone() };
            let most = listed.offering(&on_demand).and_then(|offering| offering.price.known());
            let most = most.map_or(u64::MAX, |price| price.micros() / 20 * 19);
            if let Price::Known(quote) = &offering.price {
                let price = (quote.usd_per_hour.micros() * by / 1_000).min(most);
                let usd_per_hour = UsdPerHour::from_micros(price);
                offering.price = Price::Known(Quote { usd_per_hour, ..quote.clone() });
            }
        }
        offering
    });
    selling(listed, offerings.collect())
}

/// Returns a catalogue with other offerings.
fn selling(listed: &Catalogue, offerings: Vec<Offering>) -> Catalogue {
    Catalogue::new(listed.origin().clone(), listed.types().values().cloned().collect(), offerings)
}
