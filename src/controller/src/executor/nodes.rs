//! Writes Node objects: registers nodes, opens them to pods, and sets taints.
//!
//! The kubelet, the node lifecycle controller and others write nodes too, and their changes must not be lost. So each write
//! carries the resource version that it started from: of the node as last seen or, after a conflict, as read again. Each write
//! is complete in itself. After a crash between two writes, the next decision continues: an unregistered node is tainted, and a
//! registered one is cordoned until it opens.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use kube::api::Patch;
use poolwright_core::lifecycle::reservation;
use poolwright_core::{Claim, ClaimName, Snapshot, Subject};
use poolwright_intake::node_taint;
use poolwright_terms::Taint;
use poolwright_terms::keys::{CORDON_TAINT, CORDONED_UNTIL_ANNOTATION, REGISTERED_LABEL, RESERVED_TAINT};
use serde_json::{Value, json};
use tracing::info;

use super::progress::{Progress, failed, refused};
use super::status::{Changed, WRITE_LIMIT, is_conflict, is_denied, is_not_found, patch_params};
use super::{Executor, taints};

/// The number of reads after conflicts before the action is retried later.
const ATTEMPTS: u32 = 4;

impl Executor {
    /// Changes a node. `change` may use only metadata and spec, and returns the patch, or `None` if there is nothing to do.
    /// `None` is trusted only for a freshly read node. `change` may be called several times.
    async fn change_node(&self, name: &str, mut change: impl FnMut(&Node) -> Option<Value>) -> Progress {
        let api = self.context.reader.all::<Node>();
        let mut seen = self.context.world.last_seen_node(name);
        for _ in 0..=ATTEMPTS {
            let (node, is_from_watch) = match seen.take() {
                Some(node) => (node, true),
                None => match api.get(name).await {
                    Ok(Some(node)) => (node, false),
                    Ok(None) => return Progress::NothingToDo,
                    Err(error) => return refused("reading the node", &error),
                },
            };
            let mut patch = match change(&node) {
                Some(patch) => patch,
                None if is_from_watch => continue,
                None => return Progress::NothingToDo,
            };
            patch["metadata"]["resourceVersion"] = json!(node.metadata.resource_version);
            patch["metadata"]["uid"] = json!(node.metadata.uid);
            let params = patch_params();
            let patch = Patch::Merge(&patch);
            match self
                .context
                .writer
                .write("node", WRITE_LIMIT, async |permit| {
                    api.writable(permit).patch(name, &params, &patch).await
                })
                .await
            {
                Ok(node) => {
                    self.context.world.node_seen(&node);
                    return Progress::Done;
                }
                Err(error) if is_conflict(&error) || is_from_watch && is_not_found(&error) => {}
                // A node that is leaving could not end if its lane stopped here.
                Err(error) if is_denied(&error) => {
                    let is_vital = !self.is_leaving(name);
                    return self.denied(&Subject::Node(name.to_owned()), "writing the node", error, is_vital);
                }
                Err(error) => return failed("writing the node", error),
            }
        }
        Progress::retry("somebody else keeps changing the node")
    }

    pub(super) async fn register(
        &self,
        claim: &Claim,
        name: &str,
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
        wanted: &[Taint],
    ) -> Progress {
        let Some(launched) = &claim.launched else { return Progress::NothingToDo };
        let outcome = self.change_node(name, |node| {
            let spec = node.spec.as_ref();
            if spec.and_then(|spec| spec.provider_id.as_ref()) != Some(&launched.provider_id) {
                return None; // Another machine has this name now.
            }
            let has = |map: &Option<BTreeMap<String, String>>, key: &str, value: &str| {
                map.as_ref().and_then(|map| map.get(key)).is_some_and(|there| there == value)
            };
            // If registered before, only the record is missing. Removed startup taints must not come back, and an opened node
            // must not be closed.
            let first = !has(&node.metadata.labels, REGISTERED_LABEL, "true");
            let live = spec.and_then(|spec| spec.taints.clone()).unwrap_or_default();
            let promised = if first { claim.taints.as_slice() } else { &[] };
            let mut labels = labels.clone();
            labels.insert(REGISTERED_LABEL.to_owned(), "true".to_owned());
            let mut patch = json!({
                "metadata": { "labels": labels },
                "spec": { "taints": taints::merged(&live, wanted, promised) },
            });
            if first {
                patch["metadata"]["annotations"] = json!(annotations);
                if annotations.contains_key(CORDONED_UNTIL_ANNOTATION) {
                    patch["spec"]["unschedulable"] = json!(true);
                }
            }
            Some(patch)
        });
        match outcome.await {
            Progress::Done => self.record_node(claim, name).await,
            other => other,
        }
    }

    async fn record_node(&self, claim: &Claim, node: &str) -> Progress {
        let changed = self.change_claim(&claim.name, Some(&claim.uid), |object| {
            let status = object.status.get_or_insert_default();
            status.node_name.replace(node.to_owned()).as_deref() != Some(node)
        });
        match changed.await {
            Changed::Written(_) => {
                info!(claim = %claim.name, node, "node joined");
                Progress::Done
            }
            Changed::Unchanged(_) => Progress::NothingToDo,
            Changed::NotWritten(outcome) => outcome,
        }
    }

    /// Removes our cordon, and only ours: a node without our annotation was cordoned by somebody else.
    ///
    /// The same write removes the taint that the node lifecycle controller derives from a cordon. Otherwise the taint would stay
    /// for a moment, in which the scheduler would fail to place the nominated pods, clear their nominations, and give their
    /// places to other pods.
    ///
    /// The same write also adds a reservation, so that no other pod can take the room.
    pub(super) async fn open(&self, name: &str, reserve_for: Option<&ClaimName>) -> Progress {
        let outcome = self.change_node(name, |node| {
            node.metadata.annotations.as_ref()?.get(CORDONED_UNTIL_ANNOTATION)?;
            let mut taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
            taints.retain(|taint| taint.key != CORDON_TAINT && taint.key != RESERVED_TAINT);
            taints.extend(reserve_for.map(|claim| node_taint(&reservation(claim))));
            Some(json!({
                "metadata": { "annotations": { (CORDONED_UNTIL_ANNOTATION): null } },
                "spec": { "unschedulable": null, "taints": taints },
            }))
        });
        let outcome = outcome.await;
        if matches!(outcome, Progress::Done) {
            info!(node = name, reserved = reserve_for.is_some(), "open to pods");
        }
        outcome
    }

    pub(super) async fn set_taints(&self, name: &str, wanted: &[Taint]) -> Progress {
        self.change_node(name, |node| {
            let live = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
            let list = taints::merged(&live, wanted, &[]);
            (list != live).then(|| json!({ "spec": { "taints": list } }))
        })
        .await
    }

    /// Returns whether the claim of a node is being deleted.
    fn is_leaving(&self, node: &str) -> bool {
        let claim = |all: &Snapshot| all.claims.of_node(all.nodes.get(node)?).cloned();
        self.context.world.view(claim).is_some_and(|claim| claim.deleting_since.is_some())
    }
}
