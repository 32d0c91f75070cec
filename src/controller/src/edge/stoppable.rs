//! What a process passes each time it runs: nothing on a machine. A simulator stops it there and lets it go on later, as an
//! operating system, a hypervisor or a debugger does between any two steps.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::{JoinError, JoinSet};

/// Decides whether a process runs just now.
pub trait Gate: Send + Sync {
    /// Whether it does. Where not, the task of this context is to be woken when it does again.
    fn is_open(&self, context: &mut Context<'_>) -> bool;
}

/// The gate of a process, if it has one.
#[derive(Clone, Default)]
pub struct Gates(Option<Arc<dyn Gate>>);

impl fmt::Debug for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Gates(simulated)" } else { "Gates(none)" })
    }
}

impl Gates {
    /// Everything passes this one.
    pub fn simulated(gate: Arc<dyn Gate>) -> Self {
        Self(Some(gate))
    }

    /// A future that goes on only while the gate is open.
    pub async fn pass<F: Future>(self, future: F) -> F::Output {
        let Self(Some(gate)) = self else { return future.await };
        let mut future = pin!(future);
        poll_fn(|context| if gate.is_open(context) { future.as_mut().poll(context) } else { Poll::Pending })
            .await
    }
}

/// Tasks of a process that end with it.
#[derive(Debug)]
pub struct Tasks {
    gates: Gates,
    set: JoinSet<()>,
}

impl Tasks {
    /// None yet.
    pub fn new(gates: Gates) -> Self {
        Self { gates, set: JoinSet::new() }
    }

    /// Starts one.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.set.spawn(self.gates.clone().pass(task));
    }

    /// Returns when the next one ends; `None` where there is none.
    pub async fn join_next(&mut self) -> Option<Result<(), JoinError>> {
        self.set.join_next().await
    }

    /// Ends all of them.
    pub fn abort_all(&mut self) {
        self.set.abort_all();
    }
}
