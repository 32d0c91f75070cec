//! Makes pods from the pod template of a workload, as its controller would.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{self as k8s, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use poolwright_api::FieldProblem;
use poolwright_core::{Pod, PodKey, PodPhase, PodVolume, Uid, UnmodelledRule, VolumeClaim, Workload};

use crate::admission::{Admission, Usage};
use crate::duration;
use crate::error::{Keep, add_untold};
use crate::owned::Origin;
use crate::pod;
use crate::volumes;

/// The most pods of a workload, and of all files together. A larger number is an error, because it is usually a typing mistake, and
/// each pod takes memory.
pub const MAX_PODS: i64 = 100_000;

/// The message of a pod of a file that no scheduler has tried.
pub const NOT_SUBMITTED: &str = "read from a file; not submitted to a scheduler yet";

/// What the pods of an object depend on besides the object.
#[derive(Clone, Copy)]
pub(crate) struct Making<'a> {
    /// The additions by admission.
    pub admission: &'a Admission,
    /// The beginning of the names of its pods.
    pub name: &'a str,
    /// How many more pods it may have, over all its templates.
    pub room: &'a Cell<i64>,
}

/// A pod that a controller would make.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub pod: Pod,
    pub origin: Rc<Origin>,
    /// Whether it preempts no other pods (`preemptionPolicy: Never`).
    pub is_polite: bool,
    /// What quotas count of it.
    pub usage: Rc<Usage>,
    /// Why an API server refuses it, if its controller is stored. The controller may have such pods from before.
    pub refusal: Option<Rc<str>>,
}

/// Returns whether pods with this spec preempt no others.
pub(crate) fn is_polite(spec: &k8s::PodSpec) -> bool {
    spec.preemption_policy.as_deref() == Some("Never")
}

/// Pods of one object that start together.
#[derive(Clone, Debug)]
pub(crate) struct GangOf {
    /// Its name in messages: `JobSet ml/train`.
    pub name: String,
    /// How many of its pods may be missing when the others start. If it is negative, it waits for more pods than it has.
    pub optional: i64,
    /// The roles of which the others need some pods, however many may be missing in all.
    pub roles: Vec<Role>,
}

/// Pods of a gang without which the others do nothing, such as the master of a training job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Role {
    /// Its name in messages: `master`.
    pub name: String,
    /// The label of its pods, with its value. The operator writes it.
    pub label: (&'static str, String),
    /// How many of its pods may be missing when the others start.
    pub spare: i64,
}

impl Role {
    /// Returns whether a pod of the gang has this role.
    pub fn has(&self, pod: &Pod) -> bool {
        pod.labels.get(self.label.0) == Some(&self.label.1)
    }
}

/// The pods of a workload, or why it has none.
#[derive(Default)]
pub(crate) struct Expansion {
    pub pods: Vec<Made>,
    /// The PersistentVolumeClaims that controllers will create for them.
    pub claims: Vec<VolumeClaim>,
    pub notes: Vec<String>,
    /// Their controller, if a scheduler's default spread uses its selector.
    pub workload: Option<Workload>,
    /// The gangs that [`Origin::gang`] counts.
    pub gangs: Vec<GangOf>,
    /// How many pods the API server has refused to create, by the status of the object. They are not in `pods`.
    pub refused: usize,
}

pub(crate) type Expanded = Result<Expansion, Vec<FieldProblem>>;

impl Expansion {
    pub fn none(note: impl Into<String>) -> Self {
        Self { notes: vec![note.into()], ..Self::default() }
    }

    /// Makes the workload the controller of the pods. All of its pods exist.
    pub fn made_by(mut self, meta: &ObjectMeta, mut workload: Workload) -> Self {
        if meta.uid.is_none() {
            workload.uid = Uid(format!("{} {}", workload.kind, workload.key));
        }
        workload.total = self.pods.len() as u64;
        let keeps_running = duration::keeps_running(&workload.kind);
        self.own(&workload.uid, keeps_running);
        self.workload = Some(workload.without_demand());
        self
    }

    /// Makes the controller of this UID the owner of the pods.
    pub fn own(&mut self, uid: &Uid, keeps_running: bool) {
        for Made { pod, .. } in &mut self.pods {
            pod.owner = Some(uid.clone());
            if keeps_running {
                pod.duration.make_service();
            }
        }
    }

    /// Adds the pods of another template of the same object. The same note is kept once.
    pub fn add(&mut self, more: Self) {
        self.pods.extend(more.pods);
        self.claims.extend(more.claims);
        let known = self.notes.len();
        for note in more.notes {
            if !self.notes[..known].contains(&note) {
                self.notes.push(note);
            }
        }
    }
}

/// The source of a workload's pods.
pub(crate) struct Template<'a> {
    /// The workload.
    pub owner: &'a ObjectMeta,
    /// The path of the template in it.
    pub path: &'a str,
    pub pods: &'a PodTemplateSpec,
    pub admission: &'a Admission,
    /// How many more pods the workload may have.
    pub room: &'a Cell<i64>,
    /// Labels that the controller adds.
    pub labels: BTreeMap<String, String>,
    /// For a StatefulSet: the PersistentVolumeClaims that each pod gets.
    pub claims: &'a [k8s::PersistentVolumeClaim],
    /// The number of the first pod.
    pub first: i64,
    /// The numbers of the pods, if they do not follow each other.
    pub numbers: Option<Vec<i64>>,
    pub origin: Rc<Origin>,
}

impl<'a> Template<'a> {
    pub fn new(owner: &'a ObjectMeta, path: &'a str, pods: &'a PodTemplateSpec, making: Making<'a>) -> Self {
        let Making { admission, room, .. } = making;
        let (labels, origin) = (BTreeMap::new(), Origin::itself());
        Self { owner, path, pods, admission, room, labels, claims: &[], first: 0, numbers: None, origin }
    }

    /// Returns as many pods as [`count`] found, or the problems of the number and of the template.
    pub fn counted(
        &self,
        name: &str,
        count: Result<i64, Vec<FieldProblem>>,
        extra: &[UnmodelledRule],
    ) -> Expanded {
        let mut problems = Vec::new();
        let pods = count.keep(&mut problems).unwrap_or(0);
        let made = self.copies(name, pods, extra).keep(&mut problems);
        made.filter(|_| problems.is_empty()).ok_or(problems)
    }

    /// Returns `count` pods, named `name-0`, `name-1`, ..., from the number of the first on, or by their own numbers.
    pub fn copies(&self, name: &str, count: i64, extra: &[UnmodelledRule]) -> Expanded {
        let path = format!("{}.spec", self.path);
        let mut spec = self.pods.spec.clone();
        let namespace = self.owner.namespace.as_deref();
        let mut problems = Vec::new();
        has_containers(&path, spec.as_ref()).keep(&mut problems);
        let mut refusals = Vec::new();
        let defaults = spec.as_ref().map(|spec| self.admission.defaults_of(namespace, spec));
        let admit = |spec: &mut k8s::PodSpec| self.admission.admit(&path, namespace, spec);
        let notes = spec.as_mut().and_then(|spec| admit(spec).keep(&mut refusals)).unwrap_or_default();
        for (at, claim) in self.claims.iter().enumerate() {
            let path = format!("spec.volumeClaimTemplates[{at}].spec");
            self.admission.check_claim(&path, namespace, claim).keep(&mut refusals);
        }
        // The pods of a stored controller may be there from before a rule, which then refuses only those that it lacks.
        let is_stored = self.owner.uid.is_some() || self.owner.resource_version.is_some();
        if !is_stored {
            problems.append(&mut refusals);
        }
        let template = self.pods.metadata.as_ref();
        let mut labels = template.and_then(|meta| meta.labels.clone()).unwrap_or_default();
        labels.extend(self.labels.clone());
        let meta = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: self.owner.namespace.clone(),
            labels: Some(labels),
            annotations: template.and_then(|meta| meta.annotations.clone()),
            ..Default::default()
        };
        let object = k8s::Pod { metadata: meta, spec, status: None };
        let converted = pod::convert(&object, &path).map_err(one);
        let mut spec = object.spec.unwrap_or_default();
        let own: Vec<_> = self.claims.iter().filter_map(|claim| claim.metadata.name.clone()).collect();
        // A StatefulSet's claim replaces a volume of the same name.
        spec.volumes.get_or_insert_default().retain(|volume| !own.contains(&volume.name));
        let usage = Usage::of_pod(&path, namespace, &spec, None).map_err(one);
        let claims = |pod: &str| volumes::ephemeral_claims(&path, namespace, pod, &spec, self.claims);
        let (mut first, usage) = match (converted, usage, claims(name)) {
            (Ok(first), Ok(usage), Ok(_)) if problems.is_empty() => (first, Rc::new(usage)),
            (first, usage, claims) => {
                problems.append(&mut refusals);
                let found = [first.err(), usage.err(), claims.err()];
                found.into_iter().flatten().for_each(|found| add_untold(found, &mut problems));
                return Err(problems);
            }
        };
        let refusal: Option<Rc<str>> =
            refusals.first().map(|found| format!("{}: {}", found.path, found.cause).into());
        first.phase = submitted(first.phase);
        first.spec.unmodelled.extend_from_slice(extra);
        first.request_origins.extend(defaults.into_iter().flatten());
        let left = self.room.get().saturating_sub(count);
        if left < 0 {
            let cause =
                format!("with these pods, the object asks for more than the {MAX_PODS} it may have here");
            return Err(one(FieldProblem::new(self.path, cause, "check the numbers of its pods")));
        }
        self.room.set(left);
        let mut made = Expansion { notes, ..Expansion::default() };
        let numbers = self.numbers.clone().unwrap_or_else(|| (self.first..self.first + count).collect());
        for at in numbers {
            let mut pod = first.clone();
            pod.key = PodKey::new(first.key.namespace(), format!("{name}-{at}"));
            pod.uid = Uid(pod.key.to_string());
            pod.volumes = volumes::of_pod(&pod.key.name(), &spec);
            let claim = |own: &String| PodVolume::Claim {
                name: format!("{own}-{}", pod.key.name()),
                ephemeral: false,
            };
            let claimed: Vec<_> = own.iter().map(claim).collect();
            pod.volumes.extend(claimed);
            made.claims.extend(claims(&pod.key.name())?);
            made.pods.push(Made {
                pod,
                origin: self.origin.clone(),
                is_polite: is_polite(&spec),
                usage: usage.clone(),
                refusal: refusal.clone(),
            });
        }
        Ok(made)
    }
}

pub(crate) fn one(problem: FieldProblem) -> Vec<FieldProblem> {
    vec![problem]
}

pub(crate) fn missing(path: &str) -> Vec<FieldProblem> {
    one(FieldProblem::new(path, "missing", "add it"))
}

/// Checks a number of pods: `each` pods, `times` times.
pub(crate) fn count(path: &str, each: i64, times: i64) -> Result<i64, Vec<FieldProblem>> {
    let total = each.saturating_mul(times);
    if each < 0 {
        Err(one(FieldProblem::new(path, format!("`{each}` is negative"), "write zero or more")))
    } else if total > MAX_PODS {
        let cause = format!("this asks for {total} pods, more than the {MAX_PODS} a workload may have here");
        Err(one(FieldProblem::new(path, cause, "check the number")))
    } else {
        Ok(each)
    }
}

pub(crate) fn has_containers(path: &str, spec: Option<&k8s::PodSpec>) -> Result<(), Vec<FieldProblem>> {
    if spec.is_some_and(|spec| !spec.containers.is_empty()) {
        Ok(())
    } else {
        Err(one(FieldProblem::new(
            format!("{path}.containers"),
            "a pod needs at least one container",
            "add one",
        )))
    }
}

/// Returns the phase of pods from a file: they count as pods for which the scheduler found no node.
pub(crate) fn submitted(phase: PodPhase) -> PodPhase {
    match phase {
        PodPhase::Waiting => {
            PodPhase::Unschedulable { since: Timestamp::UNIX_EPOCH, message: NOT_SUBMITTED.to_owned() }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_templates_of_one_object_share_the_room_for_its_pods() {
        let (admission, room) = (Admission::default(), Cell::new(3));
        let making = Making { admission: &admission, name: "a", room: &room };
        let container = k8s::Container { name: "main".to_owned(), ..Default::default() };
        let spec = k8s::PodSpec { containers: vec![container], ..Default::default() };
        let (owner, pods) = (ObjectMeta::default(), PodTemplateSpec { metadata: None, spec: Some(spec) });
        let made = |count| {
            let template = Template::new(&owner, "spec.template", &pods, making);
            template.copies("a", count, &[]).map(|made| made.pods.len())
        };
        assert_eq!(made(2), Ok(2));
        let cause = "with these pods, the object asks for more than the 100000 it may have here";
        assert_eq!(
            made(2),
            Err(one(FieldProblem::new("spec.template", cause, "check the numbers of its pods")))
        );
        assert_eq!(made(1), Ok(1), "what is refused takes no room");
    }
}
