//! What must never be, each a sentence in a file of its own. Everything is looked at from outside: the objects of the API server,
//! the machines of the cloud, who asked for what.

mod claims_outlive;
mod known_prices;
mod leaks;
mod one_instance;
mod only_leaders;
mod pool_limits;
mod rest;
mod work_kept;

use std::fmt;
use std::time::Duration;

use crate::cloud::Machine;
use crate::cluster::Cluster;

pub use only_leaders::Leadership;

/// Something that must never be, was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule, as a sentence.
    pub rule: &'static str,
    /// What was seen.
    pub seen: String,
    /// When.
    pub at: Duration,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.seen)
    }
}

/// What rules look at.
pub struct Scene<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Machines that are not gone, by key.
    pub machines: &'a [(String, Machine)],
    /// Since the beginning.
    pub now: Duration,
    /// Since when nothing goes wrong any more and all work is done.
    pub quiet_since: Option<Duration>,
}

type Rule = (&'static str, fn(&Scene<'_>, &mut Memory) -> Option<String>);

const RULES: [Rule; 7] = [
    (one_instance::RULE, one_instance::check),
    (leaks::RULE, leaks::check),
    (claims_outlive::RULE, claims_outlive::check),
    (pool_limits::RULE, pool_limits::check),
    (known_prices::RULE, known_prices::check),
    (work_kept::RULE, work_kept::check),
    (rest::RULE, rest::check),
];

/// What rules remember from one look to the next.
#[derive(Debug, Default)]
pub struct Memory {
    claims: claims_outlive::Seen,
    leaks: leaks::Seen,
    work: work_kept::Seen,
}

impl Memory {
    /// The first rule that is broken.
    pub fn check(&mut self, scene: &Scene<'_>) -> Option<Violation> {
        RULES.iter().find_map(|(rule, check)| {
            let seen = check(scene, self)?;
            Some(Violation { rule, seen, at: scene.now })
        })
    }
}
