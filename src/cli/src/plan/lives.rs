//! What is known about the durations of pods: what the controller of the current cluster has learned, also about nodes without work
//! and pods that come, and what pods of files declare.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::{Api, Client, Error};
use poolwright_controller::{LIVES, Learned, causes};
use poolwright_core::{Lives, Pod, PodPhase, PodRole, Snapshot};

/// The namespace that the manifests of the controller use. It is tried if you may not look into all namespaces.
const NAMESPACE: &str = "poolwright";

/// Reads what was learned; nothing if the controller has not written any.
///
/// # Errors
///
/// A sentence that says why they cannot be read. A plan is possible without them.
pub async fn learned(client: &Client) -> Result<Learned, String> {
    let by_name = ListParams::default().fields(&format!("metadata.name={LIVES}"));
    let object = match Api::<ConfigMap>::all(client.clone()).list(&by_name).await {
        Ok(listed) => Ok(listed.items.into_iter().next()),
        Err(Error::Api(status)) if status.code == 403 => {
            Api::<ConfigMap>::namespaced(client.clone(), NAMESPACE).get_opt(LIVES).await
        }
        Err(error) => Err(error),
    };
    match object {
        Ok(object) => object.as_ref().map_or_else(|| Ok(Learned::default()), Learned::read),
        Err(error) => Err(causes(&error)),
    }
}

/// Adds to a snapshot what is known about the durations of pods, about nodes without work, and about the pods that come. If some of what
/// the controller has learned cannot be used, returns a sentence that says so.
pub fn put_in(snapshot: &mut Snapshot, learned: Result<Learned, String>, now: Timestamp) -> Option<String> {
    let mut lives = Lives::prior();
    let unread = match learned {
        Ok(learned) => {
            let all = learned.lives.len();
            let forgotten = lives.set_tables(learned.lives);
            snapshot.gaps = Arc::new(learned.gaps);
            snapshot.arrivals = Arc::new(learned.arrivals);
            (forgotten > 0).then(|| {
                format!(
                    "ConfigMap {LIVES} has {all} kinds of pods; so only the {} that ended last count",
                    all - forgotten
                )
            })
        }
        Err(why) => Some(format!(
            "ConfigMap {LIVES} cannot be read ({why}); so only what pods declare, and usual durations, count"
        )),
    };
    let running = snapshot.pods.bound().filter(|pod| pod.has_started_work());
    lives.refresh(running, now);
    snapshot.lives = Arc::new(lives);
    unread
}

/// Adds to a snapshot of files what its pods declare about their durations, if one does. Nothing has been learned there, so usual
/// durations count for the others.
pub fn put_in_declared(snapshot: &mut Snapshot, now: Timestamp) {
    let declares = |pod: &Arc<Pod>| {
        pod.phase != PodPhase::Finished && pod.role == PodRole::Workload && pod.duration.is_declared()
    };
    if snapshot.pods.values().any(declares) {
        put_in(snapshot, Ok(Learned::default()), now);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use poolwright_core::LifeTable;

    use super::*;

    #[test]
    fn more_kinds_of_pods_than_count_are_said_and_fewer_are_not() {
        let told = |kinds: usize| {
            let lives: BTreeMap<String, LifeTable> =
                (0..kinds).map(|kind| (format!("{kind} GPUs"), LifeTable::default())).collect();
            let learned = Learned { lives, ..Learned::default() };
            put_in(&mut Snapshot::default(), Ok(learned), Timestamp::UNIX_EPOCH)
        };
        assert_eq!(told(400), None);
        let wanted =
            "ConfigMap poolwright-lives has 402 kinds of pods; so only the 400 that ended last count";
        assert_eq!(told(402).as_deref(), Some(wanted));
    }
}
