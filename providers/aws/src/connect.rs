//! From flags to the provider.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use poolwright_provider_contract::{Connect, ConnectError, Connected, FlagValues, Site};

use crate::registration::{CA, CLOUD_CONTROLLER, CLUSTER, ENDPOINT, QUEUE, REGION, SERVICE_CIDR};
use crate::{Access, AwsProvider, Join, KubeNodeClassObjects, KubeTokens, Settings};

/// The file in a pod with the certificate authority of its cluster's API server.
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
            ConnectError::Cluster(format!("the API server does not tell its version: {error}"))
        })?;
        // Managed clusters append to it: `36+`.
        let minor: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
        let settings = Settings {
            access: access(&site.flags),
            cluster: cluster.clone(),
            kubernetes: format!("{}.{minor}", version.major),
            join,
            queue: site.flags.text(QUEUE),
            cloud_controller: site.flags.has(CLOUD_CONTROLLER),
        };
        let classes = Arc::new(KubeNodeClassObjects(site.client.clone()));
        let tokens = Arc::new(KubeTokens::new(site.client.clone(), site.cluster.clone(), cluster.as_str()));
        let provider = AwsProvider::connect(settings, classes, tokens, Arc::clone(&site.clock))
            .await
            .map_err(|error| ConnectError::BadFlag(format!("--{CLUSTER} {cluster}: {error}")))?;
        Ok(Some(Connected { provider: Arc::new(provider), background: None }))
    }
}

/// The account that the flags name.
pub(crate) fn access(flags: &FlagValues) -> Access {
    Access { region: flags.text(REGION), ..Access::default() }
}

/// How nodes find the API server, where the flags say it.
fn join(flags: &FlagValues) -> Result<Option<Join>, ConnectError> {
    let Some(endpoint) = flags.text(ENDPOINT) else { return Ok(None) };
    Ok(Some(Join { endpoint, ca: authority(flags.get(CA))?, service_cidr: flags.text(SERVICE_CIDR) }))
}

/// The API server's certificate authority, as nodes are told it.
fn authority(file: Option<&str>) -> Result<String, ConnectError> {
    let path = Path::new(file.unwrap_or(CA_OF_POD));
    let pem = fs::read(path).map_err(|error| {
        let remedy = if file.is_some() { "correct it".to_owned() } else { format!("give it with --{CA}") };
        ConnectError::BadFlag(format!(
            "the certificate authority of the API server cannot be read from {}: {error}; {remedy}",
            path.display()
        ))
    })?;
    if !pem.starts_with(b"-----BEGIN CERTIFICATE-----") {
        return Err(ConnectError::BadFlag(format!(
            "{} is no certificate as PEM, which begins with -----BEGIN CERTIFICATE-----",
            path.display()
        )));
    }
    Ok(STANDARD.encode(pem))
}
