//! Faults in the steps of a plan.

use std::fmt;

use poolwright_catalog::UsdPerHour;

use super::view::NodeRef;

/// A fault in the steps of a plan. Steps are numbered from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepFault {
    /// The plan removes nodes without steps, or has steps and removes no node.
    Uncalled {
        /// The number of removed nodes.
        removed: usize,
        /// The number of steps.
        steps: usize,
    },
    /// The steps launch more nodes than the plan buys.
    Launched {
        /// The step.
        step: usize,
        /// The group.
        node: NodeRef,
        /// The number of nodes launched so far.
        launched: u64,
        /// The number of bought nodes.
        bought: u32,
    },
    /// Pods move to a node before it is launched.
    NotLaunched {
        /// The step.
        step: usize,
        /// The group.
        node: NodeRef,
        /// The number of the node within the group.
        number: u32,
    },
    /// A step moves pods from, or removes, a node that the plan keeps.
    Keeps {
        /// The step.
        step: usize,
        /// The node's name.
        node: String,
    },
    /// Pods move to a node that the plan removes.
    ToRemoved {
        /// The step.
        step: usize,
        /// The node's name.
        node: String,
    },
    /// More pods leave a node than run on it.
    NotThere {
        /// The step.
        step: usize,
        /// The node's name.
        node: String,
        /// The class's name.
        class: String,
    },
    /// More pods move to a node than the plan has there.
    NotPlanned {
        /// The step.
        step: usize,
        /// The node.
        node: NodeRef,
        /// The class's name.
        class: String,
        /// The number of pods moved there so far.
        moved: u64,
        /// The number of pods planned there.
        planned: u32,
    },
    /// A step removes a node that has pods.
    NotEmpty {
        /// The step.
        step: usize,
        /// The node's name.
        node: String,
        /// The number of remaining pods.
        left: u64,
    },
    /// The steps remove a node twice, or never.
    Times {
        /// The node's name.
        node: String,
        /// The number of times.
        times: u32,
    },
    /// The stated saving is wrong.
    Saving {
        /// The step.
        step: usize,
        /// The stated saving.
        said: Option<UsdPerHour>,
        /// The actual saving.
        saved: Option<UsdPerHour>,
    },
    /// The stated number of moved pods is wrong.
    Evictions {
        /// The step.
        step: usize,
        /// The stated number.
        said: u32,
        /// The actual number.
        moved: u64,
    },
}

impl fmt::Display for StepFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let money = |saving: &Option<UsdPerHour>| match saving {
            Some(saving) => format!("{saving} USD/h"),
            None => "nothing".to_owned(),
        };
        match self {
            Self::Uncalled { removed, steps } => {
                write!(f, "{removed} existing nodes are removed, but there are {steps} steps")
            }
            Self::Launched { step, node, launched, bought } => {
                write!(f, "step {step}: {launched} of {node} are launched, but {bought} are bought")
            }
            Self::NotLaunched { step, node, number } => {
                write!(f, "step {step}: pods move to number {number} of {node} before it is launched")
            }
            Self::Keeps { step, node } => {
                write!(
                    f,
                    "step {step} takes pods from, or removes, existing node `{node}`, which the plan keeps"
                )
            }
            Self::ToRemoved { step, node } => {
                write!(f, "step {step}: pods move to existing node `{node}`, which the plan removes")
            }
            Self::NotThere { step, node, class } => {
                write!(
                    f,
                    "step {step}: more pods of class `{class}` leave existing node `{node}` than are on it"
                )
            }
            Self::NotPlanned { step, node, class, moved, planned } => {
                write!(
                    f,
                    "step {step}: {moved} pods of class `{class}` have moved to {node}, where the plan has {planned}"
                )
            }
            Self::NotEmpty { step, node, left } => {
                write!(f, "step {step} removes existing node `{node}` with {left} pods on it")
            }
            Self::Times { node, times } => {
                write!(f, "existing node `{node}` is removed by the plan, and by {times} steps")
            }
            Self::Saving { step, said, saved } => {
                write!(f, "step {step} says it saves {}, but it saves {}", money(said), money(saved))
            }
            Self::Evictions { step, said, moved } => {
                write!(f, "step {step} says it moves {said} pods, but it moves {moved}")
            }
        }
    }
}
