//! Resolves the images (AMIs) that a node class selects.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use aws_sdk_ec2::types::{ArchitectureValues, BlockDeviceMapping, Filter, Image};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use poolwright_catalog::{Arch, InstanceType};
use poolwright_provider_contract::ProviderError;

use super::{tag_filters, unusable};
use crate::clients::Clients;
use crate::error::{code, provider_error};
use crate::node_class::{AmiSelectorTerm, ResolvedImage};

const FIELD: &str = "amiSelectorTerms";

/// An image that a term names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    id: String,
    /// Whether it is for nodes with NVIDIA GPUs; `None` if it is for all nodes.
    nvidia: Option<bool>,
}

/// A public parameter that holds the id of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub name: String,
    pub nvidia: Option<bool>,
}

/// Returns the parameters of an alias, for a cluster of this version of Kubernetes (`1.36`).
///
/// Sources: <https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html>,
/// <https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id-bottlerocket.html>.
pub(crate) fn parameters(alias: &str, kubernetes: &str) -> Option<Vec<Parameter>> {
    let (family, version) = alias.split_once('@')?;
    let mut all = Vec::new();
    for arch in ["x86_64", "arm64"] {
        for nvidia in [false, true] {
            let name = match family {
                "al2023" => {
                    let variant = if nvidia { "nvidia" } else { "standard" };
                    let which = match version {
                        "latest" => "recommended".to_owned(),
                        _ => format!("amazon-eks-node-al2023-{arch}-{variant}-{kubernetes}-{version}"),
                    };
                    format!(
                        "/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/{arch}/{variant}/{which}/image_id"
                    )
                }
                "bottlerocket" => {
                    let variant = if nvidia { "-nvidia" } else { "" };
                    let version = version.trim_start_matches('v');
                    format!(
                        "/aws/service/bottlerocket/aws-k8s-{kubernetes}{variant}/{arch}/{version}/image_id"
                    )
                }
                _ => return None,
            };
            all.push(Parameter { name, nvidia: Some(nvidia) });
        }
    }
    Some(all)
}

/// A selected image.
#[derive(Clone, Debug, PartialEq)]
struct Selected {
    image: ResolvedImage,
    is_deprecated: bool,
}

/// Returns the images that match at least one term, in the order of their use.
pub(super) async fn find(
    clients: &Clients,
    kubernetes: &str,
    class: &str,
    terms: &[AmiSelectorTerm],
    now: Timestamp,
) -> Result<Vec<ResolvedImage>, ProviderError> {
    let mut found: BTreeMap<String, Selected> = BTreeMap::new();
    for (index, term) in terms.iter().enumerate() {
        let field = format!("{FIELD}[{index}]");
        if let Some(named) = named(clients, kubernetes, class, &field, term).await? {
            let ids = Filter::builder()
                .name("image-id")
                .set_values(Some(named.iter().map(|one| one.id.clone()).collect()));
            for image in describe(clients, vec![ids.build()], None).await? {
                let nvidia = named
                    .iter()
                    .find(|one| Some(one.id.as_str()) == image.image_id())
                    .and_then(|one| one.nvidia);
                found.extend(resolved(&image, nvidia, now));
            }
            continue;
        }
        let mut filters = term.tags.as_ref().map(tag_filters).unwrap_or_default();
        if let Some(name) = &term.name {
            filters.push(Filter::builder().name("name").values(name).build());
        }
        for image in describe(clients, filters, term.owner.clone()).await? {
            found.extend(resolved(&image, None, now));
        }
    }
    if found.is_empty() {
        let cause = "no image that can be launched in this region meets a term: correct the ids, names or tags, or their owner";
        return Err(unusable(class, FIELD, cause));
    }
    Ok(in_order(found.into_values().collect()))
}

/// Puts the images in the order of their use: those that are not deprecated first, and the newest first among them.
fn in_order(mut images: Vec<Selected>) -> Vec<ResolvedImage> {
    let key = |of: &Selected| {
        let created = of.image.created.as_ref().map(|time| time.0);
        (of.is_deprecated, Reverse(created), of.image.id.clone())
    };
    images.sort_by_cached_key(key);
    images.into_iter().map(|of| of.image).collect()
}

/// Returns the images that a term names by id, parameter or alias; `None` for a term that selects by owner, name or tags.
async fn named(
    clients: &Clients,
    kubernetes: &str,
    class: &str,
    field: &str,
    term: &AmiSelectorTerm,
) -> Result<Option<Vec<Named>>, ProviderError> {
    let parameters = match (&term.id, &term.ssm_parameter, &term.alias) {
        (Some(id), ..) => return Ok(Some(vec![Named { id: id.clone(), nvidia: None }])),
        (None, Some(name), _) => vec![Parameter { name: name.clone(), nvidia: None }],
        (None, None, Some(alias)) => parameters(alias, kubernetes).ok_or_else(|| {
            unusable(
                class,
                field,
                format!("`{alias}` is not an alias: use al2023@latest or bottlerocket@latest"),
            )
        })?,
        (None, None, None) => return Ok(None),
    };
    let names: Vec<String> = parameters.iter().map(|parameter| parameter.name.clone()).collect();
    let answer = clients.ssm.get_parameters().set_names(Some(names)).send().await;
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) if code(&error) == Some("ValidationException") => {
            return Err(unusable(class, field, "the parameter's name is not valid: correct it"));
        }
        Err(error) => return Err(provider_error("ssm:GetParameters", error)),
    };
    let mut named = Vec::new();
    for parameter in &parameters {
        // A parameter asked for by its ARN comes back by its name.
        let found = answer.parameters().iter().find(|found| {
            found.name() == Some(parameter.name.as_str()) || found.arn() == Some(parameter.name.as_str())
        });
        if let Some(id) = found.and_then(|found| found.value()) {
            named.push(Named { id: id.to_owned(), nvidia: parameter.nvidia });
        }
    }
    if named.is_empty() {
        let cause = match &term.alias {
            Some(alias) => format!(
                "AWS has no image {alias} for Kubernetes {kubernetes} in this region (no parameter {}): use a version that exists, \
                 or select the image by id",
                parameters[0].name
            ),
            None => format!("there is no parameter {} in this region: correct it", parameters[0].name),
        };
        return Err(unusable(class, field, cause));
    }
    Ok(Some(named))
}

async fn describe(
    clients: &Clients,
    filters: Vec<Filter>,
    owner: Option<String>,
) -> Result<Vec<Image>, ProviderError> {
    let mut pages = clients
        .ec2
        .describe_images()
        .set_filters(Some(filters))
        .set_owners(owner.map(|owner| vec![owner]))
        .include_deprecated(true)
        .into_paginator()
        .send();
    let mut images = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| provider_error("ec2:DescribeImages", error))?;
        images.extend(page.images().iter().cloned());
    }
    Ok(images)
}

/// Returns the status entry of an image; `None` for other architectures.
fn resolved(image: &Image, nvidia: Option<bool>, now: Timestamp) -> Option<(String, Selected)> {
    let architecture = match image.architecture()? {
        ArchitectureValues::X8664 => Arch::Amd64,
        ArchitectureValues::Arm64 => Arch::Arm64,
        _ => return None,
    };
    let id = image.image_id()?.to_owned();
    let time = |text: Option<&str>| text.and_then(|text| text.parse::<Timestamp>().ok());
    let created = time(image.creation_date()).map(Time);
    let is_deprecated = time(image.deprecation_time()).is_some_and(|at| at <= now);
    let unencrypted =
        |mapping: &&BlockDeviceMapping| mapping.ebs().is_some_and(|volume| volume.encrypted() != Some(true));
    let volumes = image.block_device_mappings().iter().filter(unencrypted);
    let resolved = ResolvedImage {
        id: id.clone(),
        name: image.name().map(str::to_owned),
        architecture: architecture.as_str().to_owned(),
        created,
        nvidia,
        unencrypted_volumes: volumes.filter_map(|one| one.device_name().map(str::to_owned)).collect(),
    };
    Some((id, Selected { image: resolved, is_deprecated }))
}

/// Returns the image that nodes of this type use: the first of `images` that fits.
pub(crate) fn image_for<'a>(images: &'a [ResolvedImage], kind: &InstanceType) -> Option<&'a ResolvedImage> {
    let has_gpus = kind.gpu.is_some();
    images.iter().find(|image| {
        image.architecture == kind.arch.as_str() && image.nvidia.is_none_or(|nvidia| nvidia == has_gpus)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deprecated_image_is_used_only_if_no_other_fits() {
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().expect("a time");
        let image = |id: &str, created: &str, deprecated: Option<&str>| {
            let image = Image::builder().image_id(id).architecture(ArchitectureValues::X8664);
            let image =
                image.creation_date(created).set_deprecation_time(deprecated.map(str::to_owned)).build();
            resolved(&image, None, now).expect("an image for Linux").1
        };
        let newest = image("ami-3", "2026-05-03T00:00:00.000Z", Some("2026-05-20T00:00:00.000Z"));
        let newer = image("ami-2", "2026-05-02T00:00:00.000Z", Some("2028-05-02T00:00:00.000Z"));
        let old = image("ami-1", "2026-05-01T00:00:00.000Z", None);
        let ids: Vec<String> = in_order(vec![newest, old, newer]).into_iter().map(|image| image.id).collect();
        assert_eq!(ids, ["ami-2", "ami-1", "ami-3"]);
    }

    #[test]
    fn an_alias_names_the_parameters_that_aws_publishes() {
        let names = |alias| -> Vec<String> {
            parameters(alias, "1.36").expect("an alias").into_iter().map(|parameter| parameter.name).collect()
        };
        assert_eq!(
            names("al2023@latest")[1],
            "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/nvidia/recommended/image_id"
        );
        assert_eq!(
            names("al2023@v20260801")[2],
            "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/arm64/standard/\
             amazon-eks-node-al2023-arm64-standard-1.36-v20260801/image_id"
        );
        assert_eq!(
            names("bottlerocket@v1.54.0")[1],
            "/aws/service/bottlerocket/aws-k8s-1.36-nvidia/x86_64/1.54.0/image_id"
        );
        assert_eq!(
            names("bottlerocket@latest")[0],
            "/aws/service/bottlerocket/aws-k8s-1.36/x86_64/latest/image_id"
        );
        assert_eq!(parameters("windows@latest", "1.36"), None);
    }
}
