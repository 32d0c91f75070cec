//! An API server in memory. It serves the part of the Kubernetes API that Poolwright uses, with the responses of a real one.
//!
//! It is one synchronous function from request to response; only watches are streams. It stores JSON, so each caller uses the
//! same serialisation as with a real server.
//!
//! Discovery only lists the kinds of one group and version. Not served: OpenAPI, tables, strategic merge patches and server-side
//! apply (Poolwright uses none of them), `managedFields`, defaults of built-in kinds other than pods.

mod answer;
mod custom;
mod deletion;
mod garbage;
mod kinds;
mod objects;
mod patch;
mod pods;
mod read;
mod route;
mod scale;
mod select;
mod sent;
mod store;
mod write;

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, Response, Uri, header};
use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use futures::stream::{self, BoxStream};
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use serde_json::Value;
use tower::service_fn;

use answer::{Answer, Refusal};
use kinds::Kind;
use read::{Behind, Pages, Watch};
use route::{Query, route};
use sent::Sent;
use store::Store;
use write::Writing;

/// Reads the calendar time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The number of changes kept in the history of watches.
const HISTORY: usize = 10_000;
/// How often a watch that wants bookmarks gets one.
const BOOKMARKS: Duration = Duration::from_mins(1);

/// The API server. Clones share their state.
#[derive(Clone)]
pub struct ApiServer {
    state: Arc<Mutex<State>>,
    now: Now,
}

struct State {
    kinds: Vec<Kind>,
    store: Store,
    pages: Pages,
    created: u64,
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer").field("version", &self.lock().store.version()).finish_non_exhaustive()
    }
}

/// The response to a request.
enum Reply {
    Object(u16, Value),
    Watch(Box<Watch>),
}

impl ApiServer {
    /// Makes a server with the built-in kinds, the custom resources of these definitions, and the namespaces of every cluster.
    pub fn new(definitions: &[CustomResourceDefinition], now: Now) -> Self {
        let mut kinds = kinds::built_in();
        kinds.extend(definitions.iter().flat_map(Kind::of_definition));
        let store = Store::new(HISTORY);
        let state = State { kinds, store, pages: Pages::default(), created: 0 };
        let server = Self { state: Arc::new(Mutex::new(state)), now };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let body = serde_json::json!({"metadata": {"name": name}});
            let made = server.answer((&Method::POST, "/api/v1/namespaces"), ("", ""), Sent::Object(&body));
            debug_assert!(matches!(made, Reply::Object(201, _)));
        }
        server
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves PodGroups from now on, like an API server with the feature gate `GenericWorkload`.
    pub fn serve_pod_groups(&self) {
        self.lock().kinds.push(kinds::pod_group());
    }

    /// Stops validating custom resources. Replays have one writer, the controller, whose objects the simulated worlds validate; it
    /// would take a twelfth of their time.
    pub fn trust_writers(&self) {
        for kind in &mut self.lock().kinds {
            kind.traits.trusted = true;
        }
    }

    /// Makes a client of this server.
    pub fn client(&self) -> Client {
        let server = self.clone();
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.serve(request).await) }
        });
        Client::new(service, "default")
    }

    /// Forgets the history: watches from an earlier version than the current one are refused, as after a compaction of etcd.
    pub fn compact(&self) {
        self.lock().store.compact();
    }

    /// Ends all watches.
    pub fn drop_watches(&self) {
        self.lock().store.drop_watches();
    }

    /// Returns the current resource version. It grows with every change.
    pub fn version(&self) -> u64 {
        self.lock().store.version()
    }

    /// Stores an object without validation, like an object written under an older schema. Returns whether the collection exists.
    pub fn plant(&self, collection: &str, mut object: Value) -> bool {
        let now = (self.now)();
        let State { kinds, store, created, .. } = &mut *self.lock();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let path = format!("{collection}/{name}");
        let Ok(key) = route(kinds, &path).and_then(|target| target.key()) else { return false };
        *created += 1;
        object["metadata"]["uid"] = format!("00000000-0000-4000-9000-{created:012}").into();
        object["metadata"]["creationTimestamp"] = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
        if !key.namespace.is_empty() {
            object["metadata"]["namespace"] = key.namespace.clone().into();
        }
        store.put(&key, object);
        true
    }

    /// Answers a request from inside the cluster at once, with an HTTP code and an object. For watches, use [`Self::feed`].
    pub fn ask(&self, method: &Method, path: &str, content_type: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { Sent::Text(&[]) } else { Sent::Object(body) };
        match self.answer((method, path), ("", content_type), body) {
            Reply::Object(code, object) => (code, object),
            Reply::Watch(_) => (400, Value::Null),
        }
    }

    /// Watches a collection: its current objects, then each change, as watch events. `None` if the collection does not exist.
    pub fn feed(&self, collection: &str) -> Option<UnboundedReceiver<Value>> {
        match self.answer((&Method::GET, &format!("{collection}?watch=true")), ("", ""), Sent::Text(&[])) {
            Reply::Watch(watch) => Some(watch.events),
            Reply::Object(..) => None,
        }
    }

    /// Returns the path of the collection of an object, from its `apiVersion`, `kind` and namespace. `None` if the kind is
    /// unknown.
    pub fn collection(&self, object: &Value) -> Option<String> {
        let state = self.lock();
        let is = |kind: &&Kind| object["apiVersion"] == kind.api_version() && object["kind"] == kind.kind;
        let kind = state.kinds.iter().find(is)?;
        let root = if kind.group.is_empty() { "api" } else { "apis" };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
        let place = if kind.namespaced { format!("namespaces/{namespace}/") } else { String::new() };
        Some(format!("/{root}/{}/{place}{}", kind.api_version(), kind.plural))
    }

    /// Creates an object. Errors: the server's message if it refuses the object.
    pub fn create(&self, object: &Value) -> Result<Value, String> {
        self.post(object).map_err(|(message, _)| message)
    }

    /// Creates an object. Returns the fields that the server refuses, each with the reason; empty if it accepts the object. The
    /// field is empty if it refuses the object as a whole.
    pub fn refused_fields(&self, object: &Value) -> Vec<(String, String)> {
        let Err((message, details)) = self.post(object) else { return Vec::new() };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let causes = details["causes"].as_array().into_iter().flatten();
        let fields: Vec<_> = causes.map(|cause| (text(&cause["field"]), text(&cause["message"]))).collect();
        if fields.is_empty() { vec![(String::new(), message)] } else { fields }
    }

    /// Creates an object. Errors: the message and the details of the server's answer.
    fn post(&self, object: &Value) -> Result<Value, (String, Value)> {
        let Some(path) = self.collection(object) else {
            let part = |field: &str| object[field].as_str().unwrap_or_default();
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let (kind, version) = (part("kind"), part("apiVersion"));
            let message = format!(
                "{kind} {name}: there is no such kind ({version}) in a simulated world; leave it out"
            );
            return Err((message, Value::Null));
        };
        let (code, mut answer) = self.ask(&Method::POST, &path, "application/json", object);
        if (200..300).contains(&code) {
            return Ok(answer);
        }
        let message = answer["message"].as_str().map(str::to_owned);
        let message = message.unwrap_or_else(|| format!("refused with {code}: {answer}"));
        let details = answer.get_mut("details").map(Value::take).unwrap_or_default();
        Err((message, details))
    }

    /// Deletes objects whose last owner is gone, and completes foreground deletions. Returns whether anything changed.
    pub fn collect_garbage(&self) -> bool {
        let now = (self.now)();
        let state = &mut *self.lock();
        garbage::collect(&state.kinds, &mut state.store, now)
    }

    /// Serves a request of a client.
    pub async fn serve(&self, request: Request<kube::client::Body>) -> Response<Body> {
        self.serve_behind(request, (0, Duration::ZERO)).await
    }

    /// Serves a request like a replica whose watch cache is `changes` changes behind and receives them `late`. Only watches that
    /// accept any version (version 0) see the old state. Other requests are answered from the store.
    pub async fn serve_behind(
        &self,
        request: Request<kube::client::Body>,
        (changes, late): (u64, Duration),
    ) -> Response<Body> {
        let behind = Behind { changes, late };
        let (parts, body) = request.into_parts();
        let text = |name: header::HeaderName| {
            parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
        };
        let body = body.collect_bytes().await.unwrap_or_default();
        let path = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
        let types = (text(header::ACCEPT), text(header::CONTENT_TYPE));
        let reply = self.answer_behind((&parts.method, &path), types, Sent::Text(&body), behind);
        let (code, body) = match reply {
            Reply::Object(code, Value::String(text)) => (code, Body::from(text)),
            Reply::Object(code, object) => (code, Body::from(object.to_string())),
            Reply::Watch(watch) => (200, Body::from_stream(self.events(*watch))),
        };
        let response = Response::builder().status(code).header(header::CONTENT_TYPE, "application/json");
        response.body(body).unwrap_or_default()
    }

    /// Returns the lines of a watch.
    fn events(&self, watch: Watch) -> BoxStream<'static, Result<Bytes, Infallible>> {
        let until = tokio::time::Instant::now() + Duration::from_secs(watch.seconds);
        let step = move |(server, mut watch): (Self, Watch)| async move {
            let event = tokio::select! {
                biased;
                event = watch.events.next() => event?,
                () = tokio::time::sleep_until(until) => return None,
                () = tokio::time::sleep(BOOKMARKS), if watch.bookmarks => {
                    let version = server.lock().store.version();
                    store::bookmark(&watch.kind, version, watch.partial, false)
                }
            };
            // The events after the initial state arrive late.
            if watch.told_all && !watch.late.is_zero() {
                tokio::time::sleep(std::mem::take(&mut watch.late)).await;
            }
            watch.told_all |= event["type"] == "BOOKMARK";
            Some((Ok(Bytes::from(format!("{event}\n"))), (server, watch)))
        };
        stream::unfold((self.clone(), watch), step).boxed()
    }

    fn answer(&self, asked: (&Method, &str), types: (&str, &str), body: Sent<'_>) -> Reply {
        self.answer_behind(asked, types, body, Behind::default())
    }

    fn answer_behind(
        &self,
        asked: (&Method, &str),
        types: (&str, &str),
        body: Sent<'_>,
        behind: Behind,
    ) -> Reply {
        let now = (self.now)();
        let answered = self.lock().answer(asked, types, body, (now, behind));
        answered.unwrap_or_else(|refusal| Reply::Object(refusal.code, refusal.object()))
    }
}

impl State {
    fn answer(
        &mut self,
        (method, path): (&Method, &str),
        (accept, content_type): (&str, &str),
        body: Sent<'_>,
        (now, behind): (Timestamp, Behind),
    ) -> Result<Reply, Refusal> {
        let uri: Uri = path.parse().map_err(|_| Refusal::nowhere())?;
        let query = Query::new(&uri);
        let Self { kinds, store, pages, created } = self;
        if let Some(list) = route::discovery(kinds, uri.path()).filter(|_| *method == Method::GET) {
            return Ok(Reply::Object(200, list));
        }
        let target = route(kinds, uri.path())?;
        if matches!(*method, Method::GET) {
            return match (&target.subresource, query.flag("watch")) {
                (None, true) => {
                    let watch = read::watch(store, &target, &query, accept, behind);
                    watch.map(Box::new).map(Reply::Watch)
                }
                (None, false) if target.name.is_none() => {
                    read::list(store, pages, &target, &query, accept).map(Reply::from)
                }
                (None, false) => read::get(store, &target, accept).map(Reply::from),
                (Some(sub), _) if sub == "status" && target.kind.traits.status => {
                    read::get(store, &target, accept).map(Reply::from)
                }
                (Some(sub), _) if sub == "scale" && scale::has(target.kind) => {
                    let (code, workload) = read::get(store, &target, "")?;
                    Ok(Reply::Object(code, scale::of(&workload)))
                }
                (Some(_), _) => Err(Refusal::no_subresource(target.kind)),
            };
        }
        let place = |group: &str, kind: &str| {
            let of = |one: &Kind| one.group == group && one.kind == kind;
            kinds.iter().position(of).unwrap_or(usize::MAX)
        };
        let (namespaces, budgets) = (place("", "Namespace"), place("policy", "PodDisruptionBudget"));
        let mut writing = Writing { store, created, now, namespaces, budgets };
        let sent = || -> Result<Value, Refusal> {
            let error = |error| Refusal::bad_request(format!("the body is not JSON: {error}"));
            body.object().map_err(error)
        };
        let answer: Answer = match (method, target.subresource.as_deref()) {
            (&Method::POST, None) if target.name.is_none() => writing.create(&target, &query, sent()?),
            (&Method::POST, Some("eviction")) if target.kind.is_pod() => {
                writing.evict(&target, &query, &sent()?)
            }
            (&Method::POST, Some("binding")) if target.kind.is_pod() => {
                writing.bind(&target, &query, &sent()?)
            }
            (&Method::PUT, None | Some("status")) if target.name.is_some() => {
                writing.update(&target, &query, sent()?)
            }
            (&Method::PATCH, None | Some("status")) if target.name.is_some() => {
                writing.patch(&target, &query, content_type, body)
            }
            (&Method::PUT, Some("scale")) if scale::has(target.kind) => {
                writing.rescale(&target, &query, |_| sent())
            }
            (&Method::PATCH, Some("scale")) if scale::has(target.kind) => {
                writing.rescale(&target, &query, |scale| patch::apply(scale, content_type, body))
            }
            (&Method::DELETE, None) if target.name.is_some() => {
                let options = if body.is_empty() { Value::Null } else { sent()? };
                writing.delete(&target, &query, &options)
            }
            (_, None | Some("status" | "eviction" | "binding")) => Err(Refusal::method_not_allowed()),
            (_, Some("scale")) if scale::has(target.kind) => Err(Refusal::method_not_allowed()),
            (_, Some(_)) => Err(Refusal::no_subresource(target.kind)),
        };
        answer.map(Reply::from)
    }
}

impl From<(u16, Value)> for Reply {
    fn from((code, object): (u16, Value)) -> Self {
        Self::Object(code, object)
    }
}
