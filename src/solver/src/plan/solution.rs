//! Turns a plan into a solution over the problem's own classes, candidates and nodes.

use std::collections::{BTreeMap, VecDeque};

use poolwright_catalog::UsdPerHour;

use super::gpus::LaidOut;
use super::{Plan, Stock};
use crate::canonical::{Model, Origin, Row};
use crate::problem::{Problem, risk};
use crate::solution::{Charges, NewNodes, Placement, Solution, Stopped, Unplaced, UnplacedReason};

impl Plan {
    /// Translates the plan into the problem's own terms. It must not place more than the demand.
    pub fn solution(&self, problem: &Problem, model: &Model, bound: u64, stopped: Stopped) -> Solution {
        let mut members: Vec<VecDeque<(u32, u64)>> =
            model.classes.iter().map(|class| class.members.iter().copied().collect()).collect();
        let owner = |class: u32| model.classes[class as usize].owner as usize;
        for (index, queue) in members.iter_mut().enumerate() {
            if owner(index as u32) != index {
                queue.clear();
            }
        }
        let mut new_nodes: BTreeMap<(u32, Vec<Placement>), u32> = BTreeMap::new();
        let mut on_existing = Vec::new();
        // The number of used existing nodes of the current bin. Patterns of one bin follow each other.
        let (mut bin_at_hand, mut used) = (u32::MAX, 0);
        for (pattern, count) in &self.nodes {
            if pattern.bin != bin_at_hand {
                (bin_at_hand, used) = (pattern.bin, 0);
            }
            let mut nodes = match &model.bins[pattern.bin as usize].origin {
                Origin::Existing(nodes) => nodes.get(used..).unwrap_or(&[]),
                Origin::Candidate(_) => &[],
            };
            used += *count as usize;
            let mut left = *count;
            while left > 0 {
                // As many equal nodes at once as the current members of every class fill.
                let whole = pattern
                    .pods
                    .iter()
                    .map(|(class, pods)| {
                        members[owner(*class)].front().map_or(0, |(_, have)| have / u64::from(*pods))
                    })
                    .min()
                    .unwrap_or(0)
                    .min(left);
                let copies = whole.max(1);
                let mut pods = Vec::new();
                for (class, need) in &pattern.pods {
                    let mut need = u64::from(*need) * copies;
                    let queue = &mut members[owner(*class)];
                    while let Some((member, have)) = queue.front_mut() {
                        let take = need.min(*have);
                        if take > 0 {
                            pods.push((*member, (take / copies) as u32));
                        }
                        *have -= take;
                        need -= take;
                        if *have > 0 || need == 0 {
                            break;
                        }
                        queue.pop_front();
                    }
                }
                // Members that are used up leave a count of zero.
                for (class, _) in &pattern.pods {
                    let queue = &mut members[owner(*class)];
                    while queue.front().is_some_and(|(_, have)| *have == 0) {
                        queue.pop_front();
                    }
                }
                pods.sort_unstable();
                match &model.bins[pattern.bin as usize].origin {
                    Origin::Candidate(candidate) => {
                        *new_nodes.entry((*candidate, pods)).or_default() += copies as u32;
                    }
                    Origin::Existing(_) => {
                        let (now, later) = nodes.split_at(copies as usize);
                        on_existing.extend(now.iter().map(|&node| (node, pods.clone())));
                        nodes = later;
                    }
                }
                left -= copies;
            }
        }
        let mut unplaced: Vec<Unplaced> = model
            .homeless
            .iter()
            .map(|(class, count, reason)| Unplaced { class: *class, count: *count as u32, reason: *reason })
            .collect();
        let stock = Stock::after(model, self);
        for (index, queue) in members.iter().enumerate().filter(|(_, queue)| !queue.is_empty()) {
            let reason = why_unplaced(model, &stock, index as u32);
            unplaced.extend(queue.iter().map(|(class, count)| Unplaced {
                class: *class,
                count: *count as u32,
                reason,
            }));
        }
        let objective = self.cost(model);
        let plain: Vec<NewNodes> = new_nodes
            .into_iter()
            .map(|((candidate, pods), count)| NewNodes { candidate, pods, count, gpus: Vec::new() })
            .collect();
        let counted = charges(problem, &plain);
        let cost =
            objective.saturating_sub(counted.risk.micros()).saturating_sub(counted.preferences.micros());
        let mut laid = LaidOut::new(problem);
        let new_nodes = laid.new_nodes(plain);
        let on_existing = laid.on_existing(on_existing);
        let bound = if laid.lost.is_empty() { bound } else { 0 };
        laid.leave_out(&mut unplaced);
        unplaced.sort();
        let charges = charges(problem, &new_nodes);
        Solution {
            commitment_use: commitment_use(model, &new_nodes),
            new_nodes,
            on_existing,
            unplaced,
            cost: UsdPerHour::from_micros(cost),
            charges,
            bound: UsdPerHour::from_micros(bound.min(objective)),
            stopped,
            ..Solution::default()
        }
    }
}

/// Returns the charges for pods on bought nodes.
pub(crate) fn charges(problem: &Problem, nodes: &[NewNodes]) -> Charges {
    let mut charges = Charges::default();
    for group in nodes {
        let offer = &problem.candidates[group.candidate as usize];
        for (class, pods) in &group.pods {
            let class = &problem.classes[*class as usize];
            let pods = u64::from(*pods) * u64::from(group.count);
            charges.risk += risk(class.loss_on(group.candidate), offer.interruptions).times(pods);
            let disliked = class.preferences.binary_search_by_key(&group.candidate, |(index, _)| *index);
            if let Ok(at) = disliked {
                charges.preferences += class.preferences[at].1.times(pods);
            }
        }
    }
    charges
}

/// Returns the use of each commitment.
fn commitment_use(model: &Model, nodes: &[NewNodes]) -> Vec<UsdPerHour> {
    let mut bought: BTreeMap<u32, u64> = BTreeMap::new();
    for group in nodes {
        *bought.entry(group.candidate).or_default() += u64::from(group.count);
    }
    let used = model.commitments.iter().map(|covering| covering.saving(&bought).1);
    used.map(UsdPerHour::from_micros).collect()
}

/// Returns what excludes one more pod of the class: the obstacle of the cheapest candidate first.
fn why_unplaced(model: &Model, stock: &Stock, class: u32) -> UnplacedReason {
    let owner = &model.classes[class as usize];
    let cells: Vec<u32> = match owner.choice.map(|choice| &model.choices[choice as usize]) {
        Some(choice) if choice.is_gang() => return UnplacedReason::GangIncomplete(choice.origin),
        Some(choice) => {
            let cells: Vec<u32> =
                choice.cells().filter(|cell| model.classes[*cell as usize].owner == class).collect();
            let bins = |cell: &u32| &model.classes[*cell as usize].bins;
            if cells.iter().flat_map(bins).any(|bin| stock.left(model, *bin) > 0) {
                return UnplacedReason::Unspreadable(choice.origin);
            }
            cells
        }
        None => vec![class],
    };
    let mut bins: Vec<u32> = cells
        .iter()
        .flat_map(|class| model.classes[*class as usize].bins.iter().copied())
        .filter(|bin| !model.bins[*bin as usize].is_existing() && model.bins[*bin as usize].covered.is_none())
        .collect();
    bins.sort_by_key(|bin| (model.bins[*bin as usize].price, *bin));
    if bins.is_empty() {
        return UnplacedReason::NothingFits;
    }
    let row = bins.iter().find_map(|bin| stock.blocking_row(model, *bin));
    match row.map(|row| model.rows[row as usize]) {
        Some(Row::Limit(limit)) => UnplacedReason::LimitReached(limit),
        Some(Row::Share(share)) => UnplacedReason::ShareReached(share),
        // A node that the commitment does not cover can still be bought.
        Some(Row::Commitment(_) | Row::Stock(_)) | None => UnplacedReason::NoMoreAvailable,
    }
}
