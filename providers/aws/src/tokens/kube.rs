//! Creates bootstrap tokens as Secrets in the cluster.

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
/// The group that kubeadm allows to join. kubeadm's own tokens have it. Source:
/// <https://kubernetes.io/docs/reference/setup-tools/kubeadm/implementation-details/#configure-tls-bootstrapping-for-node-joining>.
const GROUP: &str = "system:bootstrappers:kubeadm:default-node-token";
/// The shortest lifetime of a new token by the API server's clock.
const LEAST_LIFE: SignedDuration = SignedDuration::from_mins(45);
/// The number of attempts to find a free token id. There are two billion ids, so three collisions do not happen by chance.
const DRAWS: u32 = 3;
/// How often, and at which interval, Poolwright tries whether the API server accepts a new token. The authenticator learns of new
/// Secrets by a watch.
const MAX_POLLS: u32 = 25;
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Requests only the metadata of the created Secret, so that the response contains nothing of the token that a client could log.
const METADATA_ALONE: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Creates bootstrap tokens in a cluster.
pub struct KubeTokens {
    client: Client,
    config: Config,
    cluster: String,
    /// A created token that the API server does not accept, and its expiry. Poolwright tries it again instead of creating
    /// another, because it has no permission to delete tokens.
    refused: Mutex<Option<(BootstrapToken, Timestamp)>>,
}

impl KubeTokens {
    /// Makes a creator of tokens for the cluster of this client. `config` is the configuration of the client, and `cluster` the
    /// name of the cluster in Poolwright.
    pub fn new(client: Client, config: Config, cluster: impl Into<String>) -> Self {
        Self { client, config, cluster: cluster.into(), refused: Mutex::default() }
    }

    /// Creates the Secret of the token. It returns `None` if the id is taken.
    async fn write(&self, token: &BootstrapToken, expires: Timestamp) -> Result<Option<()>, ProviderError> {
        let name = format!("bootstrap-token-{}", token.id());
        let failed = |why: String| {
            ProviderError::Transient(format!(
                "Secret `{NAMESPACE}/{name}`, a bootstrap token, could not be created: {why}"
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
                    "Poolwright may not create Secret `{NAMESPACE}/{name}`, a bootstrap token that nodes of the family Ubuntu need: grant \
                     {{apiGroups: [\"\"], resources: [secrets], verbs: [create]}} with a Role in {NAMESPACE}, as in \
                     deploy/rbac-kubeadm.yaml, and bind it to Poolwright's service account: {}",
                    status.message
                )));
            }
            Err(kube::Error::Api(status)) if [400, 404, 422].contains(&status.code) => {
                return Err(ProviderError::Invalid(format!(
                    "the API server or one of its webhooks rejects Secret `{NAMESPACE}/{name}`, a bootstrap token: {}; allow it, because \
                     nodes of the family Ubuntu need it to join",
                    status.message
                )));
            }
            Err(error) => return Err(failed(error.to_string())),
        };
        tracing::info!(secret = name, %expires, "bootstrap token created for nodes of the family Ubuntu");
        match made.metadata.creation_timestamp {
            Some(at) if expires.duration_since(at.0) < LEAST_LIFE => Err(ProviderError::Invalid(format!(
                "Secret `{NAMESPACE}/{name}`, a bootstrap token, expires at {expires}, and the API server created it at {} by its clock: \
                 nodes could not join in time. Correct the clock of Poolwright's machine or of the API server",
                at.0
            ))),
            _ => Ok(Some(())),
        }
    }

    /// Waits until the API server accepts it. An instance that cannot join would cost money until its deadline.
    async fn is_taken(&self, token: &BootstrapToken, looks: u32) -> Result<(), ProviderError> {
        let failed = |error: kube::Error| {
            ProviderError::Transient(format!(
                "Poolwright could not check whether the API server accepts bootstrap tokens: {error}"
            ))
        };
        let mut config = self.config.clone();
        // Authenticate only with the token, not with Poolwright's own credentials.
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
                        "the API server accepts the bootstrap token `{}`, but its user is not in the group {GROUP}: an authenticator in \
                         front of the API server must pass bootstrap tokens through",
                        token.id()
                    )));
                }
                // The API server has authenticated the token, which is all that this check needs.
                Err(kube::Error::Api(status)) if status.is_forbidden() => return Ok(()),
                Err(kube::Error::Api(status)) if status.code == 401 => {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Err(ProviderError::Invalid(format!(
            "the API server does not accept the bootstrap token `{}` although it exists, so Poolwright launches no nodes of the family \
             Ubuntu: start kube-apiserver with --enable-bootstrap-token-auth=true, as kubeadm does. EKS does not support bootstrap \
             tokens: use amiFamily AL2023, Bottlerocket or Custom there",
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
        Err(ProviderError::Transient(format!(
            "{DRAWS} random ids for a bootstrap token are all taken: trying again"
        )))
    }
}

/// Makes a token from random numbers of the operating system.
fn draw() -> Result<BootstrapToken, ProviderError> {
    let mut bytes = [0; 64];
    let drawn = rand::fill(&mut bytes).ok().and_then(|()| BootstrapToken::from_random(&bytes));
    drawn.ok_or_else(|| {
        ProviderError::Transient("the system has no random numbers for a bootstrap token".to_owned())
    })
}

/// Makes the Secret of the token. The token allows a node to join, but not to sign anything.
fn secret(name: &str, token: &BootstrapToken, expires: Timestamp, cluster: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/managed-by": "poolwright"}},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": token.id(),
            "token-secret": token.reveal_secret(),
            // The API takes whole seconds.
            "expiration": Timestamp::from_second(expires.as_second()).unwrap_or(expires).to_string(),
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": GROUP,
            "description": format!("Made by Poolwright for EC2 instances of the cluster {cluster} that join with kubeadm."),
        },
    })
}
