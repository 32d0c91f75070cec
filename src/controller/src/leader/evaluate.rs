//! Decides what to do about the Lease, as a pure function.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;

/// A Lease as last read, with the time since which it has not changed, on our monotonic clock. Other machines' clocks are not
/// trusted. The only assumption is that a live holder writes its Lease within its duration.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The Lease.
    pub lease: Lease,
    /// When this version was first seen.
    pub since: Duration,
}

impl Observed {
    /// Updates the observation with a fresh read. The time stays the same if the Lease has not changed.
    pub fn update(previous: Option<Self>, lease: Lease, now: Duration) -> Self {
        let version = |lease: &Lease| lease.metadata.resource_version.clone();
        match previous {
            Some(seen) if version(&seen.lease).is_some() && version(&seen.lease) == version(&lease) => seen,
            _ => Self { lease, since: now },
        }
    }
}

/// What to do about the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nobody holds it: acquire it, with its resource version.
    Acquire,
    /// We hold it: renew it, with its resource version.
    Renew,
    /// Somebody else holds it, at least until this time on our monotonic clock.
    Wait(Duration),
}

/// Decides what to do. `None` means that there is no Lease yet.
pub fn evaluate(observed: Option<&Observed>, identity: &str, now: Duration) -> Decision {
    let Some(observed) = observed else { return Decision::Acquire };
    let Some(spec) = &observed.lease.spec else { return Decision::Acquire };
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    if holder == identity {
        return Decision::Renew;
    }
    if holder.is_empty() {
        return Decision::Acquire;
    }
    let duration = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(15);
    let free_at = observed.since.saturating_add(Duration::from_secs(duration));
    if now >= free_at { Decision::Acquire } else { Decision::Wait(free_at) }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use kube::api::ObjectMeta;

    use super::*;

    const T: Duration = Duration::from_secs(1000);

    fn lease(version: &str, holder: Option<&str>) -> Lease {
        Lease {
            metadata: ObjectMeta { resource_version: Some(version.into()), ..Default::default() },
            spec: Some(LeaseSpec {
                holder_identity: holder.map(Into::into),
                lease_duration_seconds: Some(15),
                ..Default::default()
            }),
        }
    }

    fn seen(lease: Lease) -> Observed {
        Observed { lease, since: T }
    }

    #[test]
    fn each_state_of_the_lease_has_its_answer() {
        let after = |seconds| T + Duration::from_secs(seconds);
        let nobody = lease("1", None);
        let given_up = lease("1", Some(""));
        let empty = Lease { spec: None, ..lease("1", None) };
        let ours = lease("1", Some("me"));
        let theirs = lease("1", Some("them"));
        let cases = [
            ("no lease yet", None, T, Decision::Acquire),
            ("a lease without a spec", Some(empty), T, Decision::Acquire),
            ("never held", Some(nobody), T, Decision::Acquire),
            ("released", Some(given_up), T, Decision::Acquire),
            ("ours", Some(ours.clone()), T, Decision::Renew),
            ("ours, long not renewed", Some(ours), after(100), Decision::Renew),
            ("theirs, fresh", Some(theirs.clone()), T, Decision::Wait(after(15))),
            ("theirs, nearly over", Some(theirs.clone()), after(14), Decision::Wait(after(15))),
            ("theirs, unchanged for its duration", Some(theirs), after(15), Decision::Acquire),
        ];
        for (case, lease, now, expected) in cases {
            let observed = lease.map(seen);
            assert_eq!(evaluate(observed.as_ref(), "me", now), expected, "{case}");
        }
    }

    #[test]
    fn a_lease_that_changes_is_never_taken() {
        let mut observed = None;
        for step in 0..10 {
            let now = T + Duration::from_secs(10 * step);
            let fresh = Observed::update(observed, lease(&step.to_string(), Some("them")), now);
            assert!(matches!(evaluate(Some(&fresh), "me", now), Decision::Wait(_)), "step {step}");
            observed = Some(fresh);
        }
    }

    #[test]
    fn reading_the_same_version_again_keeps_its_time() {
        let first = Observed::update(None, lease("7", Some("them")), T);
        let again = Observed::update(Some(first), lease("7", Some("them")), T + Duration::from_secs(15));
        assert_eq!(again.since, T);
        assert_eq!(evaluate(Some(&again), "me", T + Duration::from_secs(15)), Decision::Acquire);
    }
}
