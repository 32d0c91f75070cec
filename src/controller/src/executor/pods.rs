//! Pods: nominating them, and looking, live, whether any work is on a node.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::DeserializeGuard;
use poolwright_api::names::FIELD_MANAGER;
use poolwright_core::{PodKey, PodPhase, PodRole, Uid};
use serde_json::json;
use tracing::debug;

use super::Executor;
use super::outcome::{Outcome, failed};
use super::status::{WRITE_LIMIT, is_conflict};
use crate::writer::WriteError;

impl Executor {
    /// Tells the scheduler where the pod was planned. The UID in the patch makes the API server refuse it for a later pod
    /// of the same name.
    pub(super) async fn nominate(&self, pod: &PodKey, uid: &Uid, node: &str) -> Outcome {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let patch = json!({ "metadata": { "uid": uid.0 }, "status": { "nominatedNodeName": node } });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..Default::default() };
        let patch = Patch::Merge(&patch);
        match self.writer.write("pod", WRITE_LIMIT, || api.patch_status(&pod.name, &params, &patch)).await {
            Ok(pod) => {
                self.world.pod_seen(&pod);
                Outcome::Done
            }
            Err(error) if is_conflict(&error) => Outcome::NothingToDo,
            // Bound meanwhile, most likely. A nomination is advice: a node does not stay closed because of it.
            Err(WriteError::Failed(kube::Error::Api(status))) if status.code == 422 => {
                debug!(%pod, node, why = %status.message, "not nominated");
                Outcome::NothingToDo
            }
            Err(error) => failed("nominating a pod", error),
        }
    }

    /// How many workload pods are on a node that have not ended, asked of the API server itself. A pod that cannot be
    /// read counts: it may be work.
    pub(super) async fn work_on(&self, node: &str) -> Result<usize, kube::Error> {
        let api: Api<DeserializeGuard<Pod>> = Api::all(self.client.clone());
        let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods = api.list(&params).await?;
        Ok(pods.items.into_iter().filter(is_work).count())
    }
}

fn is_work(pod: &DeserializeGuard<Pod>) -> bool {
    let Ok(pod) = &pod.0 else { return true };
    match crate::convert::pod(pod) {
        Ok(pod) => pod.role == PodRole::Workload && pod.phase != PodPhase::Finished,
        Err(_) => true,
    }
}
