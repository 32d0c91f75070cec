//! The controller: watches the cluster and the clouds, asks `core` for decisions, and carries them out.
//!
//! This crate holds the watches and writes of the API server, the calls to clouds, leader election, events, metrics and health.
//!
//! It must not contain decisions (`core`), conversion of objects (`intake`), the API calls of a particular cloud (`providers`),
//! or flags and log formats (`cli`).
//!
//! Each module may use only those above it in this table; `tests/layers.rs` checks that.
//!
//! | module | contents |
//! |---|---|
//! | `edge` | clocks, metrics, health over HTTP, the queue of events, signals between tasks |
//! | `leader` | leader election, and the writer that guards every write |
//! | `config` | settings |
//! | `observed` | watches and inventory, and the world that they keep |
//! | `executor` | the executor, which carries out actions; the writer of events |
//! | `loops` | the leader's loops: each looks at the world, asks `core`, and submits actions |
//! | `environment` | the clocks, threads, planner and suspension that a controller runs with |
//!
//! ```text
//!  API server, clouds ──> observed ──> world ──> loops ──> core ──> actions ──> executor ──> leader::writer ──> API server, clouds
//! ```

mod config;
mod edge;
mod environment;
mod executor;
#[cfg(test)]
mod fake_api;
mod leader;
mod loops;
mod observed;

use std::future::Future;
use std::sync::Arc;

use anyhow::Context as _;
use kube::Client;
use poolwright_core::lifecycle::open_all;
use poolwright_provider_contract::Connected;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info};

pub use config::{CommittedFile, Config, unfit};
pub use edge::causes::causes;
pub use edge::clock;
pub use edge::stoppable::{Stoppable, Suspension};
pub use environment::Environment;
pub use leader::LeaseSettings;
// For the doc tests that show which writes compile.
#[doc(hidden)]
pub use leader::writer::Permit;
pub use loops::compute::{PlanFunction, Spawner, blocking_threads};
pub use loops::lives::{Learned, NAME as LIVES, stored as stored_lives};
pub use loops::planner::PlanFailure;
#[doc(hidden)]
pub use observed::reader::Objects;
pub use poolwright_core::lifecycle::PlacementMode;

use edge::events::Events;
use edge::http::{self, Endpoints};
use edge::metrics::Metrics;
use edge::signal;
use edge::stoppable::{Ended, Tasks};
use executor::Executor;
use executor::context::Context;
use executor::event_writer::write_events;
use leader::Elector;
use leader::writer::Writer;
use loops::compute::Compute;
use loops::leader_loop::Leading;
use observed::ObserverContext;
use observed::commitments::Committed;
use observed::lease_notes::lease_notes;
use observed::providers::Providers;
use observed::reader::Reader;

/// Runs the controller until `shutdown` completes, then waits for pending calls and releases the Lease.
///
/// Errors: invalid settings, two providers for one kind of node class, a port that cannot be bound, the end of a task that never ends
/// by itself, such as a panic. Other failures are logged, counted and retried.
pub async fn run(
    config: Config,
    client: Client,
    providers: Vec<Connected>,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    run_in(Environment::default(), config, client, providers, shutdown).await
}

/// Runs the controller like [`run`], in a given environment.
pub async fn run_in(
    environment: Environment,
    config: Config,
    client: Client,
    providers: Vec<Connected>,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    config.check()?;
    let Environment { clock, spawner, plan, stoppable } = environment;
    let (config, metrics) = (Arc::new(config), Metrics::new()?.with_process()?);
    // The background tasks of providers run until the controller has finished its calls to them.
    let mut background = Tasks::new(stoppable.clone());
    let mut clouds = Vec::new();
    for Connected { provider, background: work } in providers {
        if let Some(work) = work {
            background.spawn(provider.name(), work);
        }
        clouds.push(provider);
    }
    let providers = Providers::new(clouds)?.without(config.disabled_kinds.clone());
    let (elector, terms) =
        Elector::new(client.clone(), config.lease.clone(), clock.clone(), metrics.clone())?;
    let (events, queue) = Events::new(clock.clone(), metrics.clone());
    let observers =
        ObserverContext::new(&config, Reader::new(client), providers, events, metrics.clone(), clock.clone());
    let world = observers.world.clone();
    let elector = elector.noting(Arc::new(move || lease_notes(&world.snapshot())));
    let context = Context::new(&observers, Writer::new(terms.clone(), metrics.clone()));
    let executor = Executor::new(context.clone(), config.act_concurrency, stoppable.clone());
    let committed = Committed::new(config.commitments.as_ref());
    let listener = http::bind(config.http).await?;

    // Shutdown has two steps: first no new work; then, when pending calls have ended, leadership and the rest.
    let (stop, release) = (CancellationToken::new(), CancellationToken::new());
    let stopping = signal::sender(None);
    if let Some(listener) = listener {
        let (unsynced, trouble) = (observers.unsynced.subscribe(), elector.trouble());
        let endpoints =
            Endpoints { metrics: metrics.clone(), unsynced, trouble, stopping: stopping.subscribe() };
        background.spawn("http", endpoints.serve(listener, release.clone()));
    }
    background.spawn("events", write_events(queue, context.clone(), config.lease.identity.clone()));
    let leading = Leading { terms, ready: observers.ready(), shutdown: stop.clone() };
    observers.start(&config, committed.clone(), &mut background);
    // Aborted with this future, even if it is dropped: a controller that has ended must not hold the Lease.
    let mut election =
        AbortOnDropHandle::new(tokio::spawn(stoppable.clone().run(elector.run(release.clone()))));
    let mut loops = Tasks::new(stoppable);
    let compute = Compute { spawner, clock, plan };
    loops::start(&config, committed, &context, &executor, compute, &leading, &mut loops);

    let mut elects = true;
    // The controller must not go on without one of its tasks: the process ends, and its successor has all of them.
    let failure = tokio::select! {
        biased;
        () = shutdown => None,
        ended = loops.ended() => Some(ended),
        ended = background.ended() => Some(ended),
        ended = &mut election => {
            elects = false;
            Some(Ended { name: "election", panic: ended.err() })
        }
    };
    stopping.replace(Some(failure.as_ref().map_or_else(|| "it was told to".to_owned(), ToString::to_string)));
    if let Some(ended) = &failure {
        metrics.task_failures.with_label_values(&[ended.name]).inc();
        error!(why = causes(ended), "a task that never ends by itself ended, so the process ends");
    }
    info!("stopping: taking no new work, finishing running calls");
    stop.cancel();
    let finish = async {
        // Only the leader lets pods into retiring nodes. The next one closes them again.
        executor.carry_out_now(open_all(&context.world.snapshot()), config.drain).await;
        executor.drain(config.drain).await;
    };
    // Meanwhile the ledger is written once more.
    tokio::join!(finish, loops.finish(config.drain));
    loops.abort_all();
    release.cancel();
    if elects {
        election.await.context("the election ended in a panic")?;
    }
    background.abort_all();
    failure.map_or(Ok(()), |ended| Err(ended.into()))
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures::future::BoxFuture;
    use poolwright_catalog::builtin;
    use poolwright_provider_contract::memory::{MemoryCloud, MemoryProvider, NODE_CLASS_KIND};
    use poolwright_terms::NodeClassRef;

    use super::*;
    use crate::fake_api::FakeApi;

    /// Runs a controller whose only cloud has this background task, until it ends.
    async fn end_with(work: BoxFuture<'static, ()>) -> String {
        let class =
            NodeClassRef { group: "poolwright.dev".into(), kind: NODE_CLASS_KIND.into(), name: "a".into() };
        let cloud = MemoryCloud::new(Arc::new(builtin()), class, Arc::new(|| jiff::Timestamp::UNIX_EPOCH));
        let cloud = Connected { provider: Arc::new(MemoryProvider::new(cloud)), background: Some(work) };
        let config = Config { http: None, ..Config::new("a", "poolwright") };
        let ended = run(config, FakeApi::default().client(), vec![cloud], pending()).await;
        ended.expect_err("one of its tasks ended").to_string()
    }

    #[tokio::test(start_paused = true)]
    async fn the_controller_ends_with_the_background_task_of_a_cloud() {
        assert_eq!(end_with(Box::pin(ready(()))).await, "the task `memory` ended; this is a bug");
        let panics = Box::pin(async { panic!("a bug") });
        assert_eq!(end_with(panics).await, "the task `memory` panicked; this is a bug");
    }
}
