//! Selectors for AWS resources. A resource is selected if it matches at least one term of a list; it matches a term if it matches
//! all fields of the term.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TagSelector, tag_selector_schema};

/// Selects subnets by id or by tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.id) != has(self.tags)")
        .message("a term of subnetSelectorTerms must have either an id or tags")
)]
pub struct SubnetSelectorTerm {
    /// The id of the subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^subnet-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// Tags that the subnet must have, all of them. In values, `*` matches any text and `?` one character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "tag_selector_schema")]
    pub tags: Option<TagSelector>,
}

/// Selects security groups by id, by name or by tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("[has(self.id), has(self.name), has(self.tags)].exists_one(x, x)")
        .message("a term of securityGroupSelectorTerms must have exactly one of id, name and tags")
)]
pub struct SecurityGroupSelectorTerm {
    /// The id of the security group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^sg-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// The name of the security group. This is not the tag `Name`. The wildcards `*` and `?` are allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub name: Option<String>,
    /// Tags that the security group must have, all of them. In values, `*` matches any text and `?` one character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "tag_selector_schema")]
    pub tags: Option<TagSelector>,
}

/// How nodes join the cluster, which determines the format of the user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum AmiFamily {
    /// Amazon Linux 2023 for EKS. Its user data is a NodeConfig for nodeadm.
    #[serde(rename = "AL2023")]
    Al2023,
    /// Bottlerocket. Its user data is TOML.
    Bottlerocket,
    /// Ubuntu, or another system with cloud-init. kubeadm joins the nodes.
    Ubuntu,
    /// Any other image. Nodes get your user data unchanged.
    Custom,
}

/// Selects images by alias, id, SSM parameter, name or tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.alias) || has(self.id) || has(self.ssmParameter) || has(self.name) || has(self.tags)")
        .message("a term of amiSelectorTerms must have an alias, an id, an ssmParameter, a name or tags"),
    validation = Rule::new(
        "!(has(self.alias) || has(self.id) || has(self.ssmParameter)) || \
         [has(self.alias), has(self.id), has(self.ssmParameter), has(self.name), has(self.tags), has(self.owner)].exists_one(x, x)"
    )
    .message("a term of amiSelectorTerms with an alias, an id or an ssmParameter must have no other field: remove the others"),
    validation = Rule::new("!(has(self.name) || has(self.tags)) || has(self.owner)")
        .message("a term of amiSelectorTerms with a name or tags needs an owner (self, amazon, or an account id), because anybody can \
                  publish images under any name")
)]
pub struct AmiSelectorTerm {
    /// An image for EKS, as family and version: `al2023@latest`, `al2023@v20260801`, `bottlerocket@v1.54.0`. With `latest`, new
    /// nodes get the newest image, and running nodes keep theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 40))]
    #[x_kube(
        validation = Rule::new(
            "self.matches('^(al2023@(latest|v[0-9]{8})|bottlerocket@(latest|v[0-9]+[.][0-9]+[.][0-9]+))$')"
        )
        .message("an alias has the form family@version: al2023@latest, al2023@v20260801, bottlerocket@latest or bottlerocket@v1.54.0")
    )]
    pub alias: Option<String>,
    /// The id of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^ami-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// The name or ARN of an AWS Systems Manager parameter that contains the id of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1011))]
    pub ssm_parameter: Option<String>,
    /// The name of the image. This is not the tag `Name`. The wildcards `*` and `?` are allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub name: Option<String>,
    /// Tags that the image must have, all of them. In values, `*` matches any text and `?` one character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "tag_selector_schema")]
    pub tags: Option<TagSelector>,
    /// The owner of the image: a twelve-digit account id, `self`, `amazon` or `aws-marketplace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = r"^([0-9]{12}|self|amazon|aws-marketplace)$"))]
    pub owner: Option<String>,
}

/// Which instances may use a capacity reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InstanceMatchCriteria {
    /// All instances with matching attributes.
    Open,
    /// Only instances that name the reservation.
    Targeted,
}

/// Selects capacity reservations by id, or by tags, owner and instance match criteria.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.id) || has(self.tags) || has(self.instanceMatchCriteria)")
        .message("a term of capacityReservationSelectorTerms must have an id, tags or instanceMatchCriteria"),
    validation = Rule::new("!has(self.id) || !(has(self.tags) || has(self.ownerID) || has(self.instanceMatchCriteria))")
        .message("a term of capacityReservationSelectorTerms with an id must have no other field: remove the others")
)]
pub struct CapacityReservationSelectorTerm {
    /// The id of the reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^cr-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// Tags that the reservation must have, all of them. In values, `*` matches any text and `?` one character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "tag_selector_schema")]
    pub tags: Option<TagSelector>,
    /// The twelve-digit account id of the owner. The default is any account that shares the reservation with this one.
    #[serde(default, rename = "ownerID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12), regex(pattern = r"^[0-9]{12}$"))]
    pub owner_id: Option<String>,
    /// Which instances may use the reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_match_criteria: Option<InstanceMatchCriteria>,
}
