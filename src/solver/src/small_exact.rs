//! Exact solutions of very small problems with every rule: which pods to place, where, and at what least cost.
//!
//! A state is a multiset of placed pods. Each state keeps the undominated ways to place it: no other way costs no more and
//! uses no more of any scarce row. Bins come one after the other, with their patterns in a fixed order, so that the search
//! finds each plan once.

use std::collections::BTreeMap;

use crate::canonical::{Content, Model, Origin, Pattern, Row, UNLIMITED};
use crate::gpu::Fit;
use crate::meter::Meter;
use crate::plan::Plan;

/// The maximum number of multisets of pods.
const STATES: u64 = 1 << 14;
/// The maximum number of ways tried and compared. Visiting a state without trying its ways counts as a sixteenth.
const STEPS: u64 = 1 << 21;
/// The steps in one unit of work, and those between two looks at the signal.
const STEPS_PER_UNIT: u64 = 4;
const STEPS_PER_LOOK: u64 = 4_000;
/// The candidates that commitments can cover whose counts are compared in one step. A way has a count of each.
const COVERED_PER_STEP: u64 = 8;
/// The maximum number of pods.
const PODS: u64 = 40;

/// The pods left out, the cost, and the way.
type Best = (Vec<(u128, u64)>, u64, usize);

/// One way to place a state's pods.
struct Way {
    cost: u64,
    /// The use of each scarce row; then the number of nodes of each candidate that a commitment can cover, since this
    /// decides the saving; and last the number of nodes of the current bin.
    uses: Vec<i128>,
    /// The preceding way, and the pattern added to it.
    before: usize,
    content: usize,
}

/// One pattern of a bin, with the state that its pods make up.
struct Held {
    state: usize,
    cost: u64,
    pattern: Pattern,
}

struct Search<'a, 'm, 'w> {
    model: &'a Model,
    meter: &'m mut Meter<'w>,
    /// The classes with pods: class, maximum count, and the weight of one pod in the number of a state.
    classes: Vec<(u32, u64, usize)>,
    /// Pods that are divided over several classes: their total, and the positions of these classes in `classes`.
    divided: Vec<(u64, Vec<usize>)>,
    /// The rows that can bind.
    rows: Vec<u32>,
    /// The candidates that commitments can cover.
    covered: Vec<u32>,
    ways: Vec<Way>,
    /// The undominated ways, by state.
    best: Vec<Vec<usize>>,
    contents: Vec<Held>,
    steps: u64,
}

/// Returns a plan with the best admission for `totals` (by owner), at the least cost; `None` when the problem is too
/// large, or when it is undecided whether some pods fit a node: they may be in the best plan.
pub(crate) fn solve(model: &Model, totals: &[u64], meter: &mut Meter<'_>) -> Option<Plan> {
    let most = model.most(totals);
    let mut classes = Vec::new();
    let mut states: u64 = 1;
    for (class, count) in most.iter().enumerate().filter(|(_, count)| **count > 0) {
        classes.push((class as u32, *count, states as usize));
        states = states.checked_mul(count + 1).filter(|states| *states <= STATES)?;
    }
    let pods = totals.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
    if pods > PODS {
        return None;
    }
    // Every node has a pod, so there are no more nodes than pods.
    let binds = |row: &u32| {
        let amounts = || {
            model
                .bins
                .iter()
                .flat_map(|bin| &bin.limit_use)
                .filter(|(at, _)| at == row)
                .map(|(_, amount)| *amount)
        };
        // Savings by commitments are computed at the end, in `cost`.
        !matches!(model.rows[*row as usize], Row::Commitment(_))
            && amounts().max().unwrap_or(0).saturating_mul(i128::from(pods)) > model.limits[*row as usize]
    };
    let rows: Vec<u32> = (0..model.limits.len() as u32).filter(binds).collect();
    let covered: Vec<u32> =
        model.commitments.iter().flat_map(|one| one.rates.iter().map(|(candidate, ..)| *candidate)).collect();
    let empty = Way {
        cost: 0,
        uses: vec![0; rows.len() + covered.len() + 1],
        before: usize::MAX,
        content: usize::MAX,
    };
    let divided = (0..model.classes.len() as u32)
        .map(|owner| {
            let cells = |at: &usize| model.classes[classes[*at].0 as usize].owner == owner;
            (totals[owner as usize], (0..classes.len()).filter(cells).collect::<Vec<usize>>())
        })
        .filter(|(_, cells)| cells.len() > 1)
        .collect();
    let mut search = Search {
        model,
        meter,
        classes,
        divided,
        rows,
        covered,
        ways: vec![empty],
        best: vec![Vec::new(); states as usize],
        contents: Vec::new(),
        steps: 0,
    };
    search.best[0].push(0);
    for bin in (0..model.bins.len() as u32).filter(|bin| model.bins[*bin as usize].covered.is_none()) {
        search.bin(bin, pods)?;
    }
    let way = search.choose(totals)?;
    Some(search.plan(way))
}

impl Search<'_, '_, '_> {
    /// Extends all ways by all patterns of `bin`. Returns `None` when this exceeds the limits, or when a pattern is undecided.
    fn bin(&mut self, bin: u32, pods: u64) -> Option<()> {
        let available = self.model.bins[bin as usize].available;
        let scarce = available != UNLIMITED && available < pods;
        let width = 1 + self.covered.len() as u64 / COVERED_PER_STEP;
        let first = self.contents.len();
        let mut content = Content::empty(self.model, bin);
        self.enumerate(bin, &mut content, 0, 0)?;
        let amounts: Vec<i128> = self
            .rows
            .iter()
            .map(|row| {
                let uses = &self.model.bins[bin as usize].limit_use;
                uses.iter().find(|(at, _)| at == row).map_or(0, |(_, amount)| *amount)
            })
            .chain(self.covered.iter().map(|candidate| {
                i128::from(self.model.bins[bin as usize].origin == Origin::Candidate(*candidate))
            }))
            .chain([i128::from(scarce)])
            .collect();
        let mut ceilings: Vec<Option<i128>> = self.rows.iter().map(|row| self.ceiling(*row)).collect();
        ceilings.extend(self.covered.iter().map(|_| None));
        ceilings.push(scarce.then_some(i128::from(available)));
        for index in first..self.contents.len() {
            let (delta, cost) = (self.contents[index].state, self.contents[index].cost);
            // Ascending, so that the same pattern can be added again.
            self.steps += 1 + self.best.len() as u64 / 16;
            let before = self.steps;
            let mut looked = before;
            for state in 0..self.best.len() - delta {
                if self.best[state].is_empty() || !self.within(state, delta) {
                    continue;
                }
                for at in self.best[state].clone() {
                    // Each new way is compared with the known ways of its state.
                    self.steps += width * (1 + self.best[state + delta].len() as u64);
                    if self.steps > STEPS {
                        return None;
                    }
                    if self.steps - looked >= STEPS_PER_LOOK {
                        if self.meter.tick((self.steps - looked) / STEPS_PER_UNIT) {
                            return None;
                        }
                        looked = self.steps;
                    }
                    let before = &self.ways[at];
                    let uses: Vec<i128> =
                        before.uses.iter().zip(&amounts).map(|(used, more)| used + more).collect();
                    let over =
                        |(used, ceiling): (&i128, &Option<i128>)| ceiling.is_some_and(|most| *used > most);
                    if uses.iter().zip(&ceilings).any(over) {
                        continue;
                    }
                    let way =
                        Way { cost: before.cost.saturating_add(cost), uses, before: at, content: index };
                    self.offer(state + delta, way);
                }
            }
            let spent = 1 + (self.steps - before) / STEPS_PER_UNIT + self.best.len() as u64 / 64;
            if self.steps > STEPS || self.meter.spend(spent) {
                return None;
            }
        }
        if scarce {
            // Later bins do not depend on the number of nodes of this bin.
            for state in 0..self.best.len() {
                let ways = std::mem::take(&mut self.best[state]);
                self.steps += (ways.len() * ways.len()) as u64 / 2;
                if self.steps > STEPS {
                    return None;
                }
                for at in ways {
                    if let Some(count) = self.ways[at].uses.last_mut() {
                        *count = 0;
                    }
                    if self.is_new(state, at) {
                        let (ways, rows) = (&self.ways, self.rows.len());
                        let new = &ways[at];
                        self.best[state].retain(|known| !dominates(new, &ways[*known], rows));
                        self.best[state].push(at);
                    }
                }
            }
        }
        Some(())
    }

    /// Returns the most that any way may use of a row; `None` where other nodes can still make room.
    fn ceiling(&self, row: u32) -> Option<i128> {
        let gives = |uses: &Vec<(u32, i128)>| uses.iter().any(|(at, amount)| *at == row && *amount < 0);
        let never = self.model.bins.iter().all(|bin| !gives(&bin.limit_use));
        never.then(|| self.model.limits[row as usize])
    }

    /// Adds all patterns of `bin` from class position `at` on to `contents`.
    fn enumerate(&mut self, bin: u32, content: &mut Content<'_>, at: usize, state: usize) -> Option<()> {
        let Some(&(class, most, unit)) = self.classes.get(at) else { return Some(()) };
        self.enumerate(bin, content, at + 1, state)?;
        if self.model.bins[bin as usize].position(class).is_none() {
            return Some(());
        }
        let fit = content.fit(class).min(Fit::exact(most));
        if !fit.is_decided() {
            return None;
        }
        let count = fit.least;
        for number in 1..=count {
            content.add(class, 1);
            let state = state + unit * number as usize;
            let pods = content.pods().to_vec();
            let cost = self.model.bins[bin as usize].cost(&pods);
            self.contents.push(Held { state, cost, pattern: Pattern { bin, pods } });
            self.enumerate(bin, content, at + 1, state)?;
        }
        content.remove(class, count as u32);
        (self.contents.len() <= 1 << 16).then_some(())
    }

    /// Returns whether `delta` can be added to `state`.
    fn within(&self, state: usize, delta: usize) -> bool {
        let count = |state: usize, (_, most, unit): &(u32, u64, usize)| state / unit % (*most as usize + 1);
        let both = |class: &(u32, u64, usize)| count(state, class) + count(delta, class);
        self.classes.iter().all(|class| both(class) as u64 <= class.1)
            && self.divided.iter().all(|(pods, cells)| {
                cells.iter().map(|at| both(&self.classes[*at]) as u64).sum::<u64>() <= *pods
            })
    }

    fn is_new(&self, state: usize, at: usize) -> bool {
        !self.best[state].iter().any(|known| dominates(&self.ways[*known], &self.ways[at], self.rows.len()))
    }

    fn offer(&mut self, state: usize, way: Way) {
        if self.best[state].iter().any(|known| dominates(&self.ways[*known], &way, self.rows.len())) {
            return;
        }
        let (ways, rows) = (&self.ways, self.rows.len());
        self.best[state].retain(|known| !dominates(&way, &ways[*known], rows));
        self.best[state].push(self.ways.len());
        self.ways.push(way);
    }

    /// Returns the cheapest way to the best state.
    fn choose(&self, totals: &[u64]) -> Option<usize> {
        let model = self.model;
        let mut best: Option<Best> = None;
        for (state, ways) in self.best.iter().enumerate() {
            let payable = |at: &&usize| {
                self.rows
                    .iter()
                    .zip(&self.ways[**at].uses)
                    .all(|(row, used)| *used <= model.limits[*row as usize])
            };
            let Some(&at) = ways.iter().filter(payable).min_by_key(|at| self.cost(**at)) else {
                continue;
            };
            let mut placed = vec![0; model.classes.len()];
            for (class, most, unit) in &self.classes {
                placed[*class as usize] = (state / unit % (*most as usize + 1)) as u64;
            }
            let gathered = model.gathered(&placed);
            if gathered.iter().zip(totals).any(|(placed, wanted)| placed > wanted)
                || !model.choices.iter().all(|choice| choice.allows(totals, &placed))
            {
                continue;
            }
            let key = (crate::plan::left_out(model, &placed), self.cost(at), at);
            if best.as_ref().is_none_or(|best| (&key.0, key.1) < (&best.0, best.1)) {
                best = Some(key);
            }
        }
        best.map(|best| best.2)
    }

    /// Returns the cost of a way after the savings by commitments.
    fn cost(&self, way: usize) -> u64 {
        let way = &self.ways[way];
        let counts = &way.uses[self.rows.len()..];
        let count = |(candidate, count): (&u32, &i128)| (*candidate, u64::try_from(*count).unwrap_or(0));
        let bought: BTreeMap<u32, u64> = self.covered.iter().zip(counts).map(count).collect();
        let savings = self.model.commitments.iter().map(|covering| covering.saving(&bought).0);
        way.cost.saturating_sub(savings.fold(0, u64::saturating_add))
    }

    fn plan(&self, way: usize) -> Plan {
        let mut plan = Plan::default();
        let mut at = way;
        while let Some(content) = self.contents.get(self.ways[at].content) {
            plan.add(content.pattern.clone(), 1);
            at = self.ways[at].before;
        }
        plan
    }
}

/// Returns whether `a` costs no more than `b`, uses no more of the first `rows` rows and of the current bin, and has
/// equal counts of all nodes that commitments can cover.
fn dominates(a: &Way, b: &Way, rows: usize) -> bool {
    let last = a.uses.len() - 1;
    a.cost <= b.cost
        && a.uses[..rows].iter().zip(&b.uses[..rows]).all(|(a, b)| a <= b)
        && a.uses[rows..last] == b.uses[rows..last]
        && a.uses[last] <= b.uses[last]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NeverStop;
    use crate::testing::{undecided, undecided_on_existing};

    #[test]
    fn a_plan_without_contents_that_are_undecided_is_not_called_the_best() {
        for problem in [undecided(), undecided_on_existing()] {
            let model = Model::new(&problem);
            let mut signal = NeverStop;
            let mut meter = Meter::new(&mut signal, u64::MAX);
            assert_eq!(solve(&model, &model.totals(), &mut meter), None);
        }
    }
}
