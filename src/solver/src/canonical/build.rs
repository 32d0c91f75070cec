//! Builds the model from a problem.

use std::collections::BTreeMap;

use super::admission::Admission;
use super::conflicts::Conflicts;
use super::content::Content;
use super::groups::{Groups, Key};
use super::meetings::Meetings;
use super::rows::Rows;
use super::sets::{Numbered, Sets};
use super::{Alternative, Bin, Class, Flexible, Model, Origin, Rules, UNLIMITED, fit_count, fits};
use crate::bits::BitSet;
use crate::choice::Choice;
use crate::gpu::{self, Room};
use crate::problem::{GpuRequest, GpuState, Problem, risk};
use crate::solution::UnplacedReason;
use crate::stages::{SearchStage, Stages};

/// The problem's classes that no bin holds, with their counts and the reason.
type Homeless = Vec<(u32, u64, UnplacedReason)>;

/// A class and the group it is placed with.
type Keyed = (Class, Option<Key>);

/// The key by which classes are merged.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    requests: Vec<u64>,
    /// The number of its set of bins.
    homes: u32,
    priority: i32,
    value: u64,
    /// The group it is placed with.
    group: Option<Key>,
    /// The ceiling per node, with the class it applies to. It counts pods of that class alone.
    ceiling: Option<(u32, usize)>,
    /// The number of its set of conflicting classes of the problem. The set contains the class itself if its pods exclude
    /// each other from a node.
    conflicts: u32,
    /// By bin; empty when all are zero.
    penalties: Vec<u64>,
    alternatives: Vec<u32>,
    gpu: Option<GpuRequest>,
}

/// Returns the cost of one pod of the class on a candidate besides the node.
pub(crate) fn penalty(problem: &Problem, class: usize, candidate: u32) -> u64 {
    let (class, offer) = (&problem.classes[class], &problem.candidates[candidate as usize]);
    let disliked = class.preferences.binary_search_by_key(&candidate, |(index, _)| *index);
    let disliked = disliked.map_or(0, |at| class.preferences[at].1.micros());
    risk(class.loss_on(candidate), offer.interruptions).micros().saturating_add(disliked)
}

/// The intermediate state between a problem and its model.
pub(super) struct Build<'a> {
    pub(super) problem: &'a Problem,
    /// The resources that some pod requests.
    pub(super) dims: Vec<usize>,
    /// The classes with pods. A class that is divided over the values of a topology appears once for each value.
    pub(super) wanted: Vec<usize>,
    pub(super) groups: Groups,
    pub(super) rows: Rows,
    pub(super) flexible: Vec<Flexible>,
    pub(super) alternatives: Vec<Alternative>,
    /// By candidate: the flexibility rules that apply to it, as indices into `flexible`.
    pub(super) must_flex: Vec<Vec<u32>>,
    /// Shared or partitioned GPUs, by candidate and by existing node.
    pub(super) rooms: [Vec<Option<Room>>; 2],
    /// The rows that GPUs add to the resources.
    pub(super) gpu_rows: gpu::dims::Rows,
}

impl<'a> Build<'a> {
    fn new(problem: &'a Problem) -> Self {
        let (groups, wanted) = Groups::new(problem);
        let mut build = Self {
            problem,
            dims: (0..problem.resources.len())
                .filter(|&dim| problem.classes.iter().any(|class| class.count > 0 && class.requests[dim] > 0))
                .collect(),
            wanted,
            groups,
            rows: Rows::new(problem),
            flexible: Vec::new(),
            alternatives: Vec::new(),
            must_flex: vec![Vec::new(); problem.candidates.len()],
            rooms: [
                problem.candidates.iter().map(|offer| offer.gpus.as_ref().map(Room::of_new)).collect(),
                problem
                    .existing
                    .iter()
                    .map(|node| (!node.gpus.is_empty()).then(|| Room::of_existing(&node.gpus)))
                    .collect(),
            ],
            gpu_rows: gpu::dims::Rows::default(),
        };
        let mut requests: BTreeMap<GpuRequest, u64> = BTreeMap::new();
        for &index in &build.wanted {
            if let Some(request) = problem.classes[index].gpu {
                *requests.entry(request).or_default() += u64::from(problem.classes[index].count);
            }
        }
        let requests: Vec<(GpuRequest, u64)> = requests.into_iter().collect();
        let rooms: Vec<&Room> = build.rooms.iter().flatten().flatten().collect();
        build.gpu_rows = gpu::dims::Rows::new(&requests, &rooms);
        build.flexibility();
        build
    }

    fn project(&self, vector: &[u64]) -> Vec<u64> {
        self.dims.iter().map(|&dim| vector[dim]).collect()
    }

    /// Returns the requests of one pod, including GPUs.
    fn requests(&self, class: usize) -> Vec<u64> {
        let class = &self.problem.classes[class];
        let mut requests = self.project(&class.requests);
        requests.extend(self.gpu_rows.request(class.gpu));
        requests
    }

    /// Returns the capacity of a new node, including GPUs.
    fn capacity(&self, candidate: usize) -> Vec<u64> {
        let mut capacity = self.project(&self.problem.candidates[candidate].capacity);
        capacity.extend(self.gpu_rows.capacity(self.rooms[0][candidate].as_ref()));
        capacity
    }

    /// Returns the free room of an existing node, including GPUs.
    fn free(&self, node: usize) -> Vec<u64> {
        let mut free = self.project(&self.problem.existing[node].free);
        free.extend(self.gpu_rows.capacity(self.rooms[1][node].as_ref()));
        free
    }

    /// Returns `room` if nodes that admit `classes` need a GPU rule beyond the linear rows.
    fn ruling(&self, room: Option<&Room>, classes: &BitSet) -> Option<Room> {
        let asked = |(position, &class): (usize, &usize)| {
            classes.contains(position) && self.problem.classes[class].gpu.is_some()
        };
        room.filter(|room| !room.is_linear() && self.wanted.iter().enumerate().any(asked)).cloned()
    }

    /// Returns whether the GPUs alone can serve one pod of the class.
    pub(super) fn serves(room: Option<&Room>, class: &crate::problem::PodClass) -> bool {
        class.gpu.is_none_or(|request| room.is_some_and(|room| room.holds(&[(request, 1)])))
    }

    /// Returns a node's capacity for pods that must also fit alternatives of many values.
    fn flexible_capacity(&self, candidate: usize) -> Vec<u64> {
        let mut capacity = self.capacity(candidate);
        for rule in &self.must_flex[candidate] {
            let flexible = &self.flexible[*rule as usize];
            let Some(last) = flexible.at_least.checked_sub(1) else { continue };
            for (dim, capacity) in capacity.iter_mut().enumerate() {
                let room = |number: &u32| self.alternatives[*number as usize].capacity[dim];
                let mut each: Vec<u64> = flexible
                    .values
                    .iter()
                    .map(|numbers| numbers.iter().map(room).max().unwrap_or(0))
                    .collect();
                each.sort_unstable_by_key(|room| std::cmp::Reverse(*room));
                *capacity = (*capacity).min(each.get(last).copied().unwrap_or(0));
            }
        }
        capacity
    }

    fn flexibility(&mut self) {
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        for (rule, flexibility) in self.problem.flexibility.iter().enumerate() {
            let mut values: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for &index in &flexibility.candidates {
                let candidate = &self.problem.candidates[index as usize];
                self.must_flex[index as usize].push(rule as u32);
                let domain =
                    candidate.domains.binary_search_by_key(&flexibility.topology, |(topology, _)| *topology);
                let Some(at) = domain.ok().filter(|_| candidate.max_nodes != Some(0)) else { continue };
                let number = *numbers.entry(index).or_insert_with(|| {
                    let capacity = self.capacity(index as usize);
                    let gpus = self.rooms[0][index as usize].clone().filter(|room| !room.is_linear());
                    self.alternatives.push(Alternative { candidate: index, capacity, gpus });
                    self.alternatives.len() as u32 - 1
                });
                values.entry(candidate.domains[at].1).or_default().push(number);
            }
            // Large nodes first: they settle most checks.
            let size = |number: &u32| -> u32 {
                self.alternatives[*number as usize]
                    .capacity
                    .iter()
                    .map(|room| room.checked_ilog2().unwrap_or(0))
                    .sum()
            };
            let mut values: Vec<Vec<u32>> = values.into_values().collect();
            values.sort_by_key(|numbers| std::cmp::Reverse(numbers.iter().map(size).max()));
            self.flexible.push(Flexible { at_least: flexibility.at_least as usize, values });
        }
    }

    /// Returns the alternatives that hold a pod of the class, ascending.
    pub(super) fn alternatives(&self, class: usize) -> Vec<u32> {
        let class = &self.problem.classes[class];
        (0..self.alternatives.len() as u32)
            .filter(|number| {
                let candidate = self.alternatives[*number as usize].candidate;
                class.candidates.binary_search(&candidate).is_ok()
                    && fits(&self.problem.candidates[candidate as usize].capacity, &class.requests)
                    && Self::serves(self.rooms[0][candidate as usize].as_ref(), class)
            })
            .collect()
    }

    /// Returns whether candidate `a` costs no more than `b` and holds no less. This is a quick check before
    /// [`Self::dominates`].
    fn is_cheaper_and_larger(&self, a: usize, b: usize) -> bool {
        let (one, other) = (&self.problem.candidates[a], &self.problem.candidates[b]);
        one.price <= other.price
            && one.max_nodes.is_none()
            && self.dims.iter().all(|&dim| one.capacity[dim] >= other.capacity[dim])
    }

    /// Returns whether `a` can replace `b` wherever `b` is bought, for pods of `classes` (those that `b` admits).
    fn dominates(&self, a: usize, b: usize, classes: &BitSet) -> bool {
        let (one, other) = (&self.problem.candidates[a], &self.problem.candidates[b]);
        if !self.is_cheaper_and_larger(a, b) || !Room::covers_new(one.gpus.as_ref(), other.gpus.as_ref()) {
            return false;
        }
        let amount = |uses: &[(u32, i128)], row: u32| {
            uses.iter().find(|(index, _)| *index == row).map_or(0, |(_, amount)| *amount)
        };
        let takes_no_more = |a: &[(u32, i128)], b: &[(u32, i128)]| {
            a.iter().all(|(row, used)| *used <= amount(b, *row))
                && b.iter().all(|(row, used)| *used >= amount(a, *row))
        };
        let covered = match (&self.rows.twins[a], &self.rows.twins[b]) {
            (_, None) => true,
            (None, Some(_)) => one.price.micros() == 0,
            (Some((_, a)), Some((_, b))) => takes_no_more(a, b),
        };
        covered
            && takes_no_more(&self.rows.uses[a], &self.rows.uses[b])
            && self.must_flex[a].iter().all(|rule| self.must_flex[b].contains(rule))
            && self.wanted.iter().enumerate().all(|(position, &class)| {
                !classes.contains(position)
                    || penalty(self.problem, class, a as u32) <= penalty(self.problem, class, b as u32)
            })
    }
}

/// The merged classes, the parties that keep apart, the choices, and the classes that no bin holds.
type Merged = (Vec<Class>, Vec<Vec<u32>>, Vec<Choice>, Homeless);

/// The candidates that are compared in one unit of work, the bins that are looked up, and the classes that are tried in one.
const COMPARED_PER_UNIT: usize = 64;
const BINS_PER_UNIT: usize = 128;
const CLASSES_PER_UNIT: usize = 16;

/// The grouping key of existing nodes: admitted classes, free room, GPUs.
type Like<'a> = (BitSet, Vec<u64>, &'a [GpuState]);

impl Model {
    /// Builds the canonical problem. `problem` must be valid.
    #[cfg(test)]
    pub fn new(problem: &Problem) -> Self {
        Self::until(problem, Stages::default(), &mut |_| false).expect("nothing stops it")
    }

    /// Builds the canonical problem for a search with `stages`. `problem` must be valid. Returns `None` when `stop`, which gets units
    /// of work, returns true.
    pub fn until(problem: &Problem, stages: Stages, stop: &mut dyn FnMut(u64) -> bool) -> Option<Self> {
        let build = Build::new(problem);
        let admission = Admission::new(&build, stop)?;
        let (mut bins, admits) = build.bins(&admission, stages.has(SearchStage::Dominance), stop)?;
        let (classes, apart, choices, homeless) = build.classes(&admission, &bins, &admits, stop)?;
        for (index, class) in classes.iter().enumerate() {
            for &bin in &class.bins {
                bins[bin as usize].classes.push(index as u32);
            }
        }
        for bin in &mut bins {
            let mut parties: BTreeMap<u32, usize> = BTreeMap::new();
            for class in &bin.classes {
                *parties.entry(classes[*class as usize].party).or_default() += 1;
            }
            // Conflicts within one class are in `per_node`.
            bin.rules.conflicts = parties.iter().any(|(party, count)| {
                let mut others = apart[*party as usize].iter();
                others.any(|other| if other == party { *count > 1 } else { parties.contains_key(other) })
            });
            if let Origin::Candidate(candidate) = bin.origin {
                let penalties: Vec<u64> = bin
                    .classes
                    .iter()
                    .map(|class| penalty(problem, classes[*class as usize].members[0].0 as usize, candidate))
                    .collect();
                if penalties.iter().any(|penalty| *penalty > 0) {
                    bin.penalties = penalties;
                }
            }
        }
        let mut model = Self {
            dims: build.dims.len() + build.gpu_rows.len(),
            packed: build.dims.iter().map(|_| false).chain(build.gpu_rows.packed()).collect(),
            uniform: build.rooms.iter().flatten().flatten().all(Room::is_uniform),
            classes,
            apart,
            bins,
            limits: build.rows.limits,
            rows: build.rows.kinds,
            flexible: build.flexible,
            alternatives: build.alternatives,
            commitments: build.rows.commitments,
            choices,
            homeless,
            stages,
        };
        let totals = model.totals();
        for (index, demand) in model.most(&totals).into_iter().enumerate() {
            model.classes[index].demand = demand;
        }
        for index in 0..model.bins.len() {
            if stop(1 + (model.bins[index].classes.len() / CLASSES_PER_UNIT) as u64) {
                return None;
            }
            let empty = Content::empty(&model, index as u32);
            let holds = model.bins[index].classes.iter().map(|class| empty.more(*class)).collect();
            model.bins[index].holds = holds;
        }
        Some(model)
    }
}

impl Build<'_> {
    /// Returns the bins without their classes, and the positions in `wanted` that each admits; `None` when `stop` returns true.
    fn bins(
        &self,
        admission: &Admission,
        dominance: bool,
        stop: &mut dyn FnMut(u64) -> bool,
    ) -> Option<(Vec<Bin>, Vec<BitSet>)> {
        let admitted = &admission.candidates;
        let candidates: Vec<usize> =
            (0..admitted.len()).filter(|&index| !admitted[index].is_empty()).collect();
        let is_dominated = |b: usize| {
            candidates.iter().any(|&a| {
                dominance
                    && a != b
                    && self.is_cheaper_and_larger(a, b)
                    && admitted[b].is_subset(&admitted[a])
                    && self.dominates(a, b, &admitted[b])
                    // If two candidates dominate each other, the first stays.
                    && (a < b
                        || !(admitted[a].is_subset(&admitted[b]) && self.dominates(b, a, &admitted[a])))
            })
        };

        let mut groups: BTreeMap<Like<'_>, Vec<u32>> = BTreeMap::new();
        for (node, set) in admission.existing.iter().enumerate() {
            if !set.is_empty() {
                let gpus = self.problem.existing[node].gpus.as_slice();
                groups.entry((set.clone(), self.free(node), gpus)).or_default().push(node as u32);
            }
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by(|a, b| a.1.cmp(&b.1));

        let mut bins = Vec::with_capacity(groups.len() + candidates.len());
        let mut admits = Vec::with_capacity(groups.len() + candidates.len());
        for ((set, free, _), nodes) in groups {
            let room = nodes.first().and_then(|node| self.rooms[1][*node as usize].as_ref());
            bins.push(Bin {
                capacity: free,
                price: 0,
                list_price: 0,
                available: nodes.len() as u64,
                limit_use: Vec::new(),
                classes: Vec::new(),
                holds: Vec::new(),
                penalties: Vec::new(),
                sharing: room.and_then(Room::untouched),
                rules: Rules { gpus: self.ruling(room, &set), ..Rules::default() },
                covered: None,
                origin: Origin::Existing(nodes),
            });
            admits.push(set);
        }
        for index in candidates.iter().copied() {
            if stop(1 + (candidates.len() / COMPARED_PER_UNIT) as u64) {
                return None;
            }
            if is_dominated(index) {
                continue;
            }
            let candidate = &self.problem.candidates[index];
            let twin = &self.rows.twins[index];
            let own = Bin {
                capacity: self.flexible_capacity(index),
                price: candidate.price.micros(),
                list_price: candidate.price.micros(),
                // Twins share their stock through a row.
                available: candidate.max_nodes.filter(|_| twin.is_none()).map_or(UNLIMITED, u64::from),
                limit_use: self.rows.uses[index].clone(),
                classes: Vec::new(),
                holds: Vec::new(),
                penalties: Vec::new(),
                sharing: self.rooms[0][index].as_ref().and_then(Room::untouched),
                rules: Rules {
                    conflicts: false,
                    flexible: self.must_flex[index].clone(),
                    gpus: self.ruling(self.rooms[0][index].as_ref(), &admission.candidates[index]),
                },
                covered: None,
                origin: Origin::Candidate(index as u32),
            };
            let covered = twin.as_ref().map(|(commitment, uses)| Bin {
                price: 0,
                limit_use: uses.clone(),
                covered: Some(*commitment),
                ..own.clone()
            });
            for bin in std::iter::once(own).chain(covered) {
                bins.push(bin);
                admits.push(admission.candidates[index].clone());
            }
        }
        Some((bins, admits))
    }

    /// Merges equal classes. Returns `None` when `stop` returns true.
    fn classes(
        &self,
        admission: &Admission,
        bins: &[Bin],
        admits: &[BitSet],
        stop: &mut dyn FnMut(u64) -> bool,
    ) -> Option<Merged> {
        let conflicts = Conflicts::of_waiting(self.problem);
        let mut homes: Vec<Vec<u32>> = Vec::with_capacity(self.wanted.len());
        for at in 0..self.wanted.len() {
            if stop(1 + (bins.len() / BINS_PER_UNIT) as u64) {
                return None;
            }
            let home = (0..bins.len()).filter(|&bin| admits[bin].contains(at)).map(|bin| bin as u32);
            homes.push(home.collect());
        }
        let (dropped, without) = self.groups.settle(&self.wanted, &homes, &admission.elsewhere);
        let homeless = without
            .into_iter()
            .map(|(index, reason)| {
                let mut rules = (0..self.wanted.len()).filter(|at| self.wanted[*at] == index);
                let inflexible =
                    rules.find_map(|at| admission.inflexible[at]).map(UnplacedReason::Inflexible);
                let reason = inflexible.or(reason).unwrap_or(UnplacedReason::NothingFits);
                (index as u32, u64::from(self.problem.classes[index].count), reason)
            })
            .collect();
        let mut merged: BTreeMap<Kind, Vec<(u32, u64)>> = BTreeMap::new();
        // Sets are long but few, so kinds compare their numbers.
        let mut sets = Sets::default();
        for (position, &index) in self.wanted.iter().enumerate() {
            if dropped[position] {
                continue;
            }
            let class = &self.problem.classes[index];
            let requests = self.requests(index);
            let homes = &homes[position];
            if stop(1 + (homes.len() / BINS_PER_UNIT) as u64) {
                return None;
            }
            let most = || {
                let each = homes.iter().map(|&bin| fit_count(&bins[bin as usize].capacity, &requests));
                each.max().unwrap_or(0).min(u64::from(class.count))
            };
            // A ceiling that cannot bind is dropped. One that can bind keeps the class separate.
            let ceiling =
                class.max_per_node.filter(|&ceiling| class.ports.is_empty() && u64::from(ceiling) < most());
            let mut penalties: Vec<u64> = Vec::new();
            if class.at_risk > 0 || !class.at_risk_on.is_empty() || !class.preferences.is_empty() {
                let each = homes.iter().map(|bin| match bins[*bin as usize].origin {
                    Origin::Candidate(candidate) => penalty(self.problem, index, candidate),
                    Origin::Existing(_) => 0,
                });
                penalties.extend(each);
            }
            if penalties.iter().all(|penalty| *penalty == 0) {
                penalties.clear();
            }
            let kind = Kind {
                requests,
                homes: sets.number(homes),
                priority: class.priority,
                value: class.value,
                group: self.groups.key(position),
                ceiling: ceiling.map(|ceiling| (ceiling, index)),
                conflicts: conflicts.number(index),
                penalties,
                alternatives: self.alternatives(index),
                gpu: class.gpu,
            };
            merged.entry(kind).or_default().push((index as u32, u64::from(class.count)));
        }
        let mut classes: Vec<(Keyed, u32)> = merged
            .into_iter()
            .map(|(kind, members)| {
                let alone = conflicts.is_alone(members[0].0);
                let class = Class {
                    requests: kind.requests,
                    demand: members.iter().map(|(_, count)| count).sum(),
                    per_node: if alone { 1 } else { kind.ceiling.map_or(u32::MAX, |(ceiling, _)| ceiling) },
                    priority: kind.priority,
                    value: kind.value,
                    members,
                    bins: sets.of(kind.homes).to_vec(),
                    alternatives: kind.alternatives,
                    gpu: kind.gpu,
                    ..Class::default()
                };
                ((class, kind.group), kind.conflicts)
            })
            .collect();
        // Keep the classes of one divided class together, in the order of the values.
        classes.sort_by_key(|((class, key), _)| (class.members[0].0, key.map(|key| key.2)));
        let merged = self.merged_conflicts(&conflicts, &classes, bins.len());
        let parties = merged.parties();
        let mut classes: Vec<(Class, Option<Key>)> = (0..)
            .zip(classes)
            .map(|(owner, ((class, key), _))| {
                let (keeps_apart, party) = (merged.has_others(owner), parties.of[owner as usize]);
                (Class { owner, keeps_apart, party, ..class }, key)
            })
            .collect();
        let choices = self.groups.choices(&mut classes);
        Some((classes.into_iter().map(|(class, _)| class).collect(), parties.apart, choices, homeless))
    }

    /// Returns the conflicts of the merged classes, given with the numbers of their sets of conflicts.
    fn merged_conflicts(&self, of_problem: &Conflicts, classes: &[(Keyed, u32)], bins: usize) -> Conflicts {
        let mut place: Vec<Vec<u32>> = vec![Vec::new(); self.problem.classes.len()];
        for (index, ((class, _), _)) in (0..).zip(classes) {
            for (member, _) in &class.members {
                place[*member as usize].push(index);
            }
        }
        let meetings = Meetings::new(classes.iter().map(|((class, _), _)| class.bins.as_slice()), bins);
        let mut sets = Numbered::default();
        // Classes with the same conflicts and the same bins have the same set.
        let mut known: BTreeMap<(u32, usize), u32> = BTreeMap::new();
        let numbers = classes.iter().enumerate().map(|(index, (_, conflicts))| {
            *known.entry((*conflicts, meetings.set(index))).or_insert_with(|| {
                // Classes without a common bin never meet.
                let others = of_problem.set(*conflicts).iter();
                let mut others: Vec<u32> = others
                    .flat_map(|other| place[*other as usize].iter().copied())
                    .filter(|other| meetings.meet(index, *other as usize))
                    .collect();
                others.sort_unstable();
                others.dedup();
                sets.number(others)
            })
        });
        let numbers = numbers.collect();
        Conflicts::new(numbers, sets)
    }
}
