//! The reasons why a node does not fit a pod, in the words of the kube-scheduler.

use std::fmt;

use poolwright_catalog::ResourceName;

/// One reason, worded as the plugin that gives it words it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// `NodeUnschedulable`: it is cordoned.
    Cordoned,
    /// `TaintToleration`.
    Taint,
    /// `NodeAffinity`: the pod's own node selector or required node affinity.
    NodeAffinity,
    /// `NodeAffinity`: what the scheduler's configuration adds.
    EnforcedAffinity,
    /// `NodeAffinity`, before any node is looked at: the pod names the nodes that it may have, and this is none of them.
    NotNamed,
    /// `NodePorts`.
    Ports,
    /// `NodeResourcesFit`: as many pods as the node takes.
    TooManyPods,
    /// `NodeResourcesFit`: too little of a resource.
    Insufficient(ResourceName),
    /// `VolumeRestrictions`: another pod has a claim that is for one pod at a time.
    VolumeInUse,
    /// `NodeVolumeLimits`.
    TooManyVolumes,
    /// `VolumeBinding`, `VolumeZone`: a bound volume cannot be used there.
    VolumeElsewhere,
    /// `VolumeBinding`: a claim's volume is gone.
    VolumeGone,
    /// `PodTopologySpread`: too many of its like.
    Spread,
    /// `PodTopologySpread`: the node lacks a label that pods are spread over.
    SpreadLabel,
    /// `InterPodAffinity`: those that it wants to be near are not.
    PodAffinity,
    /// `InterPodAffinity`: one that it keeps away from is near.
    PodAntiAffinity,
    /// `InterPodAffinity`: one that is near keeps it away.
    ExistingAntiAffinity,
    /// `DefaultPreemption`: nobody there may be evicted for it.
    NoVictims,
    /// `DefaultPreemption`: whoever is evicted, the node does not take it.
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

/// Why a node does not take a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// All reasons of the first plugin that rejects it.
    pub reasons: Vec<Reason>,
    /// Whether it could take the pod if other pods left it (`Unschedulable`; else `UnschedulableAndUnresolvable`).
    pub resolvable: bool,
}

impl Unfit {
    /// Other pods are in the way.
    pub(super) fn resolvable(reason: Reason) -> Self {
        Self { reasons: vec![reason], resolvable: true }
    }

    /// Whoever leaves the node, it does not take the pod.
    pub(super) fn unresolvable(reason: Reason) -> Self {
        Self { reasons: vec![reason], resolvable: false }
    }
}

/// Whether a node takes a pod.
pub(super) type Fits = Result<(), Unfit>;
