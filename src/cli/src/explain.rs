//! `poolwright explain`: explains in a few lines why one pod, node, claim or pool is as it is.

use std::io::Write;

use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_core::{ClaimName, PoolName, why};

use crate::args::{ExplainFlags, Explainable};
use crate::exit::{ExitStatus, Failure};
use crate::plan::{PlanWithRoom, plan_with_room, prepare};
use crate::solve_timer::SolveTimer;

/// Explains one object.
pub fn run(flags: &ExplainFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let (input, mut options) = prepare(&flags.input, &flags.search)?;
    options.baselines = false;
    let clock = SystemClock::new();
    let mut timer = SolveTimer::new(&clock, flags.search.time_limit());
    let now = clock.now();
    let PlanWithRoom { plan, explanations } = plan_with_room(&input.snapshot, now, &options, &mut timer);
    let (snapshot, name) = (&input.snapshot, flags.name.as_str());
    let lines = match flags.kind {
        Explainable::Pod => {
            let key = input.pod_key(name);
            why::pod(snapshot, now, &options, &plan, &key).map(|mut lines| {
                lines.extend(explanations.get(&key).cloned());
                lines.extend(why::life(snapshot, now, &key));
                lines.extend(why::closed_room(snapshot, now, &options, &plan, &key));
                lines
            })
        }
        Explainable::Node => why::node(snapshot, now, &plan, name),
        Explainable::Claim => why::claim(snapshot, now, &plan, &ClaimName(name.to_owned())),
        Explainable::Pool => why::pool(snapshot, &plan, &PoolName(name.to_owned())),
    };
    let Some(mut lines) = lines else {
        return Err(Failure::bad_input(input.no_such(flags.kind, name)));
    };
    if flags.kind != Explainable::Pool {
        lines.extend(input.lives_unread.as_ref().map(|unread| format!("{unread}.")));
    }
    // A price in the answer may be old.
    if lines.iter().any(|line| line.contains("$/h")) {
        lines.extend(input.price_age().map(|old| format!("Note: {old}.")));
    }
    for line in lines {
        writeln!(out, "{line}").map_err(Failure::writing)?;
    }
    Ok(ExitStatus::Done)
}
