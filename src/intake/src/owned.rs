//! What the controllers of a manifest have already: of the pods that a controller makes, those that are in the manifest are not
//! planned a second time, and those that it lacks are.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_core::Pod;
use serde_json::Value;

/// The objects of a manifest that have a controller.
#[derive(Default)]
pub(crate) struct Owned {
    by_owner: BTreeMap<Owner, Vec<Child>>,
    /// Owners of pods that may not be in the manifest, by namespace.
    owners_of_pods: BTreeMap<String, BTreeSet<Owner>>,
    uids: BTreeSet<String>,
}

/// A controller, by its reference in what it controls.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Owner {
    uid: String,
    kind: String,
    name: String,
}

struct Child {
    kind: String,
    name: String,
    /// Whether it has not ended and is not being deleted.
    lives: bool,
}

impl Owned {
    /// Reads the controllers of these objects.
    pub fn of<'a>(objects: impl Iterator<Item = &'a Value>) -> Self {
        let mut owned = Self::default();
        for object in objects {
            let meta = &object["metadata"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            owned.uids.extend(meta["uid"].as_str().map(str::to_owned));
            let references = meta["ownerReferences"].as_array();
            let controller = references.into_iter().flatten().find(|one| one["controller"] == true);
            let Some(controller) = controller else { continue };
            let owner = Owner {
                uid: text(&controller["uid"]),
                kind: text(&controller["kind"]),
                name: text(&controller["name"]),
            };
            let kind = text(&object["kind"]);
            if kind == "Pod" {
                owned.owners_of_pods.entry(namespace(meta)).or_default().insert(owner.clone());
            }
            let ended = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
            let lives = !ended && meta["deletionTimestamp"].is_null();
            owned.by_owner.entry(owner).or_default().push(Child { kind, name: text(&meta["name"]), lives });
        }
        owned
    }

    /// Removes the pods that a controller has already from those that it makes, and returns their number; `None` if the manifest
    /// has nothing of the controller.
    pub fn take(&self, controller: &Value, made: &mut Vec<Pod>) -> Option<usize> {
        let uid = controller["metadata"]["uid"].as_str()?;
        let children: Vec<&Child> =
            self.by_owner.iter().filter(|(owner, _)| owner.uid == uid).flat_map(|(_, all)| all).collect();
        let living: BTreeSet<&str> =
            children.iter().filter(|child| child.lives).map(|child| child.name.as_str()).collect();
        let name = controller["metadata"]["name"].as_str().unwrap_or_default();
        let before = made.len();
        match controller["kind"].as_str() {
            // A pod that has failed or is being deleted still has the name that its successor will get.
            Some("StatefulSet") => {
                let names: BTreeSet<&str> = children.iter().map(|child| child.name.as_str()).collect();
                made.retain(|pod| !names.contains(&*pod.key.name()));
            }
            // Its ReplicaSets make the pods, and are read themselves.
            Some("Deployment") if children.iter().any(|child| child.kind == "ReplicaSet") => made.clear(),
            Some("Deployment") => {
                let has = self.pods_of_missing(controller, |owner| {
                    let hash = owner.name.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
                    owner.kind == "ReplicaSet" && hash.is_some_and(|hash| !hash.contains('-'))
                });
                made.drain(..has.min(made.len()));
                (has > 0).then_some(())?;
            }
            Some("JobSet") => {
                let jobs: BTreeSet<&str> = children.iter().map(|child| child.name.as_str()).collect();
                let mut left: BTreeMap<String, usize> = BTreeMap::new();
                made.retain(|pod| {
                    let name = pod.key.name().into_owned();
                    let Some((job, _)) = name.rsplit_once('-') else { return true };
                    if jobs.contains(job) {
                        return false;
                    }
                    let has = left.entry(job.to_owned()).or_insert_with(|| {
                        self.pods_of_missing(controller, |owner| owner.kind == "Job" && owner.name == job)
                    });
                    let is_there = *has > 0;
                    *has = has.saturating_sub(1);
                    !is_there
                });
                (made.len() < before).then_some(())?;
            }
            _ => drop(made.drain(..living.len().min(made.len()))),
        }
        let knows = !children.is_empty() || made.len() < before;
        knows.then(|| before - made.len())
    }

    /// Returns how many pods live whose controller is not in the manifest and is one of these, in the namespace of an object.
    fn pods_of_missing(&self, object: &Value, is_wanted: impl Fn(&Owner) -> bool) -> usize {
        let owners = self.owners_of_pods.get(&namespace(&object["metadata"])).into_iter().flatten();
        let wanted = owners.filter(|owner| !self.uids.contains(&owner.uid) && is_wanted(owner));
        let children = wanted.filter_map(|owner| self.by_owner.get(owner)).flatten();
        children.filter(|child| child.kind == "Pod" && child.lives).count()
    }
}

fn namespace(meta: &Value) -> String {
    meta["namespace"].as_str().filter(|name| !name.is_empty()).unwrap_or("default").to_owned()
}
