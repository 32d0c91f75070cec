//! The life of every machine and every pod of a simulation. Times count from its beginning.

use std::sync::Arc;
use std::time::Duration;

use poolwright_catalog::{OfferingId, UsdPerHour};

use crate::money::Usd;

/// The events of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The simulated time; less than requested if you stopped the simulation.
    pub played: Duration,
    /// Every machine, in the order of launches.
    pub machines: Vec<Machine>,
    /// Every pod, in the order of creation.
    pub pods: Vec<Pod>,
    /// Why pods wait at the end, the most frequent reason first.
    pub waiting: Vec<Told>,
    /// Why machines ended without ever running a pod, the most frequent reason first.
    pub in_vain: Vec<Told>,
}

/// A reason that the controller or Kubernetes gave for several pods or machines, or what is known of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The reason of the event: `LimitReached`; `None` for those of which nothing was said.
    pub reason: Option<String>,
    /// How many pods or machines it concerns.
    pub count: u64,
    /// The message about the first of them.
    pub example: String,
}

impl Told {
    /// Groups what was told, in the order of the first example, by reason. The most frequent reason comes first.
    pub fn group<'a>(all: impl IntoIterator<Item = Option<&'a (String, String)>>) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for told in all {
            let reason = told.map(|(reason, _)| reason);
            if let Some(group) = groups.iter_mut().find(|group| group.reason.as_ref() == reason) {
                group.count += 1;
                continue;
            }
            let example = told.map(|(_, message)| message.clone()).unwrap_or_default();
            groups.push(Self { reason: reason.cloned(), count: 1, example });
        }
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        groups
    }
}

impl History {
    /// Returns the time that a pod spent on its machine, up to the end of both; `None` if it had none.
    pub fn on_machine(&self, pod: &Pod) -> Option<(Duration, Duration)> {
        let (bound, machine) = pod.bound?;
        let gone = self.machines[machine].gone.map_or(self.played, |gone| gone.min(self.played));
        let until = pod.ended.map_or(gone, |(ended, _)| ended.min(gone));
        (bound < until).then_some((bound, until))
    }
}

/// A machine, from its launch until it is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The cloud's id.
    pub id: String,
    /// Name of its claim and of its node.
    pub claim: String,
    /// The pool it was bought for.
    pub pool: String,
    /// The offering that was bought.
    pub offering: OfferingId,
    /// Its price; `None` if it is unknown.
    pub price: Option<UsdPerHour>,
    /// The number of its GPUs.
    pub gpus: u64,
    /// Whether the cloud gave notice that it takes this machine back.
    pub interrupted: bool,
    /// The time of its launch.
    pub launched: Duration,
    /// The time from which its node could run pods; `None` if it never could.
    pub opened: Option<Duration>,
    /// The pods that it was bought for, as indices of [`History::pods`].
    pub bought_for: Vec<usize>,
    /// The time of its end; `None` while it runs.
    pub gone: Option<Duration>,
}

impl Machine {
    /// Returns its paid time, up to `played`.
    pub fn lasted(&self, played: Duration) -> Duration {
        self.gone.map_or(played, |gone| gone.min(played)).saturating_sub(self.launched)
    }

    /// Returns its cost, up to `played`; zero for an unknown price.
    pub fn cost(&self, played: Duration) -> Usd {
        Usd::of(self.price, self.lasted(played))
    }
}

/// A pod, from its creation to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name and its requests.
    pub model: Arc<poolwright_core::Pod>,
    /// The time of its creation.
    pub made: Duration,
    /// The time at which it got a node, and the index of that machine.
    pub bound: Option<(Duration, usize)>,
    /// The time at which its containers started.
    pub started: Option<Duration>,
    /// The time and the kind of its end.
    pub ended: Option<(Duration, End)>,
}

impl Pod {
    /// Returns its waiting time until its containers ran, up to `played`.
    pub fn waited(&self, played: Duration) -> Duration {
        let until = self.started.or(self.ended.map(|(at, _)| at)).unwrap_or(played);
        until.saturating_sub(self.made)
    }

    /// Returns the time at which its work was lost, and how long it had run. A service loses none: it goes on elsewhere. Only jobs
    /// repeat their work.
    pub fn lost(&self) -> Option<(Duration, Duration)> {
        let (at, end) = self.ended?;
        let is_lost = end != End::Finished && !self.model.duration.is_service;
        let ran = at.saturating_sub(self.started?);
        is_lost.then_some((at, ran))
    }
}

/// The end of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It completed its work.
    Finished,
    /// It lost its machine.
    MachineLost,
    /// It was deleted before it was done: another pod preempted it, or its node was emptied.
    Evicted,
}
