//! The end of pods: their grace period and their protection from disruption.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as k8s;
use poolwright_api::parse_duration;
use poolwright_core::{Ending, Protection};
use poolwright_terms::keys;

/// `false` protects.
const CLUSTER_AUTOSCALER: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";

pub(crate) fn of(pod: &k8s::Pod, spec: &k8s::PodSpec) -> Ending {
    let nothing = Ending::default();
    let grace = spec.termination_grace_period_seconds;
    Ending {
        grace: grace.map_or(nothing.grace, |seconds| SignedDuration::from_secs(seconds.max(0))),
        protection: protection(pod),
    }
}

/// Returns the strongest protection among the pod's annotations. An invalid value protects too, because its author wanted
/// protection.
fn protection(pod: &k8s::Pod) -> Option<Protection> {
    let annotations = pod.metadata.annotations.as_ref()?;
    let said = |key: &str| Some((format!("{key}={}", annotations.get(key)?), annotations.get(key)?.as_str()));
    let since = || {
        let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
        started.or(pod.metadata.creation_timestamp.as_ref()).map_or(Timestamp::UNIX_EPOCH, |time| time.0)
    };
    let disturbing = [keys::DO_NOT_DISRUPT_ANNOTATION, keys::KARPENTER_DO_NOT_DISRUPT_ANNOTATION]
        .into_iter()
        .filter_map(said);
    let disturbing = disturbing.filter(|(_, value)| *value != "false").map(|(annotation, value)| {
        let length = parse_duration(value).ok();
        let until = length.map(|length| since().checked_add(length).unwrap_or(Timestamp::MAX));
        Protection { annotation, until }
    });
    let evicting = said(CLUSTER_AUTOSCALER).filter(|(_, value)| *value == "false");
    let evicting = evicting.map(|(annotation, _)| Protection { annotation, until: None });
    disturbing.chain(evicting).max_by_key(|one| (one.until.is_none(), one.until))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(annotations: &serde_json::Value) -> Ending {
        let pod: k8s::Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "annotations": annotations, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"containers": [], "terminationGracePeriodSeconds": 90},
            "status": {"startTime": "2026-01-01T01:00:00Z"},
        }))
        .unwrap();
        of(&pod, &pod.spec.clone().unwrap())
    }

    fn until(annotations: &serde_json::Value) -> String {
        let protection = read(annotations).protection;
        protection.map_or("unprotected".to_owned(), |one| {
            one.until.map_or("for good".to_owned(), |until| until.to_string())
        })
    }

    #[test]
    fn a_pod_is_protected_for_good_or_for_a_time_from_its_start() {
        assert_eq!(read(&json!({})), Ending { grace: SignedDuration::from_secs(90), protection: None });
        assert_eq!(until(&json!({"poolwright.dev/do-not-disrupt": "true"})), "for good");
        assert_eq!(until(&json!({"poolwright.dev/do-not-disrupt": "4h"})), "2026-01-01T05:00:00Z");
        assert_eq!(until(&json!({"poolwright.dev/do-not-disrupt": "false"})), "unprotected");
        assert_eq!(until(&json!({"poolwright.dev/do-not-disrupt": "four hours"})), "for good");
    }

    #[test]
    fn annotations_of_other_autoscalers_are_read_and_the_longest_protection_counts() {
        assert_eq!(until(&json!({"karpenter.sh/do-not-disrupt": "true"})), "for good");
        assert_eq!(until(&json!({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"})), "for good");
        assert_eq!(until(&json!({"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"})), "unprotected");
        let both = json!({"poolwright.dev/do-not-disrupt": "2h", "karpenter.sh/do-not-disrupt": "3h"});
        assert_eq!(until(&both), "2026-01-01T04:00:00Z");
    }
}
