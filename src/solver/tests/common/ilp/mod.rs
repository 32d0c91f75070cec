//! The whole model as one integer program: every pod gets a slot of a node. It is written from the problem's
//! documentation, shares no code with the solver, and is too slow for more than a dozen pods.
//!
//! Every candidate has as many slots as nodes of it could be bought, each with its GPUs one by one; every existing node
//! has one host. The objectives (the pods left out, then the cost) are solved in turn, with each earlier result as a row.
//!
//! Removable nodes are kept or emptied. The program does not check whether that is possible step by step, which could
//! only raise the optimum.
//!
//! Coefficients and the arithmetic of both backends are doubles, so numbers should be those of small problems. The cost
//! of the result is recomputed in integers.

mod flexible;
mod gpus;
mod groups;
mod hosts;
mod money;
mod program;

use good_lp::Expression;
use poolwright_solver::Problem;

pub use program::{Backend, Unsolved};

use hosts::Hosts;
use money::Money;
use program::Program;

/// The program of a problem.
struct Model<'a> {
    problem: &'a Problem,
    program: Program,
    hosts: Hosts,
    money: Money,
}

impl<'a> Model<'a> {
    /// Builds the program. With `counts`, exactly these numbers of waiting pods of each class are placed; otherwise any
    /// number that gangs allow.
    fn new(problem: &'a Problem, counts: Option<&[u32]>) -> Self {
        let mut program = Program::default();
        let hosts = Hosts::new(problem, counts, &mut program);
        gpus::add(problem, &hosts, &mut program);
        flexible::add(problem, &hosts, &mut program);
        groups::add(problem, &hosts, &mut program);
        let money = Money::new(problem, &hosts, &mut program);
        Self { problem, program, hosts, money }
    }

    fn least(&self, backend: Backend) -> Result<u64, Unsolved> {
        let values = self.program.least(&self.money.objective, backend)?;
        let (cost, said) = self.money.exact(self.problem, &self.hosts, &values);
        if (cost as f64 - said).abs() > 0.9 {
            return Err(Unsolved::Inexact(format!("{said} is said of a plan for {cost}")));
        }
        Ok(cost)
    }

    /// Maximises the worth of the placed pods as [`super::reference::worth`] counts it, and adds it as a row.
    fn most(&mut self, backend: Backend) -> Result<Vec<u64>, Unsolved> {
        let mut priorities: Vec<i32> = self.problem.classes.iter().map(|class| class.priority).collect();
        priorities.sort_unstable_by(|a, b| b.cmp(a));
        priorities.dedup();
        let mut worth = Vec::new();
        for priority in priorities {
            for by_value in [true, false] {
                let mut placed = Expression::default();
                let mut all = 0;
                for (class, placed_of) in self.problem.classes.iter().zip(&self.hosts.placed) {
                    if class.priority == priority {
                        let each = if by_value { class.value } else { 1 };
                        placed.add_mul(each as f64, *placed_of);
                        all += each * u64::from(class.count);
                    }
                }
                let mut most = 0;
                if all > 0 {
                    most = self.program.most(&placed, backend)?;
                    self.program.row(placed.geq(most as f64));
                }
                worth.push(most);
            }
        }
        Ok(worth)
    }
}

/// Returns the lowest objective of a plan that places exactly `counts` waiting pods of each class; `None` when there is
/// none.
pub fn least(problem: &Problem, counts: &[u32], backend: Backend) -> Result<Option<u64>, Unsolved> {
    match Model::new(problem, Some(counts)).least(backend) {
        Ok(least) => Ok(Some(least)),
        Err(Unsolved::Impossible) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the highest worth that can be placed, and the lowest objective of a plan that places it.
pub fn optimum(problem: &Problem, backend: Backend) -> Result<(Vec<u64>, u64), Unsolved> {
    let mut model = Model::new(problem, None);
    let worth = model.most(backend)?;
    Ok((worth, model.least(backend)?))
}

/// Returns the number of variables of the program.
pub fn size(problem: &Problem) -> usize {
    Model::new(problem, None).program.size()
}
