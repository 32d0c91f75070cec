//! Node classes: the custom resources that describe how a cloud launches nodes.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::ApiResource;
use poolwright_api::FieldProblem;
use poolwright_catalog::{Catalogue, InstanceType, InstanceTypeName};
use poolwright_terms::{API_VERSION, GROUP, VERSION};
use serde_json::Value;

use crate::provider::ProviderError;

/// A kind of node class. [`poolwright_terms::API_VERSION`] is its API group and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeClassKind {
    /// The kind: `MistNodeClass`.
    pub kind: &'static str,
    /// The plural name of the resource: `mistnodeclasses`.
    pub plural: &'static str,
}

impl NodeClassKind {
    /// Returns the resource for a dynamic client of the API server.
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
    /// The kind.
    pub kind: NodeClassKind,
    /// Builds the CustomResourceDefinition.
    pub crd: fn() -> CustomResourceDefinition,
    /// The patterns of texts in the definition that no other definition has, each with what it allows, in words. See
    /// [`poolwright_api::PATTERNS`].
    pub patterns: &'static [(&'static str, &'static str)],
    /// The types of the conditions in the status, without `Ready`.
    pub conditions: &'static [&'static str],
    /// Reads an object of this kind without calling the cloud. Unknown fields are problems.
    pub read: fn(&Value) -> Result<NodeClassFacts, Vec<FieldProblem>>,
    /// Returns what a class sells of a catalogue without calling the cloud. `read` accepts the object. [`sells_all`] is right for a
    /// cloud whose classes change nothing about nodes.
    pub sells: fn(&Value, &Catalogue) -> ClassOffers,
    /// Returns why a class of the usual settings does not sell a type of the catalogue, and how to allow it; `None` if it does. A plan
    /// without a class asks this. [`leaves_out_nothing`] is right for a cloud whose classes sell every type.
    pub leaves_out: fn(&InstanceType) -> Option<String>,
    /// The resources that settings of this kind give nodes, or give them more of, each with the setting in words. Advice to users of
    /// other kinds names them.
    pub adds: &'static [(&'static str, &'static str)],
}

/// Records in the catalogue of a class which other kinds of node class would give its nodes further resources. `own` is the kind of
/// the class; `None` if the class was not read, so that it may be of any of these kinds.
pub fn with_other_kinds(
    catalogue: Catalogue,
    own: Option<&str>,
    kinds: impl IntoIterator<Item = NodeClass>,
) -> Catalogue {
    let others = kinds.into_iter().filter(|class| own != Some(class.kind.kind));
    others.fold(catalogue, |catalogue, class| {
        let kind = class.kind.kind;
        let article = if kind.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
        class.adds.iter().fold(catalogue, |catalogue, (resource, setting)| {
            catalogue.with_addable_elsewhere(resource, format!("{article} {kind} with {setting}"))
        })
    })
}

/// What a class sells of a catalogue, as far as it is known without calling the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassOffers {
    /// The offerings, with the allocatable resources of nodes of this class; or why it sells nothing, with the object and the next
    /// step.
    pub catalogue: Result<Catalogue, String>,
    /// What the user must know about the offerings, such as parts of the class that only the cloud knows. The caller adds the name
    /// of the class.
    pub notes: Vec<String>,
    /// The types of the catalogue that the class does not sell by default, each with the reason and how to allow it.
    pub left_out: BTreeMap<InstanceTypeName, String>,
}

/// Sells the whole catalogue as it is, unless the status of the class says that it is not ready.
pub fn sells_all(object: &Value, catalogue: &Catalogue) -> ClassOffers {
    let catalogue = not_ready(object).map_or_else(|| Ok(catalogue.clone()), Err);
    ClassOffers { catalogue, notes: Vec::new(), left_out: BTreeMap::new() }
}

/// Says that a class of the usual settings sells every type.
pub fn leaves_out_nothing(_kind: &InstanceType) -> Option<String> {
    None
}

/// Returns why a class is not ready, if its status says so of the spec that it has now.
fn not_ready(object: &Value) -> Option<String> {
    let (meta, status) = (&object["metadata"], &object["status"]);
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let ready = conditions.find(|one| one["type"] == "Ready" && one["status"] == "False")?;
    let observed = ready["observedGeneration"].as_i64().or_else(|| status["observedGeneration"].as_i64());
    if let (Some(observed), Some(generation)) = (observed, meta["generation"].as_i64())
        && observed != generation
    {
        return None;
    }
    let (kind, name) = (object["kind"].as_str()?, meta["name"].as_str()?);
    let text = |field: &str| ready[field].as_str().filter(|text| !text.is_empty());
    let why = text("message").or_else(|| text("reason")).unwrap_or("its status does not say why");
    Some(format!("{kind} `{name}` is not ready: {why}"))
}

/// Returns the CustomResourceDefinitions of a cluster: the common ones, then one for each node class.
pub fn crds(classes: impl IntoIterator<Item = NodeClass>) -> Vec<CustomResourceDefinition> {
    poolwright_api::crds().into_iter().chain(classes.into_iter().map(|class| (class.crd)())).collect()
}

/// The properties of one node class that Poolwright knows without calling the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeClassFacts {
    /// The provider whose offerings in a catalogue the class sells; `None` if it sells all offerings.
    pub provider: Option<String>,
    /// Whether its nodes join with bootstrap tokens. The controller makes these tokens.
    pub needs_bootstrap_tokens: bool,
    /// Whether its images contain the NVIDIA device plugin.
    pub has_device_plugin: bool,
}

/// Makes the error for a node class that does not exist. `existing` are the names of the classes of this kind; `None` if they are
/// unknown.
pub fn missing_class(kind: &str, name: &str, existing: Option<&[String]>) -> ProviderError {
    let there = match existing {
        None => String::new(),
        Some([]) => format!("; there is no {kind} yet"),
        Some(all) => {
            let shown = all.iter().take(NAMED).map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
            let more = all.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("; these exist: {shown}{more}")
        }
    };
    ProviderError::Invalid(format!(
        "{kind} `{name}` does not exist: create it or correct spec.template.spec.nodeClassRef of the pool{there}"
    ))
}

/// The most existing classes that are named.
const NAMED: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_other_kinds_are_named_as_those_that_add_a_resource() {
        let class = NodeClass {
            kind: NodeClassKind { kind: "MistNodeClass", plural: "mistnodeclasses" },
            crd: || unreachable!("no definition is asked for"),
            patterns: &[],
            conditions: &[],
            read: |_| Ok(NodeClassFacts::default()),
            sells: sells_all,
            leaves_out: leaves_out_nothing,
            adds: &[("fast.io/net", "`spec.net: Auto`")],
        };
        let told = |own: Option<&str>| {
            let catalogue = with_other_kinds(poolwright_catalog::builtin(), own, [class]);
            catalogue.addable_elsewhere("fast.io/net").map(str::to_owned)
        };
        assert_eq!(told(Some("MistNodeClass")), None);
        let by = Some("a MistNodeClass with `spec.net: Auto`".to_owned());
        assert_eq!((told(Some("RainNodeClass")), told(None)), (by.clone(), by));
    }

    #[test]
    fn a_missing_class_is_told_with_those_that_exist() {
        let told = |existing: Option<&[String]>| missing_class("MistNodeClass", "gpu", existing).to_string();
        assert!(told(None).ends_with("nodeClassRef of the pool"), "{}", told(None));
        assert!(told(Some(&[])).ends_with("; there is no MistNodeClass yet"), "{}", told(Some(&[])));
        let all: Vec<String> = (0..7).map(|number| format!("c{number}")).collect();
        assert!(told(Some(&all)).ends_with("; these exist: `c0`, `c1`, `c2`, `c3`, `c4` and 2 more"));
    }
}
