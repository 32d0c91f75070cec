//! Suspension of the process: a simulator can stop it between any two steps and resume it later, as an operating system or a
//! hypervisor can. In production, this does nothing.

use std::any::Any;
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::timeout;
use tracing::warn;

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

/// Tasks of a process that end with it, and none of which ends by itself.
#[derive(Debug)]
pub struct Tasks {
    stoppable: Stoppable,
    set: JoinSet<()>,
    names: Vec<(Id, &'static str)>,
}

/// The end of a task that never ends by itself. The process must not go on without it.
#[derive(Debug, thiserror::Error)]
#[error("the task `{name}` {}; this is a bug", if .panic.is_some() { "panicked" } else { "ended" })]
pub struct Ended {
    /// The name of the task.
    pub name: &'static str,
    /// The panic; `None` if the task returned.
    #[source]
    pub panic: Option<JoinError>,
}

/// Returns the message of a panic.
pub fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a message")
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

    /// Waits until a task ends; for ever if there are none.
    pub async fn ended(&mut self) -> Ended {
        let Some(ended) = self.set.join_next_with_id().await else { return pending().await };
        let (id, panic) = match ended {
            Ok((id, ())) => (id, None),
            Err(panic) => (panic.id(), Some(panic)),
        };
        let name = self.names.iter().find(|(known, _)| *known == id).map_or("unknown", |(_, name)| name);
        Ended { name, panic }
    }

    /// Waits until all tasks have ended, for at most `limit`.
    pub async fn finish(&mut self, limit: Duration) {
        let all = async { while self.set.join_next().await.is_some() {} };
        if timeout(limit, all).await.is_err() {
            warn!("some tasks did not end in time, and are abandoned");
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
    async fn a_task_that_panics_or_ends_is_named_and_one_that_runs_is_not() {
        let mut tasks = Tasks::new(Stoppable::default());
        tasks.spawn("returns", async {});
        tasks.spawn("runs", pending());
        tasks.spawn("panics", async { panic!("a bug") });
        let mut told = [tasks.ended().await.to_string(), tasks.ended().await.to_string()];
        told.sort();
        assert_eq!(
            told,
            ["the task `panics` panicked; this is a bug", "the task `returns` ended; this is a bug"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_that_end_are_awaited_and_others_only_for_a_while() {
        let (sender, mut done) = tokio::sync::oneshot::channel();
        let mut tasks = Tasks::new(Stoppable::default());
        tasks.spawn("ends", async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let _ = sender.send(());
        });
        tasks.spawn("runs", pending());
        tasks.finish(Duration::from_secs(20)).await;
        assert_eq!(done.try_recv(), Ok(()));
    }

    #[test]
    fn the_message_of_a_panic_is_told_if_it_has_one() {
        assert_eq!(message(&"written"), "written");
        assert_eq!(message(&"formatted".to_owned()), "formatted");
        assert_eq!(message(&7), "a panic without a message");
    }
}
