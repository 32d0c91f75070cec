//! The rules about pods on one node. Only this file decides how many more pods of a class a node can take: greedy
//! filling, repairs, the exact search and pricing all ask here.
//!
//! Searches over GPUs can leave this undecided. What makes plans asks [`Content::more`] and [`Content::allows`], which then say no.
//! What proves a bound asks [`Content::fit`] and [`Content::verdict`], and proves nothing where they are undecided.

use super::{Bin, Flexible, Model, Pattern, UNLIMITED, fit_count};
use crate::gpu::{Fit, Misfit, Room};
use crate::problem::GpuRequest;

/// The pods on one node, while they are added and removed.
///
/// Rules are monotone: if they allow a content, they allow every subset. So it is enough to check [`Self::more`] before
/// each [`Self::add`], in any order of classes.
#[derive(Clone, Debug)]
pub(crate) struct Content<'m> {
    model: &'m Model,
    bin: &'m Bin,
    room: Vec<u64>,
    /// Pods by class, ascending; no zero counts.
    pods: Vec<(u32, u32)>,
    /// The GPU requests of the pods, ascending; no zero counts.
    wishes: Vec<(GpuRequest, u64)>,
}

impl<'m> Content<'m> {
    /// Creates an empty node.
    pub fn empty(model: &'m Model, bin: u32) -> Self {
        let bin = &model.bins[bin as usize];
        Self { model, bin, room: bin.capacity.clone(), pods: Vec::new(), wishes: Vec::new() }
    }

    /// Creates an empty node of a bin with rules; `None` where only capacity and `per_node` apply.
    pub fn ruled(model: &'m Model, bin: u32) -> Option<Self> {
        (!model.bins[bin as usize].rules.none()).then(|| Self::empty(model, bin))
    }

    /// Creates a node with the pods of `pattern`, which the rules must allow.
    pub fn of(model: &'m Model, pattern: &Pattern) -> Self {
        let bin = &model.bins[pattern.bin as usize];
        let mut content =
            Self { model, bin, room: pattern.room(model), pods: pattern.pods.clone(), wishes: Vec::new() };
        for (class, count) in &pattern.pods {
            content.wish(*class, i64::from(*count));
        }
        content
    }

    /// Returns whether a node of `bin` is known to hold exactly `pods`.
    pub fn allows(model: &Model, bin: u32, pods: &[(u32, u32)]) -> bool {
        Self::verdict(model, bin, pods) == Some(true)
    }

    /// Returns whether a node of `bin` may have exactly `pods`; `None` where that is undecided.
    pub fn verdict(model: &Model, bin: u32, pods: &[(u32, u32)]) -> Option<bool> {
        let mut content = Content::empty(model, bin);
        let mut decided = true;
        for (class, count) in pods {
            if content.bin.position(*class).is_none() {
                return Some(false);
            }
            let fit = content.fit(*class);
            if fit.most < u64::from(*count) {
                return Some(false);
            }
            decided &= fit.least >= u64::from(*count);
            content.add(*class, *count);
        }
        decided.then_some(true)
    }

    /// Returns its pods by class, ascending.
    pub fn pods(&self) -> &[(u32, u32)] {
        &self.pods
    }

    /// Returns its pods by class, ascending.
    pub fn into_pods(self) -> Vec<(u32, u32)> {
        self.pods
    }

    /// Returns the room left of each resource.
    pub fn room(&self) -> &[u64] {
        &self.room
    }

    /// Returns whether some resource has less room than `least`, so that no pod with at least these requests fits.
    pub fn has_less_than(&self, least: &[u64]) -> bool {
        self.room.iter().zip(least).any(|(room, least)| room < least)
    }

    /// Returns how many more pods of `class`, which must be one of the bin's, are known to fit, regardless of demand.
    pub fn more(&self, class: u32) -> u64 {
        self.fit(class).least
    }

    /// Returns what is known about how many more pods of `class`, which must be one of the bin's, can be added, regardless of
    /// demand.
    pub fn fit(&self, class: u32) -> Fit {
        let wanted = &self.model.classes[class as usize];
        let mut most = fit_count(&self.room, &wanted.requests);
        if wanted.per_node != u32::MAX {
            let have =
                self.pods.binary_search_by_key(&class, |(class, _)| *class).map_or(0, |at| self.pods[at].1);
            most = most.min(u64::from(wanted.per_node.saturating_sub(have)));
        }
        if most == 0 || self.bin.rules.none() {
            return Fit::exact(most);
        }
        if self.bin.rules.conflicts
            && self.pods.iter().any(|(other, _)| *other != class && self.model.keep_apart(class, *other))
        {
            return Fit::exact(0);
        }
        let mut fit = Fit::exact(most);
        if let Some(room) = &self.bin.rules.gpus
            && wanted.gpu.is_some()
        {
            fit = self.gpus(room, class, most);
        }
        for rule in &self.bin.rules.flexible {
            fit = fit.min(self.flexible(&self.model.flexible[*rule as usize], class, fit.most));
        }
        fit
    }

    /// Returns how many more pods of `class`, at most `most`, fit these GPUs.
    fn gpus(&self, room: &Room, class: u32, most: u64) -> Fit {
        match self.model.classes[class as usize].gpu {
            Some(request) => room.more(&self.wishes, request, most),
            // The pods on this node may exceed the GPUs of an alternative.
            None => match room.check(&self.wishes) {
                Ok(()) => Fit::exact(most),
                Err(Misfit::Impossible) => Fit::exact(0),
                Err(Misfit::Undecided) => Fit { least: 0, most },
            },
        }
    }

    /// Returns how many more pods of `class`, at most `ceiling`, fit alternatives of enough values.
    fn flexible(&self, rule: &Flexible, class: u32, ceiling: u64) -> Fit {
        let fits = |number: u32| -> Fit {
            let admits =
                |class: u32| self.model.classes[class as usize].alternatives.binary_search(&number).is_ok();
            if !admits(class) || !self.pods.iter().all(|(other, _)| admits(*other)) {
                return Fit::exact(0);
            }
            let other = &self.model.alternatives[number as usize];
            let mut most = UNLIMITED;
            let requests = &self.model.classes[class as usize].requests;
            for (dim, capacity) in other.capacity.iter().enumerate() {
                let used = self.bin.capacity[dim] - self.room[dim];
                let Some(room) = capacity.checked_sub(used) else { return Fit::exact(0) };
                most = most.min(room.checked_div(requests[dim]).unwrap_or(UNLIMITED));
            }
            match &other.gpus {
                Some(room) => self.gpus(room, class, most),
                None => Fit::exact(most),
            }
        };
        let Some(last) = rule.at_least.checked_sub(1) else { return Fit::exact(ceiling) };
        let (mut least, mut most) = (Vec::new(), Vec::new());
        let mut enough = 0;
        for numbers in &rule.values {
            let mut fit = Fit::exact(0);
            for number in numbers {
                fit = fit.max(fits(*number));
                if fit.least >= ceiling {
                    break;
                }
            }
            enough += usize::from(fit.least >= ceiling);
            if enough > last {
                // Enough values reach the ceiling, so the rest need not be checked.
                return Fit::exact(ceiling);
            }
            least.push(fit.least);
            most.push(fit.most);
        }
        let reached = |mut counts: Vec<u64>| {
            counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
            counts.get(last).copied().unwrap_or(0)
        };
        Fit { least: reached(least), most: reached(most) }
    }

    /// Updates the GPU requests by pods that are added or removed.
    fn wish(&mut self, class: u32, count: i64) {
        let Some(request) = self.model.classes[class as usize].gpu else { return };
        match self.wishes.binary_search_by_key(&request, |(request, _)| *request) {
            Ok(at) => {
                self.wishes[at].1 = self.wishes[at].1.saturating_add_signed(count);
                if self.wishes[at].1 == 0 {
                    self.wishes.remove(at);
                }
            }
            Err(at) if count > 0 => self.wishes.insert(at, (request, count.unsigned_abs())),
            Err(_) => {}
        }
    }

    /// Adds pods; [`Self::fit`] must not exclude them.
    pub fn add(&mut self, class: u32, count: u32) {
        if count == 0 {
            return;
        }
        for (room, request) in self.room.iter_mut().zip(&self.model.classes[class as usize].requests) {
            *room -= request * u64::from(count);
        }
        self.wish(class, i64::from(count));
        match self.pods.binary_search_by_key(&class, |(class, _)| *class) {
            Ok(at) => self.pods[at].1 += count,
            Err(at) => self.pods.insert(at, (class, count)),
        }
    }

    /// Removes pods.
    pub fn remove(&mut self, class: u32, count: u32) {
        for (room, request) in self.room.iter_mut().zip(&self.model.classes[class as usize].requests) {
            *room += request * u64::from(count);
        }
        self.wish(class, -i64::from(count));
        if let Ok(at) = self.pods.binary_search_by_key(&class, |(class, _)| *class) {
            self.pods[at].1 -= count;
            if self.pods[at].1 == 0 {
                self.pods.remove(at);
            }
        }
    }
}
