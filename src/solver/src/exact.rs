//! Very small problems, exactly: the cheapest way to place every multiset of the pods, by dynamic programming.

use crate::canonical::Model;
use crate::content::Content;
use crate::meter::Meter;
use crate::plan::{Pattern, Plan};

/// Multisets of pods at most.
const STATES: u64 = 1 << 14;
/// Steps (multiset, content) at most.
const STEPS: u64 = 1 << 22;

/// The cheapest plan for `demand` and its cost, which nothing undercuts; `None` when the problem is too large.
///
/// `None` too where commitments cover nodes. Ceilings on bought nodes, and all rows, are ignored while searching. The cost is then a valid bound, and the plan is given only if it
/// respects them.
pub(crate) fn solve(model: &Model, demand: &[u64], meter: &mut Meter<'_>) -> Option<(Plan, u64)> {
    if !model.commitments.is_empty() {
        // What a node costs depends on the others.
        return None;
    }
    let classes: Vec<usize> = (0..demand.len()).filter(|class| demand[*class] > 0).collect();
    let mut states: u64 = 1;
    let mut stride = Vec::new();
    for &class in &classes {
        stride.push(states as usize);
        states = states.checked_mul(demand[class] + 1).filter(|states| *states <= STATES)?;
    }
    let states = states as usize;
    let digits = |state: usize, at: usize| state / stride[at] % (demand[classes[at]] as usize + 1);

    // Contents by the multiset they hold, with the cheapest bin to buy for each.
    let mut contents: Vec<(usize, u64, u32)> = Vec::new();
    let mut on_existing: Vec<(u32, Vec<usize>)> = Vec::new();
    let content = |state: usize| -> Vec<(u32, u32)> {
        (0..classes.len())
            .map(|at| (classes[at] as u32, digits(state, at) as u32))
            .filter(|(_, count)| *count > 0)
            .collect()
    };
    let fits = |index: usize, state: usize| {
        let bin = &model.bins[index];
        let mut used = vec![0u128; model.dims];
        for (at, &class) in classes.iter().enumerate() {
            let count = digits(state, at) as u64;
            if count == 0 {
                continue;
            }
            let wanted = &model.classes[class];
            if count > u64::from(wanted.per_node) || bin.classes.binary_search(&(class as u32)).is_err() {
                return false;
            }
            for (used, request) in used.iter_mut().zip(&wanted.requests) {
                *used += u128::from(*request) * u128::from(count);
            }
        }
        used.iter().zip(&bin.capacity).all(|(used, room)| *used <= u128::from(*room))
            && (bin.rules.none() || Content::allows(model, index as u32, &content(state)))
    };
    if states as u64 * model.bins.len() as u64 > STEPS {
        return None;
    }
    let mut buyable: Vec<usize> =
        (0..model.bins.len()).filter(|bin| !model.bins[*bin].is_existing()).collect();
    buyable.sort_by_key(|bin| (model.bins[*bin].price, *bin));
    for state in 1..states {
        let pods = content(state);
        let mut best: Option<(u64, u32)> = None;
        for &bin in &buyable {
            if best.is_some_and(|(least, _)| least <= model.bins[bin].price) {
                break;
            }
            let cost = model.bins[bin].cost(&pods);
            if best.is_none_or(|(least, _)| cost < least) && fits(bin, state) {
                best = Some((cost, bin as u32));
            }
        }
        contents.extend(best.map(|(cost, bin)| (state, cost, bin)));
    }
    for (index, bin) in model.bins.iter().enumerate().filter(|(_, bin)| bin.is_existing()) {
        let held: Vec<usize> = (1..states).filter(|state| fits(index, *state)).collect();
        for _ in 0..bin.available.min(64) {
            on_existing.push((index as u32, held.clone()));
        }
        if bin.available > 64 {
            return None;
        }
    }
    let steps = on_existing.iter().map(|(_, held)| held.len() as u64).sum::<u64>() + contents.len() as u64;
    if steps * states as u64 > STEPS * 16 {
        return None;
    }
    let within =
        |part: usize, whole: usize| (0..classes.len()).all(|at| digits(part, at) <= digits(whole, at));

    // By buying alone, every multiset from its smaller ones.
    let mut least: Vec<u64> = vec![u64::MAX; states];
    let mut choice: Vec<usize> = vec![usize::MAX; states];
    least[0] = 0;
    for state in 1..states {
        if meter.spend(1 + contents.len() as u64 / 50) {
            return None;
        }
        for (index, (content, price, _)) in contents.iter().enumerate() {
            if *content <= state && within(*content, state) {
                let rest = least[state - content];
                if rest != u64::MAX && rest + price < least[state] {
                    least[state] = rest + price;
                    choice[state] = index;
                }
            }
        }
    }
    // Then each existing node may take something first.
    let mut taken: Vec<Vec<usize>> = Vec::new();
    for (_, held) in &on_existing {
        if meter.spend((held.len() * states) as u64 / 50 + 1) {
            return None;
        }
        let before = least.clone();
        let mut takes = vec![0; states];
        for state in 1..states {
            for &content in held {
                if content <= state && within(content, state) && before[state - content] < least[state] {
                    least[state] = before[state - content];
                    takes[state] = content;
                }
            }
        }
        taken.push(takes);
    }
    let cost = least[states - 1];
    if cost == u64::MAX {
        return None;
    }
    let mut plan = Plan::default();
    let mut state = states - 1;
    for ((bin, _), takes) in on_existing.iter().zip(&taken).rev() {
        let taken = takes[state];
        if taken > 0 {
            plan.add(Pattern { bin: *bin, pods: content(taken) }, 1);
            state -= taken;
        }
    }
    while state > 0 {
        let (bought, _, bin) = contents[choice[state]];
        plan.add(Pattern { bin, pods: content(bought) }, 1);
        state -= bought;
    }
    if !plan.is_payable(model) {
        // The bound holds; the plan does not.
        return Some((Plan::default(), cost));
    }
    Some((plan, cost))
}
