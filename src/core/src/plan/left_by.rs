//! Why an attempt leaves pods out, in a form that outlives the attempt.

use crate::plan::gang_limits;
use crate::supply::limits::Limits;
use crate::supply::offerings::Supply;

/// Why an attempt left a pod out. A sentence about a limit counts the nodes that a plan buys, so a later attempt says it with its
/// own count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeftBy {
    /// The limits that left the pod out, each with the least that a node which fits it uses of the limit. The pod needs more of all of
    /// them. The first stands for all where only one counts.
    limits: Vec<(u32, u64)>,
    /// What follows the sentences about the limits, or the whole sentence.
    words: String,
}

impl LeftBy {
    pub fn limit(limit: u32, least: u64) -> Self {
        Self::limits(vec![(limit, least)])
    }

    pub fn limits(limits: Vec<(u32, u64)>) -> Self {
        Self { limits, words: String::new() }
    }

    pub fn other(words: String) -> Self {
        Self { limits: Vec::new(), words }
    }

    /// Returns the limit that left the pod out, if one did.
    pub fn reached(&self) -> Option<u32> {
        self.limits.first().map(|(limit, _)| *limit)
    }

    /// Returns whether one limit left the pod out, and no other.
    pub fn is_single(&self) -> bool {
        self.limits.len() == 1
    }

    /// Returns the least that a node which fits the pod uses of a limit, if that limit left the pod out.
    pub fn least_of(&self, limit: u32) -> Option<u64> {
        self.limits.first().filter(|(of, least)| *of == limit && *least > 0).map(|(_, least)| *least)
    }

    /// Returns the sentence for a gang that would take these amounts of limits at once.
    pub fn sentence_of_gang(&self, limits: &Limits, supply: &Supply<'_>, takes: &[(u32, u64)]) -> String {
        let is_told = |limit: u32| takes.iter().any(|(of, _)| *of == limit);
        let more = self.limits.iter().filter(|(limit, _)| !is_told(*limit));
        let more = more.map(|(limit, _)| limits.named(*limit, supply));
        let more =
            more.map(|limit| format!("; and {limit} leaves too little for it too")).collect::<Vec<_>>();
        format!("{}{}{}", gang_limits::all_in_words(takes, limits, supply), more.concat(), self.words)
    }

    /// Returns the sentence, with what the limits count now. Of several limits, it names those that still keep the pod out.
    pub fn sentence(&self, limits: &Limits, supply: &Supply<'_>) -> String {
        let mut told = limits.beyond(&self.limits);
        if told.is_empty() {
            told.extend(self.limits.first());
        }
        let of_limits = told.into_iter().map(|(limit, least)| limits.sentence(limit, supply, least));
        format!("{}{}", of_limits.collect::<Vec<_>>().join("; and "), self.words)
    }

    /// Appends words to the sentence.
    pub fn with(mut self, words: &str) -> Self {
        self.words.push_str(words);
        self
    }

    /// Appends that a pod of this kind lost its place on a planned node, so that it needs one more.
    pub fn without_layout(self) -> Self {
        self.with(
            "; a node was planned for it or a pod like it, but the search for the layout of its GPUs found no place for all pods of that node",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_a_layout_of_gpus_lost_is_left_out_by_its_limit_and_told_of_the_layout() {
        let left = LeftBy::limit(3, 8).without_layout();
        assert_eq!((left.reached(), left.least_of(3)), (Some(3), Some(8)));
        assert!(left.words.contains("the search for the layout of its GPUs found no place"), "{left:?}");
    }
}
