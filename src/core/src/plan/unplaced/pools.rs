//! The pools that unplaced pods could use: those that they name, those whose taints they tolerate, and those that can be used now.

use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::{Reason, Taint};

use crate::model::{NodeSelectorTerm, Operator, PodSpec, Pool, PoolName, Requirement, Toleration};
use crate::rules::{self, format};
use crate::supply::offerings::Supply;

/// Returns the problem of the first unusable pool.
pub(crate) fn unusable(supply: &Supply<'_>, is_meant: impl Fn(&PoolName) -> bool) -> Option<String> {
    supply.findings.keys().filter(|name| is_meant(name)).find_map(|name| problem_of(supply, name))
}

/// Returns the problem that keeps a pool from being used.
pub(crate) fn problem_of(supply: &Supply<'_>, name: &PoolName) -> Option<String> {
    let findings = supply.findings.get(name)?;
    let spent = findings.unsold.as_ref().filter(|(reason, _)| *reason == Reason::BudgetSpent);
    let (_, message) = findings.node_class.as_ref().or(findings.invalid.as_ref()).or(spent)?;
    Some(format!("pool `{name}` cannot be used: {message}"))
}

/// Returns whether the pod's rules on the pool label allow this pool. Users of several pools name the pool that they mean, and a
/// message about another pool would mislead them.
pub(crate) fn may_be_in(spec: &PodSpec, pool: &PoolName) -> bool {
    let meets = |requirement: &Requirement| match &requirement.operator {
        Operator::In(names) => names.contains(&pool.0),
        Operator::NotIn(names) => !names.contains(&pool.0),
        Operator::DoesNotExist => false,
        _ => true,
    };
    let in_term = |term: &NodeSelectorTerm| {
        term.requirements.iter().filter(|requirement| requirement.key == NODEPOOL_LABEL).all(meets)
    };
    spec.node_selector.get(NODEPOOL_LABEL).is_none_or(|name| *name == pool.0)
        && spec.node_affinity.as_ref().is_none_or(|terms| terms.iter().any(in_term))
}

/// Describes the taints of a pool that the pods do not tolerate: those that stay, and those that an agent removes.
pub(crate) fn taint_misses(tolerations: &[Toleration], pool: &Pool) -> Vec<String> {
    let named = pool.in_words();
    let (of_agents, lasting): (Vec<&Taint>, Vec<&Taint>) =
        rules::untolerated(tolerations, &pool.taints).partition(|taint| rules::is_of_agent(taint));
    let mut all = Vec::new();
    if !lasting.is_empty() {
        let change = if lasting.len() == 1 {
            "add a toleration, or a pool without the taint"
        } else {
            "add a toleration of each, or a pool without these taints"
        };
        all.push(format!("does not tolerate {} of {named}; {change}", format::taints(&lasting)));
    }
    if !of_agents.is_empty() {
        let (agents, them) =
            if of_agents.len() == 1 { ("an agent removes", "it") } else { ("agents remove", "them") };
        all.push(format!(
            "does not tolerate {} of {named}, which {agents}; list {them} under startupTaints of the pool instead of taints",
            format::taints(&of_agents)
        ));
    }
    all
}
