//! Writes pods: adds tolerations for reserved nodes, and nominates pods. Also checks with the API server whether pods run on a
//! node.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Toleration};
use kube::api::{ListParams, Patch};
use poolwright_core::{self as core, ClaimName, ObjectKey, PodPhase, PodRole, Subject, Uid, lifecycle};
use poolwright_terms::keys::RESERVED_TAINT;
use serde_json::json;
use tracing::{debug, warn};

use super::Executor;
use super::progress::{Progress, failed, refused};
use super::status::{WRITE_LIMIT, is_conflict, is_denied, patch_params};
use crate::leader::writer::WriteError;

/// The number of attempts after conflicts before the action is retried later.
const ATTEMPTS: u32 = 6;

impl Executor {
    /// Nominates a pod to a node. The UID in the patch makes the API server refuse it for a later pod of the same name.
    pub(super) async fn nominate(&self, pod: &ObjectKey, uid: &Uid, node: &str) -> Progress {
        let api = self.context.reader.namespaced::<Pod>(&pod.namespace);
        let patch = json!({ "metadata": { "uid": uid.0 }, "status": { "nominatedNodeName": node } });
        let params = patch_params();
        let patch = Patch::Merge(&patch);
        match self
            .context
            .writer
            .write("pod", WRITE_LIMIT, async |permit| {
                api.writable(permit).patch_status(&pod.name, &params, &patch).await
            })
            .await
        {
            Ok(pod) => {
                self.context.world.pod_seen(&pod);
                Progress::Done
            }
            Err(error) if is_conflict(&error) => Progress::NothingToDo,
            // A nomination is only a hint, so the node opens anyway.
            Err(error) if is_denied(&error) => {
                if self.needs_no_nomination(pod, uid).await {
                    debug!(%pod, node, ?error, "not nominated");
                    return Progress::NothingToDo;
                }
                self.denied(&Subject::Pod(pod.clone()), "nominating the pod", error, false)
            }
            Err(error) => failed("nominating a pod", error),
        }
    }

    /// Returns whether a pod was bound or deleted meanwhile. The API server accepts the nomination of a bound pod, but a policy need
    /// not, and nothing is lost then.
    async fn needs_no_nomination(&self, pod: &ObjectKey, uid: &Uid) -> bool {
        let Ok(found) = self.context.reader.namespaced::<Pod>(&pod.namespace).get(&pod.name).await else {
            return false;
        };
        let Some(found) = found else { return true };
        self.context.world.pod_seen(&found);
        let is_bound = found.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        is_bound || found.metadata.uid.as_ref() != Some(&uid.0)
    }

    /// Adds a toleration for the taint of the claim's reserved node to the pod. The other tolerations are written back as read,
    /// because the API server accepts no other change.
    pub(super) async fn tolerate(&self, key: &ObjectKey, uid: &Uid, claim: &ClaimName) -> Progress {
        let api = self.context.reader.namespaced::<Pod>(&key.namespace);
        let wanted = Toleration {
            key: Some(RESERVED_TAINT.to_owned()),
            operator: Some("Equal".to_owned()),
            value: Some(claim.0.clone()),
            effect: Some("NoSchedule".to_owned()),
            toleration_seconds: None,
        };
        for _ in 0..ATTEMPTS {
            let pod = match api.get(&key.name).await {
                Ok(Some(pod)) => pod,
                Ok(None) => return Progress::NothingToDo,
                Err(kube::Error::Api(status)) if status.is_forbidden() => {
                    return self.toleration_refused(key, status.code, &status.message).await;
                }
                Err(error) => return refused("reading a pod", &error),
            };
            let spec = pod.spec.as_ref();
            let mut tolerations = spec.and_then(|spec| spec.tolerations.clone()).unwrap_or_default();
            let placed = spec.is_some_and(|spec| spec.node_name.is_some());
            if pod.metadata.uid.as_ref() != Some(&uid.0) || placed || tolerations.contains(&wanted) {
                self.context.world.pod_seen(&pod);
                return Progress::NothingToDo;
            }
            tolerations.push(wanted.clone());
            let patch = json!({
                "metadata": { "uid": uid.0, "resourceVersion": pod.metadata.resource_version },
                "spec": { "tolerations": tolerations },
            });
            let params = patch_params();
            let patch = Patch::Merge(&patch);
            match self
                .context
                .writer
                .write("pod", WRITE_LIMIT, async |permit| {
                    api.writable(permit).patch(&key.name, &params, &patch).await
                })
                .await
            {
                Ok(pod) => {
                    self.context.world.pod_seen(&pod);
                    return Progress::Done;
                }
                // The scheduler writes pods too.
                Err(error) if is_conflict(&error) => {}
                Err(WriteError::Failed(kube::Error::Api(status))) if matches!(status.code, 403 | 422) => {
                    return self.toleration_refused(key, status.code, &status.message).await;
                }
                Err(error) => return failed("adding a toleration to a pod", error),
            }
        }
        Progress::retry("somebody else keeps changing the pod")
    }

    /// Handles a refused toleration. Permissions, a policy or a webhook forbid it, probably for the whole namespace, so the pods
    /// of the namespace are nominated instead.
    async fn toleration_refused(&self, pod: &ObjectKey, code: u16, why: &str) -> Progress {
        let cause = if code == 403 { "forbidden" } else { "invalid" };
        self.context.metrics.tolerations_refused.with_label_values(&[cause]).inc();
        let actions = self.context.world.learn(&core::Outcome::TolerationRefused { pod, why });
        if !actions.is_empty() {
            warn!(%pod, why, "a toleration was refused; pods of its namespace are nominated instead");
        }
        self.follow_up(actions).await;
        Progress::NothingToDo
    }

    /// Returns the number of unfinished workload pods on a node, read from the API server. Unreadable pods count. If the node was
    /// closed at `closed`, only pods that a drain waits for count.
    pub(super) async fn work_on(&self, node: &str, closed: Option<Timestamp>) -> Result<usize, kube::Error> {
        let api = self.context.reader.received::<Pod>();
        let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods = api.list(&params).await?;
        let now = self.context.clock.now();
        let pods = pods.items.into_iter().map(|mut pod| pod.read());
        Ok(pods.filter(|pod| is_work(pod.as_ref(), closed, now)).count())
    }
}

fn is_work(pod: Result<&Pod, &String>, closed: Option<Timestamp>, now: Timestamp) -> bool {
    match pod.map(poolwright_intake::pod) {
        Ok(Ok(pod)) => {
            let waited_for = closed.is_none_or(|closed| lifecycle::is_waited_for(&pod, closed, now));
            pod.role == PodRole::Workload && pod.phase != PodPhase::Finished && waited_for
        }
        _ => true,
    }
}
