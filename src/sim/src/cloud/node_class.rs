//! The node class of the simulated cloud. Every node class sells all offerings of the cloud.

use kube::{CustomResource, CustomResourceExt, KubeSchema};
use poolwright_api::strict;
use poolwright_provider_contract::{NodeClass, NodeClassFacts, NodeClassKind, leaves_out_nothing, sells_all};
use serde::{Deserialize, Serialize};

/// Launches nodes in a simulated cloud.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, KubeSchema)]
#[kube(group = "poolwright.dev", version = "v1alpha1", kind = "SimNodeClass", plural = "simnodeclasses")]
pub struct SimNodeClassSpec {}

/// The default kind of node class of a world.
pub const NODE_CLASS_KIND: &str = "SimNodeClass";

/// The registration of SimNodeClass.
pub const SIM_NODE_CLASS: NodeClass = NodeClass {
    kind: NodeClassKind { kind: NODE_CLASS_KIND, plural: "simnodeclasses" },
    crd: SimNodeClass::crd,
    patterns: &[],
    conditions: &[],
    read: |object| strict::read::<SimNodeClass>(object).map(|_| NodeClassFacts::default()),
    sells: sells_all,
    leaves_out: leaves_out_nothing,
    adds: &[],
};

/// Returns the kinds of these node classes.
pub fn kinds(classes: &[NodeClass]) -> Vec<NodeClassKind> {
    classes.iter().map(|class| class.kind).collect()
}
