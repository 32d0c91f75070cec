//! `NodeAffinity`: the pod's node selector, its required node affinity, and the added affinity of its scheduler profile.

use std::collections::BTreeSet;

use poolwright_core::rules::{self, NODE_NAME_FIELD};
use poolwright_core::{NodeSelectorTerm, Operator};

use super::super::attempt::Attempt;
use super::super::cluster::{NodeInfo, NodeLabels};
use super::super::reason::{Fits, Reason, Unfit};

pub(super) fn check(attempt: &Attempt<'_>, at: &NodeInfo) -> Fits {
    let labels = NodeLabels(&at.node);
    if rules::check_enforced(attempt.enforced, &labels).is_err() {
        return Err(Unfit::unresolvable(Reason::EnforcedAffinity));
    }
    if rules::check_own_labels(&attempt.pod.spec, &labels).is_err() {
        return Err(Unfit::unresolvable(Reason::NodeAffinity));
    }
    Ok(())
}

/// Returns the names of the only possible nodes, ascending, if each term of the node affinity lists names.
pub(super) fn names<'a>(attempt: &Attempt<'a>) -> Option<Vec<&'a str>> {
    let terms = attempt.pod.spec.node_affinity.as_ref().filter(|terms| !terms.is_empty())?;
    let mut all: BTreeSet<&str> = BTreeSet::new();
    for term in terms {
        all.extend(named_by(term)?);
    }
    Some(all.into_iter().collect())
}

fn named_by(term: &NodeSelectorTerm) -> Option<BTreeSet<&str>> {
    let mut named: Option<BTreeSet<&str>> = None;
    for requirement in term.requirements.iter().filter(|one| one.key == NODE_NAME_FIELD) {
        if let Operator::In(values) = &requirement.operator {
            let these = values.iter().map(String::as_str);
            named = Some(match named {
                None => these.collect(),
                Some(before) => these.filter(|name| before.contains(name)).collect(),
            });
        }
    }
    named
}
