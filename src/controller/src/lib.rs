//! The controller: watches -> index -> plan -> claims -> launches -> nodes, and back to nothing.
//!
//! Lives here: everything that talks to the API server and to clouds on behalf of decisions, the leadership that stands before
//! every such call, and events, metrics and health.
//!
//! May not live here: decisions (`core` makes them), conversion of objects (`intake` does it), the calls of any one cloud
//! (`providers` make them), flags and log formats (the command line's).
//!
//! Each room may use those before it, and a test forbids the rest:
//!
//! | room | what lives there |
//! |---|---|
//! | `edge` | clocks, metrics, health over HTTP, the queue of events, signals between tasks |
//! | `leader` | who leads, and the one writer that every change passes |
//! | `config` | settings |
//! | `sees` | watches and inventory, and the world that they keep |
//! | `acts` | the executor, which carries out actions; the writer of events |
//! | `loops` | the loops of the leader, each of which looks at the world and acts |
//!
//! ```text
//!  API server, clouds ──> sees ──> world ──> loops ──> core ──> actions ──> acts ──> leader::writer ──> API server, clouds
//! ```

mod acts;
mod config;
mod edge;
#[cfg(test)]
mod fake_api;
mod leader;
mod loops;
mod sees;

use std::future::Future;
use std::sync::Arc;

use anyhow::Context as _;
use kube::Client;
use poolwright_provider_contract::CloudProvider;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::info;

pub use config::{CommittedFile, Config, unfit};
pub use edge::causes::causes;
pub use edge::clock;
pub use edge::stoppable::{Stoppable, Suspension};
pub use leader::LeaseSettings;
// For the examples that show what compiles and what does not.
#[doc(hidden)]
pub use leader::writer::Permit;
pub use loops::compute::{Spawner, blocking_threads};
pub use poolwright_core::lifecycle::Placement;
#[doc(hidden)]
pub use sees::reader::Objects;

use acts::context::Context;
use acts::event_writer::write_events;
use acts::executor::Executor;
use edge::clock::{SharedClock, SystemClock};
use edge::events::Events;
use edge::http::{self, Endpoints};
use edge::metrics::Metrics;
use edge::stoppable::Tasks;
use leader::Elector;
use leader::writer::Writer;
use loops::compute::Compute;
use loops::leader_loop::Leading;
use sees::Sight;
use sees::commitments::Committed;
use sees::providers::Providers;
use sees::reader::Reader;

/// What a simulator puts in the place of the machine.
pub struct Environment {
    /// The clocks.
    pub clock: SharedClock,
    /// Where plans are computed.
    pub spawner: Spawner,
    /// What can stop the process and let it go on.
    pub stoppable: Stoppable,
}

impl Default for Environment {
    /// The machine's clocks, tokio's threads for blocking work, and nothing that stops us.
    fn default() -> Self {
        Self { clock: SystemClock::shared(), spawner: blocking_threads(), stoppable: Stoppable::default() }
    }
}

/// Runs the controller until `shutdown` completes, then finishes calls on their way and releases the lease.
///
/// Errors: settings that make no sense, two providers for one kind of node class, a port that cannot be bound.
/// Everything that can go wrong later is logged, counted and retried.
pub async fn run(
    config: Config,
    client: Client,
    providers: Vec<Arc<dyn CloudProvider>>,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    run_in(Environment::default(), config, client, providers, shutdown).await
}

/// [`run`] in an environment of one's own.
pub async fn run_in(
    environment: Environment,
    config: Config,
    client: Client,
    providers: Vec<Arc<dyn CloudProvider>>,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    config.check()?;
    let Environment { clock, spawner, stoppable } = environment;
    let (config, metrics) = (Arc::new(config), Metrics::new()?.with_process()?);
    let providers = Providers::new(providers)?;
    let (elector, terms) =
        Elector::new(client.clone(), config.lease.clone(), clock.clone(), metrics.clone())?;
    let (events, queue) = Events::new(clock.clone(), metrics.clone());
    let sight = Sight::new(&config, Reader::new(client), providers, events, metrics.clone(), clock.clone());
    let context = Context::new(&sight, Writer::new(terms.clone(), metrics.clone()));
    let executor = Executor::new(context.clone(), config.act_concurrency, stoppable.clone());
    let committed = Committed::new(config.commitments.as_ref());
    let listener = http::bind(config.http).await?;

    // Ends in two steps: first no new work, then, when calls on their way have ended, leadership and the rest.
    let (stop, release) = (CancellationToken::new(), CancellationToken::new());
    let mut background = Tasks::new(stoppable.clone());
    if let Some(listener) = listener {
        let (unsynced, trouble) = (sight.unsynced.subscribe(), elector.trouble());
        background.spawn(Endpoints { metrics, unsynced, trouble }.serve(listener, release.clone()));
    }
    background.spawn(write_events(queue, context.clone(), config.lease.identity.clone()));
    let leading = Leading { terms, ready: sight.ready(), shutdown: stop.clone() };
    sight.start(&config, committed.clone(), &mut background);
    // Ends with this future, also where it is dropped: a controller that is gone may hold no lease.
    let election = AbortOnDropHandle::new(tokio::spawn(stoppable.clone().run(elector.run(release.clone()))));
    let mut loops = Tasks::new(stoppable);
    let compute = Compute { spawner, clock };
    loops::start(&config, committed, &context, &executor, compute, &leading, &mut loops);

    let failure = tokio::select! {
        biased;
        () = shutdown => None,
        // None of these ends by itself: one that does has panicked, and a controller with a part missing must not go on.
        ended = loops.join_next() => ended.and_then(Result::err),
    };
    info!("stopping: taking no new work, finishing running calls");
    stop.cancel();
    executor.drain(config.drain).await;
    loops.abort_all();
    release.cancel();
    election.await.context("the election ended in a panic")?;
    background.abort_all();
    match failure {
        Some(panic) => {
            Err(anyhow::Error::new(panic).context("a part of the controller panicked; this is a bug"))
        }
        None => Ok(()),
    }
}
