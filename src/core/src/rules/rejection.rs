//! Rejections: the reasons why a pod may not run on a node.

use std::fmt;

use poolwright_catalog::resources::Shortage;
use poolwright_terms::Taint;

use crate::model::{HostPort, Requirement, TopologySpreadConstraint};

/// The reason why a pod may not run on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It does not tolerate a taint.
    Taint(Taint),
    /// The node does not match the node selector.
    Selector {
        /// The label's key.
        key: String,
        /// The wanted value.
        wanted: String,
        /// The value on the node.
        has: Option<String>,
    },
    /// No term of the required node affinity matches. Names the first failed requirement of the closest term.
    Affinity {
        /// The requirement; `None` if there are no terms or only empty ones, which match nothing.
        requirement: Option<Requirement>,
        /// The value on the node.
        has: Option<String>,
    },
    /// The affinity that the scheduler's configuration adds does not match. Names the first failed requirement of the closest
    /// term.
    Enforced {
        /// The requirement; `None` if no node can meet it.
        requirement: Option<Requirement>,
        /// The value on the node.
        has: Option<String>,
        /// The scheduler's configuration file.
        source: String,
    },
    /// A volume of the pod cannot be used on the node. Names the first failed requirement of the closest term.
    Volume {
        /// The requirement; `None` if the volume cannot be used anywhere.
        requirement: Option<Requirement>,
        /// The value on the node.
        has: Option<String>,
    },
    /// Another pod on the node uses this host port.
    Port(HostPort),
    /// Pod anti-affinity forbids sharing the node with a pod there.
    AntiAffinity {
        /// Whether the rule is the newcomer's. Otherwise it is the resident's.
        its_own: bool,
    },
    /// Topology spread: the node would hold too many such pods.
    Spread {
        /// The topology key.
        topology_key: String,
        /// `maxSkew`.
        max_skew: u32,
        /// The number of such pods that there would be.
        count: u64,
        /// The scheduler's configuration file, if the constraint is a default one.
        default_of: Option<String>,
    },
    /// The node has too little of a resource.
    Resource(Shortage),
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = |f: &mut fmt::Formatter<'_>, key: &str, has: &Option<String>| match has {
            Some(value) => write!(f, "the node has `{key}={value}`"),
            None => write!(f, "the node has no label `{key}`"),
        };
        match self {
            Self::Taint(taint) => write!(f, "does not tolerate the taint `{taint}`"),
            Self::Selector { key, wanted, has } => {
                write!(f, "selects `{key}={wanted}`, but ")?;
                label(f, key, has)
            }
            Self::Affinity { requirement: Some(requirement), has } => {
                write!(f, "requires `{requirement}`, but ")?;
                label(f, &requirement.key, has)
            }
            Self::Affinity { requirement: None, .. } => {
                f.write_str("has a node affinity that matches no node")
            }
            Self::Enforced { requirement: Some(requirement), has, source } => {
                write!(
                    f,
                    "may only use nodes with `{requirement}` (the scheduler's addedAffinity, from {source}), but "
                )?;
                label(f, &requirement.key, has)
            }
            Self::Enforced { requirement: None, source, .. } => {
                write!(f, "fits no node because of the scheduler's addedAffinity ({source})")
            }
            Self::Volume { requirement: Some(requirement), has } => {
                write!(f, "has a volume that needs `{requirement}`, but ")?;
                label(f, &requirement.key, has)
            }
            Self::Volume { requirement: None, .. } => f.write_str("has a volume that is usable on no node"),
            Self::Port(port) => write!(f, "needs host port {port}, which another pod on the node uses"),
            Self::AntiAffinity { its_own: true } => {
                f.write_str("keeps away from another pod on the node (required pod anti-affinity)")
            }
            Self::AntiAffinity { its_own: false } => {
                f.write_str("is kept away by the required pod anti-affinity of another pod on the node")
            }
            Self::Spread { topology_key, max_skew, count, default_of } => {
                let rule = TopologySpreadConstraint {
                    default_of: default_of.clone(),
                    ..TopologySpreadConstraint::default()
                };
                write!(
                    f,
                    "is spread over `{topology_key}` with a maxSkew of {max_skew}{}, and there would be {count} on the node",
                    rule.origin()
                )
            }
            Self::Resource(Shortage { resource, wanted, available }) => write!(
                f,
                "needs {} {resource}, but there is {}",
                resource.quantity(*wanted),
                resource.quantity(*available)
            ),
        }
    }
}
