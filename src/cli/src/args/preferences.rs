//! `--preferences`: how `plan`, `explain` and `controller` treat preferences of pods.

use std::fmt;

use clap::ValueEnum;
use poolwright_core::plan::PreferencePolicy;

/// How to treat preferences of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PreferenceMode {
    /// Meet them, unless that more than doubles the cost or leaves pods out
    Respect,
    /// Plan as if there were none
    Ignore,
}

impl From<PreferenceMode> for PreferencePolicy {
    fn from(mode: PreferenceMode) -> Self {
        match mode {
            PreferenceMode::Respect => Self::Respect,
            PreferenceMode::Ignore => Self::Ignore,
        }
    }
}

impl fmt::Display for PreferenceMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Respect => "respect",
            Self::Ignore => "ignore",
        })
    }
}
