//! The network between one process and the API server. The seed makes requests late, lost, refused or repeated.
//!
//! A request that was sent arrives even if its sender crashes or gives up. It is never longer on its way than [`LATEST`], which
//! is less than the margin by which a leader stops before its Lease ends. No client can take back a request that TCP delivers
//! later.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, Response, header};
use futures::StreamExt;
use kube::Client;
use poolwright_controller::Suspension;
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};
use tower::service_fn;

use crate::accidents::{Accidents, Site, one_of, span};
use crate::api::ApiServer;
use crate::dice::Dice;
use crate::record::Record;
use crate::run::Sabotage;
use crate::sabotage;

/// The longest time that a request takes to the API server.
pub const LATEST: Duration = Duration::from_millis(1_500);

/// A silent watch ends after this time, the default of kube's client. Other requests have no timeout here; callers must set one.
const SILENCE: Duration = Duration::from_secs(295);

/// A process that talks to the API server and to the cloud.
#[derive(Debug)]
pub struct Process {
    /// The identity under which it leads.
    pub identity: String,
    /// The number of its restarts.
    pub incarnation: u64,
    dead: AtomicBool,
    cut: AtomicBool,
    /// When one of its tasks last panicked.
    panicked: Mutex<Option<Duration>>,
    /// The tasks that ended without notice.
    ended: Mutex<Vec<Waker>>,
    /// When it last began each call of the cloud.
    called: Mutex<BTreeMap<&'static str, Duration>>,
    changed: Notify,
    /// While it is paused: the tasks to wake afterwards.
    still: Mutex<Option<Vec<Waker>>>,
}

impl Suspension for Process {
    fn is_suspended(&self, context: &mut Context<'_>) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.iter().any(|task| task.will_wake(context.waker())) {
            return true;
        }
        let mut still = self.still.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tasks) = &mut *still else { return false };
        if !tasks.iter().any(|task| task.will_wake(context.waker())) {
            tasks.push(context.waker().clone());
        }
        true
    }
}

impl Process {
    /// Makes a running process.
    pub fn new(identity: &str, incarnation: u64) -> Arc<Self> {
        Arc::new(Self {
            identity: identity.to_owned(),
            incarnation,
            dead: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            panicked: Mutex::default(),
            ended: Mutex::default(),
            called: Mutex::default(),
            changed: Notify::new(),
            still: Mutex::new(None),
        })
    }

    /// Pauses all tasks of the process. Its clocks go on.
    fn pause(&self) {
        self.still.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
    }

    /// Resumes the tasks, in random order.
    fn resume(&self, dice: &mut Dice) {
        let tasks = self.still.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut tasks = tasks.unwrap_or_default();
        while !tasks.is_empty() {
            tasks.swap_remove(dice.below(tasks.len())).wake();
        }
    }

    /// Kills the process. Its remaining requests get no response.
    pub fn kill(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// Cuts the process off from everything, or reconnects it. Requests sent meanwhile are lost.
    pub fn cut_off(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// Panics in the calling task at `now`, without a message on standard error.
    pub fn panic(&self, now: Duration, message: &'static str) -> ! {
        *self.panicked.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        std::panic::resume_unwind(Box::new(message))
    }

    /// Ends the calling task at `now`, as if it had panicked and nobody had noticed. Never returns.
    pub async fn end_task(&self, now: Duration) {
        *self.panicked.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        poll_fn(|context| {
            self.ended.lock().unwrap_or_else(PoisonError::into_inner).push(context.waker().clone());
            Poll::<()>::Pending
        })
        .await;
    }

    /// Returns when one of its tasks last panicked; `None` if none did. It may end then.
    pub fn panicked(&self) -> Option<Duration> {
        *self.panicked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that it begins this call of the cloud at `now`, whether or not the call arrives.
    pub fn calls(&self, what: &'static str, now: Duration) {
        self.called.lock().unwrap_or_else(PoisonError::into_inner).insert(what, now);
    }

    /// Returns when it last began this call of the cloud; `None` if it never did.
    pub fn called(&self, what: &str) -> Option<Duration> {
        self.called.lock().unwrap_or_else(PoisonError::into_inner).get(what).copied()
    }

    /// Returns whether its tasks stand still.
    pub fn is_paused(&self) -> bool {
        self.still.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns whether its requests arrive.
    pub fn is_heard(&self) -> bool {
        !self.dead.load(Ordering::Relaxed) && !self.cut.load(Ordering::Relaxed)
    }

    /// Returns when the process is cut off or killed.
    async fn silenced(&self) {
        loop {
            let changed = self.changed.notified();
            if !self.is_heard() {
                return;
            }
            changed.await;
        }
    }
}

/// A callback for each mutation, before it is carried out.
pub type Witness = Arc<dyn Fn(&Process, &Method, &str) + Send + Sync>;

/// Returns a witness that sees nothing.
pub fn unwatched() -> Witness {
    Arc::new(|_, _, _| ())
}

/// The connection of one process to the API server.
#[derive(Clone)]
pub struct Wire {
    /// The server.
    pub server: ApiServer,
    /// The process.
    pub process: Arc<Process>,
    /// The faults.
    pub accidents: Accidents,
    /// The seed for all durations.
    pub seed: u64,
    /// The number of requests in this world.
    pub sent: Arc<AtomicU64>,
    /// The log.
    pub record: Record,
    /// The callback for mutations.
    pub witness: Witness,
    /// A bug of the process, to test the rules.
    pub sabotage: Option<Sabotage>,
}

/// The fate of a request.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Slow,
    Lost,
    Swallowed,
    Refused(u16),
    Conflict,
    AnswerLost,
    /// It arrives, and its sender is paused for this long.
    Paused(Duration),
}

#[derive(Debug, thiserror::Error)]
#[error("connection reset by peer")]
struct Reset;

impl Wire {
    /// Makes a connection without a witness.
    pub fn new(
        server: ApiServer,
        process: Arc<Process>,
        accidents: Accidents,
        seed: u64,
        record: Record,
    ) -> Self {
        let (sent, witness) = (Arc::default(), unwatched());
        Self { server, process, accidents, seed, sent, record, witness, sabotage: None }
    }

    /// Makes a client that uses this connection.
    pub fn client(&self) -> Client {
        let wire = self.clone();
        let service = service_fn(move |request| {
            let wire = wire.clone();
            async move { wire.call(request).await }
        });
        Client::new(service, "default")
    }

    async fn call(&self, request: Request<kube::client::Body>) -> Result<Response<Body>, Reset> {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        if !self.process.is_heard() {
            // A broken network gives no error; only the caller's timeout ends the request.
            if is_watch {
                sleep(SILENCE).await;
                return Err(Reset);
            }
            return std::future::pending().await;
        }
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let writes = method != Method::GET;
        let fate = self.fate(&method, &path);
        let way = self.way(fate);
        let (answer, answered) = oneshot::channel();
        if let Some(Fate::Paused(length)) = fate {
            self.stand_still(length);
        }
        let wire = self.clone();
        // Spawned, because the request goes on if the caller is gone.
        tokio::spawn(async move {
            sleep(way).await;
            let response = match fate {
                Some(Fate::Lost) => None,
                Some(Fate::Swallowed) => {
                    wire.say(&method, &path, "is swallowed");
                    return drop_with_caller(answer).await;
                }
                Some(Fate::Refused(code)) => Some(refusal(code)),
                Some(Fate::Conflict) => Some(refusal(409)),
                None | Some(Fate::Slow | Fate::AnswerLost | Fate::Paused(_)) => {
                    if writes {
                        (wire.witness)(&wire.process, &method, &path);
                    }
                    Some(wire.serve(request).await)
                }
            };
            let code = response.as_ref().map_or(0, |response| response.status().as_u16());
            let lost = matches!(fate, Some(Fate::AnswerLost));
            // Successful renewals are most of the traffic and are not logged.
            let tells = writes && !(path.contains("/leases/") && code == 200);
            if tells || fate.is_some() {
                let how = if lost { " (the answer is lost)" } else { "" };
                let refused = matches!(fate, Some(Fate::Refused(_) | Fate::Conflict | Fate::Lost));
                let fault = if refused { " !" } else { "" };
                wire.say(&method, &path, &format!("{code}{how}{fault}"));
            }
            sleep(way).await;
            if wire.process.is_heard() {
                // The caller may be gone.
                let _ = answer.send(response.filter(|_| !lost));
            } else {
                drop_with_caller(answer).await;
            }
        });
        if !is_watch {
            return answered.await.ok().flatten().ok_or(Reset);
        }
        let response = timeout(SILENCE, answered).await.ok().and_then(Result::ok).flatten().ok_or(Reset)?;
        Ok(self.watched(response))
    }

    fn stand_still(&self, length: Duration) {
        let Process { identity, incarnation, .. } = &*self.process;
        self.record.say(format_args!("{identity}.{incarnation} stands still for {} ms", length.as_millis()));
        self.process.pause();
        let mut dice = Dice::nth(self.seed, "resume", self.sent.load(Ordering::Relaxed));
        let wire = self.clone();
        tokio::spawn(async move {
            sleep(length).await;
            let Process { identity, incarnation, .. } = &*wire.process;
            wire.record.say(format_args!("{identity}.{incarnation} goes on"));
            wire.process.resume(&mut dice);
        });
    }

    async fn serve(&self, request: Request<kube::client::Body>) -> Response<Body> {
        let behind = self.behind(request.uri().query());
        sabotage::serve(&self.server, self.sabotage, request, behind).await
    }

    /// Returns the staleness of the watch cache that serves a new watch: in changes and in time.
    fn behind(&self, query: Option<&str>) -> (u64, Duration) {
        if !query.is_some_and(|query| query.contains("sendInitialEvents=true")) {
            return (0, Duration::ZERO);
        }
        let stale = self.accidents.at(Site::Cache, |rates, dice| {
            let changes = 1 + u64::try_from(dice.below(20)).unwrap_or(0);
            dice.per_mille(rates.stale).then(|| (changes, span(dice, 100, 5_000)))
        });
        stale
            .inspect(|(changes, late)| {
                let Process { identity, incarnation, .. } = &*self.process;
                let late = late.as_millis();
                self.record.say(format_args!(
                    "{identity}.{incarnation} a watch begins {changes} changes and {late} ms behind"
                ));
            })
            .unwrap_or_default()
    }

    fn say(&self, method: &Method, path: &str, what: &str) {
        let Process { identity, incarnation, .. } = &*self.process;
        self.record.say(format_args!("{identity}.{incarnation} {method} {path} -> {what}"));
    }

    /// Returns how long a request is on its way, and its response on the way back.
    fn way(&self, fate: Option<Fate>) -> Duration {
        let mut dice = Dice::nth(self.seed, "way", self.sent.fetch_add(1, Ordering::Relaxed));
        match fate {
            Some(Fate::Slow) => dice.between(Duration::from_millis(200), LATEST),
            _ => span(&mut dice, 1, 20),
        }
    }

    fn fate(&self, method: &Method, path: &str) -> Option<Fate> {
        let is_lease = path.contains("/leases/");
        self.accidents.at(Site::Request, |rates, dice| {
            let code = *dice.pick(&[429, 500, 503]).unwrap_or(&500);
            let pause = span(dice, 1_000, 60_000);
            // Most writes are renewals. A pause during other work is more likely to break a rule.
            let paused = match *method {
                Method::GET => 0,
                _ if is_lease => rates.paused / 10,
                _ => rates.paused,
            };
            let update = [Method::PUT, Method::PATCH].contains(method);
            one_of(
                dice,
                &[
                    (rates.slow, Fate::Slow),
                    (rates.lost, Fate::Lost),
                    (rates.swallowed, Fate::Swallowed),
                    (rates.refused, Fate::Refused(code)),
                    (if update { rates.conflict } else { 0 }, Fate::Conflict),
                    (rates.answer_lost, Fate::AnswerLost),
                    (paused, Fate::Paused(pause)),
                ],
            )
        })
    }

    /// Passes on the events of a watch one by one, each with its own faults.
    fn watched(&self, response: Response<Body>) -> Response<Body> {
        let (parts, body) = response.into_parts();
        let lines = body.into_data_stream();
        let state = (self.clone(), lines, None::<Bytes>);
        let stream = futures::stream::unfold(state, |(wire, mut lines, again)| async move {
            if let Some(line) = again {
                return Some((Ok::<_, Reset>(line), (wire, lines, None)));
            }
            let line = tokio::select! {
                biased;
                () = wire.process.silenced() => {
                    // A network that is cut off delivers nothing. The watch ends when the network is back.
                    let _ = timeout(SILENCE, wire.process.heard_again()).await;
                    return None;
                }
                line = lines.next() => line?.ok()?,
            };
            let (mut ends, mut repeats) = (false, false);
            let pause = wire.accidents.at(Site::Watch, |rates, dice| {
                let stall = span(dice, 500, 8_000);
                let chosen = one_of(
                    dice,
                    &[(rates.watch_ends, 0), (rates.watch_stalls, 1), (rates.watch_repeats, 2)],
                )?;
                (ends, repeats) = (chosen == 0, chosen == 2);
                Some(if chosen == 1 { stall } else { Duration::ZERO })
            });
            if let Some(pause) = pause {
                sleep(pause).await;
            }
            if ends {
                wire.record
                    .say(format_args!("{}.{} a watch ends", wire.process.identity, wire.process.incarnation));
                return None;
            }
            let again = repeats.then(|| line.clone());
            Some((Ok(line), (wire, lines, again)))
        });
        Response::from_parts(parts, Body::from_stream(stream))
    }
}

impl Process {
    /// Returns when the process is connected; never, if it was killed.
    async fn heard_again(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_heard() {
                return;
            }
            changed.await;
        }
    }
}

/// Waits until the caller gives up.
async fn drop_with_caller<T>(mut answer: oneshot::Sender<T>) {
    answer.closed().await;
}

fn refusal(code: u16) -> Response<Body> {
    let (reason, message) = match code {
        409 => (
            "Conflict",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
        429 => (
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        ),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        _ => ("InternalError", "an error on the server has prevented the request from succeeding"),
    };
    let status = serde_json::json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": reason, "message": message, "code": code});
    let mut response = Response::new(Body::from(status.to_string()));
    *response.status_mut() = axum::http::StatusCode::from_u16(code).unwrap_or_default();
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
