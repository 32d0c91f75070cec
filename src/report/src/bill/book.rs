//! The sums of a report: one for each group of charges, and those of the whole bill.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use poolwright_terms::CapacityType;

use super::split::split;
use super::{Charge, Class, Micros, Split};
use crate::ledger::Day;
use crate::ledger::row::InstanceSpan;

/// What charges are grouped by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// The namespace of the pod.
    Namespace,
    /// A label of the pod.
    Label(String),
    /// The namespace, kind and name of the pod's controller, or of the pod if it has none.
    Workload,
    /// The pool of the node.
    Pool,
    /// The node.
    Node,
    /// The day, in UTC.
    Day,
    /// The week, from Monday on, as ISO 8601 counts it.
    Week,
    /// The month.
    Month,
    /// The cluster.
    Cluster,
}

/// The names of a day, and of the week and the month that it is in.
struct Dates {
    day: String,
    week: String,
    month: String,
}

impl Dates {
    fn of(day: Date) -> Self {
        let week = day.iso_week_date();
        Self {
            day: day.to_string(),
            week: format!("{:04}-W{:02}", week.year(), week.week()),
            month: format!("{:04}-{:02}", day.year(), day.month()),
        }
    }
}

impl By {
    /// The names, for messages.
    pub const NAMES: &str = "namespace, label:KEY, workload, pool, node, day, week, month, cluster";

    fn of<'a>(&self, dates: &'a Dates, charge: &Charge<'a>) -> Option<Cow<'a, str>> {
        let pod = charge.pod.filter(|pod| !pod.daemon);
        let instance = &charge.instance.row;
        if let (Self::Workload, Some(pod)) = (self, pod) {
            let kind = pod.workload_kind.as_deref().unwrap_or("Pod");
            let name = pod.workload.as_deref().unwrap_or(&pod.name);
            return Some(Cow::Owned(format!("{}/{kind}/{name}", pod.namespace)));
        }
        let value: &'a str = match self {
            Self::Namespace => &pod?.namespace,
            Self::Label(key) => pod?.labels.get(key)?,
            Self::Workload => return None,
            Self::Pool => instance.pool.as_deref()?,
            Self::Node => instance.node.as_ref().unwrap_or(&instance.name),
            Self::Day => &dates.day,
            Self::Week => &dates.week,
            Self::Month => &dates.month,
            Self::Cluster => &instance.span.cluster,
        };
        Some(Cow::Borrowed(value))
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace => f.pad("namespace"),
            Self::Label(key) => f.pad(&format!("label:{key}")),
            Self::Workload => f.pad("workload"),
            Self::Pool => f.pad("pool"),
            Self::Node => f.pad("node"),
            Self::Day => f.pad("day"),
            Self::Week => f.pad("week"),
            Self::Month => f.pad("month"),
            Self::Cluster => f.pad("cluster"),
        }
    }
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(key) = text.strip_prefix("label:") {
            let named = !key.is_empty();
            return named
                .then(|| Self::Label(key.to_owned()))
                .ok_or_else(|| "name the label: label:team".to_owned());
        }
        let all = [
            Self::Namespace,
            Self::Workload,
            Self::Pool,
            Self::Node,
            Self::Day,
            Self::Week,
            Self::Month,
            Self::Cluster,
        ];
        let found = all.into_iter().find(|by| by.to_string() == text);
        found.ok_or_else(|| format!("no report is grouped by it; use one of {}", Self::NAMES))
    }
}

/// What the charges of a group have in common: who pays, and a value for each [`By`]. A value is `None` if the pod or the node has
/// none.
pub type Key = (Class, Vec<Option<String>>);

/// A [`Key`] whose texts are those of the ledger.
type Borrowed<'a> = (Class, Vec<Option<Cow<'a, str>>>);

/// The sums of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// The known costs.
    pub cost: Micros,
    /// What known costs are below the on-demand list prices.
    pub saved: Micros,
    /// The GPUs, in thousandths of GPUs times milliseconds.
    pub gpu_millis: u128,
    /// The parts of nodes without a known price, in [`super::PARTS`] times milliseconds.
    pub unpriced: u128,
}

impl Sums {
    fn charge(&mut self, charge: &Charge<'_>) {
        self.gpu_millis += charge.gpu_millis;
        match charge.cost {
            Some(cost) => self.cost.0 += cost.0,
            None => self.unpriced += charge.parts,
        }
        if let (Some(cost), Some(list)) = (charge.cost, charge.list) {
            self.saved.0 += list.0 - cost.0;
        }
    }

    fn add(&mut self, other: &Self) {
        self.cost.0 += other.cost.0;
        self.saved.0 += other.saved.0;
        self.gpu_millis += other.gpu_millis;
        self.unpriced += other.unpriced;
    }
}

/// Instances without a known price.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unpriced {
    /// Their UIDs.
    pub instances: BTreeSet<String>,
    /// Their time in milliseconds.
    pub millis: u64,
}

/// What something cost, and what it would cost by the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// The cost of spans that also have a list price.
    pub cost: Micros,
    /// What the on-demand list price of these spans is.
    pub list: Micros,
    /// The cost of spans without a list price: nothing is known to be saved there.
    pub unlisted: Micros,
    /// The time in milliseconds.
    pub millis: u64,
}

impl Saved {
    fn add(&mut self, cost: Micros, list: Option<Micros>, millis: u64) {
        self.millis += millis;
        match list {
            Some(list) => {
                self.cost.0 += cost.0;
                self.list.0 += list.0;
            }
            None => self.unlisted.0 += cost.0,
        }
    }

    /// Returns what is saved; below zero if the list price is lower.
    pub fn saved(&self) -> Micros {
        Micros(self.list.0 - self.cost.0)
    }
}

/// The sums of the whole bill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// What the instances cost, known prices only.
    pub bill: Micros,
    /// The UIDs of the instances.
    pub instances: BTreeSet<String>,
    /// Instances without a known price, by type, zone and capacity type.
    pub unpriced: BTreeMap<String, Unpriced>,
    /// Spot instances.
    pub spot: Saved,
    /// The instances that each commitment pays.
    pub commitments: BTreeMap<String, Saved>,
    /// Instance types for whose GPUs the rate card has no price.
    pub unrated: BTreeSet<String>,
    /// Pods that held no instance that the ledger knew then.
    pub without_instance: usize,
}

/// Adds up charges.
#[derive(Debug)]
pub struct Book {
    by: Vec<By>,
    split: Split,
    groups: BTreeMap<Key, Sums>,
    totals: Totals,
}

impl Book {
    /// Starts a book with these groups.
    pub fn new(by: Vec<By>, split: Split) -> Self {
        Self { by, split, groups: BTreeMap::new(), totals: Totals::default() }
    }

    /// Adds a day. Each charge also goes to `each`.
    pub fn add(&mut self, day: &Day, mut each: impl FnMut(&Charge<'_>)) {
        self.add_day(day, &mut each);
    }

    // Not generic, so it is compiled here and for speed.
    fn add_day(&mut self, day: &Day, each: &mut dyn FnMut(&Charge<'_>)) {
        for known in &day.instances {
            self.instance(&known.row, known.millis());
        }
        let (by, dates) = (&self.by, Dates::of(day.date));
        // The names are copied once a day, and not for each charge.
        let mut groups: BTreeMap<Borrowed<'_>, Sums> = BTreeMap::new();
        self.totals.without_instance += split(day, &self.split, &mut |charge| {
            let values = by.iter().map(|by| by.of(&dates, charge)).collect();
            groups.entry((charge.class, values)).or_default().charge(charge);
            each(charge);
        });
        for ((class, values), sums) in &groups {
            let values = values.iter().map(|value| value.as_deref().map(str::to_owned)).collect();
            self.groups.entry((*class, values)).or_default().add(sums);
        }
    }

    fn instance(&mut self, row: &InstanceSpan, millis: u64) {
        let totals = &mut self.totals;
        if !totals.instances.contains(&row.uid) {
            totals.instances.insert(row.uid.clone());
        }
        let Some(price) = row.price_micros_per_hour else {
            let name = format!("{} in {} ({})", row.instance_type, row.zone, row.capacity_type);
            let unpriced = totals.unpriced.entry(name).or_default();
            unpriced.instances.insert(row.uid.clone());
            unpriced.millis += millis;
            return;
        };
        let cost = Micros::of(price, millis);
        let list = row.list_micros_per_hour.map(|list| Micros::of(list, millis));
        totals.bill.0 += cost.0;
        if row.capacity_type == CapacityType::Spot.as_str() {
            totals.spot.add(cost, list, millis);
        }
        if let Some(name) = &row.commitment {
            totals.commitments.entry(name.clone()).or_default().add(cost, list, millis);
        }
        if self.split.method == super::Method::RateCard && !self.split.has_rates(row) {
            self.totals.unrated.insert(row.instance_type.clone());
        }
    }

    /// Returns what charges are grouped by.
    pub fn by(&self) -> &[By] {
        &self.by
    }

    /// Returns the groups, in the order of their keys. Their costs add up to the bill.
    pub fn groups(&self) -> &BTreeMap<Key, Sums> {
        &self.groups
    }

    /// Returns the sums of the whole bill.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns the sums of a class.
    pub fn class(&self, class: Class) -> Sums {
        let mut all = Sums::default();
        for (_, sums) in self.groups.iter().filter(|((one, _), _)| *one == class) {
            all.add(sums);
        }
        all
    }

    /// Returns the cost of idle time.
    pub fn idle(&self) -> Micros {
        Micros(
            self.groups.iter().filter(|((class, _), _)| class.is_idle()).map(|(_, sums)| sums.cost.0).sum(),
        )
    }
}
