//! DaemonSets: the resources that their pods take on each node.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_terms::Taint;

use crate::model::{DaemonSet, OnNode, Snapshot};
use crate::rules;
use crate::rules::colocation::{Colocation, Present, join};
use crate::rules::discovery::Discovered;
use crate::rules::format::{list, quantity};
use crate::rules::labels::Labels;

/// The cluster's DaemonSets.
#[derive(Clone, Debug)]
pub(crate) struct DaemonSets<'a> {
    sets: Vec<&'a DaemonSet>,
    /// The prefix of pod names, by DaemonSet.
    prefixes: Vec<String>,
}

impl<'a> DaemonSets<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        Self::of(snapshot.daemonsets.values().map(Arc::as_ref).collect())
    }

    fn of(sets: Vec<&'a DaemonSet>) -> Self {
        let prefixes = sets.iter().map(|set| set.pod_prefix()).collect();
        Self { sets, prefixes }
    }

    /// Selects the DaemonSets that tolerate these taints. Labels are not checked.
    pub fn tolerating(&self, taints: &[Taint]) -> Self {
        let tolerates =
            |set: &&&DaemonSet| rules::check_daemonset_taints(&set.spec.tolerations, taints).is_ok();
        Self::of(self.sets.iter().filter(tolerates).copied().collect())
    }

    /// Returns the indices of the DaemonSets whose pods run on a node with these labels and those of GPU discovery, ascending.
    pub fn landing(&self, labels: &impl Labels) -> Vec<u16> {
        // These labels come late, or never if nobody runs such software. Sets that exclude them land before.
        let later = Discovered(labels);
        let lands = |index: &usize| {
            let spec = &self.sets[*index].spec;
            rules::check_labels(spec, labels).is_ok() || rules::check_labels(spec, &later).is_ok()
        };
        (0..self.sets.len()).filter(lands).map(|index| index as u16).collect()
    }

    /// Returns the sum of the requests of these DaemonSets.
    pub fn requests(&self, landing: &[u16]) -> ResourceList {
        let mut sum = ResourceList::new();
        for index in landing {
            sum.add(&self.sets[usize::from(*index)].spec.requests);
        }
        sum
    }

    /// Returns the DaemonSets with these indices.
    pub fn sets(&self, landing: &[u16]) -> impl Iterator<Item = &'a DaemonSet> {
        landing.iter().map(|index| self.sets[usize::from(*index)])
    }

    /// Describes the DaemonSets among these that take so much of a resource that pods lack this amount of it; `None` if the pods
    /// would lack some without them too.
    pub fn in_the_way(&self, landing: &[u16], resource: &ResourceName, lacking: u64) -> Option<String> {
        let takes = |set: &'a DaemonSet| (set.spec.requests.get(resource.as_str()), &set.key);
        let mut takers: Vec<_> = self.sets(landing).map(takes).filter(|(taken, _)| *taken > 0).collect();
        takers.sort_by_key(|(taken, key)| (Reverse(*taken), *key));
        let all = takers.iter().map(|(taken, _)| *taken).fold(0, u64::saturating_add);
        if lacking == 0 || all < lacking {
            return None;
        }
        let all = quantity(resource, all);
        if let [(_, only)] = takers.as_slice() {
            return Some(format!("DaemonSet {only} takes {all}"));
        }
        let named: Vec<String> =
            takers.iter().map(|(taken, key)| format!("{key} {}", quantity(resource, *taken))).collect();
        Some(format!("DaemonSets take {all} ({})", list(&named, 3)))
    }

    /// Returns the pods of these DaemonSets, as colocation rules count them.
    pub fn present(&self, landing: &[u16], colocation: &Colocation<'_>) -> Present {
        let mut present = Present::new();
        for set in self.sets(landing) {
            join(&mut present, colocation.of_daemonset(&set.key), 1);
        }
        present
    }

    /// Returns the indices of the DaemonSets whose pods will run on a node that is not ready yet and are not there. Labels of GPU
    /// discovery come after the node has joined, so pods count that run there with or without them.
    pub fn arriving(&self, labels: &impl Labels, taints: &[Taint], there: Option<&OnNode>) -> Vec<u16> {
        let (now, later) =
            (self.outstanding(labels, taints, there), self.outstanding(&Discovered(labels), taints, there));
        now.into_iter().chain(later).collect::<BTreeSet<u16>>().into_iter().collect()
    }

    /// Returns the indices of the DaemonSets whose pods run on this node, with the labels that it has, but are not there yet.
    pub fn outstanding(&self, labels: &impl Labels, taints: &[Taint], there: Option<&OnNode>) -> Vec<u16> {
        let there = there.map_or(&[][..], |there| there.daemons.as_slice());
        let comes = |index: &usize| {
            let (set, prefix) = (self.sets[*index], &self.prefixes[*index]);
            !there.iter().any(|pod| set.has_made(pod, prefix))
                && rules::daemonset_lands(&set.spec, labels, taints)
        };
        (0..self.sets.len()).filter(comes).map(|index| index as u16).collect()
    }
}
