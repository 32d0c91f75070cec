//! Relaxed preferences: preferences that a plan does not meet, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::pod_key::PodKey;

/// The treatment of preferences by a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PreferencePolicy {
    /// They influence what is bought.
    #[default]
    Respect,
    /// They are ignored.
    Ignore,
}

/// A preference that a new node does not meet. Pods on existing nodes are not listed, because the scheduler chooses among those
/// nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RelaxedPreference {
    /// The preference as text: ``preferred node affinity `gpu=h100` (weight 50)``.
    pub preference: String,
    /// The reason why it is not met.
    pub why: WhyRelaxed,
    /// The pods with this preference; sorted, never empty.
    pub pods: Vec<PodKey>,
}

/// The reason why a preference is not met. The JSON of a plan contains the names of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WhyRelaxed {
    /// It is invalid.
    Senseless,
    /// All preferences are ignored.
    Ignored,
    /// Its topology key is the host name.
    OverHosts,
    /// No offering meets it.
    NotOffered,
    /// Offerings meet it, but none of them meets the pod's requirements.
    Required,
    /// The offerings that meet it failed recently.
    HeldBack,
    /// Offerings meet it, but not together with stronger preferences.
    Contradicted,
    /// The pods that it wants to be near have no place yet.
    NoSuchPod,
    /// The pods that it wants to avoid are in every domain.
    Crowded,
    /// It would cost too much.
    TooDear,
    /// With it, limits or stock would leave pods unplaced.
    LimitReached,
    /// The pod must share a node with another pod.
    SharedNode,
}

impl WhyRelaxed {
    /// Returns the reason in words.
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
        write!(f, "{}: {}", self.preference, self.why.words())
    }
}
