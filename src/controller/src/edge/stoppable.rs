//! Suspension of the process: a simulator can stop it between any two steps and resume it later, as an operating system or a
//! hypervisor can. In production, this does nothing.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::{JoinError, JoinSet};

/// Tells whether a process is suspended now.
pub trait Suspension: Send + Sync {
    /// Returns whether the process is suspended. If it is, wake the task of `context` when the process resumes.
    fn is_suspended(&self, context: &mut Context<'_>) -> bool;
}

/// A process that may be suspended.
#[derive(Clone, Default)]
pub struct Stoppable(Option<Arc<dyn Suspension>>);

impl fmt::Debug for Stoppable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Stoppable(simulated)" } else { "Stoppable(never)" })
    }
}

impl Stoppable {
    /// Creates a process that `suspension` can suspend.
    pub fn by(suspension: Arc<dyn Suspension>) -> Self {
        Self(Some(suspension))
    }

    /// Runs a future that makes progress only while the process is not suspended.
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
    /// Creates an empty set of tasks.
    pub fn new(stoppable: Stoppable) -> Self {
        Self { stoppable, set: JoinSet::new() }
    }

    /// Starts a task.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.set.spawn(self.stoppable.clone().run(task));
    }

    /// Waits until a task ends; `None` if there are none.
    pub async fn join_next(&mut self) -> Option<Result<(), JoinError>> {
        self.set.join_next().await
    }

    /// Aborts all tasks.
    pub fn abort_all(&mut self) {
        self.set.abort_all();
    }
}
