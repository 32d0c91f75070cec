//! The most that all files together may ask for. More would end in a lack of memory, where nothing says why.

use poolwright_api::FieldProblem;
use poolwright_core::{Pod, PodPhase};

use super::objects::Object;
use crate::error::{IntakeError, OfObject};
use crate::template::MAX_PODS;

/// The most that is read. A cluster of 5,000 nodes with 50,000 pods has far fewer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The most objects.
    pub objects: usize,
    /// The most pods that wait for a node, with those of controllers.
    pub pods: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { objects: 200_000, pods: usize::try_from(MAX_PODS).unwrap_or(usize::MAX) }
    }
}

impl Limits {
    /// Says which file has the first object that is too many.
    pub fn too_many_objects(self, file: &str) -> IntakeError {
        let cause = format!("up to this file there are more than {} objects in all", self.objects);
        let next = "name fewer files, or leave out what the plan does not need, such as old events";
        IntakeError { file: Some(file.to_owned()), ..FieldProblem::new("", cause, next).of(String::new()) }
    }

    /// Says which object has the first pod that is too many.
    pub fn too_many_pods(self, object: &Object) -> IntakeError {
        let cause = format!("with its pods, more than {} pods in all wait for a node", self.pods);
        let next = "check the numbers of pods, or name fewer files at a time";
        IntakeError {
            file: Some(object.file.clone()),
            ..FieldProblem::new("", cause, next).of(object.name())
        }
    }
}

/// Returns how many of these pods wait for a node.
pub(super) fn waiting(pods: &[Pod]) -> usize {
    let has_place = |pod: &&Pod| matches!(pod.phase, PodPhase::Bound { .. } | PodPhase::Finished);
    pods.iter().filter(|pod| !has_place(pod)).count()
}

#[cfg(test)]
mod tests {
    use super::super::read_within;
    use super::*;

    const FEW: Limits = Limits { objects: 3, pods: 4 };

    fn pod(name: &str, node: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{nodeName: {node:?}, containers: [{{image: x, name: a}}]}}\n---\n"
        )
    }

    fn deployment(name: &str, replicas: usize) -> String {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: {replicas}\n  selector: {{matchLabels: \
             {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec: {{containers: [{{name: a, image: a}}]}}\n---\n"
        )
    }

    /// Returns how many pods are read, and what is wrong.
    fn read(files: &[(&str, String)]) -> (usize, Vec<String>) {
        let files = files.iter().map(|(name, text)| (*name, text.as_str()));
        let (manifest, errors) = read_within(files, &[], FEW);
        (manifest.pods.len(), errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_file_with_one_object_too_many_over_all_files_is_named_before_objects_are_read() {
        let pods = |names: [&str; 2]| names.map(|name| pod(name, "n")).concat();
        let (read, errors) = read(&[("a.yaml", pods(["p", "q"])), ("b.yaml", pods(["r", "s"]))]);
        assert_eq!(read, 0);
        let said = "b.yaml: up to this file there are more than 3 objects in all; name fewer files, or leave out what the plan does not \
                    need, such as old events";
        assert_eq!(errors, [said]);
    }

    #[test]
    fn the_object_with_one_waiting_pod_too_many_over_all_files_is_named_and_pods_with_a_node_do_not_count() {
        let bound = || ("c.yaml", pod("p", "n"));
        assert_eq!(read(&[bound(), ("a.yaml", deployment("a", 4))]), (5, Vec::new()));
        let (_, errors) = read(&[bound(), ("a.yaml", deployment("a", 2)), ("b.yaml", deployment("b", 3))]);
        let said = "b.yaml: Deployment default/b: with its pods, more than 4 pods in all wait for a node; check the numbers of pods, or \
                    name fewer files at a time";
        assert_eq!(errors, [said]);
    }
}
