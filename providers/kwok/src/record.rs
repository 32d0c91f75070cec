//! The stored record of an instance, and the ConfigMap that contains it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use poolwright_catalog::{OfferingId, ResourceList};
use poolwright_provider_contract::{FailedOffering, Instance, InstanceState, LaunchError, ProviderError};
use poolwright_terms::{NodeClassRef, Taint};
use serde::{Deserialize, Serialize};

/// The label of the ConfigMaps of instances. Other ConfigMaps in the namespace are ignored.
pub(crate) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "poolwright-kwok");
/// The key in the data of the ConfigMap.
const DATA: &str = "instance";
/// The prefix of all provider ids.
const SCHEME: &str = "kwok://";
/// The longest key. The name of the ConfigMap contains it and has at most 253 characters.
const LONGEST_KEY: usize = 200;
/// The longest name of a claim. It is the name of the node and the value of a label.
const LONGEST_CLAIM: usize = 63;

/// A stored instance. Its node is determined at launch, so later changes of the catalogue or the node class do not affect it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Record {
    pub state: State,
    pub key: String,
    pub claim: String,
    pub node_class: NodeClassRef,
    pub offering: OfferingId,
    pub launched: Timestamp,
    /// The time at which the node joins.
    pub due: Timestamp,
    /// Whether the node never joins. The instance still costs money.
    #[serde(default)]
    pub never_registers: bool,
    /// The interruption of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption: Option<Interrupted>,
    /// The offerings that failed before. A repeated launch returns them too.
    #[serde(default)]
    pub refused: Vec<Refused>,
    pub node: NodePlan,
}

/// An interruption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Interrupted {
    /// The time of the announcement.
    pub noticed: Timestamp,
    /// The time of the termination.
    pub ends: Timestamp,
    /// Whether the message was acknowledged.
    #[serde(default)]
    pub heard: bool,
}

/// The properties of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NodePlan {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    pub capacity: ResourceList,
    pub allocatable: ResourceList,
}

/// The state of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    /// The node has not joined.
    Launched,
    /// The node has joined. If somebody deletes the node, it does not come back, because a kubelet registers only once.
    Joined,
    /// The node is being deleted, and then the instance.
    Terminating,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Refused {
    offering: OfferingId,
    quota: bool,
    message: String,
}

impl Refused {
    /// Makes the record of a failed offering. Errors of whole launches are not stored.
    pub fn new(failed: &FailedOffering) -> Self {
        let (quota, message) = match &failed.error {
            LaunchError::Quota(message) => (true, message.clone()),
            LaunchError::StockOut(message) => (false, message.clone()),
            other => (false, other.to_string()),
        };
        Self { offering: failed.offering.clone(), quota, message }
    }

    fn failed(&self) -> FailedOffering {
        let message = self.message.clone();
        let error = if self.quota { LaunchError::Quota(message) } else { LaunchError::StockOut(message) };
        FailedOffering { offering: self.offering.clone(), error }
    }
}

/// Returns the name of the ConfigMap of a key. It is also the last part of the provider id.
pub(crate) fn name_of(key: &str) -> Result<String, ProviderError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| plain(byte) || byte == b'-';
    let bytes = key.as_bytes();
    let fits = bytes.len() <= LONGEST_KEY
        && bytes.iter().all(|byte| inner(*byte))
        && bytes.first().is_some_and(|byte| plain(*byte))
        && bytes.last().is_some_and(|byte| plain(*byte));
    if fits {
        return Ok(format!("i-{key}"));
    }
    Err(ProviderError::Invalid(format!(
        "`{key}` cannot be a launch key: use the NodeClaim's UID (lower-case letters, digits and dashes)"
    )))
}

/// Rejects the name of a claim that cannot be the name of a node.
pub(crate) fn check_claim(claim: &str) -> Result<(), ProviderError> {
    if (1..=LONGEST_CLAIM).contains(&claim.len()) {
        return Ok(());
    }
    Err(ProviderError::Invalid(format!(
        "claim `{claim}`: its node is named after it, and a node's name has at most {LONGEST_CLAIM} characters here: \
         use a shorter name"
    )))
}

/// Returns the name of the ConfigMap of a provider id, if the provider id belongs to KWOK.
pub(crate) fn name_in(provider_id: &str) -> Option<&str> {
    let (_zone, name) = provider_id.strip_prefix(SCHEME)?.split_once('/')?;
    name.starts_with("i-").then_some(name)
}

impl Record {
    /// Returns the provider id: `kwok://<zone>/<name of the ConfigMap>`.
    pub fn provider_id(&self) -> String {
        format!("{SCHEME}{}/i-{}", self.offering.zone, self.key)
    }

    /// Converts the record to an instance.
    pub fn instance(&self) -> Instance {
        Instance {
            provider_id: self.provider_id(),
            key: self.key.clone(),
            claim: self.claim.clone(),
            offering: self.offering.clone(),
            node_class: self.node_class.clone(),
            launched: self.launched,
            state: match self.state {
                State::Launched | State::Joined => InstanceState::Running,
                State::Terminating => InstanceState::Terminating,
            },
        }
    }

    /// Returns the offerings that failed before.
    pub fn failed(&self) -> Vec<FailedOffering> {
        self.refused.iter().map(Refused::failed).collect()
    }

    /// Makes the ConfigMap.
    pub fn config_map(&self, namespace: &str) -> Result<ConfigMap, ProviderError> {
        let text = serde_json::to_string_pretty(self).map_err(|error| {
            ProviderError::Invalid(format!(
                "the instance of claim `{}` cannot be written: {error}",
                self.claim
            ))
        })?;
        Ok(ConfigMap {
            metadata: ObjectMeta {
                name: Some(name_of(&self.key)?),
                namespace: Some(namespace.to_owned()),
                labels: Some(BTreeMap::from([
                    (MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned()),
                    (poolwright_terms::keys::NODECLAIM_LABEL.to_owned(), self.claim.clone()),
                ])),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([(DATA.to_owned(), text)])),
            ..ConfigMap::default()
        })
    }

    /// Reads the record from its ConfigMap.
    pub fn read(map: &ConfigMap) -> Result<Self, ProviderError> {
        let name = map.metadata.name.as_deref().unwrap_or_default();
        let unreadable = |cause: String| {
            let namespace = map.metadata.namespace.as_deref().unwrap_or_default();
            ProviderError::Invalid(format!(
                "ConfigMap {namespace}/{name} is no record of an instance ({cause}): restore it, or delete it and the \
                 node it was for"
            ))
        };
        let text = map.data.as_ref().and_then(|data| data.get(DATA));
        let text = text.ok_or_else(|| unreadable(format!("data.{DATA} is missing")))?;
        let record: Self =
            serde_json::from_str(text).map_err(|error| unreadable(format!("data.{DATA}: {error}")))?;
        if name_of(&record.key).ok().as_deref() != Some(name) {
            return Err(unreadable(format!("its key is {}", record.key)));
        }
        Ok(record)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use poolwright_catalog::ResourceName;
    use poolwright_terms::{CapacityType, TaintEffect};

    use super::*;

    pub(crate) fn record() -> Record {
        let offering = |zone: &str| OfferingId {
            instance_type: "g5.xlarge".into(),
            zone: zone.into(),
            capacity_type: CapacityType::Spot,
        };
        let allocatable = ResourceList::new()
            .with(ResourceName::CPU, 3920)
            .with(ResourceName::MEMORY, 16 << 30)
            .with(ResourceName::NVIDIA_GPU, 1);
        let text = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let refusal = |zone, error| Refused::new(&FailedOffering { offering: offering(zone), error });
        Record {
            state: State::Launched,
            key: "0f3a-11".to_owned(),
            claim: "gpu-1".to_owned(),
            node_class: NodeClassRef {
                group: "poolwright.dev".to_owned(),
                kind: "KwokNodeClass".to_owned(),
                name: "default".to_owned(),
            },
            offering: offering("us-east-1a"),
            launched: "2026-10-01T08:00:00.123456789Z".parse().expect("a time"),
            due: "2026-10-01T08:00:05.123456789Z".parse().expect("a time"),
            never_registers: false,
            interruption: None,
            refused: vec![
                refusal("us-east-1b", LaunchError::StockOut("none".to_owned())),
                refusal("us-east-1c", LaunchError::Quota("enough".to_owned())),
            ],
            node: NodePlan {
                labels: text("team", "research"),
                annotations: text("example.com/owner", "us"),
                taints: vec![Taint {
                    key: poolwright_terms::keys::UNREGISTERED_TAINT.to_owned(),
                    value: String::new(),
                    effect: TaintEffect::NoExecute,
                }],
                capacity: allocatable.clone(),
                allocatable,
            },
        }
    }

    #[test]
    fn a_record_survives_its_config_map_to_the_nanosecond() {
        let record = record();
        let map = record.config_map("poolwright-kwok").expect("it can be written");
        assert_eq!(map.metadata.name.as_deref(), Some("i-0f3a-11"));
        assert_eq!(Record::read(&map), Ok(record));
    }

    #[test]
    fn refusals_come_back_as_they_were() {
        let failed = record().failed();
        assert!(matches!(&failed[0].error, LaunchError::StockOut(text) if text == "none"), "{failed:?}");
        assert!(matches!(&failed[1].error, LaunchError::Quota(text) if text == "enough"), "{failed:?}");
    }

    #[test]
    fn a_provider_id_leads_back_to_its_record() {
        let record = record();
        assert_eq!(record.provider_id(), "kwok://us-east-1a/i-0f3a-11");
        assert_eq!(name_in(&record.provider_id()), Some("i-0f3a-11"));
        for other in ["aws:///us-east-1a/i-0f3a-11", "kwok://i-0f3a-11", "kwok://a/b", ""] {
            assert_eq!(name_in(other), None, "{other}");
        }
    }

    #[test]
    fn a_damaged_record_is_named_with_what_to_do() {
        let mut map = record().config_map("poolwright-kwok").expect("it can be written");
        map.metadata.name = Some("i-other".to_owned());
        let stolen = Record::read(&map).expect_err("its key is not its name").to_string();
        assert!(stolen.contains("poolwright-kwok/i-other") && stolen.contains("restore it"), "{stolen}");
        map.data = None;
        let empty = Record::read(&map).expect_err("there is nothing in it").to_string();
        assert!(empty.contains("data.instance is missing"), "{empty}");
    }

    #[test]
    fn a_key_that_cannot_name_an_object_is_refused() {
        assert_eq!(
            name_of("6f9619ff-8b86-d011-b42d-00c04fc964ff").as_deref(),
            Ok("i-6f9619ff-8b86-d011-b42d-00c04fc964ff")
        );
        for key in ["", "-a", "a-", "A", "a/b", "a b", "a.b", &"a".repeat(201)] {
            assert!(name_of(key).is_err(), "{key}");
        }
    }
}
