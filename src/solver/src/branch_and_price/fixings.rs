//! The demands to dive for where choices divide pods over zones or other values. Each demand fixes one option for
//! each choice.

use std::collections::BTreeMap;

use crate::canonical::Model;
use crate::column_generation::Relaxed;
use crate::flow::Split;
use crate::plan::Plan;
use crate::stages::SearchStage;

/// The number of demands with one choice switched.
const SWITCHES: usize = 6;

/// Returns the plain demands to dive for: every choice at its highest value in the relaxation; every choice as in `best`;
/// then single choices switched to their second option in the relaxation.
pub(super) fn fixings(model: &Model, totals: &[u64], relaxed: &Relaxed, best: &Plan) -> Vec<Vec<u64>> {
    let mut options: BTreeMap<u32, Vec<(f64, &Split)>> = BTreeMap::new();
    for (choice, split, value) in relaxed.options.iter().filter(|(.., value)| *value > 1e-6) {
        options.entry(*choice).or_default().push((*value, split));
    }
    for list in options.values_mut() {
        list.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    }
    let placed = best.placed(model);
    let put = |demand: &mut [u64], choice: u32, split: &Split| {
        for class in model.choices[choice as usize].cells() {
            demand[class as usize] = 0;
        }
        for (class, count) in split {
            demand[*class as usize] = *count;
        }
    };
    let mut first = placed.clone();
    for (choice, list) in &options {
        put(&mut first, *choice, list[0].1);
    }
    if model.gathered(&first) != totals {
        return vec![placed];
    }
    let mut next: Vec<(f64, u32, &Split)> = options
        .iter()
        .filter_map(|(choice, list)| list.get(1).map(|(value, split)| (*value, *choice, *split)))
        .collect();
    next.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut all = vec![first.clone(), placed];
    for (_, choice, split) in
        next.into_iter().take(if model.stages.has(SearchStage::Switches) { SWITCHES } else { 0 })
    {
        let mut demand = first.clone();
        put(&mut demand, choice, split);
        all.push(demand);
    }
    let mut seen: Vec<Vec<u64>> = Vec::new();
    for demand in all {
        if !seen.contains(&demand) {
            seen.push(demand);
        }
    }
    seen
}
