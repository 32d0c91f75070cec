//! The pods that packing leaves out, although some node could hold them.

use crate::plan::attempt::Packed;
use crate::plan::pack::classes::PodClass;
use crate::rules;
use crate::supply::offerings::{PoolOffering, Supply};
use crate::supply::rooms::{Room, Rooms};

impl Packed<'_> {
    /// Returns whether packing leaves a pod out that an existing or a new node could hold, whatever else a plan does. `rooms` are those
    /// before the plan.
    pub(super) fn leaves_with_home(&self, supply: &Supply<'_>, rooms: &Rooms<'_>) -> bool {
        let mut left = self.classes.classes.iter().zip(&self.outcome.left);
        left.any(|(class, left)| !left.is_empty() && self.has_home(class, supply, rooms))
    }

    fn has_home(&self, class: &PodClass<'_>, supply: &Supply<'_>, rooms: &Rooms<'_>) -> bool {
        let holds = |room: &Room<'_>| {
            class.on_whole().fits(&room.free) && rules::admits(class.spec, &room.labels, &room.taints).is_ok()
        };
        let is_home = |at: usize, offer: &PoolOffering| {
            // The room for parts of GPUs is counted in another way.
            let fits = class.gpu_need.is_some() || class.requests.fits(&supply.capacities[offer.capacity]);
            fits && self.admissions.admits(at, class.signature, offer.offering)
        };
        let mut pools = supply.pools.iter().enumerate();
        rooms.all.iter().any(|room| holds(room))
            || pools.any(|(at, pool)| pool.offers.iter().any(|offer| is_home(at, offer)))
    }
}
