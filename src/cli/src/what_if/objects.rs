//! Changes of objects before they are read: added, replaced, removed, and scaled.

#[cfg(test)]
mod tests;

use poolwright_intake::manifest;
use poolwright_terms::API_VERSION;
use serde_json::{Value, json};

use super::owned::{Id, is_of_cluster};
use crate::args::{Named, Replicas};
use crate::clouds;
use crate::exit::Failure;
use crate::print::counted;
use crate::problems::Problems;
use crate::source::Source;

/// The short names of kinds that kubectl knows, and that may be among the objects.
const SHORT: [(&str, &str); 17] = [
    ("cj", "cronjob"),
    ("deploy", "deployment"),
    ("ds", "daemonset"),
    ("hpa", "horizontalpodautoscaler"),
    ("lws", "leaderworkerset"),
    ("nc", "nodeclaim"),
    ("no", "node"),
    ("np", "nodepool"),
    ("ns", "namespace"),
    ("pdb", "poddisruptionbudget"),
    ("po", "pod"),
    ("pv", "persistentvolume"),
    ("pvc", "persistentvolumeclaim"),
    ("quota", "resourcequota"),
    ("rc", "replicationcontroller"),
    ("rs", "replicaset"),
    ("sts", "statefulset"),
];

/// The kinds with replicas, which may leave the field out.
const SCALED: [&str; 6] =
    ["Deployment", "LeaderWorkerSet", "ReplicaSet", "ReplicationController", "Rollout", "StatefulSet"];

/// One file.
struct File {
    source: Source,
    objects: Vec<Value>,
    /// Whether the objects are no longer those of the text.
    is_changed: bool,
}

/// Files with objects.
pub struct Files {
    all: Vec<File>,
    /// The namespace of objects that name none.
    namespace: String,
    /// Whether the user named that namespace.
    is_named: bool,
}

/// The namespace of objects in files that name none.
const DEFAULT_NAMESPACE: &str = "default";

impl Files {
    /// Reads the objects of files. Objects that name no namespace are in `namespace`.
    ///
    /// # Errors
    ///
    /// A text is neither YAML nor JSON.
    pub fn of(sources: Vec<Source>, namespace: Option<&str>) -> Result<Self, Failure> {
        Ok(Self {
            all: read(sources)?,
            namespace: namespace.unwrap_or(DEFAULT_NAMESPACE).to_owned(),
            is_named: namespace.is_some(),
        })
    }

    /// Returns whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.objects().next().is_none()
    }

    /// Returns whether there is a NodePool of Poolwright.
    pub fn has_pool(&self) -> bool {
        self.objects().any(|one| one["kind"] == "NodePool" && one["apiVersion"] == API_VERSION)
    }

    /// Returns the files with the changed objects.
    pub fn sources(self) -> Vec<Source> {
        let written = |File { source, objects, is_changed }| {
            if !is_changed {
                return source;
            }
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            Source { text: list.to_string(), ..source }
        };
        self.all.into_iter().map(written).collect()
    }

    /// Adds the objects of files, and removes those that they replace, with all that these have made. The NodeClaims of a pool that is
    /// replaced stay. Returns what changed.
    ///
    /// # Errors
    ///
    /// The files have no object, or one of another kind than `only` allows.
    pub fn add(
        &mut self,
        flag: &str,
        sources: Vec<Source>,
        only: Option<fn(&str) -> bool>,
    ) -> Result<Vec<String>, Failure> {
        let added = read(sources)?;
        let objects = || added.iter().flat_map(|file| &file.objects);
        if objects().next().is_none() {
            return Err(Failure::bad_input(format!(
                "{flag}: matches nothing, because the files have no object"
            )));
        }
        let is_allowed = |object: &Value| only.is_none_or(|only| only(text(object, "kind")));
        if let Some(other) = objects().find(|object| !is_allowed(object)) {
            return Err(Failure::bad_input(format!(
                "{flag}: {} is not a NodePool or a node class; give it to -f",
                self.shown(other)
            )));
        }
        let mut told = Vec::new();
        for object in objects() {
            let id = Id::of(object, &self.namespace);
            let takes_all = !is_of_pools(text(object, "kind"));
            // The base may lack a Deployment, and have what it has made.
            let is_of = |old: &Value| {
                Id::of(old, &self.namespace).is(&id) || (takes_all && id.owns(old, &self.namespace))
            };
            let is_there = self.objects().any(is_of);
            let what = if is_there { "replaced" } else { "added" };
            told.push(format!("{flag}: {what} {}", self.shown(object)));
            if is_there && takes_all {
                self.take(&id);
            } else if is_there {
                self.drop_one(&id);
            }
        }
        self.all.extend(added);
        Ok(told)
    }

    /// Removes an object, with all that it has made, and a namespace with all that is in it. Returns what changed.
    ///
    /// # Errors
    ///
    /// There is no such object, there are several, or it is a node, or a pool that has nodes.
    pub fn remove(&mut self, named: &Named) -> Result<String, Failure> {
        let object = self.find("--remove", named)?;
        if ["Node", "NodeClaim"].contains(&text(object, "kind")) {
            return Err(Failure::bad_input(format!(
                "--remove {named}: its pods would have no place and count nowhere; --outage takes away the nodes of a zone"
            )));
        }
        let (id, shown) = (Id::of(object, &self.namespace), self.shown(object));
        let is_claim = |one: &&Value| text(one, "kind") == "NodeClaim" && id.owns(one, &self.namespace);
        if text(object, "kind") == "NodePool"
            && let Some(claim) = self.objects().find(is_claim)
        {
            return Err(Failure::bad_input(format!(
                "--remove {named}: it has nodes, such as that of {}, whose pods would have no place and count nowhere; give --pool a \
                 NodePool of this name that buys nothing more",
                self.shown(claim)
            )));
        }
        let inside = (text(object, "kind") == "Namespace").then(|| name(object).to_owned());
        self.take(&id);
        match inside {
            Some(namespace) => {
                let gone = self.drop_all_in(&namespace);
                Ok(format!("--remove: removed {shown} with {} in it", counted(gone, "object")))
            }
            None => Ok(format!("--remove: removed {shown}")),
        }
    }

    /// Gives a workload a number of replicas. Returns what changed.
    ///
    /// # Errors
    ///
    /// There is no such workload, there are several, or it has no replicas.
    pub fn scale(&mut self, Replicas { of, number }: &Replicas) -> Result<String, Failure> {
        let object = self.find("--replicas", of)?;
        let stated = object["spec"]["replicas"].as_u64();
        // What is no mapping is told when the objects are read.
        let has_fields = matches!(object["spec"], Value::Null | Value::Object(_));
        if !has_fields || (stated.is_none() && !SCALED.contains(&text(object, "kind"))) {
            return Err(Failure::bad_input(format!(
                "--replicas {of}: {} has no spec.replicas; give its changed manifest to -f",
                self.shown(object)
            )));
        }
        let (id, shown) = (Id::of(object, &self.namespace), self.shown(object));
        let (before, number) = (stated.unwrap_or(1), u64::from(*number));
        self.set_replicas(&id, number);
        // A Deployment of a cluster has its pods through a ReplicaSet. During a rollout there are several, and each keeps its own.
        let sets: Vec<Id> = self
            .objects()
            .filter(|one| id.owns(one, &self.namespace) && text(one, "kind") == "ReplicaSet")
            .filter(|one| one["spec"]["replicas"].as_u64().is_some_and(|replicas| replicas > 0))
            .map(|one| Id::of(one, &self.namespace))
            .collect();
        if let [only] = sets.as_slice() {
            self.set_replicas(only, number);
        }
        self.drop_pods(&id, &sets, number);
        let replicas = if number == 1 { "replica" } else { "replicas" };
        let limit = self.autoscaled(&id, number).unwrap_or_default();
        Ok(format!("--replicas: {shown} has {number} {replicas} instead of {before}{limit}"))
    }

    /// Says which autoscaler does not let a workload have this number of replicas. It leaves a workload with none alone.
    fn autoscaled(&self, id: &Id, number: u64) -> Option<String> {
        let mut autoscalers = self.objects().filter(|one| {
            text(one, "kind") == "HorizontalPodAutoscaler"
                && id.is_target(&one["spec"]["scaleTargetRef"], &Id::of(one, &self.namespace))
        });
        autoscalers.find_map(|one| {
            let most = one["spec"]["maxReplicas"].as_u64().filter(|most| number > *most);
            let least = one["spec"]["minReplicas"].as_u64().filter(|least| (1..*least).contains(&number));
            let (does, limit) = match (most, least) {
                (Some(most), _) => ("allows at most", most),
                (None, least) => ("asks for at least", least?),
            };
            Some(format!(", but {} {does} {limit}", self.shown(one)))
        })
    }

    fn objects(&self) -> impl Iterator<Item = &Value> {
        self.all.iter().flat_map(|file| &file.objects)
    }

    /// Returns the object that the user names.
    fn find(&self, flag: &str, named: &Named) -> Result<&Value, Failure> {
        let is_of_kind = |object: &Value| is_kind(&named.kind, text(object, "kind"));
        let is_in_namespace = |object: &Value| {
            !self.is_named
                || is_of_cluster(object)
                || Id::of(object, &self.namespace).namespace == self.namespace
        };
        let near = || self.objects().filter(|object| is_of_kind(object) && is_in_namespace(object));
        let found: Vec<&Value> = near().filter(|object| name(object) == named.name).collect();
        match found[..] {
            [one] => Ok(one),
            [] => {
                let names: Vec<&str> = near().map(name).collect();
                let made = self.objects().filter(|object| is_in_namespace(object)).find(|object| {
                    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
                    let mut owners = owners.filter(|owner| is_kind(&named.kind, text(owner, "kind")));
                    owners.any(|owner| text(owner, "name") == named.name)
                });
                let same_name = || self.objects().find(|object| name(object) == named.name);
                let next = if let Some(made) = made {
                    format!("the base has only what it has made, such as {}", self.shown(made))
                } else if let Some(meant) = poolwright_api::meant(&named.name, names.iter().copied()) {
                    format!("did you mean {}/{meant}?", named.kind)
                } else if let Some(other) = same_name() {
                    format!("there is {}", self.shown(other))
                } else {
                    "check the name, the namespace, and the base".to_owned()
                };
                Err(Failure::bad_input(format!("{flag} {named}: matches nothing; {next}")))
            }
            _ => {
                let several: Vec<String> = found.iter().map(|object| self.shown(object)).collect();
                Err(Failure::bad_input(format!(
                    "{flag} {named}: matches {}; add -n with the namespace of one, and write its whole kind",
                    several.join(", ")
                )))
            }
        }
    }

    /// Names an object: `Deployment ml/web`.
    fn shown(&self, object: &Value) -> String {
        let (kind, id) = (text(object, "kind"), Id::of(object, &self.namespace));
        if is_of_cluster(object) {
            format!("{kind} {}", name(object))
        } else {
            format!("{kind} {}/{}", id.namespace, name(object))
        }
    }

    /// Removes an object, and nothing that it has made.
    fn drop_one(&mut self, id: &Id) {
        let Self { all, namespace, .. } = self;
        let namespace = namespace.as_str();
        retain(all, |object| !Id::of(object, namespace).is(id));
    }

    /// Removes all objects in a namespace. Returns their number.
    fn drop_all_in(&mut self, gone: &str) -> usize {
        let Self { all, namespace, .. } = self;
        let namespace = namespace.as_str();
        let mut number = 0;
        retain(all, |object| {
            let stays = is_of_cluster(object) || Id::of(object, namespace).namespace != gone;
            number += usize::from(!stays);
            stays
        });
        number
    }

    /// Removes an object, with all that it has made.
    fn take(&mut self, id: &Id) {
        let Self { all, namespace, .. } = self;
        let namespace = namespace.as_str();
        let mut gone = Vec::new();
        retain(all, |object| {
            let found = Id::of(object, namespace);
            let stays = !found.is(id);
            if !stays {
                gone.push(found);
            }
            stays
        });
        if gone.is_empty() {
            gone.push(id.clone());
        }
        while !gone.is_empty() {
            let mut below = Vec::new();
            retain(all, |object| {
                let stays = !gone.iter().any(|owner| owner.owns(object, namespace));
                if !stays {
                    below.push(Id::of(object, namespace));
                }
                stays
            });
            gone = below;
        }
    }

    fn set_replicas(&mut self, id: &Id, number: u64) {
        for file in &mut self.all {
            for object in &mut file.objects {
                if Id::of(object, &self.namespace).is(id) {
                    object["spec"]["replicas"] = number.into();
                    file.is_changed = true;
                }
            }
        }
    }

    /// Removes the pods of a workload, and of the sets between it and them, beyond a number: first those without a node.
    fn drop_pods(&mut self, id: &Id, sets: &[Id], number: u64) {
        let Self { all, namespace, .. } = self;
        let namespace = namespace.as_str();
        let is_theirs = |object: &Value| {
            text(object, "kind") == "Pod"
                && !is_ending(object)
                && (id.owns(object, namespace) || sets.iter().any(|set| set.owns(object, namespace)))
        };
        let objects = all.iter().flat_map(|file| &file.objects);
        let mut pods: Vec<(bool, Id)> = objects
            .filter(|object| is_theirs(object))
            .map(|pod| (pod["spec"]["nodeName"].as_str().is_none(), Id::of(pod, namespace)))
            .collect();
        // A StatefulSet deletes its last pods first.
        pods.sort_by(|(a, one), (b, other)| (a, one.length_and_name()).cmp(&(b, other.length_and_name())));
        let surplus = pods.split_off(pods.len().min(usize::try_from(number).unwrap_or(usize::MAX)));
        retain(all, |object| {
            let found = Id::of(object, namespace);
            !surplus.iter().any(|(_, pod)| pod.is(&found))
        });
    }
}

/// Keeps the objects for which `keep` is true.
fn retain(files: &mut [File], mut keep: impl FnMut(&Value) -> bool) {
    for file in files {
        let before = file.objects.len();
        file.objects.retain(&mut keep);
        file.is_changed |= file.objects.len() < before;
    }
}

/// Returns whether a pod has ended or is about to, so that its controller no longer counts it.
fn is_ending(pod: &Value) -> bool {
    let has_ended = ["Failed", "Succeeded"].contains(&text(&pod["status"], "phase"));
    has_ended || !pod["metadata"]["deletionTimestamp"].is_null()
}

/// Returns whether `--pool` takes objects of a kind.
pub fn is_of_pools(kind: &str) -> bool {
    kind == "NodePool" || clouds::is_node_class(kind)
}

fn read(sources: Vec<Source>) -> Result<Vec<File>, Failure> {
    let (mut files, mut problems) = (Vec::new(), Problems::new());
    for source in sources {
        match manifest::objects(&source.name, &source.text) {
            Ok(objects) => files.push(File { source, objects, is_changed: false }),
            Err(found) => problems.extend(Problems::all(found)),
        }
    }
    problems
        .or(files)
        .map_err(|problems| Failure::bad_input(format!("the manifests cannot be used: {problems}")))
}

/// Returns whether what a user writes names a kind: singular, plural or short.
fn is_kind(written: &str, kind: &str) -> bool {
    let kind = kind.to_lowercase();
    let short = SHORT.iter().find(|(short, _)| *short == written);
    let written = short.map_or(written, |(_, whole)| *whole);
    written == kind || written.strip_suffix('s') == Some(kind.as_str())
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
