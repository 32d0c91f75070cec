//! The whole model as one integer program: every pod gets a slot of a node. Written from the problem's documentation, with
//! nothing of the engine in it, and hopeless as a planner beyond a dozen pods.
//!
//! For every candidate there are as many slots as nodes of it could be bought, each with its GPUs one by one; for every
//! existing node there is one host. What must be large or small in turn (what is left out, then the objective) is solved in
//! turn, with what was reached before as a row.
//!
//! Removable nodes are kept or emptied. Whether that can be done step by step is not asked: it can only make the least
//! dearer.
//!
//! Coefficients are doubles and so is the arithmetic of both backends: numbers should be those of small problems. The cost of
//! what comes out is computed anew in integers.

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
    /// With `counts`, exactly so many waiting pods of each class are placed; else any number that gangs allow.
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

    /// Makes what is placed worth most, as [`super::reference::worth`] counts it, and lets nothing less pass.
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

/// The least objective of a plan that places exactly so many waiting pods of each class; `None` when there is none.
pub fn least(problem: &Problem, counts: &[u32], backend: Backend) -> Result<Option<u64>, Unsolved> {
    match Model::new(problem, Some(counts)).least(backend) {
        Ok(least) => Ok(Some(least)),
        Err(Unsolved::Impossible) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The most that can be placed, and the least objective of a plan that places it.
pub fn optimum(problem: &Problem, backend: Backend) -> Result<(Vec<u64>, u64), Unsolved> {
    let mut model = Model::new(problem, None);
    let worth = model.most(backend)?;
    Ok((worth, model.least(backend)?))
}

/// How many variables the program has.
pub fn size(problem: &Problem) -> usize {
    Model::new(problem, None).program.size()
}
