//! Preferences that a plan does not meet, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::pod_key::PodKey;

/// What becomes of preferences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PreferencePolicy {
    /// They steer what is bought.
    #[default]
    Respect,
    /// They are not weighed.
    Ignore,
}

/// A preference that is not met on nodes to buy. What runs where room is left is the scheduler's choice, and is not
/// mentioned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RelaxedPreference {
    /// Which, in words: ``preferred node affinity `gpu=h100` (weight 50)``.
    pub preference: String,
    /// Why, for machines.
    pub reason: RelaxedReason,
    /// Whose; sorted, never empty.
    pub pods: Vec<PodKey>,
}

/// Why a preference is not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RelaxedReason {
    /// It cannot be evaluated.
    Senseless,
    /// Preferences are not weighed at all.
    Ignored,
    /// It is about single nodes.
    OverHosts,
    /// Nothing on offer meets it.
    NotOffered,
    /// What the pod requires leaves nothing that meets it.
    Required,
    /// What meets it failed lately.
    HeldBack,
    /// Something meets it, but not together with preferences that come before it.
    Contradicted,
    /// The pods that it wants to be near are nowhere yet.
    NoSuchPod,
    /// The pods that it keeps away from are everywhere.
    Crowded,
    /// It would cost too much.
    TooDear,
    /// With it, limits or stock would leave pods over.
    LimitReached,
    /// The pod goes where a pod is that it must be with.
    SharedNode,
}

impl RelaxedReason {
    /// The stable name, as in the JSON of a plan.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Senseless => "Senseless",
            Self::Ignored => "Ignored",
            Self::OverHosts => "OverHosts",
            Self::NotOffered => "NotOffered",
            Self::Required => "Required",
            Self::HeldBack => "HeldBack",
            Self::Contradicted => "Contradicted",
            Self::NoSuchPod => "NoSuchPod",
            Self::Crowded => "Crowded",
            Self::TooDear => "TooDear",
            Self::LimitReached => "LimitReached",
            Self::SharedNode => "SharedNode",
        }
    }

    /// Why, in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Senseless => "it is invalid; correct or remove it",
            Self::Ignored => "preferences are ignored (--preferences ignore)",
            Self::OverHosts => "no node is bought for a preference about single nodes",
            Self::NotOffered => "no pool offers it",
            Self::Required => "its required rules leave nothing that meets it",
            Self::HeldBack => "the offerings that meet it failed recently and are tried again later",
            Self::Contradicted => "nothing meets it together with the preferences before it",
            Self::NoSuchPod => "no such pod has a place yet",
            Self::Crowded => "every place has such a pod",
            Self::TooDear => "it would cost more than twice as much",
            Self::LimitReached => "limits or stock leave nothing that meets it",
            Self::SharedNode => "the pod must share the node of another pod",
        }
    }
}

impl fmt::Display for RelaxedPreference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.preference, self.reason.words())
    }
}
