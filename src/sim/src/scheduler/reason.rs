//! The reasons why a node does not fit a pod, in the words of the kube-scheduler.

use std::fmt;

use poolwright_catalog::ResourceName;

/// A reason, worded like the plugin that gives it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// `NodeUnschedulable`: the node is cordoned.
    Cordoned,
    /// `TaintToleration`.
    Taint,
    /// `NodeAffinity`: the pod's own node selector or required node affinity.
    NodeAffinity,
    /// `NodeAffinity`: the affinity added by the scheduler's configuration.
    EnforcedAffinity,
    /// `NodeAffinity` before the filters: the pod lists its nodes, and this is none of them.
    NotNamed,
    /// `NodePorts`.
    Ports,
    /// `NodeResourcesFit`: the node has its maximum number of pods.
    TooManyPods,
    /// `NodeResourcesFit`: not enough of a resource.
    Insufficient(ResourceName),
    /// `VolumeRestrictions`: another pod uses a claim that only one pod may use.
    VolumeInUse,
    /// `NodeVolumeLimits`.
    TooManyVolumes,
    /// `VolumeBinding`, `VolumeZone`: a bound volume cannot be used on the node.
    VolumeElsewhere,
    /// `VolumeBinding`: the volume of a claim is gone.
    VolumeGone,
    /// `VolumeBinding`: an unbound claim gets no volume on the node.
    NoVolume,
    /// `PodTopologySpread`: the skew would be too large.
    Spread,
    /// `PodTopologySpread`: the node lacks the topology label.
    SpreadLabel,
    /// `InterPodAffinity`: the pod's affinity is not met.
    PodAffinity,
    /// `InterPodAffinity`: the pod's anti-affinity matches a pod nearby.
    PodAntiAffinity,
    /// `InterPodAffinity`: the anti-affinity of a pod nearby matches the pod.
    ExistingAntiAffinity,
    /// `DefaultPreemption`: no pod there may be evicted for it.
    NoVictims,
    /// `DefaultPreemption`: evictions do not make the pod fit.
    PreemptionInVain,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cordoned => "node(s) were unschedulable",
            Self::Taint => "node(s) had untolerated taint(s)",
            Self::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
            Self::EnforcedAffinity => "node(s) didn't match scheduler-enforced node affinity",
            Self::NotNamed => "node(s) didn't satisfy plugin(s) [NodeAffinity]",
            Self::Ports => "node(s) didn't have free ports for the requested pod ports",
            Self::TooManyPods => "Too many pods",
            Self::Insufficient(resource) => return write!(f, "Insufficient {resource}"),
            Self::VolumeInUse => {
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
            }
            Self::TooManyVolumes => "node(s) exceed max volume count",
            Self::VolumeElsewhere => "node(s) didn't match PersistentVolume's node affinity",
            Self::VolumeGone => "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            Self::NoVolume => "node(s) didn't find available persistent volumes to bind",
            Self::Spread => "node(s) didn't match pod topology spread constraints",
            Self::SpreadLabel => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
            Self::PodAffinity => "node(s) didn't match pod affinity rules",
            Self::PodAntiAffinity => "node(s) didn't match pod anti-affinity rules",
            Self::ExistingAntiAffinity => "node(s) didn't satisfy existing pods anti-affinity rules",
            Self::NoVictims => "No preemption victims found for incoming pod",
            Self::PreemptionInVain => "Preemption is not helpful for scheduling",
        })
    }
}

/// The reasons why a node does not fit a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// All reasons of the first plugin that rejects it.
    pub reasons: Vec<Reason>,
    /// Whether evictions could make it fit (`Unschedulable`; else `UnschedulableAndUnresolvable`).
    pub resolvable: bool,
}

impl Unfit {
    /// Evictions could make it fit.
    pub(super) fn resolvable(reason: Reason) -> Self {
        Self { reasons: vec![reason], resolvable: true }
    }

    /// Evictions cannot make it fit.
    pub(super) fn unresolvable(reason: Reason) -> Self {
        Self { reasons: vec![reason], resolvable: false }
    }
}

/// Whether a node fits a pod.
pub(super) type Fits = Result<(), Unfit>;
