//! `nodeSelector`: the node must have every label with exactly this value.

use std::collections::BTreeMap;

use crate::rules::labels::Labels;
use crate::rules::rejection::Rejection;

/// Checks whether the labels match the selector.
pub fn check(selector: &BTreeMap<String, String>, labels: &impl Labels) -> Result<(), Rejection> {
    for (key, wanted) in selector {
        let has = labels.label(key);
        if has != Some(wanted) {
            return Err(Rejection::Selector {
                key: key.clone(),
                wanted: wanted.clone(),
                has: has.map(str::to_owned),
            });
        }
    }
    Ok(())
}
