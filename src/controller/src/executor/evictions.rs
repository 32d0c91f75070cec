//! Evicts and deletes pods.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::core::Status;
use poolwright_core::{EventType, ObjectKey, Subject, Uid};
use poolwright_terms::Reason;
use tracing::{info, warn};

use super::Executor;
use super::progress::{Progress, failed};
use super::status::{WRITE_LIMIT, is_conflict, is_denied};
use crate::leader::writer::WriteError;

/// The pause before an eviction is retried, because a budget refused it or the pod has not ended.
const ASK_AGAIN: Duration = Duration::from_secs(5);

impl Executor {
    /// Evicts the pod with this UID. A PodDisruptionBudget may refuse.
    pub(super) async fn evict(&self, key: &ObjectKey, uid: &Uid, why: &str) -> Progress {
        let api = self.context.reader.namespaced::<Pod>(&key.namespace);
        let eviction = eviction(key, uid);
        let reason = self.context.world.why_it_leaves(key);
        let count = |result: &str| self.context.metrics.evictions.with_label_values(&[result, reason]).inc();
        match self
            .context
            .writer
            .write("eviction", WRITE_LIMIT, async |permit| {
                let api = api.writable(permit);
                api.create_subresource::<_, Status>("eviction", &key.name, &PostParams::default(), &eviction)
                    .await
            })
            .await
        {
            Ok(_) => {
                count("evicted");
                info!(pod = %key, "evicted: {why}");
                self.record_event(
                    &subject(key),
                    EventType::Normal,
                    Reason::Evicted,
                    &format!("{why}, so the pod is evicted"),
                );
                Progress::Again(ASK_AGAIN)
            }
            // Another pod of the same name exists: the pod has ended.
            Err(error) if is_conflict(&error) => Progress::NothingToDo,
            Err(WriteError::Failed(kube::Error::Api(status))) if is_refusal(status.code, &status.message) => {
                count("refused");
                let message =
                    format!("{why}, but the API server refuses to evict the pod now: {}", status.message);
                self.record_event(&subject(key), EventType::Warning, Reason::EvictionRefused, &message);
                Progress::Again(ASK_AGAIN)
            }
            Err(WriteError::Failed(kube::Error::Api(status)))
                if is_of_ending_namespace(status.code, &status.message) =>
            {
                count("refused");
                Progress::Again(ASK_AGAIN)
            }
            Err(error) if is_denied(&error) => {
                count("error");
                self.denied(&subject(key), "evicting the pod", error, false)
            }
            Err(error) => {
                count("error");
                failed("evicting a pod", error)
            }
        }
    }

    /// Deletes the pod with this UID with a grace period, regardless of budgets.
    pub(super) async fn end_pod(&self, key: &ObjectKey, uid: &Uid, grace: SignedDuration) -> Progress {
        let reason = self.context.world.why_it_leaves(key);
        let api = self.context.reader.namespaced::<Pod>(&key.namespace);
        let seconds = u32::try_from(grace.as_secs()).unwrap_or(u32::MAX);
        let params = DeleteParams {
            grace_period_seconds: Some(seconds),
            preconditions: Some(this_very(uid)),
            ..Default::default()
        };
        match self
            .context
            .writer
            .write("pod", WRITE_LIMIT, async |permit| api.writable(permit).delete(&key.name, &params).await)
            .await
        {
            Ok(answer) => {
                if let Some(pod) = answer.left() {
                    self.context.world.pod_seen(&pod);
                }
                self.context.metrics.evictions.with_label_values(&["forced", reason]).inc();
                warn!(pod = %key, seconds, "deleted: its node must end soon");
                let message = format!(
                    "its node must end soon, so the pod is deleted with a grace period of {seconds} s"
                );
                self.record_event(&subject(key), EventType::Warning, Reason::Ended, &message);
                Progress::Done
            }
            Err(error) if is_conflict(&error) => Progress::NothingToDo,
            Err(error) if is_denied(&error) => self.denied(&subject(key), "deleting the pod", error, false),
            Err(error) => failed("ending a pod", error),
        }
    }
}

/// Returns whether this answer refuses an eviction: a budget allows none now, or the API server is busy, which has the same status;
/// or several budgets select the pod, which the API server answers with an error of its own.
fn is_refusal(code: u16, message: &str) -> bool {
    code == 429 || code == 500 && message.contains("more than one PodDisruptionBudget")
}

/// Returns whether this answer refuses an eviction because the namespace is being deleted. Nobody forbids it, and the namespace
/// controller deletes the pod.
fn is_of_ending_namespace(code: u16, message: &str) -> bool {
    code == 403 && message.contains("because it is being terminated")
}

/// Returns the eviction of the pod with this UID. kube's own sends the UID in a field that no API server reads, and a later pod of
/// the same name would be evicted.
fn eviction(key: &ObjectKey, uid: &Uid) -> Eviction {
    let preconditions = meta::Preconditions { uid: Some(uid.0.clone()), resource_version: None };
    Eviction {
        metadata: meta::ObjectMeta { name: Some(key.name.clone()), ..Default::default() },
        delete_options: Some(meta::DeleteOptions {
            preconditions: Some(preconditions),
            ..Default::default()
        }),
    }
}

fn this_very(uid: &Uid) -> Preconditions {
    Preconditions { uid: Some(uid.0.clone()), resource_version: None }
}

fn subject(pod: &ObjectKey) -> Subject {
    Subject::Pod(pod.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eviction_is_refused_by_a_budget_and_by_two_but_not_by_a_broken_server() {
        let of_two = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        assert!(is_refusal(429, "Cannot evict pod as it would violate the pod's disruption budget."));
        assert!(is_refusal(500, of_two));
        assert!(!is_refusal(500, "etcdserver: request timed out"));
        assert!(!is_refusal(404, "pods \"a\" not found"));
    }

    #[test]
    fn an_eviction_in_a_namespace_that_is_being_deleted_is_not_denied() {
        let ends = "unable to create new content in namespace ml because it is being terminated";
        assert!(is_of_ending_namespace(403, ends));
        assert!(!is_of_ending_namespace(403, "User \"poolwright\" cannot create resource \"pods/eviction\""));
    }
}
