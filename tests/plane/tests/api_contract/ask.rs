//! Sends requests to an API server, and records the comparable parts of the responses.

use std::collections::BTreeMap;

use axum::http::{Method, Request, header};
use futures::{AsyncBufReadExt, TryStreamExt};
use kube::Client;
use serde_json::{Map, Value, json};
use tokio::time::{Duration, timeout};

use super::Transcript;

/// The time limit of a response.
const LIMIT: Duration = Duration::from_mins(1);

/// A client of one of the two servers, with a transcript of the case.
pub struct Asker {
    client: Client,
    pub namespace: String,
    uids: BTreeMap<String, String>,
    pub transcript: Transcript,
}

/// A response as received.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub object: Value,
}

impl Answer {
    pub fn version(&self) -> &str {
        self.object["metadata"]["resourceVersion"].as_str().expect("a resource version")
    }

    pub fn uid(&self) -> &str {
        self.object["metadata"]["uid"].as_str().expect("a UID")
    }
}

impl Asker {
    pub async fn new(client: Client, namespace: &str) -> Self {
        let mut asker = Self {
            client,
            namespace: namespace.to_owned(),
            uids: BTreeMap::new(),
            transcript: Transcript::new(),
        };
        let made = asker.post("/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await;
        assert_eq!(made.code, 201, "{}", made.object);
        asker.transcript.clear();
        asker
    }

    /// Returns the path of a resource of the core group in the case's namespace.
    pub fn core(&self, plural: &str) -> String {
        format!("/api/v1/namespaces/{}/{plural}", self.namespace)
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        self.ask(Method::GET, path, "", Value::Null).await
    }

    pub async fn post(&mut self, path: &str, object: Value) -> Answer {
        self.ask(Method::POST, path, "application/json", object).await
    }

    pub async fn put(&mut self, path: &str, object: Value) -> Answer {
        self.ask(Method::PUT, path, "application/json", object).await
    }

    pub async fn merge(&mut self, path: &str, patch: Value) -> Answer {
        self.ask(Method::PATCH, path, "application/merge-patch+json", patch).await
    }

    pub async fn patch(&mut self, path: &str, patch: Value) -> Answer {
        self.ask(Method::PATCH, path, "application/json-patch+json", patch).await
    }

    pub async fn delete(&mut self, path: &str, options: Value) -> Answer {
        self.ask(Method::DELETE, path, "application/json", options).await
    }

    pub async fn ask(&mut self, method: Method, path: &str, content_type: &str, body: Value) -> Answer {
        self.ask_for("application/json", method, path, (content_type, body)).await
    }

    /// Sends a request that accepts this media type.
    pub async fn ask_for(
        &mut self,
        accept: &str,
        method: Method,
        path: &str,
        (content_type, body): (&str, Value),
    ) -> Answer {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method.clone()).uri(path).header(header::ACCEPT, accept);
        let request = if content_type.is_empty() {
            request
        } else {
            request.header(header::CONTENT_TYPE, content_type)
        };
        let request = request.body(kube::client::Body::from(bytes)).expect("a request");
        let response = timeout(LIMIT, self.client.send(request)).await.expect("in time").expect("an answer");
        let code = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await.expect("the body of an answer");
        // A path that is not served is answered in plain text.
        let text = || Value::from(String::from_utf8_lossy(&bytes).into_owned());
        let object: Value = serde_json::from_slice(&bytes).unwrap_or_else(|_| text());
        let shown = self.comparable(&object);
        self.transcript.push((format!("{method} {path}"), json!({"code": code, "object": shown})));
        Answer { code, object }
    }

    /// Returns the first `count` events of a watch.
    pub async fn watch(&mut self, path: &str, count: usize) -> Vec<Value> {
        let request = Request::get(path).header(header::ACCEPT, "application/json");
        let request = request.body(Vec::new()).expect("a request");
        let lines = timeout(LIMIT, self.client.request_stream(request)).await.expect("in time");
        let mut events = Vec::new();
        match lines {
            Ok(lines) => {
                let mut lines = lines.lines();
                while events.len() < count {
                    let line = timeout(LIMIT, lines.try_next()).await.unwrap_or_else(|_| {
                        panic!("{path}: {count} events were to come, and there were {events:#?}")
                    });
                    let Some(line) = line.expect("the watch can be read") else { break };
                    events.push(serde_json::from_str(&line).expect("an event is JSON"));
                }
            }
            Err(error) => events.push(json!({"refused": error.to_string()})),
        }
        let shown: Vec<Value> = events.iter().map(|event| self.comparable(event)).collect();
        self.transcript.push((format!("watch {path}"), json!(shown)));
        events
    }

    /// Adds a finding of the case itself to the transcript.
    pub fn note(&mut self, what: &str, found: impl Into<Value>) {
        self.transcript.push((what.to_owned(), found.into()));
    }

    fn comparable(&mut self, value: &Value) -> Value {
        let mut value = value.clone();
        self.simplify(&mut value);
        value
    }

    fn simplify(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                if fields.get("kind") == Some(&json!("Status"))
                    && fields.get("apiVersion") == Some(&json!("v1"))
                {
                    simplify_status(fields);
                }
                for field in ["managedFields", "resourceVersion", "selfLink", "continue"] {
                    if let Some(found) = fields.get_mut(field)
                        && !found.is_object()
                    {
                        // That a value exists matters, except for managed fields.
                        *found = json!("SOME");
                    }
                }
                fields.remove("managedFields");
                for (name, found) in fields.iter_mut() {
                    let text = found.as_str().map(str::to_owned);
                    match text {
                        Some(text) if name == "uid" => {
                            let next = format!("UID {}", self.uids.len() + 1);
                            *found = json!(self.uids.entry(text).or_insert(next));
                        }
                        Some(text) if is_time(&text) => *found = json!("TIME"),
                        Some(_) => {}
                        None => self.simplify(found),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.simplify(item)),
            _ => {}
        }
    }
}

/// Keeps code, reason and subject of an error. The wording may differ.
fn simplify_status(status: &mut Map<String, Value>) {
    status.remove("message");
    if let Some(Value::Object(details)) = status.get_mut("details") {
        details.remove("causes");
        details.remove("retryAfterSeconds");
        if details.is_empty() {
            status.remove("details");
        }
    }
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.as_bytes()[10] == b'T' && text.ends_with('Z')
}
