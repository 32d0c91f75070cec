//! The volumes that containers mount or use as devices (`ValidateVolumeMounts` and `ValidateVolumeDevices` in Kubernetes).

use std::collections::BTreeMap;

use poolwright_api::strict::NO_VOLUME;
use poolwright_api::{FieldProblem, meant};
use serde_json::Value;

use super::{items, one_of, required};
use crate::manifest::refusals::Problems;

/// The value of `mountPropagation` that only privileged containers may have.
const BOTH_WAYS: &str = "Bidirectional";

/// The volumes of a pod by name, and whether each is a PersistentVolumeClaim.
pub(super) struct Volumes<'v> {
    by_name: BTreeMap<&'v str, bool>,
    /// Whether the list of volumes can be read. If not, nothing is known to be missing in it.
    is_list: bool,
}

impl<'v> Volumes<'v> {
    /// Reads the volumes of a pod's spec. `claims` are those that its controller makes for each pod.
    pub fn of(spec: &'v Value, claims: &[&'v str]) -> Self {
        let is_claim =
            |volume: &Value| volume["persistentVolumeClaim"].is_object() || volume["ephemeral"].is_object();
        let listed = &spec["volumes"];
        let own =
            items(listed).iter().filter_map(|volume| Some((volume["name"].as_str()?, is_claim(volume))));
        let made = claims.iter().map(|name| (*name, true));
        Self { by_name: own.chain(made).collect(), is_list: listed.is_null() || listed.is_array() }
    }

    /// Adds what is wrong with the mounts and devices of a container.
    pub fn check(&self, path: &str, container: &Value, into: &mut Problems) {
        let (mounts, devices) = (items(&container["volumeMounts"]), items(&container["volumeDevices"]));
        let is_privileged = container["securityContext"]["privileged"] == true;
        for (at, mount) in mounts.iter().enumerate() {
            let path = format!("{path}.volumeMounts[{at}]");
            self.named(&path, mount, into);
            used_twice(&path, mount, "mountPath", &mounts[..at], "mount", into);
            used_otherwise(
                &path,
                mount,
                ("name", "mountPath"),
                (devices, "devicePath", "volumeDevices"),
                into,
            );
            below_volume(&path, mount, into);
            let (place, propagation) = (format!("{path}.mountPropagation"), &mount["mountPropagation"]);
            one_of(&place, propagation, &["None", "HostToContainer", BOTH_WAYS], into);
            if *propagation == BOTH_WAYS && !is_privileged {
                let cause = format!("only a privileged container may have `{BOTH_WAYS}`");
                let next = "write HostToContainer, or `privileged: true` in its securityContext";
                into.push(FieldProblem::new(place, cause, next));
            }
        }
        for (at, device) in devices.iter().enumerate() {
            let path = format!("{path}.volumeDevices[{at}]");
            let name = self.named(&path, device, into);
            if let Some(name) = name.filter(|name| self.by_name.get(*name) == Some(&false)) {
                let cause =
                    format!("the volume `{name}` is not a PersistentVolumeClaim, as a device must be");
                let next = "use a PersistentVolumeClaim with `volumeMode: Block`, or volumeMounts";
                into.push(FieldProblem::new(format!("{path}.name"), cause, next));
            }
            used_twice(&path, device, "devicePath", &devices[..at], "device", into);
            let is_same = |other: &Value| name.is_some_and(|name| other["name"] == name);
            if let Some(name) = name.filter(|_| devices[..at].iter().any(is_same)) {
                let cause = format!("another device of the container is the volume `{name}`");
                into.push(FieldProblem::new(format!("{path}.name"), cause, "remove one of them"));
            }
            let path = format!("{path}.devicePath");
            if goes_up(&device["devicePath"]) {
                into.push(FieldProblem::new(path, "it has `..` in it", "write the whole path"));
            }
        }
    }

    /// Checks the name of the volume. Returns it, if there is one.
    fn named<'u>(&self, path: &str, user: &'u Value, into: &mut Problems) -> Option<&'u str> {
        let path = format!("{path}.name");
        if !required(&path, &user["name"], "name a volume of the pod", into) {
            return None;
        }
        let name = user["name"].as_str()?;
        if self.is_list && !self.by_name.contains_key(name) {
            let next = match meant(name, self.by_name.keys().copied()) {
                Some(known) => format!("did you mean `{known}`?"),
                None => "add it to the volumes of the pod, or remove this".to_owned(),
            };
            into.push(FieldProblem::new(path, format!("{NO_VOLUME} `{name}`"), next));
        }
        Some(name)
    }
}

/// Checks the path in the container, which each mount and each device has for itself.
fn used_twice(path: &str, user: &Value, field: &str, before: &[Value], what: &str, into: &mut Problems) {
    let (place, used) = (format!("{path}.{field}"), &user[field]);
    if !required(&place, used, "write the path in the container", into) {
        return;
    }
    if let Some(text) = used.as_str().filter(|_| before.iter().any(|other| other[field] == *used)) {
        let cause = format!("another {what} of the container is at `{text}`");
        into.push(FieldProblem::new(place, cause, "change one of them"));
    }
}

/// Checks that a container does not use a volume or a path both as a mount and as a device.
fn used_otherwise(
    path: &str,
    user: &Value,
    (name, place): (&str, &str),
    (others, other_place, list): (&[Value], &str, &str),
    into: &mut Problems,
) {
    for (field, other_field) in [(name, name), (place, other_place)] {
        let text = user[field].as_str().filter(|text| !text.is_empty());
        if let Some(text) = text.filter(|text| others.iter().any(|other| other[other_field] == *text)) {
            let cause = format!("`{text}` is also in {list} of the container");
            into.push(FieldProblem::new(format!("{path}.{field}"), cause, "remove one of them"));
        }
    }
}

/// Checks the path in the volume.
fn below_volume(path: &str, mount: &Value, into: &mut Problems) {
    for field in ["subPath", "subPathExpr"] {
        let (place, below) = (format!("{path}.{field}"), &mount[field]);
        if below.as_str().is_some_and(|below| below.starts_with('/')) {
            let next = "remove the `/` at its beginning";
            into.push(FieldProblem::new(place, "it is a path from the root of the volume", next));
        } else if goes_up(below) {
            into.push(FieldProblem::new(place, "it has `..` in it", "write the path without it"));
        }
    }
    let has = |field: &str| mount[field].as_str().is_some_and(|below| !below.is_empty());
    if has("subPath") && has("subPathExpr") {
        let place = format!("{path}.subPathExpr");
        into.push(FieldProblem::new(place, "the mount also has subPath", "remove one of them"));
    }
}

/// Returns whether a path leads to a parent.
fn goes_up(path: &Value) -> bool {
    path.as_str().is_some_and(|path| path.split('/').any(|part| part == ".."))
}
