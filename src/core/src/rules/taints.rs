//! Taints and tolerations.

use poolwright_terms::keys::{
    CORDON_TAINT, DISK_PRESSURE_TAINT, MEMORY_PRESSURE_TAINT, NETWORK_UNAVAILABLE_TAINT, NOT_READY_TAINT,
    PID_PRESSURE_TAINT, UNREACHABLE_TAINT,
};
use poolwright_terms::{Taint, TaintEffect};

use crate::model::{Toleration, TolerationMatch};
use crate::rules::rejection::Rejection;

/// Taints that the DaemonSet controller makes every pod of a DaemonSet tolerate
/// (<https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations>).
const TOLERATED_BY_DAEMONSETS: [&str; 7] = [
    NOT_READY_TAINT,
    UNREACHABLE_TAINT,
    DISK_PRESSURE_TAINT,
    MEMORY_PRESSURE_TAINT,
    PID_PRESSURE_TAINT,
    CORDON_TAINT,
    NETWORK_UNAVAILABLE_TAINT,
];

/// Checks whether every `NoSchedule` and `NoExecute` taint is tolerated. `PreferNoSchedule` taints do not matter here.
pub fn check(tolerations: &[Toleration], taints: &[Taint]) -> Result<(), Rejection> {
    let mut blocking = untolerated(tolerations, taints);
    blocking.next().map_or(Ok(()), |taint| Err(Rejection::Taint(taint.clone())))
}

/// Returns the `NoSchedule` and `NoExecute` taints that are not tolerated.
pub fn untolerated<'t>(tolerations: &[Toleration], taints: &'t [Taint]) -> impl Iterator<Item = &'t Taint> {
    taints
        .iter()
        .filter(move |taint| taint.effect != TaintEffect::PreferNoSchedule && !tolerated(tolerations, taint))
}

/// Does the same check for a pod of a DaemonSet.
pub fn check_daemonset(tolerations: &[Toleration], taints: &[Taint]) -> Result<(), Rejection> {
    let blocks = |taint: &&Taint| {
        taint.effect != TaintEffect::PreferNoSchedule
            && !TOLERATED_BY_DAEMONSETS.contains(&taint.key.as_str())
            && !tolerated(tolerations, taint)
    };
    taints.iter().find(blocks).map_or(Ok(()), |taint| Err(Rejection::Taint(taint.clone())))
}

fn tolerated(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| tolerates(toleration, taint))
}

/// Returns whether an agent removes the taint when it runs on the node. The names of such taints end alike by convention, as in
/// `node.cilium.io/agent-not-ready` and `ebs.csi.aws.com/agent-not-ready`.
pub fn is_of_agent(taint: &Taint) -> bool {
    taint.key.ends_with("/agent-not-ready")
}

/// Returns whether one toleration tolerates one taint.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    toleration.effect.is_none_or(|effect| effect == taint.effect)
        && match (&toleration.key, &toleration.matches) {
            (None, TolerationMatch::Exists) => true,
            (None, TolerationMatch::Equal(_)) => false,
            (Some(key), TolerationMatch::Exists) => *key == taint.key,
            (Some(key), TolerationMatch::Equal(value)) => *key == taint.key && *value == taint.value,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(effect: TaintEffect) -> Taint {
        Taint { key: "gpu".into(), value: "yes".into(), effect }
    }

    fn toleration(key: Option<&str>, matches: TolerationMatch, effect: Option<TaintEffect>) -> Toleration {
        Toleration { key: key.map(str::to_owned), matches, effect }
    }

    #[test]
    fn a_toleration_must_match_key_value_and_effect() {
        let equal = |value: &str| TolerationMatch::Equal(value.into());
        let no_schedule = taint(TaintEffect::NoSchedule);
        assert!(tolerates(&toleration(None, TolerationMatch::Exists, None), &no_schedule));
        assert!(tolerates(&toleration(Some("gpu"), equal("yes"), None), &no_schedule));
        assert!(!tolerates(&toleration(Some("gpu"), equal("no"), None), &no_schedule));
        assert!(!tolerates(&toleration(Some("cpu"), TolerationMatch::Exists, None), &no_schedule));
        let executes = toleration(Some("gpu"), TolerationMatch::Exists, Some(TaintEffect::NoExecute));
        assert!(!tolerates(&executes, &no_schedule) && tolerates(&executes, &taint(TaintEffect::NoExecute)));
    }

    #[test]
    fn a_soft_taint_rejects_no_pod_and_a_hard_one_is_named() {
        assert!(check(&[], &[taint(TaintEffect::PreferNoSchedule)]).is_ok());
        let rejection = check(&[], &[taint(TaintEffect::NoSchedule)]).expect_err("nothing tolerates it");
        assert_eq!(rejection.to_string(), "does not tolerate the taint `gpu=yes:NoSchedule`");
    }

    #[test]
    fn pods_of_daemonsets_enter_cordoned_nodes() {
        let cordon =
            Taint { key: CORDON_TAINT.into(), value: String::new(), effect: TaintEffect::NoSchedule };
        assert!(check(&[], std::slice::from_ref(&cordon)).is_err());
        assert!(check_daemonset(&[], &[cordon]).is_ok());
    }
}
