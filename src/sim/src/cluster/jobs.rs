//! Work: Jobs whose pods run for a time, and are made anew when they are lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use axum::http::Method;
use poolwright_core::PodKey;
use serde_json::{Value, json};

use super::{Cluster, Due};

/// From a Job to each of its pods.
const MADE: (u64, u64) = (10, 5_000);
/// From a lost pod to the next.
const MADE_AGAIN: (u64, u64) = (500, 15_000);

/// A Job to come.
#[derive(Clone, Debug)]
pub struct JobPlan {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub namespace: String,
    /// Labels of each pod, besides the one that names the Job.
    pub labels: BTreeMap<String, String>,
    /// When it is made.
    pub arrives: Duration,
    /// How many pods it has.
    pub pods: u32,
    /// `spec` of each pod.
    pub spec: Value,
    /// How long each works; for ever if `None`.
    pub length: Option<Duration>,
}

/// A Job.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub plan: JobPlan,
    uid: String,
    attempts: Vec<u32>,
    done: BTreeSet<u32>,
}

impl Job {
    pub fn new(plan: JobPlan) -> Self {
        Self { attempts: vec![0; plan.pods as usize], plan, uid: String::new(), done: BTreeSet::new() }
    }

    fn path(&self) -> String {
        format!("/apis/batch/v1/namespaces/{}/jobs", self.plan.namespace)
    }

    /// Labels of each pod.
    fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.plan.labels.clone();
        labels.insert("job".to_owned(), self.plan.name.clone());
        labels
    }

    /// Whether all of its pods have done their work.
    pub fn is_done(&self) -> bool {
        self.done.len() == self.plan.pods as usize
    }
}

impl Cluster {
    /// Whether all work that was to come is done.
    pub fn is_all_done(&self) -> bool {
        self.jobs.iter().all(Job::is_done)
    }

    pub(super) fn start_job(&mut self, number: usize) {
        let plan = self.jobs[number].plan.clone();
        let (path, labels) = (self.jobs[number].path(), self.jobs[number].labels());
        let template = json!({"metadata": {"labels": labels}, "spec": plan.spec});
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": plan.name},
            "spec": {"parallelism": plan.pods, "completions": plan.pods, "completionMode": "Indexed",
                "template": template}});
        let made = self.ask(&Method::POST, &path, &job);
        let uid = made.as_ref().and_then(|made| made["metadata"]["uid"].as_str()).unwrap_or_default();
        uid.clone_into(&mut self.jobs[number].uid);
        self.record.say(format_args!("job {} arrives with {} pods", plan.name, plan.pods));
        for index in 0..plan.pods {
            self.after(MADE.0, MADE.1, Due::Pod { job: number, index });
        }
    }

    pub(super) fn make_pod(&mut self, number: usize, index: u32) {
        let job = &mut self.jobs[number];
        let attempt = &mut job.attempts[index as usize];
        *attempt += 1;
        let (name, attempt) = (job.plan.name.clone(), *attempt);
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("{name}-{index}-{attempt}"), "labels": job.labels(),
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job.uid,
                    "controller": true, "blockOwnerDeletion": true}]},
            "spec": job.plan.spec,
        });
        let namespace = job.plan.namespace.clone();
        self.ask(&Method::POST, &format!("/api/v1/namespaces/{namespace}/pods"), &pod);
        self.tell(number);
    }

    /// Which pod of which Job this is.
    fn place(&self, key: &PodKey) -> Option<(usize, u32)> {
        let mut parts = key.name.rsplitn(3, '-');
        let (_, index, name) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
        let number =
            self.jobs.iter().position(|job| job.plan.name == name && job.plan.namespace == key.namespace)?;
        Some((number, index))
    }

    /// How long this pod works.
    pub(super) fn length_of(&self, key: &PodKey) -> Option<Duration> {
        let (number, _) = self.place(key)?;
        self.jobs[number].plan.length
    }

    pub(super) fn pod_succeeded(&mut self, key: &PodKey) {
        let Some((number, index)) = self.place(key) else { return };
        self.jobs[number].done.insert(index);
        self.tell(number);
        if self.jobs[number].is_done() {
            self.record.say(format_args!("job {} is done", self.jobs[number].plan.name));
        }
    }

    pub(super) fn pod_deleted(&mut self, key: &PodKey) {
        let Some((number, index)) = self.place(key) else { return };
        if !self.jobs[number].done.contains(&index) {
            self.after(MADE_AGAIN.0, MADE_AGAIN.1, Due::Pod { job: number, index });
            self.tell(number);
        }
    }

    /// Writes how far a Job is into its status.
    fn tell(&self, number: usize) {
        let job = &self.jobs[number];
        let uid = poolwright_core::Uid(job.uid.clone());
        let made = self.index.view().pods.of_owner(&uid);
        let active = made.filter(|pod| pod.phase != poolwright_core::PodPhase::Finished).count();
        let mut status = json!({"active": active, "succeeded": job.done.len()});
        if job.is_done() {
            status["conditions"] = json!([super::condition("Complete", "True", "", "", self.time.now())]);
        }
        let path = format!("{}/{}/status", job.path(), job.plan.name);
        self.ask(&Method::PATCH, &path, &json!({"status": status}));
    }
}
