//! The rules that cases combine.

use std::str::FromStr;

/// A rule, or another property of a case that affects where pods may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// `nodeSelector`.
    NodeSelector,
    /// Required node affinity, all operators, terms OR-ed.
    NodeAffinity,
    /// Taints of nodes and pools, tolerations.
    Taints,
    /// GPUs.
    Gpus,
    /// Init containers and sidecars.
    InitContainers,
    /// A runtime class with overhead.
    Overhead,
    /// Host ports.
    HostPorts,
    /// Required pod anti-affinity between hosts.
    HostAntiAffinity,
    /// Required pod anti-affinity between zones and racks.
    WideAntiAffinity,
    /// Required pod affinity, over hosts, zones and racks.
    PodAffinity,
    /// `DoNotSchedule` over hosts.
    HostSpread,
    /// `DoNotSchedule` over zones and racks.
    WideSpread,
    /// `minDomains`, `nodeAffinityPolicy`, `nodeTaintsPolicy`.
    SpreadPolicies,
    /// Namespaces of pod affinity chosen by label or name.
    Namespaces,
    /// `matchLabelKeys` and `mismatchLabelKeys`.
    LabelKeys,
    /// Preferences, which never exclude a node.
    Preferences,
    /// DaemonSets.
    DaemonSets,
    /// Running pods that are being deleted.
    Leaving,
    /// Limits of pools.
    Limits,
    /// Weights of pools.
    Weights,
    /// Nodes that are cordoned or not ready.
    Cordons,
    /// Nodes without a host name or a zone, or with the host name of another node.
    OddNodes,
    /// Profiles of the scheduler: default spread, added node affinity.
    Profiles,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 23] = [
        Self::NodeSelector,
        Self::NodeAffinity,
        Self::Taints,
        Self::Gpus,
        Self::InitContainers,
        Self::Overhead,
        Self::HostPorts,
        Self::HostAntiAffinity,
        Self::WideAntiAffinity,
        Self::PodAffinity,
        Self::HostSpread,
        Self::WideSpread,
        Self::SpreadPolicies,
        Self::Namespaces,
        Self::LabelKeys,
        Self::Preferences,
        Self::DaemonSets,
        Self::Leaving,
        Self::Limits,
        Self::Weights,
        Self::Cordons,
        Self::OddNodes,
        Self::Profiles,
    ];

    /// Returns the percentage of cases that have it.
    pub const fn share(self) -> u64 {
        match self {
            Self::WideAntiAffinity
            | Self::PodAffinity
            | Self::WideSpread
            | Self::Namespaces
            | Self::Limits
            | Self::Overhead
            | Self::Preferences => 20,
            Self::OddNodes | Self::Leaving | Self::Cordons => 15,
            _ => 35,
        }
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(|rule| format!("{rule:?}")).join(", ");
        Self::ALL
            .into_iter()
            .find(|rule| format!("{rule:?}").eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("`{text}` is no rule; there are {}", known()))
    }
}
