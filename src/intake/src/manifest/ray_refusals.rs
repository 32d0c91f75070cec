//! What `KubeRay` refuses of an object that no API server has stored: it makes no pods of such an object
//! (`ray-operator/controllers/ray/utils/validation.go` in ray-project/kuberay).

use poolwright_api::FieldProblem;
use serde_json::Value;

use super::names::items;
use super::refusals::Problems;

/// The most characters of the name of each kind, and where it has its cluster.
const KINDS: [(&str, usize, &str); 3] = [
    ("RayCluster", 53, "spec"),
    ("RayJob", 47, "spec.rayClusterSpec"),
    ("RayService", 47, "spec.rayClusterConfig"),
];

/// The parameters of `ray start` that say what a pod has.
const AMOUNTS: [&str; 4] = ["num-cpus", "num-gpus", "memory", "resources"];

/// Checks an object of Ray with a name.
pub(super) fn check(kind: &str, name: &str, spec: &Value) -> Problems {
    let mut problems = Vec::new();
    let Some((_, most, path)) = KINDS.iter().find(|(known, ..)| *known == kind) else { return problems };
    let mut refuse = |path: String, cause: &str, next: &str| {
        problems.push(FieldProblem::new(path, format!("KubeRay refuses {cause}"), next));
    };
    if name.len() > *most {
        let cause =
            format!("a name with {} characters, because {most} are the most for a {kind}", name.len());
        refuse("metadata.name".to_owned(), &cause, "shorten it");
    }
    let cluster = match kind {
        "RayJob" => &spec["rayClusterSpec"],
        "RayService" => &spec["rayClusterConfig"],
        _ => spec,
    };
    let head = [(format!("{path}.headGroupSpec"), &cluster["headGroupSpec"])];
    let workers = items(&cluster["workerGroupSpecs"]).iter().enumerate();
    let workers = workers.map(|(at, group)| (format!("{path}.workerGroupSpecs[{at}]"), group));
    for (path, group) in head.into_iter().chain(workers) {
        let (params, resources) = (&group["rayStartParams"], group["resources"].as_object());
        let has_amount =
            AMOUNTS.iter().any(|name| params[*name].as_str().is_some_and(|text| !text.is_empty()));
        if has_amount && resources.is_some_and(|resources| !resources.is_empty()) {
            refuse(
                format!("{path}.resources"),
                "it beside resources in rayStartParams",
                "remove one of them",
            );
        }
        if !params["labels"].is_null() {
            let next = "write the labels of the group instead";
            refuse(format!("{path}.rayStartParams.labels"), "labels there", next);
        }
        if cluster["enableInTreeAutoscaling"] == true && group["suspend"] == true {
            refuse(format!("{path}.suspend"), "it with the autoscaler", "remove one of them");
        }
    }
    if kind == "RayService" && cluster["headGroupSpec"]["headService"]["metadata"]["name"].is_string() {
        let path = format!("{path}.headGroupSpec.headService.metadata.name");
        refuse(path, "a name of the Service of the head in a RayService", "remove it");
    }
    let selector = spec["clusterSelector"].as_object().filter(|selector| !selector.is_empty());
    if let Some(selector) = selector.filter(|_| kind == "RayJob") {
        const CLUSTER: &str = "ray.io/cluster";
        if selector.get(CLUSTER).is_none_or(|cluster| *cluster == "") {
            let next = format!("add `{CLUSTER}` with the name of the cluster");
            refuse("spec.clusterSelector".to_owned(), "a selector that names no cluster", &next);
        }
        if spec["backoffLimit"].as_i64().is_some_and(|limit| limit > 0) {
            let next = "write 0, or remove it";
            refuse("spec.backoffLimit".to_owned(), "retries with clusterSelector", next);
        }
    }
    problems
}
