//! Gangs that cannot be had whole: what there is for them is given back at once.
//!
//! Some of a gang is launched and the rest cannot be had. A plan is made in that moment, and buys the rest elsewhere if anybody sells it.
//! If nobody does, the rest may come in an hour or never, and what there is would be paid for that long and do nothing. So it does not
//! wait for `scaleToZero.after`, which is for nodes that work comes back to, but only for as long as another plan takes.

use jiff::SignedDuration;

use crate::lifecycle::context::LifecycleContext;
use crate::model::{Claim, ObjectKey};

/// For so long a gang may lack room before what there is for it goes: claims are written one by one, and what fails is planned anew.
pub(crate) const PATIENCE: SignedDuration = SignedDuration::from_secs(15);

/// The gang for which the claim waits in vain, if its pool gives nodes back at all.
pub(crate) fn lacking<'s>(context: &'s LifecycleContext<'_>, claim: &Claim) -> Option<&'s ObjectKey> {
    let pool = context.snapshot.pools.get(&claim.pool)?;
    pool.scale_to_zero_after?;
    context.lacking.get(claim.name.0.as_str())
}
