//! Pods that their controllers will delete: those beyond the number that a controller wants, and all of a suspended one. Those that wait
//! need no node, so they are left out. Those on nodes take their room until they are gone, so they stay.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use super::counted::counted;
use super::divided::{Divided, divided};
use super::family::Family;
use super::objects::{Object, group, meta};
use super::scale_down::{Owner, SETS, is_active_pod, kind_of_sets, replicas};
use crate::pod_sets;
use crate::workloads::{self, ENDED};

/// The kinds that suspend what they make, or are suspended by what makes them.
const SUSPENDING: [(&str, &str); 3] =
    [("batch", "Job"), ("jobset.x-k8s.io", "JobSet"), ("trainer.kubeflow.org", "TrainJob")];

/// What controllers will delete, and what they change before.
#[derive(Default)]
pub(super) struct Surplus {
    /// The replicas that controllers will give to the sets between them and their pods.
    replicas: BTreeMap<usize, u64>,
    /// The controllers that are suspended with the one above them.
    suspended: BTreeSet<usize>,
    /// What is deleted, also pods on nodes.
    gone: BTreeSet<usize>,
    notes: Vec<String>,
}

impl Surplus {
    /// Finds what the controllers of a manifest will delete.
    pub fn of(family: &Family<'_>) -> Self {
        let mut surplus = Self::default();
        let autoscaled = autoscaled(family);
        for at in (0..family.here).filter(|at| is_suspended(family.all[*at])) {
            surplus.suspend(family, at);
        }
        let wanted = |at: usize| wanted(family.all[at], &autoscaled);
        for at in 0..family.here {
            if let Some(wanted) = wanted(at) {
                surplus.scale_sets(family, at, wanted);
            }
        }
        for at in 0..family.here {
            if !surplus.gone.contains(&at) {
                surplus.delete(family, at, wanted(at));
            }
        }
        surplus
    }

    /// Removes what is deleted and waits for a node, and changes the controllers in between. Returns notes.
    pub fn leave_out(self, objects: &mut Vec<Object>) -> Vec<String> {
        let mut set = |at: usize, field: &str, value: Value| {
            let spec = objects.get_mut(at).and_then(|object| object.value.get_mut("spec"));
            if let Some(spec) = spec.and_then(Value::as_object_mut) {
                spec.insert(field.to_owned(), value);
            }
        };
        for (at, replicas) in self.replicas {
            set(at, "replicas", json!(replicas));
        }
        for at in self.suspended {
            set(at, "suspend", json!(true));
        }
        let mut at = 0;
        objects.retain(|object| {
            at += 1;
            !self.gone.contains(&(at - 1)) || object.is_placed_pod()
        });
        self.notes
    }

    /// Suspends what a suspended controller makes, and deletes its pods.
    fn suspend(&mut self, family: &Family<'_>, at: usize) {
        let below = family.below(at);
        let is_job = |at: &&usize| ["Job", "JobSet", "RayCluster"].contains(&family.all[**at].kind.as_str());
        self.suspended.extend(below.iter().filter(is_job));
        self.tell(family, at, below.into_iter().filter(|at| is_active_pod(family.all[*at])).collect());
    }

    /// Gives the set of a controller no more replicas than this, if only one has any. During a rollout several have some, and together
    /// they may have more or fewer than their controller: those of a Deployment get what it gives them. If it wants none, none of them
    /// keeps any.
    fn scale_sets(&mut self, family: &Family<'_>, at: usize, wanted: u64) {
        let object = family.all[at];
        if kind_of_sets(group(&object.api_version), &object.kind).is_none() || (wanted > 0 && surges(object))
        {
            return;
        }
        let sets = sets_with_replicas(family, at);
        let divided = if wanted > 0 { divided(family, at, &sets, wanted) } else { Ok(None) };
        if (wanted == 0 || sets.len() == 1) && matches!(divided, Ok(None)) {
            let why = format!("{} wants no more", object.name());
            for at in sets {
                self.scale_set(family, at, wanted.min(replicas(family.all[at])), &why);
            }
            return;
        }
        match divided {
            Ok(None) => {}
            Ok(Some(Divided { sizes, why })) => {
                for (at, size) in sizes {
                    self.scale_set(family, at, size, &why);
                }
            }
            Err(why) => self.notes.push(format!("{}: {why}", object.name())),
        }
    }

    /// Records that a controller gives a set so many replicas, and says so if it has another number.
    fn scale_set(&mut self, family: &Family<'_>, at: usize, size: u64, why: &str) {
        let (set, stated) = (family.all[at], replicas(family.all[at]));
        if size != stated {
            self.replicas.insert(at, size);
            self.notes.push(format!(
                "{}: it counts with {} instead of {stated}, because {why}",
                set.name(),
                counted(size, "replica")
            ));
        }
    }

    /// Deletes the pods that a controller has beyond those that it wants.
    fn delete(&mut self, family: &Family<'_>, at: usize, wanted: Option<u64>) {
        let object = family.all[at];
        let own = || family.children(at);
        let (pods, keeps) = match (group(&object.api_version), object.kind.as_str()) {
            ("apps", "ReplicaSet" | "StatefulSet") | ("", "ReplicationController") => {
                (own(), self.replicas.get(&at).copied().or(wanted))
            }
            ("apps.kruise.io", "CloneSet") => {
                (own(), wanted.filter(|wanted| *wanted == 0 || !surges(object)))
            }
            ("batch", "Job") if !is_suspended(object) && !self.suspended.contains(&at) => {
                let pods = own();
                let keeps = if pods.is_empty() { None } else { wanted_of_job(object) };
                (pods, keeps)
            }
            (of, kind) if kind_of_sets(of, kind).is_some() => {
                let absent = family.of_absent_sets(at);
                // As with sets that are there, several of them are a rollout.
                let is_one = absent.len() == 1 && sets_with_replicas(family, at).is_empty();
                let may = wanted == Some(0) || (is_one && !surges(object));
                (absent.into_values().flatten().collect(), wanted.filter(|_| may))
            }
            _ => return,
        };
        let Some(keeps) = keeps else { return };
        let pods = pods.into_iter().map(|at| (at, family.all[at]));
        let active: Vec<(usize, &Object)> = pods.filter(|(_, pod)| is_active_pod(pod)).collect();
        let deleted = Owner::of(object).surplus(active, keeps);
        self.tell(family, at, deleted);
    }

    /// Records that a controller deletes these pods, with everything that they control, and says how many are affected.
    fn tell(&mut self, family: &Family<'_>, at: usize, deleted: Vec<usize>) {
        let (mut waiting, mut placed) = (0, 0);
        // Such as the workers of a group, and the set that makes them.
        let below: Vec<usize> = deleted.iter().flat_map(|pod| family.below(*pod)).collect();
        for at in deleted.into_iter().chain(below) {
            let object = family.all[at];
            if SETS.contains(&object.kind.as_str()) {
                self.gone.insert(at);
            } else if is_active_pod(object) && self.gone.insert(at) {
                let count = if object.is_placed_pod() { &mut placed } else { &mut waiting };
                *count += 1;
            }
        }
        let mut said = Vec::new();
        match waiting {
            0 => {}
            1 => said
                .push("1 surplus pod without a node is not planned, because it will be deleted".to_owned()),
            more => said.push(format!(
                "{more} surplus pods without a node are not planned, because they will be deleted"
            )),
        }
        match placed {
            0 => {}
            1 => said.push("1 surplus pod on a node keeps its place until it is deleted".to_owned()),
            more => {
                said.push(format!("{more} surplus pods on nodes keep their places until they are deleted"));
            }
        }
        if !said.is_empty() {
            self.notes.push(format!("{}: {}", family.all[at].name(), said.join("; ")));
        }
    }
}

/// Returns the sets of a controller that have replicas and are not being deleted.
fn sets_with_replicas(family: &Family<'_>, at: usize) -> Vec<usize> {
    let has_some = |at: &usize| {
        let set = family.all[*at];
        *at < family.here
            && SETS.contains(&set.kind.as_str())
            && set.value["spec"].is_object()
            && set.value["metadata"]["deletionTimestamp"].is_null()
            && replicas(set) > 0
    };
    family.children(at).into_iter().filter(has_some).collect()
}

/// Returns whether a rollout of the object may make more pods than it wants, without a second set that shows the rollout.
fn surges(object: &Object) -> bool {
    let spec = &object.value["spec"];
    let most = match object.kind.as_str() {
        "CloneSet" => &spec["updateStrategy"]["maxSurge"],
        "LeaderWorkerSet" => &spec["rolloutStrategy"]["rollingUpdateConfiguration"]["maxSurge"],
        _ => return false,
    };
    !most.is_null() && *most != 0 && *most != "0%"
}

/// Returns the targets of autoscalers: namespace, kind and name.
fn autoscaled<'a>(family: &Family<'a>) -> BTreeSet<(&'a str, &'a str, &'a str)> {
    let is_autoscaler = |object: &&'a Object| object.kind == "HorizontalPodAutoscaler";
    let autoscalers = family.all.iter().copied().filter(is_autoscaler);
    let target = |object: &'a Object| {
        let target = &object.value["spec"]["scaleTargetRef"];
        (object.namespace(), target["kind"].as_str().unwrap_or(""), target["name"].as_str().unwrap_or(""))
    };
    autoscalers.map(target).collect()
}

/// Returns the replicas that an object wants; `None` if nobody can say. A written object without replicas keeps those of the stored one,
/// and so does one that an autoscaler scales.
fn wanted(object: &Object, autoscaled: &BTreeSet<(&str, &str, &str)>) -> Option<u64> {
    let spec = &object.value["spec"];
    if !spec.is_object() || !object.value["metadata"]["deletionTimestamp"].is_null() {
        return None;
    }
    let name = meta(&object.value, "name").unwrap_or_default();
    let is_scaled = || autoscaled.contains(&(object.namespace(), object.kind.as_str(), name));
    match &spec["replicas"] {
        _ if !object.is_stored() && is_scaled() => None,
        Value::Null => object.is_stored().then_some(1),
        stated => stated.as_u64(),
    }
}

/// Returns how many pods a Job keeps; `None` if its controller deletes none.
fn wanted_of_job(object: &Object) -> Option<u64> {
    let job = Job::deserialize(&object.value).ok()?;
    let has_no_end = |spec: &JobSpec| spec.completions.is_none() && spec.parallelism != Some(0);
    match workloads::wanted_of_job(&job) {
        // Without completions, the pods go on after the first success until they end.
        Ok(0) if job.spec.as_ref().is_some_and(has_no_end) => None,
        Ok(wanted) => Some(wanted),
        Err(why) => (why == ENDED).then_some(0),
    }
}

/// Returns whether a controller is suspended and not being deleted.
fn is_suspended(object: &Object) -> bool {
    if SUSPENDING.contains(&(group(&object.api_version), object.kind.as_str())) {
        return object.value["spec"]["suspend"] == true
            && object.value["metadata"]["deletionTimestamp"].is_null();
    }
    pod_sets::is_suspended(&object.value)
}
