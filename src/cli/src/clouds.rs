//! The clouds that this program knows.
//!
//! The registry lists them. A program that adds one of its own, as a test does, calls [`crate::main_with`].

use std::sync::OnceLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use poolwright_provider_contract::Registration;
use poolwright_provider_registry::CLOUDS;

static KNOWN: OnceLock<&'static [Registration]> = OnceLock::new();

/// Every cloud. Where several could be meant, the first that fits is.
pub fn clouds() -> &'static [Registration] {
    KNOWN.get().copied().unwrap_or(&CLOUDS)
}

/// Makes these the clouds that this program knows. Only the first call counts.
pub(crate) fn know(clouds: &'static [Registration]) {
    let _ = KNOWN.set(clouds);
}

/// The cloud of this name.
pub fn find(name: &str) -> Option<&'static Registration> {
    clouds().iter().find(|cloud| cloud.name == name)
}

/// The cloud that launches with this kind of node class.
pub fn of_kind(kind: &str) -> Option<&'static Registration> {
    clouds().iter().find(|cloud| cloud.node_class.kind.kind == kind)
}

/// Every CustomResourceDefinition: those that all clouds share, and the node class of each.
pub fn crds() -> Vec<CustomResourceDefinition> {
    poolwright_provider_contract::crds(clouds().iter().map(|cloud| cloud.node_class))
}
