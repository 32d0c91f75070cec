//! The context that the executor and the loops share.

use std::sync::Arc;

use crate::edge::clock::SharedClock;
use crate::edge::events::Events;
use crate::edge::metrics::Metrics;
use crate::leader::writer::Writer;
use crate::observed::ObserverContext;
use crate::observed::providers::Providers;
use crate::observed::reader::Reader;
use crate::observed::world::World;

/// The shared context of the executor and the loops. Clones share it too.
#[derive(Clone)]
pub struct Context {
    /// The API server, for reading.
    pub reader: Reader,
    /// The writer: every change goes through it.
    pub writer: Writer,
    /// The observed world. Our own writes appear there at once.
    pub world: Arc<World>,
    /// The clouds, for reading.
    pub providers: Providers,
    /// Events for users.
    pub events: Events,
    /// Metrics.
    pub metrics: Metrics,
    /// The clocks.
    pub clock: SharedClock,
}

impl Context {
    /// Creates the context from the observers' context and a writer.
    pub fn new(observers: &ObserverContext, writer: Writer) -> Self {
        let ObserverContext { reader, world, providers, events, metrics, clock, .. } = observers.clone();
        Self { reader, writer, world, providers, events, metrics, clock }
    }
}

#[cfg(test)]
pub mod testing {
    //! A context around an API server and clouds in memory.

    use std::sync::Arc;

    use poolwright_core::batch::BatchWindow;
    use poolwright_core::setbacks::Setbacks;
    use poolwright_provider_contract::CloudProvider;

    use super::Context;
    use crate::edge::clock::SharedClock;
    use crate::edge::events::Events;
    use crate::edge::metrics::Metrics;
    use crate::edge::signal::Sender;
    use crate::fake_api::FakeApi;
    use crate::leader::LeaderTerm;
    use crate::leader::testing::granted;
    use crate::leader::writer::Writer;
    use crate::observed::providers::Providers;
    use crate::observed::reader::Reader;
    use crate::observed::world::World;

    /// Returns the context of a leader, and the sender that grants its term.
    pub fn leading(
        api: &FakeApi,
        clock: &SharedClock,
        providers: Vec<Arc<dyn CloudProvider>>,
    ) -> (Context, Sender<Option<LeaderTerm>>) {
        let (sender, terms) = granted(clock);
        let providers = Providers::new(providers).expect("no two for one kind");
        for cloud in providers.all() {
            // As the first listing does.
            cloud.set_doubt(None);
        }
        let metrics = Metrics::new().expect("the metrics of a test");
        let context = Context {
            reader: Reader::new(api.client()),
            writer: Writer::new(terms, metrics.clone()),
            world: World::new(BatchWindow::default(), Setbacks::default(), clock.clone()),
            providers,
            events: Events::new(clock.clone(), metrics.clone()).0,
            metrics,
            clock: clock.clone(),
        };
        (context, sender)
    }
}
