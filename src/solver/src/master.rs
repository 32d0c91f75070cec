//! The linear master over patterns, in HiGHS. The basis survives the addition of columns.

use highs::{ColProblem, HighsModelStatus, Model as Lp, Row, Sense};

use crate::canonical::{Model, UNLIMITED};
use crate::meter::Meter;
use crate::plan::Pattern;

/// What a column stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// A node with this content.
    Node(Pattern),
    /// A place for one pod of the second class taken by one of the first.
    Exchange,
    /// A pod that is on no node: keeps the master of a branch feasible.
    Missing,
}

/// Primal and dual values of a solved master.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    /// Objective in micro-dollars.
    pub objective: f64,
    /// By column.
    pub columns: Vec<f64>,
    /// What one more pod of each class costs.
    pub pods: Vec<f64>,
    /// What one more node of each bin would save.
    pub bins: Vec<f64>,
    /// What one more unit of each limit would save.
    pub limits: Vec<f64>,
}

/// The master problem for a demand.
pub(crate) struct Master<'m> {
    model: &'m Model,
    lp: Option<Lp>,
    /// Rows with their position in the LP.
    rows: Vec<Option<(Row, usize)>>,
    bin_rows: Vec<Option<(Row, usize)>>,
    /// The same, with what the row is divided by.
    limit_rows: Vec<Option<(Row, usize, f64)>>,
    /// All columns, in the order of the LP's.
    pub columns: Vec<Column>,
}

/// Simplex iterations between two questions to the meter.
const SLICE: i32 = 150;

impl<'m> Master<'m> {
    /// Rows for `demand`, and for what `bins` and `limits` have left. `all_rows` gives classes without demand a row too,
    /// so that exchanges can pass through them.
    pub fn new(
        model: &'m Model,
        demand: &[u64],
        bins: &[u64],
        limits: &[u64],
        all_rows: bool,
        seed: i32,
    ) -> Self {
        let mut problem = ColProblem::default();
        let mut position = 0;
        let mut next = || {
            position += 1;
            position - 1
        };
        let rows = demand
            .iter()
            .map(|count| (all_rows || *count > 0).then(|| (problem.add_row(*count as f64..), next())))
            .collect();
        let bin_rows = bins
            .iter()
            .map(|count| (*count != UNLIMITED).then(|| (problem.add_row(..=*count as f64), next())))
            .collect();
        // Limits come in bytes as well as in nodes: each row is scaled to a right-hand side near one hundred.
        let used = |limit: usize| {
            model.bins.iter().any(|bin| bin.limit_use.iter().any(|(index, _)| *index as usize == limit))
        };
        let limit_rows = limits
            .iter()
            .enumerate()
            .map(|(limit, bound)| {
                used(limit).then(|| {
                    let scale = (*bound as f64 / 100.0).max(1e-3);
                    (problem.add_row(..=*bound as f64 / scale), next(), scale)
                })
            })
            .collect();
        let mut lp = problem.optimise(Sense::Minimise);
        lp.make_quiet();
        lp.set_option("threads", 1);
        lp.set_option("presolve", "off");
        lp.set_option("solver", "simplex");
        lp.set_option("simplex_strategy", 4);
        lp.set_option("random_seed", seed);
        lp.set_option("simplex_iteration_limit", SLICE);
        Self { model, lp: Some(lp), rows, bin_rows, limit_rows, columns: Vec::new() }
    }

    fn add(&mut self, column: Column, cost: f64, entries: Vec<(Row, f64)>) {
        if let Some(lp) = &mut self.lp
            && lp.try_add_column(cost, 0.0.., entries).is_ok()
        {
            self.columns.push(column);
        }
    }

    /// Adds a node. Pods of classes without demand are ignored by the rows.
    pub fn add_node(&mut self, pattern: Pattern) {
        let bin = &self.model.bins[pattern.bin as usize];
        let mut entries: Vec<(Row, f64)> = pattern
            .pods
            .iter()
            .filter_map(|(class, count)| self.rows[*class as usize].map(|(row, _)| (row, f64::from(*count))))
            .collect();
        entries.extend(self.bin_rows[pattern.bin as usize].map(|(row, _)| (row, 1.0)));
        entries.extend(bin.limit_use.iter().filter_map(|(limit, amount)| {
            self.limit_rows[*limit as usize].map(|(row, _, scale)| (row, *amount as f64 / scale))
        }));
        let cost = bin.price as f64 / 1e6;
        self.add(Column::Node(pattern), cost, entries);
    }

    /// Lets a pod of `small` take a place meant for one of `large`.
    pub fn add_exchange(&mut self, small: u32, large: u32) {
        if let (Some((to, _)), Some((from, _))) = (self.rows[small as usize], self.rows[large as usize]) {
            self.add(Column::Exchange, 0.0, vec![(to, 1.0), (from, -1.0)]);
        }
    }

    /// Lets pods be left out at `costs` micro-dollars each, by class.
    pub fn add_missing(&mut self, costs: &[f64]) {
        for (class, cost) in costs.iter().enumerate() {
            if let Some((row, _)) = self.rows[class] {
                self.add(Column::Missing, cost / 1e6, vec![(row, 1.0)]);
            }
        }
    }

    /// Solves to optimality; `None` when asked to stop, or when the LP fails.
    pub fn solve(&mut self, meter: &mut Meter<'_>) -> Option<Values> {
        let mut before = 0;
        for _ in 0..1_500 {
            if meter.poll() {
                return None;
            }
            let solved = self.lp.take()?.try_solve().ok()?;
            let status = solved.status();
            let iterations = u64::try_from(solved.simplex_iteration_count()).unwrap_or(0);
            meter.spend(100 + iterations * (20 + self.rows.len() as u64 / 10));
            if status == HighsModelStatus::ReachedIterationLimit {
                self.lp = Some(solved.into());
                before += iterations;
                if before > 200_000 {
                    return None;
                }
                continue;
            }
            let solution = solved.get_solution();
            let objective = solved.objective_value();
            self.lp = Some(solved.into());
            if status != HighsModelStatus::Optimal {
                return None;
            }
            let duals = solution.dual_rows();
            let at = |position: usize| duals.get(position).copied().unwrap_or(0.0);
            return Some(Values {
                objective: objective * 1e6,
                columns: solution.columns().to_vec(),
                pods: self
                    .rows
                    .iter()
                    .map(|row| row.map_or(0.0, |(_, at_row)| at(at_row).max(0.0) * 1e6))
                    .collect(),
                bins: self
                    .bin_rows
                    .iter()
                    .map(|row| row.map_or(0.0, |(_, at_row)| (-at(at_row)).max(0.0) * 1e6))
                    .collect(),
                limits: self
                    .limit_rows
                    .iter()
                    .map(|row| row.map_or(0.0, |(_, at_row, scale)| (-at(at_row)).max(0.0) * 1e6 / scale))
                    .collect(),
            });
        }
        None
    }
}
