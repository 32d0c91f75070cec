//! The list of offerings of a claim, and the choice that it leaves to the cloud.

use std::collections::BTreeMap;

use poolwright_catalog::{OfferingId, UsdPerHour};

use crate::model::plan::LabelChoice;
use crate::supply::offerings::PoolOffering;

/// The most offerings of a claim, as its CRD says.
pub(crate) const MOST: usize = 60;

/// The order of alternatives: less preferred, counted price, another type, id.
pub(crate) type Rank<'o> = (bool, Option<UsdPerHour>, bool, &'o OfferingId);

/// The offerings of a claim, the planned one first.
#[derive(Debug, Default)]
pub(crate) struct Listed<'o> {
    pub offers: Vec<&'o PoolOffering>,
    /// How many of them the first launch call names together.
    pub together: usize,
    /// The choice that they leave.
    pub choice: Vec<LabelChoice>,
    /// The amount of each limit that the largest of them uses beyond the planned node.
    pub more: BTreeMap<u32, u64>,
}

/// Describes the choice that a launch leaves to the cloud.
pub(crate) fn in_words(choice: &[LabelChoice]) -> String {
    let words: Vec<String> = choice.iter().map(ToString::to_string).collect();
    format!("the cloud may choose among {}", words.join(", and "))
}
