//! What further pods add to the cost of a node: it is paid until the last of its pods has ended, and several pods end later than one
//! alone ([`Horizons`](crate::plan::pack::horizon::Horizons)).

use std::collections::BTreeMap;

use poolwright_catalog::{ResourceList, UsdPerHour};

use crate::model::Ends;
use crate::plan::pack::classes::PodClasses;
use crate::plan::pack::solves::candidates::{NodeCandidate, most_of};
use crate::plan::pack::solves::columns::{Column, Columns, Source};
use crate::plan::pack::solves::pass::Run;

/// What limits the number of pods of a group of lives on one node: by group, the least requests of its pods, and their number.
pub(crate) struct Sizes(BTreeMap<usize, (ResourceList, u64)>);

impl Sizes {
    pub fn new(classes: &PodClasses<'_>) -> Self {
        let mut groups: BTreeMap<usize, (ResourceList, u64)> = BTreeMap::new();
        for class in &classes.classes {
            let least_so_far = groups.entry(class.horizon).or_insert_with(|| (class.requests.clone(), 0));
            least_so_far.0 = least(&least_so_far.0, &class.requests);
            least_so_far.1 += class.pods.len() as u64;
        }
        Self(groups)
    }

    /// Returns a number of pods of a group that no node of this capacity exceeds.
    fn most(&self, group: usize, capacity: &ResourceList) -> u64 {
        self.0.get(&group).map_or(0, |(least, pods)| most_of(least, capacity).min(*pods))
    }
}

/// Returns the lesser amount of each resource.
fn least(one: &ResourceList, other: &ResourceList) -> ResourceList {
    one.iter().map(|(name, amount)| (name.clone(), amount.min(other.get(name.as_str())))).collect()
}

impl Run<'_, '_, '_, '_> {
    /// Returns what each further pod of its group adds to the cost of a column.
    pub(crate) fn of_further(
        &self,
        sizes: &Sizes,
        candidates: &[NodeCandidate],
        column: Column,
    ) -> UsdPerHour {
        let nobody = Ends::default();
        let (price, there, capacity) = match column.source {
            Source::New(at) => {
                let NodeCandidate { price, offer, .. } = &candidates[at];
                (*price, &nobody, &self.inputs.supply.capacities[offer.capacity])
            }
            Source::Room(at) => match &self.lives[at] {
                Some(room) => (room.price, &room.ends, self.free(at)),
                None => return UsdPerHour::ZERO,
            },
        };
        self.inputs.horizons.of_further(price, there, column.horizon, |group| sizes.most(group, capacity))
    }

    /// Returns what each further pod of its group adds to the cost of a column, by column; empty if times do not count.
    pub(crate) fn further(&self, candidates: &[NodeCandidate], columns: &Columns) -> Vec<UsdPerHour> {
        if !self.inputs.horizons.weighs() {
            return Vec::new();
        }
        let sizes = Sizes::new(self.inputs.classes);
        columns.all.iter().map(|column| self.of_further(&sizes, candidates, *column)).collect()
    }

    /// Returns what a pod of a class costs on each column besides the node, as pairs (index of the column, cost above zero): its charge,
    /// and what it adds by postponing the node's end. `further` is that by column, for pods of the column's group.
    pub(crate) fn besides(
        &self,
        class: usize,
        columns: &Columns,
        homes: &[u32],
        further: &[UsdPerHour],
    ) -> Vec<(u32, UsdPerHour)> {
        if self.charges.is_empty() && further.is_empty() {
            return Vec::new();
        }
        let group = self.inputs.classes.classes[class].horizon;
        let on = |home: &u32| {
            let at = *home as usize;
            let column = columns.all[at];
            let postpones = further.get(at).filter(|_| column.horizon == group).copied().unwrap_or_default();
            let cost = self.charge(class, column) + postpones;
            (cost > UsdPerHour::ZERO).then_some((*home, cost))
        };
        homes.iter().filter_map(on).collect()
    }
}
