//! What the controller sees: watches of the API server, what providers sell and run, and the index that both feed.
//!
//! Nothing here writes to the API server or to a cloud.

pub mod backoff;
pub mod commitments;
pub mod convert;
pub mod drafts;
pub mod fence;
pub mod inventory;
pub mod kinds;
pub mod lists;
pub mod providers;
pub mod reader;
pub mod ready;
pub mod watch;
pub mod world;
