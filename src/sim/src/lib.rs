//! A deterministic world for the real controller.
//!
//! This crate holds an API server in memory ([`api`]) behind the Kubernetes client that all of Poolwright uses, the network to it
//! ([`wire`]), a cloud ([`cloud`]), the other components of a cluster ([`cluster`]), faults ([`accidents`]), the rules that must
//! hold ([`invariants`]), and worlds: played from a seed ([`run`]) or driven by a test ([`sandbox`]).
//!
//! It must not contain decisions of Poolwright (`core`), the controller itself, or calls to any real cloud. It reads no clock,
//! takes no random number and starts no thread. Time is tokio's paused clock, randomness comes from the seed, and names and UIDs
//! from counters.
//!
//! One contract suite sends the same requests to this API server and to a real one, and compares the responses
//! (`tests/plane/tests/api_contract`).

pub mod accidents;
pub mod api;
pub mod cloud;
pub mod cluster;
pub mod dice;
pub mod invariants;
pub mod malformed;
mod patience;
mod poison;
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
