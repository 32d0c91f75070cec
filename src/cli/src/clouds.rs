//! The clouds that this program knows.
//!
//! The registry lists them. A program that adds a cloud of its own, such as a test, calls [`crate::main_with`].

use std::sync::OnceLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use poolwright_provider_contract::Registration;
use poolwright_provider_registry::CLOUDS;

static KNOWN: OnceLock<&'static [Registration]> = OnceLock::new();

/// Returns every cloud. If several match, the first one counts.
pub fn clouds() -> &'static [Registration] {
    KNOWN.get().copied().unwrap_or(&CLOUDS)
}

/// Sets the clouds that this program knows. Only the first call has an effect.
pub(crate) fn know(clouds: &'static [Registration]) {
    let _ = KNOWN.set(clouds);
}

/// Returns the cloud with this name.
pub fn find(name: &str) -> Option<&'static Registration> {
    clouds().iter().find(|cloud| cloud.name == name)
}

/// Returns the cloud that launches with this kind of node class.
pub fn of_kind(kind: &str) -> Option<&'static Registration> {
    clouds().iter().find(|cloud| cloud.node_class.kind.kind == kind)
}

/// Returns every CustomResourceDefinition: the common ones, then the node class of each cloud.
pub fn crds() -> Vec<CustomResourceDefinition> {
    poolwright_provider_contract::crds(clouds().iter().map(|cloud| cloud.node_class))
}
