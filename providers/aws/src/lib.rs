//! The provider for AWS EC2.
//!
//! This crate holds [`AwsProvider`], which calls EC2, SSM, IAM and SQS; the node class EC2NodeClass ([`node_class`]); the
//! [`REGISTRATION`] of the cloud; and conversions between the AWS SDK and the types of `providers/aws-model` and of the provider
//! contract. No other crate depends on the AWS SDK.
//!
//! It must not decide anything about what to buy, or contain logic that needs no calls (`providers/aws-model` has that).
//!
//! # What is stored, and where
//!
//! Every instance carries tags from the moment it is launched: the cluster, the UID and the name of its NodeClaim, and its node
//! class (`tags.rs`). The provider stores nothing else, so a restarted provider finds all instances by their tags.
//!
//! A launch is one CreateFleet call of type `instant`. Its ClientToken contains the UID of the NodeClaim, so EC2 answers a
//! repeated call with the instance of the first call (`launch/`).
//!
//! EC2 is *eventually consistent* (<https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html>): it shows a new
//! instance only after a while. The provider therefore remembers its own launches for two minutes, even if a listing lacks them
//! (`recent.rs`).
//!
//! The provider also reads node classes and makes bootstrap tokens in the cluster. It does so through the traits
//! [`NodeClassObjects`] and [`Tokens`].

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
mod reason;
mod recent;
mod registration;
mod resolve;
mod settings;
mod tags;
mod tokens;

pub use clients::{Access, Key};
pub use poolwright_provider_aws_model::bootstrap::BootstrapToken;
pub use provider::AwsProvider;
pub use registration::REGISTRATION;
pub use resolve::{KubeNodeClassObjects, NodeClassObjects};
pub use settings::{Join, Settings};

pub use tokens::{KubeTokens, Tokens};
