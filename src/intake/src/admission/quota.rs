//! ResourceQuotas: which new objects a namespace may still have (admission plugin `ResourceQuota`).

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{self as k8s, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use poolwright_api::FieldProblem;
use poolwright_core::QuotaScopes;

use super::quota_rules;
use super::usage::Usage;
use crate::error::{Keep, add_untold};
use crate::quota::{Entry, LIMITS, REQUESTS, Reading, STORAGE_CLASS, entries, reading, written};
use crate::quota_scope::{self, scopes};

/// The quotas of the manifests, and how much of each is in use.
#[derive(Default)]
pub(crate) struct Quotas {
    all: Vec<Quota>,
    /// The ServiceAccounts that cannot be created, by namespace and name. An API server creates no pod without its account.
    accounts: BTreeMap<(String, String), OverQuota>,
}

/// A quota of the manifests.
struct Quota {
    namespace: String,
    name: String,
    scopes: QuotaScopes,
    /// The entries that an API server enforces.
    entries: BTreeMap<String, Entry>,
}

impl Quota {
    fn counts(&self, usage: &Usage) -> bool {
        self.namespace == usage.namespace && usage.is_in(&self.scopes)
    }

    /// Returns what the quota allows no more of for the object, if it does not allow it.
    fn lacks(&self, usage: &Usage) -> Option<Exceeded> {
        let entries = self.entries.iter().map(|(name, entry)| (name, entry, usage.of_entry(name)));
        let exceeded = entries.filter(|(_, entry, asked)| asked > &entry.left());
        let entries: Vec<Short> = exceeded
            .map(|(name, entry, asked)| Short {
                entry: name.clone(),
                hard: entry.hard,
                used: entry.used,
                asked,
            })
            .collect();
        (!entries.is_empty()).then(|| Exceeded { quota: self.name.clone(), entries })
    }
}

/// Why an object cannot be created: all quotas that do not allow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OverQuota {
    /// What they do not allow, if it is something that the object needs: ServiceAccount `robot`.
    needed: Option<String>,
    exceeded: Vec<Exceeded>,
}

/// A quota that does not allow an object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Exceeded {
    quota: String,
    /// The entries that allow no more. There is at least one.
    entries: Vec<Short>,
}

/// An entry of a quota that allows no more.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Short {
    entry: String,
    hard: u64,
    /// What is in use, with what earlier objects of the manifests take.
    used: u64,
    asked: u64,
}

impl OverQuota {
    /// Says that the quotas do not allow something that another object needs.
    pub fn of_needed(self, needed: String) -> Self {
        Self { needed: Some(needed), ..self }
    }
}

impl fmt::Display for OverQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(needed) = &self.needed {
            write!(f, "its {needed} cannot be created: ")?;
        }
        for (at, Exceeded { quota, entries }) in self.exceeded.iter().enumerate() {
            let and = if at == 0 { "" } else { ", and " };
            write!(f, "{and}ResourceQuota `{quota}` allows ")?;
            // Only one alone has the room for a sentence of its own.
            let is_alone = self.exceeded.len() == 1 && entries.len() == 1;
            for (at, Short { entry, hard, used, asked }) in entries.iter().enumerate() {
                let [hard, used, asked] = [*hard, *used, *asked].map(|amount| written(entry, amount));
                let and = if at == 0 { "" } else { " and " };
                let are = if used == "1" { "is" } else { "are" };
                if is_alone {
                    write!(
                        f,
                        "no more {entry}: it limits them to {hard}, {used} {are} in use, and this asks for {asked}"
                    )?;
                } else {
                    write!(f, "{and}no more {entry} (limit {hard}, {used} in use, {asked} asked for)")?;
                }
            }
        }
        Ok(())
    }
}

impl Quotas {
    /// Adds a quota. Returns notes about what is not read of it.
    ///
    /// Errors: each quantity and, in a quota that no API server has stored, everything else that an API server would refuse.
    pub fn add(&mut self, from: &k8s::ResourceQuota) -> Result<Vec<String>, Vec<FieldProblem>> {
        let (mut notes, mut problems) = (Vec::new(), Vec::new());
        let entries = entries(from).keep(&mut problems);
        if let Some(spec) = &from.spec {
            if super::is_new(&from.metadata) {
                add_untold(quota_rules::problems(spec), &mut problems);
            } else {
                let unknown = quota_scope::unknown(spec).into_iter();
                notes.extend(
                    unknown
                        .map(|(at, what)| format!("{at}: {what} is not known, so the quota counts no pods")),
                );
            }
        }
        let Some(mut entries) = entries.filter(|_| problems.is_empty()) else { return Err(problems) };
        notes.extend(unread(entries.keys().map(String::as_str)));
        entries.retain(|key, _| reading(key) == Reading::Enforced);
        self.all.push(Quota {
            namespace: super::namespace_of(from.metadata.namespace.as_deref()),
            name: from.metadata.name.clone().unwrap_or_default(),
            scopes: from.spec.as_ref().map(scopes).unwrap_or_default(),
            entries,
        });
        Ok(notes)
    }

    /// Returns whether a namespace has a quota.
    pub fn limit(&self, namespace: &str) -> bool {
        self.all.iter().any(|quota| quota.namespace == namespace)
    }

    /// Returns whether a namespace has a quota for one StorageClass.
    pub fn limit_a_class(&self, namespace: &str) -> bool {
        let mut theirs = self.all.iter().filter(|quota| quota.namespace == namespace);
        theirs.any(|quota| quota.entries.keys().any(|key| key.contains(STORAGE_CLASS)))
    }

    /// Returns whether a quota of a namespace does not say what is in use, so that its stored objects must be counted.
    pub fn count_stored_of(&self, namespace: &str) -> bool {
        let mut theirs = self.all.iter().filter(|quota| quota.namespace == namespace);
        theirs.any(|quota| quota.entries.values().any(|entry| !entry.is_counted))
    }

    /// Counts a stored object to the entries that do not say what is in use.
    pub fn count(&mut self, stored: &Usage) {
        for quota in self.all.iter_mut().filter(|quota| quota.counts(stored)) {
            for (name, entry) in quota.entries.iter_mut().filter(|(_, entry)| !entry.is_counted) {
                entry.used = entry.used.saturating_add(stored.of_entry(name));
            }
        }
    }

    /// Records that a ServiceAccount cannot be created.
    pub fn refuse_account(&mut self, namespace: &str, name: &str, over: &OverQuota) {
        self.accounts.insert((namespace.to_owned(), name.to_owned()), over.clone());
    }

    /// Counts a new object, or says why it cannot be created.
    pub fn admit(&mut self, new: &Usage) -> Result<(), OverQuota> {
        let account = new.account.as_ref().map(|name| (new.namespace.clone(), name.clone()));
        if let Some((key, over)) = account.and_then(|key| self.accounts.get_key_value(&key)) {
            return Err(over.clone().of_needed(format!("ServiceAccount `{}`", key.1)));
        }
        let counting = self.all.iter().filter(|quota| quota.counts(new));
        let exceeded: Vec<Exceeded> = counting.filter_map(|quota| quota.lacks(new)).collect();
        if !exceeded.is_empty() {
            return Err(OverQuota { needed: None, exceeded });
        }
        for quota in self.all.iter_mut().filter(|quota| quota.counts(new)) {
            for (name, entry) in &mut quota.entries {
                entry.used = entry.used.saturating_add(new.of_entry(name));
            }
        }
        Ok(())
    }
}

/// Returns notes that name the entries of a quota that are not enforced here.
fn unread<'a>(keys: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let mut notes = Vec::new();
    let unread = keys.clone().filter(|key| reading(key) == Reading::NotRead);
    let unread: Vec<String> = unread.map(|key| format!("`{key}`")).collect();
    let words = match unread.len() {
        0 => None,
        1 => Some(("is", "it")),
        _ => Some(("are", "they")),
    };
    notes.extend(words.map(|(are, they)| {
        format!("{} {are} not read, so objects that {they} would refuse are planned", unread.join(", "))
    }));
    for key in keys.filter(|key| reading(key) == Reading::Ineffective) {
        let own = key.strip_prefix(LIMITS).unwrap_or(key);
        let next = if own.contains('/') && !own.starts_with(REQUESTS) {
            format!("write `{REQUESTS}{own}`")
        } else {
            "correct its name".to_owned()
        };
        notes.push(format!("`{key}` limits nothing in an API server; {next}"));
    }
    notes
}

/// What a quota demands of each container: an API server refuses a pod that does not state what the quota limits.
pub(super) struct QuotaDemands {
    pub namespace: String,
    name: String,
    scopes: QuotaScopes,
    /// Keys such as `requests.cpu`.
    keys: Vec<&'static str>,
}

/// The keys of a quota that every container must state.
const STATED: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

impl QuotaDemands {
    pub fn of(from: &k8s::ResourceQuota) -> Option<Self> {
        let spec = from.spec.as_ref()?;
        let keys = STATED.into_iter().filter(|key| spec.hard.iter().flatten().any(|(name, _)| name == key));
        let keys: Vec<&str> = keys.collect();
        let namespace = super::namespace_of(from.metadata.namespace.as_deref());
        let name = from.metadata.name.clone().unwrap_or_default();
        (!keys.is_empty()).then(|| Self { namespace, name, scopes: scopes(spec), keys })
    }

    /// Returns a problem for each container that does not state what the quota limits.
    pub fn refusals(&self, path: &str, spec: &PodSpec) -> Vec<FieldProblem> {
        // An API server asks containers for nothing if the whole pod states something (`podEvaluator.Constraints`).
        let states_some =
            |all: &Option<BTreeMap<String, Quantity>>| all.as_ref().is_some_and(|all| !all.is_empty());
        if spec
            .resources
            .as_ref()
            .is_some_and(|whole| states_some(&whole.requests) || states_some(&whole.limits))
        {
            return Vec::new();
        }
        let lists =
            [("containers", Some(&spec.containers)), ("initContainers", spec.init_containers.as_ref())];
        let mut problems = Vec::new();
        if !self.scopes.match_pod(&quota_scope::of_pod(spec)) {
            return problems;
        }
        for key in &self.keys {
            for (list, containers) in lists {
                for (at, container) in containers.into_iter().flatten().enumerate() {
                    if !states(container.resources.as_ref(), key) {
                        let (field, resource) = key.split_once('.').unwrap_or(("requests", key));
                        problems.push(FieldProblem::new(
                            format!("{path}.{list}[{at}].resources.{field}.{resource}"),
                            format!(
                                "missing, and ResourceQuota `{}` refuses pods without it, because it limits {key}",
                                self.name
                            ),
                            "write it, or add a LimitRange with a default to the files",
                        ));
                    }
                }
            }
        }
        problems
    }
}

/// Returns whether the resources state what a key of a quota limits. A limit is also a request.
fn states(stated: Option<&k8s::ResourceRequirements>, key: &str) -> bool {
    let (field, resource) = key.split_once('.').unwrap_or(("requests", key));
    let has =
        |amounts: Option<&BTreeMap<String, Quantity>>| amounts.is_some_and(|all| all.contains_key(resource));
    let is_limited = has(stated.and_then(|stated| stated.limits.as_ref()));
    is_limited || (field == "requests" && has(stated.and_then(|stated| stated.requests.as_ref())))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn notes(quota: Value) -> Vec<String> {
        let quota: k8s::ResourceQuota = serde_json::from_value(quota).expect("a quota");
        Quotas::default().add(&quota).expect("it is read")
    }

    #[test]
    fn entries_that_are_not_enforced_are_named() {
        let of = |hard: Value| notes(json!({"metadata": {"name": "team"}, "spec": {"hard": hard}}));
        assert_eq!(
            of(
                json!({"resourcequotas": "1", "count/resourcequotas": "2", "count/limitranges": "2", "pods": "9"})
            ),
            [
                "`count/resourcequotas`, `resourcequotas` are not read, so objects that they would refuse are planned"
            ]
        );
        assert_eq!(
            of(json!({"nvidia.com/gpu": "1", "limits.nvidia.com/gpu": "1"})),
            [
                "`limits.nvidia.com/gpu` limits nothing in an API server; write `requests.nvidia.com/gpu`",
                "`nvidia.com/gpu` limits nothing in an API server; write `requests.nvidia.com/gpu`",
            ]
        );
        let read = json!({"count/pods": "2", "requests.nvidia.com/gpu": "8", "memory": "1Gi",
            "requests.storage": "1Ti", "count/jobs.batch": "2", "services": "1"});
        assert_eq!(of(read), [""; 0]);
    }

    #[test]
    fn an_unknown_scope_of_a_stored_quota_is_a_note() {
        let quota = json!({"metadata": {"name": "team", "uid": "u"}, "spec": {"scopes": ["Newer"]}});
        assert_eq!(
            notes(quota),
            ["spec.scopes[0]: the scope `Newer` is not known, so the quota counts no pods"]
        );
        let expression = json!({"scopeName": "PriorityClass", "operator": "Like", "values": ["a"]});
        let quota = json!({"metadata": {"name": "team", "uid": "u"},
            "spec": {"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [expression]}}});
        let at = "spec.scopeSelector.matchExpressions[0].operator";
        assert_eq!(
            notes(quota),
            [format!("{at}: the operator `Like` is not known, so the quota counts no pods")]
        );
    }
}
