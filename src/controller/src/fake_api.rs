//! A fake API server in memory, for tests of writes. It supports objects by path, resource versions, UID and version
//! preconditions, finalizers, and lost responses. It has no schemas and no watches.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::http::{Method, Request, Response};
use kube::Client;
use serde_json::{Value, json};
use tower::service_fn;

/// A fault of a matching request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request takes effect, and the answer is a gateway error.
    AnswerLost,
    /// The request has no effect and returns this status code.
    Fails(u16),
    /// The request has no effect, and nothing answers it.
    NoAnswer,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    version: u64,
    faults: VecDeque<(Method, &'static str, Fault)>,
    log: Vec<String>,
}

/// The fake API server.
#[derive(Clone, Default)]
pub struct FakeApi(Arc<Mutex<State>>);

fn status(code: u16, reason: &str) -> (u16, Value) {
    (
        code,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": reason}),
    )
}

fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    into.remove(key);
                } else {
                    merge(into.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

impl State {
    fn store(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let finalizers = object["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        if object["metadata"]["deletionTimestamp"].is_string() && !finalizers {
            self.objects.remove(path);
        } else {
            self.objects.insert(path.to_owned(), object.clone());
        }
        object
    }

    fn answer(&mut self, method: &Method, path: &str, body: &Value) -> (u16, Value) {
        let (base, sub) = path.strip_suffix("/status").map_or((path, false), |base| (base, true));
        let known = self.objects.get(base).cloned();
        let differs = |field: &str, wanted: &Value| {
            !wanted.is_null() && known.as_ref().is_some_and(|known| known["metadata"][field] != *wanted)
        };
        match (method, known.clone()) {
            (&Method::POST, _) => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default();
                let path = format!("{path}/{name}");
                if self.objects.contains_key(&path) {
                    return status(409, "AlreadyExists");
                }
                let mut object = body.clone();
                object["metadata"]["uid"] = json!(format!("uid-{}", self.version));
                object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
                (201, self.store(&path, object))
            }
            (&Method::GET, Some(object)) => (200, object),
            (&Method::GET, None)
                if ["/pods", "/nodes", "/nodeclaims"].iter().any(|list| path.ends_with(list)) =>
            {
                let prefix = format!("{path}/");
                let items: Vec<&Value> = self
                    .objects
                    .iter()
                    .filter(|(key, _)| key.starts_with(&prefix))
                    .map(|(_, object)| object)
                    .collect();
                (200, json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}))
            }
            (_, None) => status(404, "NotFound"),
            (&Method::PUT, Some(mut object)) => {
                if differs("resourceVersion", &body["metadata"]["resourceVersion"]) {
                    return status(409, "Conflict");
                }
                if sub {
                    object["status"] = body["status"].clone();
                } else {
                    object = body.clone();
                }
                (200, self.store(base, object))
            }
            (&Method::PATCH, Some(mut object)) => {
                let meta = &body["metadata"];
                if differs("uid", &meta["uid"]) {
                    return status(422, "metadata.uid: Invalid value: field is immutable");
                }
                if differs("resourceVersion", &meta["resourceVersion"]) {
                    return status(409, "Conflict");
                }
                merge(&mut object, body);
                (200, self.store(base, object))
            }
            (&Method::DELETE, Some(mut object)) => {
                if differs("uid", &body["preconditions"]["uid"]) {
                    return status(409, "Conflict");
                }
                object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:00Z");
                (200, self.store(base, object))
            }
            _ => status(405, "MethodNotAllowed"),
        }
    }
}

impl FakeApi {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a client for this server.
    pub fn client(&self) -> Client {
        let api = self.clone();
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let api = api.clone();
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body.collect_bytes().await.expect("the body of a request");
                let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                let Some((code, answer)) = api.take(&parts.method, parts.uri.path(), &body) else {
                    return std::future::pending().await;
                };
                let response = Response::builder().status(code).body(Body::from(answer.to_string()));
                Ok::<_, Infallible>(response.expect("a response"))
            }
        });
        Client::new(service, "default")
    }

    /// Carries out a request. Returns `None` if nothing answers it.
    fn take(&self, method: &Method, path: &str, body: &Value) -> Option<(u16, Value)> {
        let mut state = self.lock();
        if *method != Method::GET {
            state.log.push(format!("{method} {path}"));
        }
        let hit = state.faults.iter().position(|(verb, part, _)| verb == method && path.contains(part));
        match hit.and_then(|at| state.faults.remove(at)) {
            Some((_, _, Fault::NoAnswer)) => None,
            Some((_, _, Fault::Fails(code))) => Some(status(code, "InternalError")),
            Some((_, _, Fault::AnswerLost)) => {
                state.answer(method, path, body);
                Some(status(500, "InternalError"))
            }
            None => Some(state.answer(method, path, body)),
        }
    }

    /// Adds a fault for the next request with this method whose path contains `part`.
    pub fn fault(&self, method: Method, part: &'static str, fault: Fault) {
        self.lock().faults.push_back((method, part, fault));
    }

    /// Removes all pending faults.
    pub fn clear_faults(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).faults.clear();
    }

    /// Stores an object at a path.
    pub fn put(&self, path: &str, object: Value) {
        self.lock().store(path, object);
    }

    /// Removes the object at a path.
    pub fn remove(&self, path: &str) {
        self.lock().objects.remove(path);
    }

    /// Returns the object at a path.
    pub fn get(&self, path: &str) -> Option<Value> {
        self.lock().objects.get(path).cloned()
    }

    /// Returns all write requests so far.
    pub fn writes(&self) -> Vec<String> {
        self.lock().log.clone()
    }
}
