//! A process that a simulator can stop between any two of its steps and let go on later, as an operating system, a hypervisor
//! or a debugger does. On a machine nothing stops it here.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::{JoinError, JoinSet};

/// Says whether a process is suspended now.
pub trait Suspension: Send + Sync {
    /// Whether it is. If so, the task of this context must be woken when it goes on.
    fn is_suspended(&self, context: &mut Context<'_>) -> bool;
}

/// A process, with what can stop it, if anything can.
#[derive(Clone, Default)]
pub struct Stoppable(Option<Arc<dyn Suspension>>);

impl fmt::Debug for Stoppable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Stoppable(simulated)" } else { "Stoppable(never)" })
    }
}

impl Stoppable {
    /// A process that this suspends.
    pub fn by(suspension: Arc<dyn Suspension>) -> Self {
        Self(Some(suspension))
    }

    /// The same future, which goes on only while the process is not stopped.
    pub async fn run<F: Future>(self, future: F) -> F::Output {
        let Self(Some(suspension)) = self else { return future.await };
        let mut future = pin!(future);
        poll_fn(
            |context| {
                if suspension.is_suspended(context) { Poll::Pending } else { future.as_mut().poll(context) }
            },
        )
        .await
    }
}

/// Tasks of a process that end with it.
#[derive(Debug)]
pub struct Tasks {
    stoppable: Stoppable,
    set: JoinSet<()>,
}

impl Tasks {
    /// None yet.
    pub fn new(stoppable: Stoppable) -> Self {
        Self { stoppable, set: JoinSet::new() }
    }

    /// Starts one.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.set.spawn(self.stoppable.clone().run(task));
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
