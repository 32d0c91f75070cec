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
    /// Their whole names, as in [`Manifest::pods`](super::Manifest::pods).
    pub pods: Vec<String>,
}

impl Object {
    /// Returns the pods that the object lacks, in the order of their names.
    pub(super) fn missing(&self, pods: &[Made]) -> Vec<MissingPods> {
        if self.kind == "Pod" {
            return Vec::new();
        }
        let mut all: Vec<MissingPods> = Vec::new();
        for made in pods {
            let pod = made.pod.key.name().into_owned();
            let name = pod.rsplit_once('-').map_or(&*pod, |(begin, _)| begin).to_owned();
            if let Some(last) = all.last_mut().filter(|last| last.name == name) {
                last.pods.push(pod);
                continue;
            }
            let controller = meta(&self.value, "name").unwrap_or_default();
            all.push(MissingPods {
                kind: self.kind.clone(),
                namespace: self.namespace().to_owned(),
                controller: controller.to_owned(),
                name,
                pods: vec![pod],
            });
        }
        all
    }
}
