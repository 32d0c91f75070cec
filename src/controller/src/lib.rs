//! The controller: watches -> index -> plan -> claims -> launches -> nodes, and back to nothing.
//!
//! Lives here: everything that talks to the API server and to clouds on behalf of decisions, and the leader's claim that
//! stands before every such call; events, metrics, health.
//!
//! May not live here: decisions (`core` makes them), conversion of objects (`intake` does it), the calls of any one cloud
//! (`providers` make them), flags and log formats (the command line's).
//!
//! ```text
//!  watch ──> world (index, window, setbacks) ──> planner ──> claims ─┐
//!    ^                        │                                      ├──> executor ──> writer ──> API server, clouds
//!    │                        └────────────────> lifecycle ─> actions┘                   ^
//!    └──────────────────────────────── what was written ─────────────────┘             leader
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

use anyhow::Context;
use jiff::SignedDuration;
use kube::Client;
use poolwright_core::Profile;
use poolwright_core::batch::BatchWindow;
use poolwright_core::index::Change;
use poolwright_core::setbacks::Setbacks;
use poolwright_provider_contract::CloudProvider;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::info;

pub use config::Config;
pub use edge::causes::causes;
pub use edge::clock;
pub use edge::stoppable::{Gate, Gates};
pub use leader::LeaseSettings;
pub use loops::planner::{Spawner, blocking_threads};
pub use poolwright_core::lifecycle::Placement;
pub use sees::commitments::{CommittedFile, unfit};

use acts::executor::Executor;
use edge::clock::{SharedClock, SystemClock};
use edge::events::{Events, write_events};
use edge::http::Endpoints;
use edge::metrics::Metrics;
use edge::signal;
use edge::stoppable::Tasks;
use leader::Elector;
use leader::writer::Writer;
use loops::consolidation::Disruptor;
use loops::interruptions::Notices;
use loops::lifecycle::Lifecycle;
use loops::node_classes::Classes;
use loops::planner::Planner;
use loops::{budgets, pool_status};
use sees::commitments::Committed;
use sees::inventory::{CATALOGUES, Inventory};
use sees::kinds::{
    Attachments, Budgets, CsiNodes, DaemonSets, JobSets, Jobs, LeaderWorkerSets, Namespaces, NodeClaims,
    NodePools, Nodes, PodGroups, Pods, Quotas, ReplicaSets, ReplicationControllers, Services, StatefulSets,
    StorageClasses, UNFINISHED_PODS, VolumeClaims, Volumes,
};
use sees::providers::Providers;
use sees::ready::Ready;
use sees::watch::{Kind, Watches};
use sees::world::World;

/// What a simulator puts in the place of the machine.
pub struct Environment {
    /// The clocks.
    pub clock: SharedClock,
    /// Where plans are computed.
    pub spawner: Spawner,
    /// Where the process is stopped and goes on.
    pub gates: Gates,
}

impl Default for Environment {
    /// The machine's clocks, tokio's threads for blocking work, and nothing that stops us.
    fn default() -> Self {
        Self { clock: SystemClock::shared(), spawner: blocking_threads(), gates: Gates::default() }
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
    let Environment { clock, spawner, gates } = environment;
    let providers = Providers::new(providers)?;
    let metrics = Metrics::new()?.with_process()?;
    let config = Arc::new(config);
    let signed = |duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    let window = BatchWindow::new(config.batch_idle, config.batch_max);
    let setbacks = Setbacks::new(signed(config.setback_first), signed(config.setback_most));
    let world = World::new(window, setbacks, clock.clone());
    world.change(|state| {
        state.index.set_disruption_budgets(config.disruption_budgets.as_slice().into());
        poolwright_core::index::Change::None
    });
    let (elector, claims) =
        Elector::new(client.clone(), config.lease.clone(), clock.clone(), metrics.clone())?;
    let writer = Writer::new(claims, metrics.clone());
    let (events, sayings) = Events::new(clock.clone(), metrics.clone());
    let executor = Executor::new(
        client.clone(),
        writer.clone(),
        world.clone(),
        providers.clone(),
        events.clone(),
        metrics.clone(),
        clock.clone(),
        config.act_concurrency,
        gates.clone(),
    );
    let kinds = [
        Pods::NAME,
        Nodes::NAME,
        Namespaces::NAME,
        NodeClaims::NAME,
        NodePools::NAME,
        DaemonSets::NAME,
        VolumeClaims::NAME,
        Volumes::NAME,
        StorageClasses::NAME,
        CsiNodes::NAME,
        Attachments::NAME,
        Jobs::NAME,
        ReplicaSets::NAME,
        StatefulSets::NAME,
        Quotas::NAME,
        Budgets::NAME,
        JobSets::NAME,
        LeaderWorkerSets::NAME,
        PodGroups::NAME,
        CATALOGUES,
    ];
    // What made the pods matters to a scheduler that spreads them by default, and to nobody else.
    let spreads = config.profiles.values().any(Profile::spreads_pods);
    let makers = spreads.then_some([Services::NAME, ReplicationControllers::NAME]);
    let kinds: Vec<&'static str> = kinds.into_iter().chain(makers.into_iter().flatten()).collect();
    if spreads {
        world.change(|state| {
            state.index.keep_selectors();
            Change::None
        });
    }
    let unsynced = Arc::new(signal::sender(kinds));
    let unsynced_watch = unsynced.subscribe();
    let ready = Ready::new(unsynced_watch.clone());

    let listener = match config.http {
        None => None,
        Some(address) => {
            let listener = TcpListener::bind(address)
                .await
                .with_context(|| format!("the address {address} for metrics and health cannot be bound"))?;
            info!(address = %listener.local_addr()?, version = env!("CARGO_PKG_VERSION"), "serving metrics and health");
            Some(listener)
        }
    };

    // Ends in two steps: first no new work, then, when calls on their way have ended, leadership and the rest.
    let (stop, release) = (CancellationToken::new(), CancellationToken::new());
    let mut background = Tasks::new(gates.clone());
    let endpoints =
        Endpoints { metrics: metrics.clone(), unsynced: unsynced_watch, trouble: elector.trouble() };
    if let Some(listener) = listener {
        let release = release.clone();
        background.spawn(async move {
            if let Err(error) = endpoints.serve(listener, async move { release.cancelled().await }).await {
                tracing::error!(%error, "metrics and health are not served any more");
            }
        });
    }
    let identity = config.lease.identity.clone();
    background.spawn(write_events(sayings, client.clone(), writer, clock.clone(), identity, metrics.clone()));
    let watches = Watches {
        world: world.clone(),
        events: events.clone(),
        metrics: metrics.clone(),
        unsynced: unsynced.clone(),
        identity: config.lease.identity.as_str().into(),
        clock: clock.clone(),
    };
    background.spawn(watches.clone().run::<Pods>(client.clone(), Some(UNFINISHED_PODS)));
    background.spawn(watches.clone().run::<Nodes>(client.clone(), None));
    background.spawn(watches.clone().run::<Namespaces>(client.clone(), None));
    background.spawn(watches.clone().run::<NodeClaims>(client.clone(), None));
    background.spawn(watches.clone().run::<NodePools>(client.clone(), None));
    background.spawn(watches.clone().run::<DaemonSets>(client.clone(), None));
    background.spawn(watches.clone().run::<VolumeClaims>(client.clone(), None));
    background.spawn(watches.clone().run::<Volumes>(client.clone(), None));
    background.spawn(watches.clone().run::<StorageClasses>(client.clone(), None));
    background.spawn(watches.clone().run::<CsiNodes>(client.clone(), None));
    background.spawn(watches.clone().run::<Attachments>(client.clone(), None));
    background.spawn(watches.clone().run::<Jobs>(client.clone(), None));
    background.spawn(watches.clone().run::<ReplicaSets>(client.clone(), None));
    background.spawn(watches.clone().run::<StatefulSets>(client.clone(), None));
    background.spawn(watches.clone().run::<Quotas>(client.clone(), None));
    background.spawn(watches.clone().run::<Budgets>(client.clone(), None));
    if spreads {
        background.spawn(watches.clone().run::<Services>(client.clone(), None));
        background.spawn(watches.clone().run::<ReplicationControllers>(client.clone(), None));
    }
    background.spawn(watches.clone().run_when_installed::<JobSets>(client.clone()));
    background.spawn(watches.clone().run_when_installed::<LeaderWorkerSets>(client.clone()));
    background.spawn(watches.run_when_installed::<PodGroups>(client.clone()));
    let inventory = Inventory {
        config: config.clone(),
        world: world.clone(),
        providers: providers.clone(),
        metrics: metrics.clone(),
        clock: clock.clone(),
        unsynced,
    };
    background.spawn(inventory.clone().catalogues());
    background.spawn(inventory.clone().instances());
    background.spawn(inventory.node_classes(client));

    // Ends with us, also where we are dropped: nobody may hold a lease for a controller that is gone.
    let election = AbortOnDropHandle::new(tokio::spawn(gates.clone().pass(elector.run(release.clone()))));
    let mut loops = Tasks::new(gates.clone());
    loops.spawn(pool_status::keep(executor.clone(), world.clone(), ready.clone(), stop.clone()));
    loops.spawn(
        Notices {
            providers: providers.all().to_vec(),
            world: world.clone(),
            executor: executor.clone(),
            metrics: metrics.clone(),
            clock: clock.clone(),
            ready: ready.clone(),
            shutdown: stop.clone(),
        }
        .run(),
    );
    let classes = Classes {
        executor: executor.clone(),
        world: world.clone(),
        ready: ready.clone(),
        shutdown: stop.clone(),
    };
    if classes.is_needed() {
        loops.spawn(classes.run());
    }
    loops.spawn(budgets::tell(executor.clone(), world.clone(), ready.clone(), stop.clone()));
    loops.spawn(
        Lifecycle {
            placement: config.placement,
            world: world.clone(),
            executor: executor.clone(),
            clock: clock.clone(),
            ready: ready.clone(),
            shutdown: stop.clone(),
        }
        .run(),
    );
    let committed = Committed::new(config.commitments.as_ref());
    if let Some(file) = &config.commitments {
        background.spawn(committed.clone().keep(file.clone(), metrics.clone()));
    }
    loops.spawn(
        Planner {
            config: config.clone(),
            committed,
            world,
            executor: executor.clone(),
            events,
            metrics,
            clock,
            ready,
            spawner,
            disruptor: Disruptor::default(),
            shutdown: stop.clone(),
        }
        .run(),
    );

    let failure = tokio::select! {
        biased;
        () = shutdown => None,
        // None of these ends by itself: one that does has panicked, and a controller with a part missing must not go on.
        ended = loops.join_next() => ended.and_then(Result::err),
    };
    info!("stopping: no new work; calls on their way are finished");
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
