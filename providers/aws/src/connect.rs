//! Makes the provider from the flags.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use poolwright_provider_contract::{Connect, ConnectError, Connected, FlagValues, Site};

use crate::registration::{CA, CLOUD_CONTROLLER, CLUSTER, ENDPOINT, QUEUE, REGION, SERVICE_CIDR};
use crate::{Access, AwsProvider, Join, KubeNodeClassObjects, KubeTokens, Settings};

/// The file in every pod with the CA certificate of the API server.
/// Source: <https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/>.
const CA_OF_POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// Makes the provider of nodes on EC2.
pub(crate) struct Aws;

#[async_trait]
impl Connect for Aws {
    async fn connect(&self, site: &Site) -> Result<Option<Connected>, ConnectError> {
        let Some(cluster) = site.flags.text(CLUSTER) else { return Ok(None) };
        let join = join(&site.flags)?;
        let version = site.client.apiserver_version().await.map_err(|error| {
            ConnectError::Cluster(format!("the version of the API server could not be read: {error}"))
        })?;
        let namespace: Namespace =
            Api::all(site.client.clone()).get("kube-system").await.map_err(|error| {
                ConnectError::Cluster(format!(
                    "the id of the cluster, the UID of namespace kube-system, could not be read: {error}"
                ))
            })?;
        // Managed clusters append a plus sign: `36+`.
        let minor: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
        let settings = Settings {
            access: access(&site.flags),
            cluster: cluster.clone(),
            cluster_id: namespace.metadata.uid,
            kubernetes: format!("{}.{minor}", version.major),
            join,
            queue: site.flags.text(QUEUE),
            cloud_controller: site.flags.has(CLOUD_CONTROLLER),
        };
        let classes = Arc::new(KubeNodeClassObjects(site.client.clone()));
        let tokens = Arc::new(KubeTokens::new(site.client.clone(), site.cluster.clone(), cluster.as_str()));
        let provider = AwsProvider::connect(settings, classes, tokens, Arc::clone(&site.clock))
            .await
            .map_err(|error| ConnectError::BadFlag(format!("--{CLUSTER} {cluster}: {}", error.message())))?;
        Ok(Some(Connected { provider: Arc::new(provider), background: None }))
    }
}

/// Returns the access that the flags configure.
pub(crate) fn access(flags: &FlagValues) -> Access {
    Access { region: flags.text(REGION), ..Access::default() }
}

/// Returns how nodes reach the API server; `None` if the flags do not give an endpoint.
fn join(flags: &FlagValues) -> Result<Option<Join>, ConnectError> {
    let Some(endpoint) = flags.text(ENDPOINT) else { return Ok(None) };
    Ok(Some(Join { endpoint, ca: authority(flags.get(CA))?, service_cidr: flags.text(SERVICE_CIDR) }))
}

/// Reads the CA certificates of the API server and returns them as base64-encoded PEM, the format of the user data.
fn authority(file: Option<&str>) -> Result<String, ConnectError> {
    let path = Path::new(file.unwrap_or(CA_OF_POD));
    let pem = fs::read(path).map_err(|error| {
        let remedy =
            if file.is_some() { format!("correct --{CA}") } else { format!("name the file with --{CA}") };
        ConnectError::BadFlag(format!(
            "the CA certificate of the API server cannot be read from {}: {error}; {remedy}",
            path.display()
        ))
    })?;
    if !pem.starts_with(b"-----BEGIN CERTIFICATE-----") {
        return Err(ConnectError::BadFlag(format!(
            "{} is not a PEM certificate: the file must begin with -----BEGIN CERTIFICATE-----",
            path.display()
        )));
    }
    Ok(STANDARD.encode(pem))
}
