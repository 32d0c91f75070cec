//! The message about an object that is not in the input, with the names that the user may have meant.

use std::collections::BTreeSet;

use poolwright_api::meant;

use super::{Input, PodNames};
use crate::args::Explainable;
use crate::market::some;

/// The most notes on the input that an explanation repeats.
const NOTES: usize = 4;

/// The most pods that are suggested.
const SUGGESTED: usize = 3;

/// How a note about a controller begins whose pods the API server refuses.
const REFUSES: &str = "the API server refuses more of its pods";

/// The origin of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The current cluster.
    Cluster,
    /// Manifests.
    Files,
    /// A trace.
    Trace,
}

impl Input {
    /// Says that there is no object with this name, and what to write instead.
    pub fn no_such(&self, kind: Explainable, name: &str) -> String {
        let (what, list) = match kind {
            Explainable::Pod => ("pod", "kubectl get pods -A"),
            Explainable::Node => ("node", "kubectl get nodes"),
            Explainable::Claim => ("claim", "kubectl get nodeclaims"),
            Explainable::Pool => ("pool", "kubectl get nodepools"),
        };
        let (place, they_have) = match self.origin {
            Origin::Cluster => ("the cluster has", "it has"),
            Origin::Files => ("the files have", "they have"),
            Origin::Trace => ("the trace has", "it has"),
        };
        let known = self.names_of(kind);
        let next = if known.is_empty() {
            format!("{they_have} none")
        } else if kind == Explainable::Pod {
            match near(name, &known).as_slice() {
                [] if self.names == PodNames::Bare => "write a name of its column `name`".to_owned(),
                [] => "write NAMESPACE/NAME, or add -n NAMESPACE".to_owned(),
                near => format!("did you mean {}?", near.join(" or ")),
            }
        } else if self.origin == Origin::Cluster {
            match meant(name, known.iter().map(String::as_str)) {
                Some(known) => format!("did you mean {known}?"),
                None => format!("`{list}` lists them"),
            }
        } else {
            format!("{they_have} {}", some(&known.iter().map(String::as_str).collect()))
        };
        let is_it = |note: &&String| kind == Explainable::Pod && is_held_back(note, name);
        if let Some(note) = self.notes.iter().find(is_it) {
            return format!("{place} no {what} `{name}`: {note}");
        }
        // It may be there, and unreadable.
        if let Some(note) = self.notes.iter().find(|note| self.is_named(note, kind, name)) {
            return format!("{place} no readable {what} `{name}`: {note}");
        }
        let is_bare = kind == Explainable::Pod && self.names == PodNames::Qualified && !name.contains('/');
        let searched = if is_bare { format!(" in the namespace {}", self.namespace) } else { String::new() };
        format!("{place} no {what} `{name}`{searched}; {next}")
    }

    /// Returns the notes on the input that may change the answer about an object: those that name it, or its pods, and then a
    /// few others.
    pub fn notes_about(&self, kind: Explainable, name: &str) -> Vec<String> {
        let (named, others): (Vec<&String>, Vec<&String>) =
            self.notes.iter().partition(|note| self.is_named(note, kind, name));
        // Where the pods of a controller come from changes no answer.
        let others = others.into_iter().filter(|note| !note.contains("in the manifest"));
        let all: Vec<&String> = named.into_iter().chain(others).collect();
        let more = all.len().saturating_sub(NOTES);
        let more =
            (more > 0).then(|| format!("the input has {more} more notes; `poolwright plan` prints them"));
        all.into_iter().take(NOTES).cloned().chain(more).collect()
    }

    /// Returns whether a note names an object, or a pod on a node.
    fn is_named(&self, note: &str, kind: Explainable, name: &str) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        let names = |name: &str| note.split(|c| !is_part(c)).any(|word| word.trim_end_matches('.') == name);
        let bare = name.rsplit_once('/').map_or(name, |(_, bare)| bare);
        let there = self.snapshot.pods.on_node(name).filter(|_| kind == Explainable::Node);
        names(bare) || there.iter().flat_map(|there| &there.pods).any(|pod| names(&pod.key.name()))
    }

    /// Returns the names of all objects of a kind, as the user writes them.
    fn names_of(&self, kind: Explainable) -> BTreeSet<String> {
        let snapshot = &self.snapshot;
        match kind {
            Explainable::Pod if self.names == PodNames::Bare => {
                snapshot.pods.keys().map(|key| key.name().into_owned()).collect()
            }
            Explainable::Pod => snapshot.pods.keys().map(ToString::to_string).collect(),
            Explainable::Node => snapshot.nodes.keys().cloned().collect(),
            Explainable::Claim => snapshot.claims.keys().map(ToString::to_string).collect(),
            Explainable::Pool => {
                let written = snapshot.pools.values().filter(|pool| !pool.is_implicit);
                written.map(|pool| pool.name.to_string()).collect()
            }
        }
    }
}

/// Returns pods with a similar name, in any namespace: a misspelt one, or one that begins with the name of its workload.
fn near<'k>(name: &str, known: &'k BTreeSet<String>) -> Vec<&'k str> {
    fn bare(name: &str) -> &str {
        name.rsplit_once('/').map_or(name, |(_, bare)| bare)
    }
    let wanted = bare(name);
    let is_near = |one: &&str| bare(one).starts_with(wanted) || meant(wanted, [bare(one)]).is_some();
    known.iter().map(String::as_str).filter(is_near).take(SUGGESTED).collect()
}

/// Returns whether a note says that pods of a controller cannot be created, and a pod is named after it.
fn is_held_back(note: &str, pod: &str) -> bool {
    let Some((object, why)) = note.split_once(": ") else { return false };
    let Some((kind, controller)) = object.split_once(' ') else { return false };
    let (namespace, controller) = controller.rsplit_once('/').unwrap_or(("", controller));
    let (of, pod) = pod.rsplit_once('/').unwrap_or((namespace, pod));
    if of != namespace {
        return false;
    }
    if why.starts_with(REFUSES) {
        // The user cannot know the names of pods that do not exist, so he may write that of their Deployment.
        let owner = controller.rsplit_once('-').filter(|_| kind == "ReplicaSet").map(|(owner, _)| owner);
        let rest = pod.strip_prefix(controller);
        return owner == Some(pod) || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    }
    let number = pod.strip_prefix(controller).and_then(|rest| rest.strip_prefix('-'));
    why.contains("cannot be created")
        && number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_a_quota_does_not_allow_is_known_by_the_note_of_its_controller() {
        let note = "Deployment default/web: 2 of its 5 pods cannot be created and are not planned, because";
        assert!(is_held_back(note, "default/web-4") && is_held_back(note, "web-4"));
        assert!(!is_held_back(note, "default/api-4") && !is_held_back(note, "default/web-x"));
        assert!(!is_held_back(note, "other/web-4"));
        assert!(!is_held_back("Deployment default/web: it is paused", "default/web-4"));
    }

    #[test]
    fn a_pod_that_the_api_server_refuses_is_known_by_its_name_and_by_those_of_its_controllers() {
        let set = format!("ReplicaSet ml/web-5d4: {REFUSES} (ReplicaFailure: exceeded quota: team)");
        for pod in ["ml/web-5d4-x7k2p", "web-5d4-x7k2p", "web-5d4", "ml/web"] {
            assert!(is_held_back(&set, pod), "{pod}");
        }
        for pod in ["ml/web-6e5-x7k2p", "shop/web-5d4-x7k2p", "ml/web-5d42", "ml/we"] {
            assert!(!is_held_back(&set, pod), "{pod}");
        }
        let job = format!("Job ml/train-1: {REFUSES} (FailedCreate: exceeded quota: team)");
        assert!(
            is_held_back(&job, "train-1-8xq2m") && !is_held_back(&job, "train"),
            "a Job has no other controller"
        );
    }

    #[test]
    fn pods_of_a_workload_in_another_namespace_and_misspelt_pods_are_near() {
        let known = ["ml/train-0", "ml/train-1", "shop/web-0"].map(str::to_owned).into();
        assert_eq!(near("train", &known), ["ml/train-0", "ml/train-1"]);
        assert_eq!(near("ml/web-0", &known), ["shop/web-0"]);
        assert_eq!(near("shop/wbe-0", &known), ["shop/web-0"]);
        assert!(near("nobody", &known).is_empty());
    }
}
