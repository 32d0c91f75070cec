//! Admission: what an API server writes into pods before it stores them, and what it refuses.
//!
//! Pods of a cluster went through admission. Pods of files, and the templates of workloads and DaemonSets, did not: without this
//! they would lack the overhead of their runtime, the default requests of their namespace and their priority.

mod limit_range;
mod priority;
mod quota;
mod resources;
mod runtime_class;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{self as k8s, PodSpec};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use poolwright_api::FieldProblem;

use limit_range::LimitRange;
pub(crate) use priority::built_in;
pub(crate) use quota::Quotas;

/// The objects that admission follows.
#[derive(Default)]
pub(crate) struct Admission {
    runtime_classes: BTreeMap<String, RuntimeClass>,
    priority_classes: BTreeMap<String, PriorityClass>,
    /// By namespace and name.
    limit_ranges: BTreeMap<(String, String), LimitRange>,
}

impl Admission {
    /// The kinds of the objects that decide about others.
    pub const KINDS: [&str; 4] = ["RuntimeClass", "PriorityClass", "LimitRange", "ResourceQuota"];

    pub fn add_runtime_class(&mut self, class: RuntimeClass) {
        self.runtime_classes.insert(class.metadata.name.clone().unwrap_or_default(), class);
    }

    pub fn add_priority_class(&mut self, class: PriorityClass) {
        self.priority_classes.insert(class.metadata.name.clone().unwrap_or_default(), class);
    }

    /// Adds a LimitRange.
    ///
    /// Errors: a quantity that an API server would refuse.
    pub fn add_limit_range(&mut self, range: &k8s::LimitRange) -> Result<(), FieldProblem> {
        let name = range.metadata.name.clone().unwrap_or_default();
        let namespace = namespace_of(range.metadata.namespace.as_deref());
        self.limit_ranges.insert((namespace, name.clone()), limit_range::read(&name, range)?);
        Ok(())
    }

    /// Changes the spec of a new pod as admission would. `path` is the path of the spec. Returns notes about classes that are not
    /// among the manifests.
    ///
    /// Errors: everything for which an API server would refuse the pod.
    pub fn admit(
        &self,
        path: &str,
        namespace: Option<&str>,
        spec: &mut PodSpec,
    ) -> Result<Vec<String>, Vec<FieldProblem>> {
        for (_, range) in self.in_namespace(namespace) {
            range.fill_in(spec);
        }
        resources::check(path, spec)?;
        let mut notes = Vec::new();
        notes.extend(priority::admit(path, spec, &self.priority_classes).map_err(one)?);
        notes.extend(runtime_class::admit(path, spec, &self.runtime_classes).map_err(one)?);
        let mut problems = Vec::new();
        for (_, range) in self.in_namespace(namespace) {
            problems.extend(range.refusals(path, spec));
        }
        if problems.is_empty() { Ok(notes) } else { Err(problems) }
    }

    /// Checks a new PersistentVolumeClaim. `path` is the path of its spec.
    ///
    /// Errors: a size that a LimitRange refuses.
    pub fn check_claim(
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

fn namespace_of(written: Option<&str>) -> String {
    written.filter(|namespace| !namespace.is_empty()).unwrap_or("default").to_owned()
}

fn one(problem: FieldProblem) -> Vec<FieldProblem> {
    vec![problem]
}
