//! A rule of a pool on spot nodes that leaves pods out, in words.

use crate::model::{CountOrPercent, SpotRules};
use crate::supply::flexibility;
use crate::supply::limits::Limits;
use crate::supply::offerings::Supply;

/// A rule on spot nodes, with the index of its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpotRule {
    OnDemandFloor(usize, CountOrPercent),
    /// The same, where on-demand nodes would fit. The last number is the limit that keeps them away.
    FloorBeyondLimit(usize, CountOrPercent, u32),
    /// The same, where on-demand nodes would fit, but no launch of one has as many capacity types as `minValues` asks for. The last
    /// number is that of `minValues`.
    FloorAgainstChoice(usize, CountOrPercent, u32),
    MaxShare(usize, u32),
}

impl SpotRule {
    /// Returns a message about pods that the rule leaves out.
    pub fn sentence(self, supply: &Supply<'_>, limits: &Limits) -> String {
        let name = |pool: usize| &supply.pools[pool].pool.name;
        match self {
            Self::OnDemandFloor(pool, floor) => format!(
                "pool `{}` must have at least {} on demand (spec.spot.onDemandFloor), and no on-demand node that fits it can be bought \
                 now; allow more on-demand offerings, or lower the floor",
                name(pool),
                SpotRules::floor_in_words(floor)
            ),
            Self::FloorBeyondLimit(pool, floor, limit) => format!(
                "pool `{}` must have at least {} on demand (spec.spot.onDemandFloor), and limit {} leaves too little for another \
                 on-demand node that fits it; raise the limit, or lower the floor",
                name(pool),
                SpotRules::floor_in_words(floor),
                limits.all[limit as usize].name()
            ),
            Self::FloorAgainstChoice(pool, floor, asked) => format!(
                "pool `{}` must have at least {} on demand (spec.spot.onDemandFloor), which it cannot buy: {}",
                name(pool),
                SpotRules::floor_in_words(floor),
                flexibility::barred(supply.pools[pool].pool, asked)
            ),
            Self::MaxShare(pool, most) => format!(
                "pool `{}` may have at most {most} % of its spot nodes of one instance type and zone (spec.spot.maxShare), and no other \
                 node that fits it can be bought now; allow more instance types, zones or on-demand offerings, or raise maxShare",
                name(pool)
            ),
        }
    }
}
