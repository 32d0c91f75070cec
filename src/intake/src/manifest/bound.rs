//! Pods that are bound to nodes which the files lack. They wait for no node, so a plan would say nothing of them.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_core::{Pod, PodPhase};

use super::Manifest;
use super::objects::Object;

/// The most running pods that are named.
const NAMED: usize = 3;

/// Why a node is not known.
const NOT_THERE: &str = "not in the files";
const LEFT_OUT: &str = "left out, because it cannot be read";

/// The objects with bound pods so far.
#[derive(Default)]
pub(super) struct Bound(Vec<OfObject>);

/// The pods of one object on one node.
struct OfObject {
    name: String,
    is_pod: bool,
    /// Whether its author wrote it and it does not run yet.
    is_written: bool,
    node: String,
    pods: usize,
}

impl Bound {
    /// Adds the bound pods of an object.
    pub fn add(&mut self, object: &Object, pods: &[Pod]) {
        let mut by_node: BTreeMap<&String, usize> = BTreeMap::new();
        for pod in pods {
            if let PodPhase::Bound { node } = &pod.phase {
                *by_node.entry(node).or_default() += 1;
            }
        }
        let is_written = !object.is_stored() && object.value["status"]["phase"] != "Running";
        for (node, pods) in by_node {
            let (name, node) = (object.name(), node.clone());
            self.0.push(OfObject { name, is_pod: object.kind == "Pod", is_written, node, pods });
        }
    }

    /// Says which objects have pods on nodes that are not in the manifest. Of stored pods, only a few are named, because a list of
    /// pods without nodes has many.
    pub fn tell(&self, manifest: &mut Manifest) {
        let known: BTreeSet<&str> = manifest.nodes.iter().map(|node| node.name.as_str()).collect();
        let missing = self.0.iter().filter(|of| !known.contains(of.node.as_str()));
        let is_lost = |of: &OfObject| manifest.left_out.contains(&format!("Node {}", of.node));
        let missing: Vec<(&OfObject, bool)> = missing.map(|of| (of, is_lost(of))).collect();
        let (mut on_unknown, mut on_lost): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for (of, is_lost) in missing {
            // The nodes of one object follow each other.
            if of.is_written && manifest.on_unknown_nodes.last() != Some(&of.name) {
                manifest.on_unknown_nodes.push(of.name.clone());
            }
            if !of.is_written && of.is_pod {
                let name = of.name.strip_prefix("Pod ").unwrap_or(&of.name);
                let running = if is_lost { &mut on_lost } else { &mut on_unknown };
                running.push(format!("{name} on `{}`", of.node));
                continue;
            }
            let (who, whom) = match of.pods {
                _ if of.is_pod => ("it is".to_owned(), "it"),
                1 => ("1 of its pods is".to_owned(), "it"),
                pods => (format!("{pods} of its pods are"), "them"),
            };
            let why = if is_lost { LEFT_OUT } else { NOT_THERE };
            manifest.bound_elsewhere.push(format!(
                "{}: {who} bound to node `{}`, which is {why}, so nothing is planned for {whom}",
                of.name, of.node
            ));
        }
        for (running, why) in [(on_unknown, NOT_THERE), (on_lost, LEFT_OUT)] {
            let named = running.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
            match running.len() {
                0 => {}
                1 => manifest.bound_elsewhere.push(format!("1 pod runs on a node that is {why}: {named}")),
                all => {
                    let more = all.saturating_sub(NAMED);
                    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                    manifest
                        .bound_elsewhere
                        .push(format!("{all} pods run on nodes that are {why}: {named}{more}"));
                }
            }
        }
    }
}
