//! Suspension of the process: a simulator can stop it between any two steps and resume it later, as an operating system or a
//! hypervisor can. In production, this does nothing.

use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::{Id, JoinError, JoinSet};

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
    names: Vec<(Id, &'static str)>,
}

/// A task that panicked.
#[derive(Debug, thiserror::Error)]
#[error("the task `{name}` panicked; this is a bug")]
pub struct Panicked {
    /// The name of the task.
    pub name: &'static str,
    /// The panic.
    #[source]
    pub panic: JoinError,
}

impl Tasks {
    /// Creates an empty set of tasks.
    pub fn new(stoppable: Stoppable) -> Self {
        Self { stoppable, set: JoinSet::new(), names: Vec::new() }
    }

    /// Starts a task.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let handle = self.set.spawn(self.stoppable.clone().run(task));
        self.names.push((handle.id(), name));
    }

    /// Waits until a task ends; `None` if there are none.
    pub async fn join_next(&mut self) -> Option<Result<(), Panicked>> {
        let ended = self.set.join_next().await?;
        Some(ended.map_err(|panic| {
            let name =
                self.names.iter().find(|(id, _)| *id == panic.id()).map_or("unknown", |(_, name)| name);
            Panicked { name, panic }
        }))
    }

    /// Waits until a task panics.
    pub async fn panicked(&mut self) -> Panicked {
        loop {
            match self.join_next().await {
                Some(Err(panicked)) => return panicked,
                Some(Ok(())) => {}
                None => pending().await,
            }
        }
    }

    /// Aborts all tasks.
    pub fn abort_all(&mut self) {
        self.set.abort_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_is_named_and_one_that_ends_is_not() {
        let mut tasks = Tasks::new(Stoppable::default());
        tasks.spawn("ends", async {});
        tasks.spawn("runs", pending());
        tasks.spawn("panics", async { panic!("a bug") });
        let panicked = tasks.panicked().await;
        assert_eq!(panicked.to_string(), "the task `panics` panicked; this is a bug");
    }
}
