//! Writing: creation, updates, patches, deletion.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::answer::{Answer, Refusal, deleted, success};
use super::deletion::{self, Fate};
use super::kinds::Kind;
use super::route::{Key, Query, Target};
use super::sent::Sent;
use super::store::Store;
use super::{objects, pods, scale};

/// The state that a write needs.
pub(super) struct Writing<'a> {
    pub store: &'a mut Store,
    /// The number of objects ever created.
    pub created: &'a mut u64,
    pub now: Timestamp,
    /// The index of the kind Namespace.
    pub namespaces: usize,
    /// The index of the kind PodDisruptionBudget.
    pub budgets: usize,
}

impl Writing<'_> {
    pub fn create(&mut self, target: &Target<'_>, query: &Query, mut object: Value) -> Answer {
        let kind = target.kind;
        check_kind(kind, &object)?;
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        let metadata = &mut object["metadata"];
        if kind.namespaced {
            let namespace = target.namespace.clone().ok_or_else(Refusal::method_not_allowed)?;
            let own = metadata["namespace"].as_str().filter(|own| !own.is_empty()).unwrap_or(&namespace);
            if own != namespace {
                return Err(Refusal::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            metadata["namespace"] = json!(namespace);
        } else {
            objects::remove(metadata, "namespace");
        }
        if metadata["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
            return Err(Refusal::unknown("resourceVersion should not be set on objects to be created"));
        }
        let number = *self.created + 1;
        if metadata["name"].as_str().is_none_or(str::is_empty)
            && let Some(prefix) = metadata["generateName"].as_str().filter(|prefix| !prefix.is_empty())
        {
            metadata["name"] = json!(format!("{prefix}{}", suffix(number)));
        }
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        check_name(kind, &name)?;
        let key = Key {
            kind: target.index,
            namespace: target.namespace.clone().unwrap_or_default(),
            name: name.clone(),
        };
        self.check_namespace(kind, &key)?;
        if self.store.get(&key).is_some() {
            return Err(Refusal::exists(kind, &name));
        }
        *self.created = number;
        let object = objects::for_creation(kind, object, &uid(number), self.now)?;
        if query.dry_run() {
            return Ok((201, object));
        }
        Ok((201, self.store.put(&key, object).as_ref().clone()))
    }

    fn check_namespace(&self, kind: &Kind, key: &Key) -> Result<(), Refusal> {
        if !kind.namespaced {
            return Ok(());
        }
        let name = key.namespace.clone();
        let namespace = Key { kind: self.namespaces, namespace: String::new(), name };
        let Some(found) = self.store.get(&namespace) else {
            return Err(Refusal {
                code: 404,
                reason: "NotFound",
                message: format!("namespaces \"{}\" not found", key.namespace),
                details: json!({"name": key.namespace, "kind": "namespaces"}),
            });
        };
        if found["metadata"]["deletionTimestamp"].is_null() {
            return Ok(());
        }
        let why = format!(
            "unable to create new content in namespace {} because it is being terminated",
            key.namespace
        );
        Err(Refusal::forbidden(kind, &key.name, &why))
    }

    pub fn update(&mut self, target: &Target<'_>, query: &Query, object: Value) -> Answer {
        let (kind, key) = (target.kind, target.key()?);
        check_kind(kind, &object)?;
        let own = object["metadata"]["name"].as_str().unwrap_or_default();
        if own != key.name {
            return Err(Refusal::bad_request(format!(
                "the name of the object ({own}) does not match the name on the URL ({})",
                key.name
            )));
        }
        let before = self.there(kind, &key)?;
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if version.is_empty() && !kind.traits.unconditional {
            return Err(Refusal::unversioned(kind, &key.name));
        }
        self.change(target, query, &before, object)
    }

    pub fn patch(
        &mut self,
        target: &Target<'_>,
        query: &Query,
        content_type: &str,
        body: Sent<'_>,
    ) -> Answer {
        let (kind, key) = (target.kind, target.key()?);
        let before = self.there(kind, &key)?;
        let changed = super::patch::apply(&before, content_type, body)?;
        check_kind(kind, &changed)?;
        if changed["metadata"]["name"] != before["metadata"]["name"] {
            return Err(Refusal::bad_request("the name of the object does not match the name on the URL"));
        }
        let own = changed["metadata"]["uid"].as_str().unwrap_or_default();
        if !own.is_empty() && before["metadata"]["uid"] != own {
            let field = ("metadata.uid".to_owned(), format!("Invalid value: \"{own}\": field is immutable"));
            return Err(Refusal::invalid(kind, &key.name, &[field]));
        }
        self.change(target, query, &before, changed)
    }

    /// Changes the replicas of a workload. `sent` receives the current Scale and returns the new one.
    pub fn rescale(
        &mut self,
        target: &Target<'_>,
        query: &Query,
        sent: impl FnOnce(&Value) -> Result<Value, Refusal>,
    ) -> Answer {
        let (kind, key) = (target.kind, target.key()?);
        let before = self.there(kind, &key)?;
        let object = scale::apply(kind, &before, &sent(&scale::of(&before))?)?;
        let (code, changed) = self.change(&target.main(), query, &before, object)?;
        Ok((code, scale::of(&changed)))
    }

    fn there(&self, kind: &Kind, key: &Key) -> Result<Arc<Value>, Refusal> {
        self.store.get(key).cloned().ok_or_else(|| Refusal::not_found(kind, &key.name))
    }

    /// Stores the changed object, if it changed.
    fn change(&mut self, target: &Target<'_>, query: &Query, before: &Value, object: Value) -> Answer {
        let (kind, key) = (target.kind, target.key()?);
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if !version.is_empty() && before["metadata"]["resourceVersion"] != version {
            return Err(Refusal::changed(kind, &key.name));
        }
        if let Some(uid) = object["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty())
            && before["metadata"]["uid"] != uid
        {
            let known = before["metadata"]["uid"].as_str().unwrap_or_default();
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {known}");
            return Err(Refusal::conflict(kind, &key.name, &why));
        }
        let mut object = match target.subresource.as_deref() {
            None => objects::for_update(kind, before, object)?,
            Some("status") if kind.traits.status => objects::for_status(kind, before, object)?,
            Some(_) => return Err(Refusal::nowhere()),
        };
        object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        if object == *before {
            return Ok((200, object));
        }
        if query.dry_run() {
            return Ok((200, object));
        }
        let metadata = &object["metadata"];
        let released = !metadata["deletionTimestamp"].is_null()
            && metadata["finalizers"].as_array().is_none_or(Vec::is_empty)
            && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0;
        if released {
            self.store.remove(&key);
            return Ok((200, object));
        }
        Ok((200, self.store.put(&key, object).as_ref().clone()))
    }

    pub fn delete(&mut self, target: &Target<'_>, query: &Query, options: &Value) -> Answer {
        let (kind, key) = (target.kind, target.key()?);
        let before = self.there(kind, &key)?;
        let metadata = &before["metadata"];
        for (field, what) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
            if let Some(wanted) = options["preconditions"][field].as_str()
                && metadata[field] != wanted
            {
                let known = metadata[field].as_str().unwrap_or_default();
                let why = format!(
                    "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {known}"
                );
                return Err(Refusal::precondition(kind, &key.name, &why));
            }
        }
        let dry = query.dry_run() || options["dryRun"].as_array().is_some_and(|all| !all.is_empty());
        let asked = options["gracePeriodSeconds"]
            .as_i64()
            .or_else(|| query.text("gracePeriodSeconds").and_then(|text| text.parse().ok()));
        let fate = deletion::fate(kind, &before, asked, self.now);
        let gone = matches!(fate, Fate::Gone);
        let left = match fate {
            Fate::Stays(object) | Fate::GoneAfter(object) if dry => Arc::new(object),
            Fate::Gone if dry => before,
            fate => deletion::carry_out(self.store, &key, fate).unwrap_or(before),
        };
        Ok((200, if gone { success(200, deleted(kind, &left)) } else { left.as_ref().clone() }))
    }

    /// Evicts a pod if its PodDisruptionBudgets allow it.
    pub fn evict(&mut self, target: &Target<'_>, query: &Query, eviction: &Value) -> Answer {
        let (kind, key) = (target.kind, target.key()?);
        let pod = self.there(kind, &key)?;
        let options = &eviction["deleteOptions"];
        let ends_alone = pods::is_finished(&pod)
            || pod["status"]["phase"] == "Pending"
            || !pod["metadata"]["deletionTimestamp"].is_null();
        if !ends_alone {
            let of_budget = |(key, budget): (&Key, &Arc<Value>)| {
                pods::is_budgeted(budget, &pod).then(|| (key.clone(), budget.clone()))
            };
            let budgets: Vec<_> = self.store.of_kind(self.budgets).filter_map(of_budget).collect();
            if budgets.len() > 1 {
                let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(Refusal::unknown(message));
            }
            if let Some((at, budget)) = budgets.first()
                && !pods::is_free_to_go(&pod, budget)
            {
                self.spend(at, budget, &key.name, query.dry_run())?;
            }
        }
        self.delete(&target.main(), query, options)?;
        Ok((201, success(201, Value::Null)))
    }

    /// Takes one disruption from a budget.
    fn spend(&mut self, at: &Key, budget: &Value, pod: &str, dry: bool) -> Result<(), Refusal> {
        let status = &budget["status"];
        let allowed = status["disruptionsAllowed"].as_i64().unwrap_or(0);
        let name = &at.name;
        if status["observedGeneration"].as_i64() < budget["metadata"]["generation"].as_i64() {
            return Err(Refusal::disruption_budget(
                name,
                "is still being processed by the server.".to_owned(),
            ));
        }
        if allowed <= 0 {
            let count = |field: &str| status[field].as_i64().unwrap_or(0);
            let message = format!(
                "needs {} healthy pods and has {} currently",
                count("desiredHealthy"),
                count("currentHealthy")
            );
            return Err(Refusal::disruption_budget(name, message));
        }
        if !dry {
            let mut budget = budget.clone();
            budget["status"]["disruptionsAllowed"] = json!(allowed - 1);
            budget["status"]["disruptedPods"][pod] = json!(objects::second(self.now));
            if allowed == 1 {
                budget["status"]["conditions"] = json!([{"type": "DisruptionAllowed", "status": "False",
                    "reason": "InsufficientPods", "message": "", "lastTransitionTime": objects::second(self.now),
                    "observedGeneration": status["observedGeneration"]}]);
            }
            self.store.put(at, budget);
        }
        Ok(())
    }

    pub fn bind(&mut self, target: &Target<'_>, query: &Query, binding: &Value) -> Answer {
        let (kind, key) = (target.kind, target.key()?);
        let bound = pods::bind(kind, &*self.there(kind, &key)?, binding, self.now)?;
        if !query.dry_run() {
            self.store.put(&key, bound);
        }
        Ok((201, success(201, Value::Null)))
    }
}

/// Checks that the kind in the body matches the path.
fn check_kind(kind: &Kind, object: &Value) -> Result<(), Refusal> {
    if !object.is_object() {
        return Err(Refusal::bad_request("the object provided is unrecognized (must be of type object)"));
    }
    let wrong = |field: &str, wanted: &str| object[field].as_str().is_some_and(|own| own != wanted);
    if wrong("kind", &kind.kind) || wrong("apiVersion", &kind.api_version()) {
        return Err(Refusal::bad_request(format!(
            "the object provided is of another kind than {} {}",
            kind.api_version(),
            kind.kind
        )));
    }
    Ok(())
}

/// Checks that a name is a DNS subdomain (RFC 1123).
fn check_name(kind: &Kind, name: &str) -> Result<(), Refusal> {
    if name.is_empty() {
        let field =
            ("metadata.name".to_owned(), "Required value: name or generateName is required".to_owned());
        return Err(Refusal::invalid(kind, name, &[field]));
    }
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = label.as_bytes();
        matches!((bytes.first(), bytes.last()), (Some(first), Some(last)) if inner(*first) && inner(*last))
            && bytes.iter().all(|byte| inner(*byte) || *byte == b'-')
    };
    if name.len() <= 253 && name.split('.').all(label) {
        return Ok(());
    }
    let sentence = format!(
        "Invalid value: \"{name}\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
    );
    Err(Refusal::invalid(kind, name, &[("metadata.name".to_owned(), sentence)]))
}

/// Makes a UID from the number of objects created before.
fn uid(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

/// Returns the suffix of a generated name: five letters from Kubernetes' alphabet, different for each number.
fn suffix(number: u64) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let base = LETTERS.len() as u64;
    let digit = |place: u32| char::from(LETTERS[(number / base.pow(place) % base) as usize]);
    (0..5).rev().map(digit).collect()
}
