//! `--min-values-policy`: what to do if `minValues` of a pool cannot be met. Name and values are Karpenter's.

use std::fmt;

use clap::ValueEnum;
use poolwright_core::plan::MinValuesPolicy;

/// What to do if `minValues` of a pool cannot be met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum MinValuesMode {
    /// Buy nothing for these pods
    #[default]
    #[value(name = "Strict")]
    Strict,
    /// Buy the node with as many values as there are, and say so
    #[value(name = "BestEffort")]
    BestEffort,
}

impl From<MinValuesMode> for MinValuesPolicy {
    fn from(mode: MinValuesMode) -> Self {
        match mode {
            MinValuesMode::Strict => Self::Strict,
            MinValuesMode::BestEffort => Self::BestEffort,
        }
    }
}

impl fmt::Display for MinValuesMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Strict => "Strict",
            Self::BestEffort => "BestEffort",
        })
    }
}
