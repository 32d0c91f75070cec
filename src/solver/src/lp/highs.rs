//! The HiGHS backend. It keeps its basis when columns are added.

use std::fmt;

use ::highs::{ColProblem, HighsModelStatus, Model, Row, Sense};

use super::{Ask, Lp, Point};

/// The simplex iterations between two stop checks, and the number of rows up to which this holds. With more rows an
/// iteration takes longer, so the checks come sooner. Rows decide and not a clock, so that the result is the same on
/// every machine.
const SLICE: usize = 150;
const ROWS: usize = 1_100;
/// The minimum: fewer iterations take less time than the restart.
const LEAST: usize = 25;
/// The maximum number of simplex iterations, beyond which HiGHS is stuck.
const MOST: u64 = 200_000;

/// A program in HiGHS.
pub(crate) struct Highs {
    /// `None` after it failed.
    model: Option<Model>,
    rows: Vec<Row>,
}

impl fmt::Debug for Highs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Highs").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}

impl Highs {
    /// Creates an empty program. HiGHS requires seeds of 31 bits, without sign.
    pub fn new(seed: i32) -> Self {
        let mut model = ColProblem::default().optimise(Sense::Minimise);
        model.make_quiet();
        model.set_option("threads", 1);
        model.set_option("presolve", "off");
        model.set_option("solver", "simplex");
        model.set_option("simplex_strategy", 4);
        model.set_option("random_seed", seed);
        Self { model: Some(model), rows: Vec::new() }
    }
}

impl Lp for Highs {
    fn add_row(&mut self, ask: Ask) {
        let Some(model) = &mut self.model else { return };
        let row = match ask {
            Ask::AtLeast(least) => model.try_add_row(least.., []),
            Ask::AtMost(most) => model.try_add_row(..=most, []),
            Ask::Exactly(value) => model.try_add_row(value..=value, []),
        };
        match row {
            Ok(row) => self.rows.push(row),
            // The program is incomplete, so its solution would be wrong.
            Err(_) => self.model = None,
        }
    }

    fn add_column(&mut self, cost: f64, entries: &[(usize, f64)]) -> bool {
        let Self { model, rows } = self;
        let entries = entries.iter().filter_map(|(row, entry)| rows.get(*row).map(|row| (*row, *entry)));
        model.as_mut().is_some_and(|model| model.try_add_column(cost, 0.0.., entries).is_ok())
    }

    fn solve(&mut self, go_on: &mut dyn FnMut(u64) -> bool) -> Option<Point> {
        let slice = (SLICE * ROWS / self.rows.len().max(1)).clamp(LEAST, SLICE);
        if let Some(model) = &mut self.model {
            model.set_option("simplex_iteration_limit", slice as i32);
        }
        let mut spent = 0;
        let mut last = 0;
        while spent <= MOST && go_on(last) {
            let solved = self.model.take()?.try_solve().ok()?;
            let status = solved.status();
            last = u64::try_from(solved.simplex_iteration_count()).unwrap_or(0);
            spent += last.max(1);
            if status == HighsModelStatus::ReachedIterationLimit {
                self.model = Some(solved.into());
                continue;
            }
            let solution = solved.get_solution();
            let objective = solved.objective_value();
            self.model = Some(solved.into());
            if status != HighsModelStatus::Optimal {
                return None;
            }
            // Report the last iterations. The answer is ignored.
            go_on(last);
            return Some(Point {
                objective,
                columns: solution.columns().to_vec(),
                duals: solution.dual_rows().to_vec(),
            });
        }
        None
    }
}
