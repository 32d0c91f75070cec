//! The variables and rows, and the two solvers behind `good_lp`.

use good_lp::variable::UnsolvedProblem;
use good_lp::{
    Constraint, Expression, IntoAffineExpression, ProblemVariables, ResolutionError, Solution,
    SolutionStatus, SolverModel, Variable, WithTimeLimit, highs, microlp, variable,
};

/// The solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Highs,
    /// HiGHS without its presolve, which has been wrong: a second opinion.
    HighsWithoutPresolve,
    Microlp,
}

/// The reason why a program is not solved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsolved {
    /// No values satisfy the rows.
    Impossible,
    /// The backend ran out of time, or failed.
    Unfinished(String),
    /// The solution is further from integers than doubles explain.
    Inexact(String),
}

/// The values of the variables.
pub type Values = Box<dyn Fn(Variable) -> f64>;

/// The seconds for one solve: HiGHS should finish, microlp only where it can.
const PATIENCE: f64 = 120.0;
const LITTLE_PATIENCE: f64 = 2.0;

#[derive(Default)]
pub struct Program {
    variables: ProblemVariables,
    rows: Vec<Constraint>,
}

impl Program {
    /// Adds an integer from `least` to `most`.
    pub fn integer(&mut self, least: u64, most: u64) -> Variable {
        self.variables.add(variable().integer().min(least as f64).max(most as f64))
    }

    pub fn binary(&mut self) -> Variable {
        self.variables.add(variable().binary())
    }

    /// Adds a non-negative number.
    pub fn real(&mut self) -> Variable {
        self.variables.add(variable().min(0))
    }

    pub fn row(&mut self, row: Constraint) {
        self.rows.push(row);
    }

    pub fn size(&self) -> usize {
        self.variables.len()
    }

    /// Returns values with the lowest `objective`.
    pub fn least(&self, objective: &Expression, backend: Backend) -> Result<Values, Unsolved> {
        match backend {
            Backend::Highs => match self.highs(objective, "on") {
                // The presolve of HiGHS 1.15 has called feasible programs infeasible.
                Err(Unsolved::Impossible) => self.highs(objective, "off"),
                answer => answer,
            },
            Backend::HighsWithoutPresolve => self.highs(objective, "off"),
            Backend::Microlp => {
                let model = self.unsolved(objective).using(microlp).with_time_limit(LITTLE_PATIENCE);
                values(self.with_rows(model).solve())
            }
        }
    }

    fn highs(&self, objective: &Expression, presolve: &str) -> Result<Values, Unsolved> {
        // Gaps and tolerances below one micro-dollar in the unit of the objective.
        let model = self
            .unsolved(objective)
            .using(highs)
            .set_threads(1)
            .set_option("presolve", presolve)
            .set_option("mip_rel_gap", 0.0)
            .set_option("mip_abs_gap", 1e-6)
            .set_option("mip_feasibility_tolerance", 1e-7)
            .with_time_limit(PATIENCE);
        values(self.with_rows(model).solve())
    }

    fn unsolved(&self, objective: &Expression) -> UnsolvedProblem {
        let mut variables = self.variables.clone();
        // A program without variables is refused, so add a variable without effect.
        variables.add(variable().binary());
        variables.minimise(objective.clone())
    }

    fn with_rows<M: SolverModel>(&self, mut model: M) -> M {
        for row in &self.rows {
            model.add_constraint(row.clone());
        }
        model
    }

    /// Returns the maximum of `objective`, which is integer.
    pub fn most(&self, objective: &Expression, backend: Backend) -> Result<u64, Unsolved> {
        let values = self.least(&(-1.0 * objective.clone()), backend)?;
        let most: f64 = objective.linear_coefficients().map(|(of, each)| values(of).round() * each).sum();
        Ok(most.round() as u64)
    }
}

fn values<S: Solution + 'static>(solved: Result<S, ResolutionError>) -> Result<Values, Unsolved> {
    match solved {
        Ok(solution) if matches!(solution.status(), SolutionStatus::TimeLimit) => {
            Err(Unsolved::Unfinished("out of time".into()))
        }
        Ok(solution) => Ok(Box::new(move |of| solution.value(of))),
        Err(ResolutionError::Infeasible) => Err(Unsolved::Impossible),
        Err(error) => Err(Unsolved::Unfinished(error.to_string())),
    }
}
