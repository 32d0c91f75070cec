//! A pattern: one node with its pods. Column generation calls it a column.

use super::Model;

/// The pods of one node of a bin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pattern {
    /// Index into [`Model::bins`].
    pub bin: u32,
    /// Pods by class, ascending; no zero counts.
    pub pods: Vec<(u32, u32)>,
}

impl Pattern {
    /// Returns the free room on the node.
    pub fn room(&self, model: &Model) -> Vec<u64> {
        let mut room = model.bins[self.bin as usize].capacity.clone();
        for (class, count) in &self.pods {
            for (left, request) in room.iter_mut().zip(&model.classes[*class as usize].requests) {
                *left -= request * u64::from(*count);
            }
        }
        room
    }

    /// Returns the number of such nodes that `left` pods fill.
    pub fn copies(&self, left: &[u64]) -> u64 {
        self.pods.iter().map(|(class, count)| left[*class as usize] / u64::from(*count)).min().unwrap_or(0)
    }
}
