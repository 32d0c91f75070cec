//! Packs a demand into given nodes, or proves that it does not fit.
//!
//! Where the relaxation buys whole numbers of nodes, its prices cannot say more: only a packing can.

use crate::canonical::{Content, Model, Pattern};
use crate::meter::Meter;
use crate::plan::Plan;

/// The answer of [`pack`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// The pods fit like this.
    Fits(Plan),
    /// They do not fit in any way.
    Impossible,
    /// The search gave up.
    Unknown,
}

/// The maximum number of nodes, and of pods.
const MOST_NODES: u64 = 256;
const MOST_PODS: u64 = 512;
/// The work units of a first search.
pub(crate) const UNITS: u64 = 200_000;
/// The pairs of a class and a node that are compared in one unit of work.
const PAIRS_PER_UNIT: u64 = 16;

struct Search<'a, 'm> {
    model: &'a Model,
    /// The nodes; those of one bin are neighbours.
    nodes: Vec<(u32, Content<'a>)>,
    /// The classes with their counts, large pods first.
    wanted: Vec<(u32, u64)>,
    left: u64,
    meter: &'m mut dyn FnMut(u64) -> bool,
}

impl Search<'_, '_> {
    fn more(&self, node: usize, class: u32) -> u64 {
        let (bin, content) = &self.nodes[node];
        if self.model.bins[*bin as usize].position(class).is_some() { content.more(class) } else { 0 }
    }

    /// Returns whether the nodes hold every class from the one at `at` on, each alone, of which `count` pods are left. All of them
    /// together must need no more of any resource than is left on the nodes that hold at least one of them.
    fn hopes(&self, at: usize, count: u64) -> bool {
        let mut wanted = self.wanted[at..].to_vec();
        wanted[0].1 = count;
        let mut needs = vec![0_u64; self.model.dims];
        for (class, count) in &wanted {
            for (needs, request) in needs.iter_mut().zip(&self.model.classes[*class as usize].requests) {
                *needs = needs.saturating_add(request.saturating_mul(*count));
            }
        }
        for node in 0..self.nodes.len() {
            let mut is_of_use = false;
            for (class, missing) in &mut wanted {
                let more = self.more(node, *class);
                is_of_use |= more > 0;
                *missing = missing.saturating_sub(more);
            }
            if is_of_use {
                for (needs, room) in needs.iter_mut().zip(self.nodes[node].1.room()) {
                    *needs = needs.saturating_sub(*room);
                }
            }
        }
        wanted.iter().all(|(_, missing)| *missing == 0) && needs.iter().all(|needs| *needs == 0)
    }

    /// Places `count` pods of the class at `at` on nodes from `from` on, then the classes after it. Returns `None` when it gave
    /// up.
    fn place(&mut self, at: usize, count: u64, from: usize) -> Option<bool> {
        let Some((class, _)) = self.wanted.get(at).copied() else { return Some(true) };
        if count == 0 {
            let next = self.wanted.get(at + 1).map_or(0, |(_, count)| *count);
            return self.place(at + 1, next, 0);
        }
        let work = 1 + ((self.wanted.len() - at) * self.nodes.len()) as u64 / PAIRS_PER_UNIT;
        self.left = self.left.saturating_sub(work);
        if self.left == 0 || (self.meter)(work) {
            return None;
        }
        if !self.hopes(at, count) {
            return Some(false);
        }
        for node in from..self.nodes.len() {
            // A node like the one before it, where the pod was tried, needs no second try.
            let again = node > from
                && self.nodes[node].0 == self.nodes[node - 1].0
                && self.nodes[node].1.pods() == self.nodes[node - 1].1.pods();
            if again || self.more(node, class) == 0 {
                continue;
            }
            self.nodes[node].1.add(class, 1);
            let placed = self.place(at, count - 1, node)?;
            if placed {
                return Some(true);
            }
            self.nodes[node].1.remove(class, 1);
        }
        Some(false)
    }
}

/// Packs all pods of `demand` into the nodes of `nodes`: bins with their number of nodes, each bin once. The prices of nodes, and
/// the rows, do not count. Gives up after `units` of work.
pub(crate) fn pack(
    model: &Model,
    demand: &[u64],
    nodes: &[(u32, u64)],
    units: u64,
    meter: &mut Meter<'_>,
) -> Packing {
    let all = nodes.iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
    if all > MOST_NODES || demand.iter().fold(0u64, |sum, count| sum.saturating_add(*count)) > MOST_PODS {
        return Packing::Unknown;
    }
    // The search over shared or cut GPUs has a limit, and what it cannot decide counts as not fitting. So it proves nothing.
    let is_exact = model.alternatives.iter().all(|other| other.gpus.is_none())
        && nodes.iter().all(|(bin, _)| model.bins[*bin as usize].rules.gpus.is_none());
    let mut most = vec![1u64; model.dims];
    for (bin, _) in nodes {
        for (most, room) in most.iter_mut().zip(&model.bins[*bin as usize].capacity) {
            *most = (*most).max(*room);
        }
    }
    let size = |class: u32| -> f64 {
        let requests = model.classes[class as usize].requests.iter().zip(&most);
        requests.map(|(request, most)| *request as f64 / *most as f64).fold(0.0, f64::max)
    };
    let with_pods = (0u32..).zip(demand).filter(|(_, count)| **count > 0);
    let mut wanted: Vec<(u32, u64)> = with_pods.map(|(class, count)| (class, *count)).collect();
    wanted.sort_by(|a, b| size(b.0).total_cmp(&size(a.0)).then(a.0.cmp(&b.0)));
    let each = |(bin, count): &(u32, u64)| {
        std::iter::repeat_n((*bin, Content::empty(model, *bin)), *count as usize).collect::<Vec<_>>()
    };
    let nodes = nodes.iter().flat_map(each).collect();
    let first = wanted.first().map_or(0, |(_, count)| *count);
    let mut spend = |units: u64| meter.spend(units);
    let mut search = Search { model, nodes, wanted, left: units, meter: &mut spend };
    match search.place(0, first, 0) {
        Some(false) if is_exact => Packing::Impossible,
        None | Some(false) => Packing::Unknown,
        Some(true) => {
            let mut plan = Plan::default();
            for (bin, content) in search.nodes {
                plan.add(Pattern { bin, pods: content.pods().to_vec() }, 1);
            }
            Packing::Fits(plan)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{GpuMode, GpuRequest, Gpus};
    use crate::testing::{candidate, class, problem};
    use crate::{Candidate, NeverStop, PodClass};

    fn packed(counts: [u32; 3], nodes: u64) -> (Model, Packing) {
        let sizes = [[6, 1, 0], [5, 1, 0], [3, 1, 0]];
        let classes =
            counts.iter().zip(sizes).map(|(count, size)| class("class", size, *count, &[0])).collect();
        let model = Model::new(&problem(classes, vec![candidate("node", 10_000, [11, 9, 0])]));
        let mut signal = NeverStop;
        let mut meter = Meter::new(&mut signal, u64::MAX);
        let packing = pack(&model, &model.demand(), &[(0, nodes)], UNITS, &mut meter);
        (model, packing)
    }

    #[test]
    fn pods_that_fit_are_packed_and_others_are_proven_not_to_fit() {
        // Eleven is six and five, so three of each fill three nodes, and only pods of three leave room unused.
        let (model, packing) = packed([3, 3, 0], 3);
        let Packing::Fits(plan) = packing else { panic!("{packing:?}") };
        assert_eq!(plan.placed(&model), model.demand());
        assert_eq!(packed([3, 3, 1], 3).1, Packing::Impossible);
        // Their sum would fit: 5 x 6 + 1 x 3 = 33.
        assert_eq!(packed([5, 0, 1], 3).1, Packing::Impossible);
        assert_eq!(packed([300, 300, 0], 300).1, Packing::Unknown, "too many nodes to try");
    }

    #[test]
    fn shares_of_gpus_that_the_search_cannot_decide_prove_nothing() {
        let units =
            [251, 260, 265, 267, 270, 281, 293, 299, 301, 302, 312, 313, 417, 426, 432, 433, 437, 441];
        let share = |units| PodClass {
            gpu: Some(GpuRequest::Share { units, memory_mib: 0 }),
            ..class("class", [1, 1, 0], 1, &[0])
        };
        let gpus = Some(Gpus { count: 6, memory_mib: 16, mode: GpuMode::Shared });
        let node = Candidate { gpus, ..candidate("node", 10_000, [100, 100, 0]) };
        let model = Model::new(&problem(units.map(share).to_vec(), vec![node]));
        let mut signal = NeverStop;
        let mut meter = Meter::new(&mut signal, u64::MAX);
        let packing = pack(&model, &model.demand(), &[(0, 1)], UNITS, &mut meter);
        assert_ne!(packing, Packing::Impossible, "six triples of a thousand units fit");
    }

    #[test]
    fn a_search_without_work_left_knows_nothing() {
        let classes = vec![class("class", [1, 1, 0], 3, &[0])];
        let model = Model::new(&problem(classes, vec![candidate("node", 10_000, [11, 9, 0])]));
        let packed = |units, budget| {
            let mut signal = NeverStop;
            pack(&model, &model.demand(), &[(0, 1)], units, &mut Meter::new(&mut signal, budget))
        };
        assert_eq!([packed(UNITS, 0), packed(1, u64::MAX)], [Packing::Unknown, Packing::Unknown]);
        assert!(matches!(packed(UNITS, u64::MAX), Packing::Fits(_)));
    }

    #[test]
    fn pods_that_need_more_than_all_nodes_have_are_not_tried_one_by_one() {
        // Four of them fill a node, and there are too many ways to choose these.
        let pods = (101..=120).map(|size| class("class", [size, 1, 0], 1, &[0])).collect();
        let model = Model::new(&problem(pods, vec![candidate("node", 10_000, [441, 9, 0])]));
        let mut signal = NeverStop;
        let mut meter = Meter::new(&mut signal, u64::MAX);
        // They need 2,210, and five nodes have 2,205.
        let packing = pack(&model, &model.demand(), &[(0, 5)], UNITS, &mut meter);
        assert_eq!(packing, Packing::Impossible);
        assert!(meter.spent() < 100, "{}", meter.spent());
    }
}
