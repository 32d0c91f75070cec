//! The ways to run a job, the cheapest first, with the reasons why the others lost.

use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_report::job::Work;
use poolwright_report::money::{Ratio, maybe_amount, maybe_usd, six_decimals};
use poolwright_terms::CapacityType;
use serde::Serialize;

use super::offers::{Offer, Outcome};
use crate::print::counted;

/// A way to run the job: one instance type, bought in one way, in zones with the same figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// How its nodes are bought.
    pub capacity_type: CapacityType,
    /// Their type.
    pub instance_type: String,
    /// The model of their GPUs; null without GPUs.
    pub gpu_model: Option<String>,
    /// Their number; null if the job does not run there, or if the price is unknown.
    pub nodes: Option<usize>,
    /// The zones, each of which has these figures.
    pub zones: Vec<String>,
    /// What all nodes cost; null if that is unknown.
    #[serde(serialize_with = "maybe_usd")]
    pub usd_per_hour: Option<UsdPerHour>,
    /// What the job costs; null if that is unknown.
    #[serde(serialize_with = "maybe_amount")]
    pub usd_per_job: Option<Usd>,
    /// The expected number of interruptions; null if it is unknown.
    pub interruptions: Option<f64>,
    /// The expected hours until the job ends; null if that is unknown.
    pub finish_hours: Option<f64>,
    /// The part of these hours in which the job does work that interruptions lose.
    pub lost_hours: Option<f64>,
    /// Why it lost; null for the cheapest.
    pub reason: Option<String>,
    /// The place of the row among those that have no cost.
    #[serde(skip)]
    rank: Rank,
}

/// What is known of a row, the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Its cost.
    Cost,
    /// What its nodes cost per hour.
    PerHour,
    /// That it has no price.
    NoPrice,
    /// That it does not hold the job.
    Unfit,
}

impl Row {
    /// Names the zone, or the first one and the number of the others.
    pub fn place(&self) -> String {
        match self.zones.as_slice() {
            [] => String::new(),
            [only] => only.clone(),
            [first, others @ ..] => format!("{first} and {} more", others.len()),
        }
    }

    /// Returns the row of an offering. The reason is that for which it has no cost.
    fn of(offer: &Offer, work: &Work) -> Self {
        let id = &offer.offering.id;
        let mut row = Self {
            capacity_type: id.capacity_type,
            instance_type: id.instance_type.to_string(),
            gpu_model: offer.gpu_model().map(str::to_owned),
            nodes: None,
            zones: vec![id.zone.to_string()],
            usd_per_hour: None,
            usd_per_job: None,
            interruptions: None,
            finish_hours: None,
            lost_hours: None,
            reason: None,
            rank: Rank::Cost,
        };
        let (nodes, usd_per_hour) = match &offer.outcome {
            Outcome::Runs { nodes, usd_per_hour } => (*nodes, *usd_per_hour),
            Outcome::Unpriced(why) => return row.without(Rank::NoPrice, format!("no price known: {why}")),
            Outcome::Unfit(why) => return row.without(Rank::Unfit, why.clone()),
        };
        (row.nodes, row.usd_per_hour) = (Some(nodes), Some(usd_per_hour));
        let rate = match (id.capacity_type, &offer.offering.interruptions) {
            (CapacityType::Spot, None) => {
                let why = "no interruption rate known, so neither is the cost of the job";
                return row.without(Rank::PerHour, why.to_owned());
            }
            (CapacityType::Spot, Some(said)) => said.per_million_hours,
            (CapacityType::OnDemand | CapacityType::Reserved, _) => 0,
        };
        let Some(run) = work.on(nodes, rate) else {
            let why = "interruptions come so often that the job does not end in ten years";
            return row.without(Rank::PerHour, why.to_owned());
        };
        row.usd_per_job = Some(Usd::of(Some(usd_per_hour), run.finish));
        row.interruptions = Some(six_decimals(run.interruptions));
        row.finish_hours = Some(six_decimals(run.finish.as_secs_f64() / 3600.0));
        row.lost_hours = Some(six_decimals(run.lost.as_secs_f64() / 3600.0));
        row
    }

    fn without(mut self, rank: Rank, reason: String) -> Self {
        (self.rank, self.reason) = (rank, Some(reason));
        self
    }

    /// Returns whether two rows differ in their zones alone. The reasons of plans may name the zones.
    fn is_alike(&self, other: &Self) -> bool {
        let of = |row: &Self| Self {
            zones: Vec::new(),
            reason: row.reason.clone().filter(|_| row.rank != Rank::Unfit),
            ..row.clone()
        };
        of(self) == of(other)
    }
}

/// Returns the rows of these offerings, in order and with reasons.
pub fn rows(offers: &[Offer], work: &Work) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for offer in offers {
        let row = Row::of(offer, work);
        match rows.iter_mut().find(|known| known.is_alike(&row)) {
            Some(known) => known.zones.extend(row.zones),
            None => rows.push(row),
        }
    }
    rows.sort_by(|a, b| {
        let key = |row: &Row| (row.rank, row.usd_per_job, row.usd_per_hour);
        let time = |row: &Row| row.finish_hours.unwrap_or_default();
        let name = |row: &Row| (row.capacity_type, row.instance_type.clone(), row.zones.clone());
        key(a).cmp(&key(b)).then_with(|| time(a).total_cmp(&time(b))).then_with(|| name(a).cmp(&name(b)))
    });
    let reasons: Vec<Option<String>> = (0..rows.len()).map(|at| lost(&rows, at)).collect();
    for (row, reason) in rows.iter_mut().zip(reasons) {
        row.reason = row.reason.take().or(reason);
    }
    rows
}

/// Says why a row with a cost is not the first.
fn lost(rows: &[Row], at: usize) -> Option<String> {
    let (best, row) = (rows.first().filter(|_| at > 0)?, rows.get(at)?);
    let (least, usd) = (best.usd_per_job?, row.usd_per_job?);
    let dearer = match Usd(usd.0.saturating_sub(least.0)) {
        Usd(0) => "costs the same".to_owned(),
        more if least == Usd::default() => format!("dearer by {more:#}"),
        more => format!("dearer by {}", Ratio { part: more.0, whole: least.0 }),
    };
    let on_demand = rows.iter().find(|other| {
        let is_same =
            other.instance_type == row.instance_type && other.capacity_type == CapacityType::OnDemand;
        is_same && other.usd_per_hour > row.usd_per_hour && other.usd_per_job.is_some_and(|other| other < usd)
    });
    match on_demand {
        Some(other) if row.capacity_type == CapacityType::Spot => {
            let price = other.usd_per_hour.map(|price| format!(" at {price:#}")).unwrap_or_default();
            Some(format!("interruptions make it dearer than on-demand{price}; {dearer}"))
        }
        _ => Some(dearer),
    }
}

/// Says how many ways there are beside those that are shown.
pub fn more(rows: usize) -> String {
    format!("{} more; -o json lists them", counted(rows, "row"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use poolwright_catalog::{
        Arch, InstanceType, InstanceTypeName, Interruptions, Offering, OfferingId, Price, PriceSource,
        ProviderName, Quote, ResourceList, Zone,
    };

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    /// A job of an hour, which starts over and is at work again at once.
    const WORK: Work = Work { takes: HOUR, checkpoint: None, restart: Duration::ZERO };

    /// The rate at which one node is interrupted once, on average, until an hour of work succeeds: ln 2 per hour.
    const ONCE: u32 = 693_147;

    /// Returns an offering on one node of which the job runs.
    fn offer(name: &str, zone: &str, how: CapacityType, cents: u64, rate: Option<u32>) -> Offer {
        let usd_per_hour = UsdPerHour::from_micros(cents * 10_000);
        let source = PriceSource::from("test");
        let id = OfferingId {
            instance_type: InstanceTypeName::from(name),
            zone: Zone::from(zone),
            capacity_type: how,
        };
        let kind = InstanceType {
            name: id.instance_type.clone(),
            provider: ProviderName::from("aws"),
            arch: Arch::Amd64,
            allocatable: ResourceList::new(),
            gpu: None,
        };
        let offering = Offering {
            id,
            region: None,
            price: Price::Known(Quote { usd_per_hour, source: source.clone(), as_of: None }),
            available: None,
            interruptions: rate.map(|per_million_hours| Interruptions {
                per_million_hours,
                source,
                as_of: None,
            }),
            notice: None,
        };
        Offer { offering, kind, outcome: Outcome::Runs { nodes: 1, usd_per_hour } }
    }

    fn told(offers: &[Offer]) -> Vec<(String, Option<Usd>, Option<String>)> {
        let rows = rows(offers, &WORK);
        rows.iter().map(|row| (row.instance_type.clone(), row.usd_per_job, row.reason.clone())).collect()
    }

    #[test]
    fn the_cheapest_is_first_and_the_others_say_why_they_lost() {
        use CapacityType::{OnDemand, Spot};
        let row = |name: &str, usd: u64, reason: Option<&str>| {
            (name.to_owned(), Some(Usd(u128::from(usd) * 10_000)), reason.map(str::to_owned))
        };
        let offers = [
            offer("big", "a", OnDemand, 125, None),
            offer("small", "a", OnDemand, 100, None),
            offer("twin", "a", OnDemand, 100, None),
            offer("small", "a", Spot, 50, Some(0)),
        ];
        assert_eq!(
            told(&offers),
            [
                row("small", 50, None),
                row("small", 100, Some("dearer by 100.0 %")),
                row("twin", 100, Some("dearer by 100.0 %")),
                row("big", 125, Some("dearer by 150.0 %")),
            ]
        );
    }

    #[test]
    fn interruptions_can_make_spot_dearer_than_on_demand() {
        use CapacityType::{OnDemand, Spot};
        // An hour of work takes 1.4427 hours on spot, so $0.80 become $1.15.
        let offers = [offer("a", "z", Spot, 80, Some(ONCE)), offer("a", "z", OnDemand, 100, None)];
        let rows = rows(&offers, &WORK);
        assert_eq!(rows[0].capacity_type, OnDemand);
        assert_eq!(rows[1].usd_per_job.map(|usd| format!("{usd:#}")).as_deref(), Some("$1.15"));
        assert!(rows[1].interruptions.is_some_and(|number| (number - 1.0).abs() < 1e-5), "{:?}", rows[1]);
        assert_eq!(
            rows[1].reason.as_deref(),
            Some("interruptions make it dearer than on-demand at $1.00/h; dearer by 15.4 %")
        );
    }

    #[test]
    fn what_is_unknown_is_named_and_never_cheapest() {
        use CapacityType::{OnDemand, Spot};
        let mut unpriced = offer("unpriced", "z", OnDemand, 1, None);
        unpriced.outcome = Outcome::Unpriced("no source has a price for it".to_owned());
        let mut unfit = offer("unfit", "z", OnDemand, 1, None);
        unfit.outcome = Outcome::Unfit("does not hold one pod".to_owned());
        let endless = offer("endless", "z", Spot, 2, Some(u32::MAX));
        let offers = [
            unfit,
            unpriced,
            offer("rate", "z", Spot, 1, None),
            endless,
            offer("known", "z", OnDemand, 99, None),
        ];
        let rows = told(&offers);
        let names: Vec<&str> = rows.iter().map(|row| row.0.as_str()).collect();
        assert_eq!(names, ["known", "rate", "endless", "unpriced", "unfit"]);
        let reason = |at: usize| rows[at].2.as_deref().unwrap_or_default();
        assert!(reason(1).starts_with("no interruption rate known"), "{rows:?}");
        assert!(reason(2).ends_with("does not end in ten years"), "{rows:?}");
        assert_eq!(reason(3), "no price known: no source has a price for it");
        assert!(rows[1..].iter().all(|row| row.1.is_none()));
    }

    #[test]
    fn zones_with_the_same_figures_are_one_row() {
        use CapacityType::OnDemand;
        let offers =
            [("a", 100), ("b", 100), ("c", 101)].map(|(zone, cents)| offer("t", zone, OnDemand, cents, None));
        let rows = rows(&offers, &WORK);
        assert_eq!(rows.iter().map(Row::place).collect::<Vec<_>>(), ["a and 1 more", "c"]);
        assert_eq!(rows[0].zones, ["a", "b"]);
    }

    #[test]
    fn what_is_paid_for_costs_nothing_and_the_others_cost_so_much_more() {
        use CapacityType::{OnDemand, Reserved};
        let offers = [offer("t", "z", OnDemand, 200, None), offer("t", "z", Reserved, 0, None)];
        let rows = rows(&offers, &WORK);
        assert_eq!((rows[0].capacity_type, rows[0].usd_per_job), (Reserved, Some(Usd(0))));
        assert_eq!(rows[1].reason.as_deref(), Some("dearer by $2.00"));
    }
}
