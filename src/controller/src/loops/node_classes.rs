//! The loop that keeps the status of node classes up to date: what the cloud has for each field, and whether the class is ready.
//!
//! Providers check the classes that refer to cloud resources. The status tells the author of a class what is wrong with it.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Resource;
use kube::api::{ApiResource, DynamicObject, ListParams};
use poolwright_core::EventType;
use poolwright_provider_contract::{
    ConditionOutcome, NodeClassCondition, NodeClassStatus, NodeClassStatusSource, ProviderError,
};
use poolwright_terms::{NodeClassRef, Reason, RegisteredReason};
use serde_json::{Map, Value};
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use super::leader_loop::LeaderLoop;
use crate::edge::events::QueuedEvent;
use crate::edge::signal::Receiver;
use crate::executor::context::Context;
use crate::executor::status::{Changed, change_status};
use crate::observed::providers::{Cloud, error_label};
use crate::observed::reader::Objects;

/// How often a ready class is checked.
const READY_EVERY: Duration = Duration::from_mins(5);
/// How often a class that is not ready is checked: its author is waiting.
const ELSE_EVERY: Duration = Duration::from_secs(30);
/// The timeout of one check.
const LIMIT: Duration = Duration::from_mins(1);
/// How often a provider is asked whether it receives notices; it answers from memory.
const HEARING_EVERY: Duration = Duration::from_secs(5);
/// How many classes are checked concurrently.
const AT_A_TIME: usize = 4;

/// The loop that keeps the status of node classes.
pub struct NodeClasses {
    context: Context,
    /// Whether each provider received notices at the last check.
    hearing: Vec<Option<NodeClassCondition>>,
}

impl NodeClasses {
    /// Creates a loop that has not checked any class.
    pub fn new(context: Context) -> Self {
        Self { context, hearing: Vec::new() }
    }

    /// Providers that check classes, with the kinds of their classes.
    fn kinds(&self) -> Vec<(Cloud, ApiResource)> {
        let talkers =
            self.context.providers.all().iter().filter(|one| one.node_class_status_source().is_some());
        let kinds = talkers.flat_map(|one| one.node_class_kinds().iter().map(move |kind| (one, kind)));
        kinds.map(|(provider, kind)| (provider.clone(), kind.resource())).collect()
    }

    /// Returns whether a provider checks classes.
    pub fn is_needed(&self) -> bool {
        !self.kinds().is_empty()
    }
}

impl LeaderLoop for NodeClasses {
    const NAME: &'static str = "looking at node classes";

    fn changes(&self) -> Receiver<()> {
        self.context.world.class_changes()
    }

    async fn look(&mut self) -> Option<Duration> {
        self.hearing = self.hearing();
        Some(self.round().await)
    }

    /// Waits until a provider starts or stops receiving notices.
    async fn is_called(&self) {
        while self.hearing() == self.hearing {
            sleep(HEARING_EVERY).await;
        }
    }
}

impl NodeClasses {
    /// Returns whether each provider receives notices.
    fn hearing(&self) -> Vec<Option<NodeClassCondition>> {
        let all = self.context.providers.all().iter();
        let of = |provider: &Cloud| provider.node_class_status_source()?.interruption_condition();
        all.map(|provider| of(provider).filter(|one| one.outcome != ConditionOutcome::NoAnswer)).collect()
    }

    /// Checks every class once. Returns how soon to check again.
    async fn round(&self) -> Duration {
        let mut is_well = true;
        for (provider, resource) in self.kinds() {
            let Some(reports) = provider.node_class_status_source() else { continue };
            let api = self.context.reader.dynamic(&resource);
            let listed = match api.metadata(&ListParams::default().match_any()).await {
                Ok(listed) => listed,
                Err(error) => {
                    warn!(kind = resource.kind, %error, "node classes could not be listed; their status stays as it is");
                    is_well = false;
                    continue;
                }
            };
            let names: BTreeSet<String> =
                listed.items.into_iter().filter_map(|object| object.metadata.name).collect();
            let looks = names.into_iter().map(|name| self.one(&provider, reports, &api, &resource, name));
            let all: Vec<bool> = stream::iter(looks).buffer_unordered(AT_A_TIME).collect().await;
            is_well &= all.into_iter().all(|one| one);
        }
        if is_well { READY_EVERY } else { ELSE_EVERY }
    }

    /// Checks one class and writes its status. Returns whether it is ready, if known.
    async fn one(
        &self,
        provider: &Cloud,
        reports: &dyn NodeClassStatusSource,
        api: &Objects<DynamicObject>,
        resource: &ApiResource,
        name: String,
    ) -> bool {
        let key =
            NodeClassRef { group: resource.group.clone(), kind: resource.kind.clone(), name: name.clone() };
        let report = timeout(LIMIT, reports.status(&key)).await;
        let report = match report
            .unwrap_or_else(|_| Err(ProviderError::Transient(format!("no answer within {LIMIT:?}"))))
        {
            Ok(Some(report)) => report,
            Ok(None) => return true,
            Err(error) => {
                let labels = [provider.name(), "class", error_label(&error)];
                self.context.metrics.provider_errors.with_label_values(&labels).inc();
                warn!(kind = resource.kind, class = name, %error, "a node class could not be resolved; trying again");
                return false;
            }
        };
        let now = self.context.clock.now();
        let hearing = reports.interruption_condition();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let changed = change_status(api, &self.context.writer, &name, report.uid.as_deref(), |object| {
            before = known(object);
            let changed = apply(object, &report, hearing.as_ref(), now);
            after = known(object);
            changed
        });
        match changed.await {
            Changed::Written(object) => {
                let find = |all: &[Condition], kind: &str| all.iter().find(|one| one.type_ == kind).cloned();
                if let Some(ready) = find(&after, READY) {
                    self.tell(resource, &object, find(&before, READY).as_ref(), &ready, reports.reasons());
                }
                if let Some(hears) = hearing.and_then(|hearing| find(&after, hearing.kind)) {
                    let before = find(&before, &hears.type_);
                    self.tell_of_hearing(resource, &object, before.as_ref(), &hears, reports.reasons());
                }
            }
            Changed::Unchanged(_) => {}
            Changed::NotWritten(outcome) => {
                debug!(class = name, ?outcome, "the status of a node class was not written; trying again");
                return false;
            }
        }
        after.iter().any(|one| one.type_ == READY && one.status == TRUE)
    }

    /// Records an event when the readiness of a class changes, and refreshes the catalogue when it becomes ready.
    fn tell(
        &self,
        resource: &ApiResource,
        object: &DynamicObject,
        before: Option<&Condition>,
        after: &Condition,
        reasons: &[RegisteredReason],
    ) {
        let same = |before: &Condition| before.status == after.status && before.message == after.message;
        if before.is_some_and(same) || after.status == UNKNOWN {
            return;
        }
        let is_ready = after.status == TRUE;
        let name = object.meta().name.as_deref();
        info!(kind = resource.kind, class = name, ready = is_ready, message = after.message, "node class");
        self.say(resource, object, after, reasons);
        if is_ready && before.is_some() {
            self.context.world.classes_changed();
        }
    }

    /// Records an event when a provider stops receiving notices, and when it receives them again. Records none if all is well
    /// from the start.
    fn tell_of_hearing(
        &self,
        resource: &ApiResource,
        object: &DynamicObject,
        before: Option<&Condition>,
        after: &Condition,
        reasons: &[RegisteredReason],
    ) {
        let was_deaf = before.filter(|before| before.status == FALSE);
        let is_news = match after.status.as_str() {
            FALSE => was_deaf.is_none_or(|before| before.message != after.message),
            TRUE => was_deaf.is_some(),
            _ => false,
        };
        if is_news {
            self.say(resource, object, after, reasons);
        }
    }

    fn say(
        &self,
        resource: &ApiResource,
        object: &DynamicObject,
        condition: &Condition,
        reasons: &[RegisteredReason],
    ) {
        self.context.events.record(QueuedEvent {
            about: ObjectReference {
                api_version: Some(resource.api_version.clone()),
                kind: Some(resource.kind.clone()),
                name: object.meta().name.clone(),
                uid: object.meta().uid.clone(),
                ..Default::default()
            },
            kind: if condition.status == TRUE { EventType::Normal } else { EventType::Warning },
            reason: registered(&condition.reason, reasons),
            message: condition.message.clone(),
            story: None,
        });
    }
}

const READY: &str = "Ready";
const TRUE: &str = "True";
const FALSE: &str = "False";
const UNKNOWN: &str = "Unknown";

/// Returns the conditions of an object.
fn known(object: &DynamicObject) -> Vec<Condition> {
    object.data.get("status").map(conditions).unwrap_or_default()
}

/// Returns the reason of a recorded condition. It may be of an earlier version and unknown by now.
fn registered(name: &str, of_provider: &[RegisteredReason]) -> RegisteredReason {
    let known = of_provider.iter().find(|one| one.name == name).copied();
    known.unwrap_or_else(|| Reason::named(name).unwrap_or(Reason::NodeClassNotReady).into())
}

fn conditions(status: &Value) -> Vec<Condition> {
    status.get("conditions").cloned().and_then(|all| serde_json::from_value(all).ok()).unwrap_or_default()
}

/// Writes the provider's findings into an object's status. Also writes whether notices are received, which does not affect
/// readiness. Returns whether the status changed.
fn apply(
    object: &mut DynamicObject,
    report: &NodeClassStatus,
    hearing: Option<&NodeClassCondition>,
    now: Timestamp,
) -> bool {
    let before = object.data.get("status").cloned().unwrap_or_default();
    let known = conditions(&before);
    let mut status: Map<String, Value> = before.as_object().cloned().unwrap_or_default();
    for (field, value) in &report.fields {
        // An empty value is left out, as the API server does.
        if value.is_null() || value.as_array().is_some_and(Vec::is_empty) {
            status.remove(field);
        } else {
            status.insert(field.clone(), value.clone());
        }
    }
    let mut all: Vec<Condition> =
        report.conditions.iter().map(|one| condition(one, &known, report.generation, now)).collect();
    let summary = summary(&all, &known, report.generation, now);
    all.extend(hearing.map(|one| condition(one, &known, report.generation, now)));
    all.push(summary);
    status.insert("conditions".to_owned(), serde_json::to_value(all).unwrap_or_default());
    if let Some(generation) = report.generation {
        status.insert("observedGeneration".to_owned(), generation.into());
    }
    let status = Value::Object(status);
    if status == before {
        return false;
    }
    if !object.data.is_object() {
        object.data = Value::Object(Map::new());
    }
    object.data["status"] = status;
    true
}

fn condition(
    told: &NodeClassCondition,
    known: &[Condition],
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let before = known.iter().find(|one| one.type_ == told.kind);
    let status = match told.outcome {
        ConditionOutcome::True => TRUE,
        ConditionOutcome::False => FALSE,
        ConditionOutcome::Unknown | ConditionOutcome::NoAnswer => UNKNOWN,
    };
    // Conditions of an earlier generation do not count.
    let stands = before
        .filter(|one| told.outcome == ConditionOutcome::NoAnswer && one.observed_generation == generation);
    stands.cloned().unwrap_or_else(|| {
        made(told.kind, status, (told.reason.to_string(), told.message.clone()), before, generation, now)
    })
}

/// Returns the `Ready` condition: false with the first problem, or else unknown with the first unknown.
fn summary(all: &[Condition], known: &[Condition], generation: Option<i64>, now: Timestamp) -> Condition {
    let before = known.iter().find(|one| one.type_ == READY);
    let of_status = |status: &str| all.iter().find(|one| one.status == status);
    let (status, words) = match (of_status(FALSE), of_status(UNKNOWN)) {
        (Some(against), _) => (FALSE, (against.reason.clone(), against.message.clone())),
        (None, Some(open)) => (UNKNOWN, (open.reason.clone(), open.message.clone())),
        (None, None) => {
            (TRUE, (Reason::Ready.to_string(), "everything that it names exists and is usable".to_owned()))
        }
    };
    made(READY, status, words, before, generation, now)
}

fn made(
    kind: &str,
    status: &str,
    (reason, message): (String, String),
    before: Option<&Condition>,
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let since = before.filter(|one| one.status == status).map_or(now, |one| one.last_transition_time.0);
    Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason,
        message,
        last_transition_time: Time(since),
        observed_generation: generation,
    }
}

#[cfg(test)]
mod tests;
