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
    let (kind, name) = flags.object().map_err(Failure::bad_input)?;
    let namespace = flags.namespace.as_deref();
    let (input, options) = prepare(&flags.input, namespace, &flags.search)?;
    let clock = SystemClock::new();
    let mut timer = SolveTimer::new(&clock, flags.search.time_limit());
    let now = clock.now();
    let PlanWithRoom { plan, explanations } = plan_with_room(&input.snapshot, now, &options, &mut timer);
    let snapshot = &input.snapshot;
    let lines = match kind {
        Explainable::Pod => {
            let key = input.pod_key(name, namespace)?;
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
        return Err(Failure::bad_input(input.no_such(kind, name)));
    };
    if kind != Explainable::Pool {
        lines.extend(input.lives_unread.as_ref().map(|unread| format!("{unread}.")));
    }
    if let Some(namespace) = namespace.filter(|_| kind != Explainable::Pod) {
        lines.push(format!("-n {namespace} does not count here: only pods are in a namespace."));
    }
    for line in lines {
        writeln!(out, "{line}").map_err(Failure::writing)?;
    }
    Ok(ExitStatus::Done)
}
