//! The price of a pod of each class when all pods, including running ones, are placed on new nodes at least cost.

use crate::canonical::Model;
use crate::column_generation::{self, Goal, Task};
use crate::lp::Seed;
use crate::meter::Meter;
use crate::plan::Stock;
use crate::pricing::Pricer;
use crate::problem::Problem;
use crate::stages::Stages;
use crate::{admit, greedy};

use super::cluster::Cluster;

/// Builds a problem with all pods and unlimited supply. Scarcity is left to the plans themselves.
fn market(cluster: &Cluster<'_>) -> Problem {
    let problem = cluster.problem;
    let all: Vec<u32> = (0..problem.existing.len() as u32).collect();
    let demand = cluster.homeless(&all);
    let mut market = Problem {
        resources: problem.resources.clone(),
        classes: problem.classes.clone(),
        candidates: problem.candidates.clone(),
        ..Problem::default()
    };
    for candidate in &mut market.candidates {
        candidate.limit_use.clear();
        candidate.domains.clear();
    }
    for (class, count) in market.classes.iter_mut().zip(demand) {
        class.count = u32::try_from(count).unwrap_or(u32::MAX);
        class.existing.clear();
        class.ports.clear();
        let plenty = |candidate: &u32| problem.candidates[*candidate as usize].max_nodes.is_none();
        if class.candidates.iter().any(plenty) {
            class.candidates.retain(plenty);
        }
    }
    market
}

/// Prices by class, in micro-dollars; infinite for pods that no new node holds. [`Self::rough`] is immediate;
/// [`Self::fine`] solves a relaxation where work and the signal allow.
pub(super) struct NewNodePrices {
    problem: Problem,
    model: Model,
}

impl NewNodePrices {
    /// Builds the problem. Returns `None` when `stop`, which gets units of work, returns true.
    pub fn new(cluster: &Cluster<'_>, stages: Stages, stop: &mut dyn FnMut(u64) -> bool) -> Option<Self> {
        let problem = market(cluster);
        let model = Model::until(&problem, stages, stop)?;
        Some(Self { problem, model })
    }

    fn by_class(&self, prices: &[f64]) -> Vec<f64> {
        let mut all = vec![f64::INFINITY; self.problem.classes.len()];
        for (class, price) in self.model.classes.iter().zip(prices) {
            class.members.iter().for_each(|(member, _)| all[*member as usize] = *price);
        }
        all
    }

    /// Returns the price of a pod that shares its node with pods of its class.
    pub fn rough(&self) -> Vec<f64> {
        self.by_class(&greedy::share(&self.model, &self.model.demand()))
    }

    /// Returns the prices of a relaxation; `None` when it stopped before it had any.
    pub fn fine(&self, gap: f64, seed: Seed, meter: &mut Meter<'_>) -> Option<Vec<f64>> {
        let demand = self.model.demand();
        let plan = admit::plan_until(&self.model, &mut *meter);
        let stop = &mut |units| meter.tick(units);
        let mut start = column_generation::plain_columns(&self.model, &demand, stop);
        start.extend(plan.nodes.keys().cloned());
        let exchanges = column_generation::exchanges(&self.model, &mut |units| meter.tick(units));
        if meter.stopped() {
            return None;
        }
        let task = Task {
            demand: &demand,
            stock: &Stock::full(&self.model),
            start,
            exchanges: &exchanges,
            center: None,
            seed,
            cutoff: None,
            open: None,
        };
        let goal = Goal { gap, rounds: 40, levels: (0, 2), prove: true };
        let mut pricer = Pricer::until(&self.model, 0, &mut |units| meter.tick(units))?;
        let relaxed = column_generation::run(&mut pricer, task, goal, meter)?;
        Some(self.by_class(&relaxed.pods))
    }
}
