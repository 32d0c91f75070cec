//! The life of every machine and every pod of a simulation. Times count from its beginning.

use std::sync::Arc;
use std::time::Duration;

use poolwright_catalog::{OfferingId, UsdPerHour};

use crate::money::Usd;

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The simulated time: less than requested if it was stopped.
    pub played: Duration,
    /// Every machine, in the order of launches.
    pub machines: Vec<Machine>,
    /// Every pod, in the order in which they were made.
    pub pods: Vec<Pod>,
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
    /// Its price; `None` when it is unknown.
    pub price: Option<UsdPerHour>,
    /// How many GPUs it has.
    pub gpus: u64,
    /// When it was launched.
    pub launched: Duration,
    /// When it was gone; `None` while it runs.
    pub gone: Option<Duration>,
}

impl Machine {
    /// How long it was paid for, until `played`.
    pub fn lasted(&self, played: Duration) -> Duration {
        self.gone.map_or(played, |gone| gone.min(played)).saturating_sub(self.launched)
    }

    /// Its cost until `played`; zero if its price is unknown.
    pub fn cost(&self, played: Duration) -> Usd {
        Usd::of(self.price, self.lasted(played))
    }
}

/// A pod, from its creation to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name and its requests.
    pub model: Arc<poolwright_core::Pod>,
    /// When it was created.
    pub made: Duration,
    /// When it was bound, and the index of the machine.
    pub bound: Option<(Duration, usize)>,
    /// When its containers started.
    pub started: Option<Duration>,
    /// When it ended, and how.
    pub ended: Option<(Duration, End)>,
}

impl Pod {
    /// How long it waited for its containers to run, until `played`.
    pub fn waited(&self, played: Duration) -> Duration {
        let until = self.started.or(self.ended.map(|(at, _)| at)).unwrap_or(played);
        until.saturating_sub(self.made)
    }
}

/// How a pod ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It finished.
    Finished,
    /// It lost its machine.
    MachineLost,
    /// It was deleted before it finished: preempted, or its node was drained.
    Evicted,
}
