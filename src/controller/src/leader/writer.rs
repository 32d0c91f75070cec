//! The writer: the leader gate for every write to the cluster and to clouds.
//!
//! A write that bypasses it does not compile. The clients for the API server and for clouds are private: the rest of the
//! controller uses a [`Reader`](crate::observed::reader::Reader) and [`Cloud`](crate::observed::providers::Cloud)s, which have
//! no methods that write. Both give access to writing methods only for a [`Permit`], and only [`Writer::write`] creates
//! permits, one for each call, immediately after it has checked the term.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use prometheus::IntGauge;
use tokio::time::sleep;

use crate::edge::metrics::Metrics;
use crate::leader::LeaderTerms;

/// Proof that we led when a call began. It can be neither created nor kept outside this file: [`Writer::write`] lends it for
/// one call, which is cancelled when the term ends.
#[derive(Debug)]
pub struct Permit(());

/// The writer: makes calls only while we lead.
#[derive(Clone)]
pub struct Writer {
    terms: LeaderTerms,
    metrics: Metrics,
}

/// Why a write did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<E> {
    /// We do not lead. The call was not made or was cancelled, and may have had an effect. So every action must be repeatable.
    #[error("not leading: dropped")]
    NotLeading,
    /// No answer in time. The call may have had an effect.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The call's own error.
    #[error(transparent)]
    Failed(#[from] E),
}

impl Writer {
    /// A writer that checks these terms.
    pub fn new(terms: LeaderTerms, metrics: Metrics) -> Self {
        Self { terms, metrics }
    }

    /// The terms that it checks.
    pub fn terms(&self) -> &LeaderTerms {
        &self.terms
    }

    /// Makes one call. The term is checked immediately before, and the call is cancelled when the term ends, including the
    /// client's own retries inside `call`.
    ///
    /// Every poll of the call checks the term against the clock. A timer alone is not enough: when a stopped process resumes,
    /// a connection can become ready before the timers fire, and the call would send its request.
    pub async fn write<T, E>(
        &self,
        kind: &'static str,
        limit: Duration,
        call: impl AsyncFnOnce(&Permit) -> Result<T, E>,
    ) -> Result<T, WriteError<E>> {
        let Some(term) = self.terms.current() else {
            self.metrics.writes_dropped.with_label_values(&[kind]).inc();
            return Err(WriteError::NotLeading);
        };
        let _counted = Counted::new(&self.metrics.writes_in_flight);
        let permit = Permit(());
        let mut call = pin!(call(&permit));
        let call_while_leading = poll_fn(|context| {
            if self.terms.is_current(term.number) {
                call.as_mut().poll(context).map(Some)
            } else {
                Poll::Ready(None)
            }
        });
        let answer = tokio::select! {
            biased;
            () = self.terms.lost(term.number) => None,
            answer = call_while_leading => answer,
            () = sleep(limit) => return Err(WriteError::TimedOut(limit)),
        };
        let Some(answer) = answer else {
            self.metrics.writes_dropped.with_label_values(&[kind]).inc();
            return Err(WriteError::NotLeading);
        };
        answer.map_err(WriteError::Failed)
    }
}

/// Counts a call in flight until it is dropped.
struct Counted(IntGauge);

impl Counted {
    fn new(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::edge::clock::SharedClock;
    use crate::edge::clock::testing::TestClock;
    use crate::edge::signal::Sender;
    use crate::leader::LeaderTerm;
    use crate::leader::testing::granted;

    const LIMIT: Duration = Duration::from_secs(5);

    /// A writer whose controller leads for 15 s from now.
    struct Leading {
        writer: Writer,
        metrics: Metrics,
        clock: Arc<TestClock>,
        /// The term. It ends if this is dropped.
        term: Sender<Option<LeaderTerm>>,
    }

    impl Leading {
        fn new() -> Self {
            let clock = Arc::new(TestClock::new());
            let shared: SharedClock = clock.clone();
            let (term, terms) = granted(&shared);
            let metrics = Metrics::new().unwrap();
            Self { writer: Writer::new(terms, metrics.clone()), metrics, clock, term }
        }
    }

    #[tokio::test]
    async fn a_call_is_made_while_we_lead_and_dropped_once_the_term_has_ended() {
        let Leading { writer, metrics, clock, term: _term } = Leading::new();
        let calls = AtomicU32::new(0);
        let call = async |_: &Permit| {
            calls.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::io::Error>(7)
        };
        assert_eq!(writer.write("test", LIMIT, call).await.unwrap(), 7);
        clock.advance(Duration::from_secs(15));
        assert!(matches!(writer.write("test", LIMIT, call).await, Err(WriteError::NotLeading)));
        assert_eq!(calls.load(Ordering::Relaxed), 1, "the second call was never made");
        assert_eq!(metrics.writes_dropped.with_label_values(&["test"]).get(), 1);
    }

    #[tokio::test]
    async fn a_call_on_its_way_is_abandoned_when_the_term_is_lost() {
        let Leading { writer, term, .. } = Leading::new();
        let call = async |_: &Permit| {
            term.replace(None);
            std::future::pending::<Result<(), std::io::Error>>().await
        };
        assert!(matches!(writer.write("test", LIMIT, call).await, Err(WriteError::NotLeading)));
    }

    #[tokio::test]
    async fn a_call_that_resumes_after_its_term_expired_sends_nothing_even_before_the_timers_fire() {
        let Leading { writer, metrics, clock, term: _term } = Leading::new();
        let sent = AtomicU32::new(0);
        // The process stops while the call connects. Its timers run on another clock, so they do not fire in this test.
        let call = async |_: &Permit| {
            clock.advance(Duration::from_secs(15));
            tokio::task::yield_now().await;
            sent.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::io::Error>(())
        };
        assert!(matches!(writer.write("test", LIMIT, call).await, Err(WriteError::NotLeading)));
        assert_eq!(sent.load(Ordering::Relaxed), 0);
        assert_eq!(metrics.writes_dropped.with_label_values(&["test"]).get(), 1);
    }

    #[tokio::test]
    async fn a_call_is_counted_until_its_response_or_cancellation() {
        let Leading { writer, metrics, term: _term, .. } = Leading::new();
        let in_flight = &metrics.writes_in_flight;
        let call = async |_: &Permit| Ok::<_, std::io::Error>(in_flight.get());
        assert_eq!(writer.write("test", LIMIT, call).await.unwrap(), 1);
        assert_eq!(in_flight.get(), 0, "answered");
        let waiting = tokio::spawn({
            let writer = writer.clone();
            async move {
                let call = async |_: &Permit| std::future::pending::<Result<(), std::io::Error>>().await;
                writer.write("test", LIMIT, call).await
            }
        });
        tokio::task::yield_now().await;
        assert_eq!(in_flight.get(), 1);
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        assert_eq!(in_flight.get(), 0, "given up");
    }
}
