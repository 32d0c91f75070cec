//! A node class: the custom resource in which you write how a cloud launches nodes.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::ApiResource;
use poolwright_api::FieldProblem;
use poolwright_terms::{API_VERSION, GROUP, VERSION};
use serde_json::Value;

/// A kind of node class. Its API group and version are [`poolwright_terms::API_VERSION`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeClassKind {
    /// The kind: `MistNodeClass`.
    pub kind: &'static str,
    /// The resource in the paths of the API: `mistnodeclasses`.
    pub plural: &'static str,
}

impl NodeClassKind {
    /// The resource as a client of the API server names it.
    pub fn resource(&self) -> ApiResource {
        ApiResource {
            group: GROUP.to_owned(),
            version: VERSION.to_owned(),
            api_version: API_VERSION.to_owned(),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }
}

/// The node class of one cloud.
#[derive(Clone, Copy, Debug)]
pub struct NodeClass {
    /// Its kind.
    pub kind: NodeClassKind,
    /// Makes its CustomResourceDefinition.
    pub crd: fn() -> CustomResourceDefinition,
    /// Types of the conditions in its status, beside `Ready`.
    pub conditions: &'static [&'static str],
    /// Reads an object of this kind, without asking the cloud. Fields that it does not know are problems.
    pub read: fn(&Value) -> Result<NodeClassFacts, Vec<FieldProblem>>,
}

/// The CustomResourceDefinitions of a cluster with these node classes: those that all clouds share, then one for each class.
pub fn crds(classes: impl IntoIterator<Item = NodeClass>) -> Vec<CustomResourceDefinition> {
    poolwright_api::crds().into_iter().chain(classes.into_iter().map(|class| (class.crd)())).collect()
}

/// What one node class says, as far as it can be known without asking the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeClassFacts {
    /// The provider whose part of a catalogue it sells; `None` where it sells all of it.
    pub provider: Option<String>,
    /// Whether its nodes join the cluster with bootstrap tokens, which the controller then makes.
    pub needs_bootstrap_tokens: bool,
    /// Whether its images bring the NVIDIA device plugin along.
    pub has_device_plugin: bool,
    /// What commands that do not ask the cloud leave unread in it, as a noun: `its images and subnets`.
    pub unread: Option<&'static str>,
}
