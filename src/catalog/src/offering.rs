//! Offerings, and the catalogue that lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use jiff::civil::Date;
use poolwright_terms::CapacityType;
use serde::{Deserialize, Serialize};

use crate::instance::{InstanceType, InstanceTypeName, ProviderName, name_type};
use crate::interruptions::Interruptions;
use crate::labels::labels_of;
use crate::money::UsdPerHour;
use crate::price::Price;
use crate::resources::ResourceList;

name_type! {
    /// An availability zone. If a catalogue has prices for whole regions, this is the region's name. If it names neither, this is
    /// [`Zone::ANY`].
    Zone
}

impl Zone {
    /// The only zone of a catalogue that names none.
    pub const ANY: &'static str = "any";
}

/// The identity of an offering: instance type x zone x capacity type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferingId {
    /// The instance type.
    pub instance_type: InstanceTypeName,
    /// The zone.
    pub zone: Zone,
    /// The capacity type.
    pub capacity_type: CapacityType,
}

impl fmt::Display for OfferingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.instance_type, self.zone, self.capacity_type)
    }
}

/// One of the ranked offerings of a claim, with the resources that its node promises.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RankedOffering {
    /// The offering.
    pub offering: OfferingId,
    /// Its price in the plan; `None` if it is unknown and the pool allows that.
    pub price: Option<UsdPerHour>,
    /// The allocatable resources that the node must advertise.
    pub allocatable: ResourceList,
}

/// One instance type in one zone and capacity type, at one price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offering {
    /// Its identity.
    pub id: OfferingId,
    /// The region of the zone; `None` if the catalogue names none.
    pub region: Option<String>,
    /// Its price, known or unknown.
    pub price: Price,
    /// The number of available nodes; `None` if unknown, which counts as enough.
    pub available: Option<u32>,
    /// The rate at which the cloud interrupts its nodes; `None` if unknown.
    pub interruptions: Option<Interruptions>,
    /// The time between the notice that the cloud takes a node back and its end; `None` if the catalogue does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<Duration>,
}

/// The source of a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogueOrigin {
    /// The file names, or `builtin`.
    pub source: String,
    /// The oldest date of its prices; `None` if none has a date.
    pub as_of: Option<Date>,
}

impl CatalogueOrigin {
    /// Returns the origin of these offerings, with the oldest date of their prices.
    pub fn of(source: impl Into<String>, offerings: &[Offering]) -> Self {
        let as_of = |offering: &Offering| match &offering.price {
            Price::Known(quote) => quote.as_of,
            Price::Unknown(_) => None,
        };
        Self { source: source.into(), as_of: offerings.iter().filter_map(as_of).min() }
    }
}

/// Instance types and their offerings.
///
/// Invariants, kept by [`Catalogue::new`]: every offering's instance type is listed, offerings are unique and sorted by
/// [`OfferingId`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    origin: CatalogueOrigin,
    types: BTreeMap<InstanceTypeName, InstanceType>,
    offerings: Vec<Offering>,
    /// Resources that nodes lack only for want of a setting of their node class, each with the setting. For ephemeral storage, it is the
    /// change that gives nodes more, as the start of a sentence.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    addable: BTreeMap<String, String>,
    /// How much of such a resource the setting adds to nodes of each type, where that is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    added: BTreeMap<String, BTreeMap<InstanceTypeName, u64>>,
    /// Resources that nodes of another kind of node class would have, each with the kind and its setting.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    addable_elsewhere: BTreeMap<String, String>,
}

impl Catalogue {
    /// Creates a catalogue of these types and offerings. If two offerings have one id, the first is kept. Offerings of
    /// types that are not listed are dropped, because their resources are unknown.
    pub fn new(origin: CatalogueOrigin, types: Vec<InstanceType>, mut offerings: Vec<Offering>) -> Self {
        let types: BTreeMap<_, _> = types.into_iter().map(|kind| (kind.name.clone(), kind)).collect();
        offerings.retain(|offering| types.contains_key(&offering.id.instance_type));
        offerings.sort_by(|a, b| a.id.cmp(&b.id));
        offerings.dedup_by(|later, first| later.id == first.id);
        let (addable, added, addable_elsewhere) = Default::default();
        Self { origin, types, offerings, addable, added, addable_elsewhere }
    }

    /// Returns the same catalogue, which knows that a setting of its node class adds a resource to nodes: `efa: Auto`.
    pub fn with_addable(mut self, resource: &str, setting: &str) -> Self {
        self.addable.insert(resource.to_owned(), setting.to_owned());
        self
    }

    /// Returns the setting of its node class that adds a resource to nodes, if there is one and the class does not have it.
    pub fn addable(&self, resource: &str) -> Option<&str> {
        self.addable.get(resource).map(String::as_str)
    }

    /// Returns the same catalogue, which knows how much of an addable resource nodes of each type would have.
    pub fn with_added(mut self, resource: &str, amounts: BTreeMap<InstanceTypeName, u64>) -> Self {
        self.added.insert(resource.to_owned(), amounts);
        self
    }

    /// Returns how much of an addable resource nodes of a type would have; `None` if that is not known.
    pub fn added(&self, resource: &str, kind: &InstanceTypeName) -> Option<u64> {
        self.added.get(resource)?.get(kind).copied()
    }

    /// Returns the same catalogue, which knows that another kind of node class gives nodes a resource. `by` is that kind and its
    /// setting, in words. Of several for one resource, the first counts.
    pub fn with_addable_elsewhere(mut self, resource: &str, by: String) -> Self {
        self.addable_elsewhere.entry(resource.to_owned()).or_insert(by);
        self
    }

    /// Returns the other kind of node class that gives nodes a resource, with its setting, if one is known.
    pub fn addable_elsewhere(&self, resource: &str) -> Option<&str> {
        self.addable_elsewhere.get(resource).map(String::as_str)
    }

    /// Returns its source.
    pub fn origin(&self) -> &CatalogueOrigin {
        &self.origin
    }

    /// Returns the instance types by name.
    pub fn types(&self) -> &BTreeMap<InstanceTypeName, InstanceType> {
        &self.types
    }

    /// Returns the offerings, sorted by id.
    pub fn offerings(&self) -> &[Offering] {
        &self.offerings
    }

    /// Returns the instance type of this name.
    pub fn instance_type(&self, name: &InstanceTypeName) -> Option<&InstanceType> {
        self.types.get(name)
    }

    /// Returns the offering with this id.
    pub fn offering(&self, id: &OfferingId) -> Option<&Offering> {
        self.offerings.binary_search_by(|offering| offering.id.cmp(id)).ok().map(|at| &self.offerings[at])
    }

    /// Returns the number of offerings without a known price.
    pub fn unknown_prices(&self) -> usize {
        self.offerings.iter().filter(|offering| offering.price.known().is_none()).count()
    }

    /// Returns the catalogue with only the offerings for which `keep` is true, and their types.
    pub fn filtered(&self, mut keep: impl FnMut(&InstanceType, &Offering) -> bool) -> Self {
        let offerings = self.offerings.iter();
        let kept = offerings.filter(|offering| keep(&self.types[&offering.id.instance_type], offering));
        self.with_offerings(kept.cloned().collect())
    }

    /// Returns the catalogue with these offerings instead of its own, and only their types. Offerings of types that it does not have
    /// are dropped.
    pub fn with_offerings(&self, offerings: Vec<Offering>) -> Self {
        let left: BTreeSet<_> = offerings.iter().map(|offering| &offering.id.instance_type).collect();
        let types = self.types.values().filter(|kind| left.contains(&kind.name)).cloned().collect();
        let origin = CatalogueOrigin::of(self.origin.source.clone(), &offerings);
        Self {
            addable: self.addable.clone(),
            added: self.added.clone(),
            addable_elsewhere: self.addable_elsewhere.clone(),
            ..Self::new(origin, types, offerings)
        }
    }

    /// Returns the same catalogue under another name.
    pub fn named(mut self, source: impl Into<String>) -> Self {
        self.origin.source = source.into();
        self
    }

    /// Returns the providers of its types.
    pub fn providers(&self) -> BTreeSet<&ProviderName> {
        self.types.values().map(|kind| &kind.provider).collect()
    }

    /// Returns this catalogue, overridden by `other`. The types of `other`, with all their offerings, replace types of
    /// the same name. The other types stay.
    pub fn overlaid_with(mut self, other: Self) -> Self {
        self.offerings.retain(|offering| !other.types.contains_key(&offering.id.instance_type));
        self.offerings.extend(other.offerings);
        self.types.extend(other.types);
        let source = format!("{} over {}", other.origin.source, self.origin.source);
        let origin = CatalogueOrigin::of(source, &self.offerings);
        Self::new(origin, self.types.into_values().collect(), self.offerings)
    }

    /// Returns the labels of a node bought from `offering`. Requirements and selectors match these.
    pub fn node_labels(&self, offering: &Offering) -> BTreeMap<String, String> {
        labels_of(&self.types[&offering.id.instance_type], offering)
    }
}
