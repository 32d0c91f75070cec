//! The costs of other methods, for comparison. Both baselines ignore existing nodes and limits, and leave out pods that fit no
//! candidate. Both respect conflicts.

use poolwright_catalog::{ResourceName, UsdPerHour};

use crate::canonical::{Parties, conflicts};
use crate::gpu::{Room, dims::Rows};
use crate::problem::{GpuRequest, Problem};
use crate::solution::Placement;

/// Returns whether one pod fits one empty node.
fn fits(requests: &[u64], capacity: &[u64]) -> bool {
    requests.iter().zip(capacity).all(|(request, room)| request <= room)
}

/// The requests of pods and the capacities of nodes, including shared and partitioned GPUs.
struct Sizes<'a> {
    problem: &'a Problem,
    /// By class.
    requests: Vec<Vec<u64>>,
    /// By candidate.
    capacity: Vec<Vec<u64>>,
    rooms: Vec<Option<Room>>,
    /// The conflicts between classes.
    parties: Parties,
    /// By class: whether its pods exclude each other from a node.
    alone: Vec<bool>,
}

impl<'a> Sizes<'a> {
    fn new(problem: &'a Problem) -> Self {
        let rooms: Vec<Option<Room>> =
            problem.candidates.iter().map(|candidate| candidate.gpus.as_ref().map(Room::of_new)).collect();
        let wishes: Vec<(GpuRequest, u64)> =
            problem.classes.iter().filter_map(|class| Some((class.gpu?, class.count.into()))).collect();
        let rows = Rows::new(&wishes, &rooms.iter().flatten().collect::<Vec<_>>());
        let conflicts = conflicts(problem);
        let lists: Vec<&[u32]> = conflicts.iter().map(Vec::as_slice).collect();
        let with = |vector: &[u64], more: Vec<u64>| vector.iter().copied().chain(more).collect();
        Self {
            problem,
            requests: problem
                .classes
                .iter()
                .map(|class| with(&class.requests, rows.request(class.gpu)))
                .collect(),
            capacity: problem
                .candidates
                .iter()
                .zip(&rooms)
                .map(|(candidate, room)| with(&candidate.capacity, rows.capacity(room.as_ref())))
                .collect(),
            rooms,
            parties: Parties::new(&lists),
            alone: (0..).zip(&lists).map(|(class, list)| list.binary_search(&class).is_ok()).collect(),
        }
    }

    /// Returns whether the node's pods, or its count of `class`, exclude one more pod of `class`.
    fn keeps_away(&self, node: &Open, class: u32) -> bool {
        let last = node.by_class.last().copied().filter(|(last, _)| *last == class);
        let at = class as usize;
        let most = if self.alone[at] { Some(1) } else { self.problem.classes[at].max_per_node };
        match last {
            // Pods of the same class arrived last, so no other class came since.
            Some((_, count)) => most.is_some_and(|most| count >= most),
            None => node.kept_away.binary_search(&self.parties.of[at]).is_ok(),
        }
    }

    /// Returns whether one pod fits one empty node.
    fn holds(&self, candidate: u32, class: usize) -> bool {
        let at = candidate as usize;
        fits(&self.requests[class], &self.capacity[at]) && self.serves(at, &[], class)
    }

    /// Returns whether the GPUs hold one more pod beside `pods`.
    fn serves(&self, candidate: usize, pods: &[(u32, u32)], class: usize) -> bool {
        let wish = |class: usize| self.problem.classes[class].gpu;
        let Some(wanted) = wish(class) else { return true };
        let Some(room) = &self.rooms[candidate] else { return false };
        // With linear rows the sums decide, except whether such a pod is served at all.
        if !pods.is_empty() && room.is_linear() {
            return true;
        }
        let others = pods
            .iter()
            .filter_map(|(other, count)| wish(*other as usize).map(|request| (request, u64::from(*count))));
        room.holds(&others.chain([(wanted, 1)]).collect::<Vec<_>>())
    }
}

/// Returns the cost of one node per pod, each the cheapest that holds its pod.
pub fn one_pod_per_node(problem: &Problem) -> UsdPerHour {
    let sizes = Sizes::new(problem);
    problem
        .classes
        .iter()
        .enumerate()
        .filter_map(|(index, class)| {
            let cheapest = class
                .candidates
                .iter()
                .filter(|candidate| sizes.holds(**candidate, index))
                .map(|candidate| problem.candidates[*candidate as usize].price)
                .min()?;
            Some(cheapest.times(u64::from(class.count)))
        })
        .sum()
}

/// A node in progress: its pods, and the candidates that still hold them.
struct Open {
    used: Vec<u64>,
    /// The candidates, as bits.
    possible: Vec<u64>,
    /// The component-wise maximum capacity of the possible candidates.
    most: Vec<u64>,
    pods: u32,
    /// Pods by class, in order of arrival.
    by_class: Vec<(u32, u32)>,
    /// The parties that its pods exclude, ascending.
    kept_away: Vec<u32>,
}

/// A node that first fit buys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bought {
    /// Index into [`Problem::candidates`].
    pub candidate: u32,
    /// Its pods, ascending by class.
    pub pods: Vec<Placement>,
}

/// Returns the cost of first fit: an autoscaler that packs without regard to prices.
///
/// It takes pods in descending order of CPU, then memory. Each pod goes to the open node with the fewest pods for which
/// some candidate still holds everything. An open node stands for all candidates that hold its pods, and becomes the
/// cheapest of them at the end. Karpenter's provisioner uses the same order and rule.
pub fn first_fit(problem: &Problem) -> UsdPerHour {
    let bought = first_fit_nodes(problem);
    bought.iter().map(|node| problem.candidates[node.candidate as usize].price).sum()
}

/// Returns the nodes of [`first_fit`] with their pods, in the order they were opened.
pub fn first_fit_nodes(problem: &Problem) -> Vec<Bought> {
    let dim = |name: &str| problem.resources.iter().position(|resource| resource.as_str() == name);
    let (cpu, memory) = (dim(ResourceName::CPU), dim(ResourceName::MEMORY));
    let amount =
        |class: u32, dim: Option<usize>| dim.map_or(0, |dim| problem.classes[class as usize].requests[dim]);
    let sizes = Sizes::new(problem);
    let mut order: Vec<u32> = (0..problem.classes.len() as u32).collect();
    order.sort_by_key(|class| {
        (std::cmp::Reverse(amount(*class, cpu)), std::cmp::Reverse(amount(*class, memory)), *class)
    });
    let words = problem.candidates.len().div_ceil(64);
    // The nodes by number of pods, oldest first among equals. A node moves up one level with each pod.
    let mut levels: Vec<Vec<usize>> = vec![Vec::new()];
    let mut nodes: Vec<Open> = Vec::new();
    for class in order {
        let wanted = &problem.classes[class as usize];
        if wanted.max_per_node == Some(0) {
            continue;
        }
        let mut admitted = vec![0u64; words];
        for &candidate in &wanted.candidates {
            if sizes.holds(candidate, class as usize) {
                admitted[candidate as usize / 64] |= 1 << (candidate % 64);
            }
        }
        if admitted.iter().all(|word| *word == 0) {
            continue;
        }
        // A node that refused a pod of this class refuses the next one too, since its room only shrinks.
        let mut refused = vec![false; nodes.len()];
        for _ in 0..wanted.count {
            let mut home = None;
            'levels: for (level, members) in levels.iter().enumerate() {
                for (position, &node) in members.iter().enumerate() {
                    if refused[node] {
                        continue;
                    }
                    if let Some(possible) = join(&sizes, &nodes[node], class, &admitted) {
                        home = Some((level, position, node, possible));
                        break 'levels;
                    }
                    refused[node] = true;
                }
            }
            let (node, possible) = if let Some((level, position, node, possible)) = home {
                levels[level].remove(position);
                (node, possible)
            } else {
                nodes.push(Open {
                    used: vec![0; sizes.requests[class as usize].len()],
                    possible: admitted.clone(),
                    most: Vec::new(),
                    pods: 0,
                    by_class: Vec::new(),
                    kept_away: Vec::new(),
                });
                refused.push(false);
                let node = nodes.len() - 1;
                match join(&sizes, &nodes[node], class, &admitted) {
                    Some(possible) => (node, possible),
                    None => continue,
                }
            };
            let open = &mut nodes[node];
            for (used, request) in open.used.iter_mut().zip(&sizes.requests[class as usize]) {
                *used += request;
            }
            open.most = vec![0; open.used.len()];
            for candidate in members(&possible) {
                for (most, room) in open.most.iter_mut().zip(&sizes.capacity[candidate]) {
                    *most = (*most).max(*room);
                }
            }
            open.possible = possible;
            open.pods += 1;
            match open.by_class.last_mut() {
                Some((last, count)) if *last == class => *count += 1,
                _ => {
                    open.by_class.push((class, 1));
                    let party = sizes.parties.of[class as usize];
                    open.kept_away.extend(&sizes.parties.apart[party as usize]);
                    open.kept_away.sort_unstable();
                    open.kept_away.dedup();
                }
            }
            let level = open.pods as usize;
            if levels.len() <= level {
                levels.resize(level + 1, Vec::new());
            }
            let at = levels[level].partition_point(|other| *other < node);
            levels[level].insert(at, node);
        }
    }
    nodes
        .into_iter()
        .filter_map(|node| {
            let cheapest = members(&node.possible).min_by_key(|at| (problem.candidates[*at].price, *at))?;
            let mut pods = node.by_class;
            pods.sort_unstable();
            Some(Bought { candidate: cheapest as u32, pods })
        })
        .collect()
}

/// Iterates over the set bits.
fn members(set: &[u64]) -> impl Iterator<Item = usize> + '_ {
    set.iter().enumerate().flat_map(|(word, bits)| {
        (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
    })
}

/// Returns the candidates that still hold the node with one more pod of `class`; `None` if there are none.
fn join(sizes: &Sizes<'_>, node: &Open, class: u32, admitted: &[u64]) -> Option<Vec<u64>> {
    if sizes.keeps_away(node, class) {
        return None;
    }
    // Most pods do not fit, and this check needs no allocation.
    let requests = &sizes.requests[class as usize];
    let too_much = node
        .used
        .iter()
        .zip(requests)
        .zip(&node.most)
        .any(|((used, more), most)| used.checked_add(*more).is_none_or(|sum| sum > *most));
    if too_much || node.possible.iter().zip(admitted).all(|(mine, theirs)| mine & theirs == 0) {
        return None;
    }
    let after: Vec<u64> = node.used.iter().zip(requests).map(|(used, request)| used + request).collect();
    let both: Vec<u64> = node.possible.iter().zip(admitted).map(|(mine, theirs)| mine & theirs).collect();
    let mut possible = vec![0u64; both.len()];
    for candidate in members(&both) {
        if fits(&after, &sizes.capacity[candidate]) && sizes.serves(candidate, &node.by_class, class as usize)
        {
            possible[candidate / 64] |= 1 << (candidate % 64);
        }
    }
    possible.iter().any(|word| *word > 0).then_some(possible)
}
