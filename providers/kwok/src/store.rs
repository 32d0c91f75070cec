//! The API calls of the provider: instances as ConfigMaps, nodes, and node classes.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams, Preconditions};
use kube::{Api, Client};
use poolwright_provider_contract::ProviderError;

use crate::api_error::{Call, is_code, is_taken};
use crate::node::HOME_LABEL;
use crate::node_class::KwokNodeClass;
use crate::record::{MANAGED_BY, Record};

const CONFIG_MAPS: &str = "configmaps";
const NODES: &str = "nodes";
const CLASSES: &str = "kwoknodeclasses.poolwright.dev";

/// A record with the version that was read, so that a change applies only to that version.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub record: Record,
    map: ConfigMap,
}

/// All stored instances.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub stored: Vec<Stored>,
    /// The errors of the records that cannot be parsed.
    pub unreadable: Vec<ProviderError>,
}

/// The result of a create.
pub(crate) enum Created {
    New,
    Taken,
}

#[derive(Clone)]
pub(crate) struct Store {
    client: Client,
    maps: Api<ConfigMap>,
    nodes: Api<Node>,
    classes: Api<KwokNodeClass>,
    namespace: String,
    limit: Duration,
}

impl Store {
    /// Makes a store. Calls time out after `limit`.
    pub fn new(client: Client, namespace: String, limit: Duration) -> Self {
        Self {
            maps: Api::namespaced(client.clone(), &namespace),
            nodes: Api::all(client.clone()),
            classes: Api::all(client.clone()),
            client,
            namespace,
            limit,
        }
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Reads a node class.
    pub async fn class(&self, name: &str) -> Result<Option<KwokNodeClass>, ProviderError> {
        let call = Call { verb: "get", resource: CLASSES, name };
        match call.within(self.limit, self.classes.get(name)).await? {
            Ok(class) => Ok(Some(class)),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                // The details of the error name the class if only the class is missing. They are absent if the API server does
                // not serve the kind.
                if status.details.is_some_and(|details| details.name == name) {
                    return Ok(None);
                }
                Err(ProviderError::Invalid(
                    "the API server does not serve KwokNodeClass: install the CRDs with `poolwright crds | kubectl apply \
                     --server-side -f -`, or correct spec.template.spec.nodeClassRef of the pool"
                        .to_owned(),
                ))
            }
            Err(error) => Err(call.error(error)),
        }
    }

    /// Returns the names of all node classes; `None` if they cannot be listed.
    pub async fn class_names(&self) -> Option<Vec<String>> {
        let call = Call { verb: "list", resource: CLASSES, name: "" };
        let listed = call.within(self.limit, self.classes.list_metadata(&ListParams::default())).await;
        let listed = listed.ok()?.ok()?;
        Some(listed.items.into_iter().filter_map(|object| object.metadata.name).collect())
    }

    /// Reads a record.
    pub async fn get(&self, name: &str) -> Result<Option<Stored>, ProviderError> {
        let call = Call { verb: "get", resource: CONFIG_MAPS, name };
        let found = call.within(self.limit, self.maps.get_opt(name)).await?.map_err(|e| call.error(e))?;
        found.map(|map| Ok(Stored { record: Record::read(&map)?, map })).transpose()
    }

    /// Lists all records. The list is at least as new as the call.
    pub async fn list(&self) -> Result<Inventory, ProviderError> {
        let call = Call { verb: "list", resource: CONFIG_MAPS, name: &self.namespace };
        let ours = ListParams::default().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1));
        let found = call.within(self.limit, self.maps.list(&ours)).await?.map_err(|e| call.error(e))?;
        let mut inventory = Inventory::default();
        for map in found {
            match Record::read(&map) {
                Ok(record) => inventory.stored.push(Stored { record, map }),
                Err(problem) => inventory.unreadable.push(problem),
            }
        }
        Ok(inventory)
    }

    /// Creates a record, and the namespace if necessary.
    pub async fn create(&self, record: &Record) -> Result<Created, ProviderError> {
        let map = record.config_map(&self.namespace)?;
        let name = map.metadata.name.clone().unwrap_or_default();
        let call = Call { verb: "create", resource: CONFIG_MAPS, name: &name };
        let params = PostParams::default();
        let mut outcome = call.within(self.limit, self.maps.create(&params, &map)).await?;
        if outcome.as_ref().is_err_and(|error| is_code(error, 404)) {
            self.create_namespace().await?;
            outcome = call.within(self.limit, self.maps.create(&params, &map)).await?;
        }
        match outcome {
            Ok(_) => Ok(Created::New),
            Err(error) if is_taken(&error) => Ok(Created::Taken),
            Err(error) => Err(call.error(error)),
        }
    }

    async fn create_namespace(&self) -> Result<(), ProviderError> {
        let namespace = Namespace {
            metadata: ObjectMeta { name: Some(self.namespace.clone()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        let call = Call { verb: "create", resource: "namespaces", name: &self.namespace };
        let api: Api<Namespace> = Api::all(self.client.clone());
        match call.within(self.limit, api.create(&PostParams::default(), &namespace)).await? {
            Ok(_) => Ok(()),
            Err(error) if is_taken(&error) => Ok(()),
            Err(error) => Err(call.error(error)),
        }
    }

    /// Replaces a record. It returns `None` if somebody else has changed or deleted the record since it was read.
    pub async fn replace(&self, stored: &Stored, record: Record) -> Result<Option<Stored>, ProviderError> {
        let mut map = record.config_map(&self.namespace)?;
        let name = map.metadata.name.clone().unwrap_or_default();
        map.metadata.resource_version.clone_from(&stored.map.metadata.resource_version);
        map.metadata.uid.clone_from(&stored.map.metadata.uid);
        let call = Call { verb: "update", resource: CONFIG_MAPS, name: &name };
        match call.within(self.limit, self.maps.replace(&name, &PostParams::default(), &map)).await? {
            Ok(map) => Ok(Some(Stored { record, map })),
            Err(error) if is_code(&error, 409) || is_code(&error, 404) => Ok(None),
            Err(error) => Err(call.error(error)),
        }
    }

    /// Deletes a record. It is no error if the record is gone.
    pub async fn delete(&self, stored: &Stored) -> Result<(), ProviderError> {
        let name = stored.map.metadata.name.as_deref().unwrap_or_default();
        let call = Call { verb: "delete", resource: CONFIG_MAPS, name };
        let this = just(stored.map.metadata.uid.as_deref());
        match call.within(self.limit, self.maps.delete(name, &this)).await? {
            Ok(_) => Ok(()),
            // The record is gone, or there is a newer one with the same name.
            Err(error) if is_code(&error, 404) || is_code(&error, 409) => Ok(()),
            Err(error) => Err(call.error(error)),
        }
    }

    /// Reads a node.
    pub async fn node(&self, name: &str) -> Result<Option<Node>, ProviderError> {
        let call = Call { verb: "get", resource: NODES, name };
        call.within(self.limit, self.nodes.get_opt(name)).await?.map_err(|error| call.error(error))
    }

    /// Lists the nodes whose instances are stored here.
    pub async fn nodes(&self) -> Result<Vec<Node>, ProviderError> {
        let call = Call { verb: "list", resource: NODES, name: HOME_LABEL };
        let ours = ListParams::default().labels(&format!("{HOME_LABEL}={}", self.namespace));
        let found = call.within(self.limit, self.nodes.list(&ours)).await?;
        found.map(|list| list.items).map_err(|error| call.error(error))
    }

    /// Creates a node.
    pub async fn create_node(&self, node: &Node) -> Result<Created, ProviderError> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let call = Call { verb: "create", resource: NODES, name };
        match call.within(self.limit, self.nodes.create(&PostParams::default(), node)).await? {
            Ok(_) => Ok(Created::New),
            Err(error) if is_taken(&error) => Ok(Created::Taken),
            Err(error) => Err(call.error(error)),
        }
    }

    /// Deletes a node. It is no error if the node is gone. The node stays for a while if it has a finalizer.
    pub async fn delete_node(&self, node: &Node) -> Result<(), ProviderError> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let call = Call { verb: "delete", resource: NODES, name };
        let this = just(node.metadata.uid.as_deref());
        match call.within(self.limit, self.nodes.delete(name, &this)).await? {
            Ok(_) => Ok(()),
            Err(error) if is_code(&error, 404) || is_code(&error, 409) => Ok(()),
            Err(error) => Err(call.error(error)),
        }
    }
}

/// Returns parameters that delete only the object with this UID.
fn just(uid: Option<&str>) -> DeleteParams {
    DeleteParams::default()
        .preconditions(Preconditions { uid: uid.map(str::to_owned), resource_version: None })
}
