//! Why an attempt leaves pods out, in a form that outlives the attempt.

use crate::plan::gang_limits;
use crate::supply::held_back::HeldBack;
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
    /// What comes before the sentences about the limits: the only offerings within them are held back. So the limits are told of the
    /// other offerings.
    held_back: Option<HeldBack>,
}

impl LeftBy {
    pub fn limit(limit: u32, least: u64) -> Self {
        Self::limits(vec![(limit, least)])
    }

    pub fn limits(limits: Vec<(u32, u64)>) -> Self {
        Self { limits, words: String::new(), held_back: None }
    }

    pub fn other(words: String) -> Self {
        Self { limits: Vec::new(), words, held_back: None }
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
        let of_limits = gang_limits::all_in_words(takes, limits, supply);
        format!("{}{of_limits}{}{}", self.first(), more.concat(), self.words)
    }

    /// Returns the sentence for a gang that would take these amounts of limits at once, which are all that must be raised for it.
    pub fn sentence_of_whole_gang(
        &self,
        limits: &Limits,
        supply: &Supply<'_>,
        takes: &[(u32, u64)],
    ) -> String {
        format!("{}{}{}", self.first(), gang_limits::all_in_words(takes, limits, supply), self.words)
    }

    /// Returns the sentence, with what the limits count now. Of several limits, it names those that still keep the pod out.
    pub fn sentence(&self, limits: &Limits, supply: &Supply<'_>) -> String {
        let mut told = limits.beyond(&self.limits);
        if told.is_empty() {
            told.extend(self.limits.first());
        }
        let of_limit = |(limit, least): (u32, u64)| match &self.held_back {
            Some(_) => limits.sentence_of_others(limit, supply, least),
            None => limits.sentence(limit, supply, least),
        };
        let of_limits: Vec<String> = told.into_iter().map(of_limit).collect();
        format!("{}{}{}", self.first(), of_limits.join("; and "), self.words)
    }

    /// Returns what comes before the limits.
    pub fn first(&self) -> String {
        self.held_back.as_ref().map_or_else(String::new, |held| held.words("it") + "; besides, ")
    }

    /// Returns the sentence about a limit of this pod for the pool of the limit, if offerings that are held back come before it.
    pub fn of_pool(&self, limit: u32, limits: &Limits, supply: &Supply<'_>) -> Option<String> {
        let held = self.held_back.as_ref()?;
        let besides = limits.sentence_of_others(limit, supply, 0);
        Some(format!("{}; besides, {besides}", held.words("a waiting pod")))
    }

    /// Puts the offerings first that would hold the pod within the limits once they are tried again.
    pub fn after(mut self, held: HeldBack) -> Self {
        self.held_back = Some(held);
        self
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
