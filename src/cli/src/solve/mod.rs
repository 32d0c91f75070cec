//! `poolwright debug solve`: solves a saved problem again, checks the solution, and prints its figures.

mod file;

use std::io::Write;

use poolwright_controller::clock::SystemClock;
use poolwright_report::solved::{Figures, Solved};
use poolwright_solver as solver;

use crate::args::SolveFlags;
use crate::exit::{ExitStatus, Failure};
use crate::print;
use crate::solve_timer::SolveTimer;

pub use file::save;

/// Solves every problem of the file and prints the solutions.
pub fn run(flags: &SolveFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let problems = file::read(&flags.file)?;
    let clock = SystemClock::new();
    let mut document = Solved::default();
    for (at, problem) in problems.iter().enumerate() {
        let mut timer = SolveTimer::new(&clock, flags.search.time_limit());
        let solution = solver::solve(problem, &flags.search.options(), &mut timer)
            .map_err(|error| Failure::bad_input(format!("problem {}: {error}", at + 1)))?;
        if let Err(violations) = solver::check(problem, &solution) {
            let all: Vec<_> = violations.iter().map(ToString::to_string).collect();
            return Err(Failure::Other(anyhow::anyhow!(
                "the solution of problem {} did not pass the independent check; this is a bug of Poolwright, please \
                 report it with the file: {}",
                at + 1,
                all.join("; ")
            )));
        }
        document.problems.push(Figures::of(problem, solution, timer.times()));
    }
    print::solved(&document, flags.output, out).map_err(Failure::writing)?;
    let left_out = document.problems.iter().any(|figures| figures.unplaced_pods > 0);
    Ok(if flags.fail_on_unplaced && left_out { ExitStatus::PodsLeftOut } else { ExitStatus::Done })
}
