//! Connects to a cluster.

use std::path::Path;

use anyhow::{Context, Result};
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::util::MapErrLayer;

use crate::reach::{BoxError, explain};

/// The behaviour of a client when the API server is busy or refuses for now (429, 503, 504).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// It retries a few times by itself.
    Retries,
    /// It returns the error. A budget refuses an eviction with 429, and a process that no longer leads must not retry.
    Tells,
}

/// Connects to the cluster that the flags, the environment or the default kubeconfig name, in this order. In a pod without a
/// kubeconfig, connects to the pod's own cluster.
pub async fn client(kubeconfig: Option<&Path>, context: Option<&str>, patience: Patience) -> Result<Client> {
    Ok(configured(kubeconfig, context, patience).await?.0)
}

/// Connects like [`client`], and also returns the configuration, for callers that use another user agent.
pub async fn configured(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    patience: Patience,
) -> Result<(Client, Config)> {
    let (config, _) = find(kubeconfig, context, patience).await?;
    Ok((connected(config.clone())?, config))
}

/// Connects like [`client`], and also returns the name of the cluster: the context's name, or the address if there is no context.
pub async fn named_client(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    patience: Patience,
) -> Result<(Client, String)> {
    let (config, name) = find(kubeconfig, context, patience).await?;
    Ok((connected(config)?, name))
}

/// Returns the configuration of the client and the name of the cluster.
async fn find(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    patience: Patience,
) -> Result<(Config, String)> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let mut current = context.map(str::to_owned);
    let mut config = match (kubeconfig, context) {
        (Some(path), _) => {
            let file = Kubeconfig::read_from(path)
                .with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
            current = current.or_else(|| file.current_context.clone());
            Config::from_custom_kubeconfig(file, &options)
                .await
                .with_context(|| format!("cannot use the kubeconfig {}", path.display()))?
        }
        (None, Some(context)) => Config::from_kubeconfig(&options).await.with_context(|| {
            format!("cannot use context `{context}`; `kubectl config get-contexts` lists them")
        })?,
        (None, None) => {
            current = Kubeconfig::read().ok().and_then(|file| file.current_context);
            Config::infer()
                .await
                .context("no cluster is configured: set KUBECONFIG or pass --kubeconfig FILE")?
        }
    };
    config.default_retry = patience == Patience::Retries;
    let name = current.unwrap_or_else(|| server(&config));
    Ok((config, name))
}

fn server(config: &Config) -> String {
    config.cluster_url.to_string().trim_end_matches('/').to_owned()
}

fn connected(config: Config) -> Result<Client> {
    let server = server(&config);
    let builder = ClientBuilder::try_from(config).context("cannot set up the connection to the cluster")?;
    let explained = MapErrLayer::new(move |error: BoxError| explain(error, &server));
    Ok(builder.with_layer(&explained).build())
}
