//! How a node class chooses among what an AWS account has. Terms of a list are alternatives; what one term says must all hold.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TagSelector, tag_selector_schema};

/// Subnets, by id or by tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.id) != has(self.tags)")
        .message("a term of subnetSelectorTerms has an id or tags, one of the two")
)]
pub struct SubnetSelectorTerm {
    /// The subnet's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^subnet-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// Tags it must have, all of them; `*` is any value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "tag_selector_schema")]
    pub tags: Option<TagSelector>,
}

/// Security groups, by id, by name or by tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("[has(self.id), has(self.name), has(self.tags)].exists_one(x, x)")
        .message("a term of securityGroupSelectorTerms has an id, a name or tags, one of the three")
)]
pub struct SecurityGroupSelectorTerm {
    /// The group's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^sg-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// The group's name, which is not its tag `Name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub name: Option<String>,
    /// Tags it must have, all of them; `*` is any value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "tag_selector_schema")]
    pub tags: Option<TagSelector>,
}

/// How a node joins the cluster, and so what its user data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum AmiFamily {
    /// Amazon Linux 2023 for EKS: nodeadm reads a NodeConfig.
    #[serde(rename = "AL2023")]
    Al2023,
    /// Bottlerocket reads TOML.
    Bottlerocket,
    /// Ubuntu, or another system with cloud-init, where kubeadm joins the cluster.
    Ubuntu,
    /// Anything else: the user data is the user's, with nothing added.
    Custom,
}

/// Images, by alias, id, parameter, name or tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.alias) || has(self.id) || has(self.ssmParameter) || has(self.name) || has(self.tags)")
        .message("a term of amiSelectorTerms has an alias, an id, an ssmParameter, a name or tags"),
    validation = Rule::new(
        "!(has(self.alias) || has(self.id) || has(self.ssmParameter)) || \
         [has(self.alias), has(self.id), has(self.ssmParameter), has(self.name), has(self.tags), has(self.owner)].exists_one(x, x)"
    )
    .message("an alias, an id or an ssmParameter stands alone in its term of amiSelectorTerms: it names an image already"),
    validation = Rule::new("!(has(self.name) || has(self.tags)) || has(self.owner)")
        .message("an image that is chosen by name or tags needs an owner (self, amazon, or an account): anybody can publish images under \
                  any name")
)]
pub struct AmiSelectorTerm {
    /// An image for EKS by its family and version: `al2023@latest`, `al2023@v20260801`, `bottlerocket@v1.54.0`. With `latest` nodes
    /// drift when AWS publishes an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 40))]
    #[x_kube(
        validation = Rule::new(
            "self.matches('^(al2023@(latest|v[0-9]{8})|bottlerocket@(latest|v[0-9]+[.][0-9]+[.][0-9]+))$')"
        )
        .message("an alias is family@version: al2023@latest, al2023@v20260801, bottlerocket@latest or bottlerocket@v1.54.0")
    )]
    pub alias: Option<String>,
    /// The image's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^ami-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// The name of a parameter in AWS Systems Manager that holds the image's id, or its ARN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1011))]
    pub ssm_parameter: Option<String>,
    /// The image's name, which is not its tag `Name`; `*` and `?` stand for any characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub name: Option<String>,
    /// Tags it must have, all of them; `*` is any value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "tag_selector_schema")]
    pub tags: Option<TagSelector>,
    /// Who owns it: an account of twelve digits, `self`, `amazon` or `aws-marketplace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = r"^([0-9]{12}|self|amazon|aws-marketplace)$"))]
    pub owner: Option<String>,
}

/// Whom a capacity reservation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InstanceMatchCriteria {
    /// Every instance that is as it says.
    Open,
    /// Only instances that name it.
    Targeted,
}

/// Capacity reservations, by id, or by tags and whom they take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.id) || has(self.tags) || has(self.instanceMatchCriteria)")
        .message("a term of capacityReservationSelectorTerms has an id, tags or instanceMatchCriteria"),
    validation = Rule::new("!has(self.id) || !(has(self.tags) || has(self.ownerID) || has(self.instanceMatchCriteria))")
        .message("the id of a capacity reservation stands alone in its term: it names one already")
)]
pub struct CapacityReservationSelectorTerm {
    /// The reservation's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^cr-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// Tags it must have, all of them; `*` is any value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "tag_selector_schema")]
    pub tags: Option<TagSelector>,
    /// The account that owns it, of twelve digits. Any that shares it with this account when absent.
    #[serde(default, rename = "ownerID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12), regex(pattern = r"^[0-9]{12}$"))]
    pub owner_id: Option<String>,
    /// Whom it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_match_criteria: Option<InstanceMatchCriteria>,
}
