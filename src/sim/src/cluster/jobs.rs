//! Workloads: Jobs whose pods run for a time and are recreated when they are lost, and ReplicaSets that scale to zero after a
//! time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use axum::http::Method;
use poolwright_core::{ObjectKey, PodKey};
use poolwright_terms::keys::{DO_NOT_DISRUPT_ANNOTATION, EXPECTED_DURATION_ANNOTATION, RAN_FOR_ANNOTATION};
use serde_json::{Value, json};

use super::budgets::budgets;
use super::volumes::volume_of;
use super::{Cluster, Due, NAMESPACE, pod_path};

/// Milliseconds from the creation of a Job to that of each pod.
const MADE: (u64, u64) = (10, 5_000);
/// Milliseconds from the loss of a pod to its replacement.
const MADE_AGAIN: (u64, u64) = (500, 15_000);

/// Milliseconds from the failure of a pod to its deletion, after which its replacement is created.
const FORGOTTEN: (u64, u64) = (100, 10_000);

/// A future Job or ReplicaSet.
#[derive(Clone, Debug)]
pub struct JobPlan {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Labels of each pod, besides the label with the Job's name.
    pub labels: BTreeMap<String, String>,
    /// When it is created, in world time.
    pub arrives: Duration,
    /// The number of pods.
    pub pods: u32,
    /// The names of its first pods; empty for names from that of the Job. A pod that replaces another has a suffix.
    pub pod_names: Vec<String>,
    /// `spec` of each pod.
    pub spec: Value,
    /// The run time of each pod, or the time from the first start of a ReplicaSet's pod until it is scaled to zero; `None` runs for
    /// ever.
    pub length: Option<Duration>,
    /// The run time that each pod declares, true or not.
    pub declares: Option<Duration>,
    /// How long the work of each pod ran before, in pods that it continues.
    pub ran_before: Duration,
    /// How long a scheduling gate holds its pods after their creation; `None` for no gate.
    pub gated: Option<Duration>,
    /// Whether its pods have the annotation do-not-disrupt.
    pub protected: bool,
    /// `minAvailable` of its PodDisruptionBudget, if it has one.
    pub at_least: Option<u32>,
    /// How long it is kept after completion (`ttlSecondsAfterFinished`); for ever if `None`.
    pub kept: Option<Duration>,
    /// Whether no offering fits its pods. The world does not wait for such work.
    pub never: bool,
    /// The zone of the volume that all its pods use, if they use one.
    pub volume_in: Option<String>,
    /// Whether it is a ReplicaSet. Its pods run until it is scaled to zero.
    pub is_set: bool,
    /// `minCount` of the PodGroup that its pods belong to, if they belong to one. The Job is complete as soon as one of its pods is.
    pub gang: Option<u32>,
    /// The number of pods that its object asks for, if something prevents the creation of most of them. Such an object is deleted
    /// the time `kept` after its creation.
    pub asks: Option<u32>,
    /// Whether a user deletes it the time `kept` after its creation, done or not.
    pub is_withdrawn: bool,
}

impl JobPlan {
    /// Plans a Job of these pods, which run for ever.
    pub fn new(name: impl Into<String>, arrives: Duration, pods: u32, spec: Value) -> Self {
        Self {
            name: name.into(),
            namespace: NAMESPACE.to_owned(),
            labels: BTreeMap::new(),
            arrives,
            pods,
            pod_names: Vec::new(),
            spec,
            length: None,
            declares: None,
            ran_before: Duration::ZERO,
            gated: None,
            protected: false,
            at_least: None,
            kept: None,
            never: false,
            volume_in: None,
            is_set: false,
            gang: None,
            asks: None,
            is_withdrawn: false,
        }
    }

    const fn kind(&self) -> (&'static str, &'static str) {
        if self.is_set { ("apps/v1", "ReplicaSet") } else { ("batch/v1", "Job") }
    }
}

/// A Job or ReplicaSet that exists.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub plan: JobPlan,
    uid: String,
    attempts: Vec<u32>,
    done: BTreeSet<u32>,
    has_run: bool,
}

impl Job {
    pub fn new(plan: JobPlan) -> Self {
        let attempts = vec![0; plan.pods as usize];
        Self { attempts, plan, uid: String::new(), done: BTreeSet::new(), has_run: false }
    }

    /// Returns the labels of each pod.
    pub(super) fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.plan.labels.clone();
        labels.insert("job".to_owned(), self.plan.name.clone());
        labels
    }

    /// Returns whether all of its pods have completed.
    pub fn is_done(&self) -> bool {
        self.done.len() == self.plan.pods as usize
    }

    fn path(&self) -> String {
        let (group, kind) = self.plan.kind();
        format!("/apis/{group}/namespaces/{}/{}s", self.plan.namespace, kind.to_lowercase())
    }
}

impl Cluster {
    /// Returns whether all work is done, except work that fits no offering.
    pub fn is_all_done(&self) -> bool {
        self.jobs.iter().all(|job| job.is_done() || job.plan.never)
    }

    /// Returns whether all pods of a Job are on nodes or have completed.
    pub(crate) fn has_all_pods(&self, name: &str) -> bool {
        self.jobs.iter().find(|job| job.plan.name == name).is_some_and(|job| {
            let uid = poolwright_core::Uid(job.uid.clone());
            let pods = self.index.view().pods.of_owner(&uid);
            let is_bound =
                |pod: &&poolwright_core::Pod| matches!(pod.phase, poolwright_core::PodPhase::Bound { .. });
            pods.filter(is_bound).count() + job.done.len() >= job.plan.pods as usize
        })
    }

    pub(super) fn start_job(&mut self, number: usize) {
        let mut plan = self.jobs[number].plan.clone();
        if let Some(zone) = &plan.volume_in {
            let claim = json!({"claimName": volume_of(&plan.name)});
            plan.spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": claim}]);
            self.make_volume(&plan.name, &plan.namespace, zone);
            self.jobs[number].plan.spec = plan.spec.clone();
        }
        let labels = self.jobs[number].labels();
        let template = json!({"metadata": {"labels": labels}, "spec": plan.spec});
        let asks = plan.asks.unwrap_or(plan.pods);
        let mut spec = if plan.is_set {
            let selector = json!({"matchLabels": {"job": plan.name}});
            json!({"replicas": asks, "selector": selector, "template": template})
        } else {
            json!({"parallelism": asks, "completions": asks, "completionMode": "Indexed", "template": template})
        };
        if let Some(least) = plan.gang {
            spec["successPolicy"] = json!({"rules": [{"succeededCount": 1}]});
            self.make_group(&plan.name, &plan.namespace, least);
        }
        let (group, kind) = plan.kind();
        let job = json!({"apiVersion": group, "kind": kind, "metadata": {"name": plan.name}, "spec": spec});
        let made = self.ask(&Method::POST, &self.jobs[number].path(), &job);
        let uid = made.as_ref().and_then(|made| made["metadata"]["uid"].as_str()).unwrap_or_default();
        uid.clone_into(&mut self.jobs[number].uid);
        self.record.say(format_args!("{} {} arrives with {} pods", kind, plan.name, plan.pods));
        if let Some(kept) = plan.kept.filter(|_| plan.asks.is_some() || plan.is_withdrawn) {
            self.at(self.time.elapsed() + kept, Due::Forget { job: number });
        }
        if let Some(least) = plan.at_least {
            let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": plan.name},
                "spec": {"minAvailable": least, "selector": {"matchLabels": {"job": plan.name}}}});
            if let Some(made) = self.ask(&Method::POST, &budgets(&plan.namespace), &budget) {
                self.know(&made);
            }
        }
        for index in 0..plan.pods {
            if plan.ran_before.is_zero() {
                self.after(MADE.0, MADE.1, Due::Pod { job: number, index });
            } else {
                // It is there from the beginning.
                self.at(plan.arrives, Due::Pod { job: number, index });
            }
        }
    }

    pub(super) fn make_pod(&mut self, number: usize, index: u32) {
        let job = &mut self.jobs[number];
        if job.done.contains(&index) {
            return;
        }
        let attempt = &mut job.attempts[index as usize];
        *attempt += 1;
        let (name, attempt) = (job.plan.name.clone(), *attempt);
        let pod_name = match job.plan.pod_names.get(index as usize) {
            Some(own) if attempt == 1 => own.clone(),
            Some(own) => format!("{own}-x{attempt}"),
            None => format!("{name}-{index}-{attempt}"),
        };
        let (group, kind) = job.plan.kind();
        let mut annotations = json!({});
        if job.plan.protected {
            annotations[DO_NOT_DISRUPT_ANNOTATION] = json!("true");
        }
        if let Some(declared) = job.plan.declares {
            annotations[EXPECTED_DURATION_ANNOTATION] = json!(format!("{}s", declared.as_secs()));
        }
        if !job.plan.ran_before.is_zero() {
            annotations[RAN_FOR_ANNOTATION] = json!(format!("{}s", job.plan.ran_before.as_secs()));
        }
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": pod_name, "labels": job.labels(),
                "annotations": annotations,
                "ownerReferences": [{"apiVersion": group, "kind": kind, "name": name, "uid": job.uid,
                    "controller": true, "blockOwnerDeletion": true}]},
            "spec": job.plan.spec,
        });
        let namespace = job.plan.namespace.clone();
        if !job.plan.pod_names.is_empty() {
            self.places.insert(PodKey::new(namespace.clone(), pod_name.clone()), (number, index));
        }
        let made = self.ask(&Method::POST, &format!("/api/v1/namespaces/{namespace}/pods"), &pod);
        if let Some(made) = &made {
            self.make_ephemeral_claims(made);
        }
        if let (Some(held), Some(made)) = (self.jobs[number].plan.gated, made) {
            let uid = made["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            let pod = PodKey::new(namespace, pod_name);
            self.at(self.time.elapsed() + held, Due::Free { pod, uid });
        }
        self.tell(number);
    }

    /// Removes the scheduling gates of a pod.
    pub(super) fn free(&self, key: &PodKey, uid: &str) {
        if self.pod(key, uid).is_some() {
            let free = json!({"metadata": {"uid": uid}, "spec": {"schedulingGates": null}});
            if self.ask(&Method::PATCH, &pod_path(key), &free).is_some() {
                self.record.say(format_args!("{key} is not held any more"));
            }
        }
    }

    /// Scales a ReplicaSet to zero and deletes its pods.
    pub(super) fn shrink(&mut self, number: usize) {
        let job = &mut self.jobs[number];
        job.done = (0..job.plan.pods).collect();
        let path = format!("{}/{}", job.path(), job.plan.name);
        self.record.say(format_args!("{} is made smaller to nothing", self.jobs[number].plan.name));
        self.ask(&Method::PATCH, &path, &json!({"spec": {"replicas": 0}}));
        self.delete_pods(number, None);
        self.tell(number);
    }

    /// Deletes a Job and its pods: a completed one after its TTL, and one that asks for too many pods or is withdrawn like a user.
    pub(super) fn forget(&mut self, number: usize) {
        let job = &mut self.jobs[number];
        let path = format!("{}/{}", job.path(), job.plan.name);
        let only = json!({"preconditions": {"uid": job.uid}, "propagationPolicy": "Background"});
        job.done = (0..job.plan.pods).collect();
        let plan = job.plan.clone();
        if self.ask(&Method::DELETE, &path, &only).is_none() {
            return;
        }
        self.record.say(format_args!("job {} is deleted", plan.name));
        self.delete_pods(number, None);
        if plan.gang.is_some() {
            self.drop_group(&plan.name, &plan.namespace);
        }
    }

    /// Deletes the pods of a Job, except one.
    fn delete_pods(&self, number: usize, spared: Option<&PodKey>) {
        let uid = poolwright_core::Uid(self.jobs[number].uid.clone());
        let pods = self.index.view().pods.of_owner(&uid).map(|pod| &pod.key);
        let pods: Vec<PodKey> = pods.filter(|key| Some(*key) != spared).cloned().collect();
        for key in pods {
            self.ask(&Method::DELETE, &pod_path(&key), &json!({}));
        }
    }

    /// Returns the Job of a pod, and the index of the pod in it.
    pub(super) fn place(&self, key: &PodKey) -> Option<(usize, u32)> {
        if let Some(place) = self.places.get(key) {
            return Some(*place);
        }
        let name = key.name();
        let mut parts = name.rsplitn(3, '-');
        let (_, index, name) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
        let job = ObjectKey::new(key.namespace(), name);
        Some((*self.job_numbers.get(&job)?, index))
    }

    /// Handles a pod that runs. Its first run decides when a ReplicaSet is scaled to zero.
    pub(super) fn pod_runs(&mut self, key: &PodKey) {
        let Some((number, _)) = self.place(key) else { return };
        let job = &mut self.jobs[number];
        if let Some(length) = job.plan.length.filter(|_| job.plan.is_set && !job.has_run) {
            job.has_run = true;
            self.at(self.time.elapsed() + length, Due::Shrink { job: number });
        }
    }

    /// Returns the run time of this pod.
    pub(super) fn length_of(&self, key: &PodKey) -> Option<Duration> {
        let (number, _) = self.place(key)?;
        self.jobs[number].plan.length.filter(|_| !self.jobs[number].plan.is_set)
    }

    pub(super) fn pod_succeeded(&mut self, key: &PodKey) {
        let Some((number, index)) = self.place(key) else { return };
        let job = &mut self.jobs[number];
        job.done.insert(index);
        // The success policy of a gang: its other pods have nothing left to do.
        if job.plan.gang.is_some() {
            job.done.extend(0..job.plan.pods);
            self.delete_pods(number, Some(key));
        }
        self.tell(number);
        if self.jobs[number].is_done() {
            self.record.say(format_args!("job {} is done", self.jobs[number].plan.name));
            if let Some(kept) = self.jobs[number].plan.kept {
                self.at(self.time.elapsed() + kept, Due::Forget { job: number });
            }
        }
    }

    /// Handles a pod that ended before its work was done: deletes it and schedules its replacement.
    pub(super) fn pod_failed(&mut self, key: &PodKey, uid: &str) {
        self.after(FORGOTTEN.0, FORGOTTEN.1, Due::Ended { pod: key.clone(), uid: uid.to_owned() });
    }

    pub(super) fn pod_deleted(&mut self, key: &PodKey) {
        let Some((number, index)) = self.place(key) else { return };
        if !self.jobs[number].done.contains(&index) {
            self.after(MADE_AGAIN.0, MADE_AGAIN.1, Due::Pod { job: number, index });
            self.tell(number);
        }
    }

    /// Updates the status of a Job.
    fn tell(&self, number: usize) {
        let job = &self.jobs[number];
        let uid = poolwright_core::Uid(job.uid.clone());
        let made = self.index.view().pods.of_owner(&uid);
        let active = made.filter(|pod| pod.phase != poolwright_core::PodPhase::Finished).count();
        let mut status = if job.plan.is_set {
            json!({"replicas": active})
        } else {
            json!({"active": active, "succeeded": job.done.len()})
        };
        if job.is_done() && !job.plan.is_set {
            status["conditions"] = json!([super::condition("Complete", "True", "", "", self.time.now())]);
        }
        let path = format!("{}/{}/status", job.path(), job.plan.name);
        self.ask(&Method::PATCH, &path, &json!({"status": status}));
    }
}
