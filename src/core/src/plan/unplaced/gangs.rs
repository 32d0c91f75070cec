//! Gangs that limits keep out, or rules on taints or labels: what all of their pods would take once these rules change.

use std::collections::BTreeMap;

use poolwright_catalog::{ResourceList, ResourceName};
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
use crate::rules::gpus::GpuNeed;
use crate::rules::labels::Labels;
use crate::supply::limits::cut;
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
            // What of their GPUs helps besides a rule is not known.
            let is_plain = !(class.gpu_need.is_some() && by_rules)
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
            let supply = self.inputs.supply;
            let (requests, nodes) = with_instances(supply, class, nodes)?;
            let found = kind(supply, class.spec, requests, (*count, nodes))?;
            kinds.push(Kind { need: class.gpu_need.as_ref(), ..found });
        }
        // How pods of several kinds share the GPUs of a node that are cut is not known.
        let uses_gpus =
            |kind: &&Kind<'_>| kind.need.is_some() || kind.requests.get(ResourceName::NVIDIA_GPU) > 0;
        if kinds.iter().any(|kind| kind.need.is_some()) && kinds.iter().filter(uses_gpus).count() > 1 {
            return None;
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
            fill(kinds, &room.free, |kind| may_be_on(kind, room));
        }
        for new in &self.outcome.new {
            fill(kinds, &new.free, |kind| kind.nodes.iter().any(|node| node.at == new.pool));
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

/// Returns what a pod of a class asks for with the MIG instances that it names, and the nodes with as many of these as their GPUs can be
/// cut into; `None` if it asks for GPUs in another way, because how pods share these is chosen with the nodes.
fn with_instances(
    supply: &Supply<'_>,
    class: &PodClass<'_>,
    mut nodes: Vec<HoldingNode>,
) -> Option<(ResourceList, Vec<HoldingNode>)> {
    let mut requests = class.requests.clone();
    match &class.gpu_need {
        None => {}
        Some(GpuNeed::Named { resource, count, .. }) => {
            requests.set(resource.clone(), u64::from(*count));
            for node in &mut nodes {
                let kind = supply.instance_type(node.at, node.offering);
                node.room.set(resource.clone(), cut::most(kind, resource.as_str()));
            }
        }
        Some(_) => return None,
    }
    Some((requests, nodes))
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
    let is_apart = has_rules_on_others(spec);
    Some(Kind { spec, requests, need: None, count, least: count, is_apart, nodes })
}

/// Counts the pods off that one node holds, and returns whether it holds any. Which pods it holds of those that may need nodes of their
/// own is not known.
pub(crate) fn fill(kinds: &mut [Kind<'_>], free: &ResourceList, may: impl Fn(&Kind<'_>) -> bool) -> bool {
    // Most nodes hold none, and there may be many.
    let mut left: Option<ResourceList> = None;
    for kind in kinds {
        let taken = most(&kind.requests, left.as_ref().unwrap_or(free)).min(kind.least);
        if taken == 0 || kind.is_apart || !may(kind) {
            continue;
        }
        kind.least -= taken;
        let room = left.get_or_insert_with(|| free.clone());
        for (name, wanted) in kind.requests.iter() {
            let rest = room.get(name.as_str()).saturating_sub(wanted.saturating_mul(taken));
            room.set(name.clone(), rest);
        }
    }
    left.is_some()
}
