//! AWS on loopback: moto, and in front of it what moto lacks.
//!
//! moto plays EC2, IAM, SSM, SQS and EventBridge. [`Front`] stands before it as a proxy that passes on what moto can do and
//! does itself what moto cannot: client tokens, stock-outs and quotas of single pools of capacity inside an answer with status
//! 200, throttling, errors of servers and of whatever is between, answers that get lost or never come after the effect, instances that
//! show late, prices of spot capacity, AWS's public parameters. What it answers by itself is shaped as AWS's API reference says.

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
pub use front::{Front, Parameter, Pool};
pub use joining::JoinConfig;
pub use machines::Machine;
pub use moto::Moto;
pub use shown::{Capacity, Group};
pub use trouble::Trouble;

use std::process::Command;

/// Credentials that stand-ins accept, for a program that is started against one.
pub fn credentials(command: &mut Command) {
    command
        .env("AWS_ACCESS_KEY_ID", "stand-in")
        .env("AWS_SECRET_ACCESS_KEY", "stand-in")
        .env("AWS_EC2_METADATA_DISABLED", "true");
}
