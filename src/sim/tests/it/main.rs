//! Tests of the simulated cluster, cloud and API server, and of replays. Each file has one topic. Worlds with faults have a binary of
//! their own, because they take minutes.

mod api_server;
mod budgets;
mod chosen_units;
mod cloud;
mod daemonsets;
mod evictions;
mod interruptions;
mod kit;
mod namespaces;
mod reclaimed;
mod regret;
mod retiring;
mod volumes;
mod waiting;

/// The allocator of the command: simulations allocate and free many small objects.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
