//! The inputs for explaining unplaced pods.

use crate::demand::volumes::Volumes;
use crate::model::{MinValuesPolicy, Sharing, Snapshot};
use crate::rules::colocation::Colocation;
use crate::supply::daemonsets::DaemonSets;
use crate::supply::limits::Limits;
use crate::supply::offerings::{Admissions, Supply};

/// The supply that the planner could choose from, with its rules.
#[derive(Clone, Copy)]
pub(crate) struct UnplacedInputs<'s, 'a> {
    pub snapshot: &'s Snapshot,
    pub volumes: &'s Volumes,
    pub supply: &'s Supply<'a>,
    pub admissions: &'s Admissions,
    pub limits: &'s Limits,
    pub colocation: &'s Colocation<'a>,
    pub daemons: &'s DaemonSets<'a>,
    pub sharing: Sharing,
    pub min_values: MinValuesPolicy,
}

/// Lists names for a message: `a, b, c and 4 more`.
pub(crate) fn list(items: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let all: Vec<String> = items.into_iter().map(|item| item.as_ref().to_owned()).collect();
    let shown = all.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > SHOWN { format!("{shown} and {} more", all.len() - SHOWN) } else { shown }
}

/// The most values that a message lists.
pub(crate) const SHOWN: usize = 6;
