//! Resolves an EC2NodeClass in the account: subnets, security groups, images, instance profile, placement group,
//! reservations, and the resources that the kubelet reserves.

mod dry_run;
mod images;
pub(crate) mod kubelet;
mod objects;
mod placement;
mod profile;
mod reservations;
mod security_groups;
mod status;
mod subnets;
pub(crate) mod user_data;

use jiff::Timestamp;
use poolwright_provider_aws_model::instance::KubeletReserved;
use poolwright_provider_contract::{NodeClassKind, ProviderError};
use poolwright_terms::{GROUP, NodeClassRef};

use crate::clients::Clients;
use crate::node_class::{
    AmiFamily, EC2NodeClassSpec, ResolvedImage, ResolvedPlacementGroup, ResolvedSecurityGroup, ResolvedSubnet,
};

pub(crate) use dry_run::DryRuns;
pub(crate) use images::image_for;
pub use objects::{KubeNodeClassObjects, NodeClassObjects};
pub(crate) use profile::ProfileState;
pub(crate) use reservations::ResolvedReservation;
pub(crate) use status::nothing_left;

/// The kind of node class of this provider.
pub(crate) const KIND: &str = "EC2NodeClass";
/// The kind with its resource.
pub(crate) const NODE_CLASS: NodeClassKind = NodeClassKind { kind: KIND, plural: "ec2nodeclasses" };

/// A class with its resolved resources.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResolvedNodeClass {
    pub name: String,
    pub spec: EC2NodeClassSpec,
    pub family: AmiFamily,
    /// Sorted by id. Never empty.
    pub subnets: Vec<ResolvedSubnet>,
    /// Sorted by id. Never empty.
    pub groups: Vec<ResolvedSecurityGroup>,
    /// In the order of their use. Never empty.
    pub images: Vec<ResolvedImage>,
    pub profile: String,
    /// The placement group, if the class names one.
    pub placement: Option<ResolvedPlacementGroup>,
    /// Selected capacity reservations, sorted by id.
    pub reservations: Vec<ResolvedReservation>,
    /// The resources that the kubelet reserves.
    pub kept: KubeletReserved,
}

/// Rejects a reference to a node class of another kind.
pub(crate) fn check_kind(key: &NodeClassRef) -> Result<(), ProviderError> {
    if key.group == GROUP && key.kind == KIND {
        return Ok(());
    }
    Err(ProviderError::Invalid(format!(
        "{}/{} `{}` is not a node class of the aws provider: correct spec.template.spec.nodeClassRef of the pool to group {GROUP}, \
         kind {KIND}",
        key.group, key.kind, key.name
    )))
}

/// Makes the error for a class that cannot be used: the class, the field, the cause and the next step.
pub(crate) fn unusable(name: &str, field: &str, cause: impl AsRef<str>) -> ProviderError {
    ProviderError::Invalid(format!("{KIND} `{name}`: spec.{field}: {}", cause.as_ref()))
}

/// A field that makes a class unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrongField {
    /// The path below `spec`.
    pub field: String,
    /// The cause and, after a semicolon, the next step.
    pub cause: String,
}

impl WrongField {
    pub fn new(field: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { field: field.into(), cause: cause.into() }
    }

    /// Makes the error for this class.
    pub fn of(&self, class: &str) -> ProviderError {
        unusable(class, &self.field, &self.cause)
    }
}

/// Returns how nodes of a class join the cluster.
pub(crate) fn family(spec: &EC2NodeClassSpec) -> Result<AmiFamily, WrongField> {
    let cause = "neither it nor an alias says how nodes of this image join the cluster; set it";
    spec.family().ok_or_else(|| WrongField::new("amiFamily", cause))
}

/// Each part of a class, resolved, or the reason why it could not be resolved.
#[derive(Clone, Debug)]
pub(crate) struct Resolution {
    pub family: Result<AmiFamily, ProviderError>,
    pub subnets: Result<Vec<ResolvedSubnet>, ProviderError>,
    pub groups: Result<Vec<ResolvedSecurityGroup>, ProviderError>,
    pub images: Result<Vec<ResolvedImage>, ProviderError>,
    pub profile: Result<String, ProviderError>,
    /// `None` if the class names none.
    pub placement: Option<Result<ResolvedPlacementGroup, ProviderError>>,
    /// Whether the class selects any.
    pub asks_for_reservations: bool,
    pub reservations: Result<Vec<ResolvedReservation>, ProviderError>,
    /// Whether the class has kubelet settings.
    pub sets_kubelet: bool,
    pub kept: Result<KubeletReserved, ProviderError>,
    /// Whether the image family supports the user data and the policy for local disks. `None` if the class has neither.
    pub user_data: Option<Result<(), ProviderError>>,
}

/// Resolves all parts.
pub(crate) async fn resolve(
    clients: &Clients,
    kubernetes: &str,
    name: &str,
    spec: &EC2NodeClassSpec,
    now: Timestamp,
) -> Resolution {
    let family = family(spec).map_err(|wrong| wrong.of(name));
    let (subnets, groups, images, profile, placement, reservations) = futures::join!(
        subnets::find(&clients.ec2, name, &spec.subnet_selector_terms),
        security_groups::find(&clients.ec2, name, &spec.security_group_selector_terms),
        images::find(clients, kubernetes, name, &spec.ami_selector_terms, now),
        profile::find(&clients.iam, name, spec),
        find_placement_group(clients, name, spec),
        reservations::find(&clients.ec2, &spec.capacity_reservation_selector_terms),
    );
    let asks_for_reservations = !spec.capacity_reservation_selector_terms.is_empty();
    Resolution {
        family,
        subnets,
        groups,
        images,
        profile,
        placement,
        asks_for_reservations,
        reservations,
        sets_kubelet: !spec.kubelet.is_empty(),
        kept: kubelet::find(name, spec),
        user_data: user_data::find(name, spec),
    }
}

/// Returns the placement group, if the class names one.
async fn find_placement_group(
    clients: &Clients,
    name: &str,
    spec: &EC2NodeClassSpec,
) -> Option<Result<ResolvedPlacementGroup, ProviderError>> {
    let wanted = spec.placement_group.as_ref()?;
    // Boxed: the SDK's calls are large, and most classes make none.
    Some(Box::pin(placement::find(&clients.ec2, name, wanted)).await)
}

impl Resolution {
    /// Returns the class if all parts are resolved, else the error of the first unresolved part.
    pub fn complete(self, name: &str, spec: &EC2NodeClassSpec) -> Result<ResolvedNodeClass, ProviderError> {
        self.user_data.transpose()?;
        Ok(ResolvedNodeClass {
            name: name.to_owned(),
            spec: spec.clone(),
            family: self.family?,
            subnets: self.subnets?,
            groups: self.groups?,
            images: self.images?,
            profile: self.profile?,
            placement: self.placement.transpose()?,
            reservations: self.reservations?,
            kept: self.kept?,
        })
    }
}

impl From<&ResolvedNodeClass> for Resolution {
    fn from(class: &ResolvedNodeClass) -> Self {
        Self {
            family: Ok(class.family),
            subnets: Ok(class.subnets.clone()),
            groups: Ok(class.groups.clone()),
            images: Ok(class.images.clone()),
            profile: Ok(class.profile.clone()),
            placement: class.placement.clone().map(Ok),
            asks_for_reservations: !class.spec.capacity_reservation_selector_terms.is_empty(),
            reservations: Ok(class.reservations.clone()),
            sets_kubelet: !class.spec.kubelet.is_empty(),
            kept: Ok(class.kept),
            user_data: user_data::find(&class.name, &class.spec),
        }
    }
}

/// Resolves the parts of a class one by one.
pub(crate) struct Inspection {
    pub subnets: Result<Vec<ResolvedSubnet>, ProviderError>,
    pub groups: Result<Vec<ResolvedSecurityGroup>, ProviderError>,
    pub images: Result<Vec<ResolvedImage>, ProviderError>,
    pub profile: Result<ProfileState, ProviderError>,
    pub placement: Option<Result<ResolvedPlacementGroup, ProviderError>>,
    pub kept: Result<KubeletReserved, ProviderError>,
    pub user_data: Option<Result<(), ProviderError>>,
}

/// Resolves each part without creating anything.
pub(crate) async fn inspect(
    clients: &Clients,
    kubernetes: &str,
    name: &str,
    spec: &EC2NodeClassSpec,
    now: Timestamp,
) -> Inspection {
    let (subnets, groups, images, profile, placement) = futures::join!(
        subnets::find(&clients.ec2, name, &spec.subnet_selector_terms),
        security_groups::find(&clients.ec2, name, &spec.security_group_selector_terms),
        images::find(clients, kubernetes, name, &spec.ami_selector_terms, now),
        profile::look(&clients.iam, name, spec),
        find_placement_group(clients, name, spec),
    );
    let (kept, user_data) = (kubelet::find(name, spec), user_data::find(name, spec));
    Inspection { subnets, groups, images, profile, placement, kept, user_data }
}

/// Returns the filters of a tag selector: all of these tags. EC2 matches the wildcards `*` and `?` in values, and a backslash takes
/// away their meaning. Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html>.
pub(crate) fn tag_filters(tags: &crate::node_class::TagSelector) -> Vec<aws_sdk_ec2::types::Filter> {
    let filter = |(key, value): (&String, &String)| {
        let builder = aws_sdk_ec2::types::Filter::builder();
        match value.as_str() {
            "*" => builder.name("tag-key").values(key).build(),
            _ => builder.name(format!("tag:{key}")).values(value).build(),
        }
    };
    tags.iter().map(filter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_in_values_of_tags_reach_ec2_and_a_lone_asterisk_asks_for_the_key() {
        let tags = [("Name", "*private-?"), ("owner", r"\*me"), ("team", "*")];
        let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let filters = tag_filters(&tags);
        let told: Vec<_> =
            filters.iter().map(|one| (one.name().unwrap_or_default(), one.values()[0].as_str())).collect();
        assert_eq!(told, [("tag:Name", "*private-?"), ("tag:owner", r"\*me"), ("tag-key", "team")]);
    }
}
