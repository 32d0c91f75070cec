//! Enumerates plans one node at a time, obeys every rule, and prunes where the rest cannot be cheap enough.
//!
//! A Lagrangian relaxation bounds the rest. Every node pays the prices of the rows and of the scarce nodes that it takes,
//! and the total of the available amounts is paid back once. A node that a commitment may cover pays the lower price of
//! its two twins: a node covered in part is a mixture of both and pays no less.

use super::multiset::Multisets;
use crate::canonical::{Model, Pattern, UNLIMITED};
use crate::dual_bound::{LIMIT_ONE, Prices};
use crate::meter::Meter;
use crate::plan::{Plan, Stock};
use crate::units::UNITS;

/// The maximum number of multisets of pods.
const STATES: u64 = 1 << 12;
/// The maximum number of pairs of a node and its pods.
const OPTIONS: usize = 1 << 14;
/// The maximum number of nodes of the search tree.
const NODES: u64 = 400_000;

/// A node with its pods.
struct Choice {
    content: usize,
    bin: u32,
    /// The Lagrangian cost, in value units.
    charge: u64,
}

struct Search<'a, 'm> {
    model: &'a Model,
    sets: &'a Multisets,
    /// By the first class among the pods.
    choices: Vec<Vec<Choice>>,
    /// The least Lagrangian cost of each multiset.
    least: Vec<u64>,
    /// The constant that is paid back, in value units.
    paid: i128,
    /// The common divisor of all costs.
    step: u64,
    /// The cost that a plan must undercut, in micro-dollars.
    best: u64,
    found: Option<Plan>,
    stock: Stock,
    /// The rows that some nodes make room in. Only complete plans can be checked against them.
    gives: Vec<bool>,
    chosen: Vec<(u32, usize)>,
    nodes: u64,
    meter: &'m mut dyn FnMut(u64) -> bool,
}

impl Search<'_, '_> {
    /// Returns whether a plan with a total Lagrangian cost of `pays` can still cost less than the best.
    fn promises(&self, pays: u64) -> bool {
        let units = i128::from(pays) - self.paid;
        let below = i128::from(self.best) - i128::from(self.step);
        units <= below * i128::from(UNITS)
    }

    fn opens(&self, bin: u32) -> bool {
        let rows = &self.model.bins[bin as usize].limit_use;
        self.stock.bins()[bin as usize] > 0
            && rows.iter().all(|(row, amount)| {
                self.gives[*row as usize] || self.stock.limits()[*row as usize] >= *amount
            })
    }

    /// Tries all ways to place `state` after nodes that pay `paying`. Returns `false` when it gave up.
    fn descend(&mut self, state: usize, paying: u64, from: (usize, usize)) -> bool {
        if state == 0 {
            self.note();
            return true;
        }
        let kind = self.sets.lowest(state);
        // Nodes with the same first class follow the order of the list, so that no set of nodes is tried twice.
        let first = if from.0 == kind { from.1 } else { 0 };
        for at in first..self.choices[kind].len() {
            let Choice { content, bin, charge } = self.choices[kind][at];
            if content > state || !self.sets.within(content, state) {
                continue;
            }
            let rest = self.least[state - content];
            let pays = paying.saturating_add(charge);
            if rest == u64::MAX || !self.promises(pays.saturating_add(rest)) || !self.opens(bin) {
                continue;
            }
            self.nodes += 1;
            if self.nodes > NODES || self.nodes.is_multiple_of(1 << 10) && (self.meter)(1 << 8) {
                return false;
            }
            self.stock.take(self.model, bin, 1);
            self.chosen.push((bin, content));
            let done = self.descend(state - content, pays, (kind, at));
            self.chosen.pop();
            self.stock.put_back(self.model, bin, 1);
            if !done {
                return false;
            }
        }
        true
    }

    fn note(&mut self) {
        if self.stock.overdrawn().is_some() {
            return;
        }
        let mut plan = Plan::default();
        for (bin, content) in &self.chosen {
            plan.add(Pattern { bin: *bin, pods: self.sets.pods(*content) }, 1);
        }
        let cost = plan.cost(self.model);
        if cost < self.best {
            self.best = cost;
            self.found = Some(plan);
        }
    }
}

/// Returns the cheapest plan for `demand` that costs less than `best`, if one exists, and whether the enumeration is
/// complete. It is not complete if it is undecided whether some pods fit a node. Returns `None` when the problem is too large. The
/// result is valid for any `prices`; good ones make it fast.
pub(crate) fn search(
    model: &Model,
    demand: &[u64],
    prices: &Prices,
    best: u64,
    meter: &mut Meter<'_>,
) -> Option<(Option<Plan>, bool)> {
    let sets = Multisets::new(demand, STATES)?;
    if sets.states * model.bins.len() > OPTIONS * 16 {
        return None;
    }
    let charges: Vec<u64> = (0..model.bins.len()).map(|bin| prices.charge(model, bin)).collect();
    let mut choices: Vec<Vec<Choice>> = (0..sets.kinds()).map(|_| Vec::new()).collect();
    let mut options = 0;
    let mut decided = true;
    for state in 1..sets.states {
        if meter.spend(1 + model.bins.len() as u64 / 8) {
            return None;
        }
        let pods = sets.pods(state);
        // Among nodes without scarcity, the cheapest suffices.
        let mut plain: Option<(u64, u32)> = None;
        for (index, bin) in model.bins.iter().enumerate() {
            if bin.covered.is_some() {
                continue;
            }
            let fits = Multisets::fits(model, index as u32, &pods);
            decided &= fits.is_some();
            if fits != Some(true) {
                continue;
            }
            let twin =
                model.bins.get(index + 1).filter(|next| next.covered.is_some() && next.origin == bin.origin);
            let own = if twin.is_some() { charges[index].min(charges[index + 1]) } else { charges[index] };
            let penalties = (bin.cost(&pods) - bin.price).saturating_mul(UNITS);
            let charge = own.saturating_add(penalties);
            if bin.limit_use.is_empty() && bin.available == UNLIMITED && twin.is_none() {
                if plain.is_none_or(|(least, _)| charge < least) {
                    plain = Some((charge, index as u32));
                }
            } else {
                choices[sets.lowest(state)].push(Choice { content: state, bin: index as u32, charge });
                options += 1;
            }
        }
        if let Some((charge, bin)) = plain {
            choices[sets.lowest(state)].push(Choice { content: state, bin, charge });
            options += 1;
        }
        if options > OPTIONS {
            return None;
        }
    }
    let mut least = vec![u64::MAX; sets.states];
    least[0] = 0;
    for state in 1..sets.states {
        let kind = &choices[sets.lowest(state)];
        if meter.spend(1 + kind.len() as u64 / 200) {
            return None;
        }
        for choice in kind {
            if choice.content <= state && sets.within(choice.content, state) {
                let all = least[state - choice.content].saturating_add(choice.charge);
                least[state] = least[state].min(all);
            }
        }
    }
    let scarce = model.bins.iter().zip(&prices.bins).filter(|(bin, _)| bin.available != UNLIMITED);
    let nodes: i128 = scarce.map(|(bin, price)| i128::from(*price) * i128::from(bin.available)).sum();
    let rows = prices.limits.iter().zip(&model.limits).map(|(price, limit)| {
        let price = i128::try_from(*price).unwrap_or(i128::MAX);
        (price.saturating_mul(*limit) >> LIMIT_ONE) + 1
    });
    let mut gives = vec![false; model.limits.len()];
    for (row, _) in model.bins.iter().flat_map(|bin| &bin.limit_use).filter(|(_, amount)| *amount < 0) {
        gives[*row as usize] = true;
    }
    for kind in &mut choices {
        // The lowest bound on a complete plan first.
        kind.sort_by_key(|choice| {
            let rest = least[sets.states - 1 - choice.content];
            (rest.saturating_add(choice.charge), choice.content, choice.bin)
        });
    }
    let mut ask = |units: u64| meter.spend(units);
    let mut search = Search {
        model,
        sets: &sets,
        choices,
        least,
        paid: rows.fold(nodes, i128::saturating_add),
        step: model.step(),
        best,
        found: None,
        stock: Stock::full(model),
        gives,
        chosen: Vec::new(),
        nodes: 0,
        meter: &mut ask,
    };
    let complete = search.descend(sets.states - 1, 0, (usize::MAX, 0)) && decided;
    Some((search.found, complete))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NeverStop;
    use crate::testing::undecided;

    #[test]
    fn an_enumeration_without_contents_that_are_undecided_is_not_complete() {
        let model = Model::new(&undecided());
        let prices = Prices::new(&model, &vec![0.0; model.classes.len()], &[0.0], &[]);
        let mut signal = NeverStop;
        let mut meter = Meter::new(&mut signal, u64::MAX);
        // Two nodes cost 20,000, and one is enough.
        let found = search(&model, &model.demand(), &prices, 20_000, &mut meter);
        assert_eq!(found, Some((None, false)));
    }
}
