//! Choices of the pods that get on-demand nodes, for pools that lack such nodes before they may have spot nodes.
//!
//! A plan with a spot node of such a pool buys at least the on-demand nodes that the pool lacks, and each of them holds a pod. One pod
//! of each is *marked*: it must be on an on-demand node of the pool, and no two marked pods share a node. For a given choice of the
//! marked pods, that is a problem for the solver. The cheapest plan over all choices is the cheapest plan with spot nodes.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::ResourceName;
use poolwright_solver::{GpuLayout, NewNodes, Placement, Problem, ShadowPrices, Solution};

use crate::plan::pack::solves::candidates::NodeCandidate;
use crate::plan::pack::solves::columns::Columns;

/// The most choices to solve.
pub(crate) const MOST_CHOICES: usize = 24;

/// The prefix of resources that keep marked pods apart, and that count them with other pods of their class.
const MARKED: &str = "poolwright.dev/marked-";

/// The pool of each column that buys nodes, and whether these are spot nodes.
pub(crate) type Bought = [Option<(usize, bool)>];

/// The number of marked pods of each kind.
pub(crate) type Choice = Vec<u32>;

/// A solver call whose solution has spot nodes too early.
#[derive(Clone, Copy)]
pub(crate) struct TooEarly<'c> {
    pub candidates: &'c [NodeCandidate],
    pub columns: &'c Columns,
    pub problem: &'c Problem,
    pub solution: &'c Solution,
    /// The pools that lack on-demand nodes, with the number that each lacks now.
    pub lacking: &'c BTreeMap<usize, u64>,
}

/// Pods of one class that can be marked for one pool.
struct Kind {
    pool: usize,
    class: usize,
    /// The on-demand nodes of the pool that they may use, ascending.
    columns: Vec<u32>,
    /// What the cheapest of these nodes costs more than the pod in a plan that has spot nodes too early, in micro-dollars.
    extra: i128,
}

/// The choices of marked pods for a problem.
pub(crate) struct Choices<'p> {
    problem: &'p Problem,
    /// The number of marked pods by pool.
    lacking: &'p BTreeMap<usize, u64>,
    /// The kinds of each pool, those with the least extra cost first.
    kinds: Vec<Kind>,
}

fn add_resource(problem: &mut Problem, name: &str, capacity: impl Fn(u32) -> u64, free: u64) {
    problem.resources.push(ResourceName::new(format!("{MARKED}{name}")));
    for (at, candidate) in (0_u32..).zip(&mut problem.candidates) {
        candidate.capacity.push(capacity(at));
    }
    for node in &mut problem.existing {
        node.free.push(free);
    }
    for class in &mut problem.classes {
        class.requests.push(0);
    }
}

/// Returns the pods with the classes that `own` returns for theirs.
fn together(pods: &[Placement], own: &impl Fn(u32) -> u32) -> Vec<Placement> {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for (class, count) in pods {
        *counts.entry(own(*class)).or_default() += count;
    }
    counts.into_iter().collect()
}

fn layout(gpu: &GpuLayout, own: &impl Fn(u32) -> u32) -> GpuLayout {
    match gpu {
        GpuLayout::Idle => GpuLayout::Idle,
        GpuLayout::Whole(class) => GpuLayout::Whole(own(*class)),
        GpuLayout::Shared(pods) => GpuLayout::Shared(together(pods, own)),
        GpuLayout::Mig(instances) => {
            let mut instances = instances.clone();
            for instance in &mut instances {
                instance.class = own(instance.class);
            }
            GpuLayout::Mig(instances)
        }
    }
}

impl<'p> Choices<'p> {
    /// Creates the choices for pools that lack on-demand nodes, given the prices of the solution that has spot nodes too early. `None`
    /// if fewer pods can be marked than nodes lack.
    pub fn new(
        problem: &'p Problem,
        bought: &Bought,
        lacking: &'p BTreeMap<usize, u64>,
        prices: Option<&ShadowPrices>,
    ) -> Option<Self> {
        let mut kinds = Vec::new();
        for &pool in lacking.keys() {
            let may = |column: &u32| {
                let at = *column as usize;
                bought[at] == Some((pool, false)) && problem.candidates[at].max_nodes != Some(0)
            };
            for (class, of) in problem.classes.iter().enumerate() {
                let columns: Vec<u32> = of.candidates.iter().copied().filter(may).collect();
                let price = columns.iter().map(|column| problem.candidates[*column as usize].price).min();
                let Some(price) = price.filter(|_| of.count > 0) else { continue };
                let saved = prices.map_or(0, |prices| prices.classes[class]);
                let extra = i128::from(price.micros()) - i128::from(saved);
                kinds.push(Kind { pool, class, columns, extra });
            }
        }
        kinds.sort_by_key(|kind| (kind.pool, kind.extra, kind.class));
        let choices = Self { problem, lacking, kinds };
        let pods = |pool: usize| -> u64 {
            choices.kinds.iter().filter(|kind| kind.pool == pool).map(|kind| choices.most(kind)).sum()
        };
        let are_enough = lacking.iter().all(|(pool, lacks)| pods(*pool) >= *lacks);
        are_enough.then_some(choices)
    }

    /// Returns the number of pods of a kind.
    fn most(&self, kind: &Kind) -> u64 {
        self.problem.classes[kind.class].count.into()
    }

    /// Returns how many more pods of a pool must be marked, after a choice for the first kinds.
    fn unmarked_yet(&self, pool: usize, choice: &[u32]) -> u64 {
        let marked = self.kinds.iter().zip(choice).filter(|(kind, _)| kind.pool == pool);
        let marked: u64 = marked.map(|(_, marked)| u64::from(*marked)).sum();
        self.lacking[&pool].saturating_sub(marked)
    }

    fn extra(&self, choice: &[u32]) -> i128 {
        self.kinds.iter().zip(choice).map(|(kind, marked)| kind.extra * i128::from(*marked)).sum()
    }

    /// Returns the kinds of which a choice marks pods, with their numbers.
    fn marks(&self, choice: &[u32]) -> impl Iterator<Item = (&Kind, u32)> {
        self.kinds.iter().zip(choice.iter().copied()).filter(|(_, marked)| *marked > 0)
    }

    /// Returns all choices, those with the least extra cost first; `None` if they are too many.
    pub fn all(&self) -> Option<Vec<Choice>> {
        let mut all: Vec<Choice> = vec![Vec::new()];
        for (at, kind) in self.kinds.iter().enumerate() {
            let later = self.kinds[at + 1..].iter().filter(|later| later.pool == kind.pool);
            let later: u64 = later.map(|later| self.most(later)).sum();
            let mut longer = Vec::new();
            for choice in all {
                let left = self.unmarked_yet(kind.pool, &choice);
                for marked in left.saturating_sub(later)..=left.min(self.most(kind)) {
                    if longer.len() == MOST_CHOICES {
                        return None;
                    }
                    let mut with_this = choice.clone();
                    with_this.push(u32::try_from(marked).unwrap_or(u32::MAX));
                    longer.push(with_this);
                }
            }
            all = longer;
        }
        all.sort_by_cached_key(|choice| self.extra(choice));
        Some(all)
    }

    /// Returns the choice with the least extra cost.
    pub fn cheapest(&self) -> Choice {
        let mut choice = Vec::with_capacity(self.kinds.len());
        for kind in &self.kinds {
            let marked = self.unmarked_yet(kind.pool, &choice).min(self.most(kind));
            choice.push(u32::try_from(marked).unwrap_or(u32::MAX));
        }
        choice
    }

    /// Returns choices that mark one pod, or as many as possible, of another kind instead, those with the least extra cost first.
    pub fn neighbours(&self, choice: &[u32]) -> Vec<Choice> {
        let spare = |at: usize| self.most(&self.kinds[at]).saturating_sub(choice[at].into());
        let marked: Vec<usize> =
            (0..choice.len()).rev().filter(|at| choice[*at] > 0).take(MOST_CHOICES).collect();
        let others: Vec<usize> = (0..choice.len()).filter(|at| spare(*at) > 0).take(MOST_CHOICES).collect();
        let mut all = Vec::new();
        for &from in &marked {
            for &to in others.iter().filter(|to| **to != from) {
                if self.kinds[from].pool != self.kinds[to].pool {
                    continue;
                }
                let most = u32::try_from(spare(to)).unwrap_or(u32::MAX).min(choice[from]);
                for moved in BTreeSet::from([1, most]) {
                    let mut other = choice.to_vec();
                    other[from] -= moved;
                    other[to] += moved;
                    all.push(other);
                }
            }
        }
        all.sort_by_cached_key(|choice| self.extra(choice));
        all
    }

    /// Returns the problem with a choice of marked pods, each in a class of its own after all others. `None` if it marks more pods of a
    /// class than there are.
    pub fn marked(&self, choice: &[u32]) -> Option<Problem> {
        let mut problem = self.problem.clone();
        let columns: BTreeSet<u32> =
            self.marks(choice).flat_map(|(kind, _)| kind.columns.iter().copied()).collect();
        let apart = problem.resources.len();
        add_resource(&mut problem, "apart", |column| columns.contains(&column).into(), 0);
        let classes: BTreeSet<usize> = self.marks(choice).map(|(kind, _)| kind.class).collect();
        for class in classes {
            if let Some(most) = problem.classes[class].max_per_node {
                let counted = problem.resources.len();
                add_resource(&mut problem, &class.to_string(), |_| most.into(), most.into());
                problem.classes[class].requests[counted] = 1;
            }
        }
        // If a limit leaves pods out, marked pods come first: without them, no spot node is allowed.
        let highest = problem.classes.iter().map(|class| class.priority).max().unwrap_or(0);
        for (kind, marked) in self.marks(choice) {
            let own = &mut problem.classes[kind.class];
            own.count = own.count.checked_sub(marked)?;
            let mut class = own.clone();
            class.count = marked;
            class.priority = highest.saturating_add(1);
            class.candidates.clone_from(&kind.columns);
            class.existing.clear();
            class.requests[apart] = 1;
            let at = problem.classes.len() as u32;
            let with = |(one, other): &(u32, u32)| {
                let of = kind.class as u32;
                if *one == of { Some((*other, at)) } else { (*other == of).then_some((*one, at)) }
            };
            problem.conflicts.extend(self.problem.conflicts.iter().filter_map(with));
            problem.classes.push(class);
        }
        problem.conflicts.sort_unstable();
        Some(problem)
    }

    /// Returns a solution of the problem with marked pods as one of the problem without marks; `None` if it leaves a marked pod out.
    pub fn unmarked(&self, choice: &[u32], solution: &Solution) -> Option<Solution> {
        let classes = self.problem.classes.len() as u32;
        if solution.unplaced.iter().any(|left| left.class >= classes) {
            return None;
        }
        let of: Vec<u32> = self.marks(choice).map(|(kind, _)| kind.class as u32).collect();
        let own = |class: u32| class.checked_sub(classes).map_or(class, |mark| of[mark as usize]);
        let mut groups: BTreeMap<(u32, Vec<Placement>), (u32, Vec<GpuLayout>)> = BTreeMap::new();
        for group in &solution.new_nodes {
            let gpus = || group.gpus.iter().map(|gpu| layout(gpu, &own)).collect::<Vec<GpuLayout>>();
            let same = groups.entry((group.candidate, together(&group.pods, &own)));
            same.or_insert_with(|| (0, gpus())).0 += group.count;
        }
        let group = |((candidate, pods), (count, gpus))| NewNodes { candidate, pods, count, gpus };
        let new_nodes = groups.into_iter().map(group).collect();
        // The prices are by class of the other problem.
        Some(Solution { new_nodes, prices: None, ..solution.clone() })
    }

    /// Returns the problem with marked pods for only those pods that a solution of it has on nodes with marked pods.
    pub fn first(&self, marked: &Problem, solution: &Solution) -> Problem {
        let classes = self.problem.classes.len() as u32;
        let mut counts = vec![0; marked.classes.len()];
        for group in &solution.new_nodes {
            if group.pods.iter().any(|(class, _)| *class >= classes) {
                for (class, each) in &group.pods {
                    counts[*class as usize] += each * group.count;
                }
            }
        }
        let mut first = marked.clone();
        for (class, count) in first.classes.iter_mut().zip(counts) {
            class.count = count;
            // In the plan, other pods may be in that room.
            class.existing.clear();
        }
        let apart = self.problem.resources.len();
        for candidate in first.candidates.iter_mut().filter(|candidate| candidate.capacity[apart] == 0) {
            candidate.max_nodes = Some(0);
        }
        first
    }
}
