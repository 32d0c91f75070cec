//! Removal: deletes claims, terminates instances, and reaps instances without a claim.
//!
//! A crash does no harm, wherever it happens:
//! - before a claim is deleted: nothing happened, and it is decided again.
//! - after the deletion, around the provider call: the finalizer keeps the claim, and the call is repeated until the provider
//!   confirms that the instance is gone (`give_back`).
//! - after the instance is gone, before the Node object or the finalizer is removed: both are repeated; a missing Node is no
//!   error.
//! - if somebody removes the finalizer by hand, the instance has no claim, and the reaper terminates it.
//!
//! A stale view never ends running pods: before the first provider call, and before the claim of an empty node is deleted, the
//! executor asks the API server whether a workload pod is on the node. The only exception is a deleted claim whose deadline has
//! passed (`deadlines.termination`).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, Preconditions};
use poolwright_api::NodeClaim;
use poolwright_core::{Claim, ClaimName, EventType, Subject, Uid};
use poolwright_provider_contract::InstanceState;
use poolwright_terms::keys::TERMINATION_FINALIZER;
use poolwright_terms::{NodeClassRef, Reason};
use serde_json::json;
use tracing::{info, warn};

use super::give_back::{ASK_AGAIN, doubted, look, unproven};
use super::progress::{Progress, failed, refused};
use super::status::{WRITE_LIMIT, is_conflict, is_denied, is_denied_by_policy, is_not_found, patch_params};
use super::{Executor, stage_durations};
use crate::observed::providers::Cloud;

/// How soon to check again whether the pods on a node have ended.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

impl Executor {
    /// Deletes the claim with this UID.
    pub(super) async fn delete_claim(&self, name: &ClaimName, uid: &Uid) -> Progress {
        let api = self.context.reader.all::<NodeClaim>();
        let params = DeleteParams {
            preconditions: Some(Preconditions { uid: Some(uid.0.clone()), resource_version: None }),
            ..Default::default()
        };
        match self
            .context
            .writer
            .write("nodeclaim", WRITE_LIMIT, async |permit| {
                api.writable(permit).delete(&name.0, &params).await
            })
            .await
        {
            Ok(answer) => {
                if let Some(object) = answer.left() {
                    self.context.world.claim_seen(&object);
                }
                info!(claim = %name, "claim deleted");
                Progress::Done
            }
            // The claim is gone, or another one has its name. A late watch may still show it for minutes, and its deletion would
            // be requested ten times a second.
            Err(error) if is_conflict(&error) || is_not_found(&error) => {
                if let Some(claim) = self.context.world.claim(name).filter(|claim| claim.uid == *uid) {
                    self.context.world.claim_gone(&claim);
                }
                Progress::NothingToDo
            }
            Err(error) if is_denied(&error) => {
                self.denied(&Subject::Claim(name.clone()), "deleting the NodeClaim", error, true)
            }
            Err(error) => failed("deleting the NodeClaim", error),
        }
    }

    /// Deletes a claim if no workload pods are on its node.
    pub(super) async fn delete_empty_claim(&self, claim: &Claim) -> Progress {
        if let Some(node) = &claim.node_name {
            match self.work_on(node, None).await {
                Ok(0) => {}
                Ok(pods) => {
                    info!(claim = %claim.name, node, pods, "not terminated: pods were bound to its node");
                    return Progress::Again(ASK_AGAIN);
                }
                Err(error) => return refused("listing the node's pods", &error),
            }
        }
        self.delete_claim(&claim.name, &claim.uid).await
    }

    /// Deletes a claim whose start seems to have failed, unless its node has changed since the decision.
    pub(super) async fn delete_failed_claim(&self, claim: &Claim) -> Progress {
        match self.kept_by_news(claim).await {
            Some(outcome) => outcome,
            None => self.delete_claim(&claim.name, &claim.uid).await,
        }
    }

    /// Keeps a claim if its node has changed since the decision: a watch may be minutes late, and the node may have joined or
    /// advertised its GPUs. Returns `None` if the node has not changed.
    pub(super) async fn kept_by_news(&self, claim: &Claim) -> Option<Progress> {
        match self.node_is_news(claim).await {
            Ok(false) => None,
            Ok(true) => {
                info!(claim = %claim.name, "not deleted: the watch was late, and its node is further than it showed");
                Some(Progress::Again(LOOK_AGAIN))
            }
            Err(error) => Some(refused("looking for the node", &error)),
        }
    }

    /// Returns whether the API server shows another version of the claim's node than the world.
    async fn node_is_news(&self, claim: &Claim) -> Result<bool, kube::Error> {
        let Some(launched) = &claim.launched else { return Ok(false) };
        let api = self.context.reader.all::<Node>();
        let id = launched.provider_id.as_str();
        let found = if let Some(name) = self.node_of(claim, Some(id)) {
            api.get(&name).await?
        } else {
            let api = self.context.reader.received::<Node>();
            let nodes = api.list(&ListParams::default()).await?.items;
            let its_id = |node: &Node| node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
            nodes
                .into_iter()
                .filter_map(|mut one| one.read::<Node>().ok())
                .find(|node| its_id(node).as_deref() == Some(id))
        };
        let Some(found) = found else { return Ok(false) };
        let Ok(node) = poolwright_intake::node(&found) else { return Ok(false) };
        let is_known =
            self.context.world.view(|all| all.nodes.get(&node.name).is_some_and(|known| **known == node));
        if !is_known {
            self.context.world.node_seen(&found);
        }
        Ok(!is_known)
    }

    pub(super) async fn terminate(&self, claim: &Claim, forced: bool) -> Progress {
        let provider = match self.context.providers.for_class(&claim.node_class) {
            Ok(provider) => provider.clone(),
            // It is unknown whether there is an instance, so the claim is kept and retried.
            Err(why) => return Progress::Retry(Duration::from_mins(1), why),
        };
        let provider_id = claim.launched.as_ref().map(|launched| launched.provider_id.as_str());
        if let Err(outcome) = self.end_instance(&provider, claim, provider_id, forced).await {
            if let Progress::Retry(_, why) = &outcome {
                let message =
                    format!("its instance is not known to be gone, and its termination is repeated: {why}");
                let subject = Subject::Claim(claim.name.clone());
                self.record_event(&subject, EventType::Warning, Reason::TerminationRetried, &message);
            }
            return outcome;
        }
        // Before the claim is removed: a watch may show its deletion early, and an older listing would then contain an instance
        // without a claim.
        if let Some(id) = provider_id {
            self.context.world.instance_gone(id);
        }
        if let Some(node) = self.node_of(claim, provider_id)
            && let Some(outcome) = self.delete_node(&node, provider_id).await
        {
            return outcome;
        }
        self.forget(claim).await
    }

    /// Terminates the instance of a claim, unless work on it forbids that.
    async fn end_instance(
        &self,
        provider: &Cloud,
        claim: &Claim,
        provider_id: Option<&str>,
        forced: bool,
    ) -> Result<(), Progress> {
        if let Some(wait) = unproven(provider, provider_id).await {
            return Err(wait);
        }
        if !forced
            && let Some(node) = self.node_of(claim, provider_id)
            && let Some(outcome) = self.kept_by_work(provider, provider_id, &node, claim.deleting_since).await
        {
            return Err(outcome);
        }
        self.give_back(provider, &claim.uid, provider_id, Some(claim)).await
    }

    /// Returns the name of the claim's node.
    fn node_of(&self, claim: &Claim, provider_id: Option<&str>) -> Option<String> {
        provider_id
            .and_then(|id| self.context.world.node_by_provider_id(id))
            .or_else(|| claim.node_name.clone())
    }

    /// Checks whether running pods forbid terminating the instance. Returns `None` if they do not, or if the instance is already
    /// ending, because its pods cannot be saved then.
    async fn kept_by_work(
        &self,
        provider: &Cloud,
        provider_id: Option<&str>,
        node: &str,
        closed: Option<Timestamp>,
    ) -> Option<Progress> {
        match self.work_on(node, closed).await {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) => return Some(refused("listing the node's pods", &error)),
        }
        let running = match provider_id {
            None => true,
            Some(id) => match look(provider, id).await {
                Ok(instance) => instance.is_some_and(|instance| instance.state == InstanceState::Running),
                Err(outcome) => return Some(outcome),
            },
        };
        running.then_some(Progress::Again(LOOK_AGAIN))
    }

    /// Deletes the Node object of a terminated instance. Returns `None` if it is deleted or did not exist.
    async fn delete_node(&self, name: &str, provider_id: Option<&str>) -> Option<Progress> {
        let api = self.context.reader.all::<Node>();
        let node = match api.get(name).await {
            Ok(Some(node)) => node,
            Ok(None) => return None,
            Err(error) => return Some(refused("reading the node", &error)),
        };
        let its_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
        if provider_id.is_some() && its_id != provider_id {
            return None; // Another machine has this name now.
        }
        let preconditions = Preconditions { uid: node.uid(), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..Default::default() };
        match self
            .context
            .writer
            .write("node", WRITE_LIMIT, async |permit| api.writable(permit).delete(name, &params).await)
            .await
        {
            Ok(_) => None,
            Err(error) if is_conflict(&error) => None,
            // An admission policy may deny it for ever. Its instance is gone, and its claim must not stay for that. If Poolwright
            // lacks a right, it lacks it for all nodes, and the claims are kept, so that no Node object is forgotten.
            Err(error) if is_denied(&error) => {
                let is_vital = !is_denied_by_policy(&error);
                let subject = Subject::Node(name.to_owned());
                let outcome =
                    self.denied(&subject, "deleting the node, whose instance is gone", error, is_vital);
                if is_vital {
                    return Some(outcome);
                }
                warn!(
                    node = name,
                    ?outcome,
                    "the instance is gone, but the Node object stays: delete it yourself"
                );
                None
            }
            Err(error) => match failed("deleting the node", error) {
                Progress::NothingToDo => None,
                other => Some(other),
            },
        }
    }

    /// Removes our finalizer, so that the claim is deleted.
    async fn forget(&self, claim: &Claim) -> Progress {
        let api = self.context.reader.all::<NodeClaim>();
        let object = match api.get(&claim.name.0).await {
            Ok(Some(object)) if object.uid().as_deref() == Some(&claim.uid.0) => object,
            Ok(_) => {
                self.context.world.claim_gone(claim);
                return Progress::NothingToDo;
            }
            Err(error) => return refused("reading the NodeClaim", &error),
        };
        if object.metadata.deletion_timestamp.is_none() {
            return Progress::NothingToDo;
        }
        let kept: Vec<&String> =
            object.finalizers().iter().filter(|one| *one != TERMINATION_FINALIZER).collect();
        let patch = json!({ "metadata": {
            "uid": claim.uid.0, "resourceVersion": object.resource_version(), "finalizers": kept,
        } });
        let params = patch_params();
        let patch = Patch::Merge(&patch);
        match self
            .context
            .writer
            .write("nodeclaim", WRITE_LIMIT, async |permit| {
                api.writable(permit).patch(&claim.name.0, &params, &patch).await
            })
            .await
        {
            Ok(_) => {
                // With another finalizer, the claim still exists, and the watch shows its deletion.
                if kept.is_empty() {
                    self.context.world.claim_gone(claim);
                    if let Some(took) = stage_durations::gone(&object, self.context.clock.now()) {
                        let duration = self.context.metrics.stage_duration.with_label_values(&["Gone"]);
                        duration.observe(took.as_secs_f64());
                    }
                }
                info!(claim = %claim.name, pool = %claim.pool, "the instance is gone, and so is the NodeClaim");
                Progress::Done
            }
            Err(error) if is_denied(&error) => {
                let subject = Subject::Claim(claim.name.clone());
                self.denied(&subject, "removing the finalizer of the NodeClaim", error, true)
            }
            Err(error) => failed("removing the finalizer", error),
        }
    }

    /// Terminates an instance without a claim. The API server is asked for the claim, by metadata only, so that unreadable
    /// claims count too.
    pub(super) async fn reap(&self, provider_id: &str, claim_uid: &Uid, class: &NodeClassRef) -> Progress {
        let api = self.context.reader.all::<NodeClaim>();
        let claims = match api.metadata(&ListParams::default()).await {
            Ok(claims) => claims,
            Err(error) => return refused("listing NodeClaims", &error),
        };
        if claims.items.iter().any(|claim| claim.metadata.uid.as_deref() == Some(claim_uid.0.as_str())) {
            // A claim exists that no watch has shown, or that cannot be read.
            return Progress::Again(Duration::from_secs(10));
        }
        let provider = match self.context.providers.for_class(class) {
            Ok(provider) => provider.clone(),
            Err(why) => return Progress::Retry(Duration::from_mins(1), why),
        };
        // The instance may be of another cluster.
        if let Some(wait) = doubted(&provider) {
            return wait;
        }
        let node = self.context.world.node_by_provider_id(provider_id);
        if let Some(node) = &node
            && let Some(outcome) = self.kept_by_work(&provider, Some(provider_id), node, None).await
        {
            let message = "its NodeClaim is gone, but pods still run here; the instance is terminated when they have ended";
            self.record_event(&Subject::Node(node.clone()), EventType::Warning, Reason::NoNodeClaim, message);
            return outcome;
        }
        if let Err(outcome) = self.give_back(&provider, claim_uid, Some(provider_id), None).await {
            return outcome;
        }
        if let Some(node) = &node
            && let Some(outcome) = self.delete_node(node, Some(provider_id)).await
        {
            return outcome;
        }
        self.context.world.instance_gone(provider_id);
        self.context.metrics.reaped.inc();
        warn!(provider_id, claim_uid = %claim_uid.0, "terminated an instance without a NodeClaim");
        Progress::Done
    }
}
