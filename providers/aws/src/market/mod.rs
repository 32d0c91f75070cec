//! The market of the region: instance types, zones and prices, which are cached.
//!
//! | data | refreshed after |
//! |---|---|
//! | instance types and their zones | 6 hours |
//! | on-demand prices | 12 hours; 10 minutes while the built-in price list replaces the one of AWS |
//! | spot prices | 5 minutes |
//!
//! The interruption rates of spot instances are built in, because EC2 has no call for them.
//!
//! If a refresh fails, the old data stays, and each price has its age.

mod offline;
mod reader;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use aws_sdk_ec2::types::LocationType;
use aws_sdk_pricing::types::{Filter, FilterType};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{Catalogue, InstanceTypeName, OfferingId, Zone};
use poolwright_provider_aws_model::instance::{Selection, TypeFacts};
use poolwright_provider_aws_model::prices::{
    self, DEFAULT_MAX_AGE, InterruptionRates, OnDemandPrices, ReservationLot, Reserved, SpotEntry,
    SpotPrices, request,
};
use poolwright_provider_contract::ProviderError;

use crate::clients::Clients;
use crate::error::provider_error;
use crate::resolve::{ResolvedNodeClass, image_for, nothing_left};
pub(crate) use offline::{leaves_out, sells};
pub(crate) use reader::Reader;
pub(crate) use settings::ADDS;
use settings::{settings, with_addable};

use crate::node_class::EC2NodeClassSpec;

const TYPES_EVERY: SignedDuration = SignedDuration::from_hours(6);
const ON_DEMAND_EVERY: SignedDuration = SignedDuration::from_hours(12);
const BUILTIN_EVERY: SignedDuration = SignedDuration::from_mins(10);
const SPOT_EVERY: SignedDuration = SignedDuration::from_mins(5);

/// The instance types of the region, and their zones.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Types {
    pub facts: Vec<TypeFacts>,
    pub zones: BTreeMap<InstanceTypeName, BTreeSet<Zone>>,
}

/// A cached answer of AWS and the time until which it is valid.
type Cached<T> = tokio::sync::Mutex<Option<(Arc<T>, Timestamp)>>;

/// The market of the region.
pub(crate) struct Market {
    clients: Clients,
    types: Cached<Types>,
    on_demand: Cached<OnDemandPrices>,
    spot: Cached<SpotPrices>,
    interruptions: InterruptionRates,
    catalogues: std::sync::Mutex<BTreeMap<String, Made>>,
}

/// A catalogue and the data that it was made from.
struct Made {
    class: Arc<ResolvedNodeClass>,
    types: Arc<Types>,
    on_demand: Arc<OnDemandPrices>,
    spot: Arc<SpotPrices>,
    catalogue: Arc<Catalogue>,
    /// The reservations behind its reserved offerings.
    reserved: Reserved,
    /// Instance types with no allocatable resources left for pods.
    too_small: Vec<InstanceTypeName>,
}

impl Market {
    pub fn new(clients: Clients) -> Self {
        Self {
            interruptions: InterruptionRates::builtin(&clients.region),
            clients,
            types: Cached::default(),
            on_demand: Cached::default(),
            spot: Cached::default(),
            catalogues: std::sync::Mutex::default(),
        }
    }

    /// Returns the catalogue of a node class.
    pub async fn catalogue(
        &self,
        class: &Arc<ResolvedNodeClass>,
        now: Timestamp,
    ) -> Result<Arc<Catalogue>, ProviderError> {
        let (types, on_demand, spot) =
            futures::try_join!(self.types(now), self.on_demand(now), self.spot(now))?;
        let mut catalogues = self.catalogues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = catalogues.get(&class.name)
            && Arc::ptr_eq(&made.class, class)
            && Arc::ptr_eq(&made.types, &types)
            && Arc::ptr_eq(&made.on_demand, &on_demand)
            && Arc::ptr_eq(&made.spot, &spot)
        {
            return Ok(Arc::clone(&made.catalogue));
        }
        let (catalogue, reserved, too_small) = self.make(class, &types, &on_demand, &spot, now);
        let catalogue = Arc::new(catalogue);
        if !too_small.is_empty() {
            tracing::info!(class = class.name, "instance types are too small: {}", nothing_left(&too_small));
        }
        for (id, why) in &reserved.unsold {
            tracing::info!(class = class.name, reservation = id, %why, "this reservation is not sold from");
        }
        let made = Made {
            class: Arc::clone(class),
            types,
            on_demand,
            spot,
            catalogue: Arc::clone(&catalogue),
            reserved,
            too_small,
        };
        catalogues.insert(class.name.clone(), made);
        Ok(catalogue)
    }

    fn make(
        &self,
        class: &ResolvedNodeClass,
        types: &Types,
        on_demand: &OnDemandPrices,
        spot: &SpotPrices,
        now: Timestamp,
    ) -> (Catalogue, Reserved, Vec<InstanceTypeName>) {
        let zones: BTreeSet<Zone> =
            class.subnets.iter().map(|subnet| Zone::from(subnet.zone.as_str())).collect();
        let reservations: Vec<_> = class.reservations.iter().map(|one| one.held.clone()).collect();
        let market = prices::Market {
            region: &self.clients.region,
            zones: &types.zones,
            on_demand,
            spot,
            interruptions: &self.interruptions,
            reservations: &reservations,
            now,
        };
        let settings = settings(&class.spec, class.family, class.kept);
        let sold = prices::catalogue(&types.facts, &selection(&class.spec), &settings, market);
        let catalogue = sold.catalogue.filtered(|kind, offering| {
            zones.contains(&offering.id.zone) && image_for(&class.images, kind).is_some()
        });
        let too_small = sold.left_out.into_iter().filter(|one| one.too_small).map(|one| one.instance_type);
        (with_addable(catalogue, &class.spec, class.family), sold.reserved, too_small.collect())
    }

    /// Returns the instance types with no resources left for pods, if the catalogue of this class is known.
    pub fn too_small(&self, name: &str, spec: &EC2NodeClassSpec) -> Vec<InstanceTypeName> {
        let catalogues = self.catalogues.lock().unwrap_or_else(PoisonError::into_inner);
        let made = catalogues.get(name).filter(|made| made.class.spec == *spec);
        made.map(|made| made.too_small.clone()).unwrap_or_default()
    }

    /// Returns the reservations of an offering, with the earliest end first.
    pub fn lots(&self, class: &ResolvedNodeClass, offering: &OfferingId) -> Vec<ReservationLot> {
        let catalogues = self.catalogues.lock().unwrap_or_else(PoisonError::into_inner);
        let lots = catalogues.get(&class.name).and_then(|made| made.reserved.lots.get(offering));
        lots.cloned().unwrap_or_default()
    }

    /// Returns the number of EFA interfaces of an instance type in this class.
    pub fn efa_cards(&self, class: &ResolvedNodeClass, name: &InstanceTypeName) -> u32 {
        let catalogues = self.catalogues.lock().unwrap_or_else(PoisonError::into_inner);
        let types = catalogues.get(&class.name).map(|made| Arc::clone(&made.types));
        let facts = types.as_ref().and_then(|types| types.facts.iter().find(|facts| facts.name == *name));
        match (class.spec.efa, facts) {
            (crate::node_class::Efa::Auto, Some(facts)) => {
                facts.network.efa_interfaces.min(facts.network.cards)
            }
            _ => 0,
        }
    }

    pub async fn types(&self, now: Timestamp) -> Result<Arc<Types>, ProviderError> {
        cached(&self.types, now, async || {
            let (facts, zones) = futures::try_join!(self.ask_types(), self.ask_zones())?;
            Ok((Types { facts, zones }, TYPES_EVERY))
        })
        .await
    }

    async fn ask_types(&self) -> Result<Vec<TypeFacts>, ProviderError> {
        let mut pages = self.clients.ec2.describe_instance_types().max_results(100).into_paginator().send();
        let mut all = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| provider_error("ec2:DescribeInstanceTypes", error))?;
            all.extend(page.instance_types().iter().filter_map(crate::instance_types::type_facts));
        }
        Ok(all)
    }

    async fn ask_zones(&self) -> Result<BTreeMap<InstanceTypeName, BTreeSet<Zone>>, ProviderError> {
        let mut pages = self
            .clients
            .ec2
            .describe_instance_type_offerings()
            .location_type(LocationType::AvailabilityZone)
            .max_results(1000)
            .into_paginator()
            .send();
        let mut zones: BTreeMap<InstanceTypeName, BTreeSet<Zone>> = BTreeMap::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| provider_error("ec2:DescribeInstanceTypeOfferings", error))?;
            for offering in page.instance_type_offerings() {
                let (Some(kind), Some(zone)) = (offering.instance_type(), offering.location()) else {
                    continue;
                };
                zones.entry(InstanceTypeName::new(kind.as_str())).or_default().insert(Zone::from(zone));
            }
        }
        Ok(zones)
    }

    pub async fn on_demand(&self, now: Timestamp) -> Result<Arc<OnDemandPrices>, ProviderError> {
        cached(&self.on_demand, now, async || {
            let region = self.clients.region.as_str();
            match self.ask_on_demand(now).await {
                Ok(prices) if !prices.is_empty() => Ok((prices, ON_DEMAND_EVERY)),
                Ok(_) => {
                    tracing::warn!(region, "AWS's price list is empty; using the built-in on-demand prices, where there are any");
                    Ok((OnDemandPrices::builtin(region), BUILTIN_EVERY))
                }
                Err(error) => {
                    tracing::warn!(region, %error, "AWS's price list could not be read; using the built-in on-demand prices, \
                        where there are any");
                    Ok((OnDemandPrices::builtin(region), BUILTIN_EVERY))
                }
            }
        })
        .await
    }

    async fn ask_on_demand(&self, now: Timestamp) -> Result<OnDemandPrices, ProviderError> {
        let Some(pricing) = &self.clients.pricing else {
            let why = request::endpoint(&self.clients.region)
                .err()
                .map(|none| none.to_string())
                .unwrap_or_default();
            return Err(ProviderError::Invalid(why));
        };
        let mut entries = Vec::new();
        for filters in request::filters(&self.clients.region) {
            let filters = filters
                .into_iter()
                .map(|filter| {
                    Filter::builder()
                        .r#type(FilterType::TermMatch)
                        .field(filter.field)
                        .value(filter.value)
                        .build()
                })
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| ProviderError::Invalid(format!("pricing:GetProducts: {error}")))?;
            let mut pages = pricing
                .get_products()
                .service_code(request::SERVICE_CODE)
                .set_filters(Some(filters))
                .max_results(request::PAGE)
                .into_paginator()
                .send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| provider_error("pricing:GetProducts", error))?;
                entries.extend(page.price_list().iter().cloned());
            }
        }
        let today = now.to_zoned(TimeZone::UTC).date();
        Ok(OnDemandPrices::of_entries(&self.clients.region, today, entries.iter().map(String::as_str)))
    }

    pub async fn spot(&self, now: Timestamp) -> Result<Arc<SpotPrices>, ProviderError> {
        cached(&self.spot, now, async || {
            let mut pages = self
                .clients
                .ec2
                .describe_spot_price_history()
                .start_time(aws_sdk_ec2::primitives::DateTime::from_secs(now.as_second()))
                .product_descriptions("Linux/UNIX")
                .product_descriptions("Linux/UNIX (Amazon VPC)")
                .max_results(1000)
                .into_paginator()
                .send();
            let mut entries = Vec::new();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| provider_error("ec2:DescribeSpotPriceHistory", error))?;
                entries.extend(page.spot_price_history().iter().filter_map(entry));
            }
            Ok((SpotPrices::of_history(entries, now, DEFAULT_MAX_AGE), SPOT_EVERY))
        })
        .await
    }
}

fn entry(price: &aws_sdk_ec2::types::SpotPrice) -> Option<SpotEntry> {
    Some(SpotEntry {
        instance_type: price.instance_type()?.as_str().to_owned(),
        zone: price.availability_zone()?.to_owned(),
        product: price.product_description()?.as_str().to_owned(),
        price: price.spot_price()?.to_owned(),
        since: Timestamp::from_second(price.timestamp()?.secs()).ok()?,
    })
}

/// Returns the cached value, or asks for a new one once the value is no longer valid. Concurrent callers share one call. If the
/// call fails, the old value stays.
async fn cached<T>(
    kept: &Cached<T>,
    now: Timestamp,
    ask: impl AsyncFnOnce() -> Result<(T, SignedDuration), ProviderError>,
) -> Result<Arc<T>, ProviderError> {
    let mut kept = kept.lock().await;
    if let Some((value, until)) = &*kept
        && now < *until
    {
        return Ok(Arc::clone(value));
    }
    match (ask().await, &*kept) {
        (Ok((value, good)), _) => {
            let value = Arc::new(value);
            *kept = Some((Arc::clone(&value), now.saturating_add(good).unwrap_or(Timestamp::MAX)));
            Ok(value)
        }
        (Err(error), Some((value, _))) => {
            tracing::warn!(%error, "market data of AWS could not be refreshed; the old data stays");
            Ok(Arc::clone(value))
        }
        (Err(error), None) => Err(error),
    }
}

/// Returns which instance types a class sells.
fn selection(spec: &EC2NodeClassSpec) -> Selection {
    Selection { metal: false, also: spec.also_instance_types.iter().cloned().collect() }
}
