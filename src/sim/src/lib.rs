//! A deterministic world for the real controller.
//!
//! Lives here: an API server in memory ([`api`]) behind the Kubernetes client that everything of Poolwright uses, the network
//! to it ([`wire`]), a cloud ([`cloud`]), what surrounds the controller in a cluster ([`cluster`]), what goes wrong
//! ([`accidents`]), what must never be ([`invariants`]), and worlds: played
//! from a seed ([`run`]), or without a script, for who acts in them ([`sandbox`]).
//!
//! Nothing here reads a clock, takes a random number or starts a thread: time is tokio's paused clock, chance comes from the
//! seed, names and UIDs from a count.
//!
//! May not live here: decisions of Poolwright (`core`), the controller itself, calls of any real cloud.
//!
//! One contract suite asks this API server and a real one the same questions and must hear the same answers
//! (`tests/plane/tests/api_contract`).

pub mod accidents;
pub mod api;
pub mod cloud;
pub mod cluster;
pub mod dice;
pub mod invariants;
pub mod malformed;
pub mod record;
pub mod replay;
pub mod run;
pub mod sabotage;
pub mod sandbox;
pub mod scenario;
pub mod scheduler;
pub mod search;
pub mod time;
pub mod wire;
mod work;
