//! What an API server refuses of the names of new objects.

use poolwright_api::FieldProblem;
use poolwright_terms::foreign::is_hidden;
use serde_json::Value;

use super::objects::{Object, group, meta};
use super::refusals::Problems;
use super::texts::{RENDER, is_template};

/// Returns the items of a list; none if it is no list.
pub(super) fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// What a name must be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NameRule {
    /// A DNS subdomain (RFC 1123).
    Subdomain,
    /// A DNS label (RFC 1123).
    Label,
    /// A DNS label that begins with a letter (RFC 1035), because a Service has the name too.
    OfService,
}

impl NameRule {
    /// Returns the problem of a name at a path that is not of this form.
    pub fn broken_by(self, path: &str, name: &str) -> Option<FieldProblem> {
        let (most, next) = match self {
            Self::Subdomain => (
                253,
                "write lower-case letters, digits, `-` and `.`, with a letter or digit at both ends and beside each `.`",
            ),
            Self::Label => {
                (63, "write lower-case letters, digits and `-`, with a letter or digit at both ends")
            }
            Self::OfService => (
                63,
                "write lower-case letters, digits and `-`, with a letter at the start and a letter or digit at the end",
            ),
        };
        let is_right = match self {
            Self::Subdomain => name.split('.').all(is_part),
            Self::Label => is_part(name),
            Self::OfService => is_part(name) && name.starts_with(|first: char| first.is_ascii_lowercase()),
        };
        if !is_right {
            let next = if is_template(name) { RENDER } else { next };
            return Some(FieldProblem::new(path, format!("an API server refuses the name `{name}`"), next));
        }
        (name.len() > most).then(|| {
            let cause = format!("the name has {} characters, and {most} are the most", name.len());
            FieldProblem::new(path, cause, "shorten it")
        })
    }
}

/// The kinds of other projects that make Services with their names, in all versions (`NameIsDNS1035Label` and `IsDNS1035Label` in
/// their webhooks and operators).
const OF_SERVICES: [(&str, &str); 11] = [
    ("jobset.x-k8s.io", "JobSet"),
    ("kubeflow.org", "JAXJob"),
    ("kubeflow.org", "PaddleJob"),
    ("kubeflow.org", "PyTorchJob"),
    ("kubeflow.org", "TFJob"),
    ("kubeflow.org", "XGBoostJob"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
    ("ray.io", "RayCluster"),
    ("ray.io", "RayJob"),
    ("ray.io", "RayService"),
    ("trainer.kubeflow.org", "TrainJob"),
];

/// Returns whether a text is a part of a domain.
fn is_part(text: &str) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_end)
        && bytes.last().is_some_and(is_end)
        && bytes.iter().all(|byte| is_end(byte) || *byte == b'-')
}

impl Object {
    /// Returns what shows that no API server has stored the object, although it says so. Plans and explanations name objects.
    pub(super) fn misnamed_as_stored(&self) -> Problems {
        let is_wrong = |field: &&str| meta(&self.value, field).is_some_and(|name| name.contains(is_hidden));
        let problem = |field: &str| {
            let cause = "no API server stores a name with control characters or invisible ones";
            FieldProblem::new(
                format!("metadata.{field}"),
                cause,
                "write the file again with `kubectl get -o yaml`",
            )
        };
        let stored = ["name", "namespace"].into_iter().filter(|_| self.is_stored());
        stored.filter(is_wrong).map(problem).collect()
    }

    /// Returns what an API server refuses of the name and the namespace.
    pub(super) fn misnamed(&self) -> Problems {
        let rule = match (group(&self.api_version), self.kind.as_str()) {
            ("", "Namespace" | "Service") => NameRule::Label,
            ("kubeflow.org", "MPIJob") if self.api_version.ends_with("/v2beta1") => NameRule::OfService,
            (group, kind) if OF_SERVICES.contains(&(group, kind)) => NameRule::OfService,
            // Other kinds have rules of their own, such as `system:node` for a ClusterRole, and do not change a plan.
            _ if !self.is_read() && !self.makes_pods() => return Vec::new(),
            _ => NameRule::Subdomain,
        };
        let own = match meta(&self.value, "name") {
            Some(name) => rule.broken_by("metadata.name", name),
            // The API server adds letters and digits to the beginning.
            None => meta(&self.value, "generateName")
                .filter(|begin| rule.broken_by("", &format!("{begin}a")).is_some())
                .and_then(|begin| rule.broken_by("metadata.generateName", begin)),
        };
        let namespace = meta(&self.value, "namespace");
        let namespace = namespace.and_then(|name| NameRule::Label.broken_by("metadata.namespace", name));
        own.into_iter().chain(namespace).collect()
    }
}
