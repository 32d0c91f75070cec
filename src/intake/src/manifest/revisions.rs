//! Revisions of StatefulSets: the template of the pods below a partition.

use std::collections::BTreeMap;

use serde_json::Value;

use super::objects::Object;
use crate::workload::OldTemplate;

impl Object {
    /// Returns the template that the pods of a StatefulSet below its partition get: that of `status.currentRevision`
    /// (`newVersionedStatefulSetPod` in Kubernetes). `revisions` are the templates of ControllerRevisions, by namespace and name.
    pub(super) fn old_template(&self, revisions: &BTreeMap<(String, String), Value>) -> OldTemplate {
        let known = self.replaced.as_ref().unwrap_or(&self.value);
        let revision = |field: &str| known["status"][field].as_str().filter(|name| !name.is_empty());
        let Some(current) = revision("currentRevision") else { return OldTemplate::Same };
        // Without an update on its way, the stored spec is the current revision.
        if revision("updateRevision").is_none_or(|update| update == current) {
            return match &self.replaced {
                Some(stored) => OldTemplate::Known(stored["spec"]["template"].clone()),
                None => OldTemplate::Same,
            };
        }
        match revisions.get(&(self.namespace().to_owned(), current.to_owned())) {
            Some(template) if template.is_object() => OldTemplate::Known(template.clone()),
            _ => OldTemplate::Unknown(current.to_owned()),
        }
    }
}
