//! Instances that no claim explains.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use crate::action::Action;
use crate::lifecycle::scene::{Scene, after};
use crate::model::Uid;

/// An instance is not reaped before this age: its claim may have been written a moment ago.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

pub(crate) fn decide(scene: &mut Scene<'_>) {
    let Some(instances) = &scene.snapshot.instances else { return };
    let claims: BTreeSet<&Uid> = scene.snapshot.claims.values().map(|claim| &claim.uid).collect();
    for instance in instances.iter().filter(|instance| !claims.contains(&instance.claim_uid)) {
        if scene.ended(after(instance.launched, GRACE)) {
            scene.act(Action::Reap {
                provider_id: instance.provider_id.clone(),
                claim_uid: instance.claim_uid.clone(),
                node_class: instance.node_class.clone(),
            });
        }
    }
}
