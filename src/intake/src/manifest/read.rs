//! Reads the objects of manifests: each by its kind.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::api::{apps, storage::v1 as storage};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use poolwright_api::FieldProblem;
use poolwright_api::strict::{self, read};
use poolwright_core::{GangScheduler, Pod, StorageClass};
use poolwright_terms::{API_VERSION, GROUP, NodeClassRef};
use serde::Deserialize;
use serde_json::Value;

use super::bound::Bound;
use super::gangs::Gangs;
use super::kinds::KINDS;
use super::objects::{Object, REVISION, group, has_name, meta};
use super::{Manifest, NodeClassObject, RefusedPods};
use crate::admission::{Admission, OverQuota, Quotas};
use crate::error::{IntakeError, Keep, OfObject, add_untold};
use crate::owned::{Had, Name, Owned};
use crate::pod_sets;
use crate::template::{MAX_PODS, has_containers, missing};
use crate::workload::{self, Expansion, Making};
use crate::{
    budget, claim, daemonset, duration, namespace, node, other_groups, pod_groups, pool, services, volumes,
};

/// Facts about objects that affect other objects of the manifest.
pub(super) struct Shared {
    pub owned: Owned,
    pub gangs: Gangs,
    pub bound: Bound,
    pub quotas: Quotas,
    /// The StorageClass of PersistentVolumeClaims that name none, if it is in the manifest.
    pub default_class: Option<String>,
    admission: Admission,
    /// The templates of ControllerRevisions, by namespace and name.
    revisions: BTreeMap<(String, String), Value>,
    /// Runtimes of TrainJobs, by kind, namespace and name.
    runtimes: BTreeMap<Name, Value>,
    /// Those that TrainJobs of the manifest name.
    named_runtimes: BTreeSet<Name>,
}

impl Shared {
    /// Collects these facts. `running` are the pods of a cluster that are not in the manifest. Their controllers may be.
    pub fn new(objects: &[Object], running: &[Object]) -> Self {
        let is_runtime =
            |object: &&Object| pod_sets::train_job::is_runtime(group(&object.api_version), &object.kind);
        let runtimes = objects.iter().filter(is_runtime).map(|object| {
            let name = meta(&object.value, "name").unwrap_or_default();
            (runtime_key(&object.kind, object.namespace(), name), object.value.clone())
        });
        let train_jobs = objects.iter().filter(|object| object.kind == "TrainJob");
        let named_runtimes = train_jobs.map(|object| {
            let (kind, name) = pod_sets::train_job::runtime_of(&object.value);
            runtime_key(kind, object.namespace(), name)
        });
        let is_revision = |object: &&Object| object.kind == "ControllerRevision";
        let revisions = objects.iter().filter(is_revision).map(|object| {
            let name = meta(&object.value, "name").unwrap_or_default();
            let template = object.value["data"]["spec"]["template"].clone();
            ((object.namespace().to_owned(), name.to_owned()), template)
        });
        let mut owned = Owned::of(objects.iter().chain(running).map(|object| &object.value));
        owned.count_as_stored(running.iter().map(|object| &object.value));
        Self {
            owned,
            gangs: Gangs::default(),
            bound: Bound::default(),
            quotas: Quotas::default(),
            default_class: default_class(objects),
            admission: Admission::default(),
            revisions: revisions.collect(),
            runtimes: runtimes.collect(),
            named_runtimes: named_runtimes.collect(),
        }
    }

    /// Returns the runtime of a `TrainJob`, if it is in the manifest and its JobSet is not.
    fn runtime_of(&self, object: &Object) -> Option<&Value> {
        let (kind, name) = pod_sets::train_job::runtime_of(&object.value);
        let own = meta(&object.value, "name").unwrap_or_default();
        let is_made = self.owned.has(object.namespace(), "JobSet", own);
        self.runtimes.get(&runtime_key(kind, object.namespace(), name)).filter(|_| !is_made)
    }

    /// Returns whether the object is a runtime that a `TrainJob` of the manifest is made from.
    fn serves_a_train_job(&self, object: &Object) -> bool {
        let name = meta(&object.value, "name").unwrap_or_default();
        let key = runtime_key(&object.kind, object.namespace(), name);
        self.runtimes.contains_key(&key) && self.named_runtimes.contains(&key)
    }

    /// Removes what other objects would take from an object that cannot be created.
    pub fn forget(&mut self, object: &Object, over: &OverQuota) {
        let (namespace, name) = (object.namespace(), meta(&object.value, "name").unwrap_or_default());
        match object.kind.as_str() {
            "TrainingRuntime" => {
                self.runtimes.remove(&runtime_key(&object.kind, namespace, name));
            }
            "ControllerRevision" => {
                self.revisions.remove(&(namespace.to_owned(), name.to_owned()));
            }
            // Each namespace has its default account from the beginning.
            "ServiceAccount" if object.api_version == "v1" && name != "default" => {
                self.quotas.refuse_account(namespace, name, over);
            }
            _ => {}
        }
    }
}

/// Returns the key of a runtime. One of a namespace serves only TrainJobs there.
fn runtime_key(kind: &str, namespace: &str, name: &str) -> Name {
    let namespace = if pod_sets::train_job::is_namespaced(kind) { namespace } else { "" };
    (kind.to_owned(), namespace.to_owned(), name.to_owned())
}

/// Says that pods are not planned, because other pods have their names; `None` if there are no such pods.
fn told_of_blocked(names: &[String]) -> Option<String> {
    const NAMED: usize = 3;
    let (are, one_of, gone) = match names.len() {
        0 => return None,
        1 => ("is", "a pod of this name exists", "that is gone"),
        _ => ("are", "pods of these names exist", "those are gone"),
    };
    let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "{shown}{more} {are} not planned, because {one_of} that it does not control; it makes its own when {gone}"
    ))
}

/// Returns the name of the StorageClass of PersistentVolumeClaims that name none.
fn default_class(objects: &[Object]) -> Option<String> {
    let is_class =
        |object: &&Object| object.kind == "StorageClass" && group(&object.api_version) == "storage.k8s.io";
    let classes = objects.iter().filter(is_class);
    let classes = classes.filter_map(|object| storage::StorageClass::deserialize(&object.value).ok());
    let classes: Vec<StorageClass> = classes.map(|class| volumes::storage_class(&class)).collect();
    StorageClass::default_of(classes.iter()).map(|class| class.name.clone())
}

impl Object {
    /// Reads the object. Of an object that an API server has stored, the API server knows best: unknown fields become notes, and an
    /// object that cannot be read is left out with a note, which says what follows. Of a written object with problems, the part that
    /// can be read serves to find more of them.
    pub(super) fn read_into(
        &self,
        manifest: &mut Manifest,
        shared: &mut Shared,
    ) -> Result<(), Vec<IntakeError>> {
        let Err(mut problems) = self.read_strictly_into(manifest, shared) else { return Ok(()) };
        let of = |value: &Value| Self { value: value.clone(), ..self.clone() };
        if !self.is_stored() {
            let judge =
                |rest: &Value| of(rest).read_strictly_into(manifest, shared).err().unwrap_or_default();
            let all = strict::all_problems(&self.value, problems, judge);
            return Err(all.into_iter().map(|problem| problem.of(self.name())).collect());
        }
        let unknown = problems.iter().filter(|problem| problem.cause == strict::UNKNOWN_FIELD);
        let unknown: Vec<String> = unknown.map(|problem| problem.path.clone()).collect();
        if !unknown.is_empty() {
            let mut known = self.value.clone();
            for path in &unknown {
                strict::remove(&mut known, path);
            }
            problems = of(&known).read_strictly_into(manifest, shared).err().unwrap_or_default();
        }
        let named = |note: &str| format!("{}: {note}", self.name());
        for path in &unknown {
            manifest.notes.push(self.ignored(path));
        }
        for problem in &problems {
            let place = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
            let follows = self.lost_with_it();
            manifest.notes.push(named(&format!("{place}{}; the object is left out{follows}", problem.cause)));
        }
        if !problems.is_empty() {
            manifest.left_out.insert(self.name());
            shared.admission.lose(self.name());
        }
        let may_make_pods = self.kind == "Pod" || self.is_controller() || self.makes_pods();
        if !problems.is_empty() && may_make_pods {
            manifest.unread.push(self.name());
        }
        Ok(())
    }

    fn read_strictly_into(
        &self,
        manifest: &mut Manifest,
        shared: &mut Shared,
    ) -> Result<(), Vec<FieldProblem>> {
        let known = KINDS
            .iter()
            .find(|(kind, version, _)| *kind == self.kind && group(version) == group(&self.api_version));
        let version = match known {
            Some((_, version, _)) => *version,
            None if self.is_node_class() => API_VERSION,
            // The versions of these kinds have the same layout.
            None if pod_sets::is_read(group(&self.api_version), &self.kind) => self.api_version.as_str(),
            None if self.kind == "TrainJob" && shared.runtime_of(self).is_some() => self.api_version.as_str(),
            None => {
                let misspelt = self.misspelt_fields();
                let problems = if misspelt.is_empty() { self.refusals() } else { misspelt };
                if !problems.is_empty() {
                    return Err(problems);
                }
                manifest.notes.extend(self.doubts());
                manifest.notes.extend(self.unread_fields());
                let owned = &shared.owned;
                let is_shown_otherwise = owned.controls(&self.value) || owned.is_controlled(&self.value);
                match self.over_quota(shared) {
                    Some(over) => {
                        let pods = (!self.lacks_pods(is_shown_otherwise)).then_some(0);
                        self.refuse(&over, pods, manifest, shared);
                    }
                    None if shared.serves_a_train_job(self) => {}
                    None => self.note_unread(is_shown_otherwise, manifest),
                }
                return Ok(());
            }
        };
        if version != self.api_version {
            let cause = format!("version `{}` of this kind is not read", self.api_version);
            let mut problems = vec![FieldProblem::new("apiVersion", cause, format!("use `{version}`"))];
            add_untold(self.refusals(), &mut problems);
            return Err(problems);
        }
        let mut problems = self.twins();
        problems.extend(self.misnamed_as_stored());
        // Pods without a name of their own would be told to be there twice.
        let is_sound = problems.is_empty();
        let mut aside = Manifest::default();
        let has_name = has_name(&self.value);
        if !has_name {
            problems.extend(self.nameless());
        }
        let misspelt = self.misspelt_fields();
        if !misspelt.is_empty() {
            problems.extend(misspelt);
            return Err(problems);
        }
        let into = if has_name && is_sound { &mut *manifest } else { &mut aside };
        // A name that is no text is told once.
        add_untold(self.convert_into(into, shared).err().unwrap_or_default(), &mut problems);
        // Of an object with unknown fields, the rest is checked when it is read without them.
        let is_unknown = |problem: &FieldProblem| {
            problem.cause == strict::UNKNOWN_FIELD
                && !problem.path.starts_with(pod_sets::train_job::OF_RUNTIME)
        };
        if !problems.iter().any(is_unknown) {
            add_untold(self.refusals(), &mut problems);
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        manifest.notes.extend(self.doubts());
        manifest.notes.extend(self.unread_fields());
        Ok(())
    }

    /// Returns why the object has no name: the name is no text, or it is missing.
    fn nameless(&self) -> Vec<FieldProblem> {
        let stated = &self.value["metadata"];
        let place = |path: &str| {
            let path = path.to_owned();
            move |problem: FieldProblem| FieldProblem { path: path.clone(), ..problem }
        };
        if !stated.is_null() && !stated.is_object() {
            let found = read::<ObjectMeta>(stated).err().unwrap_or_default();
            return found.into_iter().map(place("metadata")).collect();
        }
        let no_text = |field: &str| {
            let found = read::<Option<String>>(&stated[field]).err().unwrap_or_default();
            found.into_iter().map(place(&format!("metadata.{field}"))).collect::<Vec<_>>()
        };
        let found = [no_text("name"), no_text("generateName")].concat();
        if found.is_empty() {
            return vec![FieldProblem::new("metadata.name", "missing", "give the object a name")];
        }
        found
    }

    /// Reads the object into the manifest, unless a quota does not allow it. Its own problems are told all the same.
    fn convert_into(&self, manifest: &mut Manifest, shared: &mut Shared) -> Result<(), Vec<FieldProblem>> {
        let Some(over) = self.over_quota(shared) else {
            let expansion = self.convert(manifest, shared)?;
            if let Some(expansion) = expansion {
                self.add_pods(expansion, manifest, shared);
            }
            return Ok(());
        };
        let pods = match self.kind.as_str() {
            "LimitRange" => {
                Admission::default().add_limit_range(&read(&self.value)?)?;
                Some(0)
            }
            kind => match self.convert(&mut Manifest::default(), shared)? {
                Some(expansion) => Some(expansion.pods.len()),
                // The nodes decide how many pods it has.
                None if kind == "DaemonSet" => None,
                None => Some(0),
            },
        };
        self.refuse(&over, pods, manifest, shared);
        Ok(())
    }

    /// Records that pods of the object cannot be created.
    fn count_refused(&self, pods: usize, manifest: &mut Manifest) {
        if pods > 0 {
            let (object, namespace) = (self.name(), self.namespace().to_owned());
            manifest.refused.push(RefusedPods { object, namespace, pods });
        }
    }

    /// Converts the object into the manifest. Returns its pods, which are not in the manifest yet, if it makes pods.
    fn convert(
        &self,
        manifest: &mut Manifest,
        shared: &mut Shared,
    ) -> Result<Option<Expansion>, Vec<FieldProblem>> {
        let value = &self.value;
        let admission = &shared.admission;
        let name = self.pod_name(&shared.owned);
        let room = Cell::new(MAX_PODS);
        let making = Making { admission, name: &name, room: &room };
        let expansion = match self.kind.as_str() {
            _ if pod_sets::is_read(group(&self.api_version), &self.kind) => {
                pod_sets::expand(value, making).transpose()?.unwrap_or_default()
            }
            "TrainJob" => match shared.runtime_of(self) {
                Some(runtime) => pod_sets::train_job::expand(value, runtime, making)?,
                None => Expansion::default(),
            },
            "Pod" => workload::single(value, making)?,
            "Deployment" => workload::deployment(value, making)?,
            "ReplicaSet" => workload::replica_set(value, making)?,
            "StatefulSet" => workload::stateful_set(value, self.old_template(&shared.revisions), making)?,
            "ReplicationController" => workload::replication_controller(value, making)?,
            "Job" => workload::job(value, making)?,
            "JobSet" => workload::job_set(value, making)?,
            "Node" => {
                manifest.nodes.push(node::convert(&read::<k8s::Node>(value)?)?);
                return Ok(None);
            }
            "Namespace" => {
                let namespace = read(value)?;
                let note = shared.admission.add_namespace(&namespace)?;
                manifest.notes.extend(note.map(|note| format!("{}: {note}", self.name())));
                let ignored = namespace::ignored_limits(&namespace);
                manifest.notes.extend(ignored.map(|ignored| format!("{}: ignored {ignored}", self.name())));
                manifest.namespaces.push(namespace::namespace(&namespace));
                return Ok(None);
            }
            "DaemonSet" => {
                let mut set: apps::v1::DaemonSet = read(value)?;
                let namespace = set.metadata.namespace.clone();
                let (mut problems, mut refusals) = (Vec::new(), Vec::new());
                match &set.spec {
                    _ if self.is_stored() => {}
                    None => problems.extend(missing("spec")),
                    Some(spec) => {
                        has_containers("spec.template.spec", spec.template.spec.as_ref()).keep(&mut problems);
                    }
                }
                if let Some(spec) = set.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()) {
                    let admitted = admission.admit("spec.template.spec", namespace.as_deref(), spec);
                    let notes = admitted.keep(&mut refusals).unwrap_or_default();
                    manifest.notes.extend(notes.iter().map(|note| format!("{}: {note}", self.name())));
                }
                if !self.is_stored() {
                    problems.append(&mut refusals);
                }
                match daemonset::convert(&set) {
                    Ok(set) if problems.is_empty() => {
                        manifest.daemonsets.push(set);
                        // A rule may be gone before there is a new node.
                        if let Some(FieldProblem { path, cause, .. }) = refusals.first() {
                            let counts = "new pods of it cannot be created now, but count on new nodes";
                            manifest.notes.push(format!("{}: {counts}; {path}: {cause}", self.name()));
                        }
                    }
                    set => {
                        problems.append(&mut refusals);
                        add_untold(set.err().into_iter().collect(), &mut problems);
                        return Err(problems);
                    }
                }
                return Ok(None);
            }
            "PersistentVolumeClaim" => {
                let from = read(value)?;
                let mut problems = Vec::new();
                if !self.is_stored() {
                    admission.check_claim("spec", meta(value, "namespace"), &from).keep(&mut problems);
                }
                let claim = volumes::convert_claim(&from).keep(&mut problems);
                let Some(mut claim) = claim.filter(|_| problems.is_empty()) else { return Err(problems) };
                manifest.notes.extend(self.admit_claim(&mut claim, shared));
                manifest.not_created.extend(claim.over_quota.is_some().then(|| self.name()));
                manifest.volume_claims.push(claim);
                return Ok(None);
            }
            "PersistentVolume" => {
                manifest.volumes.push(volumes::convert_volume(&read(value)?)?);
                return Ok(None);
            }
            "StorageClass" => {
                manifest.storage_classes.push(volumes::storage_class(&read(value)?));
                return Ok(None);
            }
            "CSINode" => {
                manifest.node_drivers.push(volumes::node_drivers(&read(value)?));
                return Ok(None);
            }
            "Service" => {
                manifest.services.push(services::read_service(value)?);
                return Ok(None);
            }
            "PodDisruptionBudget" => {
                manifest.budgets.push(budget::convert_budget(&read(value)?)?);
                return Ok(None);
            }
            "PodGroup" => {
                let own = group(&self.api_version);
                let other = GangScheduler::ALL.into_iter().find(|other| other.api_group() == own);
                manifest.pod_groups.push(match other {
                    Some(other) => other_groups::of_manifest(other, value)?,
                    None => pod_groups::convert(&read(value)?).map_err(|problem| vec![problem])?,
                });
                return Ok(None);
            }
            "RuntimeClass" => {
                shared.admission.add_readable_runtime_class(read(value)?)?;
                return Ok(None);
            }
            "PriorityClass" => {
                shared.admission.add_priority_class(read(value)?);
                return Ok(None);
            }
            "ResourceQuota" => {
                let mut quota: k8s::ResourceQuota = read(value)?;
                // What is in use does not change when the quota does.
                let used = self.replaced.as_ref().map(|stored| &stored["status"]["used"]);
                if let Some(used) = used.filter(|used| used.is_object()) {
                    let status = quota.status.get_or_insert_default();
                    status.used = Deserialize::deserialize(used).ok();
                }
                shared.admission.add_quota(&quota);
                let notes = shared.quotas.add(&quota)?;
                manifest.notes.extend(notes.iter().map(|note| format!("{}: {note}", self.name())));
                return Ok(None);
            }
            "LimitRange" => {
                shared.admission.add_readable_limit_range(&read(value)?)?;
                return Ok(None);
            }
            "NodePool" => {
                let pool = read(value)?;
                manifest.pools.push(pool::checked(&pool)?);
                if self.is_stored() {
                    manifest.stored_pools.push(pool);
                }
                return Ok(None);
            }
            "NodeClaim" => {
                manifest.claims.push(claim::convert(&read(value)?)?);
                return Ok(None);
            }
            _ => {
                manifest.node_classes.push(NodeClassObject {
                    file: self.file.clone(),
                    reference: NodeClassRef {
                        group: GROUP.to_owned(),
                        kind: self.kind.clone(),
                        name: meta(value, "name").unwrap_or_default().to_owned(),
                    },
                    object: value.clone(),
                });
                return Ok(None);
            }
        };
        Ok(Some(expansion))
    }

    /// Returns the beginning of the names of the pods that the object makes. Real names end in letters that nobody can know; the
    /// numbers instead of them must not be those of other pods.
    fn pod_name(&self, owned: &Owned) -> String {
        const SAME: [&str; 8] = [
            "CloneSet",
            "Deployment",
            "DeploymentConfig",
            "Job",
            "ReplicaSet",
            "ReplicationController",
            "Rollout",
            "StatefulSet",
        ];
        let name =
            meta(&self.value, "name").or_else(|| meta(&self.value, "generateName")).unwrap_or_default();
        let is_free = self.kind != "StatefulSet" && SAME.contains(&self.kind.as_str());
        let others = SAME.iter().chain(&["LeaderWorkerSet"]).filter(|kind| **kind != self.kind);
        let is_taken = || {
            let namespace = self.namespace();
            others.into_iter().any(|kind| owned.has(namespace, kind, name))
                || owned.has_numbered_pod(namespace, name)
        };
        if is_free && is_taken() { format!("{name}-{}", self.kind.to_lowercase()) } else { name.to_owned() }
    }

    /// Returns whether it is a Deployment that is paused before its first ReplicaSet. Its controller writes the revision when it
    /// makes one, so a stored Deployment with a revision has one.
    fn is_paused_before_first(&self) -> bool {
        let revision = &self.value["metadata"]["annotations"][REVISION];
        self.kind == "Deployment"
            && group(&self.api_version) == "apps"
            && self.value["spec"]["paused"] == true
            && (!self.is_stored() || revision.is_null())
    }

    fn add_pods(&self, mut expansion: Expansion, manifest: &mut Manifest, shared: &mut Shared) {
        let mut note = |note: &str| manifest.notes.push(format!("{}: {note}", self.name()));
        expansion.notes.iter().for_each(|said| note(said));
        if let Some(ignored) = duration::ignored_in(&self.value) {
            note(&format!("ignored {ignored}"));
        }
        manifest.workloads.extend(expansion.workload.take());
        let gangs = Gangs::of(&expansion);
        let mut had = None;
        if self.is_deleted_without_node() {
            note("it is being deleted and has no node, so nothing is planned for it");
        }
        if self.kind != "Pod" {
            // The output of a cluster contains both workloads and their pods.
            let makes_some = !expansion.pods.is_empty();
            had = shared.owned.take(&self.value, &mut expansion.pods);
            let blocked = shared.owned.take_blocked(&self.value, &mut expansion.pods);
            if let Some(told) = told_of_blocked(&blocked) {
                note(&told);
            }
            match (had, expansion.pods.len()) {
                // A note says why it makes none, or it asks for none.
                _ if !makes_some => {}
                (None, 1..) if self.is_paused_before_first() => {
                    note("it is paused and has no ReplicaSet, so it makes no pods");
                    expansion.pods.clear();
                }
                (Some(Had { pods: 0, makers: Some(kind), .. }), 0) => {
                    note(&format!("its {kind}s in the manifest count instead"));
                }
                // If it has none, a note on those that are blocked says it.
                (Some(Had { all: 1.., .. }), 0) => note("its pods in the manifest count instead"),
                _ => {}
            }
        }
        let mut later: Vec<_> = expansion.pods.iter().filter_map(|made| made.origin.later.clone()).collect();
        later.dedup();
        for said in &later {
            note(said);
        }
        expansion.pods.retain(|made| made.origin.later.is_none());
        let before = expansion.pods.len();
        let needed = Gangs::needed(&expansion);
        let unfit = self.leave_out_refused(&mut expansion.pods, had);
        let fit = expansion.pods.len();
        let (over, notes) = self.hold_back(&mut expansion, had.map_or(0, |had| had.all), shared);
        if let Some(had) = had.filter(|_| before > 0) {
            let lacks = expansion.pods.len();
            let gone = match had.gone {
                0 => String::new(),
                1 => ", without 1 that has ended or is being deleted".to_owned(),
                gone => format!(", without {gone} that have ended or are being deleted"),
            };
            note(&match had {
                Had { pods, makers: None, .. } => {
                    format!("pods in the manifest: {pods}{gone}; pods that it lacks, planned too: {lacks}")
                }
                Had { pods: 0, makers: Some(kind), .. } => format!(
                    "its {kind}s in the manifest count by themselves; pods that it lacks besides, planned too: {lacks}"
                ),
                Had { pods, makers: Some(kind), .. } => format!(
                    "pods in the manifest: {pods}{gone}; its {kind}s there count by themselves; pods that it lacks besides, planned too: {lacks}"
                ),
            });
        }
        if let Some(unfit) = unfit {
            note(&unfit);
        }
        if let Some(over) = over {
            note(&self.held_back(&over, fit - expansion.pods.len(), before));
        }
        manifest.notes.extend(notes);
        let mut of_origins: Vec<_> =
            expansion.pods.iter().filter_map(|made| made.origin.note.clone()).collect();
        of_origins.dedup();
        manifest.notes.extend(of_origins.into_iter().map(|note| format!("{}: {note}", self.name())));
        manifest.missing.extend(self.missing(&expansion.pods));
        let polite = expansion.pods.iter().filter(|made| made.is_polite);
        manifest.polite.extend(polite.map(|made| made.pod.key.clone()));
        let of_gangs = [needed, Gangs::needed(&expansion)];
        let pods: Vec<Pod> = expansion.pods.into_iter().map(|made| made.pod).collect();
        shared.gangs.add(self, gangs, &pods, of_gangs);
        shared.bound.add(self, &pods);
        self.count_refused(expansion.refused + before - pods.len(), manifest);
        if !pods.is_empty() {
            manifest.made_claims.extend(expansion.claims);
            manifest.pods.extend(pods);
        }
    }
}
