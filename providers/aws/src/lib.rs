//! Nodes on AWS EC2: the calls.
//!
//! Lives here: [`AwsProvider`], which asks EC2, SSM and IAM for what Poolwright wants to know and tells them what it wants done;
//! EC2NodeClass ([`node_class`]) and the [`REGISTRATION`]; conversions between AWS's SDK and the words of `providers/aws-model` and of the provider contract. This is the one crate that
//! compiles AWS's SDK.
//!
//! May not live here: any decision about what to buy, and what can be worked out without a call (that is `aws-model`'s).
//!
//! # What is durable, and where
//!
//! An instance carries from its first moment, as tags, the cluster, the UID and name of its NodeClaim, and its node class
//! (`tags.rs`). Nothing else is kept: a provider that starts anew finds everything by these tags.
//!
//! A launch is one CreateFleet call of type `instant` whose ClientToken is made of the claim's UID, so that EC2 answers a repeated
//! call with the instance of the first (`launch/`).
//!
//! EC2 shows what it did after a while only (it is *eventually consistent*,
//! <https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html>). What this provider launched itself it
//! therefore knows for two minutes, whatever a listing lacks.
//!
//! Beside AWS it asks the cluster for two things, each behind a trait: node classes ([`NodeClassObjects`]) and bootstrap tokens ([`Tokens`]).

mod bootstrap;
mod clients;
mod coalesce;
mod connect;
mod dns;
mod error;
mod instance_types;
mod instances;
mod interruptions;
mod karpenter;
mod launch;
mod market;
pub mod node_class;
mod preflight;
mod provider;
mod recent;
mod registration;
mod resolve;
mod tags;
mod tokens;

pub use clients::{Access, Key};
pub use poolwright_provider_aws_model::bootstrap::BootstrapToken;
pub use provider::{AwsProvider, Join, Settings};
pub use registration::REGISTRATION;
pub use resolve::{KubeNodeClassObjects, NodeClassObjects};

pub use tokens::{KubeTokens, Tokens};
