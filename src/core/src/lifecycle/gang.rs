//! Incomplete gangs: finds claims that wait for a gang which cannot get all its nodes.
//!
//! Some nodes of a gang may be launched while the rest is not available. The next plan buys the rest elsewhere, if possible. If
//! not, the launched nodes would idle for an unknown time. So they are not kept for `scaleToZero.after`, but only for the time
//! that another plan takes.

use jiff::SignedDuration;

use crate::lifecycle::context::LifecycleContext;
use crate::model::{Claim, ObjectKey};

/// The time for which a gang may lack room before its nodes are terminated. It is needed because claims are created one by one,
/// and failures are planned again.
pub(crate) const PATIENCE: SignedDuration = SignedDuration::from_secs(15);

/// Returns the incomplete gang that the claim is kept for, if its pool may terminate empty nodes.
pub(crate) fn lacking<'s>(context: &'s LifecycleContext<'_>, claim: &Claim) -> Option<&'s ObjectKey> {
    let pool = context.snapshot.pools.get(&claim.pool)?;
    pool.scale_to_zero.usual()?;
    context.lacking.get(claim.name.0.as_str())
}
