//! Instances that run, as their ready nodes prove, although their cloud does not know them. Their claims say so, and are kept.
//!
//! A node is ready only while its kubelet renews its lease: 40 to 50 seconds after the last renewal, it is not ready any more. So
//! either the instance ended moments ago, or the listing is wrong, for instance of another account.

use std::collections::BTreeSet;

use poolwright_terms::{ConditionType, Reason};

use crate::lifecycle::context::{LifecycleContext, is, is_not};
use crate::model::Claim;

/// Records whether the cloud knows the instance of a claim.
pub(crate) fn decide(context: &mut LifecycleContext<'_>, claim: &Claim) {
    if let Some(launched) = claim.launched.as_ref().filter(|_| context.runs_unlisted(claim)) {
        let message = format!(
            "the cloud does not know instance {}, although its node is ready; check the credentials, the account and the region of the \
             controller",
            launched.provider_id
        );
        context.conditions(claim, [is(ConditionType::InstanceUnlisted, Reason::InstanceUnlisted, message)]);
    } else if context.is_listed(claim) {
        end(context, claim, Reason::Launched, "no listing lacks the instance any more");
    }
}

/// Records that a claim is not kept any more against the word of its cloud, if it was.
pub(crate) fn end(context: &mut LifecycleContext<'_>, claim: &Claim, reason: Reason, message: &str) {
    if claim.since(ConditionType::InstanceUnlisted).is_some() {
        context.conditions(claim, [is_not(ConditionType::InstanceUnlisted, reason, message)]);
    }
}

/// Returns the kinds of node classes of which the listing has none of the instances that must be there. It may be the listing of
/// another account, where nothing is to be launched, and whose instances are not ours to terminate.
pub(crate) fn kinds_without_proof<'a>(context: &LifecycleContext<'a>) -> BTreeSet<&'a str> {
    let snapshot = context.snapshot;
    let kinds = |holds: &dyn Fn(&Claim) -> bool| -> BTreeSet<&'a str> {
        let such = snapshot.claims.values().filter(|claim| holds(claim));
        such.map(|claim| claim.node_class.kind.as_str()).collect()
    };
    // An end that the cloud announced is no surprise, and its replacement must not wait.
    let unlisted = kinds(&|claim| context.runs_unlisted(claim) && !claim.ends_soon(context.now));
    if unlisted.is_empty() {
        return unlisted;
    }
    let listed = kinds(&|claim| context.is_listed(claim));
    unlisted.difference(&listed).copied().collect()
}
