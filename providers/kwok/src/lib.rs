//! Nodes without machines on a real API server: a cloud for tests, demos and trials.
//!
//! Lives here: [`KwokNodeClass`], the [`REGISTRATION`], and [`KwokProvider`], which plays both sides. As a provider it launches, lists and terminates "instances";
//! as the cloud behind it ([`KwokProvider::run`]) it lets an instance's Node object join the cluster after the node
//! class's delay, with whatever faults the node class injects. KWOK itself, where it runs, keeps the nodes ready and plays
//! their pods; it recognises them by the annotation `kwok.x-k8s.io/node: fake`. Without KWOK the nodes join ready and stay
//! so until a node controller misses their heartbeats.
//!
//! May not live here: any decision about what to buy, and anything a real cloud's provider would not do.
//!
//! # Where instances live
//!
//! Each instance is one ConfigMap in a namespace of its own (`poolwright-kwok` unless set otherwise), named after the
//! launch's key. So instances outlive this program, and creating the ConfigMap is what makes a key work only once: the API
//! server refuses the second one, whoever sends it.
//!
//! | step | what is stored | after a crash right then |
//! |---|---|---|
//! | launch | the ConfigMap, state `Launched`, faults drawn | the node joins when due |
//! | join | the Node, then state `Joined` | the Node is found by its provider id and not made twice |
//! | terminate | state `Terminating`, then the Node goes, then the ConfigMap | the termination goes on |
//!
//! A Node that has lost its instance (a termination overtook its joining) is removed at the next round. A Node of the same
//! name that is not the instance's is never adopted nor touched.
//!
//! # Least privilege
//!
//! | resource | verbs | where |
//! |---|---|---|
//! | `kwoknodeclasses.poolwright.dev` | get | cluster |
//! | `configmaps` | get, list, create, update, delete | the namespace of the instances |
//! | `namespaces` | create | cluster; not needed when the namespace exists |
//! | `nodes` | get, list, create, delete | cluster |

mod api_error;
mod class;
mod cloud;
mod interruptions;
mod node;
mod node_class;
mod provider;
mod record;
mod registration;
mod store;

pub use node_class::{
    Faults, InterruptionFault, KwokNodeClass, KwokNodeClassSpec, KwokNodeClassStatus, LaunchFault,
    OfferingSelector,
};
pub use provider::{KwokProvider, Settings};
pub use registration::REGISTRATION;
