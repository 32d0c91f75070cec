//! What the controllers of a manifest have already: of the pods that a controller makes, those that are in the manifest are not
//! planned a second time, and those that it lacks are.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value;

use crate::workload::Made;

/// The controller that makes the pods of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Maker {
    /// The object itself.
    Itself,
    /// Another controller, by kind and name, such as the Job of a JobSet.
    Other(&'static str, String),
    /// Another controller, by kind and the beginning of its name, such as the ReplicaSet of a Deployment.
    Begins(&'static str, String),
}

/// When pods come, beside the others of their gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Before the others: their controller makes these only when they are there.
    First,
    /// In any order.
    Any,
    /// When the others run, so that these do not wait for them.
    Last,
}

/// A Service that an operator makes before pods. If it cannot be created, the operator makes none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub name: String,
    /// `spec.type`, if it is written.
    pub kind: Option<String>,
}

impl Service {
    /// A Service without a type.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: None }
    }
}

/// How the pods of one template come about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub maker: Maker,
    /// Whether the names of its pods are fixed, as those of a StatefulSet. A pod that has failed or is being deleted then still has
    /// the name that its successor will get.
    pub fixed: bool,
    /// The beginning of the names of its pods, where one controller has several templates.
    pub prefix: String,
    /// Which of the object's gangs its pods belong to.
    pub gang: Option<usize>,
    /// When its pods come, beside the others of their gang.
    pub turn: Turn,
    /// The Services that the operator makes before its pods.
    pub services: Vec<Service>,
    /// A note for the case that pods of it are planned.
    pub note: Option<String>,
    /// Whether the numbers of its pods are the indexes of an indexed Job, which are in the names of the pods that exist, too.
    pub indexed: bool,
    /// Why its pods come later, if they do. They are no demand now.
    pub later: Option<String>,
}

impl Origin {
    /// Returns the origin of pods that their object makes itself, under names that it makes up.
    pub fn itself() -> Rc<Self> {
        Rc::new(Self::by(Maker::Itself))
    }

    /// Returns the origin of pods that this controller makes, under names that it makes up.
    pub fn by(maker: Maker) -> Self {
        Self {
            maker,
            fixed: false,
            prefix: String::new(),
            gang: None,
            turn: Turn::Any,
            services: Vec::new(),
            note: None,
            indexed: false,
            later: None,
        }
    }
}

/// What the manifest has of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Had {
    /// How many of the pods that it makes are not planned from it.
    pub all: usize,
    /// The kind of the controllers in the manifest that make some of them. These are planned from those controllers.
    pub makers: Option<&'static str>,
    /// How many of them are pods of the manifest.
    pub pods: usize,
    /// How many further pods of it the manifest has. They have ended or are being deleted, so that others take their places.
    pub gone: usize,
}

/// The annotation of a pod of an indexed Job.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The objects of a manifest, by their controller.
#[derive(Default)]
pub(crate) struct Owned {
    children: Vec<Child>,
    by_uid: BTreeMap<String, Vec<usize>>,
    /// By namespace, kind and name of the controller.
    by_name: BTreeMap<Name, Vec<usize>>,
    uids: BTreeSet<String>,
    names: BTreeSet<Name>,
    /// The names of the objects that an API server has stored.
    stored: BTreeSet<Name>,
    /// What the controllers of [`COUNTED`] want.
    wanted: BTreeMap<Name, Wanted>,
}

/// The kinds that want as many pods as `spec.replicas` says, and that other controllers make.
const COUNTED: [&str; 3] = ["ReplicaSet", "ReplicationController", "StatefulSet"];

/// How many pods a controller wants.
#[derive(Clone, Copy)]
struct Wanted {
    /// The number in the name of the first, if they are numbered.
    first: u64,
    count: u64,
}

/// Namespace, kind and name.
pub(crate) type Name = (String, String, String);

struct Child {
    name: Name,
    uid: String,
    owner_uid: String,
    owner_group: String,
    ended: bool,
    deleting: bool,
    /// The index of a pod of an indexed Job.
    index: Option<String>,
}

impl Child {
    fn is_pod(&self) -> bool {
        self.name.1 == "Pod"
    }
}

impl Owned {
    /// Reads the controllers of these objects.
    pub fn of<'a>(objects: impl Iterator<Item = &'a Value>) -> Self {
        let mut owned = Self::default();
        for object in objects {
            let meta = &object["metadata"];
            let name = name_of(object);
            owned.uids.extend(meta["uid"].as_str().map(str::to_owned));
            owned.names.insert(name.clone());
            if meta["uid"].is_string() || meta["resourceVersion"].is_string() {
                owned.stored.insert(name.clone());
            }
            if COUNTED.contains(&name.1.as_str()) {
                let first = object["spec"]["ordinals"]["start"].as_u64().unwrap_or(0);
                let count = object["spec"]["replicas"].as_u64().unwrap_or(1);
                owned.wanted.insert(name.clone(), Wanted { first, count });
            }
            let references = meta["ownerReferences"].as_array();
            let controller = references.into_iter().flatten().find(|one| one["controller"] == true);
            let Some(controller) = controller else { continue };
            let at = owned.children.len();
            let owner_uid = text(&controller["uid"]);
            let of = (name.0.clone(), text(&controller["kind"]), text(&controller["name"]));
            if !owner_uid.is_empty() {
                owned.by_uid.entry(owner_uid.clone()).or_default().push(at);
            }
            let index = index_of(object, &of.2);
            owned.by_name.entry(of).or_default().push(at);
            owned.children.push(Child {
                name,
                uid: text(&meta["uid"]),
                owner_uid,
                owner_group: group(&controller["apiVersion"]).to_owned(),
                ended: matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed")),
                deleting: !meta["deletionTimestamp"].is_null(),
                index,
            });
        }
        owned
    }

    /// Returns whether an object of the manifest is named so.
    pub fn has(&self, namespace: &str, kind: &str, name: &str) -> bool {
        self.names.contains(&(namespace.to_owned(), kind.to_owned(), name.to_owned()))
    }

    /// Returns whether the manifest has a stored object of this name.
    pub fn has_stored(&self, namespace: &str, kind: &str, name: &str) -> bool {
        self.stored.contains(&(namespace.to_owned(), kind.to_owned(), name.to_owned()))
    }

    /// Counts objects as stored that a cluster has, with or without the marks of an API server.
    pub fn count_as_stored<'a>(&mut self, objects: impl Iterator<Item = &'a Value>) {
        self.stored.extend(objects.map(name_of));
    }

    /// Returns whether the manifest has a pod whose name is this one and a number.
    pub fn has_numbered_pod(&self, namespace: &str, name: &str) -> bool {
        let first = (namespace.to_owned(), "Pod".to_owned(), format!("{name}-"));
        let named = self.names.range(first.clone()..);
        let mut alike = named.take_while(|one| (&one.0, &one.1) == (&first.0, &first.1));
        let rest = |one: &Name| one.2.strip_prefix(&first.2).map(str::to_owned);
        alike
            .by_ref()
            .map_while(rest)
            .any(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Returns whether the manifest has something that the object controls.
    pub fn controls(&self, object: &Value) -> bool {
        self.children_of(object).next().is_some()
    }

    /// Returns whether the controller of an object is in the manifest.
    pub fn is_controlled(&self, object: &Value) -> bool {
        let references = object["metadata"]["ownerReferences"].as_array();
        references.into_iter().flatten().any(|owner| {
            let uid = text(&owner["uid"]);
            let name = (namespace(&object["metadata"]), text(&owner["kind"]), text(&owner["name"]));
            owner["controller"] == true && (self.uids.contains(&uid) || self.names.contains(&name))
        })
    }

    /// Removes the pods that a controller has already from those that it makes, and returns what it has; `None` if the manifest has
    /// nothing of the controller.
    pub fn take(&self, object: &Value, made: &mut Vec<Made>) -> Option<Had> {
        let children: Vec<&Child> = self.children_of(object).collect();
        let before = made.len();
        // A pod of such a Job is replaced only when it has ended, not as soon as it is being deleted.
        let waits_for_end = object["kind"] == "Job"
            && (object["spec"]["podReplacementPolicy"] == "Failed"
                || (object["spec"]["podReplacementPolicy"].is_null()
                    && !object["spec"]["podFailurePolicy"].is_null()));
        let counts = |pod: &&Child| !pod.ended && (waits_for_end || !pod.deleting);
        let mut left: Vec<(Rc<Origin>, Left)> = Vec::new();
        // The place of an origin there, and the names of the pods of one with fixed names.
        let mut places: BTreeMap<*const Origin, usize> = BTreeMap::new();
        let mut names: BTreeMap<*const Origin, BTreeSet<String>> = BTreeMap::new();
        let (mut makers, mut of_makers, mut gone) = (None, 0, 0);
        made.retain(|one| {
            let name = one.pod.key.name();
            if let Some(kind) = self.made_by_another(object, one, &children) {
                makers = Some(kind);
                of_makers += 1;
                return false;
            }
            let pods = || self.pods_of(object, &one.origin, &children);
            if one.origin.fixed {
                let all = || pods().map(|child| child.name.2.clone()).collect();
                return !names.entry(Rc::as_ptr(&one.origin)).or_insert_with(all).contains(&*name);
            }
            let at = *places.entry(Rc::as_ptr(&one.origin)).or_insert_with(|| {
                gone += pods().filter(|pod| !counts(pod)).count();
                let (indexed, pods): (Vec<&Child>, Vec<&Child>) =
                    pods().filter(counts).partition(|pod| one.origin.indexed && pod.index.is_some());
                let between = wanted_between(&self.wanted, &one.origin.maker, &children);
                let indexes = indexed.into_iter().filter_map(|pod| pod.index.clone()).collect();
                let of_others = Left { indexes, pods: pods.len(), between };
                left.push((one.origin.clone(), of_others));
                left.len() - 1
            });
            let (_, left) = &mut left[at];
            if left.indexes.remove(name.rsplit_once('-').map_or("", |(_, index)| index)) {
                return false;
            }
            if left.pods > 0 {
                left.pods -= 1;
                return false;
            }
            if left.between > 0 {
                left.between -= 1;
                if let Maker::Begins(kind, _) = one.origin.maker {
                    makers = Some(kind);
                }
                of_makers += 1;
                return false;
            }
            true
        });
        // The others have indexes that the object would not have chosen.
        for (origin, Left { indexes, .. }) in left {
            for _ in indexes {
                if let Some(last) = made.iter().rposition(|one| Rc::ptr_eq(&one.origin, &origin)) {
                    made.remove(last);
                }
            }
        }
        let all = before - made.len();
        (!children.is_empty() || all > 0).then_some(Had { all, makers, pods: all - of_makers, gone })
    }

    /// Removes the pods with fixed names that stored pods have, and returns these names. It is called for those that the object lacks,
    /// so the stored pods are not its own. An API server refuses a second pod of a name.
    pub fn take_blocked(&self, object: &Value, made: &mut Vec<Made>) -> Vec<String> {
        let namespace = namespace(&object["metadata"]);
        let mut blocked = Vec::new();
        made.retain(|one| {
            let name = one.pod.key.name();
            let is_free = !one.origin.fixed || !self.has_stored(&namespace, "Pod", &name);
            if !is_free {
                blocked.push(name.into_owned());
            }
            is_free
        });
        blocked
    }

    /// Returns the kind of the controller of the manifest, which is read itself, that makes the pod. One that wants fewer pods than the
    /// object does not make those beyond them.
    fn made_by_another(&self, object: &Value, made: &Made, children: &[&Child]) -> Option<&'static str> {
        let (kind, is_made) = match &made.origin.maker {
            Maker::Itself => return None,
            Maker::Other(kind, name) => {
                let controller = (namespace(&object["metadata"]), (*kind).to_owned(), name.clone());
                let wanted = self.wanted.get(&controller).filter(|_| made.origin.fixed);
                let is_made = match wanted {
                    Some(wanted) => self.has_or_makes(&controller, *wanted, &made.pod.key.name()),
                    None => self.names.contains(&controller),
                };
                (*kind, is_made)
            }
            Maker::Begins(kind, _) if COUNTED.contains(kind) => return None,
            Maker::Begins(kind, _) => (*kind, children.iter().any(|child| child.name.1 == *kind)),
        };
        is_made.then_some(kind)
    }

    /// Returns whether a controller that numbers its pods makes this one, or the manifest has it.
    fn has_or_makes(&self, controller: &Name, wanted: Wanted, pod: &str) -> bool {
        let rest = pod.strip_prefix(controller.2.as_str()).and_then(|rest| rest.strip_prefix('-'));
        let number: Option<u64> = rest.and_then(|rest| rest.parse().ok());
        number.is_none_or(|number| number < wanted.first.saturating_add(wanted.count))
            || self.has(&controller.0, "Pod", pod)
    }

    /// Returns the pods of the manifest that come from a template of an object, in any phase.
    fn pods_of<'a>(
        &'a self,
        object: &Value,
        origin: &'a Origin,
        children: &'a [&'a Child],
    ) -> Box<dyn Iterator<Item = &'a Child> + 'a> {
        let namespace = namespace(&object["metadata"]);
        let own = children.iter().copied().filter(|child| child.is_pod());
        let own = own.filter(|child| child.name.2.starts_with(&origin.prefix));
        // The controller between is not in the manifest, and its pods show it.
        let missing = move |child: &&Child| child.is_pod() && !self.uids.contains(&child.owner_uid);
        let of_name = move |name: Name| {
            let all = self.by_name.get(&name).into_iter().flatten();
            all.map(|at| &self.children[*at]).filter(missing)
        };
        match &origin.maker {
            Maker::Itself => Box::new(own),
            Maker::Other(kind, name) => {
                Box::new(own.chain(of_name((namespace, (*kind).to_owned(), name.clone()))))
            }
            Maker::Begins(kind, prefix) => {
                let first = (namespace, (*kind).to_owned(), prefix.clone());
                let controllers = self.by_name.range(first.clone()..);
                let controllers = controllers.take_while(move |(name, _)| {
                    (&name.0, &name.1) == (&first.0, &first.1) && name.2.starts_with(&first.2)
                });
                // A ReplicaSet of `web` is named `web-` and a hash; `web-api-` and a hash is of another Deployment.
                let is_of = move |name: &Name| *kind != "ReplicaSet" || !name.2[prefix.len()..].contains('-');
                let controllers =
                    controllers.filter(move |(name, _)| is_of(name) && !self.names.contains(*name));
                let pods = controllers.flat_map(|(_, all)| all).map(|at| &self.children[*at]);
                // The name of the controller, and so the beginning of the names of its pods, is not known.
                let own_name = object["metadata"]["name"].as_str().unwrap_or_default();
                let part = origin.prefix.strip_prefix(own_name).unwrap_or_default();
                Box::new(own.chain(pods.filter(missing).filter(move |pod| pod.name.2.contains(part))))
            }
        }
    }

    /// Returns everything that an object controls, at any depth: namespace, kind and name.
    pub fn under_object(&self, object: &Value) -> BTreeSet<Name> {
        self.under(self.children_of(object).collect())
    }

    /// Returns these controllers, and everything that they control.
    pub fn under_makers(&self, namespace: &str, makers: &[Maker]) -> BTreeSet<Name> {
        let mut found = BTreeSet::new();
        for maker in makers {
            let Maker::Other(kind, name) = maker else { continue };
            let name = (namespace.to_owned(), (*kind).to_owned(), name.clone());
            let children = self.by_name.get(&name).into_iter().flatten();
            found.extend(self.under(children.map(|at| &self.children[*at]).collect()));
            found.insert(name);
        }
        found
    }

    fn under<'a>(&'a self, mut open: Vec<&'a Child>) -> BTreeSet<Name> {
        let mut found: BTreeSet<Name> = BTreeSet::new();
        while let Some(child) = open.pop() {
            if found.insert(child.name.clone()) {
                open.extend(self.children_named(&child.name, &child.uid, None));
            }
        }
        found
    }

    fn children_of<'a>(&'a self, object: &Value) -> impl Iterator<Item = &'a Child> {
        let group = group(&object["apiVersion"]).to_owned();
        self.children_named(&name_of(object), &text(&object["metadata"]["uid"]), Some(group))
    }

    /// Returns what a controller controls: by its UID, and where either side has none, by its name.
    fn children_named<'a>(
        &'a self,
        name: &Name,
        uid: &str,
        group: Option<String>,
    ) -> impl Iterator<Item = &'a Child> + use<'a> {
        let by_uid = self.by_uid.get(uid).into_iter().flatten();
        let by_name = self.by_name.get(name).into_iter().flatten();
        let has_none = uid.is_empty();
        let by_name = by_name.filter(move |at| {
            let child = &self.children[**at];
            let is_of = |group: &String| child.owner_group.is_empty() || child.owner_group == *group;
            (has_none || child.owner_uid.is_empty()) && group.as_ref().is_none_or(is_of)
        });
        by_uid.chain(by_name).map(|at| &self.children[*at])
    }
}

/// What is left of the pods of one template that exist, while those that the object makes are compared with them.
struct Left {
    /// The indexes of those with an index.
    indexes: BTreeSet<String>,
    /// How many of the others there are.
    pods: usize,
    /// How many the controllers between want.
    between: usize,
}

/// Returns the index of a pod of an indexed Job. The names of such pods have it, too.
fn index_of(object: &Value, job: &str) -> Option<String> {
    if object["kind"] != "Pod" {
        return None;
    }
    let in_name = || {
        let rest = object["metadata"]["name"].as_str()?.strip_prefix(job)?.strip_prefix('-')?;
        let index = rest.split('-').next()?;
        index.parse::<u64>().is_ok().then_some(index)
    };
    object["metadata"]["annotations"][INDEX].as_str().or_else(in_name).map(str::to_owned)
}

/// Returns how many pods the controllers between an object and its pods want, such as the ReplicaSets of a Deployment.
fn wanted_between(wanted: &BTreeMap<Name, Wanted>, maker: &Maker, children: &[&Child]) -> usize {
    let Maker::Begins(kind, _) = maker else { return 0 };
    let between = children.iter().filter(|child| child.name.1 == *kind && !child.deleting);
    let counts = between.filter_map(|child| wanted.get(&child.name)).map(|wanted| wanted.count);
    usize::try_from(counts.fold(0, u64::saturating_add)).unwrap_or(usize::MAX)
}

/// Returns the name of an object, for comparisons.
pub(crate) fn name_of(object: &Value) -> Name {
    let meta = &object["metadata"];
    (namespace(meta), text(&object["kind"]), text(&meta["name"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn group(api_version: &Value) -> &str {
    api_version.as_str().and_then(|version| version.split_once('/')).map_or("", |(group, _)| group)
}

fn namespace(meta: &Value) -> String {
    meta["namespace"].as_str().filter(|name| !name.is_empty()).unwrap_or("default").to_owned()
}
