//! Tests the catalogue of a region.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::date;
use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{Catalogue, InstanceTypeName, OfferingId, Price, UnknownPrice, UsdPerHour, Zone};
use poolwright_provider_aws_model::instance::{Selection, Settings, TypeFacts, from_json};
use poolwright_provider_aws_model::prices::{
    DEFAULT_MAX_AGE, INTERRUPTIONS_AS_OF, InterruptionRates, Market, MarketCatalogue, Matching,
    OnDemandPrices, Reservation, ReservationKind, ReservationLot, ReservationUnusable, SpotEntry, SpotPrices,
    catalogue,
};
use poolwright_terms::CapacityType;

const TYPES: &str = include_str!("../../../fixtures/aws/instance-types.jsonl");

fn described() -> Vec<TypeFacts> {
    TYPES.lines().map(|line| from_json(line).expect(line)).collect()
}

fn now() -> Timestamp {
    "2026-11-23T12:00:00Z".parse().expect("a time")
}

type Zones = BTreeMap<InstanceTypeName, BTreeSet<Zone>>;

/// Returns every type, with these zones.
fn everywhere(zones: &[&str]) -> Zones {
    let zones: BTreeSet<Zone> = zones.iter().map(|zone| Zone::from(*zone)).collect();
    described().into_iter().map(|facts| (facts.name, zones.clone())).collect()
}

/// A market of us-east-1 that only has what a test adds.
struct World {
    zones: Zones,
    on_demand: OnDemandPrices,
    spot: SpotPrices,
    interruptions: InterruptionRates,
    reservations: Vec<Reservation>,
    selection: Selection,
}

impl World {
    fn new(zones: &[&str]) -> Self {
        Self {
            zones: everywhere(zones),
            on_demand: OnDemandPrices::builtin("us-east-1"),
            spot: SpotPrices::default(),
            interruptions: InterruptionRates::builtin("us-east-1"),
            reservations: Vec::new(),
            selection: Selection::default(),
        }
    }

    fn spot(mut self, entries: &[(&str, &str, &str)]) -> Self {
        let entry = |(name, zone, price): &(&str, &str, &str)| SpotEntry {
            instance_type: (*name).to_owned(),
            zone: (*zone).to_owned(),
            product: "Linux/UNIX".to_owned(),
            price: (*price).to_owned(),
            since: now() - SignedDuration::from_hours(30),
        };
        self.spot = SpotPrices::of_history(entries.iter().map(entry), now(), DEFAULT_MAX_AGE);
        self
    }

    fn reserved(mut self, reservations: Vec<Reservation>) -> Self {
        self.reservations = reservations;
        self
    }

    fn sold(&self) -> MarketCatalogue {
        let market = Market {
            region: "us-east-1",
            zones: &self.zones,
            on_demand: &self.on_demand,
            spot: &self.spot,
            interruptions: &self.interruptions,
            reservations: &self.reservations,
            now: now(),
        };
        catalogue(&described(), &self.selection, &Settings::default(), market)
    }
}

fn price(catalogue: &Catalogue, name: &str, zone: &str, capacity_type: CapacityType) -> Option<Price> {
    let id = OfferingId { instance_type: name.into(), zone: zone.into(), capacity_type };
    Some(catalogue.offering(&id)?.price.clone())
}

fn left_out(sold: &MarketCatalogue, name: &str) -> Option<String> {
    let found = sold.left_out.iter().find(|left_out| left_out.instance_type.as_str() == name)?;
    Some(found.reason.clone())
}

fn block(id: &str, minutes_left: i64, available: u32) -> Reservation {
    Reservation {
        id: id.to_owned(),
        instance_type: "p5e.48xlarge".to_owned(),
        zone: "us-east-1a".to_owned(),
        kind: ReservationKind::CapacityBlock,
        interruptible: false,
        active: true,
        platform: "Linux/UNIX".to_owned(),
        tenancy: "default".to_owned(),
        total: 4,
        available,
        starts: None,
        ends: Some(now() + SignedDuration::from_mins(minutes_left)),
    }
}

#[test]
fn with_the_list_built_in_the_catalogue_has_what_the_one_built_in_has_on_demand() {
    let built_in = poolwright_catalog::builtin();
    let mut world = World::new(&[]);
    world.selection.metal = true;
    for offering in built_in.offerings().iter().filter(|one| one.region.as_deref() == Some("us-east-1")) {
        let zones = world.zones.entry(offering.id.instance_type.clone()).or_default();
        zones.insert(offering.id.zone.clone());
    }
    let sold = world.sold();
    let of = |catalogue: &Catalogue| -> BTreeMap<String, Option<UsdPerHour>> {
        let own = catalogue.offerings().iter().filter(|one| one.region.as_deref() == Some("us-east-1"));
        own.filter(|one| one.id.capacity_type == CapacityType::OnDemand)
            .map(|one| (one.id.to_string(), one.price.known()))
            .collect()
    };
    assert_eq!(of(&sold.catalogue), of(&built_in));
    assert_eq!(sold.catalogue.origin().as_of, Some(date(2026, 7, 20)));
    assert_eq!(
        sold.catalogue.origin().source,
        "aws us-east-1 (on-demand: built-in list: karpenter-provider-aws@1d92708)"
    );
}

#[test]
fn no_price_of_the_whole_list_is_put_in_quarantine_and_the_unknown_ones_are_those_it_lacks() {
    let mut world = World::new(&["us-east-1a"]);
    world.selection.metal = true;
    world.selection.also = described().iter().map(|facts| facts.family().to_owned()).collect();
    let sold = world.sold();
    let mut unknown = BTreeMap::new();
    for offering in sold.catalogue.offerings() {
        if let Price::Unknown(reason) = &offering.price {
            unknown.insert(offering.id.instance_type.to_string(), reason.clone());
        }
    }
    for (name, reason) in &unknown {
        assert_eq!(reason, &UnknownPrice::Missing, "{name}");
    }
    assert_eq!((sold.catalogue.types().len(), unknown.len(), sold.left_out.len()), (1381, 42, 14));
}

#[test]
fn outside_the_region_of_the_list_built_in_every_price_is_unknown_and_says_how_to_get_it() {
    let mut world = World::new(&["eu-west-1a"]);
    world.on_demand = OnDemandPrices::builtin("eu-west-1");
    let market = Market {
        region: "eu-west-1",
        zones: &world.zones,
        on_demand: &world.on_demand,
        spot: &world.spot,
        interruptions: &InterruptionRates::builtin("eu-west-1"),
        reservations: &[],
        now: now(),
    };
    let sold = catalogue(&described(), &world.selection, &Settings::default(), market);
    assert!(sold.catalogue.offerings().len() > 1000);
    assert_eq!(sold.catalogue.unknown_prices(), sold.catalogue.offerings().len());
    assert!(sold.notes[0].contains("pricing:GetProducts"), "{:?}", sold.notes);
}

#[test]
fn spot_is_offered_where_it_has_a_price_and_the_type_is_sold() {
    let mut world = World::new(&["us-east-1a", "us-east-1b"]).spot(&[
        ("g5.xlarge", "us-east-1a", "0.4125"),
        ("g5.xlarge", "us-east-1f", "0.3"),
        ("g6e.xlarge", "us-east-1a", "1.861"),
        ("p5.48xlarge", "us-east-1a", "5.504"),
        ("u7i-6tb.112xlarge", "us-east-1a", "20"),
    ]);
    world.zones.get_mut(&InstanceTypeName::from("g6.xlarge")).expect("described").clear();
    let sold = world.sold();
    let spot = |name: &str, zone: &str| price(&sold.catalogue, name, zone, CapacityType::Spot);
    let known = spot("g5.xlarge", "us-east-1a");
    let Some(Price::Known(quote)) = known else { panic!("{known:?}") };
    assert_eq!((quote.usd_per_hour.to_string().as_str(), quote.as_of), ("0.4125", Some(date(2026, 11, 22))));
    assert_eq!(spot("g5.xlarge", "us-east-1b"), None, "nobody quoted it");
    assert_eq!(spot("g5.xlarge", "us-east-1f"), None, "it is not sold there");
    assert_eq!(spot("u7i-6tb.112xlarge", "us-east-1a"), None, "EC2 does not sell it as spot");
    assert_eq!(price(&sold.catalogue, "g6.xlarge", "us-east-1a", CapacityType::OnDemand), None);
    let dear = spot("g6e.xlarge", "us-east-1a");
    assert!(matches!(dear, Some(Price::Unknown(UnknownPrice::SpotNotBelowOnDemand { .. }))), "{dear:?}");
    let floor = spot("p5.48xlarge", "us-east-1a");
    let Some(Price::Known(quote)) = floor else { panic!("{floor:?}") };
    assert!(quote.source.as_str().contains("AWS's minimum"), "{}", quote.source);
    assert_eq!(sold.catalogue.origin().as_of, Some(date(2026, 7, 20)));
    assert!(sold.catalogue.origin().source.contains("spot: EC2 spot price history"));
}

#[test]
fn how_often_a_type_is_taken_back_stands_on_its_spot_offerings_alone_and_where_the_advisor_knows_it() {
    let zone = "us-east-1a";
    let names = ["g5.xlarge", "g5g.xlarge", "m6i.xlarge"];
    let sold = World::new(&[zone, "us-east-1-atl-1a"])
        .spot(&[
            ("g5.xlarge", zone, "0.4125"),
            ("g5.xlarge", "us-east-1-atl-1a", "0.4125"),
            ("g5g.xlarge", zone, "0.2"),
            ("m6i.xlarge", zone, "0.07"),
        ])
        .sold();
    let said = |name: &str, zone: &str, capacity_type| {
        let id = OfferingId { instance_type: name.into(), zone: zone.into(), capacity_type };
        let said = sold.catalogue.offering(&id).expect("it is sold").interruptions.clone()?;
        assert_eq!(
            (said.source.as_str(), said.as_of),
            ("AWS Spot Advisor: spotinfo@5eedf20", Some(INTERRUPTIONS_AS_OF))
        );
        Some(said.per_million_hours)
    };
    // The Spot Advisor lists the first above 20 %, the second below 5 %, and the third not at all.
    assert_eq!(names.map(|name| said(name, zone, CapacityType::Spot)), [Some(12_500), Some(1_042), None]);
    assert_eq!(names.map(|name| said(name, zone, CapacityType::OnDemand)), [None; 3]);
    assert_eq!(
        said("g5.xlarge", "us-east-1-atl-1a", CapacityType::Spot),
        None,
        "it is of the region, not of a local zone"
    );
    assert!(InterruptionRates::builtin("mars-north-1").is_empty());
}

#[test]
fn the_catalogue_built_in_says_the_same_of_interruptions() {
    let rates = InterruptionRates::builtin("us-east-1");
    let built_in = poolwright_catalog::builtin();
    let mut said = 0;
    for offering in built_in.offerings() {
        let is_spot = offering.id.capacity_type == CapacityType::Spot;
        let known = rates.of(&offering.id.instance_type).filter(|_| is_spot);
        assert_eq!(offering.interruptions, known, "{}", offering.id);
        said += usize::from(known.is_some());
    }
    assert!(said > 100, "{said}");
}

/// Returns a price list of us-east-1 with these prices.
fn list(prices: &[(&str, &str)]) -> OnDemandPrices {
    let entry = |(name, price): &(&str, &str)| {
        serde_json::json!({
            "product": {"productFamily": "Compute Instance", "attributes": {"instanceType": name}},
            "terms": {"OnDemand": {"t": {"priceDimensions": {"d": {"unit": "Hrs", "pricePerUnit": {"USD": price}}}}}},
        })
        .to_string()
    };
    let texts: Vec<_> = prices.iter().map(entry).collect();
    OnDemandPrices::of_entries("us-east-1", date(2026, 11, 23), texts.iter().map(String::as_str))
}

#[test]
fn a_capacity_block_type_is_offered_by_the_hour_only_with_a_listed_price() {
    let mut world = World::new(&["us-east-1a"]).spot(&[("p5e.48xlarge", "us-east-1a", "30")]);
    let names = [CapacityType::OnDemand, CapacityType::Spot];
    let prices = |world: &World| {
        let sold = world.sold();
        names.map(|capacity| {
            price(&sold.catalogue, "p5e.48xlarge", "us-east-1a", capacity).and_then(|one| one.known())
        })
    };
    assert_eq!(prices(&world), [None, None]);
    world.on_demand = list(&[("p5e.48xlarge", "60")]);
    let dollars = |dollars: u64| Some(UsdPerHour::from_micros(dollars * 1_000_000));
    assert_eq!(prices(&world), [dollars(60), dollars(30)]);
}

#[test]
fn a_decimal_point_that_slipped_is_found_by_the_other_sizes_as_in_a_file() {
    let mut world = World::new(&["us-east-1a"]);
    world.on_demand = list(&[
        ("g5.xlarge", "10.06"),
        ("g5.2xlarge", "1.212"),
        ("g5.4xlarge", "1.624"),
        ("g5.8xlarge", "2.448"),
    ]);
    let sold = world.sold();
    let on_demand = |name: &str| price(&sold.catalogue, name, "us-east-1a", CapacityType::OnDemand);
    let slipped = on_demand("g5.xlarge");
    assert!(matches!(slipped, Some(Price::Unknown(UnknownPrice::OutOfLine { .. }))), "{slipped:?}");
    assert!(on_demand("g5.8xlarge").expect("an offering").known().is_some());
}

#[test]
fn local_zones_have_no_price_of_the_region() {
    let sold = World::new(&["us-east-1a", "us-east-1-atl-1a"]).sold();
    let on_demand = |zone: &str| price(&sold.catalogue, "g5.xlarge", zone, CapacityType::OnDemand);
    assert!(on_demand("us-east-1a").expect("an offering").known().is_some());
    assert_eq!(on_demand("us-east-1-atl-1a"), Some(Price::Unknown(UnknownPrice::Missing)));
    assert!(sold.notes.iter().any(|note| note.contains("us-east-1-atl-1a")), "{:?}", sold.notes);
}

#[test]
fn an_excluded_type_has_a_reason_and_can_be_included_by_name() {
    let mut world = World::new(&["us-east-1a"]);
    let sold = world.sold();
    assert!(left_out(&sold, "g6f.large").expect("left out").contains("1/8 of an L4"));
    assert!(left_out(&sold, "inf2.xlarge").expect("left out").contains("Neuron devices (Inferentia2)"));
    assert!(left_out(&sold, "m4.large").expect("left out").contains("Xen"));
    assert_eq!(left_out(&sold, "g5.xlarge"), None);
    assert_eq!(sold.left_out.len() + sold.catalogue.types().len(), 1395);
    world.selection.also = BTreeSet::from(["m4".to_owned()]);
    assert_eq!(left_out(&world.sold(), "m4.large"), None);
}

#[test]
fn a_capacity_block_is_sold_until_forty_minutes_before_its_end() {
    let world = World::new(&["us-east-1a"]).reserved(vec![
        Reservation { ends: None, ..block("cr-endless", 0, 5) },
        block("cr-long", 600, 2),
        block("cr-short", 41, 1),
        block("cr-long", 600, 2),
        block("cr-ending", 40, 4),
        block("cr-over", -1, 4),
        Reservation { starts: Some(now() + SignedDuration::from_mins(5)), ..block("cr-soon", 600, 4) },
    ]);
    let sold = world.sold();
    assert_eq!(price(&sold.catalogue, "p5e.48xlarge", "us-east-1a", CapacityType::OnDemand), None);
    let id = OfferingId {
        instance_type: "p5e.48xlarge".into(),
        zone: "us-east-1a".into(),
        capacity_type: CapacityType::Reserved,
    };
    let offering = sold.catalogue.offering(&id).expect("what is left of three blocks");
    assert_eq!((offering.available, offering.price.known()), (Some(8), Some(UsdPerHour::ZERO)));
    let lot = |id: &str, available| ReservationLot {
        id: id.to_owned(),
        kind: ReservationKind::CapacityBlock,
        available,
    };
    assert_eq!(sold.reserved.lots[&id], [lot("cr-short", 1), lot("cr-long", 2), lot("cr-endless", 5)]);
    let unsold: Vec<_> = sold.reserved.unsold.iter().map(|(id, why)| (id.as_str(), why)).collect();
    let at = |minutes: i64| now() + SignedDuration::from_mins(minutes);
    assert_eq!(
        unsold,
        [
            ("cr-ending", &ReservationUnusable::Ending(at(40))),
            ("cr-over", &ReservationUnusable::Ended(at(-1))),
            ("cr-soon", &ReservationUnusable::NotBegun(at(5))),
        ]
    );
    assert!(sold.catalogue.origin().source.ends_with("; capacity reservations)"));
}

#[test]
fn reservations_of_every_size_of_a_family_stay_free_of_charge() {
    let of = |name: &str, matching| Reservation {
        id: format!("cr-{name}"),
        instance_type: name.to_owned(),
        kind: ReservationKind::OnDemand(matching),
        ends: None,
        ..block("", 0, 3)
    };
    let names = ["g5.xlarge", "g5.2xlarge", "g5.4xlarge", "g5.8xlarge"];
    let reservations = names.map(|name| of(name, Matching::Open)).to_vec();
    let sold = World::new(&["us-east-1a"]).reserved(reservations).sold();
    for name in names {
        let price = price(&sold.catalogue, name, "us-east-1a", CapacityType::Reserved).expect(name);
        let Price::Known(quote) = price else { panic!("{name}: {price:?}") };
        assert_eq!(quote.usd_per_hour, UsdPerHour::ZERO);
        assert_eq!(quote.source.as_str(), format!("paid in advance: cr-{name}"));
    }
    let targeted = of("g5.xlarge", Matching::Targeted);
    let wrong = [
        Reservation { active: false, ..targeted.clone() },
        Reservation { interruptible: true, ..targeted.clone() },
        Reservation { platform: "Windows".to_owned(), ..targeted.clone() },
        Reservation { tenancy: "dedicated".to_owned(), ..targeted.clone() },
        Reservation { instance_type: "t3.large".to_owned(), ..targeted.clone() },
        Reservation { zone: "not a zone".to_owned(), ..targeted },
    ];
    let sold = World::new(&["us-east-1a"]).reserved(wrong.to_vec()).sold();
    let why: Vec<_> = sold.reserved.unsold.iter().map(|(_, why)| why.to_string()).collect();
    assert_eq!(
        why,
        [
            "it is not active",
            "it is interruptible: its owner reclaims instances with two minutes' notice, and AWS does not publish how often",
            "its platform is `Windows`, not Linux/UNIX",
            "its tenancy is `dedicated`, not default",
            "the node class does not allow the type t3.large",
            "`not a zone` is not a valid name of a type or a zone",
        ]
    );
    assert!(sold.reserved.offerings.is_empty());
}
