//! The configuration of a kube-scheduler, as far as it affects where pods may go: default spread, added node affinity,
//! profiles. A note names each part that Poolwright cannot follow. A file that the scheduler would refuse is an error here too.
//!
//! Facts: `KubeSchedulerConfiguration` of kubescheduler.config.k8s.io/v1 and its validation
//! (pkg/scheduler/apis/config/validation), Kubernetes 1.36.

mod args;
mod plugins;

use std::collections::BTreeMap;

use poolwright_api::FieldProblem;
use poolwright_api::strict::read;
use poolwright_core::{Profile, Profiles};
use serde::Deserialize;
use serde_json::Value;

use crate::error::{IntakeError, OfObject};
use crate::manifest::documents;
use plugins::Plugins;

const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";
const KIND: &str = "KubeSchedulerConfiguration";
/// The profile of pods that name no scheduler.
const DEFAULT: &str = "default-scheduler";

/// The parts of a scheduler's configuration that plans follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// The rules that each profile adds to its pods.
    pub profiles: Profiles,
    /// A sentence for each part that plans do not follow.
    pub notes: Vec<String>,
}

/// Reads a scheduler's configuration; all problems are collected. `source` is the name of the file, for messages.
pub fn scheduler_config(source: &str, text: &str) -> Result<SchedulerConfig, Vec<IntakeError>> {
    read_config(source, text).map_err(|problems| {
        let named = |problem: FieldProblem| IntakeError { file: Some(source.to_owned()), ..problem.of("") };
        problems.into_iter().map(named).collect()
    })
}

fn read_config(source: &str, text: &str) -> Result<SchedulerConfig, Vec<FieldProblem>> {
    let one = |path: &str, cause: String, next: &str| vec![FieldProblem::new(path, cause, next)];
    let all = documents(text).map_err(|problem| vec![problem])?;
    let mut all: Vec<Value> = all.into_iter().filter(|value| !value.is_null()).collect();
    let value = match (all.pop(), all.len()) {
        (Some(value), 0) if value.is_object() => value,
        (Some(_), 0) => {
            return Err(one("", "it is not an object".to_owned(), "write apiVersion, kind and profiles"));
        }
        (_, more) => {
            let cause = format!("it has {} documents", if more == 0 { 0 } else { more + 1 });
            return Err(one("", cause, "keep only the one that kube-scheduler uses (--config)"));
        }
    };
    let is = |field: &str, wanted: &str| {
        let has = value.get(field).and_then(Value::as_str).unwrap_or_default();
        let cause = if has.is_empty() {
            "missing".to_owned()
        } else {
            format!("`{has}` is not a scheduler's configuration")
        };
        (has != wanted).then(|| FieldProblem::new(field, cause, format!("use `{wanted}`")))
    };
    let wrong: Vec<FieldProblem> =
        is("apiVersion", API_VERSION).into_iter().chain(is("kind", KIND)).collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let file: File = read(&value)?;
    let mut found = SchedulerConfig::default();
    let mut problems = Vec::new();
    for (at, profile) in file.profiles.iter().enumerate() {
        let path = format!("profiles[{at}]");
        let name = profile.scheduler_name.clone().unwrap_or_else(|| DEFAULT.to_owned());
        let is_named = profile.scheduler_name.as_ref().is_some_and(|name| !name.is_empty());
        if !is_named && (file.profiles.len() > 1 || profile.scheduler_name.is_some()) {
            let next = "write the schedulerName of its pods";
            problems.push(FieldProblem::new(format!("{path}.schedulerName"), "missing", next));
        } else if found.profiles.contains_key(&name) {
            let cause = format!("`{name}` has a profile already");
            problems.push(FieldProblem::new(
                format!("{path}.schedulerName"),
                cause,
                "make one profile of both",
            ));
        }
        let read = profile.read(source, &path, &name, &mut problems, &mut found.notes);
        found.profiles.entry(name).or_insert(read);
    }
    if file.profiles.is_empty() {
        found.profiles.insert(DEFAULT.to_owned(), Profile::default());
    }
    found.notes.extend(file.extenders.iter().filter_map(|extender| extender.note(source)));
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

/// The content of the file. It lists all fields, also those that do not matter here, so that a misspelt field is an error.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    profiles: Vec<ProfileEntry>,
    #[serde(default)]
    extenders: Vec<Extender>,
    #[serde(rename = "parallelism")]
    _parallelism: Option<Value>,
    #[serde(rename = "leaderElection")]
    _leader_election: Option<Value>,
    #[serde(rename = "clientConnection")]
    _client_connection: Option<Value>,
    #[serde(rename = "enableProfiling")]
    _enable_profiling: Option<Value>,
    #[serde(rename = "enableContentionProfiling")]
    _enable_contention_profiling: Option<Value>,
    #[serde(rename = "percentageOfNodesToScore")]
    _percentage_of_nodes_to_score: Option<Value>,
    #[serde(rename = "podInitialBackoffSeconds")]
    _pod_initial_backoff_seconds: Option<Value>,
    #[serde(rename = "podMaxBackoffSeconds")]
    _pod_max_backoff_seconds: Option<Value>,
    #[serde(rename = "delayCacheUntilActive")]
    _delay_cache_until_active: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProfileEntry {
    scheduler_name: Option<String>,
    plugins: Option<Plugins>,
    #[serde(default)]
    plugin_config: Vec<PluginConfig>,
    #[serde(rename = "percentageOfNodesToScore")]
    _percentage_of_nodes_to_score: Option<Value>,
}

#[derive(Deserialize)]
struct PluginConfig {
    name: String,
    #[serde(default)]
    args: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Extender {
    #[serde(rename = "urlPrefix", default)]
    url: String,
    #[serde(default)]
    filter_verb: String,
    #[serde(flatten)]
    _others: BTreeMap<String, Value>,
}

impl Extender {
    /// Returns a note about an extender, because the nodes that it refuses are unknown until it is called.
    fn note(&self, source: &str) -> Option<String> {
        (!self.filter_verb.is_empty()).then(|| {
            format!(
                "{source}: the extender {} can refuse nodes, but Poolwright does not call it, so it may buy a node that the extender refuses",
                self.url
            )
        })
    }
}

impl ProfileEntry {
    fn read(
        &self,
        source: &str,
        path: &str,
        name: &str,
        problems: &mut Vec<FieldProblem>,
        notes: &mut Vec<String>,
    ) -> Profile {
        let mut profile = Profile::default();
        let mut seen: Vec<&str> = Vec::new();
        for (at, config) in self.plugin_config.iter().enumerate() {
            let path = format!("{path}.pluginConfig[{at}]");
            let plugin = config.name.as_str();
            if seen.contains(&plugin) {
                let cause = format!("`{plugin}` is configured already");
                problems.push(FieldProblem::new(format!("{path}.name"), cause, "make one entry of both"));
                continue;
            }
            seen.push(plugin);
            let mut args = args::Args {
                source,
                path: format!("{path}.args"),
                problems: &mut *problems,
                notes: &mut *notes,
            };
            match plugin {
                "PodTopologySpread" => args.spread(&config.args, &mut profile),
                "NodeAffinity" => args.affinity(&config.args, &mut profile),
                "NodeResourcesFit" => args.resources(&config.args, name),
                _ => {}
            }
        }
        let all = Plugins::default();
        let plugins = self.plugins.as_ref().unwrap_or(&all);
        plugins.tell(source, name, notes);
        // A rule that no plugin evaluates has no effect.
        if !plugins.filters("PodTopologySpread") {
            profile.spreads.clear();
        }
        if !plugins.scores("PodTopologySpread") {
            profile.preferred_spreads.clear();
        }
        if !plugins.filters("NodeAffinity") {
            profile.enforced = None;
        }
        if !plugins.scores("NodeAffinity") {
            profile.preferred.clear();
        }
        profile
    }
}
