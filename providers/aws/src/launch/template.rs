//! Launch templates.
//!
//! The name of a template is a hash of its content. An existing template is therefore always up to date, and a change of a node
//! class makes a new one. A running instance does not depend on its template, so the provider deletes templates that were not
//! used for a while.

use std::collections::BTreeSet;

use aws_sdk_ec2::types::{
    CapacityReservationPreference, CapacityReservationTarget, Filter,
    LaunchTemplateBlockDeviceMappingRequest, LaunchTemplateCapacityReservationSpecificationRequest,
    LaunchTemplateEbsBlockDeviceRequest, LaunchTemplateHttpTokensState,
    LaunchTemplateIamInstanceProfileSpecificationRequest, LaunchTemplateInstanceMarketOptionsRequest,
    LaunchTemplateInstanceMetadataEndpointState, LaunchTemplateInstanceMetadataOptionsRequest,
    LaunchTemplateInstanceMetadataProtocolIpv6, LaunchTemplateInstanceNetworkInterfaceSpecificationRequest,
    LaunchTemplatePlacementRequest, LaunchTemplatesMonitoringRequest, MarketType, RequestLaunchTemplateData,
    ResourceType, TagSpecification, VolumeType,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use poolwright_provider_aws_model::bootstrap::UserData;
use poolwright_provider_contract::ProviderError;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::{code, provider_error};
use crate::node_class::{
    BlockDeviceMapping, EbsVolume, MetadataOptions, PlacementGroup, ResolvedImage, Switch,
};
use crate::resolve::ResolvedNodeClass;
use crate::tags;

/// The content of a template. It is never printed, because user data may contain secrets.
#[derive(Clone, PartialEq, Serialize)]
pub(crate) struct Template {
    pub image: String,
    pub profile: String,
    pub groups: Vec<String>,
    pub user_data: String,
    pub disks: Vec<BlockDeviceMapping>,
    /// The device names of the image's unencrypted volumes, which the template encrypts.
    pub encrypt: Vec<String>,
    pub metadata: MetadataOptions,
    pub public_address: bool,
    /// The number of EFA interfaces, one on each network card.
    pub efa: u32,
    pub placement: Option<PlacementGroup>,
    pub detailed_monitoring: bool,
    /// The capacity reservation to launch into.
    pub reservation: Option<TargetReservation>,
}

/// A capacity reservation to launch into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TargetReservation {
    /// The id.
    pub id: String,
    /// Whether it is a capacity block.
    pub block: bool,
}

impl Template {
    /// Returns the template of a class with this image, without EFA interfaces and without a reservation.
    pub fn of(class: &ResolvedNodeClass, image: &ResolvedImage, user_data: &UserData) -> Self {
        let spec = &class.spec;
        Self {
            image: image.id.clone(),
            profile: class.profile.clone(),
            groups: class.groups.iter().map(|group| group.id.clone()).collect(),
            user_data: user_data.as_str().to_owned(),
            disks: spec.block_device_mappings.clone(),
            encrypt: to_encrypt(&image.unencrypted_volumes, &spec.block_device_mappings),
            metadata: spec.metadata_options.clone(),
            public_address: spec.associate_public_ip_address,
            efa: 0,
            placement: spec.placement_group.clone(),
            detailed_monitoring: spec.detailed_monitoring,
            reservation: None,
        }
    }

    /// Returns the name: `poolwright-` and a hash of 32 hexadecimal digits. The hash covers the name of the cluster, so that two
    /// clusters of an account never share a template that one of them may delete.
    pub fn name(&self, cluster: &str) -> Result<String, ProviderError> {
        let content = serde_json::to_vec(&(cluster, self)).map_err(|error| {
            ProviderError::Invalid(format!("the launch template cannot be written: {error}"))
        })?;
        let digest = Sha256::digest(content);
        let digits = u128::from_be_bytes(digest[..16].try_into().unwrap_or_default());
        Ok(format!("poolwright-{digits:032x}"))
    }

    fn data(&self) -> RequestLaunchTemplateData {
        let mut data = RequestLaunchTemplateData::builder()
            .image_id(&self.image)
            .iam_instance_profile(
                LaunchTemplateIamInstanceProfileSpecificationRequest::builder().name(&self.profile).build(),
            )
            .user_data(STANDARD.encode(&self.user_data))
            .set_network_interfaces(Some(self.interfaces()))
            .set_block_device_mappings(Some(
                self.disks.iter().map(disk).chain(self.encrypt.iter().map(encrypted)).collect(),
            ))
            .metadata_options(metadata(&self.metadata))
            .monitoring(LaunchTemplatesMonitoringRequest::builder().enabled(self.detailed_monitoring).build())
            .capacity_reservation_specification(self.reserved());
        if self.reservation.as_ref().is_some_and(|held| held.block) {
            // Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-launch.html>.
            data = data.instance_market_options(
                LaunchTemplateInstanceMarketOptionsRequest::builder()
                    .market_type(MarketType::CapacityBlock)
                    .build(),
            );
        }
        if let Some(group) = &self.placement {
            data = data.placement(
                LaunchTemplatePlacementRequest::builder()
                    .set_group_name(group.name.clone())
                    .set_group_id(group.id.clone())
                    .set_partition_number(group.partition)
                    .build(),
            );
        }
        data.build()
    }

    fn reserved(&self) -> LaunchTemplateCapacityReservationSpecificationRequest {
        let builder = LaunchTemplateCapacityReservationSpecificationRequest::builder();
        match &self.reservation {
            Some(held) => builder
                .capacity_reservation_target(
                    CapacityReservationTarget::builder().capacity_reservation_id(&held.id).build(),
                )
                .build(),
            // On-demand instances must not use up an open reservation that somebody else needs.
            None => builder.capacity_reservation_preference(CapacityReservationPreference::None).build(),
        }
    }

    /// Returns the network interfaces. The first one is always explicit, so that the subnet's default never gives a node a public
    /// address. Each further card gets an EFA-only interface, which carries no IP traffic. Source:
    /// <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html>.
    fn interfaces(&self) -> Vec<LaunchTemplateInstanceNetworkInterfaceSpecificationRequest> {
        let groups = Some(self.groups.clone());
        let interface = LaunchTemplateInstanceNetworkInterfaceSpecificationRequest::builder;
        let mut first = interface()
            .device_index(0)
            .network_card_index(0)
            .set_groups(groups.clone())
            .delete_on_termination(true);
        if self.efa > 0 {
            first = first.interface_type("efa");
        }
        // EC2 accepts this field only for a single interface, and assigns no public address otherwise.
        if self.efa <= 1 {
            first = first.associate_public_ip_address(self.public_address);
        }
        let others = (1..self.efa).map(|card| {
            interface()
                .device_index(1)
                .network_card_index(i32::try_from(card).unwrap_or(i32::MAX))
                .interface_type("efa-only")
                .set_groups(groups.clone())
                .delete_on_termination(true)
                .build()
        });
        std::iter::once(first.build()).chain(others).collect()
    }
}

/// Returns a disk of a node class as EC2 gets it.
pub(crate) fn disk(mapping: &BlockDeviceMapping) -> LaunchTemplateBlockDeviceMappingRequest {
    let volume = &mapping.ebs;
    LaunchTemplateBlockDeviceMappingRequest::builder()
        .device_name(&mapping.device_name)
        .ebs(
            LaunchTemplateEbsBlockDeviceRequest::builder()
                .set_volume_size(volume.volume_size.as_deref().and_then(gibibytes))
                .volume_type(volume_type(volume))
                .set_iops(volume.iops)
                .set_throughput(volume.throughput)
                .set_encrypted(volume.encryption())
                .set_kms_key_id(volume.kms_key_id.clone())
                .set_snapshot_id(volume.snapshot_id.clone())
                .delete_on_termination(volume.delete_on_termination)
                .build(),
        )
        .build()
}

/// Returns the unencrypted volumes of the image that the node class does not mention.
fn to_encrypt(of_image: &[String], mappings: &[BlockDeviceMapping]) -> Vec<String> {
    let is_said = |device: &String| mappings.iter().any(|mapping| mapping.device_name == *device);
    of_image.iter().filter(|device| !is_said(device)).cloned().collect()
}

/// Encrypts a volume of the image and changes nothing else. Source:
/// <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/AMIEncryption.html> (launch-time encryption of unencrypted snapshots).
fn encrypted(device: &String) -> LaunchTemplateBlockDeviceMappingRequest {
    LaunchTemplateBlockDeviceMappingRequest::builder()
        .device_name(device)
        .ebs(LaunchTemplateEbsBlockDeviceRequest::builder().encrypted(true).build())
        .build()
}

fn volume_type(volume: &EbsVolume) -> VolumeType {
    match volume.volume_type {
        crate::node_class::VolumeType::Gp3 => VolumeType::Gp3,
        crate::node_class::VolumeType::Gp2 => VolumeType::Gp2,
        crate::node_class::VolumeType::Io1 => VolumeType::Io1,
        crate::node_class::VolumeType::Io2 => VolumeType::Io2,
        crate::node_class::VolumeType::St1 => VolumeType::St1,
        crate::node_class::VolumeType::Sc1 => VolumeType::Sc1,
        crate::node_class::VolumeType::Standard => VolumeType::Standard,
    }
}

/// Parses a size and rounds it up to GiB. It accepts what the CRD accepts: digits followed by Gi, G, Ti or T.
pub(crate) fn gibibytes(size: &str) -> Option<i32> {
    let digits = size.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().ok()?;
    let bytes = match &size[digits.len()..] {
        "Gi" => number << 30,
        "Ti" => number << 40,
        "G" => number * 1_000_000_000,
        "T" => number * 1_000_000_000_000,
        _ => return None,
    };
    i32::try_from(bytes.div_ceil(1 << 30)).ok()
}

fn metadata(options: &MetadataOptions) -> LaunchTemplateInstanceMetadataOptionsRequest {
    let endpoint = match options.endpoint {
        Switch::Enabled => LaunchTemplateInstanceMetadataEndpointState::Enabled,
        Switch::Disabled => LaunchTemplateInstanceMetadataEndpointState::Disabled,
    };
    let ipv6 = match options.ipv6 {
        Switch::Enabled => LaunchTemplateInstanceMetadataProtocolIpv6::Enabled,
        Switch::Disabled => LaunchTemplateInstanceMetadataProtocolIpv6::Disabled,
    };
    LaunchTemplateInstanceMetadataOptionsRequest::builder()
        // Ignore the field: an object may be older than the rule that forbids `optional`.
        .http_tokens(LaunchTemplateHttpTokensState::Required)
        .http_endpoint(endpoint)
        .http_protocol_ipv6(ipv6)
        .http_put_response_hop_limit(options.hop_limit)
        .build()
}

/// Creates the template unless it exists.
pub(crate) async fn ensure(
    ec2: &aws_sdk_ec2::Client,
    cluster: &str,
    name: &str,
    template: &Template,
) -> Result<(), ProviderError> {
    let tags = tags::Tags::from([
        (tags::CLUSTER.to_owned(), cluster.to_owned()),
        (tags::of_kubernetes(cluster), "owned".to_owned()),
    ]);
    let made = ec2
        .create_launch_template()
        .launch_template_name(name)
        .launch_template_data(template.data())
        .tag_specifications(
            TagSpecification::builder()
                .resource_type(ResourceType::LaunchTemplate)
                .set_tags(Some(tags::write(&tags)))
                .build(),
        )
        .send()
        .await;
    match made {
        Ok(_) => {
            tracing::debug!(template = name, image = template.image, "launch template made");
            Ok(())
        }
        Err(error) if code(&error) == Some("InvalidLaunchTemplateName.AlreadyExistsException") => Ok(()),
        Err(error) => Err(provider_error("ec2:CreateLaunchTemplate", error)),
    }
}

/// Deletes the templates of this cluster except those in use.
pub(crate) async fn delete_all_but(
    ec2: &aws_sdk_ec2::Client,
    cluster: &str,
    used: &BTreeSet<String>,
) -> Result<(), ProviderError> {
    for name in list(ec2, cluster).await?.iter().filter(|name| !used.contains(*name)) {
        delete(ec2, name).await?;
        tracing::debug!(template = name, "launch template deleted: it was not used for an hour");
    }
    Ok(())
}

/// Lists the names of this cluster's templates.
async fn list(ec2: &aws_sdk_ec2::Client, cluster: &str) -> Result<Vec<String>, ProviderError> {
    let ours = Filter::builder().name(format!("tag:{}", tags::CLUSTER)).values(cluster).build();
    let mut pages = ec2.describe_launch_templates().filters(ours).into_paginator().send();
    let mut names = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| provider_error("ec2:DescribeLaunchTemplates", error))?;
        names.extend(
            page.launch_templates().iter().filter_map(|one| one.launch_template_name()).map(str::to_owned),
        );
    }
    names.sort();
    Ok(names)
}

/// Deletes a template. It is no error if the template is gone.
async fn delete(ec2: &aws_sdk_ec2::Client, name: &str) -> Result<(), ProviderError> {
    match ec2.delete_launch_template().launch_template_name(name).send().await {
        Ok(_) => Ok(()),
        Err(error) if code(&error) == Some("InvalidLaunchTemplateName.NotFoundException") => Ok(()),
        Err(error) => Err(provider_error("ec2:DeleteLaunchTemplate", error)),
    }
}

#[cfg(test)]
mod tests {
    use poolwright_provider_aws_model::instance::KubeletReserved;
    use serde_json::json;

    use super::*;
    use crate::node_class::AmiFamily;

    fn template() -> Template {
        Template {
            reservation: None,
            image: "ami-1".to_owned(),
            profile: "nodes".to_owned(),
            groups: vec!["sg-1".to_owned()],
            user_data: "secret".to_owned(),
            disks: Vec::new(),
            encrypt: Vec::new(),
            metadata: MetadataOptions::default(),
            public_address: false,
            efa: 0,
            placement: None,
            detailed_monitoring: false,
        }
    }

    #[test]
    fn a_template_is_named_after_all_that_is_in_it_and_the_cluster() {
        let name = |template: &Template, cluster| template.name(cluster).expect("a name");
        let one = template();
        assert_eq!(name(&one, "blue"), name(&template(), "blue"));
        assert_ne!(name(&one, "blue"), name(&one, "green"));
        assert_ne!(
            name(&one, "blue"),
            name(&Template { user_data: "other".to_owned(), ..template() }, "blue")
        );
        assert_ne!(name(&one, "blue"), name(&Template { efa: 1, ..template() }, "blue"));
        assert!(!name(&one, "blue").contains("secret"));
    }

    #[test]
    fn a_node_asks_for_no_public_address_and_for_a_session_token() {
        let data = template().data();
        let first = &data.network_interfaces.as_ref().expect("interfaces")[0];
        assert_eq!(first.associate_public_ip_address, Some(false));
        let reservations =
            data.capacity_reservation_specification.as_ref().expect("a word about reservations");
        assert_eq!(reservations.capacity_reservation_preference, Some(CapacityReservationPreference::None));
        assert_eq!(
            data.metadata_options.expect("options").http_tokens,
            Some(LaunchTemplateHttpTokensState::Required)
        );
    }

    #[test]
    fn a_node_has_the_address_the_profile_the_metadata_service_and_the_monitoring_of_its_class() {
        let of = |fields: serde_json::Value| {
            let mut spec = json!({"instanceProfile": "nodes", "amiSelectorTerms": [{"id": "ami-1"}],
                "amiFamily": "Custom", "subnetSelectorTerms": [], "securityGroupSelectorTerms": []});
            spec.as_object_mut().expect("a map").extend(fields.as_object().expect("a map").clone());
            let class = ResolvedNodeClass {
                name: "gpu".to_owned(),
                spec: serde_json::from_value(spec).expect("a class"),
                family: AmiFamily::Custom,
                subnets: Vec::new(),
                groups: Vec::new(),
                images: Vec::new(),
                profile: "nodes".to_owned(),
                placement: None,
                reservations: Vec::new(),
                kept: KubeletReserved::default(),
            };
            let image: ResolvedImage =
                serde_json::from_value(json!({"id": "ami-1", "architecture": "amd64"})).expect("an image");
            let data = Template::of(&class, &image, &UserData::from("own".to_owned())).data();
            let interfaces = data.network_interfaces.expect("interfaces");
            let options = data.metadata_options.expect("options");
            (
                interfaces[0].associate_public_ip_address,
                data.iam_instance_profile.expect("a profile").name,
                (options.http_endpoint, options.http_protocol_ipv6, options.http_put_response_hop_limit),
                data.monitoring.expect("a word about monitoring").enabled,
            )
        };
        let (enabled, disabled) = (
            LaunchTemplateInstanceMetadataEndpointState::Enabled,
            LaunchTemplateInstanceMetadataEndpointState::Disabled,
        );
        let (ipv6, no_ipv6) = (
            LaunchTemplateInstanceMetadataProtocolIpv6::Enabled,
            LaunchTemplateInstanceMetadataProtocolIpv6::Disabled,
        );
        let profile = || Some("nodes".to_owned());
        let usual = of(json!({}));
        assert_eq!(usual, (Some(false), profile(), (Some(enabled), Some(no_ipv6), Some(1)), Some(false)));
        let other = of(json!({
            "associatePublicIPAddress": true, "detailedMonitoring": true,
            "metadataOptions": {"httpEndpoint": "disabled", "httpProtocolIPv6": "enabled", "httpPutResponseHopLimit": 2},
        }));
        assert_eq!(other, (Some(true), profile(), (Some(disabled), Some(ipv6), Some(2)), Some(true)));
    }

    #[test]
    fn volumes_are_encrypted_those_of_the_image_too_unless_the_class_says_otherwise() {
        let of_class = |device: &str, encrypted| BlockDeviceMapping {
            device_name: device.to_owned(),
            root_volume: false,
            ebs: EbsVolume { volume_size: Some("50Gi".to_owned()), encrypted, ..EbsVolume::default() },
        };
        let disks = vec![of_class("/dev/xvdb", None), of_class("/dev/xvdc", Some(false))];
        let of_image = ["/dev/xvda", "/dev/xvdb", "/dev/xvdc"].map(str::to_owned);
        let encrypt = to_encrypt(&of_image, &disks);
        let data = Template { disks, encrypt, ..template() }.data();
        let told = data.block_device_mappings.expect("disks");
        let told: Vec<_> = told
            .iter()
            .map(|one| {
                let volume = one.ebs().expect("a volume");
                (one.device_name().expect("a name"), volume.encrypted(), volume.volume_size())
            })
            .collect();
        let wanted = [
            ("/dev/xvdb", Some(true), Some(50)),
            ("/dev/xvdc", Some(false), Some(50)),
            ("/dev/xvda", Some(true), None),
        ];
        assert_eq!(told, wanted);
    }

    #[test]
    fn fabric_adapters_are_one_on_each_card() {
        let data = Template { efa: 4, ..template() }.data();
        let interfaces = data.network_interfaces.expect("interfaces");
        let kinds: Vec<_> = interfaces
            .iter()
            .map(|one| (one.network_card_index, one.device_index, one.interface_type.as_deref()))
            .collect();
        let only = Some("efa-only");
        let wanted = [
            (Some(0), Some(0), Some("efa")),
            (Some(1), Some(1), only),
            (Some(2), Some(1), only),
            (Some(3), Some(1), only),
        ];
        assert_eq!(kinds, wanted);
        assert_eq!(interfaces[0].associate_public_ip_address, None);
    }

    #[test]
    fn sizes_are_counted_in_gib_and_rounded_up() {
        let sizes = ["100Gi", "1Ti", "100G", "1T", "100", "Gi", ""].map(gibibytes);
        assert_eq!(sizes, [Some(100), Some(1024), Some(94), Some(932), None, None, None]);
    }
}
