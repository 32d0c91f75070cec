//! The pools that unplaced pods could use: those that they name, and those that cannot be used now.

use poolwright_terms::keys::NODEPOOL_LABEL;

use crate::model::{NodeSelectorTerm, Operator, PodSpec, PoolName, Requirement};
use crate::supply::offerings::Supply;

/// Returns the problem of the first unusable pool.
pub(crate) fn unusable(supply: &Supply<'_>, is_meant: impl Fn(&PoolName) -> bool) -> Option<String> {
    supply.findings.keys().filter(|name| is_meant(name)).find_map(|name| problem_of(supply, name))
}

/// Returns the problem that keeps a pool from being used.
pub(crate) fn problem_of(supply: &Supply<'_>, name: &PoolName) -> Option<String> {
    let findings = supply.findings.get(name)?;
    let (_, message) = findings.node_class.as_ref().or(findings.invalid.as_ref())?;
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
