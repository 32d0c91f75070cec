//! Topology spread: the rules behind `topologySpreadConstraints`.
//!
//! A constraint counts the pods that its selector matches in each domain. A domain is a value of the topology key: one zone, or one
//! node. No domain may hold more than `maxSkew` pods more than the domain with the fewest. With `DoNotSchedule` a constraint must be
//! kept; with `ScheduleAnyway` it is a preference.
//!
//! | file | what it decides | who asks |
//! |---|---|---|
//! | `constraint` | which pods and nodes a constraint counts | every file below |
//! | `hosts` | constraints over nodes: how many pods a node may hold, and how many are on the node with the fewest | `rules::colocation`, `plan::place::spread_hosts`, `plan::pack` |
//! | `tallies` | constraints over nodes, as resources that the solver counts | `plan::pack` |
//! | `domains` | constraints over zones and other labels: whether a domain may get one more pod | `plan::place::topology`; `plan::place::preferences` for `ScheduleAnyway` |
//! | `audit` | constraints of a finished plan, counted again | `plan::audit` |
//! | `messages` | sentences about constraints | all of these |
//!
//! The zone of a pod also depends on pod affinity and prices, so `plan::place::topology` chooses it.

pub(crate) mod audit;
pub(crate) mod constraint;
pub(crate) mod domains;
pub(crate) mod hosts;
pub(crate) mod messages;
pub(crate) mod tallies;
