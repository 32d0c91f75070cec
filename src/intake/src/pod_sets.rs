//! Kinds of other projects that describe sets of equal pods: the pods that their operators would create, and which of them start
//! together.
//!
//! Only the fields that decide about pods are read. The types follow the projects' own APIs: Kubeflow's training operator,
//! LeaderWorkerSet, `KubeRay`, Volcano, Argo Rollouts.

mod layouts;
pub(crate) mod train_job;

use std::collections::BTreeMap;
use std::rc::Rc;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use poolwright_api::FieldProblem;
use poolwright_api::strict::read;
use poolwright_core::{Uid, UnmodelledRule};
use serde_json::Value;

use crate::error::Keep;
use crate::owned::{Maker, Origin, Service, Turn};
use crate::pod::key_of;
use crate::template::{Expanded, Expansion, GangOf, Making, Role, Template, count, one};
use crate::workload::selecting;
use crate::workloads::{BEING_DELETED, ENDED, SUSPENDED};

pub(crate) use layouts::{MPI_ROLE, RAY_NODE, TRAINING_JOB, TRAINING_ROLE, VOLCANO_TASK, needed_role};

type Problems = Vec<FieldProblem>;

/// Pods of one template.
pub(crate) struct PodSet {
    /// The beginning of their names.
    pub name: String,
    pub count: i64,
    /// The number of the first.
    pub first: i64,
    /// The path of the template.
    pub path: String,
    pub template: Value,
    labels: BTreeMap<String, String>,
    maker: Maker,
    fixed: bool,
    gang: Option<usize>,
    /// When they come, beside the others of their gang.
    turn: Turn,
    /// Their role, if the others of their gang need some of them.
    role: Option<Role>,
    /// The Services that the operator makes before them.
    services: Vec<Service>,
    extra: Vec<UnmodelledRule>,
    claims: Vec<PersistentVolumeClaim>,
}

impl PodSet {
    fn new(name: String, count: i64, path: String, template: &Value) -> Self {
        Self {
            name,
            count,
            first: 0,
            path,
            template: template.clone(),
            labels: BTreeMap::new(),
            maker: Maker::Itself,
            fixed: false,
            gang: None,
            turn: Turn::Any,
            role: None,
            services: Vec::new(),
            extra: Vec::new(),
            claims: Vec::new(),
        }
    }

    fn labelled<const N: usize>(mut self, labels: [(&str, &str); N]) -> Self {
        self.labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        self
    }
}

/// The sets of pods of an object.
#[derive(Default)]
pub(crate) struct Sets {
    /// In the order in which they are created, which decides what a quota withholds.
    pub all: Vec<PodSet>,
    gangs: Vec<GangOf>,
    /// Why it has no pods now.
    none: Option<String>,
    notes: Vec<String>,
    /// Whether it keeps its pods running.
    keeps_running: bool,
    /// What is wrong besides the templates, which are checked all the same.
    problems: Problems,
}

impl Sets {
    fn none(why: impl Into<String>) -> Self {
        Self { none: Some(why.into()), ..Self::default() }
    }

    /// Makes all pods one gang, of which this many may be missing at the start, but not those that roles need. A negative number is
    /// how many more it waits for than it makes.
    fn together(mut self, name: String, optional: i64) -> Self {
        let roles = self.all.iter().filter_map(|set| set.role.clone()).collect();
        self.gangs.push(GangOf { name, optional, roles });
        self.all.iter_mut().for_each(|set| set.gang = Some(0));
        self
    }
}

/// How the sets of a kind are read.
type Layout = fn(&Value, &str) -> Result<Sets, Problems>;

/// The group of Kubeflow's training jobs.
const KUBEFLOW: &str = "kubeflow.org";

/// How the other kinds are read, by group and kind.
const LAYOUTS: [(&str, &str, Layout); 8] = [
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet", layouts::leader_worker_set),
    ("ray.io", "RayCluster", layouts::ray_cluster),
    ("ray.io", "RayJob", layouts::ray_job),
    ("ray.io", "RayService", layouts::ray_service),
    ("batch.volcano.sh", "Job", layouts::volcano_job),
    ("argoproj.io", "Rollout", layouts::rollout),
    ("apps.kruise.io", "CloneSet", layouts::replicas),
    ("apps.openshift.io", "DeploymentConfig", layouts::replicas),
];

/// Returns how a kind is read; `None` if it is not one of these.
fn layout(group: &str, kind: &str) -> Option<Layout> {
    if group == KUBEFLOW && layouts::replica_specs(kind).is_some() {
        return Some(layouts::training_job);
    }
    let found = LAYOUTS.iter().find(|(of, known, _)| (*of, *known) == (group, kind));
    found.map(|(_, _, layout)| *layout)
}

/// Returns the kinds that are read here, with their groups.
pub(crate) fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    let training = layouts::TRAINING_JOBS.into_iter().map(|(kind, _)| (KUBEFLOW, kind));
    training.chain(LAYOUTS.into_iter().map(|(of, kind, _)| (of, kind)))
}

/// The field of a training job of Kubeflow with its templates; `None` for other kinds.
pub(crate) fn replica_specs(kind: &str) -> Option<&'static str> {
    layouts::replica_specs(kind)
}

/// Returns whether the objects of a kind are read here.
pub(crate) fn is_read(group: &str, kind: &str) -> bool {
    layout(group, kind).is_some()
}

/// Returns the sets of pods of an object whose pods are named after `name`; `None` if it is of another kind.
pub(crate) fn sets(object: &Value, name: &str) -> Option<Result<Sets, Problems>> {
    let sound = |sets: Sets| if sets.problems.is_empty() { Ok(sets) } else { Err(sets.problems) };
    Some(laid_out(object, name)?.and_then(sound))
}

/// Returns the same, also those of an object with problems.
fn laid_out(object: &Value, name: &str) -> Option<Result<Sets, Problems>> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let layout = layout(group, object["kind"].as_str()?)?;
    let is_going = !object["metadata"]["deletionTimestamp"].is_null();
    Some(if is_going { Ok(Sets::none(BEING_DELETED)) } else { layout(object, name) })
}

/// Returns whether an object is of one of these kinds, and suspended.
pub(crate) fn is_suspended(object: &Value) -> bool {
    let none = laid_out(object, "").and_then(Result::ok).and_then(|sets| sets.none);
    none.is_some_and(|why| why == SUSPENDED)
}

/// Expands an object of one of these kinds.
pub(crate) fn expand(object: &Value, making: Making<'_>) -> Option<Expanded> {
    Some(laid_out(object, making.name)?.and_then(|sets| made(object, sets, making)))
}

fn made(object: &Value, sets: Sets, making: Making<'_>) -> Expanded {
    if let Some(none) = sets.none {
        return Ok(Expansion::none(none));
    }
    let mut problems = sets.problems;
    let meta = read::<ObjectMeta>(&object["metadata"]).map_err(|found| below("metadata", found));
    let Some(meta) = meta.keep(&mut problems) else { return Err(problems) };
    let mut whole = Expansion { gangs: sets.gangs, notes: sets.notes, ..Expansion::default() };
    for set in &sets.all {
        let template = match read::<PodTemplateSpec>(&set.template) {
            Ok(template) => template,
            Err(found) => {
                problems.extend(below(&set.path, found));
                continue;
            }
        };
        let PodSet { fixed, gang, turn, .. } = *set;
        let (prefix, services) = (set.name.clone(), set.services.clone());
        let origin = Origin { fixed, prefix, gang, turn, services, ..Origin::by(set.maker.clone()) };
        let source = Template {
            labels: set.labels.clone(),
            claims: &set.claims,
            first: set.first,
            origin: Rc::new(origin),
            ..Template::new(&meta, &set.path, &template, making)
        };
        match source.copies(&set.name, set.count, &set.extra) {
            Ok(pods) => whole.add(pods),
            Err(found) => {
                for problem in found {
                    // Groups share a template.
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                }
            }
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let kind = object["kind"].as_str().unwrap_or_default();
    let made_up = || Uid(format!("{kind} {}", key_of(&meta)));
    whole.own(&meta.uid.clone().map_or_else(made_up, Uid), sets.keeps_running);
    match read::<LabelSelector>(&object["spec"]["selector"]) {
        Ok(selector) if sets.keeps_running => {
            Ok(whole.made_by(&meta, selecting(kind, &meta, Some(&selector))))
        }
        _ => Ok(whole),
    }
}

/// Puts the path of the whole before the paths of problems in a part.
pub(crate) fn below(path: &str, problems: Problems) -> Problems {
    let place = |inner: &str| match inner {
        "" => path.to_owned(),
        inner if inner.starts_with('[') => format!("{path}{inner}"),
        inner => format!("{path}.{inner}"),
    };
    problems.into_iter().map(|problem| FieldProblem { path: place(&problem.path), ..problem }).collect()
}

/// Reads a number of pods at a path like `spec.replicas`, below an object.
fn number(object: &Value, path: &str, usual: i64) -> Result<i64, Problems> {
    let value = at(object, path);
    if value.is_null() {
        return Ok(usual);
    }
    let not_one = || {
        let cause = format!("`{value}` is not a number of pods");
        one(FieldProblem::new(path, cause, "write a whole number"))
    };
    count(path, value.as_i64().ok_or_else(not_one)?, 1)
}

/// Returns the value at a path like `spec.workerGroupSpecs[0].replicas`.
fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(object, |value, segment| match segment.split_once('[') {
        None => &value[segment],
        Some((name, index)) => {
            let index = index.trim_end_matches(']').parse().unwrap_or(usize::MAX);
            &value[name][index]
        }
    })
}

/// Returns whether a condition of one of these types is true.
fn has_condition(object: &Value, types: &[&str]) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| {
        one["status"] == "True" && one["type"].as_str().is_some_and(|type_| types.contains(&type_))
    })
}

fn suspended_or_ended(suspended: bool, ended: bool) -> Option<Sets> {
    suspended.then(|| Sets::none(SUSPENDED)).or_else(|| ended.then(|| Sets::none(ENDED)))
}
