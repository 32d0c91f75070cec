//! Coalescing of calls: requests that arrive at the same time become one call.
//!
//! AWS throttles by the number of calls and not by their size, so two hundred concurrent claims must not make two hundred calls.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use poolwright_provider_contract::ProviderError;
use tokio::sync::{Semaphore, oneshot};

type Waiting<I, O> = Vec<(I, oneshot::Sender<O>)>;

/// Collects the requests of a short time window and sends them in one call. While the maximum number of calls is in flight,
/// further requests wait and join the next call, so that a slow cloud gets no additional load.
#[derive(Debug)]
pub(crate) struct Coalescer<I, O> {
    waiting: Arc<Mutex<Waiting<I, O>>>,
    /// Permits for calls in flight.
    turns: Arc<Semaphore>,
    /// The length of the time window.
    moment: Duration,
    /// The maximum number of requests in one call.
    most: usize,
}

impl<I: Send + 'static, O: Send + 'static> Coalescer<I, O> {
    pub fn new(moment: Duration, most: usize, at_a_time: usize) -> Self {
        Self { waiting: Arc::default(), turns: Arc::new(Semaphore::new(at_a_time)), moment, most }
    }

    /// Returns the answer for `item`. One call of `run` answers all items that arrived in the same window, in their order.
    ///
    /// The call runs in a task of its own, so it continues if the caller is cancelled, because other callers wait for it.
    pub async fn ask<F, R>(&self, item: I, run: F) -> Result<O, ProviderError>
    where
        F: FnOnce(Vec<I>) -> R + Send + 'static,
        R: Future<Output = Vec<O>> + Send,
    {
        let (answer, answered) = oneshot::channel();
        let first = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.push((item, answer));
            // The request after a full call starts the next call.
            waiting.len() % self.most == 1 || self.most == 1
        };
        if first {
            let (waiting, moment, most) = (Arc::clone(&self.waiting), self.moment, self.most);
            let turns = Arc::clone(&self.turns);
            tokio::spawn(async move {
                tokio::time::sleep(moment).await;
                let _turn = turns.acquire_owned().await;
                let (items, answers): (Vec<I>, Vec<_>) = {
                    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
                    let count = waiting.len().min(most);
                    waiting.drain(..count).unzip()
                };
                for (answer, output) in answers.into_iter().zip(run(items).await) {
                    // The caller has given up.
                    let _ = answer.send(output);
                }
            });
        }
        answered
            .await
            .map_err(|_| ProviderError::Transient("a call to AWS ended without an answer".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn simultaneous_requests_share_one_call_and_each_gets_its_own_response() {
        let coalescer = Coalescer::new(Duration::from_millis(30), 100, 4);
        let calls = Arc::new(AtomicUsize::new(0));
        let asked = (0..250).map(|number: usize| {
            let calls = Arc::clone(&calls);
            coalescer.ask(number, move |items| async move {
                calls.fetch_add(1, Ordering::Relaxed);
                items.into_iter().map(|item| item * 2).collect()
            })
        });
        let answers: Vec<_> = join_all(asked).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(answers, (0..250).map(|number| number * 2).collect::<Vec<_>>());
        assert_eq!(calls.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_call_goes_on_when_the_one_who_came_first_gives_up() {
        let coalescer = Coalescer::new(Duration::from_millis(30), 100, 4);
        let run = |items: Vec<u32>| async move { items };
        let impatient = tokio::time::timeout(Duration::from_millis(5), coalescer.ask(1, run));
        let (gave_up, answer) = futures::join!(impatient, coalescer.ask(2, run));
        assert!(gave_up.is_err());
        assert_eq!(answer, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_during_a_call_share_the_next_call() {
        let coalescer = Arc::new(Coalescer::new(Duration::from_millis(30), usize::MAX, 1));
        let (under_way, calls) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let asked = (0..100).map(|number: u64| {
            let (coalescer, under_way, calls) =
                (Arc::clone(&coalescer), Arc::clone(&under_way), Arc::clone(&calls));
            async move {
                tokio::time::sleep(Duration::from_millis(100 * number)).await;
                let run = move |items: Vec<u64>| async move {
                    assert_eq!(under_way.fetch_add(1, Ordering::Relaxed), 0, "one at a time");
                    tokio::time::sleep(Duration::from_secs(20)).await;
                    under_way.fetch_sub(1, Ordering::Relaxed);
                    calls.fetch_add(1, Ordering::Relaxed);
                    items
                };
                coalescer.ask(number, run).await
            }
        });
        let answers: Vec<_> = join_all(asked).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(answers, (0..100).collect::<Vec<_>>());
        assert_eq!(calls.load(Ordering::Relaxed), 2, "the first, and all others");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_ends_without_an_answer_is_transient() {
        let coalescer: Coalescer<u32, u32> = Coalescer::new(Duration::from_millis(30), 100, 4);
        let answer = coalescer.ask(1, |_| async { Vec::new() }).await;
        assert!(matches!(answer, Err(ProviderError::Transient(_))), "{answer:?}");
    }
}
