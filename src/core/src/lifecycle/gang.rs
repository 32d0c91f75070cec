//! Gangs that cannot be had whole: what there is for them is given back at once.
//!
//! Some of a gang is launched and the rest cannot be had. A plan is made in that moment, and buys the rest elsewhere if anybody sells it.
//! If nobody does, the rest may come in an hour or never, and what there is would be paid for that long and do nothing. So it does not
//! wait for `scaleToZero.after`, which is for nodes that work comes back to, but only for as long as another plan takes.

use jiff::SignedDuration;
use poolwright_terms::{ConditionType, Reason};

use crate::action::NoticeKind;
use crate::lifecycle::{Scene, after, empty, is, is_not, words};
use crate::model::{Claim, PodKey};

/// For so long a gang may lack room before what there is for it goes: claims are written one by one, and what fails is planned anew.
pub(crate) const PATIENCE: SignedDuration = SignedDuration::from_secs(15);

/// The gang for which the claim waits in vain, if its pool gives nodes back at all.
pub(crate) fn lacking<'s>(scene: &'s Scene<'_>, claim: &Claim) -> Option<&'s PodKey> {
    let pool = scene.snapshot.pools.get(&claim.pool)?;
    pool.scale_to_zero_after?;
    scene.lacking.get(claim.name.0.as_str())
}

/// Gives a claim back whose node is not open yet, unless somebody else needs it. Whether it is so far.
pub(crate) fn release(scene: &mut Scene<'_>, claim: &Claim) -> bool {
    let held = lacking(scene, claim).cloned();
    let Some(gang) = held.filter(|_| empty::needed(scene, claim, "its node").is_none()) else {
        if claim.since(ConditionType::Empty).is_some() {
            let message = "pods will come to its node";
            scene.conditions(claim, [is_not(ConditionType::Empty, Reason::PodsExpected, message)]);
        }
        return false;
    };
    let Some(since) = claim.since(ConditionType::Empty) else {
        if scene.ended(after(claim.created, PATIENCE)) {
            let message = format!("not all pods of PodGroup {gang} that start together can have room");
            scene.conditions(claim, [is(ConditionType::Empty, Reason::GangIncomplete, message)]);
            scene.wake(after(scene.now, PATIENCE));
        }
        return false;
    };
    if !scene.ended(after(since, PATIENCE)) {
        return false;
    }
    let message = format!(
        "not all pods of PodGroup {gang} that start together could have room for {}: what was bought for it is given back",
        words(PATIENCE)
    );
    scene.tell(&claim.name, NoticeKind::Normal, Reason::GangReleased, message);
    scene.delete(claim, true);
    true
}
