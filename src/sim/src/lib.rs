//! A deterministic world for the real controller.
//!
//! Lives here: an API server in memory ([`api`]) behind the Kubernetes client that everything of Poolwright uses. It reads
//! no clock and takes no random number: what time it is it is told, and names and UIDs come from a count.
//!
//! May not live here: decisions of Poolwright (`core`), the controller itself, calls of any cloud.
//!
//! One contract suite asks this API server and a real one the same questions and must hear the same answers
//! (`tests/plane/tests/api_contract`).

pub mod api;
