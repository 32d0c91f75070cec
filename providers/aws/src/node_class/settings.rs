//! What else a launch is told: metadata service, placement, fabric adapters, user data.

use std::borrow::Cow;
use std::fmt;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// EC2 takes at most so many bytes of user data, before they are base64
/// (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html>).
const USER_DATA_MAX: usize = 16 * 1024;

/// What nodes are told at their start. It may hold secrets, so it is never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserData(String);

impl UserData {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for UserData {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for UserData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserData({} bytes)", self.0.len())
    }
}

impl JsonSchema for UserData {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "UserData".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": USER_DATA_MAX })
    }
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Switch {
    /// On.
    Enabled,
    /// Off.
    Disabled,
}

/// Whether the metadata service wants a session token. `optional` can be written and is refused with a sentence, so that whoever
/// brings it along learns why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HttpTokens {
    /// It does: IMDSv2.
    Required,
    /// It answers without, too: IMDSv1. Refused.
    Optional,
}

/// How the instance metadata service answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct MetadataOptions {
    /// Whether it answers at all.
    #[serde(default = "enabled", rename = "httpEndpoint")]
    pub endpoint: Switch,
    /// Whether it answers over IPv6.
    #[serde(default = "disabled", rename = "httpProtocolIPv6")]
    pub ipv6: Switch,
    /// How many hops an answer travels. One is the node itself; pods without the host's network need two.
    #[serde(default = "one", rename = "httpPutResponseHopLimit")]
    #[schemars(range(min = 1, max = 64))]
    pub hop_limit: i32,
    /// Whether it wants a session token. It always does.
    #[serde(default = "required", rename = "httpTokens")]
    #[x_kube(
        validation = Rule::new("self == 'required'")
            .message("httpTokens must be required: without a session token any pod that can make a node ask for a page gets the \
                      credentials of the node (IMDSv1); remove the field")
    )]
    pub tokens: HttpTokens,
}

fn enabled() -> Switch {
    Switch::Enabled
}

fn disabled() -> Switch {
    Switch::Disabled
}

fn one() -> i32 {
    1
}

fn required() -> HttpTokens {
    HttpTokens::Required
}

impl Default for MetadataOptions {
    fn default() -> Self {
        Self { endpoint: enabled(), ipv6: disabled(), hop_limit: one(), tokens: required() }
    }
}

/// A placement group that is there already.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.name) != has(self.id)")
        .message("a placementGroup has a name or an id, one of the two")
)]
pub struct PlacementGroup {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub name: Option<String>,
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^pg-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// The partition, in a group of partitions. EC2 chooses when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 7))]
    pub partition: Option<i32>,
}

/// Elastic Fabric Adapters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Efa {
    /// One on every network card of the instance type that can have one. Types that can have none get none.
    Auto,
    /// None.
    #[default]
    None,
}
