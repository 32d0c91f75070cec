//! Gangs that limits keep out, or rules on taints or labels: what all of their pods would take once these rules change.

use std::collections::BTreeMap;

use poolwright_catalog::ResourceList;
use poolwright_terms::keys::NODEPOOL_LABEL;

use crate::demand::{Members, is_there};
use crate::model::{ObjectKey, PodSpec};
use crate::plan::gang_limits::has_rules_on_others;
use crate::plan::gang_nodes::{Takes, most};
use crate::plan::gang_takes::{HoldingNode, Kind, short};
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::inputs::UnplacedInputs;
use crate::plan::unplaced::left_over::LeftOver;
use crate::rules;
use crate::rules::labels::Labels;
use crate::supply::offerings::{PoolOffering, Supply};
use crate::supply::rooms::Room;

/// The limits that have too little for a gang.
#[derive(Clone, Debug)]
pub(super) struct ShortLimits {
    /// The limits, each with what the gang takes of it at once.
    pub takes: Takes,
    /// Whether rules on taints or labels keep some of its pods out besides.
    pub by_rules: bool,
}

impl LeftOver<'_, '_> {
    /// Returns the limits that have too little for gangs that limits keep out, or rules on taints or labels, once the advice about these
    /// rules is followed. It counts the pods without a place. A gang is left out if that is not known.
    pub(super) fn limits_of_gangs(&self) -> BTreeMap<ObjectKey, ShortLimits> {
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
        let mut known: BTreeMap<BTreeMap<usize, u64>, Option<ShortLimits>> = BTreeMap::new();
        let of_gang = |(gang, (_, counts)): (ObjectKey, (Members, BTreeMap<usize, u64>))| {
            let found = known.entry(counts).or_insert_with_key(|counts| self.short_of(counts));
            Some((gang, found.clone()?))
        };
        gangs.into_iter().filter_map(of_gang).collect()
    }

    /// Returns the limits that have too little for so many pods of these classes; `None` if what helps is not known.
    fn short_of(&self, counts: &BTreeMap<usize, u64>) -> Option<ShortLimits> {
        let is_ruled_out = |index: &usize| self.outcome.limit[*index].is_none();
        let by_rules = counts.keys().any(is_ruled_out);
        let mut kinds: Vec<Kind<'_>> = Vec::new();
        for (index, count) in counts {
            let class = &self.classes.classes[*index];
            let is_apart = has_rules_on_others(class.spec);
            let is_plain = class.gpu_need.is_none()
                && class.with.is_empty()
                && class.pods.iter().all(|pod| self.assigned.pin(&pod.key).is_empty())
                && !(is_apart && by_rules)
                && self.outcome.spot_rule[*index].is_none();
            if !is_plain {
                return None;
            }
            let nodes = if is_ruled_out(index) {
                self.inputs.once_rules_change(class)
            } else {
                self.inputs.holding(class)
            };
            let requests = class.requests.clone();
            kinds.push(kind(self.inputs.supply, class.spec, requests, (*count, nodes))?);
        }
        self.fill_rooms(&mut kinds);
        let takes = short(self.inputs.limits, self.inputs.supply, &kinds)?;
        Some(ShortLimits { takes, by_rules })
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

impl UnplacedInputs<'_, '_> {
    /// Returns the nodes that hold a pod of a class as it is.
    pub(crate) fn holding(&self, class: &PodClass<'_>) -> Vec<HoldingNode> {
        let supply = self.supply;
        let of_pool = move |at: usize| {
            let holds = move |offer: &&PoolOffering| self.holds(at, offer, class);
            let offers = supply.pools[at].offers.iter().filter(holds);
            offers.filter_map(move |offer| HoldingNode::of(supply, at, offer))
        };
        (0..supply.pools.len()).flat_map(of_pool).collect()
    }
}

/// Returns so many pods that ask for the same, with the nodes that would hold them; `None` if it is not known what these take of limits.
pub(crate) fn kind<'p>(
    supply: &Supply<'_>,
    spec: &'p PodSpec,
    requests: ResourceList,
    (count, nodes): (u64, Vec<HoldingNode>),
) -> Option<Kind<'p>> {
    // A launch that must leave a choice counts with its largest alternative.
    let has_choice = |node: &HoldingNode| !supply.pools[node.at].pool.min_values.is_empty();
    if nodes.is_empty() || nodes.iter().any(has_choice) {
        return None;
    }
    Some(Kind { spec, requests, count, least: count, is_apart: has_rules_on_others(spec), nodes })
}

/// Counts the pods off that one node holds, and returns whether it holds any. Which pods it holds of those that may need nodes of their
/// own is not known.
pub(crate) fn fill(kinds: &mut [Kind<'_>], mut free: ResourceList, may: impl Fn(&Kind<'_>) -> bool) -> bool {
    let mut holds_some = false;
    for kind in kinds {
        let taken = most(&kind.requests, &free).min(kind.least);
        if taken == 0 || kind.is_apart || !may(kind) {
            continue;
        }
        holds_some = true;
        kind.least -= taken;
        for (name, wanted) in kind.requests.iter() {
            let left = free.get(name.as_str()).saturating_sub(wanted.saturating_mul(taken));
            free.set(name.clone(), left);
        }
    }
    holds_some
}
