//! The pods that controllers of a manifest lack.

use super::objects::{Object, meta};
use crate::template::Made;

/// Equal pods that a controller lacks. A plan adds them to those that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPods {
    /// The kind of the controller.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub controller: String,
    /// The names of the pods, without the numbers at their ends.
    pub name: String,
    /// How many.
    pub count: usize,
}

impl Object {
    /// Returns the pods that the object lacks, in the order of their names.
    pub(super) fn missing(&self, pods: &[Made]) -> Vec<MissingPods> {
        if self.kind == "Pod" {
            return Vec::new();
        }
        let mut all: Vec<MissingPods> = Vec::new();
        for made in pods {
            let name = made.pod.key.name();
            let name = name.rsplit_once('-').map_or(&*name, |(begin, _)| begin);
            if let Some(last) = all.last_mut().filter(|last| last.name == name) {
                last.count += 1;
                continue;
            }
            let controller = meta(&self.value, "name").unwrap_or_default();
            all.push(MissingPods {
                kind: self.kind.clone(),
                namespace: self.namespace().to_owned(),
                controller: controller.to_owned(),
                name: name.to_owned(),
                count: 1,
            });
        }
        all
    }
}
