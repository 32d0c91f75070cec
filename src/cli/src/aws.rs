//! Nodes on AWS: from flags to the provider.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::{Client, Config};
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_provider_aws::{Access, AwsProvider, Join, KubeClasses, KubeTokens, Settings};
use poolwright_provider_contract::CloudProvider;

use crate::args::AwsFlags;
use crate::exit::Failure;

/// Where a pod finds the authority of its cluster's API server.
/// Source: <https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/>.
const CA_OF_POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// The provider that the flags ask for, if they do.
pub async fn provider(
    flags: &AwsFlags,
    client: &Client,
    config: &Config,
) -> Result<Option<Arc<dyn CloudProvider>>, Failure> {
    let Some(cluster) = &flags.cluster else { return Ok(None) };
    let join = match &flags.endpoint {
        Some(endpoint) => Some(Join {
            endpoint: endpoint.clone(),
            ca: authority(flags.ca.as_deref())?,
            service_cidr: flags.service_cidr.clone(),
        }),
        None => None,
    };
    let version = client.apiserver_version().await.context("the API server does not tell its version")?;
    // Managed clusters append to it: `36+`.
    let minor: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
    let access = Access { region: flags.region.clone(), ..Access::default() };
    let kubernetes = format!("{}.{minor}", version.major);
    let settings = Settings {
        access,
        cluster: cluster.clone(),
        kubernetes,
        join,
        queue: flags.queue.clone(),
        cloud_controller: flags.cloud_controller,
    };
    let clock = SystemClock::new();
    let classes = Arc::new(KubeClasses(client.clone()));
    let tokens = Arc::new(KubeTokens::new(client.clone(), config.clone(), cluster));
    let provider = AwsProvider::connect(settings, classes, tokens, Arc::new(move || clock.now()))
        .await
        .map_err(|error| Failure::bad_input(format!("--aws-cluster {cluster}: {error}")))?;
    Ok(Some(Arc::new(provider)))
}

/// The API server's authority, as nodes are told it.
fn authority(file: Option<&Path>) -> Result<String, Failure> {
    let path = file.unwrap_or(Path::new(CA_OF_POD));
    let pem = fs::read(path).map_err(|error| {
        let remedy = if file.is_some() { "correct it" } else { "give it with --aws-cluster-ca" };
        Failure::bad_input(format!(
            "the certificate authority of the API server cannot be read from {}: {error}; {remedy}",
            path.display()
        ))
    })?;
    if !pem.starts_with(b"-----BEGIN CERTIFICATE-----") {
        return Err(Failure::bad_input(format!(
            "{} is no certificate as PEM, which begins with -----BEGIN CERTIFICATE-----",
            path.display()
        )));
    }
    Ok(STANDARD.encode(pem))
}
