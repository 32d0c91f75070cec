//! Flexibility: the pods of some nodes must fit nodes of other types too.

use crate::gpu::Room;

/// A candidate that the nodes of flexible bins could also be.
#[derive(Clone, Debug)]
pub(crate) struct Alternative {
    /// Index into the problem's candidates.
    pub candidate: u32,
    /// The capacity of one node.
    pub capacity: Vec<u64>,
    /// Its GPUs, where `capacity` alone does not decide what fits.
    pub gpus: Option<Room>,
}

/// A flexibility rule of the problem: the pods of a node must also fit alternatives of several values of a topology.
#[derive(Clone, Debug)]
pub(crate) struct Flexible {
    /// The required number of values.
    pub at_least: usize,
    /// Indices into [`super::Model::alternatives`], by value; values with large nodes come first.
    pub values: Vec<Vec<u32>>,
}

impl Flexible {
    /// Returns the number of values with at least one of `alternatives` (ascending).
    pub fn values_with(&self, alternatives: &[u32]) -> usize {
        let has = |value: &&Vec<u32>| value.iter().any(|one| alternatives.binary_search(one).is_ok());
        self.values.iter().filter(has).count()
    }
}
