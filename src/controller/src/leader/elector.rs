//! The elector: the task that acquires and renews the Lease, and publishes the term.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::evaluate::{Decision, Observed, evaluate};
use super::term::{LeaderTerm, LeaderTerms};
use crate::edge::causes::causes;
use crate::edge::clock::{Moment, SharedClock};
use crate::edge::metrics::Metrics;
use crate::edge::signal::{self, Receiver, Sender};

/// Settings of leader election.
#[derive(Clone, Debug)]
pub struct LeaseSettings {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Our identity, such as the pod's name. It must be unique among running processes. A process that restarts with the same
    /// identity (a container that restarts in its pod) continues at once.
    pub identity: String,
    /// How long a Lease is valid without renewal, in whole seconds.
    pub duration: Duration,
    /// How often it is renewed.
    pub renew: Duration,
    /// How much earlier our term ends than the Lease: a margin for requests in flight.
    pub margin: Duration,
}

impl LeaseSettings {
    /// Returns the defaults, for this identity (the pod's name) and the namespace of the Lease.
    pub fn new(identity: impl Into<String>, namespace: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: poolwright_terms::keys::LEASE.to_owned(),
            identity: identity.into(),
            duration: Duration::from_secs(15),
            renew: Duration::from_secs(5),
            margin: Duration::from_secs(2),
        }
    }

    /// Returns the settings with another duration, and with renewal and margin scaled to it (a third and two fifteenths).
    pub fn lasting(self, duration: Duration) -> Self {
        Self { duration, renew: duration / 3, margin: duration * 2 / 15, ..self }
    }

    fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.identity.is_empty(), "the identity is empty: set it to the pod's name");
        anyhow::ensure!(
            self.duration.subsec_nanos() == 0 && self.duration > self.renew + self.margin,
            "the lease duration ({:?}) must be whole seconds and longer than renewal ({:?}) plus margin ({:?})",
            self.duration,
            self.renew,
            self.margin,
        );
        Ok(())
    }
}

/// Returns the annotations that the leader writes into its Lease, so that people can see who leads; an empty value is left out.
pub type LeaseNotes = Arc<dyn Fn() -> BTreeMap<&'static str, String> + Send + Sync>;

/// The elector.
pub struct Elector {
    api: Api<Lease>,
    settings: LeaseSettings,
    clock: SharedClock,
    metrics: Metrics,
    term: Sender<Option<LeaderTerm>>,
    /// What the Lease says about us besides our identity.
    notes: LeaseNotes,
    /// Why the last attempt failed, if it did.
    trouble: Sender<Option<String>>,
    observed: Option<Observed>,
    /// The number of terms so far.
    number: u64,
}

/// The result of one step.
enum Step {
    Held,
    NotHeld { look_again_in: Duration },
    LookAgain,
}

impl Elector {
    /// Creates an elector. Returns it with the terms that it will publish.
    pub fn new(
        client: Client,
        settings: LeaseSettings,
        clock: SharedClock,
        metrics: Metrics,
    ) -> anyhow::Result<(Self, LeaderTerms)> {
        settings.check()?;
        let term = signal::sender(None);
        let terms = LeaderTerms::new(term.subscribe(), clock.clone());
        let api = Api::namespaced(client, &settings.namespace);
        let trouble = signal::sender(None);
        let notes: LeaseNotes = Arc::new(BTreeMap::new);
        Ok((Self { api, settings, clock, metrics, term, notes, trouble, observed: None, number: 0 }, terms))
    }

    /// Lets the Lease carry these annotations.
    pub fn noting(self, notes: LeaseNotes) -> Self {
        Self { notes, ..self }
    }

    /// Returns a receiver of the reason why the Lease cannot be read or renewed; `None` while it can.
    pub fn trouble(&self) -> Receiver<Option<String>> {
        self.trouble.subscribe()
    }

    /// Runs until `release`, then releases the Lease so that another process need not wait for its end.
    pub async fn run(mut self, release: CancellationToken) {
        loop {
            let pause = tokio::select! {
                biased;
                // Interrupting a step is harmless: our Lease expires by itself.
                () = release.cancelled() => break,
                pause = self.turn() => pause,
            };
            tokio::select! {
                biased;
                () = release.cancelled() => break,
                () = sleep(pause) => {}
            }
        }
        self.give_up().await;
    }

    /// Makes one step; returns how long to wait for the next one.
    async fn turn(&mut self) -> Duration {
        let sent = self.clock.moment();
        let step = timeout(self.settings.renew, self.step(sent)).await;
        let step =
            step.unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {:?}", self.settings.renew)));
        self.tell(step.as_ref().err().map(|error| causes(error.as_ref())));
        match step {
            Ok(Step::Held) => {
                self.hold(sent);
                self.settings.renew
            }
            Ok(Step::NotHeld { look_again_in }) => {
                self.end_term("somebody else holds the lease");
                look_again_in.min(self.settings.renew)
            }
            Ok(Step::LookAgain) => Duration::from_millis(100),
            Err(_) => {
                // The term continues until it expires: no other process can take the Lease before that.
                self.metrics.lease_errors.inc();
                let now = self.clock.moment();
                if !self.term.view(|term| term.is_some_and(|term| term.is_current(now))) {
                    self.end_term("the lease expired before it was renewed");
                }
                self.settings.renew / 4
            }
        }
    }

    /// Publishes and logs a problem once, and its end.
    fn tell(&self, trouble: Option<String>) {
        let before = self.trouble.replace(trouble.clone());
        match trouble {
            Some(error) if before.as_ref() == Some(&error) => {
                debug!(error, "the lease could not be read or renewed, again");
            }
            Some(error) => warn!(error, "the lease could not be read or renewed; trying again"),
            None if before.is_some() => info!("the API server answers again"),
            None => {}
        }
    }

    async fn step(&mut self, now: Moment) -> anyhow::Result<Step> {
        let held = self.term.view(Option::is_some);
        if !held || self.observed.is_none() {
            let lease = self.api.get_opt(&self.settings.name).await.context("reading the lease")?;
            self.observed = lease.map(|lease| Observed::update(self.observed.take(), lease, now.monotonic));
        }
        let decision = evaluate(self.observed.as_ref(), &self.settings.identity, now.monotonic);
        if let Decision::Wait(until) = decision {
            return Ok(Step::NotHeld { look_again_in: until.saturating_sub(now.monotonic) });
        }
        let written = match &self.observed {
            None => self.api.create(&PostParams::default(), &self.desired(None, now)).await,
            Some(seen) => {
                let lease = self.desired(Some(&seen.lease), now);
                self.api.replace(&self.settings.name, &PostParams::default(), &lease).await
            }
        };
        match written {
            Ok(lease) => {
                self.observed = Some(Observed { lease, since: now.monotonic });
                Ok(Step::Held)
            }
            Err(kube::Error::Api(status))
                if status.is_conflict() || status.is_already_exists() || status.is_not_found() =>
            {
                debug!("somebody else changed the lease; reading it again");
                // The state of the Lease is unknown now, so it must be read before the next write.
                self.observed = None;
                Ok(Step::LookAgain)
            }
            Err(error) => Err(error).context("writing the lease"),
        }
    }

    /// Returns the Lease to write, with the resource version that was seen.
    fn desired(&self, seen: Option<&Lease>, now: Moment) -> Lease {
        let mut lease = seen.cloned().unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                name: Some(self.settings.name.clone()),
                namespace: Some(self.settings.namespace.clone()),
                ..Default::default()
            },
            spec: None,
        });
        lease.metadata.managed_fields = None;
        let annotations = lease.metadata.annotations.get_or_insert_default();
        for (key, value) in (self.notes)() {
            if value.is_empty() {
                annotations.remove(key);
            } else {
                annotations.insert(key.to_owned(), value);
            }
        }
        let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
        if spec.holder_identity.as_deref() != Some(&self.settings.identity) {
            spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |count| count.saturating_add(1)));
            spec.acquire_time = Some(MicroTime(now.wall));
        }
        spec.holder_identity = Some(self.settings.identity.clone());
        spec.lease_duration_seconds = i32::try_from(self.settings.duration.as_secs()).ok();
        spec.renew_time = Some(MicroTime(now.wall));
        lease
    }

    fn hold(&mut self, sent: Moment) {
        let expires = sent.after(self.settings.duration.saturating_sub(self.settings.margin));
        let previous = self.term.view(|term| *term);
        // If the term ended in between, loops have treated it as lost, so this is a new term.
        let renewed = previous.filter(|term| term.is_current(self.clock.moment()));
        if renewed.is_none() {
            self.number += 1;
            info!(lease = %self.settings.name, identity = %self.settings.identity, "leading");
        }
        self.metrics.leader.set(1);
        self.term.replace(Some(LeaderTerm { expires, number: self.number }));
    }

    fn end_term(&self, why: &str) {
        self.metrics.leader.set(0);
        let had = self.term.replace(None);
        if had.is_some() {
            warn!(lease = %self.settings.name, why, "no longer leading");
        }
    }

    async fn give_up(mut self) {
        let held = self.term.replace(None).is_some();
        self.metrics.leader.set(0);
        let Some(seen) = self.observed.take().filter(|_| held) else { return };
        let mut lease = seen.lease;
        lease.metadata.managed_fields = None;
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = None;
            spec.renew_time = Some(MicroTime(self.clock.now()));
        }
        let params = PostParams::default();
        let written = timeout(self.settings.renew, self.api.replace(&self.settings.name, &params, &lease));
        match written.await {
            Ok(Ok(_)) => info!(lease = %self.settings.name, "lease released"),
            other => debug!(?other, "the lease was not released; it expires by itself"),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinHandle;
    use tokio::time::Instant;

    use super::*;
    use crate::edge::clock::testing::TokioClock;
    use crate::fake_api::{FakeApi, Fault};

    struct Candidate {
        terms: LeaderTerms,
        trouble: Receiver<Option<String>>,
        release: CancellationToken,
        task: JoinHandle<()>,
    }

    fn candidate(api: &FakeApi, identity: &str) -> Candidate {
        let settings = LeaseSettings::new(identity, "default");
        let clock: SharedClock = Arc::new(TokioClock::new());
        let (elector, terms) = Elector::new(api.client(), settings, clock, Metrics::new().unwrap()).unwrap();
        let (trouble, release) = (elector.trouble(), CancellationToken::new());
        let task = tokio::spawn(elector.run(release.clone()));
        Candidate { terms, trouble, release, task }
    }

    #[tokio::test(start_paused = true)]
    async fn one_leads_and_the_next_takes_over_when_it_is_released() {
        let api = FakeApi::default();
        let first = candidate(&api, "first");
        first.terms.gained().await;
        let second = candidate(&api, "second");
        sleep(Duration::from_mins(10)).await;
        assert!(first.terms.current().is_some() && second.terms.current().is_none());

        first.release.cancel();
        first.task.await.unwrap();
        assert!(first.terms.current().is_none());
        let before = Instant::now();
        second.terms.gained().await;
        assert!(before.elapsed() <= Duration::from_secs(5), "without waiting for the lease to end");
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_crash_the_next_leads_only_when_the_term_of_the_dead_one_has_ended() {
        let api = FakeApi::default();
        let first = candidate(&api, "first");
        first.terms.gained().await;
        let second = candidate(&api, "second");
        sleep(Duration::from_mins(1)).await;
        first.task.abort();
        assert!(first.terms.current().is_some(), "calls of the dead one may still be on their way");
        second.terms.gained().await;
        assert!(first.terms.current().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_cannot_renew_stops_by_itself_and_a_short_failure_does_no_harm() {
        let api = FakeApi::default();
        let leader = candidate(&api, "leader");
        let term = leader.terms.gained().await;
        api.fault(axum::http::Method::PUT, "leases", Fault::AnswerLost);
        sleep(Duration::from_mins(1)).await;
        assert_eq!(leader.terms.current().unwrap().number, term.number, "one lost answer");

        for _ in 0..100 {
            api.fault(axum::http::Method::PUT, "leases", Fault::Fails(500));
        }
        let before = Instant::now();
        leader.terms.lost(term.number).await;
        assert!(before.elapsed() <= Duration::from_secs(13), "duration less margin");
        let why = leader.trouble.view(Clone::clone).expect("it says why");
        assert!(why.starts_with("writing the lease: "), "{why}");
        leader.terms.gained().await;
        assert_eq!(leader.trouble.view(Clone::clone), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_lease_says_what_its_holder_notes_and_forgets_what_it_no_longer_does() {
        let api = FakeApi::default();
        let settings = LeaseSettings::new("leader", "default");
        let clock: SharedClock = Arc::new(TokioClock::new());
        let (elector, terms) = Elector::new(api.client(), settings, clock, Metrics::new().unwrap()).unwrap();
        let rounds = std::sync::atomic::AtomicU64::new(0);
        let notes: LeaseNotes = Arc::new(move || {
            let first = rounds.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
            let date = if first { "2026-07-20" } else { "" };
            [("poolwright.dev/version", "1".to_owned()), ("poolwright.dev/prices-as-of", date.to_owned())]
                .into()
        });
        let release = CancellationToken::new();
        tokio::spawn(elector.noting(notes).run(release.clone()));
        terms.gained().await;
        let leases: Api<Lease> = Api::namespaced(api.client(), "default");
        let noted =
            || async { leases.get("poolwright-controller").await.unwrap().metadata.annotations.unwrap() };
        let first = noted().await;
        assert_eq!(first["poolwright.dev/prices-as-of"], "2026-07-20");
        sleep(Duration::from_secs(6)).await;
        let second: Vec<String> = noted().await.into_keys().collect();
        assert_eq!(second, ["poolwright.dev/version"]);
    }

    #[test]
    fn a_lease_of_another_duration_is_renewed_in_time_and_one_that_cannot_be_is_refused() {
        let settings = LeaseSettings::new("me", "poolwright");
        let as_before = settings.clone().lasting(settings.duration);
        assert_eq!((as_before.renew, as_before.margin), (settings.renew, settings.margin));
        settings.clone().lasting(Duration::from_secs(3)).check().unwrap();
        let error = settings.lasting(Duration::from_millis(2500)).check().unwrap_err().to_string();
        assert!(error.contains("whole seconds"), "{error}");
    }
}
