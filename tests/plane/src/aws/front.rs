//! The proxy before moto.

mod listings;
mod orders;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::answers::{error, refusal, text};
use super::fleet::Fleets;
use super::instances::Instances;
use super::machines::{Machine, Machines};
use super::queue::Queue;
use super::quotas::{self, Quotas};
use super::request::Request;
use super::shown::{Capacity, Group, Shown};
use super::silence::{self, Silent};
use super::spot::{self, SpotPrices};
use super::trouble::{Fate, Trouble};

/// What is the same for everybody and takes moto seconds to write: asked once in a process.
const CONSTANT: [&str; 3] =
    ["ec2:DescribeInstanceTypes", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeSpotPriceHistory"];
type Constants = Mutex<BTreeMap<String, Arc<tokio::sync::OnceCell<String>>>>;
static CONSTANTS: Constants = Constants::new(BTreeMap::new());

/// No answer of moto is larger: it lists all its images in a megabyte.
const LARGEST: usize = 64 << 20;

/// A pool of capacity: type, zone, and whether it is spot.
pub type Pool = (String, String, bool);

/// A public parameter of AWS.
pub type Parameter = (String, String);

#[derive(Default)]
pub(super) struct Inner {
    /// How many instances each pool still has; a pool that is not here has as many as are wanted.
    stock: BTreeMap<Pool, usize>,
    /// Pools that answer with this code.
    refusals: BTreeMap<Pool, String>,
    fleets: Fleets,
    /// In how many listings an instance does not show after its launch.
    delay: usize,
    hidden: BTreeMap<String, usize>,
    /// Instances that do not go when they are terminated.
    held: BTreeSet<String>,
    asked_to_go: BTreeSet<String>,
    parameters: BTreeMap<String, String>,
    zones: BTreeMap<String, String>,
    trouble: Trouble,
    calls: BTreeMap<String, usize>,
    /// Actions that are not allowed.
    forbidden: BTreeSet<String>,
    /// What EC2 shows beside what moto knows.
    shown: Shown,
    /// What every call is answered with.
    code: Option<String>,
    /// Actions that are answered with this code.
    failing: BTreeMap<String, String>,
    /// Calls that were dry runs.
    dry_runs: BTreeMap<String, usize>,
    /// What runs.
    machines: Machines,
    /// Instances, where the stand-in lists them itself.
    instances: Option<Instances>,
    /// What spot capacity costs, where that was said.
    pub(super) spot: Option<SpotPrices>,
    /// What the account may run, where that was said.
    pub(super) quotas: Option<Quotas>,
    /// Calls that are not answered.
    pub(super) silent: Silent,
    /// How many calls went wrong.
    wrong: usize,
    /// How often moto was asked for each action, and for how long all of these took.
    asked: BTreeMap<String, (usize, Duration)>,
}

/// What stands before moto. Its world ends when it is dropped.
#[derive(Clone)]
pub struct Front {
    url: String,
    shared: Arc<Shared>,
    _server: Arc<Server>,
}

struct Server(JoinHandle<()>);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Shared {
    moto: String,
    client: Client<HttpConnector, Body>,
    inner: Mutex<Inner>,
    /// Messages, where the stand-in keeps them itself.
    queue: std::sync::OnceLock<Queue>,
    /// One fleet at a time: of two with one token the second waits for the answer of the first.
    fleets: tokio::sync::Mutex<()>,
    /// One listing at a time, where the stand-in keeps what it lists.
    listings: tokio::sync::Mutex<()>,
}

impl Front {
    /// Stands before the moto at this address.
    pub async fn before(moto: &str) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared {
            moto: moto.to_owned(),
            client: Client::builder(TokioExecutor::new()).build_http(),
            inner: Mutex::default(),
            queue: std::sync::OnceLock::new(),
            fleets: tokio::sync::Mutex::default(),
            listings: tokio::sync::Mutex::default(),
        });
        let app = Router::new().fallback(handle).with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self { url, shared, _server: Arc::new(Server(server)) })
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.shared.inner()
    }

    /// From now on these pools have so many instances, and all others as many as are wanted.
    pub fn set_stock(&self, stock: impl IntoIterator<Item = (Pool, usize)>) {
        self.inner().stock = stock.into_iter().collect();
    }

    /// From now on these pools answer with these error codes.
    pub fn refuse(&self, refusals: impl IntoIterator<Item = (Pool, String)>) {
        self.inner().refusals = refusals.into_iter().collect();
    }

    /// From now on these actions are not allowed: `ec2:CreateFleet`.
    pub fn forbid(&self, actions: impl IntoIterator<Item = String>) {
        self.inner().forbidden = actions.into_iter().collect();
    }

    /// From now on every call is refused with this code: `ExpiredToken`.
    pub fn refuse_all(&self, code: Option<&str>) {
        self.inner().code = code.map(str::to_owned);
    }

    /// This instance is a spot instance, whatever it was launched as.
    pub fn make_spot(&self, instance: &str) {
        self.inner().shown.spots.insert(instance.to_owned());
    }

    /// The request of this spot instance has this status since then: `marked-for-termination`.
    pub fn mark_spot(&self, instance: &str, code: &str, updated: &str) {
        self.inner().shown.spot.insert(instance.to_owned(), (code.to_owned(), updated.to_owned()));
    }

    /// Something is scheduled for this instance: a code, words and a time.
    pub fn schedule(&self, instance: &str, code: &str, description: &str, at: &str) {
        let event = (code.to_owned(), description.to_owned(), at.to_owned());
        self.inner().shown.scheduled.entry(instance.to_owned()).or_default().push(event);
    }

    /// This instance runs in this capacity reservation of this type, which ends then.
    pub fn reserve(&self, instance: &str, reservation: &str, kind: &str, end: &str) {
        let shown = &mut self.inner().shown;
        shown.reserved.insert(instance.to_owned(), reservation.to_owned());
        shown.reservations.insert(reservation.to_owned(), (kind.to_owned(), end.to_owned()));
    }

    /// There is this capacity reservation, from now on.
    pub fn hold_capacity(&self, reservation: &str, capacity: Capacity) {
        self.inner().shown.capacity.insert(reservation.to_owned(), capacity);
    }

    /// There is this placement group, from now on: moto has none.
    pub fn place(&self, id: &str, group: Group) {
        self.inner().shown.placement.insert(id.to_owned(), group);
    }

    /// From now on these actions are answered with these codes: `sts:GetCallerIdentity`, `ExpiredToken`.
    pub fn fail(&self, codes: impl IntoIterator<Item = (String, String)>) {
        self.inner().failing = codes.into_iter().collect();
    }

    /// How often each action was called as a dry run.
    pub fn dry_runs(&self) -> BTreeMap<String, usize> {
        self.inner().dry_runs.clone()
    }

    /// From now on an instance does not show in so many listings after its launch; with none, all show at once.
    pub fn show_late(&self, listings: usize) {
        let mut inner = self.inner();
        inner.delay = listings;
        if listings == 0 {
            inner.hidden.clear();
        }
    }

    /// While held, an instance stays terminating.
    pub async fn hold(&self, instance: &str, held: bool) -> anyhow::Result<()> {
        let end = {
            let mut inner = self.inner();
            if held {
                inner.held.insert(instance.to_owned());
                false
            } else {
                inner.held.remove(instance);
                inner.asked_to_go.remove(instance)
            }
        };
        if end {
            let body = format!("Action=TerminateInstances&Version=2016-11-15&InstanceId.1={instance}");
            self.shared.forward(&Method::POST, &Uri::from_static("/"), &headers("ec2")?, body.into()).await?;
        }
        Ok(())
    }

    /// AWS's public parameters, which moto does not have.
    pub fn publish(&self, parameters: impl IntoIterator<Item = Parameter>) {
        self.inner().parameters = parameters.into_iter().collect();
    }

    /// Which zone a subnet is in: an order names subnets, and stock is by zone.
    pub fn know_subnets(&self, zones: impl IntoIterator<Item = (String, String)>) {
        self.inner().zones = zones.into_iter().collect();
    }

    /// From now on this goes wrong.
    pub fn trouble(&self, trouble: Trouble) {
        self.inner().trouble = trouble;
    }

    /// Calls moto itself, with no trouble: what a person does in the account. The answer, whatever its status.
    pub async fn call(&self, service: &str, query: &str) -> anyhow::Result<String> {
        let headers = headers(service)?;
        let body = Bytes::from(query.to_owned());
        Ok(self.shared.text(&Method::POST, &Uri::from_static("/"), &headers, body).await?.1)
    }

    /// From now on the stand-in keeps messages itself, and moto's queues are asked for nothing but their addresses.
    pub fn keep_messages(&self) {
        self.shared.queue.get_or_init(Queue::default);
    }

    /// Puts messages on the queue that the stand-in keeps. Whether it keeps one.
    pub fn put(&self, bodies: impl IntoIterator<Item = String>) -> bool {
        self.shared.queue.get().map(|queue| queue.put(bodies)).is_some()
    }

    /// Messages that were received and not deleted show again, where the stand-in keeps them.
    pub fn redeliver(&self) {
        if let Some(queue) = self.shared.queue.get() {
            queue.redeliver();
        }
    }

    /// Whatever does not show yet shows now: time has passed.
    pub fn show_all(&self) {
        self.inner().hidden.clear();
    }

    /// What was launched through here and was not asked to go, with what tells whose it is.
    pub fn machines(&self) -> Vec<Machine> {
        self.launches().into_iter().filter(|machine| !machine.ended).collect()
    }

    /// The same, with those that were asked to go.
    pub fn launches(&self) -> Vec<Machine> {
        self.inner().machines.ever()
    }

    /// How many calls went wrong, by chance.
    pub fn went_wrong(&self) -> usize {
        self.inner().wrong
    }

    /// How often moto was asked for each action, and how long all of these calls took: what of a measurement is moto's.
    pub fn asked(&self) -> BTreeMap<String, (usize, Duration)> {
        self.inner().asked.clone()
    }

    /// What each fleet asked for, as EC2's API names it; those that were asked for with a token.
    pub fn fleets(&self) -> Vec<BTreeMap<String, String>> {
        self.inner().fleets.contents()
    }

    /// How often each action was called, those that failed included.
    pub fn calls(&self) -> BTreeMap<String, usize> {
        self.inner().calls.clone()
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// Headers by which moto knows the service.
fn headers(service: &str) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    let scope = format!(
        "AWS4-HMAC-SHA256 Credential=stand-in/20200101/us-east-1/{service}/aws4_request, SignedHeaders=host, Signature=0"
    );
    headers.insert("authorization", scope.parse()?);
    headers.insert("content-type", HeaderValue::from_static("application/x-www-form-urlencoded"));
    Ok(headers)
}

async fn handle(State(shared): State<Arc<Shared>>, request: HttpRequest) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LARGEST).await else {
        return text(StatusCode::PAYLOAD_TOO_LARGE, "text/plain", "too large");
    };
    let asked = Request::read(&parts.headers, &body);
    // Whatever becomes of whoever asks: what has an effect has all of it, and is remembered.
    let answering =
        async move { shared.answer(&asked, &parts.method, &parts.uri, &parts.headers, body).await };
    match tokio::spawn(answering).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => text(StatusCode::BAD_GATEWAY, "text/plain", &format!("moto: {error:#}")),
        Err(error) => text(StatusCode::BAD_GATEWAY, "text/plain", &format!("the stand-in: {error}")),
    }
}

impl Inner {
    /// What EC2 says of a call that is not allowed, or that would give a role to instances that may not be given; `None` where it is
    /// allowed.
    fn forbids(&self, asked: &Request) -> Option<String> {
        let passes_role = asked.action == "ec2:RunInstances" && self.forbidden.contains("iam:PassRole");
        let (action, on) = if passes_role {
            ("iam:PassRole", "arn:aws:iam::123456789012:role/PoolwrightNode")
        } else if self.forbidden.contains(&asked.action) {
            (asked.action.as_str(), "arn:aws:ec2:us-east-1:123456789012:instance/*")
        } else {
            return None;
        };
        let encoded = "4GIOHlTkIaWHQD0Q0m6XSnuUMCm-abcdefghijklmn".repeat(40);
        Some(format!(
            "You are not authorized to perform this operation. User: arn:aws:sts::123456789012:assumed-role/Poolwright/1 is not \
             authorized to perform: {action} on resource: {on} because no identity-based policy allows the {action} action. Encoded \
             authorization failure message: {encoded}"
        ))
    }
}

impl Shared {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(
        &self,
        asked: &Request,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: Bytes,
    ) -> anyhow::Result<Response<Body>> {
        if let Some(code) = self.inner().code.clone() {
            return Ok(refusal(asked, &code, "The stand-in was told to refuse."));
        }
        let is_dry_run = asked.get("DryRun") == "true";
        let (fate, forbidden, failing) = {
            let mut inner = self.inner();
            *inner.calls.entry(asked.action.clone()).or_default() += 1;
            if is_dry_run {
                *inner.dry_runs.entry(asked.action.clone()).or_default() += 1;
            }
            let failing = inner.failing.get(&asked.action).cloned();
            let fate = inner.trouble.fate();
            if !matches!(fate, Fate::Well) {
                inner.wrong += 1;
            }
            (fate, inner.forbids(asked), failing)
        };
        if let Some(code) = failing {
            return Ok(refusal(asked, &code, "The stand-in was told to refuse."));
        }
        if let Some(message) = forbidden {
            return Ok(refusal(asked, "UnauthorizedOperation", &message));
        }
        if let Some(instead) = fate.instead(asked) {
            return Ok(instead);
        }
        if let Some(queue) = self.queue.get()
            && let Some(answer) = queue.answer(asked).await
        {
            return Ok(answer);
        }
        let quotas = self.inner().quotas.clone().filter(|_| asked.action == "servicequotas:GetServiceQuota");
        if let Some(quotas) = quotas {
            return Ok(quotas::answer(&quotas, asked));
        }
        let shown = {
            let inner = self.inner();
            let spot =
                inner.spot.as_ref().filter(|_| asked.action == "ec2:DescribeSpotPriceHistory" && !is_dry_run);
            spot.map(spot::history)
                .or_else(|| inner.shown.answer(asked))
                .or_else(|| inner.fleets.describe(asked).filter(|_| !is_dry_run))
        };
        let begun = now();
        let response = match asked.action.as_str() {
            "ec2:CreateFleet" if !is_dry_run => self.create_fleet(asked, uri, headers).await?,
            "ec2:DescribeInstances" => self.list(asked, method, uri, headers, body).await?,
            "ec2:TerminateInstances" => match self.terminate(asked) {
                Some(response) => response,
                None => self.forward(method, uri, headers, body).await?,
            },
            action if CONSTANT.contains(&action) && !is_dry_run && shown.is_none() => {
                self.constant(asked, uri, headers, body).await?
            }
            "ssm:GetParameters" => self.parameters(asked),
            _ => match shown {
                Some(shown) => text(StatusCode::OK, "text/xml", &shown),
                None => self.forward(method, uri, headers, body).await?,
            },
        };
        {
            let mut inner = self.inner();
            let (count, took) = inner.asked.entry(asked.action.clone()).or_default();
            (*count, *took) = (*count + 1, *took + begun.elapsed());
            if response.status().is_success() && !is_dry_run {
                inner.machines.told(asked);
                if let Some(instances) = &mut inner.instances {
                    instances.told(asked);
                }
            }
        }
        if silence::takes(&mut self.inner().silent, &asked.action) {
            std::future::pending::<()>().await;
        }
        if matches!(fate, Fate::Lost) {
            return Ok(error(
                asked,
                StatusCode::SERVICE_UNAVAILABLE,
                "Unavailable",
                "The server is overloaded.",
            ));
        }
        Ok(response)
    }

    async fn forward(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: Bytes,
    ) -> anyhow::Result<Response<Body>> {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = axum::http::Request::builder().method(method).uri(format!("{}{path}", self.moto));
        for (name, value) in headers {
            if name != "host" && name != "content-length" {
                request = request.header(name, value);
            }
        }
        let response = self.client.request(request.body(Body::from(body))?).await?;
        Ok(response.map(Body::new))
    }

    async fn text(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: Bytes,
    ) -> anyhow::Result<(StatusCode, String)> {
        let response = self.forward(method, uri, headers, body).await?;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), LARGEST).await?;
        Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// What is the same for everybody.
    async fn constant(
        &self,
        asked: &Request,
        uri: &Uri,
        headers: &HeaderMap,
        body: Bytes,
    ) -> anyhow::Result<Response<Body>> {
        // The time is not part of the question: moto's history has one entry of each.
        let question: Vec<String> = asked
            .parameters
            .iter()
            .filter(|(key, _)| key.as_str() != "StartTime")
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let cell = {
            let mut constants = CONSTANTS.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(constants.entry(question.join("&")).or_default())
        };
        let answer = cell
            .get_or_try_init(async || {
                let (status, answer) = self.text(&Method::POST, uri, headers, body).await?;
                anyhow::ensure!(status == StatusCode::OK, "{status}: {answer}");
                Ok(answer)
            })
            .await?;
        Ok(text(StatusCode::OK, "text/xml", answer))
    }

    fn parameters(&self, asked: &Request) -> Response<Body> {
        let inner = self.inner();
        let names = asked.json["Names"].as_array().cloned().unwrap_or_default();
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for name in names.iter().filter_map(serde_json::Value::as_str) {
            match inner.parameters.get(name) {
                Some(value) => {
                    found.push(json!({"Name": name, "Type": "String", "Value": value, "Version": 1}));
                }
                None => {
                    missing.push(name);
                }
            }
        }
        let answer = json!({"Parameters": found, "InvalidParameters": missing}).to_string();
        text(StatusCode::OK, "application/x-amz-json-1.1", &answer)
    }
}
