//! The microlp backend: a simplex in pure Rust, for small problems. It returns no duals, so the dual program is solved
//! too. Both are solved from scratch every time.

use ::microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};

use super::{Ask, Lp, Point};

/// The rows and columns of a program.
#[derive(Debug, Default)]
pub(crate) struct Microlp {
    rows: Vec<Ask>,
    columns: Vec<(f64, Vec<(usize, f64)>)>,
}

/// Returns the values of the variables, the objective, and the number of simplex iterations.
fn optimum(problem: &Problem, variables: &[Variable]) -> Option<(Vec<f64>, f64, u64)> {
    let solution = problem.solve().ok()?.into_solution().ok()?;
    let values = variables.iter().map(|variable| solution.var_value(*variable)).collect();
    Some((values, solution.objective(), solution.stats().lp_iterations))
}

impl Microlp {
    fn primal(&self) -> Option<(Vec<f64>, f64, u64)> {
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let mut rows: Vec<Vec<(Variable, f64)>> = vec![Vec::new(); self.rows.len()];
        let mut variables = Vec::with_capacity(self.columns.len());
        for (cost, entries) in &self.columns {
            let variable = problem.add_var(*cost, (0.0, f64::INFINITY));
            entries.iter().for_each(|(row, entry)| rows[*row].push((variable, *entry)));
            variables.push(variable);
        }
        for (ask, entries) in self.rows.iter().zip(&rows) {
            match ask {
                Ask::AtLeast(least) => problem.add_constraint(entries, ComparisonOp::Ge, *least),
                Ask::AtMost(most) => problem.add_constraint(entries, ComparisonOp::Le, *most),
                Ask::Exactly(value) => problem.add_constraint(entries, ComparisonOp::Eq, *value),
            }
        }
        optimum(&problem, &variables)
    }

    /// Solves the dual program: the row prices with the highest total worth such that no column is worth more than its
    /// cost.
    fn dual(&self) -> Option<(Vec<f64>, f64, u64)> {
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let prices: Vec<Variable> = self
            .rows
            .iter()
            .map(|ask| match ask {
                Ask::AtLeast(least) => problem.add_var(*least, (0.0, f64::INFINITY)),
                Ask::AtMost(most) => problem.add_var(*most, (f64::NEG_INFINITY, 0.0)),
                Ask::Exactly(value) => problem.add_var(*value, (f64::NEG_INFINITY, f64::INFINITY)),
            })
            .collect();
        for (cost, entries) in &self.columns {
            let worth: Vec<(Variable, f64)> =
                entries.iter().map(|(row, entry)| (prices[*row], *entry)).collect();
            problem.add_constraint(&worth, ComparisonOp::Le, *cost);
        }
        optimum(&problem, &prices)
    }
}

impl Lp for Microlp {
    fn add_row(&mut self, ask: Ask) {
        self.rows.push(ask);
    }

    fn add_column(&mut self, cost: f64, entries: &[(usize, f64)]) -> bool {
        let good = cost.is_finite()
            && entries.iter().all(|(row, entry)| *row < self.rows.len() && entry.is_finite());
        if good {
            self.columns.push((cost, entries.to_vec()));
        }
        good
    }

    fn solve(&mut self, go_on: &mut dyn FnMut(u64) -> bool) -> Option<Point> {
        if !go_on(0) {
            return None;
        }
        let (columns, objective, iterations) = self.primal()?;
        if !go_on(iterations) {
            return None;
        }
        let (duals, _, iterations) = self.dual()?;
        go_on(iterations);
        Some(Point { objective, columns, duals })
    }
}
