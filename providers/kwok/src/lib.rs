//! A cloud without machines for tests, demos and trials. It registers Node objects in a real API server.
//!
//! This crate holds [`KwokNodeClass`], the [`REGISTRATION`], and [`KwokProvider`], which has two roles. As a provider it
//! launches, lists and terminates instances. As the cloud behind it ([`KwokProvider::run`]) it creates the Node object of an
//! instance after the delay of the node class, with the injected faults. If KWOK runs in the cluster, it keeps the nodes ready
//! and runs their pods; it recognises the nodes by the annotation `kwok.x-k8s.io/node: fake`. Without KWOK the nodes are ready
//! when they join, and stay ready until a node controller misses their heartbeats.
//!
//! It must not decide anything about what to buy, or do anything that the provider of a real cloud would not do.
//!
//! # Where instances live
//!
//! Each instance is one ConfigMap, named after the key of the launch, in a separate namespace (`poolwright-kwok` by default).
//! Instances therefore survive restarts, and a key launches only one instance, because the API server rejects a second ConfigMap
//! of the same name.
//!
//! | step | stored | after a crash |
//! |---|---|---|
//! | launch | the ConfigMap in state `Launched`, with its faults | the node joins when it is due |
//! | join | the Node, then state `Joined` | the Node is found by its provider id and not created again |
//! | terminate | state `Terminating`; then the Node is deleted, then the ConfigMap | the termination continues |
//!
//! The next round deletes a Node without an instance, which exists if a termination overtakes the join. It never adopts or
//! changes a Node of the same name that belongs to something else.
//!
//! # Least privilege
//!
//! | resource | verbs | scope |
//! |---|---|---|
//! | `kwoknodeclasses.poolwright.dev` | get | cluster |
//! | `configmaps` | get, list, create, update, delete | the namespace of the instances |
//! | `namespaces` | create | cluster; not needed if the namespace exists |
//! | `nodes` | get, list, create, delete | cluster |

mod api_error;
mod class;
mod cloud;
mod interruptions;
mod node;
mod node_class;
mod provider;
mod reason;
mod record;
mod registration;
mod store;

pub use node_class::{
    Faults, InterruptionFault, KwokNodeClass, KwokNodeClassSpec, KwokNodeClassStatus, LaunchFault,
    OfferingSelector,
};
pub use provider::{KwokProvider, Settings};
pub use registration::REGISTRATION;
