//! `TaintToleration`: prefers nodes whose `PreferNoSchedule` taints the pod tolerates.

use poolwright_terms::TaintEffect;

use super::super::attempt::Attempt;
use super::super::cluster::NodeInfo;
use super::normalize;

pub(super) fn scores(attempt: &Attempt<'_>, nodes: &[&NodeInfo]) -> Vec<i64> {
    let unwelcome = |at: &&NodeInfo| {
        let soft = at.node.taints.iter().filter(|taint| taint.effect == TaintEffect::PreferNoSchedule);
        soft.filter(|taint| !attempt.tolerates(taint)).count() as i64
    };
    let mut scores: Vec<i64> = nodes.iter().map(unwelcome).collect();
    normalize(&mut scores, true);
    scores
}
