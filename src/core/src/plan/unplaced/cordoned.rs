//! Cordoned nodes that would hold unplaced pods if somebody uncordoned them.

use std::collections::BTreeSet;

use poolwright_catalog::ResourceList;
use poolwright_terms::Taint;
use poolwright_terms::keys::CORDON_TAINT;

use crate::model::Snapshot;
use crate::plan::pack::classes::PodClass;
use crate::rules;
use crate::rules::colocation::{Colocation, Present, join};
use crate::rules::format::count;
use crate::rules::gpus::GpuNeed;
use crate::rules::pin::Pin;
use crate::supply::rooms::{Room, Rooms};

/// The cordoned nodes, with the room that pods which were told of them leave.
#[derive(Clone)]
pub(crate) struct CordonedNodes<'r> {
    all: Vec<CordonedNode<'r>>,
}

#[derive(Clone)]
struct CordonedNode<'r> {
    name: &'r str,
    room: &'r Room<'r>,
    /// Its taints without the cordon.
    taints: Vec<Taint>,
    free: ResourceList,
    present: Present,
}

impl<'r> CordonedNodes<'r> {
    pub fn new(snapshot: &Snapshot, rooms: &'r Rooms<'r>) -> Self {
        let cordoned = rooms.all.iter().filter(|room| room.is_cordoned());
        Self { all: cordoned.filter_map(|room| CordonedNode::of(snapshot, room)).collect() }
    }

    /// Returns nodes for up to `most` pods of a class: one for each pod that only a cordon keeps off. Each call takes the room, so
    /// that no two pods are told of the same one.
    pub fn take(
        &mut self,
        class: &PodClass<'_>,
        pin: &Pin,
        colocation: &Colocation<'_>,
        most: usize,
    ) -> Vec<&'r str> {
        let mut names = Vec::new();
        for node in self.all.iter_mut().filter(|node| node.would_admit(class, pin)) {
            while names.len() < most
                && class.on_whole().fits(&node.free)
                && colocation.admits(class.profile, &node.present)
            {
                node.free.saturating_sub(class.on_whole());
                join(&mut node.present, class.profile, 1);
                names.push(node.name);
            }
        }
        names
    }
}

/// Offers to uncordon a node that has room for a pod.
pub(crate) fn for_pod(node: &str) -> String {
    format!("; or run `kubectl uncordon {node}`: that node has room for it")
}

/// Offers to uncordon nodes that have room for this many pods of a gang.
pub(crate) fn for_gang(nodes: &BTreeSet<&str>, pods: usize, gang: &str) -> String {
    let (has, pods) =
        (if nodes.len() == 1 { "that node has" } else { "these nodes have" }, count(pods, "pod"));
    let nodes: Vec<&str> = nodes.iter().copied().collect();
    format!("; or run `kubectl uncordon {}`: {has} room for {pods} of its {gang}", nodes.join(" "))
}

impl<'r> CordonedNode<'r> {
    fn of(snapshot: &Snapshot, room: &'r Room<'r>) -> Option<Self> {
        let name = room.node.filter(|name| snapshot.nodes.get(*name).is_some_and(|node| node.ready))?;
        let taints = room.taints.iter().filter(|taint| taint.key != CORDON_TAINT).cloned().collect();
        let (free, present) = (ResourceList::clone(&room.free), room.present.clone());
        Some(Self { name, room, taints, free, present })
    }

    /// Returns whether nothing but the cordon keeps pods of a class off, ignoring resources and the pods there.
    fn would_admit(&self, class: &PodClass<'_>, pin: &Pin) -> bool {
        let (spec, labels) = (class.spec, &self.room.labels);
        // Pods get only whole GPUs, and instances that are there.
        let gpus = matches!(class.gpu_need, None | Some(GpuNeed::Whole(_) | GpuNeed::Named { .. }));
        gpus && rules::check_taints(&spec.tolerations, &self.room.taints).is_err()
            && rules::admits(spec, labels, &self.taints).is_ok()
            && rules::is_host(spec, labels)
            && pin.iter().all(|wanted| rules::matches(wanted, labels))
    }
}
