//! The clouds that this program knows.
//!
//! The registry lists them. A program that adds or removes clouds, such as a test, calls [`crate::main_with`].

use std::fmt;
use std::sync::OnceLock;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use poolwright_catalog::Catalogue;
use poolwright_provider_contract::{NodeClass, Registration};
use poolwright_provider_registry::{CLOUDS, Supported};

use crate::exit::Failure;

static KNOWN: OnceLock<&'static [Registration]> = OnceLock::new();

/// Returns every cloud. If several match, the first one counts.
pub fn clouds() -> &'static [Registration] {
    KNOWN.get().copied().unwrap_or(CLOUDS)
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

/// Returns whether this is a kind of node class, also if this build does not have its cloud.
pub fn is_node_class(kind: &str) -> bool {
    of_kind(kind).is_some() || left_out().any(|cloud| cloud.node_class == kind)
}

/// The API group of Karpenter.
pub const KARPENTER: &str = "karpenter.sh";

/// Returns whether Karpenter, one of its providers, or a service that runs it defines objects of a group.
pub fn is_karpenters(group: &str) -> bool {
    let mut of_clouds = clouds().iter().filter_map(|cloud| cloud.karpenter);
    group == KARPENTER
        || of_clouds.any(|karpenter| {
            karpenter.group() == group || karpenter.managed().is_some_and(|service| service.group == group)
        })
}

/// Records in the catalogue of a class which other kinds of node class would give its nodes further resources. `own` is the kind of
/// the class; `None` if the class was not read. Kinds of clouds that sell nothing of the catalogue are left out, because their classes
/// cannot launch its types.
pub fn with_other_kinds(catalogue: Catalogue, own: Option<&str>) -> Catalogue {
    let sells =
        |cloud: &&Registration| catalogue.providers().iter().any(|seller| seller.as_str() == cloud.name);
    let kinds: Vec<NodeClass> = clouds().iter().filter(sells).map(|cloud| cloud.node_class).collect();
    poolwright_provider_contract::with_other_kinds(catalogue, own, kinds)
}

/// Returns every CustomResourceDefinition: the common ones, then the node class of each cloud.
pub fn crds() -> Vec<CustomResourceDefinition> {
    poolwright_provider_contract::crds(clouds().iter().map(|cloud| cloud.node_class))
}

/// Returns the clouds that Poolwright supports, but that this build does not have.
pub fn left_out() -> impl Iterator<Item = &'static Supported> {
    poolwright_provider_registry::left_out(clouds())
}

/// An error about a cloud that this build does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotBuilt(&'static Supported);

impl NotBuilt {
    /// Returns the cause.
    pub fn cause(self) -> String {
        format!("this build has no provider for {}", self.0.node_class)
    }

    /// Returns the remedy.
    pub fn next_step(self) -> String {
        format!("use a build with the feature `{}`, such as that of `make build`", self.0.name)
    }
}

impl fmt::Display for NotBuilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.cause(), self.next_step())
    }
}

/// Returns an error about the cloud that is meant, if Poolwright supports it and this build does not have it.
pub fn not_built(is_meant: impl Fn(&Supported) -> bool) -> Option<NotBuilt> {
    left_out().find(|cloud| is_meant(cloud)).map(NotBuilt)
}

/// Returns the kinds of node class of the clouds that this build does not have, each with the remedy.
pub fn not_built_kinds() -> impl Iterator<Item = (&'static str, String)> {
    left_out().map(|cloud| (cloud.node_class, NotBuilt(cloud).next_step()))
}

/// Returns an error about the cloud of a flag that this program does not know.
pub fn not_built_for(usage: &clap::Error) -> Option<NotBuilt> {
    match usage.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if usage.kind() == ErrorKind::UnknownArgument => {
            not_built(|cloud| flag.starts_with(&format!("--{}-", cloud.name)))
        }
        _ => None,
    }
}

/// Refuses variables of a cloud that this build does not have, because they would have no effect.
pub fn refuse_variables(names: impl IntoIterator<Item = String>) -> Result<(), Failure> {
    for name in names {
        let is_meant =
            |cloud: &Supported| name.starts_with(&format!("POOLWRIGHT_{}_", cloud.name.to_uppercase()));
        if let Some(why) = not_built(is_meant) {
            return Err(Failure::bad_input(format!("{name} is set, but {why}, or unset it")));
        }
    }
    Ok(())
}

/// Returns the names of the variables of this process.
pub fn variables() -> impl Iterator<Item = String> {
    std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned())
}
