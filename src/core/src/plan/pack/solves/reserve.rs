//! What a node of a pool with `minValues` uses of limits. A launch may become any offering that its claim must name, and limits count
//! the largest of them. So the solver counts such a candidate with the least amount at which enough offerings are within reach: no
//! claim for it uses less. Otherwise it would plan nodes whose claims leave no choice within the limits.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_terms::CapacityType;

use crate::model::MinValuesPolicy;
use crate::plan::pack::solves::candidates::{Choice, Homes, NodeCandidate};
use crate::plan::pack::solves::inputs::SolveInputs;
use crate::supply::flexibility::ValueCount;
use crate::supply::limits::Limits;

/// Raises what candidates use of limits. `holding` has the candidates that fit each class, for each of its signatures.
pub(crate) fn raise_uses(
    candidates: &mut [NodeCandidate],
    holding: &[Homes],
    inputs: &SolveInputs<'_, '_>,
    limits: &Limits,
) {
    if inputs.options.min_values == MinValuesPolicy::BestEffort {
        return;
    }
    // By candidate: the least amounts over all classes that it holds.
    let mut least: BTreeMap<usize, Vec<(u32, u64)>> = BTreeMap::new();
    let mut seen: BTreeSet<*const usize> = BTreeSet::new();
    // A claim may list what the pods do not prefer. The own signature of a class comes last.
    for (_, homes) in holding.iter().filter_map(|asked| asked.last()) {
        if !seen.insert(homes.as_ptr()) {
            continue;
        }
        let required = |at: &usize| match &candidates[*at].choice {
            Choice::Required { pool, capacity_type, .. } => Some(((*pool, *capacity_type), *at)),
            Choice::Free | Choice::Relaxed { .. } => None,
        };
        let mut groups: BTreeMap<(usize, CapacityType), Vec<usize>> = BTreeMap::new();
        for (group, at) in homes.iter().filter_map(required) {
            groups.entry(group).or_default().push(at);
        }
        for ((pool, kind), of_group) in &groups {
            let of_pool = groups.iter().filter(|((of, _), _)| of == pool);
            let of_pool = of_pool.flat_map(|(_, members)| members.iter().copied()).collect();
            let needs = needs((*pool, *kind), of_pool, candidates, inputs, limits);
            for at in of_group {
                let known = least.entry(*at).or_insert_with(|| needs.clone());
                for ((_, known), (_, amount)) in known.iter_mut().zip(&needs) {
                    *known = (*known).min(*amount);
                }
            }
        }
    }
    for (at, needs) in least {
        for (limit, amount) in needs {
            if let Some((_, used)) = candidates[at].uses.iter_mut().find(|(of, _)| *of == limit) {
                *used = amount.max(*used);
            }
        }
    }
}

/// Returns, for each limit of a pool, the least amount at which its offerings leave the choice that it asks for in a launch of this
/// capacity type; empty if they never do.
fn needs(
    (pool, kind): (usize, CapacityType),
    mut of_pool: Vec<usize>,
    candidates: &[NodeCandidate],
    inputs: &SolveInputs<'_, '_>,
    limits: &Limits,
) -> Vec<(u32, u64)> {
    let supply = inputs.supply;
    let uses = of_pool.first().map_or(&[][..], |at| &candidates[*at].uses);
    // The stock of an offering is counted by the nodes that are planned with it.
    let of_limits: Vec<u32> =
        uses.iter().map(|(limit, _)| *limit).filter(|limit| !limits.is_stock(*limit)).collect();
    let mut all = Vec::with_capacity(of_limits.len());
    for limit in of_limits {
        let amount = |at: &usize| {
            let uses = &candidates[*at].uses;
            uses.iter().find(|(of, _)| *of == limit).map_or(0, |(_, amount)| *amount)
        };
        of_pool.sort_by_key(amount);
        let mut count = ValueCount::new(supply.pools[pool].pool, kind);
        let is_enough = |at: &&usize| {
            let offering = candidates[**at].offer.offering;
            count.add(&supply.offering(pool, offering).id, &supply.labels(pool, offering));
            count.shortages().next().is_none()
        };
        if let Some(last) = of_pool.iter().find(is_enough) {
            all.push((limit, amount(last)));
        }
    }
    all
}
