//! Kept room: places on expensive nodes that stay free for pods without a cheaper home.
//!
//! Suppose that two pods need an expensive node with eight GPUs, and nothing cheaper holds them. The other six GPUs are paid for. So
//! pods that run on any GPU look free there. But they fill the node, and the next pod that needs such a node buys another one.
//!
//! So a plan counts what room is worth. The pods that need such a node now say how many will later: if they come and end steadily,
//! `n` of them are there on average. Room for as many again is kept free. If it were taken, another node would run for at least
//! `n / (1 + n)` of the time. A pod that takes a part of the node's room is charged this part of that cost, while others keep the node.
//! It is kept off only if its own node costs less than that (`solves::rivals` decides).
//!
//! The regret is bounded. If no such pod comes again, the pods that are kept off have paid for their own nodes, and nothing else: the
//! expensive node is paid for anyway. Each of them pays less than its part of the expensive node costs while it would be there.

use jiff::SignedDuration;
use poolwright_catalog::{ResourceList, Usd, UsdPerHour};

use crate::model::{Ends, Life};
use crate::plan::pack::horizon;
use crate::plan::place::preferences::estimates::share;

/// The unit of shares of a node.
const MILLION: u128 = 1_000_000;

/// The pods on an existing node that have no much cheaper home.
#[derive(Clone, Debug)]
pub(crate) struct Captives {
    /// The room of the whole node.
    pub capacity: ResourceList,
    /// What each of them requests.
    pub requests: Vec<ResourceList>,
}

impl Captives {
    /// Keeps room for such pods on their node, which has this price and this free room.
    pub fn kept(&self, price: UsdPerHour, free: &ResourceList) -> Option<Kept<'_>> {
        Kept::new(price, &self.capacity, free, self.requests.iter().map(|requests| (requests, 1)))
    }
}

/// A node on which room is kept.
pub(crate) struct Kept<'n> {
    price: UsdPerHour,
    capacity: &'n ResourceList,
    /// The free room beside the kept one.
    left: ResourceList,
    /// The number of pods that need such a node.
    needing: u64,
}

impl<'n> Kept<'n> {
    /// Keeps room for as many pods as need such a node now, as far as there is any; `None` if there is none. `needing` are their
    /// requests, each with the number of pods.
    pub fn new<'c>(
        price: UsdPerHour,
        capacity: &'n ResourceList,
        free: &ResourceList,
        needing: impl Iterator<Item = (&'c ResourceList, u64)>,
    ) -> Option<Self> {
        let (mut left, mut number, mut is_any) = (free.clone(), 0, false);
        for (requests, count) in needing {
            number += count;
            for _ in 0..count {
                if !requests.fits(&left) {
                    break;
                }
                left.saturating_sub(requests);
                is_any = true;
            }
        }
        is_any.then_some(Self { price, capacity, left, needing: number })
    }

    /// Returns whether these requests leave the kept room free.
    pub fn spares(&self, requests: &ResourceList) -> bool {
        requests.fits(&self.left)
    }

    /// Takes room beside the kept one.
    pub fn take(&mut self, requests: &ResourceList) {
        self.left.saturating_sub(requests);
    }

    /// Returns what it is expected to cost that a pod takes its room on the node for this time.
    pub fn worth(&self, requests: &ResourceList, time: SignedDuration) -> Usd {
        let needing = u128::from(self.needing);
        let part = share(requests, self.capacity).min(MILLION);
        let micros = u128::from(self.price.micros()) * part * needing / ((1 + needing) * MILLION);
        horizon::cost(UsdPerHour::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)), time)
    }
}

/// Returns whether a node of this price is about the cheapest one for a pod whose own node costs `own`; `None` if no node can be
/// bought for it.
pub(crate) fn needs(own: Option<UsdPerHour>, price: UsdPerHour) -> bool {
    own.is_none_or(|own| own.times(2) >= price)
}

/// Returns the time for which a pod takes room of a node that others keep.
pub(crate) fn taken(ends: &Ends, life: &Life) -> SignedDuration {
    life.mean() - ends.extension(life)
}
