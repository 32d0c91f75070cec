//! Volumes that one node at a time attaches (`ReadWriteOnce`), as by the attach-detach controller.
//!
//! The kube-scheduler binds pods of one such volume to several nodes. Then the volume goes to the node whose pod starts first, and
//! the pods on other nodes wait until no pod of that node uses it.

use axum::http::Method;
use poolwright_core::{ObjectKey, Pod, PodKey, PodPhase, PodVolume};
use serde_json::json;

use super::pods::STARTS;
use super::{Cluster, Due};

impl Cluster {
    /// Attaches the volumes of a pod that one node at a time attaches to its node. Returns false if another node has one of them:
    /// then the pod waits, and an event says why.
    pub(super) fn mount(&mut self, key: &PodKey, uid: &str) -> bool {
        let Some(pod) = self.pod(key, uid) else { return false };
        let PodPhase::Bound { node } = &pod.phase else { return false };
        let claims = self.for_one_node(&pod);
        for claim in &claims {
            let Some(other) = self.mounted.get(claim).filter(|other| *other != node) else { continue };
            let Some(user) = self.user_on(claim, other) else { continue };
            let message = format!(
                "pod {user} on node {other} uses PersistentVolumeClaim {claim} (ReadWriteOnce), whose volume only one node at a time \
                 attaches; this pod starts when no pod of that node uses it, so give both required pod affinity to each other, or use \
                 a volume with ReadWriteMany"
            );
            self.say_not_attached(&pod, &message);
            self.unmounted.insert((key.clone(), uid.to_owned()));
            return false;
        }
        for claim in claims {
            self.mounted.insert(claim, node.clone());
        }
        true
    }

    /// Tries to start the pods that wait for a volume, because a pod has ended.
    pub(super) fn mount_again(&mut self) {
        // Each of them waits again if another node still has its volume.
        for (pod, uid) in std::mem::take(&mut self.unmounted) {
            if self.pod(&pod, &uid).is_some() {
                self.after(STARTS.0, STARTS.1, Due::Start { pod, uid });
            }
        }
    }

    /// Returns the claims of a pod for volumes that one node at a time attaches.
    fn for_one_node(&self, pod: &Pod) -> Vec<ObjectKey> {
        let key = |volume: &PodVolume| match volume {
            PodVolume::Claim { name, .. } => Some(ObjectKey::new(pod.key.namespace(), name)),
            PodVolume::Attached { .. } => None,
        };
        let claims = &self.view().volume_claims;
        let is_its = |key: &ObjectKey| claims.get(key).is_some_and(|claim| claim.is_for_one_node());
        pod.volumes.iter().filter_map(key).filter(is_its).collect()
    }

    /// Returns a pod on a node that uses a claim.
    fn user_on(&self, claim: &ObjectKey, node: &str) -> Option<PodKey> {
        let here = self.view().pods.on_node(node);
        let mut pods = here.into_iter().flat_map(|here| &here.pods);
        let uses = |pod: &Pod| {
            matches!(pod.phase, PodPhase::Bound { .. })
                && pod.key.namespace() == claim.namespace
                && pod
                    .volumes
                    .iter()
                    .any(|volume| matches!(volume, PodVolume::Claim { name, .. } if *name == claim.name))
        };
        pods.find(|pod| uses(pod)).map(|pod| pod.key.clone())
    }

    /// Records an event like that of the attach-detach controller.
    fn say_not_attached(&self, pod: &Pod, message: &str) {
        let (namespace, name) = (pod.key.namespace(), pod.key.name());
        let now = self.time.now();
        let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": {"name": format!("{name}.{:x}", now.as_nanosecond())},
            "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
            "type": "Warning", "reason": "FailedAttachVolume", "action": "FailedAttachVolume", "note": message,
            "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": pod.uid.0},
            "reportingController": "attachdetach-controller", "reportingInstance": "attachdetach-controller"});
        self.ask(&Method::POST, &format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"), &event);
        self.record.say(format_args!("{} waits for its volume: {message}", pod.key));
    }
}
