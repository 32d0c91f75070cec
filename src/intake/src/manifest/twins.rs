//! Parts of one new object that need different names, because the names of their pods begin with them.

use std::collections::BTreeSet;

use poolwright_api::FieldProblem;

use super::names::items;
use super::objects::{Object, group};
use super::refusals::Problems;

/// The lists of such parts: group and kind, path, field with the name, and what the parts are.
const LISTS: [(&str, &str, &str, &str, &str); 5] = [
    ("jobset.x-k8s.io", "JobSet", "spec.replicatedJobs", "name", "job"),
    ("batch.volcano.sh", "Job", "spec.tasks", "name", "task"),
    ("ray.io", "RayCluster", "spec.workerGroupSpecs", "groupName", "worker group"),
    ("ray.io", "RayJob", "spec.rayClusterSpec.workerGroupSpecs", "groupName", "worker group"),
    ("ray.io", "RayService", "spec.rayClusterConfig.workerGroupSpecs", "groupName", "worker group"),
];

impl Object {
    /// Returns a problem for each part with the name of another. An object that an API server has stored has none.
    pub(super) fn twins(&self) -> Problems {
        let own = (group(&self.api_version), self.kind.as_str());
        let list = LISTS.iter().find(|(of, kind, ..)| (*of, *kind) == own).filter(|_| !self.is_stored());
        let Some((_, _, path, field, what)) = list else { return Vec::new() };
        let parts = path.split('.').fold(&self.value, |value, field| &value[field]);
        let (mut seen, mut problems) = (BTreeSet::new(), Vec::new());
        for (at, part) in items(parts).iter().enumerate() {
            if let Some(name) = part[*field].as_str().filter(|name| !name.is_empty() && !seen.insert(*name)) {
                let cause = format!("another {what} has the name {name}");
                problems.push(FieldProblem::new(format!("{path}[{at}].{field}"), cause, "rename one"));
            }
        }
        problems
    }
}
