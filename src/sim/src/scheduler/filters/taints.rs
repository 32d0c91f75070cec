//! `TaintToleration`: the pod tolerates every `NoSchedule` and `NoExecute` taint.

use poolwright_terms::TaintEffect;

use super::super::attempt::Attempt;
use super::super::cluster::NodeInfo;
use super::super::reason::{Fits, Reason, Unfit};

pub(super) fn check(attempt: &Attempt<'_>, at: &NodeInfo) -> Fits {
    let mut hard = at.node.taints.iter().filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
    if hard.all(|taint| attempt.tolerates(taint)) { Ok(()) } else { Err(Unfit::unresolvable(Reason::Taint)) }
}
