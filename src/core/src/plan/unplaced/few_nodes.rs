//! Topology spread over nodes that leaves pods out because there are fewer nodes than `minDomains`.

use crate::model::TopologySpreadConstraint;
use crate::plan::pack::classes::PodClass;
use crate::plan::pack::solves::packing::NewNode;
use crate::plan::unplaced::inputs::UnplacedInputs;
use crate::rules;
use crate::rules::pin::Pin;
use crate::supply::rooms::Rooms;

/// Describes a node with room for pods of a class that only `minDomains` closes to them: while there are fewer nodes, the
/// kube-scheduler takes the least count as zero.
pub(crate) fn too_few_nodes(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
    pin: &Pin,
    rooms: &Rooms<'_>,
    new: &[NewNode<'_>],
) -> Option<String> {
    let UnplacedInputs { snapshot, supply, colocation, .. } = *inputs;
    let [at] = colocation.spreads_of(class.profile) else { return None };
    let spread = &colocation.spreads[*at];
    let TopologySpreadConstraint { max_skew, min_domains: Some(wanted), .. } = *spread.rule() else {
        return None;
    };
    // The pods on nodes that are closed to new pods are not counted here.
    let open = rooms.all.iter().filter(|room| room.node.is_some()).count();
    if open < snapshot.nodes.len() {
        return None;
    }
    let counted = |node: &&NewNode<'_>| {
        let labels = supply.labels(node.pool, node.offer.offering);
        spread.includes(class.spec, &labels, &supply.pools[node.pool].pool.taints)
    };
    let there =
        || rooms.all.iter().filter(move |room| spread.includes(class.spec, &room.labels, &room.taints));
    let on_new = new.iter().filter(counted).map(|node| spread.count(&node.present));
    let counts: Vec<u64> = there().map(|room| spread.count(&room.present)).chain(on_new).collect();
    let least = counts.iter().copied().min().filter(|_| counts.len() < wanted as usize)?;
    let would_take = |count: u64| {
        let count = count + spread.weight(class.profile);
        count > spread.ceiling() && count <= least + u64::from(max_skew)
    };
    let room = there().find(|room| {
        class.on_whole().fits(&room.free)
            && rules::admits(class.spec, &room.labels, &room.taints).is_ok()
            && pin.iter().all(|one| rules::matches(one, &room.labels))
            && colocation.may_meet(class.profile, &room.present)
            && would_take(spread.count(&room.present))
    })?;
    Some(format!(
        "{} has room for it, but its topology spread over nodes allows no more there while fewer than {wanted} nodes exist (minDomains); lower minDomains",
        room.target
    ))
}
