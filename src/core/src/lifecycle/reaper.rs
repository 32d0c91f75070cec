//! The reaper: terminates instances without a claim (garbage collection), unless the listing may be of another account.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use crate::action::Action;
use crate::lifecycle::context::{LifecycleContext, after};
use crate::model::Uid;

/// The least age of a reaped instance, because the claim of a younger one may have been created just now.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

pub(crate) fn decide(context: &mut LifecycleContext<'_>) {
    let Some(instances) = &context.snapshot.instances else { return };
    let claims: BTreeSet<&Uid> = context.snapshot.claims.values().map(|claim| &claim.uid).collect();
    for instance in instances.iter().filter(|instance| !claims.contains(&instance.claim_uid)) {
        let is_unproven = context.unproven.contains(instance.node_class.kind.as_str());
        if !is_unproven && context.ended(after(instance.launched, GRACE)) {
            context.act(Action::Reap {
                provider_id: instance.provider_id.clone(),
                claim_uid: instance.claim_uid.clone(),
                node_class: instance.node_class.clone(),
            });
        }
    }
}
