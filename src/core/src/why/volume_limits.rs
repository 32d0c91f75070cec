//! Places of pods with volumes on nodes of which nobody knows how many volumes they can attach.

use std::collections::BTreeSet;

use poolwright_terms::labels::INSTANCE_TYPE;

use crate::demand::volumes;
use crate::model::plan::{Plan, Target};
use crate::model::{PodKey, Snapshot};

/// The most instance types that the note names.
const SHOWN: usize = 4;

/// A place of a pod: the node, if it has joined, and the instance type.
type Place<'a> = (Option<&'a str>, &'a str);

/// Returns a note on the instance types on which the plan places pods with volumes, although no node has reported how many volumes
/// of their CSI driver the type can attach; `None` if there are none. With `only`, the note is about this pod.
pub fn unknown_volume_limits(snapshot: &Snapshot, plan: &Plan, only: Option<&PodKey>) -> Option<String> {
    let drivers = volumes::drivers(snapshot);
    if drivers.is_empty() {
        return None;
    }
    let limits = KnownLimits::of(snapshot);
    let bought = plan.claims.iter().flat_map(|claim| {
        let place: Place<'_> = (None, claim.instance_type().as_str());
        claim.planned_pods.iter().map(move |pod| (pod, place))
    });
    let placed = plan.placements.iter().filter_map(|placed| {
        let place = place_of(snapshot, &placed.target)?;
        Some((&placed.pod, place))
    });
    let unknown = bought.chain(placed).filter(|(pod, place)| {
        only.is_none_or(|only| only == *pod)
            && drivers.get(*pod).is_some_and(|all| all.iter().any(|driver| !limits.has(driver, *place)))
    });
    let types: BTreeSet<&str> = unknown.map(|(_, (_, kind))| kind).collect();
    let named: Vec<&str> = types.iter().take(SHOWN).copied().collect();
    let more = match types.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more types"),
    };
    (!types.is_empty()).then(|| {
        format!(
            "the number of volumes that {}{more} can attach is unknown; the plan applies no limit until the CSINode of such a node \
             reports one, so pods may need more nodes than planned",
            named.join(", ")
        )
    })
}

/// Returns the place on an existing node or claim; `None` if its instance type is not known.
fn place_of<'a>(snapshot: &'a Snapshot, target: &Target) -> Option<Place<'a>> {
    match target {
        Target::Claim(name) => {
            let claim = snapshot.claims.get(name)?;
            Some((claim.node_name.as_deref(), claim.current_offering().offering.instance_type.as_str()))
        }
        Target::Node(name) => {
            let node = snapshot.nodes.get(name)?;
            Some((Some(node.name.as_str()), node.labels.get(INSTANCE_TYPE)?.as_str()))
        }
    }
}

/// The pairs of driver and node, and of driver and instance type, whose limit a node has reported.
struct KnownLimits<'a> {
    by_node: BTreeSet<(&'a str, &'a str)>,
    by_type: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> KnownLimits<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        let mut known = Self { by_node: BTreeSet::new(), by_type: BTreeSet::new() };
        for node in snapshot.node_drivers.values() {
            let kind = snapshot.nodes.get(&node.node).and_then(|node| node.labels.get(INSTANCE_TYPE));
            for driver in node.limits.keys().chain(&node.unlimited) {
                known.by_node.insert((driver.as_str(), node.node.as_str()));
                if let Some(kind) = kind {
                    known.by_type.insert((driver.as_str(), kind.as_str()));
                }
            }
        }
        known
    }

    fn has(&self, driver: &str, (node, kind): Place<'_>) -> bool {
        node.is_some_and(|node| self.by_node.contains(&(driver, node)))
            || self.by_type.contains(&(driver, kind))
    }
}
