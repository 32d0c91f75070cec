//! Choices: groups of pods that are placed together, and the ways to divide their pods over the values of a topology.
//!
//! The canonical problem has one class per value for each class of such a group ([`crate::canonical`]). So a way to
//! divide the pods, an *option*, is a plain demand over classes. This file finds the cheapest option at given prices
//! (exactly, even where options are too many to list), and tests whether a division is an option.

use crate::flow::{Division, Row, Split};

/// How the pods of a group may be divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// All pods or none; each class has one cell.
    Whole,
    /// All pods in one value, or none.
    One,
    /// Any number of pods, evenly.
    Even(Even),
}

/// Even counts by value: their difference is bounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Even {
    /// The largest allowed difference between the highest and the lowest count.
    pub skew: u64,
    /// The pods that already run, by value.
    pub running: Vec<u64>,
    /// Whether the lowest count is taken as zero.
    pub floor: bool,
}

/// The pods of one class of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The class that keeps the part's count: the first cell.
    pub owner: u32,
    /// The class of the pods placed in each value; `None` where no node of the value holds one.
    pub cells: Vec<Option<u32>>,
}

/// A gang or a spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The rule by which its pods may be divided.
    pub rule: Rule,
    /// Its classes.
    pub parts: Vec<Part>,
    /// The index of the problem's gang or spread, depending on the rule.
    pub origin: u32,
}

/// The most pods that a group may have in each of its cells, by class of the model.
pub(crate) type Caps<'a> = Option<&'a [u64]>;

impl Choice {
    /// Returns whether the group has more than one option.
    pub fn is_open(&self) -> bool {
        self.rule != Rule::Whole
    }

    /// Returns whether the group is placed whole or not at all.
    pub fn is_gang(&self) -> bool {
        !matches!(self.rule, Rule::Even(_))
    }

    /// Returns the number of pods of each part, from the counts of their owners.
    fn counts(&self, totals: &[u64]) -> Vec<u64> {
        self.parts.iter().map(|part| totals[part.owner as usize]).collect()
    }

    /// Returns all classes of the group.
    pub fn cells(&self) -> impl Iterator<Item = u32> + '_ {
        self.parts.iter().flat_map(|part| part.cells.iter().flatten().copied())
    }

    /// Returns the cheapest way to divide exactly `totals` pods (by owner), and its cost, when a pod of class `k` costs
    /// `prices[k]`. Returns `None` when no division is possible.
    pub fn cheapest(&self, totals: &[u64], prices: &[u64], caps: Caps<'_>) -> Option<(u128, Split)> {
        let counts = self.counts(totals);
        match &self.rule {
            Rule::Whole | Rule::One => {
                let values = self.parts.first().map_or(0, |part| part.cells.len());
                (0..values)
                    .filter_map(|value| self.all_in(value, &counts, prices, caps))
                    .min_by_key(|way| way.0)
            }
            Rule::Even(even) => even.cheapest(&Table::new(&self.parts, counts, prices, caps)),
        }
    }

    /// Returns the option with all pods in one value, and its cost.
    fn all_in(&self, value: usize, counts: &[u64], prices: &[u64], caps: Caps<'_>) -> Option<(u128, Split)> {
        let mut cost = 0u128;
        let mut split = Vec::new();
        for (part, count) in self.parts.iter().zip(counts).filter(|(_, count)| **count > 0) {
            let cell = part.cells[value]?;
            if caps.is_some_and(|caps| caps[cell as usize] < *count) {
                return None;
            }
            cost += u128::from(prices[cell as usize]) * u128::from(*count);
            split.push((cell, *count));
        }
        split.sort_unstable();
        Some((cost, split))
    }

    /// Returns a division with the most pods of each part, at most `totals`, when cells hold at most `caps`. This is what
    /// a spread can place; it is not called for gangs.
    pub fn largest(&self, totals: &[u64], prices: &[u64], caps: Caps<'_>) -> Split {
        match &self.rule {
            Rule::Whole | Rule::One => self.cheapest(totals, prices, caps).map_or_else(Vec::new, |way| way.1),
            Rule::Even(even) => even.largest(&Table::new(&self.parts, self.counts(totals), prices, caps)),
        }
    }

    /// Returns the most pods that any division of at most `totals` pods has in each cell.
    pub fn ceilings(&self, totals: &[u64]) -> Split {
        let counts = self.counts(totals);
        let sum = counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        let mut ceilings = Vec::new();
        for (part, count) in self.parts.iter().zip(counts) {
            for (value, cell) in part.cells.iter().enumerate() {
                let Some(cell) = cell else { continue };
                let most = match &self.rule {
                    Rule::Whole | Rule::One => count,
                    Rule::Even(even) => count.min(even.most(value, sum)),
                };
                ceilings.push((*cell, most));
            }
        }
        ceilings
    }

    /// Returns whether the pods placed (by class of the model) are a division that the rule allows. Gangs of `totals`
    /// pods must be whole.
    pub fn allows(&self, totals: &[u64], placed: &[u64]) -> bool {
        let at = |part: &Part, value: usize| part.cells[value].map_or(0, |cell| placed[cell as usize]);
        let values = self.parts.first().map_or(0, |part| part.cells.len());
        match &self.rule {
            Rule::Whole | Rule::One => {
                let none = self.cells().all(|cell| placed[cell as usize] == 0);
                let all_in = |value: usize| {
                    self.parts.iter().all(|part| {
                        (0..values).all(|other| {
                            let want = if other == value { totals[part.owner as usize] } else { 0 };
                            at(part, other) == want
                        })
                    })
                };
                none || (0..values).any(all_in)
            }
            Rule::Even(even) => {
                let counts: Vec<u64> =
                    (0..values).map(|value| self.parts.iter().map(|part| at(part, value)).sum()).collect();
                even.allows(&counts)
            }
        }
    }
}

/// The input of a division of one group.
struct Table {
    /// The number of pods, by part.
    counts: Vec<u64>,
    /// The class, price and cap of each cell, by part and value.
    cells: Vec<Row>,
}

impl Table {
    fn new(parts: &[Part], counts: Vec<u64>, prices: &[u64], caps: Caps<'_>) -> Self {
        let cells = parts
            .iter()
            .zip(&counts)
            .map(|(part, count)| {
                let cell = |cell: &Option<u32>| {
                    let class = (*cell)?;
                    let most = caps.map_or(*count, |caps| caps[class as usize].min(*count));
                    Some((class, prices[class as usize], most))
                };
                part.cells.iter().map(cell).collect()
            })
            .collect();
        Self { counts, cells }
    }

    fn sum(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the most pods that a value can have.
    fn most(&self, value: usize) -> u64 {
        self.cells.iter().filter_map(|row| row[value]).fold(0, |sum, cell| sum.saturating_add(cell.2))
    }

    /// Places as many pods as possible with at least `lower` and at most `upper` in each value, at least cost. The result
    /// says whether every value reaches its lower bound.
    fn divide(&self, lower: &[u64], upper: &[u64]) -> Division {
        match self.cells.as_slice() {
            [row] => divide_one(row, self.counts[0], lower, upper),
            _ => crate::flow::divide(&self.counts, &self.cells, lower, upper),
        }
    }
}

/// Divides one class: first the lower bound of every value, then the cheapest values.
fn divide_one(row: &[Option<(u32, u64, u64)>], count: u64, lower: &[u64], upper: &[u64]) -> Division {
    let mut left = count;
    let mut met = true;
    let mut taken = vec![0u64; row.len()];
    let most = |value: usize| row[value].map_or(0, |(_, _, most)| most.min(upper[value]));
    for (value, taken) in taken.iter_mut().enumerate() {
        let take = lower[value].min(most(value)).min(left);
        met &= take == lower[value];
        *taken = take;
        left -= take;
    }
    let mut order: Vec<usize> = (0..row.len()).filter(|value| row[*value].is_some()).collect();
    order.sort_by_key(|value| row[*value].map(|(_, price, _)| price));
    for value in order {
        let take = (most(value) - taken[value].min(most(value))).min(left);
        taken[value] += take;
        left -= take;
    }
    let mut division = Division { met, pods: count - left, ..Division::default() };
    for (cell, taken) in row.iter().zip(taken).filter(|(_, taken)| *taken > 0) {
        if let Some((class, price, _)) = cell {
            division.split.push((*class, taken));
            division.cost += u128::from(*price) * u128::from(taken);
        }
    }
    division.split.sort_unstable();
    division
}

/// Returns the first of `low..=high` for which the monotone `holds` is true; `high + 1` when there is none.
fn first(low: u64, high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut end) = (low, high + 1);
    while low < end {
        let middle = low + (end - low) / 2;
        if holds(middle) {
            end = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

impl Even {
    /// Returns whether the values are even after placing `counts`. Only values that get pods are checked, since the plan
    /// does not cause an existing imbalance.
    pub fn allows(&self, counts: &[u64]) -> bool {
        let after: Vec<u64> =
            self.running.iter().zip(counts).map(|(running, count)| running + count).collect();
        let least = if self.floor { 0 } else { after.iter().copied().min().unwrap_or(0) };
        counts.iter().zip(&after).all(|(count, after)| *count == 0 || after - least <= self.skew)
    }

    /// Returns the bounds on the new pods of each value when every value has at least `level` pods in the end.
    fn range(&self, level: u64) -> (Vec<u64>, Vec<u64>) {
        let lower = self.running.iter().map(|running| level.saturating_sub(*running)).collect();
        let top = level.saturating_add(self.skew);
        (lower, self.running.iter().map(|running| top.saturating_sub(*running)).collect())
    }

    /// Returns the highest level that every value can reach when value `v` takes at most `most(v)` more of the `pods`
    /// pods.
    fn highest(&self, pods: u64, most: impl Fn(usize) -> u64, met: impl Fn(u64) -> bool) -> u64 {
        if self.floor {
            return 0;
        }
        let reach = |value: usize| self.running[value].saturating_add(most(value).min(pods));
        let top = (0..self.running.len()).map(reach).min().unwrap_or(0);
        first(0, top, |level| !met(level)).saturating_sub(1)
    }

    /// Returns the most pods that a value has in a division of at most `pods` pods.
    fn most(&self, value: usize, pods: u64) -> u64 {
        let others = |level: u64| -> u64 {
            let least = |other: usize| level.saturating_sub(self.running[other]);
            (0..self.running.len())
                .filter(|other| *other != value)
                .fold(0, |sum, other| sum.saturating_add(least(other)))
        };
        let upper = |level: u64| level.saturating_add(self.skew).saturating_sub(self.running[value]);
        if self.floor {
            return upper(0).min(pods);
        }
        // The upper bound rises with the level, and the pods left for this value fall: the best level is where they meet.
        let top = self.running.iter().copied().min().unwrap_or(0).saturating_add(pods);
        let meet = first(0, top, |level| upper(level).saturating_add(others(level)) >= pods);
        let at = |level: u64| upper(level).min(pods.saturating_sub(others(level)));
        at(meet).max(at(meet.saturating_sub(1)))
    }

    fn cheapest(&self, table: &Table) -> Option<(u128, Split)> {
        let pods = table.sum();
        let divide = |level: u64| {
            let (lower, upper) = self.range(level);
            table.divide(&lower, &upper)
        };
        let met = |level: u64| divide(level).met;
        let high = self.highest(pods, |value| table.most(value), met);
        if !met(high) {
            return None;
        }
        let low = if self.floor { 0 } else { first(0, high, |level| divide(level).pods == pods) };
        if low > high || divide(low).pods < pods {
            return None;
        }
        // Between two of these levels the divisions form a convex set, so the cost is convex in the level.
        let mut starts: Vec<u64> = self
            .running
            .iter()
            .map(|running| running.saturating_sub(self.skew))
            .filter(|level| (low + 1..=high).contains(level))
            .collect();
        starts.extend([low, high + 1]);
        starts.sort_unstable();
        starts.dedup();
        let mut best: Option<Division> = None;
        for pair in starts.windows(2) {
            let (mut from, mut to) = (pair[0], pair[1] - 1);
            while from < to {
                let middle = from + (to - from) / 2;
                if divide(middle).cost <= divide(middle + 1).cost {
                    to = middle;
                } else {
                    from = middle + 1;
                }
            }
            let found = divide(from);
            if best.as_ref().is_none_or(|best| found.cost < best.cost) {
                best = Some(found);
            }
        }
        best.map(|best| (best.cost, best.split))
    }

    fn largest(&self, table: &Table) -> Split {
        let divide = |level: u64| {
            let (lower, upper) = self.range(level);
            table.divide(&lower, &upper)
        };
        let high = self.highest(table.sum(), |value| table.most(value), |level| divide(level).met);
        divide(high).split
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers the cells part by part; cells in `holes` are `None`.
    fn choice(rule: Rule, parts: usize, values: usize, holes: &[bool]) -> Choice {
        let parts = (0..parts)
            .map(|part| {
                let cells: Vec<Option<u32>> = (part * values..(part + 1) * values)
                    .map(|cell| (!holes.get(cell).copied().unwrap_or(false)).then_some(cell as u32))
                    .collect();
                Part {
                    owner: cells.iter().flatten().next().copied().unwrap_or((part * values) as u32),
                    cells,
                }
            })
            .collect();
        Choice { rule, parts, origin: 0 }
    }

    /// Calls `each` with every placement of pods in cells.
    fn all(choice: &Choice, most: &[u64], each: &mut dyn FnMut(&[u64])) {
        fn go(cells: &[u32], most: &[u64], placed: &mut Vec<u64>, each: &mut dyn FnMut(&[u64])) {
            let Some((cell, rest)) = cells.split_first() else { return each(placed) };
            for count in 0..=most[*cell as usize] {
                placed[*cell as usize] = count;
                go(rest, most, placed, each);
            }
            placed[*cell as usize] = 0;
        }
        let cells: Vec<u32> = choice.cells().collect();
        go(&cells, most, &mut vec![0; most.len()], each);
    }

    fn placed_by_part(choice: &Choice, placed: &[u64]) -> Vec<u64> {
        let sum = |part: &Part| part.cells.iter().flatten().map(|cell| placed[*cell as usize]).sum();
        choice.parts.iter().map(sum).collect()
    }

    fn spread(values: usize) -> impl Strategy<Value = (Even, usize)> {
        (1..=3u64, proptest::collection::vec(0..=4u64, values), any::<bool>(), Just(values))
            .prop_map(|(skew, running, floor, values)| (Even { skew, running, floor }, values))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_cheapest_division_is_the_one_that_trying_all_finds(
            (even, values) in prop_oneof![spread(2), spread(3)],
            parts in 1..=2usize,
            counts in proptest::collection::vec(0..=5u64, 2),
            prices in proptest::collection::vec(0..20u64, 6),
            caps in proptest::collection::vec(0..=5u64, 6),
            holes in proptest::collection::vec(prop::bool::weighted(0.15), 6),
            one in prop::bool::weighted(0.2),
        ) {
            let rule = if one { Rule::One } else { Rule::Even(even) };
            let choice = choice(rule, parts, values, &holes);
            prop_assume!(choice.parts.iter().all(|part| part.cells.iter().any(Option::is_some)));
            let mut totals = vec![0; 6];
            for (part, count) in choice.parts.iter().zip(&counts) {
                totals[part.owner as usize] = *count;
            }
            let wanted: Vec<u64> = choice.parts.iter().map(|part| totals[part.owner as usize]).collect();
            let mut least: Option<u64> = None;
            let mut most = 0;
            let mut tops = [0u64; 6];
            let limits: Vec<u64> = caps.iter().map(|cap| (*cap).min(5)).collect();
            all(&choice, &limits, &mut |placed| {
                let by_part = placed_by_part(&choice, placed);
                if choice.allows(&totals, placed) && by_part.iter().zip(&wanted).all(|(have, want)| have <= want) {
                    most = most.max(by_part.iter().sum::<u64>());
                    for (top, count) in tops.iter_mut().zip(placed) {
                        *top = (*top).max(*count);
                    }
                    if by_part == wanted {
                        let cost = placed.iter().zip(&prices).map(|(count, price)| count * price).sum();
                        least = Some(least.map_or(cost, |least: u64| least.min(cost)));
                    }
                }
            });
            let found = choice.cheapest(&totals, &prices, Some(&caps));
            prop_assert_eq!(found.as_ref().map(|way| way.0), least.map(u128::from));
            if let Some((_, split)) = found {
                let mut placed = vec![0; 6];
                for (class, count) in &split {
                    placed[*class as usize] = *count;
                }
                prop_assert!(choice.allows(&totals, &placed));
                prop_assert_eq!(placed_by_part(&choice, &placed), wanted.clone());
            }
            if !choice.is_gang() {
                let split = choice.largest(&totals, &prices, Some(&caps));
                let mut placed = vec![0; 6];
                for (class, count) in &split {
                    placed[*class as usize] = *count;
                }
                prop_assert!(choice.allows(&totals, &placed), "{:?}", placed);
                prop_assert_eq!(split.iter().map(|(_, count)| count).sum::<u64>(), most);
            }
            for (class, ceiling) in choice.ceilings(&totals) {
                prop_assert!(tops[class as usize] <= ceiling, "a division has {} in cell {class}, over {ceiling}", tops[class as usize]);
            }
        }

        #[test]
        fn the_cheapest_division_of_many_pods_undercuts_every_base_level(
            (even, values) in prop_oneof![spread(2), spread(3)],
            count in 0..200_000u64,
            prices in proptest::collection::vec(0..1_000_000u64, 3),
            scale in 1..2_000u64,
        ) {
            let even = Even { skew: even.skew * scale, running: even.running.iter().map(|r| r * scale).collect(), ..even };
            let choice = choice(Rule::Even(even.clone()), 1, values, &[]);
            let mut totals = vec![0; 3];
            totals[0] = count;
            let table = Table::new(&choice.parts, vec![count], &prices, None);
            let mut least: Option<u128> = None;
            for level in 0..=if even.floor { 0 } else { count.min(20_000) } {
                let (lower, upper) = even.range(level);
                let way = table.divide(&lower, &upper);
                if way.met && way.pods == count {
                    least = Some(least.map_or(way.cost, |least: u128| least.min(way.cost)));
                }
            }
            let found = choice.cheapest(&totals, &prices, None);
            match (found, least) {
                (Some((cost, _)), Some(least)) => prop_assert!(cost <= least),
                (None, Some(_)) => prop_assert!(false, "there is a division"),
                _ => {}
            }
        }
    }

    #[test]
    fn a_spread_over_billions_of_pods_is_divided_at_once() {
        let even = Even { skew: 1 << 31, running: vec![0, 1 << 31, 5], floor: false };
        let choice = choice(Rule::Even(even), 1, 3, &[]);
        let count = u64::from(u32::MAX);
        let way = choice.cheapest(&[count, 0, 0], &[3, 1, 2], None).expect("there is a division");
        assert_eq!(way.1.iter().map(|(_, count)| count).sum::<u64>(), count);
    }
}
