//! Manifests: YAML or JSON, one document or many, objects or lists of them. All problems are collected, each with the object's
//! name and the path in it. Skipped objects are listed in the notes.

mod adopted;
mod autoscalers;
mod bound;
mod choices;
mod counted;
mod divided;
mod family;
mod fields;
mod gangs;
mod hooks;
mod job_refusals;
mod kinds;
mod labels;
mod limits;
mod lists;
mod lost;
mod missing;
mod names;
mod objects;
mod operator_refusals;
mod operator_values;
mod operators;
mod pod_refusals;
mod quotas;
mod ray_refusals;
mod read;
mod refusals;
mod reports;
mod revisions;
mod rolled;
mod rollouts;
mod runtime_refusals;
mod scale_down;
mod slips;
mod spreads;
mod storage;
mod surplus;
mod texts;
mod there;
mod twins;
mod volume_refusals;
mod workload_refusals;

use std::collections::{BTreeMap, BTreeSet};

use poolwright_api::{FieldProblem, NodePool};
use poolwright_core::{
    Claim, DaemonSet, Namespace, Node, NodeDrivers, Pod, PodDisruptionBudget, PodGroup, PodKey, Pool,
    Service, StorageClass, Volume, VolumeClaim, Workload,
};
use poolwright_terms::{NodeClassRef, one_line};
use serde_json::Value;

use crate::error::{IntakeError, OfObject, object_name};
use crate::owned::{Name, name_of};
use crate::pod_sets::{self, PodSet};

pub use crate::template::NOT_SUBMITTED;
use family::Family;
pub use kinds::is_cluster_scoped;
use limits::Limits;
use lists::Split;
pub use lists::in_namespace;
pub use missing::MissingPods;
use objects::{Object, is_stored, meta, number_generated, once};
use read::Shared;
use surplus::Surplus;
pub(crate) use texts::documents;

/// A node class as written. Its cloud reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeClassObject {
    /// The file, for messages.
    pub file: String,
    /// Its kind and name.
    pub reference: NodeClassRef,
    /// The whole object.
    pub object: Value,
}

impl NodeClassObject {
    /// Kind and name: `MistNodeClass default`.
    pub fn name(&self) -> String {
        object_name(&self.reference.kind, None, Some(&self.reference.name))
    }

    /// Returns whether an API server has stored it.
    pub fn is_stored(&self) -> bool {
        is_stored(&self.object)
    }

    /// Returns it as written, if no API server has stored it.
    pub fn written(&self) -> Option<WrittenObject> {
        let (file, name) = (self.file.clone(), self.name());
        (!self.is_stored()).then(|| WrittenObject { file, name, object: self.object.clone() })
    }

    /// A problem with the file and name of the node class.
    pub fn problem(&self, problem: FieldProblem) -> IntakeError {
        IntakeError { file: Some(self.file.clone()), ..problem.of(self.name()) }
    }
}

/// An object of Poolwright's own API that no API server has stored yet, as written. Nobody has checked it by the schema of its
/// CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenObject {
    /// The file, for messages.
    pub file: String,
    /// Kind and name: `NodePool gpu`.
    pub name: String,
    /// The whole object.
    pub object: Value,
}

/// Pods of an object that an API server refuses to create, because of a ResourceQuota or another rule. A note says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedPods {
    /// The object that asks for them: `Deployment ml/web`.
    pub object: String,
    /// Its namespace.
    pub namespace: String,
    /// How many; zero if nobody knows, as for a DaemonSet that is refused itself.
    pub pods: usize,
}

/// The content of one or more manifests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// Pods, including those of workloads, in the order of the file.
    pub pods: Vec<Pod>,
    /// NodePools.
    pub pools: Vec<Pool>,
    /// The objects of our own API that no API server has stored yet, also those that cannot be read.
    pub written: Vec<WrittenObject>,
    /// The NodePools that an API server has stored, with their status.
    pub stored_pools: Vec<NodePool>,
    /// Node classes of any cloud, as written.
    pub node_classes: Vec<NodeClassObject>,
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Namespaces.
    pub namespaces: Vec<Namespace>,
    /// DaemonSets.
    pub daemonsets: Vec<DaemonSet>,
    /// NodeClaims.
    pub claims: Vec<Claim>,
    /// Pods that preempt no others (`preemptionPolicy: Never`).
    pub polite: BTreeSet<PodKey>,
    /// PersistentVolumeClaims.
    pub volume_claims: Vec<VolumeClaim>,
    /// PersistentVolumeClaims that controllers will create for pods.
    pub made_claims: Vec<VolumeClaim>,
    /// PersistentVolumes.
    pub volumes: Vec<Volume>,
    /// StorageClasses.
    pub storage_classes: Vec<StorageClass>,
    /// CSINodes.
    pub node_drivers: Vec<NodeDrivers>,
    /// Services.
    pub services: Vec<Service>,
    /// Workloads of the manifest that have a selector. They are not expected to create more pods.
    pub workloads: Vec<Workload>,
    /// PodDisruptionBudgets.
    pub budgets: Vec<PodDisruptionBudget>,
    /// PodGroups.
    pub pod_groups: Vec<PodGroup>,
    /// A sentence for each skipped object, with the reason.
    pub notes: Vec<String>,
    /// The pods that controllers of the manifest lack, which [`Manifest::pods`] has too.
    pub missing: Vec<MissingPods>,
    /// The objects that make pods, but are not read: no pods are planned for them.
    pub unread: Vec<String>,
    /// The stored objects that cannot be read, so that they are left out. Notes say why: `NodePool gpu`.
    pub left_out: BTreeSet<String>,
    /// The written objects of kinds that do not exist, each with the kind that its author probably meant. Notes say so, too.
    pub mistaken: Vec<IntakeError>,
    /// The names of the NodePools of Karpenter, by file. What they limit does not count, and notes say so.
    pub karpenter_pools: BTreeMap<String, Vec<String>>,
    /// The written objects whose pods are bound to nodes that are not in the manifest: no pods are planned for them either.
    pub on_unknown_nodes: Vec<String>,
    /// A sentence for each object with pods on nodes that are not in the manifest. Only a plan leaves such pods out.
    pub bound_elsewhere: Vec<String>,
    /// The pods that an API server refuses to create. They are not in [`Self::pods`].
    pub refused: Vec<RefusedPods>,
    /// The names of the objects that a quota refuses: `Service ml/web`. Nothing in the manifest follows from them. Pods are in
    /// [`Self::refused`] instead.
    pub not_created: BTreeSet<String>,
}

/// The objects of a manifest as written, without lists. `source` is the name of the file, for messages. What stands broken beside
/// objects that a server printed is left out; [`parse`] notes it.
///
/// # Errors
/// Text that is not YAML or JSON, and other values that are not objects. The content of objects is checked only by [`parse`].
pub fn objects(source: &str, text: &str) -> Result<Vec<Value>, Vec<IntakeError>> {
    let documents = texts::read(text).map_err(|problem| {
        vec![IntakeError { file: Some(source.to_owned()), ..problem.of(String::new()) }]
    })?;
    let Split { objects, errors, .. } = Split::of(source, documents);
    let named = objects.into_iter().filter(|object| !object.is_rest);
    if errors.is_empty() { Ok(named.map(|object| object.value).collect()) } else { Err(errors) }
}

/// Reads one manifest. `source` is the name of the file, for messages.
///
/// # Errors
/// As [`parse_files`].
pub fn parse(source: &str, text: &str) -> Result<Manifest, Vec<IntakeError>> {
    parse_files([(source, text)])
}

/// Reads manifests: name and text of each file. Objects of one file may depend on objects of another.
///
/// # Errors
/// The problems of all files. An object that an API server has stored is not one because it cannot be read: a note says so, and it
/// is left out.
pub fn parse_files<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Manifest, Vec<IntakeError>> {
    let (manifest, errors) = read_files(files, &[]);
    if errors.is_empty() { Ok(manifest) } else { Err(errors) }
}

/// Reads manifests as [`parse_files`] does. If there are problems, also returns what can be read, so that the caller can look for
/// problems of other kinds at once. `there` are objects that a cluster has besides. They count to the quotas of the manifests, and
/// their pods with a place count as those of the controllers of the manifests. None of them is in the result. If all of them are
/// too many, a problem names the file or object with the first that is too many, and nothing after it is read.
pub fn read_files<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
    there: &[Value],
) -> (Manifest, Vec<IntakeError>) {
    read_within(files, there, Limits::default())
}

/// Reads manifests as [`read_files`] does, and no more than `limits` allow.
fn read_within<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
    there: &[Value],
    limits: Limits,
) -> (Manifest, Vec<IntakeError>) {
    let mut manifest = Manifest::default();
    let mut errors = Vec::new();
    let mut objects = Vec::new();
    for (file, text) in files {
        match texts::read(text) {
            Ok(documents) => {
                let split = Split::of(file, documents);
                objects.extend(split.objects);
                errors.extend(split.errors);
                Split::note_left_out(split.left_out, &mut manifest);
            }
            Err(problem) => {
                errors.push(IntakeError { file: Some(file.to_owned()), ..problem.of(String::new()) });
            }
        }
        if objects.len() + there.len() > limits.objects {
            errors.push(limits.too_many_objects(file));
            return (manifest, errors);
        }
    }
    number_generated(&mut objects);
    manifest.notes.extend(hooks::leave_out(&mut objects));
    let (notes, twice) = once(&mut objects);
    manifest.notes.extend(notes);
    errors.extend(twice);
    // A pod of the cluster that waits is not planned itself, so one is planned for it.
    let (mut running, there): (Vec<Object>, Vec<Object>) =
        beside(there, &objects).into_iter().partition(Object::is_placed_pod);
    manifest.notes.extend(adopted::adopt(&mut objects, &mut running));
    let (notes, problems) = autoscalers::scale(&mut objects, &there);
    manifest.notes.extend(notes);
    errors.extend(problems);
    // What autoscalers ask for is known now, so that the others are surplus.
    let family = Family::of(&objects, &running);
    manifest.notes.extend(rollouts::unplanned(&family));
    let surplus = Surplus::of(&family);
    manifest.notes.extend(surplus.leave_out(&mut objects));
    manifest.written = objects.iter().filter_map(Object::written).collect();
    let mut shared = Shared::new(&objects, &running);
    let mut in_order: Vec<&Object> = objects.iter().collect();
    in_order.sort_by_key(|object| object.rank());
    let mut counted = false;
    let mut waiting = 0;
    for object in in_order {
        if !counted && object.rank() > 0 {
            counted = true;
            let stored = objects.iter().filter(|object| !object.is_new() && !object.is_rest);
            for object in stored.chain(&running).chain(&there) {
                object.count_to_quotas(&mut shared);
            }
        }
        let before = manifest.pods.len();
        if let Err(found) = object.read_into(&mut manifest, &mut shared) {
            errors.extend(
                found.into_iter().map(|error| IntakeError { file: Some(object.file.clone()), ..error }),
            );
        }
        waiting += limits::waiting(&manifest.pods[before..]);
        if waiting > limits.pods {
            errors.push(limits.too_many_pods(object));
            return (manifest, errors);
        }
    }
    reports::put_in(&objects, &mut manifest);
    shared.gangs.form(&mut manifest, &shared.owned);
    let unread = gangs::unread(&manifest.pods);
    manifest.notes.extend(unread);
    shared.bound.tell(&mut manifest);
    let unread = storage::unread(&objects, &manifest);
    manifest.notes.extend(unread);
    for note in &mut manifest.notes {
        *note = one_line(note).into_owned();
    }
    manifest.tell_of_losses_first();
    errors.extend(refusals::second_defaults(&objects));
    errors.extend(pods_twice(&manifest));
    manifest.mistaken = objects.iter().filter_map(Object::mistaken).collect();
    manifest.karpenter_pools = kinds::karpenter_pools(&objects);
    if !errors.is_empty() {
        errors.extend(manifest.mistaken.iter().cloned());
    }
    (manifest, errors)
}

impl Manifest {
    /// Puts the notes on objects that are left out, or whose pods are, before the others.
    fn tell_of_losses_first(&mut self) {
        let refused = self.refused.iter().map(|refused| &refused.object);
        let lost: BTreeSet<&str> = self
            .left_out
            .iter()
            .chain(&self.unread)
            .chain(&self.not_created)
            .chain(refused)
            .map(String::as_str)
            .collect();
        let is_lost = |note: &String| note.split_once(": ").is_some_and(|(object, _)| lost.contains(object));
        self.notes.sort_by_key(|note| !is_lost(note));
    }

    /// Returns the notes on the objects that are left out.
    pub fn notes_on_left_out(&self) -> impl Iterator<Item = &String> {
        let is_lost = move |note: &&String| {
            note.split_once(": ").is_some_and(|(object, _)| self.left_out.contains(object))
        };
        self.notes.iter().filter(is_lost)
    }

    /// Returns whether something in it may need nodes: pods, controllers of pods, or a pool that buys nodes without pods.
    pub fn asks_for_nodes(&self) -> bool {
        let buys_anyway = |pool: &Pool| pool.replicas.is_some() || !pool.buffer.is_empty();
        self.pools.iter().any(buys_anyway)
            || !self.pods.is_empty()
            || !self.workloads.is_empty()
            || !self.daemonsets.is_empty()
            || !self.refused.is_empty()
    }
}

/// Returns the objects of a cluster that are not among those of the manifests, each once.
fn beside(there: &[Value], objects: &[Object]) -> Vec<Object> {
    let mut split = Split::default();
    for value in there {
        split.add(value.clone(), "", None, false);
    }
    let mut beside = split.objects;
    let mut known: BTreeSet<Name> = objects.iter().map(|object| name_of(&object.value)).collect();
    beside.retain(|object| known.insert(name_of(&object.value)));
    beside
}

/// Returns a problem for each two pods of the same name, such as one of a StatefulSet and one written by itself.
fn pods_twice(manifest: &Manifest) -> Vec<IntakeError> {
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<_> =
        manifest.pods.iter().map(|pod| &pod.key).filter(|key| !seen.insert(*key)).collect();
    let problem = || FieldProblem::new("", "it is there more than once", "remove one or rename it");
    twice.into_iter().map(|key| problem().of(format!("Pod {key}"))).collect()
}

/// A set of equal pods that an object of another project describes, such as a `PyTorchJob`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedPods {
    /// The beginning of their names.
    pub name: String,
    /// How many.
    pub count: i64,
    /// Their template as written.
    pub template: Value,
}

/// Returns the sets of pods of an object of another project; `None` if it is of a kind that Kubernetes itself has, or that is not
/// read.
pub fn described_pods(object: &Value) -> Option<Vec<DescribedPods>> {
    let name = meta(object, "name").or_else(|| meta(object, "generateName")).unwrap_or_default();
    let sets = pod_sets::sets(object, name)?.unwrap_or_default();
    let of = |set: PodSet| DescribedPods { name: set.name, count: set.count, template: set.template };
    Some(sets.all.into_iter().map(of).collect())
}

/// Returns the JobSet that a `TrainJob` makes, with the name of the `TrainJob`; `None` if the object is of another kind, or if its
/// runtime is not among the objects.
pub fn job_set_of<'a>(object: &Value, mut objects: impl Iterator<Item = &'a Value>) -> Option<Value> {
    if object["kind"] != "TrainJob" {
        return None;
    }
    let (kind, name) = pod_sets::train_job::runtime_of(object);
    let namespace = |one: &Value| meta(one, "namespace").unwrap_or("default").to_owned();
    let is_near =
        |one: &Value| !pod_sets::train_job::is_namespaced(kind) || namespace(one) == namespace(object);
    let is_it = |one: &&Value| {
        let version = one["apiVersion"].as_str().unwrap_or_default();
        let is_runtime = pod_sets::train_job::is_runtime(objects::group(version), kind);
        is_runtime && one["kind"] == kind && meta(one, "name") == Some(name) && is_near(one)
    };
    Some(pod_sets::train_job::made(object, objects.find(is_it)?))
}
