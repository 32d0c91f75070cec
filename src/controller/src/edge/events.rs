//! The queue of Kubernetes events: removes repetitions and floods, and puts warnings first.
//!
//! `executor/event_writer.rs` writes the queued events.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use poolwright_core::EventType;
use poolwright_terms::RegisteredReason;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tracing::warn;

use crate::edge::clock::SharedClock;
use crate::edge::metrics::Metrics;

/// The same event is repeated at most once in this time. API servers keep events for an hour (kube-apiserver `--event-ttl`), so
/// current events can always be read.
const REPEAT_AFTER: Duration = Duration::from_mins(30);
/// The most events on one object in that time, so that a message that keeps changing does not become a flood. Kubernetes' own
/// components allow 25 at once and then one in five minutes. Source: `defaultSpamBurst` and `defaultSpamQPS` of
/// <https://github.com/kubernetes/client-go/blob/master/tools/record/events_cache.go>.
const OF_ONE_OBJECT: usize = 50;
/// The number of events that are remembered. The oldest are forgotten, and may then be repeated.
const REMEMBERED: usize = 20_000;
/// The most queued warnings, and the most other queued events. Further ones are dropped, counted and logged. There is room for several
/// events on each of 1,000 nodes that a cloud takes back at once. An event takes a few kilobytes at most.
const QUEUE: usize = 10_000;
/// The least time between two messages in the log that events are dropped.
const LOG_AFTER: Duration = Duration::from_mins(1);
/// The most events on pods in one planning pass: 10,000 unschedulable pods must not cause 10,000 writes.
const POD_EVENTS_PER_PASS: u32 = 200;
/// The longest note that the API server accepts.
pub const NOTE_BYTES: usize = 1024;

/// A queued Kubernetes event.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedEvent {
    /// The object.
    pub about: ObjectReference,
    /// Normal or warning.
    pub kind: EventType,
    /// The reason. Conditions of node classes have reasons of their providers.
    pub reason: RegisteredReason,
    /// The message. Events with the same message are repetitions. For pods, text in parentheses is ignored, because it may
    /// contain figures that change with every node, such as the use of a limit.
    pub message: String,
    /// An explanation to write instead of the message. Its figures may change while the message stays the same.
    pub story: Option<String>,
}

/// The identity of an event: object, reason and message.
pub type EventKey = (String, &'static str, String);

#[derive(Debug, Default)]
struct Memory {
    recorded: BTreeMap<EventKey, Duration>,
    pods_this_pass: u32,
    /// When the log last said that events are dropped.
    logged: Option<Duration>,
}

impl Memory {
    /// Returns why an event is not recorded now; `None` if it is recorded.
    fn refuses(&self, key: &EventKey, now: Duration) -> Option<&'static str> {
        let is_recent = |at: &Duration| now < at.saturating_add(REPEAT_AFTER);
        if self.recorded.get(key).is_some_and(is_recent) {
            return Some("repeated");
        }
        let first = (key.0.clone(), "", String::new());
        let of_object = self.recorded.range(first..).take_while(|((object, ..), _)| *object == key.0);
        let lately = of_object.filter(|(_, at)| is_recent(at)).count();
        (lately >= OF_ONE_OBJECT).then_some("too-many")
    }
}

impl QueuedEvent {
    /// Returns the identity of the event.
    pub fn key(&self) -> EventKey {
        let about = &self.about;
        let object = about.uid.clone().unwrap_or_else(|| {
            [&about.kind, &about.namespace, &about.name]
                .map(|part| part.clone().unwrap_or_default())
                .join("/")
        });
        let sentence = if about.kind.as_deref() == Some("Pod") {
            without_asides(&self.message)
        } else {
            self.message.clone()
        };
        (object, self.reason.name, sentence)
    }
}

/// Returns a message without its text in parentheses.
fn without_asides(sentence: &str) -> String {
    let mut depth = 0_u32;
    let outside = |letter: &char| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    };
    sentence.chars().filter(outside).collect()
}

/// Accepts events, drops repetitions and floods, and queues the rest.
#[derive(Clone)]
pub struct Events {
    warnings: mpsc::Sender<QueuedEvent>,
    others: mpsc::Sender<QueuedEvent>,
    memory: Arc<Mutex<Memory>>,
    clock: SharedClock,
    metrics: Metrics,
}

impl Events {
    /// Creates a queue. Returns the side that accepts events and the side from which they are written.
    pub fn new(clock: SharedClock, metrics: Metrics) -> (Self, Queue) {
        let (warnings, queued_warnings) = mpsc::channel(QUEUE);
        let (others, queued_others) = mpsc::channel(QUEUE);
        let events = Self { warnings, others, memory: Arc::default(), clock, metrics };
        let memory = events.memory.clone();
        (events, Queue { warnings: queued_warnings, others: queued_others, memory })
    }

    /// Creates a copy with the same memory and a closed queue.
    #[cfg(test)]
    pub fn closed(&self) -> Self {
        Self { warnings: mpsc::channel(1).0, others: mpsc::channel(1).0, ..self.clone() }
    }

    /// Begins a planning pass: resets the limit of events on pods.
    pub fn new_pass(&self) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).pods_this_pass = 0;
    }

    /// Returns the indices of the events that would be queued now. Does not queue or remember them.
    pub fn news<'a>(&self, events: impl IntoIterator<Item = &'a QueuedEvent>) -> Vec<usize> {
        let now = self.clock.monotonic();
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let room = POD_EVENTS_PER_PASS.saturating_sub(memory.pods_this_pass) as usize;
        let new =
            events.into_iter().enumerate().filter(|(_, event)| memory.refuses(&event.key(), now).is_none());
        new.map(|(at, _)| at).take(room).collect()
    }

    /// Queues an event, unless it is a repetition.
    pub fn record(&self, event: QueuedEvent) {
        if let Err(cause) = self.admit(&event) {
            self.metrics.events_dropped.with_label_values(&[cause]).inc();
            return;
        }
        let queue = match event.kind {
            EventType::Warning => &self.warnings,
            EventType::Normal => &self.others,
        };
        let Err(error) = queue.try_send(event) else { return };
        self.metrics.events_dropped.with_label_values(&["queue-full"]).inc();
        if let TrySendError::Full(event) = error {
            self.overflow(&event);
        }
    }

    /// Forgets an event that the queue has no room for, so that it may be recorded again, and logs now and then that events are dropped.
    fn overflow(&self, event: &QueuedEvent) {
        let now = self.clock.monotonic();
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.recorded.remove(&event.key());
        if memory.logged.is_none_or(|at| now >= at.saturating_add(LOG_AFTER)) {
            memory.logged = Some(now);
            let about =
                [&event.about.kind, &event.about.name].map(|part| part.as_deref().unwrap_or_default());
            warn!(
                kind = about[0],
                name = about[1],
                reason = event.reason.name,
                "events are dropped, because {QUEUE} wait to be written to the API server; poolwright_events_dropped_total counts them"
            );
        }
    }

    fn admit(&self, event: &QueuedEvent) -> Result<(), &'static str> {
        let now = self.clock.monotonic();
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let key = event.key();
        if let Some(why) = memory.refuses(&key, now) {
            return Err(why);
        }
        if event.about.kind.as_deref() == Some("Pod") {
            if memory.pods_this_pass >= POD_EVENTS_PER_PASS {
                return Err("too-many");
            }
            memory.pods_this_pass += 1;
        }
        if memory.recorded.len() >= REMEMBERED {
            memory.recorded.retain(|_, at| now < at.saturating_add(REPEAT_AFTER));
            if memory.recorded.len() >= REMEMBERED {
                memory.recorded.clear();
            }
        }
        memory.recorded.insert(key, now);
        Ok(())
    }
}

/// The events to write: warnings before others.
pub struct Queue {
    warnings: mpsc::Receiver<QueuedEvent>,
    others: mpsc::Receiver<QueuedEvent>,
    memory: Arc<Mutex<Memory>>,
}

impl Queue {
    /// Returns the next event; `None` if the queue is closed and empty.
    pub async fn recv(&mut self) -> Option<QueuedEvent> {
        tokio::select! {
            biased;
            Some(event) = self.warnings.recv() => Some(event),
            Some(event) = self.others.recv() => Some(event),
            else => None,
        }
    }

    /// Forgets an event that could not be written, so that the next plan may record it again.
    pub fn forget(&self, key: &EventKey) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).recorded.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use poolwright_terms::Reason;

    use super::*;
    use crate::edge::clock::testing::TestClock;

    fn about(kind: &str, name: &str) -> ObjectReference {
        ObjectReference {
            kind: Some(kind.into()),
            name: Some(name.into()),
            uid: Some(format!("uid-{name}")),
            ..Default::default()
        }
    }

    fn event(kind: &str, name: &str, message: &str) -> QueuedEvent {
        QueuedEvent {
            about: about(kind, name),
            kind: EventType::Warning,
            reason: Reason::NoOfferingFits.into(),
            message: message.into(),
            story: None,
        }
    }

    #[tokio::test]
    async fn an_event_repeats_after_half_an_hour_and_a_new_reason_at_once() {
        let clock = Arc::new(TestClock::new());
        let (events, mut queue) = Events::new(clock.clone(), Metrics::new().unwrap());
        events.record(event("Pod", "a", "too big"));
        events.record(event("Pod", "a", "too big"));
        events.record(event("Pod", "a", "pool is full"));
        events.record(event("Pod", "b", "too big"));
        clock.advance(REPEAT_AFTER);
        events.record(event("Pod", "a", "too big"));
        drop(events);
        let mut said = Vec::new();
        while let Some(one) = queue.recv().await {
            said.push((one.about.name.unwrap(), one.message));
        }
        let expected = [("a", "too big"), ("a", "pool is full"), ("b", "too big"), ("a", "too big")];
        assert_eq!(said, expected.map(|(name, message)| (name.to_owned(), message.to_owned())));
    }

    #[tokio::test]
    async fn an_event_is_not_repeated_if_only_its_figures_change() {
        let (events, mut queue) = Events::new(Arc::new(TestClock::new()), Metrics::new().unwrap());
        let telling = |story: &str| QueuedEvent { story: Some(story.into()), ..event("Pod", "a", "too big") };
        assert_eq!(events.news(&[telling("of 5 offerings"), event("Pod", "b", "too big")]), [0, 1]);
        events.record(telling("of 5 offerings"));
        assert_eq!(events.news(&[telling("of 6 offerings"), event("Pod", "b", "too big")]), [1]);
        events.record(telling("of 6 offerings"));
        drop(events);
        assert_eq!(queue.recv().await.unwrap().story.as_deref(), Some("of 5 offerings"));
        assert!(queue.recv().await.is_none());
    }

    #[tokio::test]
    async fn how_much_of_a_limit_is_used_is_no_news_to_a_pod_that_waits_for_it() {
        let (events, mut queue) = Events::new(Arc::new(TestClock::new()), Metrics::new().unwrap());
        let used = |used: &str| event("Pod", "a", &format!("a limit is reached (in use: {used}); raise it"));
        events.record(used("99"));
        assert!(events.news(&[used("98")]).is_empty());
        events.record(used("98"));
        events.record(event("Pod", "a", "it is too big"));
        drop(events);
        assert_eq!(queue.recv().await.unwrap().message, "a limit is reached (in use: 99); raise it");
        assert_eq!(queue.recv().await.unwrap().message, "it is too big");
        assert!(queue.recv().await.is_none());
    }

    #[tokio::test]
    async fn events_about_one_object_are_limited_and_others_are_written() {
        let (clock, metrics) = (Arc::new(TestClock::new()), Metrics::new().unwrap());
        let (events, mut queue) = Events::new(clock.clone(), metrics.clone());
        for number in 0..1000 {
            events.record(event("NodeClaim", "a", &format!("it is taken back at {number}")));
        }
        events.record(event("NodeClaim", "b", "it is taken back"));
        let mut said = Vec::new();
        while let Ok(event) = queue.warnings.try_recv() {
            said.extend(event.about.name);
        }
        assert_eq!(
            [said.iter().filter(|name| *name == "a").count(), said.len()],
            [OF_ONE_OBJECT, OF_ONE_OBJECT + 1]
        );
        assert_eq!(metrics.events_dropped.with_label_values(&["too-many"]).get(), 950);
        let more = [event("NodeClaim", "a", "and more"), event("NodeClaim", "b", "and more")];
        assert_eq!(events.news(&more), [1], "nobody works out a story that is not written");
        clock.advance(REPEAT_AFTER);
        events.record(event("NodeClaim", "a", "it is gone"));
        assert_eq!(queue.warnings.try_recv().unwrap().message, "it is gone");
    }

    #[tokio::test]
    async fn ten_thousand_pods_do_not_make_a_storm_and_a_claim_is_still_heard() {
        let metrics = Metrics::new().unwrap();
        let (events, mut queue) = Events::new(Arc::new(TestClock::new()), metrics.clone());
        for number in 0..10_000 {
            events.record(event("Pod", &number.to_string(), "too big"));
        }
        events.record(event("NodeClaim", "c", "launched"));
        assert_eq!(metrics.events_dropped.with_label_values(&["too-many"]).get(), 9_800);
        events.new_pass();
        for number in 0..10_000 {
            events.record(event("Pod", &number.to_string(), "too big"));
        }
        drop(events);
        let mut heard = 0;
        while queue.recv().await.is_some() {
            heard += 1;
        }
        assert_eq!(heard, 200 + 1 + 200, "the next pass tells the next pods");
    }

    #[tokio::test]
    async fn in_a_storm_warnings_are_written_first_and_what_was_dropped_may_be_said_again() {
        let metrics = Metrics::new().unwrap();
        let (events, mut queue) = Events::new(Arc::new(TestClock::new()), metrics.clone());
        let normal = |node: usize| QueuedEvent {
            kind: EventType::Normal,
            ..event("NodeClaim", &node.to_string(), "launched")
        };
        for node in 0..QUEUE + 500 {
            events.record(normal(node));
        }
        assert_eq!(metrics.events_dropped.with_label_values(&["queue-full"]).get(), 500);
        for node in 0..1_000 {
            events.record(event("NodeClaim", &node.to_string(), "the cloud takes it back"));
        }
        assert_eq!(
            metrics.events_dropped.with_label_values(&["queue-full"]).get(),
            500,
            "no warning is dropped"
        );
        for node in 0..1_000 {
            let first = queue.recv().await.unwrap();
            assert_eq!((first.kind, first.about.name), (EventType::Warning, Some(node.to_string())));
        }
        assert_eq!(queue.recv().await.unwrap().message, "launched");
        assert_eq!(events.news(&[normal(QUEUE - 1), normal(QUEUE)]), [1], "the second was dropped");
        events.record(normal(QUEUE));
        assert_eq!(
            metrics.events_dropped.with_label_values(&["queue-full"]).get(),
            500,
            "there is room again"
        );
    }
}
