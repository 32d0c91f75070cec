//! The proxy in front of moto.

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
pub use listings::Sight;

/// Queries whose response never changes and takes moto seconds to write. Each is asked once in a process.
const CONSTANT: [&str; 3] =
    ["ec2:DescribeInstanceTypes", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeSpotPriceHistory"];
type Constants = Mutex<BTreeMap<String, Arc<tokio::sync::OnceCell<String>>>>;
static CONSTANTS: Constants = Constants::new(BTreeMap::new());

/// The size limit of a body. moto's longest response, the list of its images, is one megabyte.
const LARGEST: usize = 64 << 20;

/// A capacity pool: instance type, zone, and whether it is spot.
pub type Pool = (String, String, bool);

/// A public parameter of AWS: name and value.
pub type Parameter = (String, String);

#[derive(Default)]
pub(super) struct Inner {
    /// The number of instances left in each pool. Pools that are not listed are unlimited.
    stock: BTreeMap<Pool, usize>,
    /// The error code of each pool that refuses.
    refusals: BTreeMap<Pool, String>,
    fleets: Fleets,
    /// The number of listings that omit an instance after its launch.
    delay: usize,
    hidden: BTreeMap<String, usize>,
    /// Instances that stay terminating.
    held: BTreeSet<String>,
    asked_to_go: BTreeSet<String>,
    parameters: BTreeMap<String, String>,
    zones: BTreeMap<String, String>,
    trouble: Trouble,
    calls: BTreeMap<String, usize>,
    /// Actions that are not allowed.
    forbidden: BTreeSet<String>,
    /// State that EC2 shows and moto does not have.
    shown: Shown,
    /// The error code of every call.
    code: Option<String>,
    /// The error code of each failing action.
    failing: BTreeMap<String, String>,
    /// The number of dry runs of each action.
    dry_runs: BTreeMap<String, usize>,
    /// Instances launched through the front.
    machines: Machines,
    /// The listing of instances, if the front keeps its own.
    instances: Option<Instances>,
    /// Which instances EC2 shows.
    sight: Sight,
    /// The prices of spot capacity, if a test set them.
    pub(super) spot: Option<SpotPrices>,
    /// The quotas of the account, if a test set them.
    pub(super) quotas: Option<Quotas>,
    /// Calls that get no response.
    pub(super) silent: Silent,
    /// The number of calls that random trouble hit.
    wrong: usize,
    /// The number of calls of each action that were carried out, and the total time they took.
    asked: BTreeMap<String, (usize, Duration)>,
}

/// A proxy in front of moto. It stops when the last clone is dropped.
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
    /// Messages, if the front keeps its own queue.
    queue: std::sync::OnceLock<Queue>,
    /// Held while a fleet is created, so that the second of two requests with one token waits for the answer to the first.
    fleets: tokio::sync::Mutex<()>,
    /// Held while the front's own listing is brought up to date.
    listings: tokio::sync::Mutex<()>,
}

impl Front {
    /// Starts a front before the moto at this address.
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

    /// Returns its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.shared.inner()
    }

    /// Sets the number of instances in these pools. All others become unlimited.
    pub fn set_stock(&self, stock: impl IntoIterator<Item = (Pool, usize)>) {
        self.inner().stock = stock.into_iter().collect();
    }

    /// Makes these pools, and no others, refuse with these error codes.
    pub fn refuse(&self, refusals: impl IntoIterator<Item = (Pool, String)>) {
        self.inner().refusals = refusals.into_iter().collect();
    }

    /// Makes these actions, and no others, unauthorized: `ec2:CreateFleet`.
    pub fn forbid(&self, actions: impl IntoIterator<Item = String>) {
        self.inner().forbidden = actions.into_iter().collect();
    }

    /// Refuses every call with this code: `ExpiredToken`. `None` ends that.
    pub fn refuse_all(&self, code: Option<&str>) {
        self.inner().code = code.map(str::to_owned);
    }

    /// Lists this instance as spot, whatever it was launched as.
    pub fn make_spot(&self, instance: &str) {
        self.inner().shown.spots.insert(instance.to_owned());
    }

    /// Sets the status of the spot request of this instance, and the time of the update: `marked-for-termination`.
    pub fn mark_spot(&self, instance: &str, code: &str, updated: &str) {
        self.inner().shown.spot.insert(instance.to_owned(), (code.to_owned(), updated.to_owned()));
    }

    /// Schedules an event for this instance: code, description, time.
    pub fn schedule(&self, instance: &str, code: &str, description: &str, at: &str) {
        let event = (code.to_owned(), description.to_owned(), at.to_owned());
        self.inner().shown.scheduled.entry(instance.to_owned()).or_default().push(event);
    }

    /// Shows this instance in a capacity reservation of this type, which ends at `end`.
    pub fn reserve(&self, instance: &str, reservation: &str, kind: &str, end: &str) {
        let shown = &mut self.inner().shown;
        shown.reserved.insert(instance.to_owned(), reservation.to_owned());
        shown.reservations.insert(reservation.to_owned(), (kind.to_owned(), end.to_owned()));
    }

    /// Adds a capacity reservation.
    pub fn hold_capacity(&self, reservation: &str, capacity: Capacity) {
        self.inner().shown.capacity.insert(reservation.to_owned(), capacity);
    }

    /// Adds a placement group. The front shows none of moto's.
    pub fn place(&self, id: &str, group: Group) {
        self.inner().shown.placement.insert(id.to_owned(), group);
    }

    /// Makes these actions, and no others, fail with these codes: `sts:GetCallerIdentity`, `ExpiredToken`.
    pub fn fail(&self, codes: impl IntoIterator<Item = (String, String)>) {
        self.inner().failing = codes.into_iter().collect();
    }

    /// Returns how often each action was called as a dry run.
    pub fn dry_runs(&self) -> BTreeMap<String, usize> {
        self.inner().dry_runs.clone()
    }

    /// Omits each instance from this number of listings after its launch. 0 shows all at once.
    pub fn show_late(&self, listings: usize) {
        let mut inner = self.inner();
        inner.delay = listings;
        if listings == 0 {
            inner.hidden.clear();
        }
    }

    /// Keeps an instance terminating while it is held.
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

    /// Sets AWS's public parameters. The front serves them instead of moto.
    pub fn publish(&self, parameters: impl IntoIterator<Item = Parameter>) {
        self.inner().parameters = parameters.into_iter().collect();
    }

    /// Sets the zone of each subnet: a launch request names subnets, and stock is counted by zone.
    pub fn know_subnets(&self, zones: impl IntoIterator<Item = (String, String)>) {
        self.inner().zones = zones.into_iter().collect();
    }

    /// Sets what goes wrong at random from now on.
    pub fn trouble(&self, trouble: Trouble) {
        self.inner().trouble = trouble;
    }

    /// Calls moto directly and without trouble, as a person does who changes the account. Returns the response, whatever its
    /// status.
    pub async fn call(&self, service: &str, query: &str) -> anyhow::Result<String> {
        let headers = headers(service)?;
        let body = Bytes::from(query.to_owned());
        Ok(self.shared.text(&Method::POST, &Uri::from_static("/"), &headers, body).await?.1)
    }

    /// Makes the front keep messages itself. Of moto's queues only their addresses are then used.
    pub fn keep_messages(&self) {
        self.shared.queue.get_or_init(Queue::default);
    }

    /// Puts messages on the front's own queue. Returns whether it keeps one.
    pub fn put(&self, bodies: impl IntoIterator<Item = String>) -> bool {
        self.shared.queue.get().map(|queue| queue.put(bodies)).is_some()
    }

    /// Makes received messages that were not deleted visible again, if the front keeps its own queue.
    pub fn redeliver(&self) {
        if let Some(queue) = self.shared.queue.get() {
            queue.redeliver();
        }
    }

    /// Shows all instances that are still hidden, as if time had passed.
    pub fn show_all(&self) {
        self.inner().hidden.clear();
    }

    /// Returns the instances that were launched through this front and not terminated, with the claims they are for.
    pub fn machines(&self) -> Vec<Machine> {
        self.launches().into_iter().filter(|machine| !machine.ended).collect()
    }

    /// Returns the same with terminated instances.
    pub fn launches(&self) -> Vec<Machine> {
        self.inner().machines.ever()
    }

    /// Returns the number of calls that random trouble hit.
    pub fn went_wrong(&self) -> usize {
        self.inner().wrong
    }

    /// Returns how often each action was carried out and how long that took in total: the part of a measurement spent in moto and
    /// the front.
    pub fn asked(&self) -> BTreeMap<String, (usize, Duration)> {
        self.inner().asked.clone()
    }

    /// Returns the parameters of each fleet requested with a client token, named as in EC2's API.
    pub fn fleets(&self) -> Vec<BTreeMap<String, String>> {
        self.inner().fleets.contents()
    }

    /// Returns how often each action was called, failed calls included.
    pub fn calls(&self) -> BTreeMap<String, usize> {
        self.inner().calls.clone()
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// Makes headers from which moto recognizes the service.
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
    // A task of its own: a client that hangs up must not interrupt a call halfway.
    let answering =
        async move { shared.answer(&asked, &parts.method, &parts.uri, &parts.headers, body).await };
    match tokio::spawn(answering).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => text(StatusCode::BAD_GATEWAY, "text/plain", &format!("moto: {error:#}")),
        Err(error) => text(StatusCode::BAD_GATEWAY, "text/plain", &format!("the stand-in: {error}")),
    }
}

impl Inner {
    /// Returns EC2's error message if the call is not allowed, or passes a role to instances without permission.
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
            let spot = inner.spot.as_ref().filter(|_| asked.action == "ec2:DescribeSpotPriceHistory");
            spot.map(spot::history)
                .or_else(|| inner.shown.answer(asked))
                .or_else(|| inner.fleets.describe(asked))
        };
        let begun = now();
        let response = match asked.action.as_str() {
            // EC2 carries out no dry run. moto carries out some, and the longest answers take it seconds.
            action if is_dry_run && action.starts_with("ec2:Describe") => {
                let message = "Request would have succeeded, but DryRun flag is set.";
                error(asked, StatusCode::PRECONDITION_FAILED, "DryRunOperation", message)
            }
            "ec2:CreateFleet" if !is_dry_run => self.create_fleet(asked, uri, headers).await?,
            "ec2:DescribeInstances" => self.list(asked, method, uri, headers, body).await?,
            "ec2:TerminateInstances" => match self.terminate(asked) {
                Some(response) => response,
                None => self.forward(method, uri, headers, body).await?,
            },
            action if CONSTANT.contains(&action) && shown.is_none() => {
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

    /// Answers a query whose response never changes, from the cache of the process.
    async fn constant(
        &self,
        asked: &Request,
        uri: &Uri,
        headers: &HeaderMap,
        body: Bytes,
    ) -> anyhow::Result<Response<Body>> {
        // The start time does not select anything: moto's history has one entry for each pool.
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
