//! Writes queued events to the API server, one by one.
//!
//! kube's `Recorder` is not used for two reasons. In a series of events it keeps the *first* note, so a pod with a changed reason
//! would still show the old one. And it reads the clock itself. The rest of its work is one POST.

use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use poolwright_core::EventType;
use poolwright_terms::foreign::each_line;
use poolwright_terms::one_line;
use tokio::time::sleep;
use tracing::debug;

use super::context::Context;
use crate::edge::clock::Clock;
use crate::edge::events::{NOTE_BYTES, Queue, QueuedEvent};
use crate::leader::writer::{WriteError, Writer};
use crate::observed::reader::Objects;

/// The number of attempts to write an event, and the pause after the first one, which doubles.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// Writes queued events one by one, until the queue is closed.
///
/// Failed writes are repeated, because no plan records the event again unless something changes.
pub async fn write_events(mut queue: Queue, context: Context, identity: String) {
    let Context { reader, writer, metrics, clock, .. } = context;
    // Unreadable objects are found once, before we lead. Their events are written when we lead.
    writer.terms().gained().await;
    let mut number = 0_u64;
    while let Some(queued) = queue.recv().await {
        number += 1;
        let (subject, said) = (queued.about.kind.clone().unwrap_or_default(), queued.key());
        let event = to_api(queued, clock.as_ref(), &identity, number);
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let api = reader.namespaced::<Event>(&namespace);
        if create(&api, &writer, &event).await {
            metrics.events.with_label_values(&[&subject]).inc();
        } else {
            queue.forget(&said);
            metrics.events_dropped.with_label_values(&["failed"]).inc();
        }
    }
}

/// Creates an event, with retries. Returns whether it was written.
async fn create(api: &Objects<Event>, writer: &Writer, event: &Event) -> bool {
    let params = PostParams::default();
    for attempt in 0..ATTEMPTS {
        let why = match writer
            .write("event", Duration::from_secs(10), async |permit| {
                api.writable(permit).create(&params, event).await
            })
            .await
        {
            Ok(_) => return true,
            // It was created before, and the answer was lost.
            Err(WriteError::Failed(kube::Error::Api(status))) if status.is_already_exists() => return true,
            // The next leader will plan and record it.
            Err(WriteError::NotLeading) => return false,
            Err(WriteError::Failed(kube::Error::Api(status)))
                if (400..500).contains(&status.code) && status.code != 429 =>
            {
                debug!(error = %status.message, note = ?event.note, "an event was refused");
                return false;
            }
            Err(error) => error,
        };
        debug!(error = %why, note = ?event.note, "an event was not written");
        if attempt + 1 < ATTEMPTS {
            sleep(PAUSE * 2_u32.pow(attempt)).await;
        }
    }
    false
}

fn to_api(queued: QueuedEvent, clock: &dyn Clock, identity: &str, number: u64) -> Event {
    let now = clock.now();
    let about = queued.about;
    let name: String = about.name.as_deref().unwrap_or("poolwright").chars().take(200).collect();
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{name}.{:x}.{number:x}", now.as_nanosecond())),
            // Events about cluster-scoped objects are in `default`: `kubectl describe` looks there.
            namespace: Some(about.namespace.clone().unwrap_or_else(|| "default".to_owned())),
            ..Default::default()
        },
        action: Some(queued.reason.to_string()),
        event_time: Some(MicroTime(now)),
        note: Some(shorten(note(queued.story.as_deref(), &queued.message))),
        reason: Some(queued.reason.to_string()),
        regarding: Some(about),
        reporting_controller: Some(poolwright_terms::keys::REPORTING_CONTROLLER.to_owned()),
        reporting_instance: Some(identity.chars().take(128).collect()),
        type_: Some(match queued.kind {
            EventType::Normal => "Normal".to_owned(),
            EventType::Warning => "Warning".to_owned(),
        }),
        ..Default::default()
    }
}

/// Returns the note of an event. Only a story has several lines.
fn note(story: Option<&str>, message: &str) -> String {
    story.map_or_else(|| one_line(message).into_owned(), each_line)
}

fn shorten(mut note: String) -> String {
    const MORE: &str = "...";
    if note.len() > NOTE_BYTES {
        note.truncate(note.floor_char_boundary(NOTE_BYTES - MORE.len()));
        note.push_str(MORE);
    }
    note
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::http::Method;
    use k8s_openapi::api::core::v1::ObjectReference;
    use poolwright_terms::Reason;

    use super::*;
    use crate::edge::clock::SharedClock;
    use crate::edge::clock::testing::TestClock;
    use crate::edge::events::Events;
    use crate::executor::context::testing::leading;
    use crate::fake_api::{FakeApi, Fault};

    fn queued() -> QueuedEvent {
        let about =
            ObjectReference { kind: Some("Pod".into()), name: Some("a".into()), ..Default::default() };
        let (kind, reason, message) = (EventType::Warning, Reason::NoOfferingFits.into(), "too big".into());
        QueuedEvent { about, kind, reason, message, story: None }
    }

    /// Writes one event with these faults.
    async fn written(faults: &[Fault]) -> (Vec<String>, bool) {
        let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
        for fault in faults {
            api.fault(Method::POST, "/events", *fault);
        }
        let shared: SharedClock = clock.clone();
        let (context, _term) = leading(&api, &shared, vec![]);
        let (events, queue) = Events::new(clock.clone(), context.metrics.clone());
        events.record(queued());
        // Closes the queue: queued events are written, and no more are accepted.
        let again = events.closed();
        drop(events);
        write_events(queue, context, "one".into()).await;
        let is_news = again.news(&[queued()]) == [0];
        (api.writes(), is_news)
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_is_lost_on_the_way_is_sent_again_for_no_plan_may_come_that_would() {
        let (writes, is_news) = written(&[]).await;
        assert_eq!((writes.len(), is_news), (1, false));
        let (writes, is_news) = written(&[Fault::Fails(500), Fault::Fails(429), Fault::Fails(503)]).await;
        assert_eq!((writes.len(), is_news), (4, false));
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_with_a_lost_response_is_written_once() {
        let (writes, is_news) = written(&[Fault::AnswerLost]).await;
        assert_eq!((writes.len(), is_news), (2, false), "the second finds the first");
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_plan_repeats_an_event_that_was_not_written() {
        let (writes, is_news) = written(&[Fault::Fails(500); 5]).await;
        assert_eq!((writes.len(), is_news), (5, true));
        let (writes, is_news) = written(&[Fault::Fails(403)]).await;
        assert_eq!((writes.len(), is_news), (1, true), "a refusal is no accident");
    }

    #[test]
    fn a_note_has_no_line_and_no_control_character_of_an_object() {
        let clock = TestClock::new();
        let noted = |message: &str, story: Option<&str>| {
            let queued = QueuedEvent { message: message.into(), story: story.map(str::to_owned), ..queued() };
            to_api(queued, &clock, "one", 1).note.unwrap_or_default()
        };
        let forged = "no pool has `a\n  FORGED \u{1b}[2J\u{9b}\u{202e}\u{2028}`";
        let plain = r"no pool has `a\n  FORGED \u{1b}[2J\u{9b}\u{202e}\u{2028}`";
        assert_eq!(noted(forged, None), plain);
        let story = "too big\nNode a\u{202e}b has no room.";
        assert_eq!(noted("too big", Some(story)), "too big\nNode a\\u{202e}b has no room.");
    }

    #[test]
    fn a_long_note_is_cut_where_the_api_server_would_refuse_it() {
        let note = shorten("€".repeat(1000));
        assert!(note.len() <= NOTE_BYTES && note.ends_with("..."), "{}", note.len());
        assert_eq!(shorten("short".into()), "short");
    }
}
