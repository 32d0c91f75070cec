//! Taints and tolerations.

use std::fmt;

use super::Rejection;
use crate::model::{Effect, Taint, Toleration, TolerationMatch};

/// Key of the taint that a cordon brings.
pub const CORDON_TAINT: &str = "node.kubernetes.io/unschedulable";
/// Key of the taint of a node that is not ready.
pub const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";
/// Key of the taint of a node that is not heard of.
pub const UNREACHABLE_TAINT: &str = "node.kubernetes.io/unreachable";

/// Taints that the DaemonSet controller makes every pod of a DaemonSet tolerate
/// (<https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations>).
const TOLERATED_BY_DAEMONSETS: [&str; 7] = [
    NOT_READY_TAINT,
    UNREACHABLE_TAINT,
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/pid-pressure",
    CORDON_TAINT,
    "node.kubernetes.io/network-unavailable",
];

/// Whether every taint that keeps pods away is tolerated. `PreferNoSchedule` keeps none away.
pub fn check(tolerations: &[Toleration], taints: &[Taint]) -> Result<(), Rejection> {
    let blocks = |taint: &&Taint| taint.effect != Effect::PreferNoSchedule && !tolerated(tolerations, taint);
    taints.iter().find(blocks).map_or(Ok(()), |taint| Err(Rejection::Taint(taint.clone())))
}

/// The same for a pod of a DaemonSet.
pub fn check_daemonset(tolerations: &[Toleration], taints: &[Taint]) -> Result<(), Rejection> {
    let blocks = |taint: &&Taint| {
        taint.effect != Effect::PreferNoSchedule
            && !TOLERATED_BY_DAEMONSETS.contains(&taint.key.as_str())
            && !tolerated(tolerations, taint)
    };
    taints.iter().find(blocks).map_or(Ok(()), |taint| Err(Rejection::Taint(taint.clone())))
}

fn tolerated(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| tolerates(toleration, taint))
}

/// Whether one toleration tolerates one taint.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    toleration.effect.is_none_or(|effect| effect == taint.effect)
        && match (&toleration.key, &toleration.matches) {
            (None, TolerationMatch::Exists) => true,
            (None, TolerationMatch::Equal(_)) => false,
            (Some(key), TolerationMatch::Exists) => *key == taint.key,
            (Some(key), TolerationMatch::Equal(value)) => *key == taint.key && *value == taint.value,
        }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        })
    }
}

impl fmt::Display for Taint {
    /// As `kubectl taint` writes it: `key=value:Effect`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value.is_empty() {
            write!(f, "{}:{}", self.key, self.effect)
        } else {
            write!(f, "{}={}:{}", self.key, self.value, self.effect)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(effect: Effect) -> Taint {
        Taint { key: "gpu".into(), value: "yes".into(), effect }
    }

    fn toleration(key: Option<&str>, matches: TolerationMatch, effect: Option<Effect>) -> Toleration {
        Toleration { key: key.map(str::to_owned), matches, effect }
    }

    #[test]
    fn a_toleration_must_match_key_value_and_effect() {
        let equal = |value: &str| TolerationMatch::Equal(value.into());
        let no_schedule = taint(Effect::NoSchedule);
        assert!(tolerates(&toleration(None, TolerationMatch::Exists, None), &no_schedule));
        assert!(tolerates(&toleration(Some("gpu"), equal("yes"), None), &no_schedule));
        assert!(!tolerates(&toleration(Some("gpu"), equal("no"), None), &no_schedule));
        assert!(!tolerates(&toleration(Some("cpu"), TolerationMatch::Exists, None), &no_schedule));
        let executes = toleration(Some("gpu"), TolerationMatch::Exists, Some(Effect::NoExecute));
        assert!(!tolerates(&executes, &no_schedule) && tolerates(&executes, &taint(Effect::NoExecute)));
    }

    #[test]
    fn a_soft_taint_keeps_nobody_away_and_a_hard_one_is_named() {
        assert!(check(&[], &[taint(Effect::PreferNoSchedule)]).is_ok());
        let rejection = check(&[], &[taint(Effect::NoSchedule)]).expect_err("nothing tolerates it");
        assert_eq!(rejection.to_string(), "does not tolerate the taint `gpu=yes:NoSchedule`");
    }

    #[test]
    fn pods_of_daemonsets_enter_cordoned_nodes() {
        let cordon = Taint { key: CORDON_TAINT.into(), value: String::new(), effect: Effect::NoSchedule };
        assert!(check(&[], std::slice::from_ref(&cordon)).is_err());
        assert!(check_daemonset(&[], &[cordon]).is_ok());
    }
}
