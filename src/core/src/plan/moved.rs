//! Places of the successors of pods on disrupted nodes.

use std::collections::BTreeMap;

use crate::demand::Successor;
use crate::model::plan::{Moved, MovedTo, Plan, Target};
use crate::model::{ClaimName, PodKey};

/// Returns the place of each successor in a plan.
pub(crate) fn moved(successors: &[Successor], plan: &Plan) -> Vec<Moved> {
    let mut places: BTreeMap<&PodKey, MovedTo> = BTreeMap::new();
    if !successors.is_empty() {
        let rooms = plan.placements.iter();
        places.extend(rooms.map(|placement| (&placement.pod, MovedTo::Existing(placement.target.clone()))));
        for claim in &plan.claims {
            places.extend(claim.planned_pods.iter().map(|pod| (pod, MovedTo::New(claim.name.clone()))));
        }
        places.extend(plan.unplaced.iter().map(|left| (&left.pod, MovedTo::Unplaced(left.message.clone()))));
    }
    let to = |key: &PodKey| {
        places.get(key).cloned().unwrap_or_else(|| MovedTo::Unplaced("it is in no plan".to_owned()))
    };
    let one = |successor: &Successor| Moved {
        pod: successor.pod.clone(),
        from: successor.from.clone(),
        successor: successor.key.clone(),
        to: successor.key.as_ref().map_or(MovedTo::NoSuccessor, to),
    };
    let mut all: Vec<Moved> = successors.iter().map(one).collect();
    all.sort();
    all
}

impl Moved {
    /// Returns whether its successor is planned for this claim or node.
    pub fn goes_to(&self, name: &str) -> bool {
        match &self.to {
            MovedTo::Existing(Target::Claim(ClaimName(target)) | Target::Node(target))
            | MovedTo::New(ClaimName(target)) => target == name,
            MovedTo::Unplaced(_) | MovedTo::NoSuccessor => false,
        }
    }
}
