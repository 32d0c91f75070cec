//! A queue that the front keeps itself, for measurements of how fast messages are handled: moto needs more than a tenth of a
//! second of a core for each response with ten messages.
//!
//! Shapes: <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html> and
//! `API_DeleteMessageBatch.html`, in the JSON protocol.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::answers::text;
use super::request::Request;

/// How often a waiting call checks whether a received message is visible again.
const LOOK: Duration = Duration::from_secs(1);

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    kept: Mutex<Kept>,
    came: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    next: u64,
    messages: BTreeMap<u64, Message>,
}

#[derive(Debug)]
struct Message {
    body: String,
    /// Received messages are invisible until then.
    hidden: Option<Instant>,
}

impl Kept {
    fn take(&mut self, most: usize, now: Instant, hidden: Duration) -> Vec<Value> {
        let shown = self.messages.iter_mut().filter(|(_, one)| one.hidden.is_none_or(|until| until <= now));
        let taken = shown.take(most).map(|(number, one)| {
            one.hidden = Some(now + hidden);
            let id = number.to_string();
            json!({"MessageId": id, "ReceiptHandle": id, "Body": one.body})
        });
        taken.collect()
    }
}

impl Queue {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn put(&self, bodies: impl IntoIterator<Item = String>) {
        {
            let mut kept = self.kept();
            for body in bodies {
                let number = kept.next;
                kept.next += 1;
                kept.messages.insert(number, Message { body, hidden: None });
            }
        }
        self.came.notify_waiters();
    }

    /// Makes received messages visible again, as if their receivers were late.
    pub fn redeliver(&self) {
        self.kept().messages.values_mut().for_each(|one| one.hidden = None);
        self.came.notify_waiters();
    }

    /// Answers a call, or returns `None` if the queue does not handle the action.
    pub async fn answer(&self, asked: &Request) -> Option<Response<Body>> {
        let answer = match asked.action.as_str() {
            "sqs:ReceiveMessage" => json!({"Messages": self.receive(&asked.json).await}),
            "sqs:DeleteMessageBatch" => self.delete(&asked.json),
            _ => return None,
        };
        Some(text(StatusCode::OK, "application/x-amz-json-1.0", &answer.to_string()))
    }

    async fn receive(&self, asked: &Value) -> Vec<Value> {
        let number = |field: &str, default: u64| asked[field].as_u64().unwrap_or(default);
        let most = usize::try_from(number("MaxNumberOfMessages", 1)).unwrap_or(1);
        let hidden = Duration::from_secs(number("VisibilityTimeout", 30));
        let end = Instant::now() + Duration::from_secs(number("WaitTimeSeconds", 0));
        loop {
            let came = self.came.notified();
            let now = Instant::now();
            let taken = self.kept().take(most, now, hidden);
            if !taken.is_empty() || now >= end {
                return taken;
            }
            tokio::select! {
                () = came => {}
                () = sleep_until(end.min(now + LOOK)) => {}
            }
        }
    }

    fn delete(&self, asked: &Value) -> Value {
        let mut kept = self.kept();
        let entries = asked["Entries"].as_array().into_iter().flatten();
        let deleted = entries.map(|entry| {
            if let Some(number) = entry["ReceiptHandle"].as_str().and_then(|handle| handle.parse().ok()) {
                kept.messages.remove(&number);
            }
            json!({"Id": entry["Id"]})
        });
        json!({"Successful": deleted.collect::<Vec<_>>(), "Failed": []})
    }
}
