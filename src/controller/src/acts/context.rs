//! What everything that acts is handed.

use std::sync::Arc;

use crate::edge::clock::SharedClock;
use crate::edge::events::Events;
use crate::edge::metrics::Metrics;
use crate::leader::writer::Writer;
use crate::sees::Sight;
use crate::sees::providers::Providers;
use crate::sees::reader::Reader;
use crate::sees::world::World;

/// What the executor and the loops share; clones share it too.
#[derive(Clone)]
pub struct Context {
    /// The API server, for reading.
    pub reader: Reader,
    /// The way to change anything.
    pub writer: Writer,
    /// What is known, where our own writes go at once.
    pub world: Arc<World>,
    /// The clouds, for reading.
    pub providers: Providers,
    /// What users are told.
    pub events: Events,
    /// Counts.
    pub metrics: Metrics,
    /// Time.
    pub clock: SharedClock,
}

impl Context {
    /// What is shared by those that act on what is seen.
    pub fn new(sight: &Sight, writer: Writer) -> Self {
        let Sight { reader, world, providers, events, metrics, clock, .. } = sight.clone();
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
    use crate::leader::Term;
    use crate::leader::testing::granted;
    use crate::leader::writer::Writer;
    use crate::sees::providers::Providers;
    use crate::sees::reader::Reader;
    use crate::sees::world::World;

    /// The context of a leader, and what grants its term.
    pub fn leading(
        api: &FakeApi,
        clock: &SharedClock,
        providers: Vec<Arc<dyn CloudProvider>>,
    ) -> (Context, Sender<Option<Term>>) {
        let (sender, terms) = granted(clock);
        let metrics = Metrics::new().expect("the metrics of a test");
        let context = Context {
            reader: Reader::new(api.client()),
            writer: Writer::new(terms, metrics.clone()),
            world: World::new(BatchWindow::default(), Setbacks::default(), clock.clone()),
            providers: Providers::new(providers).expect("no two for one kind"),
            events: Events::new(clock.clone(), metrics.clone()).0,
            metrics,
            clock: clock.clone(),
        };
        (context, sender)
    }
}
