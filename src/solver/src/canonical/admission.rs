//! Admission of classes to candidates and existing nodes.

use super::build::Build;
use super::fits;
use crate::bits::BitSet;

/// The admitted classes of each node, after capacity and flexibility checks of single pods.
pub(super) struct Admission {
    /// By candidate, sets of positions in `wanted`.
    pub candidates: Vec<BitSet>,
    pub existing: Vec<BitSet>,
    /// By position: the flexibility rule that excludes the class from a candidate that holds it.
    pub inflexible: Vec<Option<u32>>,
    /// By position: whether some node holds such a pod, regardless of its value of the group's topology.
    pub elsewhere: Vec<bool>,
}

/// The nodes that are compared with a class in one unit of work.
const NODES_PER_UNIT: usize = 16;

impl Admission {
    /// Admits all classes. Returns `None` when `stop`, which gets units of work, returns true.
    pub fn new(build: &Build<'_>, stop: &mut dyn FnMut(u64) -> bool) -> Option<Self> {
        let problem = build.problem;
        let size = build.wanted.len();
        let mut made = Self {
            candidates: vec![BitSet::new(size); problem.candidates.len()],
            existing: vec![BitSet::new(size); problem.existing.len()],
            inflexible: vec![None; size],
            elsewhere: vec![false; size],
        };
        for (position, &index) in build.wanted.iter().enumerate() {
            let class = &problem.classes[index];
            if stop(1 + ((class.candidates.len() + class.existing.len()) / NODES_PER_UNIT) as u64) {
                return None;
            }
            if class.max_per_node == Some(0) {
                continue;
            }
            let alternatives = build.alternatives(index);
            let unmet: Vec<bool> = build
                .flexible
                .iter()
                .map(|flexible| flexible.values_with(&alternatives) < flexible.at_least)
                .collect();
            for &candidate in &class.candidates {
                let at = candidate as usize;
                let offer = &problem.candidates[at];
                if offer.max_nodes == Some(0)
                    || !fits(&offer.capacity, &class.requests)
                    || !Build::serves(build.rooms[0][at].as_ref(), class)
                {
                    continue;
                }
                made.elsewhere[position] = true;
                if !build.groups.admits(position, &offer.domains) {
                    continue;
                }
                match build.must_flex[at].iter().find(|rule| unmet[**rule as usize]) {
                    Some(rule) => made.inflexible[position] = Some(*rule),
                    None => made.candidates[at].insert(position),
                }
            }
            for &node in &class.existing {
                let there = &problem.existing[node as usize];
                if fits(&there.free, &class.requests)
                    && Build::serves(build.rooms[1][node as usize].as_ref(), class)
                {
                    made.elsewhere[position] = true;
                    if build.groups.admits(position, &there.domains) {
                        made.existing[node as usize].insert(position);
                    }
                }
            }
        }
        Some(made)
    }
}
