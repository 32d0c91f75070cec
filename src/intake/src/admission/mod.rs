//! Admission: what an API server writes into pods before it stores them, and what it refuses.
//!
//! Pods of a cluster went through admission. Pods of files, and the templates of workloads and DaemonSets, did not: without this
//! they would lack the overhead of their runtime, the default requests of their namespace and their priority.

mod defaults;
mod limit_range;
mod limit_range_rules;
mod namespace;
mod priority;
mod quota;
mod quota_rules;
mod resources;
mod runtime_class;
mod usage;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::core::v1::{self as k8s, PodSpec};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use poolwright_api::FieldProblem;
use poolwright_catalog::quantity;
use poolwright_core::DaemonSet;
use serde::Deserialize;
use serde_json::Value;

use crate::convert::readable;
use crate::daemonset::daemonset;
use crate::error::IntakeError;
use crate::others;
use crate::requests::fill_in_whole;
use limit_range::LimitRange;
use namespace::NamespaceDefaults;
pub(crate) use priority::built_in;
use quota::QuotaDemands;
pub(crate) use quota::{OverQuota, Quotas};
use resources::Defaults;
pub(crate) use usage::Usage;

/// The objects that admission follows.
#[derive(Default)]
pub struct Admission {
    runtime_classes: BTreeMap<String, RuntimeClass>,
    priority_classes: BTreeMap<String, PriorityClass>,
    /// By namespace and name.
    limit_ranges: BTreeMap<(String, String), LimitRange>,
    namespaces: BTreeMap<String, NamespaceDefaults>,
    quotas: Vec<QuotaDemands>,
    /// The names of objects that are left out, because they cannot be read: `PriorityClass high`.
    lost: BTreeSet<String>,
}

impl Admission {
    /// The kinds of the objects that decide about others.
    pub(crate) const KINDS: [&str; 5] =
        ["RuntimeClass", "PriorityClass", "LimitRange", "ResourceQuota", "Namespace"];

    /// Adds what a namespace adds to its pods. Returns a note if it adds something.
    ///
    /// Errors: each annotation that admission cannot read.
    pub fn add_namespace(&mut self, from: &k8s::Namespace) -> Result<Option<String>, Vec<FieldProblem>> {
        let Some(defaults) = NamespaceDefaults::of(from)? else { return Ok(None) };
        let note = defaults.note();
        self.namespaces.insert(from.metadata.name.clone().unwrap_or_default(), defaults);
        Ok(Some(note))
    }

    /// Adds what a quota demands that each container states.
    pub(crate) fn add_quota(&mut self, from: &k8s::ResourceQuota) {
        self.quotas.extend(QuotaDemands::of(from));
    }

    /// Adds a RuntimeClass.
    pub fn add_runtime_class(&mut self, class: RuntimeClass) {
        self.runtime_classes.insert(class.metadata.name.clone().unwrap_or_default(), class);
    }

    /// Adds a RuntimeClass without the amounts that cannot be read: they are its problem, not that of its pods.
    ///
    /// Errors: these amounts.
    pub(crate) fn add_readable_runtime_class(
        &mut self,
        mut class: RuntimeClass,
    ) -> Result<(), Vec<FieldProblem>> {
        let fixed = class.overhead.as_mut().and_then(|overhead| overhead.pod_fixed.as_mut());
        let problems = readable("overhead.podFixed", fixed.as_deref()).1;
        if let Some(fixed) = fixed {
            fixed.retain(|name, text| quantity::amount(name, &text.0).is_ok());
        }
        self.add_runtime_class(class);
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Takes note that an object is left out, because it cannot be read: `PriorityClass high`.
    pub(crate) fn lose(&mut self, name: String) {
        self.lost.insert(name);
    }

    /// Adds a PriorityClass.
    pub fn add_priority_class(&mut self, class: PriorityClass) {
        self.priority_classes.insert(class.metadata.name.clone().unwrap_or_default(), class);
    }

    /// Adds a LimitRange.
    ///
    /// Errors: each quantity and each contradiction between quantities that an API server would refuse. Then it is not added.
    pub fn add_limit_range(&mut self, range: &k8s::LimitRange) -> Result<(), Vec<FieldProblem>> {
        let (key, (read, problems)) = read_limit_range(range);
        if problems.is_empty() {
            self.limit_ranges.insert(key, read);
            return Ok(());
        }
        Err(problems)
    }

    /// Adds what can be read of a LimitRange, so that pods are judged by it, too. Errors: as [`Self::add_limit_range`].
    pub(crate) fn add_readable_limit_range(
        &mut self,
        range: &k8s::LimitRange,
    ) -> Result<(), Vec<FieldProblem>> {
        let (key, (read, problems)) = read_limit_range(range);
        self.limit_ranges.insert(key, read);
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Converts a DaemonSet with what admission adds to its pods. Its pods that the API server would refuse count too: that of
    /// another version of a LimitRange may be there.
    ///
    /// Errors: as [`daemonset`].
    pub fn daemonset(&self, from: &apps::DaemonSet) -> Result<DaemonSet, IntakeError> {
        let mut from = from.clone();
        let namespace = from.metadata.namespace.clone();
        if let Some(spec) = from.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()) {
            self.fill_in(namespace.as_deref(), spec);
        }
        daemonset(&from)
    }

    /// Writes into the spec of a pod of a template what admission adds. What it would refuse stays as it is.
    pub(crate) fn fill_in(&self, namespace: Option<&str>, spec: &mut PodSpec) {
        drop(self.admit("", namespace, spec));
    }

    /// Does the same for a spec as JSON. A spec that cannot be read stays as it is.
    pub fn fill_in_json(&self, namespace: Option<&str>, spec: &mut Value) {
        let adds = !self.limit_ranges.is_empty() || !self.namespaces.is_empty();
        if !adds && self.runtime_classes.is_empty() && self.priority_classes.is_empty() {
            return;
        }
        let Ok(mut read) = serde_json::from_value::<PodSpec>(spec.clone()) else { return };
        self.fill_in(namespace, &mut read);
        if let Ok(filled) = serde_json::to_value(read) {
            *spec = filled;
        }
    }

    /// Reads the objects that admission follows from these. Those that cannot be read, and all others, are left out.
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut admission = Self::default();
        for object in objects {
            match object["kind"].as_str() {
                Some("LimitRange") => {
                    let range = k8s::LimitRange::deserialize(object).ok();
                    range.and_then(|range| admission.add_limit_range(&range).ok());
                }
                Some("RuntimeClass") => {
                    if let Ok(class) = RuntimeClass::deserialize(object) {
                        admission.add_runtime_class(class);
                    }
                }
                Some("PriorityClass") => {
                    if let Ok(class) = PriorityClass::deserialize(object) {
                        admission.add_priority_class(class);
                    }
                }
                Some("Namespace") => {
                    let namespace = k8s::Namespace::deserialize(object).ok();
                    namespace.and_then(|namespace| admission.add_namespace(&namespace).ok());
                }
                _ => {}
            }
        }
        admission
    }

    /// Changes the spec of a new pod as admission would. `path` is the path of the spec. Returns notes about classes that are not
    /// among the manifests.
    ///
    /// Errors: everything for which an API server would refuse the pod.
    pub(crate) fn admit(
        &self,
        path: &str,
        namespace: Option<&str>,
        spec: &mut PodSpec,
    ) -> Result<Vec<String>, Vec<FieldProblem>> {
        // An API server does this when it reads the pod, before its admission plugins see it.
        fill_in_whole(spec);
        let mut defaults = Defaults::default();
        for (_, range) in self.in_namespace(namespace) {
            range.fill_in(spec, &mut defaults);
        }
        let mut problems = resources::check(path, spec, &defaults);
        problems.extend(readable(&format!("{path}.overhead"), spec.overhead.as_ref()).1);
        problems.extend(others::host_ports(path, spec).1);
        let mut notes = Vec::new();
        let mut keep = |result: Result<Option<String>, FieldProblem>| match result {
            Ok(note) => notes.extend(note),
            Err(problem) => problems.push(problem),
        };
        keep(priority::admit(path, spec, &self.priority_classes, &self.lost));
        keep(runtime_class::admit(path, spec, &self.runtime_classes, &self.lost));
        if let Some(of) = self.namespaces.get(&namespace_of(namespace)) {
            keep(of.admit(path, spec).map(|()| None));
        }
        for (_, range) in self.in_namespace(namespace) {
            problems.extend(range.refusals(path, spec));
        }
        for (at, volume) in spec.volumes.iter().flatten().enumerate() {
            let template = volume.ephemeral.as_ref().and_then(|own| own.volume_claim_template.as_ref());
            let Some(template) = template else { continue };
            let path = format!("{path}.volumes[{at}].ephemeral.volumeClaimTemplate.spec");
            let claim =
                k8s::PersistentVolumeClaim { spec: Some(template.spec.clone()), ..Default::default() };
            problems.extend(self.check_claim(&path, namespace, &claim).err().into_iter().flatten());
        }
        problems.extend(
            self.quotas
                .iter()
                .filter(|quota| quota.namespace == namespace_of(namespace))
                .flat_map(|quota| quota.refusals(path, spec)),
        );
        if problems.is_empty() { Ok(notes) } else { Err(problems) }
    }

    /// Checks a new PersistentVolumeClaim. `path` is the path of its spec.
    ///
    /// Errors: a size that a LimitRange refuses.
    pub(crate) fn check_claim(
        &self,
        path: &str,
        namespace: Option<&str>,
        claim: &k8s::PersistentVolumeClaim,
    ) -> Result<(), Vec<FieldProblem>> {
        let ranges = self.in_namespace(namespace);
        let problems: Vec<FieldProblem> =
            ranges.flat_map(|(_, range)| range.refusals_of_claim(path, claim)).collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    fn in_namespace<'a>(
        &'a self,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = (&'a (String, String), &'a LimitRange)> {
        let wanted = namespace_of(namespace);
        self.limit_ranges.iter().filter(move |((namespace, _), _)| *namespace == wanted)
    }
}

/// Reads a LimitRange: its namespace and name, what can be read of it, and its problems.
fn read_limit_range(range: &k8s::LimitRange) -> ((String, String), (LimitRange, Vec<FieldProblem>)) {
    let name = range.metadata.name.clone().unwrap_or_default();
    let read = limit_range::read(&name, range);
    ((namespace_of(range.metadata.namespace.as_deref()), name), read)
}

/// Returns whether no API server has stored an object: it then has neither a UID nor a version.
fn is_new(meta: &ObjectMeta) -> bool {
    let says = |text: Option<&String>| text.is_some_and(|text| !text.is_empty());
    !says(meta.uid.as_ref()) && !says(meta.resource_version.as_ref())
}

fn namespace_of(written: Option<&str>) -> String {
    written.filter(|namespace| !namespace.is_empty()).unwrap_or("default").to_owned()
}

/// Returns where a class is that is not known, and what to do about it.
fn whereabouts(class: &str, lost: &BTreeSet<String>) -> (&'static str, &'static str) {
    if lost.contains(class) {
        ("is left out, because it cannot be read", "correct it")
    } else {
        ("is not among the manifests", "add it to the files")
    }
}
