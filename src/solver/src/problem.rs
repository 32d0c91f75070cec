//! What is asked of the solver. Documented and serialisable, so that a case can be saved and replayed.

use poolwright_catalog::{ResourceName, UsdPerHour};
use serde::{Deserialize, Serialize};

/// Pods to place, nodes they may use, and what may be bought.
///
/// Every resource vector has one entry per entry of `resources`, in that order, in the units of
/// [`poolwright_catalog::ResourceList`] (CPU in thousandths of a core, memory in bytes, counts).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Problem {
    /// The dimensions.
    pub resources: Vec<ResourceName>,
    /// Pods, grouped: pods of one class are interchangeable.
    pub classes: Vec<PodClass>,
    /// Kinds of node that can be bought.
    pub candidates: Vec<Candidate>,
    /// Nodes that are there or on their way; using them costs nothing more.
    pub existing: Vec<ExistingNode>,
    /// Ceilings over sums of bought nodes.
    pub limits: Vec<Limit>,
}

/// Pods that are equal in all that matters to packing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodClass {
    /// For messages only.
    pub name: String,
    /// What one pod takes of each resource, its place among `pods` included.
    pub requests: Vec<u64>,
    /// How many such pods there are.
    pub count: u32,
    /// When not all can be placed, higher priorities are placed first.
    pub priority: i32,
    /// At most this many on one node.
    pub max_per_node: Option<u32>,
    /// Indices into [`Problem::candidates`] that the pods may use, ascending.
    pub candidates: Vec<u32>,
    /// Indices into [`Problem::existing`] that the pods may use, ascending.
    pub existing: Vec<u32>,
}

/// A kind of node that can be bought: one offering under one pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Candidate {
    /// For messages only.
    pub name: String,
    /// What one node costs.
    pub price: UsdPerHour,
    /// What one node offers to pods, after system reservations and DaemonSets.
    pub capacity: Vec<u64>,
    /// At most this many can be bought.
    pub max_nodes: Option<u32>,
    /// What one node takes of each limit it counts against: (index into [`Problem::limits`], amount), ascending.
    pub limit_use: Vec<(u32, u64)>,
}

/// A node that is there, or on its way and paid for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExistingNode {
    /// For messages only.
    pub name: String,
    /// What is free on it.
    pub free: Vec<u64>,
}

/// A ceiling: the sum over bought nodes of their [`Candidate::limit_use`] may not pass `bound`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limit {
    /// For messages: `pool gpu: nvidia.com/gpu`.
    pub name: String,
    /// What is left to spend, in the limit's own unit.
    pub bound: u64,
}

/// Why a problem is malformed. These are bugs of the caller, not of the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    /// A vector has the wrong number of entries.
    #[error("{what} has {got} resource amounts where the problem has {want} resources")]
    WrongLength {
        /// Which object.
        what: String,
        /// Its length.
        got: usize,
        /// The number of resources.
        want: usize,
    },
    /// An index points nowhere, or a list of indices is not strictly ascending.
    #[error("{what} names {list} number {index}, which does not exist or is out of order")]
    BadIndex {
        /// Which object.
        what: String,
        /// Which list.
        list: &'static str,
        /// The index.
        index: u32,
    },
}

impl Problem {
    /// Checks that vectors have the right length and that indices exist and ascend.
    pub fn validate(&self) -> Result<(), ProblemError> {
        let want = self.resources.len();
        let length = |what: &str, vector: &[u64]| {
            if vector.len() == want {
                Ok(())
            } else {
                Err(ProblemError::WrongLength { what: what.to_owned(), got: vector.len(), want })
            }
        };
        let ascending =
            |what: &str, list: &'static str, indices: &mut dyn Iterator<Item = u32>, size: usize| {
                let mut previous = None;
                for index in indices {
                    if index as usize >= size || previous.is_some_and(|p| p >= index) {
                        return Err(ProblemError::BadIndex { what: what.to_owned(), list, index });
                    }
                    previous = Some(index);
                }
                Ok(())
            };
        for class in &self.classes {
            length(&class.name, &class.requests)?;
            ascending(
                &class.name,
                "candidate",
                &mut class.candidates.iter().copied(),
                self.candidates.len(),
            )?;
            ascending(
                &class.name,
                "existing node",
                &mut class.existing.iter().copied(),
                self.existing.len(),
            )?;
        }
        for candidate in &self.candidates {
            length(&candidate.name, &candidate.capacity)?;
            let mut limits = candidate.limit_use.iter().map(|(limit, _)| *limit);
            ascending(&candidate.name, "limit", &mut limits, self.limits.len())?;
        }
        self.existing.iter().try_for_each(|node| length(&node.name, &node.free))
    }
}
