//! Manifests: YAML or JSON, one document or many, objects or lists of them. All problems are collected, each with the object's
//! name and the path in it. Skipped objects are listed in the notes.

use std::collections::BTreeSet;

use k8s_openapi::api::{apps, core::v1 as k8s};
use poolwright_api::strict::{self, read};
use poolwright_api::{FieldProblem, meant};
use poolwright_core::{
    Claim, DaemonSet, Namespace, Node, NodeDrivers, Pod, PodDisruptionBudget, PodGroup, Pool, Service,
    StorageClass, Volume, VolumeClaim, Workload,
};
use poolwright_terms::{API_VERSION, GROUP, NodeClassRef};
use serde_json::Value;

use crate::admission::{Admission, Quotas};
use crate::error::{IntakeError, OfObject, object_name};
use crate::owned::Owned;
use crate::workload::{self, Expansion};
use crate::{budget, claim, daemonset, duration, node, others, pod_groups, pool, services, volumes};

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

    /// A problem with the file and name of the node class.
    pub fn problem(&self, problem: FieldProblem) -> IntakeError {
        IntakeError { file: Some(self.file.clone()), ..problem.of(self.name()) }
    }
}

/// The content of one or more manifests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// Pods, including those of workloads, in the order of the file.
    pub pods: Vec<Pod>,
    /// NodePools.
    pub pools: Vec<Pool>,
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
}

impl Manifest {
    /// A problem for each two objects of one kind with the same name: the second would replace the first.
    fn duplicates(&self) -> Vec<IntakeError> {
        let pods = self.pods.iter().map(|pod| format!("Pod {}", pod.key));
        let pools = self.pools.iter().map(|pool| format!("NodePool {}", pool.name));
        let classes = self.node_classes.iter().map(NodeClassObject::name);
        let nodes = self.nodes.iter().map(|node| format!("Node {}", node.name));
        let namespaces = self.namespaces.iter().map(|namespace| format!("Namespace {}", namespace.name));
        let daemonsets = self.daemonsets.iter().map(|set| format!("DaemonSet {}", set.key));
        let claims = self.claims.iter().map(|claim| format!("NodeClaim {}", claim.name));
        let volume_claims =
            self.volume_claims.iter().map(|claim| format!("PersistentVolumeClaim {}", claim.key));
        let volumes = self.volumes.iter().map(|volume| format!("PersistentVolume {}", volume.name));
        let storage = self.storage_classes.iter().map(|class| format!("StorageClass {}", class.name));
        let budgets = self.budgets.iter().map(|budget| format!("PodDisruptionBudget {}", budget.key));
        let groups = self.pod_groups.iter().map(|group| format!("PodGroup {}", group.key));
        let volumes = volume_claims.chain(volumes).chain(storage).chain(budgets).chain(groups);
        let mut seen = BTreeSet::new();
        let mut twice = BTreeSet::new();
        for name in pods
            .chain(pools)
            .chain(classes)
            .chain(nodes)
            .chain(namespaces)
            .chain(daemonsets)
            .chain(claims)
            .chain(volumes)
        {
            if !seen.insert(name.clone()) {
                twice.insert(name);
            }
        }
        let problem = || FieldProblem::new("", "it is there more than once", "remove one or rename it");
        twice.into_iter().map(|name| problem().of(name)).collect()
    }
}

/// The objects of a manifest as written, without lists. `source` is the name of the file, for messages.
///
/// # Errors
/// Text that is not YAML or JSON, and values that are not objects. The content of objects is checked only by [`parse`].
pub fn objects(source: &str, text: &str) -> Result<Vec<Value>, Vec<IntakeError>> {
    let mut objects = Vec::new();
    let mut errors = Vec::new();
    match documents(text) {
        Ok(documents) => {
            for (at, document) in documents.into_iter().enumerate() {
                flatten(document, &format!("document {}", at + 1), None, &mut objects, &mut errors);
            }
        }
        Err(problem) => errors.push(problem.of(String::new())),
    }
    for error in &mut errors {
        error.file = Some(source.to_owned());
    }
    if errors.is_empty() { Ok(objects.into_iter().map(|object| object.value).collect()) } else { Err(errors) }
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
/// The problems of all files. An object of another group that an API server has stored is not one because it cannot be read: a
/// note says so, and it is left out.
pub fn parse_files<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Manifest, Vec<IntakeError>> {
    let mut manifest = Manifest::default();
    let mut errors = Vec::new();
    let mut objects = Vec::new();
    for (file, text) in files {
        let mut found = Vec::new();
        match documents(text) {
            Ok(documents) => {
                let first = objects.len();
                for (at, document) in documents.into_iter().enumerate() {
                    flatten(document, &format!("document {}", at + 1), None, &mut objects, &mut found);
                }
                objects[first..].iter_mut().for_each(|object: &mut Object| file.clone_into(&mut object.file));
            }
            Err(problem) => found.push(problem.of(String::new())),
        }
        errors.extend(found.into_iter().map(|error| IntakeError { file: Some(file.to_owned()), ..error }));
    }
    let owned = Owned::of(objects.iter().map(|object| &object.value));
    let mut shared = Shared { owned, admission: Admission::default(), quotas: Quotas::default() };
    // The admission of other objects depends on these.
    let (rules, others): (Vec<_>, Vec<_>) =
        objects.iter().partition(|object| Admission::KINDS.contains(&object.kind.as_str()));
    for object in rules.into_iter().chain(others) {
        if let Err(found) = object.read_into(&mut manifest, &mut shared) {
            errors.extend(
                found.into_iter().map(|error| IntakeError { file: Some(object.file.clone()), ..error }),
            );
        }
    }
    for twice in manifest.duplicates() {
        let named = objects.iter().filter(|object| object.name() == twice.object);
        let files: BTreeSet<&str> = named.map(|object| object.file.as_str()).collect();
        let file = files.into_iter().collect::<Vec<_>>().join(" and ");
        errors.push(IntakeError { file: Some(file), ..twice });
    }
    if errors.is_empty() { Ok(manifest) } else { Err(errors) }
}

/// The documents of a text; empty ones are skipped.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>, FieldProblem> {
    // JSON is YAML, but a JSON parser is many times faster, and large lists are usually JSON.
    if text.trim_start().starts_with('{') {
        let stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        if let Ok(documents) = stream.collect::<Result<Vec<_>, _>>() {
            return Ok(documents);
        }
    }
    // Keeps the limits against maliciously nested aliases, and lifts those on size, because a cluster has many pods.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_documents: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
        },
        with_snippet: false,
    };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        FieldProblem::new("", format!("not readable as YAML or JSON: {error}"), "correct the syntax")
    })
}

/// Facts about objects that affect other objects of the manifest.
struct Shared {
    owned: Owned,
    admission: Admission,
    quotas: Quotas,
}

/// One object of a manifest.
#[derive(Clone)]
struct Object {
    file: String,
    /// Its place in the file, for messages about objects without a name.
    place: String,
    kind: String,
    api_version: String,
    value: Value,
}

/// Splits lists into their objects.
fn flatten(
    mut value: Value,
    place: &str,
    of: Option<(&str, &str)>,
    into: &mut Vec<Object>,
    errors: &mut Vec<IntakeError>,
) {
    if value.is_null() {
        return;
    }
    let mut problem =
        |path: &str, cause: &str, next: &str| errors.push(FieldProblem::new(path, cause, next).of(place));
    let Some(fields) = value.as_object_mut() else {
        return problem("", "not an object", "write apiVersion, kind, metadata and spec");
    };
    // Items of a typed list may omit the kind and version of the list.
    if let Some((api_version, kind)) = of {
        fields.entry("apiVersion").or_insert_with(|| api_version.into());
        fields.entry("kind").or_insert_with(|| kind.into());
    }
    let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let (Some(api_version), Some(kind)) = (text("apiVersion"), text("kind")) else {
        return problem(
            "",
            "apiVersion or kind is missing",
            "write both, such as `apiVersion: v1` and `kind: Pod`",
        );
    };
    let item_kind = kind.strip_suffix("List").filter(|_| fields.get("items").is_some_and(Value::is_array));
    let Some(item_kind) = item_kind else {
        into.push(Object { file: String::new(), place: place.to_owned(), kind, api_version, value });
        return;
    };
    let items = fields.get_mut("items").map(Value::take);
    let of = (!item_kind.is_empty()).then_some((api_version.as_str(), item_kind));
    for (at, item) in items.as_ref().and_then(Value::as_array).into_iter().flatten().enumerate() {
        flatten(item.clone(), &format!("{place}, item {}", at + 1), of, into, errors);
    }
}

fn meta<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get("metadata")?.get(field)?.as_str().filter(|text| !text.is_empty())
}

/// The supported kinds with their version, and whether they are namespaced.
const KINDS: [(&str, &str, bool); 23] = [
    ("Pod", "v1", true),
    ("Node", "v1", false),
    ("Namespace", "v1", false),
    ("Deployment", "apps/v1", true),
    ("ReplicaSet", "apps/v1", true),
    ("StatefulSet", "apps/v1", true),
    ("DaemonSet", "apps/v1", true),
    ("ReplicationController", "v1", true),
    ("Service", "v1", true),
    ("Job", "batch/v1", true),
    ("JobSet", "jobset.x-k8s.io/v1alpha2", true),
    ("RuntimeClass", "node.k8s.io/v1", false),
    ("PriorityClass", "scheduling.k8s.io/v1", false),
    ("LimitRange", "v1", true),
    ("ResourceQuota", "v1", true),
    ("PersistentVolumeClaim", "v1", true),
    ("PersistentVolume", "v1", false),
    ("StorageClass", "storage.k8s.io/v1", false),
    ("CSINode", "storage.k8s.io/v1", false),
    ("PodDisruptionBudget", "policy/v1", true),
    ("PodGroup", "scheduling.k8s.io/v1alpha2", true),
    ("NodePool", API_VERSION, false),
    ("NodeClaim", API_VERSION, false),
];

/// Groups without kinds that create pods. Their objects are skipped without a note.
const QUIET_GROUPS: [&str; 14] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "autoscaling",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Kinds of the core group that are skipped without a note.
const QUIET_KINDS: [&str; 7] =
    ["Binding", "ComponentStatus", "ConfigMap", "Endpoints", "Event", "Secret", "ServiceAccount"];

/// Groups of Kubernetes that are read or that contain workloads, besides the core group and [`QUIET_GROUPS`].
const WORKLOAD_GROUPS: [&str; 2] = ["apps", "batch"];

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

impl Object {
    /// Whether it is a node class of some cloud. The cloud's crate reads it. Any other unknown kind of our group counts as one, so
    /// that the caller, who knows the clouds, reports it.
    fn is_node_class(&self) -> bool {
        group(&self.api_version) == GROUP && KINDS.iter().all(|(kind, ..)| *kind != self.kind)
    }

    fn name(&self) -> String {
        let is_listed = KINDS.iter().all(|(kind, _, namespaced)| *kind != self.kind || *namespaced);
        let namespaced = is_listed && !self.is_node_class();
        let namespace = meta(&self.value, "namespace").or(namespaced.then_some("default"));
        match meta(&self.value, "name").or_else(|| meta(&self.value, "generateName")) {
            Some(name) => object_name(&self.kind, namespace, Some(name)),
            None => format!("{} ({})", self.kind, self.place),
        }
    }

    /// Returns whether an API server has stored the object: it then has a UID and a version.
    fn is_stored(&self) -> bool {
        meta(&self.value, "uid").or(meta(&self.value, "resourceVersion")).is_some()
    }

    /// Reads the object. Of an object that an API server has stored, the API server knows best: unknown fields become notes, and an
    /// object that cannot be read is left out with a note. Our own objects are always read strictly, because they limit what may
    /// be bought.
    fn read_into(&self, manifest: &mut Manifest, shared: &mut Shared) -> Result<(), Vec<IntakeError>> {
        let Err(mut errors) = self.read_strictly_into(manifest, shared) else { return Ok(()) };
        if !self.is_stored() || group(&self.api_version) == GROUP {
            return Err(errors);
        }
        let mut known = self.clone();
        let unknown = errors.iter().filter(|error| error.cause == strict::UNKNOWN_FIELD);
        let unknown: Vec<String> = unknown.map(|error| error.path.clone()).collect();
        if !unknown.is_empty() {
            for path in &unknown {
                strict::remove(&mut known.value, path);
            }
            errors = known.read_strictly_into(manifest, shared).err().unwrap_or_default();
        }
        let named = |note: &str| format!("{}: {note}", self.name());
        for path in &unknown {
            manifest
                .notes
                .push(named(&format!("{path}: this version does not know the field, and ignores it")));
        }
        for error in &errors {
            let place = if error.path.is_empty() { String::new() } else { format!("{}: ", error.path) };
            manifest.notes.push(named(&format!("{place}{}; the object is left out", error.cause)));
        }
        Ok(())
    }

    fn read_strictly_into(
        &self,
        manifest: &mut Manifest,
        shared: &mut Shared,
    ) -> Result<(), Vec<IntakeError>> {
        let name = |problems: Vec<FieldProblem>| {
            problems.into_iter().map(|problem| problem.of(self.name())).collect()
        };
        let known = KINDS
            .iter()
            .find(|(kind, version, _)| *kind == self.kind && group(version) == group(&self.api_version));
        let version = match known {
            Some((_, version, _)) => *version,
            None if self.is_node_class() => API_VERSION,
            None => {
                self.note_unread(manifest);
                return Ok(());
            }
        };
        if version != self.api_version {
            let cause = format!("version `{}` of this kind is not read", self.api_version);
            return Err(name(vec![FieldProblem::new("apiVersion", cause, format!("use `{version}`"))]));
        }
        if meta(&self.value, "name").is_none() && meta(&self.value, "generateName").is_none() {
            return Err(name(vec![FieldProblem::new("metadata.name", "missing", "give the object a name")]));
        }
        self.convert_into(manifest, shared).map_err(name)
    }

    fn convert_into(&self, manifest: &mut Manifest, shared: &mut Shared) -> Result<(), Vec<FieldProblem>> {
        let value = &self.value;
        let admission = &shared.admission;
        let expansion = match self.kind.as_str() {
            "Pod" => workload::single(value, admission)?,
            "Deployment" => workload::deployment(value, admission)?,
            "ReplicaSet" => workload::replica_set(value, admission)?,
            "StatefulSet" => workload::stateful_set(value, admission)?,
            "ReplicationController" => workload::replication_controller(value, admission)?,
            "Job" => workload::job(value, admission)?,
            "JobSet" => workload::job_set(value, admission)?,
            "Node" => {
                manifest
                    .nodes
                    .push(node::convert(&read::<k8s::Node>(value)?).map_err(|problem| vec![problem])?);
                return Ok(());
            }
            "Namespace" => {
                manifest.namespaces.push(others::namespace(&read(value)?));
                return Ok(());
            }
            "DaemonSet" => {
                let mut set: apps::v1::DaemonSet = read(value)?;
                let namespace = set.metadata.namespace.clone();
                if let Some(spec) = set.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()) {
                    let notes = admission.admit("spec.template.spec", namespace.as_deref(), spec)?;
                    manifest.notes.extend(notes.iter().map(|note| format!("{}: {note}", self.name())));
                }
                manifest.daemonsets.push(daemonset::convert(&set).map_err(|problem| vec![problem])?);
                return Ok(());
            }
            "PersistentVolumeClaim" => {
                let from = read(value)?;
                if !self.is_stored() {
                    admission.check_claim("spec", meta(value, "namespace"), &from)?;
                }
                let claim = volumes::convert_claim(&from).map_err(|problem| vec![problem])?;
                manifest.volume_claims.push(claim);
                return Ok(());
            }
            "PersistentVolume" => {
                let volume = volumes::convert_volume(&read(value)?).map_err(|problem| vec![problem])?;
                manifest.volumes.push(volume);
                return Ok(());
            }
            "StorageClass" => {
                manifest.storage_classes.push(volumes::storage_class(&read(value)?));
                return Ok(());
            }
            "CSINode" => {
                manifest.node_drivers.push(volumes::node_drivers(&read(value)?));
                return Ok(());
            }
            "Service" => {
                manifest.services.push(services::read_service(value)?);
                return Ok(());
            }
            "PodDisruptionBudget" => {
                let budget = budget::convert_budget(&read(value)?).map_err(|problem| vec![problem])?;
                manifest.budgets.push(budget);
                return Ok(());
            }
            "PodGroup" => {
                let group = pod_groups::convert(&read(value)?).map_err(|problem| vec![problem])?;
                manifest.pod_groups.push(group);
                return Ok(());
            }
            "RuntimeClass" => {
                shared.admission.add_runtime_class(read(value)?);
                return Ok(());
            }
            "PriorityClass" => {
                shared.admission.add_priority_class(read(value)?);
                return Ok(());
            }
            "ResourceQuota" => {
                let notes = shared
                    .quotas
                    .add(&read(value)?)
                    .map_err(|error| vec![FieldProblem::new(error.path, error.cause, error.next_step)])?;
                manifest.notes.extend(notes.iter().map(|note| format!("{}: {note}", self.name())));
                return Ok(());
            }
            "LimitRange" => {
                shared.admission.add_limit_range(&read(value)?).map_err(|problem| vec![problem])?;
                return Ok(());
            }
            "NodePool" => {
                manifest.pools.push(pool::checked(&read(value)?)?);
                return Ok(());
            }
            "NodeClaim" => {
                manifest.claims.push(claim::convert(&read(value)?).map_err(|problem| vec![problem])?);
                return Ok(());
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
                return Ok(());
            }
        };
        self.add_pods(expansion, manifest, shared);
        Ok(())
    }

    fn add_pods(&self, mut expansion: Expansion, manifest: &mut Manifest, shared: &mut Shared) {
        let mut note = |note: &str| manifest.notes.push(format!("{}: {note}", self.name()));
        expansion.notes.iter().for_each(|said| note(said));
        if let Some(ignored) = duration::ignored_in(&self.value) {
            note(&format!("ignored {ignored}"));
        }
        manifest.workloads.extend(expansion.workload);
        // The output of a cluster contains both workloads and their pods.
        let had = shared.owned.take(&self.value, &mut expansion.pods);
        match (had, expansion.pods.len()) {
            (None, _) => {}
            (Some(_), 0) => note("what it controls is in the manifest and counts instead"),
            (Some(had), lacks) => {
                note(&format!("pods in the manifest: {had}; pods that it lacks, planned too: {lacks}"));
            }
        }
        if self.kind != "Pod" || !self.is_stored() {
            shared.quotas.hold_back(&mut expansion.pods).iter().for_each(|said| note(said));
        }
        if !expansion.pods.is_empty() {
            manifest.made_claims.extend(expansion.claims);
            manifest.pods.extend(expansion.pods);
        }
    }

    fn note_unread(&self, manifest: &mut Manifest) {
        let group = group(&self.api_version);
        let what = || format!("{} {} is not read", self.api_version, self.kind);
        let is_quiet = QUIET_GROUPS.contains(&group);
        let note = if self.kind == "CronJob" && group == "batch" {
            "it makes jobs by the clock and has no pods now".to_owned()
        } else if let Some(hint) = self.mistaken_kind() {
            format!("{}; {hint}", what())
        } else if group.is_empty() && self.kind != "PodTemplate" {
            if QUIET_KINDS.contains(&self.kind.as_str()) {
                return;
            }
            format!("{}, because there is no such kind; correct apiVersion or kind", what())
        } else if is_quiet {
            return;
        } else if group.starts_with("karpenter.") || group == "eks.amazonaws.com" {
            format!("{}; convert it with `poolwright convert`", what())
        } else {
            format!("{}; pods it may make are not planned", what())
        };
        manifest.notes.push(format!("{}: {note}", self.name()));
    }

    /// What the author of an unknown kind in a group of Kubernetes probably meant.
    fn mistaken_kind(&self) -> Option<String> {
        let own = group(&self.api_version);
        let is_kubernetes = own.is_empty() || WORKLOAD_GROUPS.contains(&own) || QUIET_GROUPS.contains(&own);
        if !is_kubernetes || (own.is_empty() && QUIET_KINDS.contains(&self.kind.as_str())) {
            return None;
        }
        let elsewhere = KINDS.iter().find(|(kind, ..)| *kind == self.kind);
        if let Some((kind, version, _)) = elsewhere {
            return Some(format!("{kind} belongs to {version}; correct apiVersion"));
        }
        let ours = KINDS.iter().filter(|(_, version, _)| group(version) == own).map(|(kind, ..)| *kind);
        let kind = meant(&self.kind, ours.chain((own == "batch").then_some("CronJob")))?;
        Some(format!("did you mean {kind}?"))
    }
}
