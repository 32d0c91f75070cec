//! What is done with preferences of pods: for `plan`, `explain` and `controller`.

use std::fmt;

use clap::ValueEnum;
use poolwright_core::plan::Preferences;

/// What is done with preferences of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PreferenceMode {
    /// They steer what is bought, as long as it costs at most twice as much and no pod is left over for them
    Respect,
    /// They are not weighed
    Ignore,
}

impl From<PreferenceMode> for Preferences {
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
