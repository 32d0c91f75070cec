//! AWS on loopback: moto, with a front that adds what moto lacks.
//!
//! moto simulates EC2, IAM, SSM, SQS and EventBridge. [`Front`] is a proxy before it. It passes on what moto can do, and adds:
//! client tokens; stock-outs and quotas of single capacity pools inside a response with status 200; throttling; errors of servers
//! and of proxies in between; responses that get lost or never come although the call took effect; instances that listings show
//! late or lack; prices of spot capacity; AWS's public parameters. Its own responses have the format of AWS's API reference.

mod account;
mod answers;
mod fleet;
mod front;
mod instances;
mod joining;
mod listing;
mod machines;
mod moto;
mod queue;
mod quotas;
mod request;
mod shown;
mod silence;
mod spot;
mod trouble;

pub use account::Account;
pub use front::{Front, Parameter, Pool, Sight};
pub use joining::JoinConfig;
pub use machines::Machine;
pub use moto::Moto;
pub use shown::{Capacity, Group};
pub use trouble::Trouble;

use std::process::Command;

/// Sets credentials that moto and the front accept, for a program started against them.
pub fn credentials(command: &mut Command) {
    command
        .env("AWS_ACCESS_KEY_ID", "stand-in")
        .env("AWS_SECRET_ACCESS_KEY", "stand-in")
        .env("AWS_EC2_METADATA_DISABLED", "true");
}
