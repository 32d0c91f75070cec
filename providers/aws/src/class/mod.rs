//! What an EC2NodeClass comes to in the account: subnets, security groups, images, instance profile.

mod groups;
mod images;
mod profile;
mod source;
mod subnets;

use poolwright_api::{
    AmiFamily, EC2NodeClassSpec, GROUP, ResolvedImage, ResolvedSecurityGroup, ResolvedSubnet,
};
use poolwright_provider_contract::{NodeClassKey, ProviderError};

use crate::clients::Clients;

pub(crate) use images::image_for;
pub(crate) use profile::Seen;
pub use source::{Classes, KubeClasses};

/// The kind of node class this provider launches with.
pub(crate) const KIND: &str = "EC2NodeClass";

/// A class and all that it was found to mean.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resolved {
    pub name: String,
    pub spec: EC2NodeClassSpec,
    pub family: AmiFamily,
    /// In the order of their ids. Never empty.
    pub subnets: Vec<ResolvedSubnet>,
    /// In the order of their ids. Never empty.
    pub groups: Vec<ResolvedSecurityGroup>,
    /// Newest first. Never empty.
    pub images: Vec<ResolvedImage>,
    pub profile: String,
}

/// Refuses a key that is not about a node class of ours.
pub(crate) fn check_kind(key: &NodeClassKey) -> Result<(), ProviderError> {
    if key.group == GROUP && key.kind == KIND {
        return Ok(());
    }
    Err(ProviderError::Invalid(format!(
        "{}/{} `{}` is no node class of the aws provider: correct spec.template.spec.nodeClassRef of the pool to group {GROUP}, \
         kind {KIND}",
        key.group, key.kind, key.name
    )))
}

/// What to say of a node class that is not there.
pub(crate) fn missing(name: &str) -> ProviderError {
    ProviderError::Invalid(format!(
        "{KIND} `{name}` does not exist: create it or correct spec.template.spec.nodeClassRef of the pool"
    ))
}

/// A class that cannot be used as it is: which, what of it, why, and what to do.
pub(crate) fn unusable(name: &str, field: &str, cause: impl AsRef<str>) -> ProviderError {
    ProviderError::Invalid(format!("{KIND} `{name}`: spec.{field}: {}", cause.as_ref()))
}

/// Looks everything up.
pub(crate) async fn resolve(
    clients: &Clients,
    kubernetes: &str,
    name: &str,
    spec: &EC2NodeClassSpec,
) -> Result<Resolved, ProviderError> {
    let family = spec.family().ok_or_else(|| {
        unusable(
            name,
            "amiFamily",
            "neither it nor an alias says how nodes of this image join the cluster: set it",
        )
    })?;
    let (subnets, groups, images, profile) = futures::try_join!(
        subnets::find(&clients.ec2, name, &spec.subnet_selector_terms),
        groups::find(&clients.ec2, name, &spec.security_group_selector_terms),
        images::find(clients, kubernetes, name, &spec.ami_selector_terms),
        profile::find(&clients.iam, name, spec),
    )?;
    Ok(Resolved { name: name.to_owned(), spec: spec.clone(), family, subnets, groups, images, profile })
}

/// The parts of what a class means, each for itself.
pub(crate) struct Parts {
    pub subnets: Result<Vec<ResolvedSubnet>, ProviderError>,
    pub groups: Result<Vec<ResolvedSecurityGroup>, ProviderError>,
    pub images: Result<Vec<ResolvedImage>, ProviderError>,
    pub profile: Result<Seen, ProviderError>,
}

/// Looks up each part, and makes nothing.
pub(crate) async fn parts(clients: &Clients, kubernetes: &str, name: &str, spec: &EC2NodeClassSpec) -> Parts {
    let (subnets, groups, images, profile) = futures::join!(
        subnets::find(&clients.ec2, name, &spec.subnet_selector_terms),
        groups::find(&clients.ec2, name, &spec.security_group_selector_terms),
        images::find(clients, kubernetes, name, &spec.ami_selector_terms),
        profile::look(&clients.iam, name, spec),
    );
    Parts { subnets, groups, images, profile }
}

/// The filters of a tag selector: all of these tags, `*` for any value.
pub(crate) fn tag_filters(tags: &poolwright_api::TagSelector) -> Vec<aws_sdk_ec2::types::Filter> {
    let filter = |(key, value): (&String, &String)| {
        let builder = aws_sdk_ec2::types::Filter::builder();
        match value.as_str() {
            "*" => builder.name("tag-key").values(key).build(),
            _ => builder.name(format!("tag:{key}")).values(escaped(value)).build(),
        }
    };
    tags.iter().map(filter).collect()
}

/// A value as itself: in EC2's filters `*` and `?` stand for other characters.
/// Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html>.
fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '*' | '?' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
