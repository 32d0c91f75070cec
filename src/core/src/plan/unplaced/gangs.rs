//! Gangs that rules on taints or labels keep out: what all of their pods would take once these rules change.

use std::collections::BTreeMap;

use poolwright_catalog::ResourceList;
use poolwright_terms::keys::NODEPOOL_LABEL;

use crate::demand::{Members, is_there};
use crate::model::ObjectKey;
use crate::plan::gang_limits::has_rules_on_others;
use crate::plan::gang_nodes::most;
use crate::plan::gang_takes::{HoldingNode, Kind, Needs};
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::left_over::LeftOver;
use crate::rules;
use crate::rules::labels::Labels;
use crate::supply::offerings::PoolOffering;
use crate::supply::rooms::Room;

impl LeftOver<'_, '_> {
    /// Returns what gangs that rules on taints or labels keep out would take once the advice about these rules is followed. It counts the
    /// pods without a place. A gang is left out if that is not known.
    pub(super) fn needs_of_gangs(&self) -> BTreeMap<ObjectKey, Needs> {
        let mut gangs: BTreeMap<ObjectKey, (Members, BTreeMap<usize, u64>)> = BTreeMap::new();
        for (index, left) in self.outcome.left.iter().enumerate() {
            for pod in left.iter().filter(|pod| is_there(pod)) {
                let Some(gang) = pod.group_key() else { continue };
                let Some(missing) = self.missing.get(&gang).filter(|missing| missing.all > 0) else {
                    continue;
                };
                let group = self.inputs.snapshot.pod_group(&gang);
                let (open, counts) = gangs.entry(gang).or_insert_with(|| (missing.clone(), BTreeMap::new()));
                if open.meet(group, pod) {
                    *counts.entry(index).or_default() += 1;
                }
            }
        }
        // What the pods take that are lacking elsewhere is not known.
        gangs.retain(|_, (open, _)| open.all == 0);
        // Gangs of equal pods need the same.
        let mut known: BTreeMap<BTreeMap<usize, u64>, Option<Needs>> = BTreeMap::new();
        let of_gang = |(gang, (_, counts)): (ObjectKey, (Members, BTreeMap<usize, u64>))| {
            let needs = known.entry(counts).or_insert_with_key(|counts| self.needs(counts));
            Some((gang, needs.clone()?))
        };
        gangs.into_iter().filter_map(of_gang).collect()
    }

    /// Returns what so many pods of these classes would take; `None` if no rule keeps them out, or if what helps is not known.
    fn needs(&self, counts: &BTreeMap<usize, u64>) -> Option<Needs> {
        let is_ruled_out = |index: &usize| self.outcome.limit[*index].is_none();
        if !counts.keys().any(is_ruled_out) {
            return None;
        }
        let mut kinds: Vec<Kind<'_>> = Vec::new();
        for (index, count) in counts {
            let class = &self.classes.classes[*index];
            let is_plain = class.gpu_need.is_none()
                && class.with.is_empty()
                && class.pods.iter().all(|pod| self.assigned.pin(&pod.key).is_empty())
                && !has_rules_on_others(class.spec)
                && self.outcome.spot_rule[*index].is_none();
            if !is_plain {
                return None;
            }
            let nodes =
                if is_ruled_out(index) { self.inputs.once_rules_change(class) } else { self.holding(class) };
            let pools = &self.inputs.supply.pools;
            // A launch that must leave a choice counts with its largest alternative.
            if nodes.is_empty() || nodes.iter().any(|node| !pools[node.at].pool.min_values.is_empty()) {
                return None;
            }
            let requests = class.requests.clone();
            kinds.push(Kind { spec: class.spec, requests, count: *count, least: *count, nodes });
        }
        self.fill_rooms(&mut kinds);
        Needs::of(self.inputs.limits, self.inputs.supply, &kinds)
    }

    /// Returns the nodes that hold a pod of a class as it is.
    fn holding(&self, class: &PodClass<'_>) -> Vec<HoldingNode> {
        let supply = self.inputs.supply;
        let of_pool = move |at: usize| {
            let holds = move |offer: &&PoolOffering| self.inputs.holds(at, offer, class);
            let offers = supply.pools[at].offers.iter().filter(holds);
            offers.filter_map(move |offer| HoldingNode::of(supply, at, offer))
        };
        (0..supply.pools.len()).flat_map(of_pool).collect()
    }

    /// Counts the pods off that nodes which are there or planned may hold once the rules change.
    fn fill_rooms(&self, kinds: &mut [Kind<'_>]) {
        let pools = &self.inputs.supply.pools;
        let may_be_on = |kind: &Kind<'_>, room: &Room<'_>| {
            let pool = room.labels.label(NODEPOOL_LABEL);
            let is_of_pool = |node: &HoldingNode| pool == Some(pools[node.at].pool.name.0.as_str());
            !room.is_cordoned()
                && (rules::check_labels(kind.spec, &room.labels).is_ok() || kind.nodes.iter().any(is_of_pool))
        };
        for room in &self.rooms.all {
            fill(kinds, (*room.free).clone(), |kind| may_be_on(kind, room));
        }
        for new in &self.outcome.new {
            fill(kinds, new.free.clone(), |kind| kind.nodes.iter().any(|node| node.at == new.pool));
        }
    }
}

/// Counts the pods off that one node holds.
fn fill(kinds: &mut [Kind<'_>], mut free: ResourceList, may: impl Fn(&Kind<'_>) -> bool) {
    for kind in kinds {
        let taken = most(&kind.requests, &free).min(kind.least);
        if taken == 0 || !may(kind) {
            continue;
        }
        kind.least -= taken;
        for (name, wanted) in kind.requests.iter() {
            let left = free.get(name.as_str()).saturating_sub(wanted.saturating_mul(taken));
            free.set(name.clone(), left);
        }
    }
}
