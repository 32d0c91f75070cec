//! Creates bootstrap tokens as Secrets of the cluster.

use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::rand;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{PartialObjectMeta, PostParams};
use kube::config::AuthInfo;
use kube::{Api, Client, Config};
use poolwright_provider_aws_model::bootstrap::BootstrapToken;
use poolwright_provider_contract::ProviderError;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{LIFE, Tokens};

/// The namespace of bootstrap tokens.
const NAMESPACE: &str = "kube-system";
/// The group that kubeadm allows to join; its own tokens have it.
/// Source: <https://kubernetes.io/docs/reference/setup-tools/kubeadm/implementation-details/#configure-tls-bootstrapping-for-node-joining>.
const GROUP: &str = "system:bootstrappers:kubeadm:default-node-token";
/// The shortest lifetime of a new token by the API server's clock.
const LEAST_LIFE: SignedDuration = SignedDuration::from_mins(45);
/// Ids are drawn, and there are two milliards of them: nobody meets another's three times.
const DRAWS: u32 = 3;
/// How often, and how far apart, it is tried whether the API server takes a new token: its authenticator hears of Secrets by a watch.
const MAX_POLLS: u32 = 25;
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The answer of the API server is what it made without what is in it: so nothing of a token is in what its client may log.
const METADATA_ALONE: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Creates bootstrap tokens in a cluster.
pub struct KubeTokens {
    client: Client,
    config: Config,
    cluster: String,
    /// One that was made and not taken, and when it expires: another would be taken no sooner, and none can be deleted.
    refused: Mutex<Option<(BootstrapToken, Timestamp)>>,
}

impl KubeTokens {
    /// Of the cluster of this client; `config` is how it is reached, and `cluster` what Poolwright calls it.
    pub fn new(client: Client, config: Config, cluster: impl Into<String>) -> Self {
        Self { client, config, cluster: cluster.into(), refused: Mutex::default() }
    }

    /// Writes the token. `None` if its id is taken.
    async fn write(&self, token: &BootstrapToken, expires: Timestamp) -> Result<Option<()>, ProviderError> {
        let name = format!("bootstrap-token-{}", token.id());
        let failed = |why: String| {
            ProviderError::Transient(format!(
                "Secret `{NAMESPACE}/{name}`, a bootstrap token, could not be made: {why}"
            ))
        };
        let body = secret(&name, token, expires, &self.cluster).to_string().into_bytes();
        let parameters = PostParams { field_manager: Some("poolwright".to_owned()), ..PostParams::default() };
        let mut request = kube::core::Request::new(format!("/api/v1/namespaces/{NAMESPACE}/secrets"))
            .create(&parameters, body)
            .map_err(|error| failed(error.to_string()))?;
        request
            .headers_mut()
            .insert("accept", METADATA_ALONE.parse().map_err(|_| failed("no header".to_owned()))?);
        let made = match self.client.request::<PartialObjectMeta<Secret>>(request).await {
            Ok(made) => made,
            Err(kube::Error::Api(status)) if status.is_already_exists() => return Ok(None),
            Err(kube::Error::Api(status)) if status.is_forbidden() => {
                return Err(ProviderError::Invalid(format!(
                    "Secret `{NAMESPACE}/{name}` may not be made, and nodes of the family Ubuntu join with such a bootstrap token: grant \
                     {{apiGroups: [\"\"], resources: [secrets], verbs: [create]}} by a Role in {NAMESPACE}, as deploy/rbac-kubeadm.yaml \
                     does, and bind it to Poolwright's service account: {}",
                    status.message
                )));
            }
            Err(kube::Error::Api(status)) if [400, 404, 422].contains(&status.code) => {
                return Err(ProviderError::Invalid(format!(
                    "Secret `{NAMESPACE}/{name}`, a bootstrap token, is refused by the API server or one of its webhooks: {}; let it \
                     through, for nodes of the family Ubuntu join with it",
                    status.message
                )));
            }
            Err(error) => return Err(failed(error.to_string())),
        };
        tracing::info!(secret = name, %expires, "bootstrap token made, for nodes of the family Ubuntu");
        match made.metadata.creation_timestamp {
            Some(at) if expires.duration_since(at.0) < LEAST_LIFE => Err(ProviderError::Invalid(format!(
                "Secret `{NAMESPACE}/{name}`, a bootstrap token, expires at {expires} and was made at {} by the API server's clock: nodes \
                 could not join in time. Set the clock of Poolwright's machine or of the API server",
                at.0
            ))),
            _ => Ok(Some(())),
        }
    }

    /// Waits until the API server accepts it. An instance that cannot join would cost money until its deadline.
    async fn is_taken(&self, token: &BootstrapToken, looks: u32) -> Result<(), ProviderError> {
        let failed = |error: kube::Error| {
            ProviderError::Transient(format!(
                "whether the API server takes bootstrap tokens could not be tried: {error}"
            ))
        };
        let mut config = self.config.clone();
        // Nothing of who Poolwright is goes along.
        config.auth_info = AuthInfo { token: Some(token.reveal().to_owned().into()), ..AuthInfo::default() };
        let reviews: Api<SelfSubjectReview> = Api::all(Client::try_from(config).map_err(failed)?);
        for _ in 0..looks {
            match reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await {
                Ok(review) => {
                    let groups =
                        review.status.and_then(|status| status.user_info).and_then(|user| user.groups);
                    if groups.is_some_and(|groups| groups.iter().any(|group| group == GROUP)) {
                        return Ok(());
                    }
                    return Err(ProviderError::Invalid(format!(
                        "the API server takes the bootstrap token `{}` for somebody who is not of the group {GROUP}: whatever is before \
                         its own authenticator must let bootstrap tokens through",
                        token.id()
                    )));
                }
                // Known, and no more than that is wanted.
                Err(kube::Error::Api(status)) if status.is_forbidden() => return Ok(()),
                Err(kube::Error::Api(status)) if status.code == 401 => {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Err(ProviderError::Invalid(format!(
            "the API server does not take the bootstrap token `{}`, which is there: nodes of the family Ubuntu could not join, \
             and none is launched. Start kube-apiserver with --enable-bootstrap-token-auth=true, as kubeadm does. On EKS there are no \
             bootstrap tokens: use amiFamily AL2023 or Bottlerocket, or Custom",
            token.id()
        )))
    }
}

#[async_trait]
impl Tokens for KubeTokens {
    async fn make(&self, expires: Timestamp) -> Result<BootstrapToken, ProviderError> {
        let mut refused = self.refused.lock().await;
        if let Some((token, _)) = refused.as_ref().filter(|(_, until)| *until > expires - LIFE) {
            self.is_taken(token, 1).await?;
        }
        *refused = None;
        for _ in 0..DRAWS {
            let token = draw()?;
            if self.write(&token, expires).await?.is_some() {
                *refused = Some((token.clone(), expires));
                self.is_taken(&token, MAX_POLLS).await?;
                *refused = None;
                return Ok(token);
            }
        }
        Err(ProviderError::Transient("each bootstrap token that was drawn is there already".to_owned()))
    }
}

/// A token from the system's random numbers.
fn draw() -> Result<BootstrapToken, ProviderError> {
    let mut bytes = [0; 64];
    let drawn = rand::fill(&mut bytes).ok().and_then(|()| BootstrapToken::from_random(&bytes));
    drawn.ok_or_else(|| {
        ProviderError::Transient("the system has no random numbers for a bootstrap token".to_owned())
    })
}

/// The token as a Secret. It allows a node to join, and signs nothing.
fn secret(name: &str, token: &BootstrapToken, expires: Timestamp, cluster: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/managed-by": "poolwright"}},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": token.id(),
            "token-secret": token.reveal_secret(),
            // With whole seconds, as the API has times.
            "expiration": Timestamp::from_second(expires.as_second()).unwrap_or(expires).to_string(),
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": GROUP,
            "description": format!("Made by Poolwright for EC2 instances of the cluster {cluster} that join with kubeadm."),
        },
    })
}
