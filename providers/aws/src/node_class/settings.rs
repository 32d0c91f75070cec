//! Further launch settings: metadata service, placement group, EFA and user data.

use std::borrow::Cow;
use std::fmt;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The maximum size of user data before base64 encoding, in bytes
/// (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html>).
const USER_DATA_MAX: usize = 16 * 1024;

/// User data. It may contain secrets, so it is never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserData(String);

impl UserData {
    /// Returns the text.
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

/// Whether a feature is enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Switch {
    /// The feature is enabled.
    Enabled,
    /// The feature is disabled.
    Disabled,
}

/// Whether the metadata service requires a session token. The schema accepts `optional` so that a validation rule can reject it
/// with an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HttpTokens {
    /// A session token is required (IMDSv2).
    Required,
    /// A session token is optional (IMDSv1). Poolwright rejects this value.
    Optional,
}

/// Settings of the instance metadata service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct MetadataOptions {
    /// Whether the metadata service is enabled.
    #[serde(default = "enabled", rename = "httpEndpoint")]
    pub endpoint: Switch,
    /// Whether the metadata service has an IPv6 endpoint.
    #[serde(default = "disabled", rename = "httpProtocolIPv6")]
    pub ipv6: Switch,
    /// The hop limit of responses. With 1, only the node itself and pods on the host network reach the service; other pods need 2.
    #[serde(default = "one", rename = "httpPutResponseHopLimit")]
    #[schemars(range(min = 1, max = 64))]
    pub hop_limit: i32,
    /// Whether the metadata service requires a session token. Only `required` is allowed.
    #[serde(default = "required", rename = "httpTokens")]
    #[x_kube(
        validation = Rule::new("self == 'required'")
            .message("httpTokens must be required: with IMDSv1, a pod that can make the node send an HTTP request can get the node's \
                      credentials; remove the field")
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

/// An existing placement group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.name) != has(self.id)")
        .message("a placementGroup must have either a name or an id")
)]
pub struct PlacementGroup {
    /// The name of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub name: Option<String>,
    /// The id of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^pg-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// The partition, for a group with the strategy `partition`. EC2 chooses one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 7))]
    pub partition: Option<i32>,
}

/// Elastic Fabric Adapters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Efa {
    /// Attaches one to every network card of the instance type that supports it. Instance types without support get none.
    Auto,
    /// Attaches none.
    #[default]
    None,
}
