//! Flexibility: the pods of some nodes must fit nodes of other types too.

use crate::gpu::Room;

/// A candidate that the nodes of flexible bins could also be.
#[derive(Clone, Debug)]
pub(crate) struct Alternative {
    /// Index into the problem's candidates.
    pub candidate: u32,
    /// Room on one node.
    pub capacity: Vec<u64>,
    /// Its GPUs, where `capacity` does not tell what fits them.
    pub gpus: Option<Room>,
}

/// The content of a node must fit alternatives of many values of a topology; one per flexibility of the problem.
#[derive(Clone, Debug)]
pub(crate) struct Flexible {
    /// Of how many values.
    pub at_least: usize,
    /// Indices into [`super::Model::alternatives`], by value, values with large nodes first.
    pub values: Vec<Vec<u32>>,
}

impl Flexible {
    /// How many values have one of `alternatives` (ascending).
    pub fn values_with(&self, alternatives: &[u32]) -> usize {
        let has = |value: &&Vec<u32>| value.iter().any(|one| alternatives.binary_search(one).is_ok());
        self.values.iter().filter(has).count()
    }
}
