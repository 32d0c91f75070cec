//! The leader loop: the frame that all loops of the leader share.

use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::edge::signal::Receiver;
use crate::leader::{LeaderTerm, LeaderTerms};
use crate::observed::ready::Ready;

/// A loop of the leader: it looks at the world and acts after each change.
pub trait LeaderLoop: Send {
    /// Its name in logs.
    const NAME: &'static str;
    /// Changes within this time after the first are handled together.
    const DEBOUNCE: Duration = Duration::ZERO;
    /// The least pause between two looks.
    const PAUSE: Duration = Duration::ZERO;

    /// Returns the changes that trigger a look.
    fn changes(&self) -> Receiver<()>;

    /// Prepares for a new term. Called when a term begins and all watches are synced.
    fn begin(&mut self, _: LeaderTerm) {}

    /// Looks once and acts. Returns how long until the next look if nothing changes; `None` for no further look.
    fn look(&mut self) -> impl Future<Output = Option<Duration>> + Send;

    /// Ends the term in which the process stops. We still lead, and the process waits only a while for this.
    fn end(&mut self, _: LeaderTerm) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Waits for a trigger other than those changes.
    fn is_called(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// The conditions under which loops run.
#[derive(Clone)]
pub struct Leading {
    /// The terms: `run` runs a loop only while we lead.
    pub terms: LeaderTerms,
    /// The readiness: a loop starts after all watches are synced.
    pub ready: Ready,
    /// The shutdown, which ends every loop.
    pub shutdown: CancellationToken,
}

impl Leading {
    /// Runs a loop in each of our terms. Its work is cancelled when the term ends. If the process stops in a term, the loop ends it.
    pub async fn run<L: LeaderLoop>(self, mut this: L) {
        loop {
            let term = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return,
                term = self.terms.gained() => term,
            };
            let stops = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => true,
                () = self.terms.lost(term.number) => {
                    debug!(what = L::NAME, "stops: not leading");
                    false
                }
                () = self.lead(&mut this, term) => false,
            };
            if stops {
                return this.end(term).await;
            }
        }
    }

    /// Runs a loop whether we lead or not.
    pub async fn run_always<L: LeaderLoop>(self, mut this: L) {
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => {}
            () = async {
                self.ready.wait().await;
                keep_looking(&mut this).await;
            } => {}
        }
    }

    async fn lead<L: LeaderLoop>(&self, this: &mut L, term: LeaderTerm) {
        self.ready.wait().await;
        this.begin(term);
        keep_looking(this).await;
    }
}

/// Looks repeatedly, for ever.
async fn keep_looking<L: LeaderLoop>(this: &mut L) {
    let mut changes = this.changes();
    loop {
        changes.mark_seen();
        let next = this.look().await;
        pause(L::PAUSE).await;
        if next == Some(Duration::ZERO) {
            continue;
        }
        tokio::select! {
            biased;
            _ = changes.changed() => pause(L::DEBOUNCE).await,
            () = wait(next) => {}
            () = this.is_called() => {}
        }
    }
}

/// Sleeps, except for zero: tokio sleeps at least until the next millisecond.
async fn pause(duration: Duration) {
    if !duration.is_zero() {
        sleep(duration).await;
    }
}

async fn wait(next: Option<Duration>) {
    match next {
        Some(pause) => sleep(pause).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
    use tokio::time::Instant;

    use super::*;
    use crate::edge::clock::SharedClock;
    use crate::edge::clock::testing::TokioClock;
    use crate::edge::signal::{self, Sender};
    use crate::leader::testing::granted;

    const SECOND: Duration = Duration::from_secs(1);
    /// Is added to the number of a term that the loop ends.
    const ENDED: u64 = 1000;

    /// Reports the number of its term and the time at each look.
    struct Watchful {
        changes: Receiver<()>,
        next: Option<Duration>,
        number: u64,
        begun: Instant,
        looks: UnboundedSender<(u64, Duration)>,
    }

    impl LeaderLoop for Watchful {
        const NAME: &'static str = "watching";
        const DEBOUNCE: Duration = SECOND;
        const PAUSE: Duration = Duration::from_secs(5);

        fn changes(&self) -> Receiver<()> {
            self.changes.clone()
        }

        fn begin(&mut self, term: LeaderTerm) {
            self.number = term.number;
        }

        async fn look(&mut self) -> Option<Duration> {
            self.looks.send((self.number, self.begun.elapsed())).expect("the test listens");
            self.next
        }

        async fn end(&mut self, term: LeaderTerm) {
            self.looks.send((term.number + ENDED, self.begun.elapsed())).expect("the test listens");
        }
    }

    struct Scene {
        changes: Sender<()>,
        term: Sender<Option<LeaderTerm>>,
        listed: Sender<Vec<&'static str>>,
        shutdown: CancellationToken,
        looks: UnboundedReceiver<(u64, Duration)>,
        task: tokio::task::JoinHandle<()>,
    }

    fn run(next: Option<Duration>, unlisted: Vec<&'static str>) -> Scene {
        let clock: SharedClock = Arc::new(TokioClock::new());
        let (term, terms) = granted(&clock);
        let expires = clock.moment().after(Duration::from_hours(1));
        term.replace(Some(LeaderTerm { expires, number: 1 }));
        let (listed, changes) = (signal::sender(unlisted), signal::sender(()));
        let (sender, looks) = unbounded_channel();
        let this =
            Watchful { changes: changes.subscribe(), next, number: 0, begun: Instant::now(), looks: sender };
        let shutdown = CancellationToken::new();
        let leading = Leading { terms, ready: Ready::new(listed.subscribe()), shutdown: shutdown.clone() };
        Scene { changes, term, listed, shutdown, looks, task: tokio::spawn(leading.run(this)) }
    }

    #[tokio::test(start_paused = true)]
    async fn it_looks_when_something_has_changed_and_many_changes_are_one_look() {
        let mut scene = run(None, vec![]);
        assert_eq!(scene.looks.recv().await, Some((1, Duration::ZERO)));
        sleep(SECOND * 10).await;
        for _ in 0..3 {
            scene.changes.replace(());
            sleep(SECOND / 4).await;
        }
        assert_eq!(scene.looks.recv().await, Some((1, SECOND * 11)), "a second after the first change");
        scene.changes.replace(());
        assert_eq!(scene.looks.recv().await, Some((1, SECOND * 17)), "not sooner than it may");
        sleep(SECOND * 1000).await;
        assert!(scene.looks.try_recv().is_err(), "nothing has changed");
    }

    #[tokio::test(start_paused = true)]
    async fn it_looks_again_when_it_wants_to() {
        let mut scene = run(Some(SECOND * 20), vec![]);
        for seconds in [0, 25, 50] {
            assert_eq!(scene.looks.recv().await, Some((1, SECOND * seconds)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_does_not_look_before_the_cluster_is_known() {
        let mut scene = run(None, vec!["Pod"]);
        sleep(SECOND * 7).await;
        scene.listed.replace(vec![]);
        assert_eq!(scene.looks.recv().await, Some((1, SECOND * 7)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_work_of_a_term_ends_with_it_and_begins_anew_in_the_next() {
        let mut scene = run(Some(SECOND * 20), vec![]);
        assert_eq!(scene.looks.recv().await, Some((1, Duration::ZERO)));
        let expires = scene.term.replace(None).expect("a term").expires;
        sleep(SECOND * 100).await;
        assert!(scene.looks.try_recv().is_err(), "we do not lead");
        scene.term.replace(Some(LeaderTerm { expires, number: 2 }));
        assert_eq!(scene.looks.recv().await, Some((2, SECOND * 100)));
        scene.shutdown.cancel();
        scene.task.await.expect("no panic");
        assert_eq!(scene.looks.recv().await, Some((2 + ENDED, SECOND * 100)), "not that of the lost term");
        assert_eq!(scene.looks.recv().await, None, "nothing began after that");
    }
}
