//! What places are chosen from, and what turned out meanwhile.

use crate::model::plan::PlannedClaim;
use crate::model::{ObjectKey, PlanOptions, Pod, PodKey, Snapshot};
use crate::plan::pending::PendingPod;
use crate::plan::place::topology::relations::Relations;
use crate::rules::colocation::Colocation;
use crate::rules::pin::Pin;
use crate::supply::daemonsets::DaemonSets;
use crate::supply::offerings::Supply;
use crate::supply::rooms::Rooms;
use std::collections::{BTreeMap, BTreeSet};

/// What has turned out meanwhile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lessons {
    /// Pins that came to nothing, by pod: nothing more could be had there, and why.
    pub bans: BTreeMap<PodKey, BTreeMap<Pin, String>>,
    /// Values that nodes of a plan had, by key: they count also where no pod was pinned to them.
    pub opened: BTreeSet<(String, String)>,
    /// Pods that were planned before and cannot stay there.
    pub unsettled: BTreeSet<PodKey>,
    /// Pods for which the rules could not be kept.
    pub given_up: BTreeMap<PodKey, String>,
    /// Pods that had no place when theirs was chosen after others of equal priority: they choose first now.
    pub first: BTreeSet<PodKey>,
    /// Gangs that have no room as a whole, by PodGroup, and why.
    pub gangs_left_out: BTreeMap<ObjectKey, String>,
}

impl Lessons {
    /// Notes the values that the nodes of a plan have; whether any is new.
    pub fn open(&mut self, relations: &Relations<'_>, snapshot: &Snapshot, claims: &[PlannedClaim]) -> bool {
        let before = self.opened.len();
        for claim in claims {
            let Some(Ok(catalogue)) = snapshot.catalogues.get(&claim.node_class) else { continue };
            let Some(offering) = catalogue.offering(claim.offering()) else { continue };
            let decided = catalogue.node_labels(offering);
            for key in &relations.keys {
                let value = decided.get(*key).or_else(|| claim.labels.get(*key));
                self.opened.extend(value.map(|value| ((*key).to_owned(), value.clone())));
            }
        }
        self.opened.len() > before
    }
}

/// What places are chosen from.
pub(crate) struct TopologyInputs<'s, 'a> {
    pub snapshot: &'a Snapshot,
    pub relations: &'s Relations<'a>,
    pub rooms: &'s Rooms<'a>,
    pub daemons: &'s DaemonSets<'a>,
    pub colocation: &'s Colocation<'a>,
    /// Pods that are planned on rooms already.
    pub settled: &'s [(usize, &'a Pod)],
    pub open: &'s [PendingPod<'a>],
    pub supply: &'s Supply<'a>,
    pub options: &'s PlanOptions,
    pub lessons: &'s Lessons,
}
