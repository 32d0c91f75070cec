//! `minValues` of pools, in the solver's form.

use std::collections::BTreeMap;

use poolwright_solver::problem::{Flexibility, Topology};
use poolwright_terms::CapacityType;

use crate::plan::pack::solves::candidates::{Choice, NodeCandidate};
use crate::plan::pack::solves::columns::{Columns, Source};
use crate::plan::pack::solves::inputs::SolveInputs;
use crate::supply::flexibility;

/// The rules about the choice of the cloud, and the values that they count.
#[derive(Debug, Default)]
pub(crate) struct FlexibleRules {
    pub topologies: Vec<Topology>,
    pub rules: Vec<Flexibility>,
    /// The values of each column, as [`poolwright_solver::Candidate::domains`].
    pub domains: Vec<Vec<(u32, u32)>>,
}

impl FlexibleRules {
    /// Creates the rules for the columns of a solver call.
    pub fn new(inputs: &SolveInputs<'_, '_>, candidates: &[NodeCandidate], columns: &Columns) -> Self {
        let mut all = Self { domains: vec![Vec::new(); columns.all.len()], ..Self::default() };
        let mut topologies: BTreeMap<&str, u32> = BTreeMap::new();
        // By pool, key, and capacity type if it matters.
        let mut rules: BTreeMap<(usize, &str, Option<CapacityType>), Flexibility> = BTreeMap::new();
        for (column, domains) in (0_u32..).zip(&mut all.domains) {
            let Source::New(at) = columns.all[column as usize].source else { continue };
            let Choice::Required { pool: at, capacity_type, values } = &candidates[at].choice else {
                continue;
            };
            let pool = inputs.supply.pools[*at].pool;
            for ((key, at_least), value) in pool.min_values.iter().zip(values) {
                let topology = *topologies.entry(key.as_str()).or_insert_with(|| {
                    all.topologies.push(Topology { name: key.clone(), values: Vec::new() });
                    all.topologies.len() as u32 - 1
                });
                if let Some(value) = value {
                    let known = &mut all.topologies[topology as usize].values;
                    let index = known.iter().position(|one| one == value).unwrap_or_else(|| {
                        known.push(value.clone());
                        known.len() - 1
                    });
                    domains.push((topology, index as u32));
                }
                let kind = (!flexibility::is_over_capacity_types(key)).then_some(*capacity_type);
                let rule = rules.entry((*at, key.as_str(), kind)).or_insert_with(|| Flexibility {
                    name: format!("minValues {at_least} of {key} of pool {}", pool.name),
                    candidates: Vec::new(),
                    topology,
                    at_least: *at_least,
                });
                rule.candidates.push(column);
            }
            domains.sort_unstable();
        }
        all.rules = rules.into_values().collect();
        all
    }
}
