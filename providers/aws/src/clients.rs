//! The SDK clients of all AWS services, with one region, one set of credentials, and the same timeouts and retries.

use std::fmt;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use poolwright_provider_aws_model::prices;
use poolwright_provider_contract::ProviderError;

use crate::dns::DnsFailureContext;

/// The timeout of one attempt, including the whole response. DescribeInstanceTypes for a region takes seconds.
const ATTEMPT: Duration = Duration::from_secs(20);
/// The number of attempts per call. The SDK retries throttled calls and network failures, but no calls that AWS rejects.
const ATTEMPTS: u32 = 3;

/// Region, endpoint and credentials for AWS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The region. With `None`, the SDK finds it in `AWS_REGION`, the profile or the instance metadata.
    pub region: Option<String>,
    /// The endpoint of a simulated AWS, for tests and trials. `AWS_ENDPOINT_URL` does the same.
    pub endpoint: Option<String>,
    /// An access key for a simulated AWS, because real keys do not belong in programs. With `None`, the SDK finds credentials in
    /// the environment: variables, profile, or the role of the pod or instance.
    pub key: Option<Key>,
}

/// An access key. Its `Debug` output omits the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// The access key id.
    pub id: String,
    /// The secret access key.
    pub secret: String,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The clients of all AWS services that Poolwright calls.
#[derive(Clone, Debug)]
pub(crate) struct Clients {
    pub region: String,
    pub ec2: aws_sdk_ec2::Client,
    pub iam: aws_sdk_iam::Client,
    pub quotas: aws_sdk_servicequotas::Client,
    pub sqs: aws_sdk_sqs::Client,
    pub ssm: aws_sdk_ssm::Client,
    pub sts: aws_sdk_sts::Client,
    /// `None` if AWS has no price list for the region.
    pub pricing: Option<aws_sdk_pricing::Client>,
}

impl Clients {
    /// Makes the clients. It does not check the credentials.
    pub async fn connect(access: &Access) -> Result<Self, ProviderError> {
        let config = config(access).await;
        let region = config.region().map(ToString::to_string).ok_or_else(|| {
            ProviderError::Invalid(
                "no AWS region: give --aws-region, or set AWS_REGION or the region of the profile".to_owned(),
            )
        })?;
        if let Err(error) = region.parse::<poolwright_provider_aws_model::Region>() {
            return Err(ProviderError::Invalid(format!(
                "{error}: correct --aws-region, AWS_REGION or the profile"
            )));
        }
        let pricing = prices::request::endpoint(&region).ok().map(|endpoint| {
            let config = config.clone().into_builder().region(Region::new(endpoint)).build();
            aws_sdk_pricing::Client::from_conf(
                aws_sdk_pricing::config::Builder::from(&config)
                    .interceptor(DnsFailureContext::new(endpoint))
                    .build(),
            )
        });
        let naming = || DnsFailureContext::new(&region);
        Ok(Self {
            ec2: aws_sdk_ec2::Client::from_conf(
                aws_sdk_ec2::config::Builder::from(&config).interceptor(naming()).build(),
            ),
            iam: aws_sdk_iam::Client::from_conf(
                aws_sdk_iam::config::Builder::from(&config).interceptor(naming()).build(),
            ),
            quotas: aws_sdk_servicequotas::Client::from_conf(
                aws_sdk_servicequotas::config::Builder::from(&config).interceptor(naming()).build(),
            ),
            sqs: aws_sdk_sqs::Client::from_conf(
                aws_sdk_sqs::config::Builder::from(&config).interceptor(naming()).build(),
            ),
            ssm: aws_sdk_ssm::Client::from_conf(
                aws_sdk_ssm::config::Builder::from(&config).interceptor(naming()).build(),
            ),
            sts: aws_sdk_sts::Client::from_conf(
                aws_sdk_sts::config::Builder::from(&config).interceptor(naming()).build(),
            ),
            pricing,
            region,
        })
    }
}

async fn config(access: &Access) -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(5))
        .operation_attempt_timeout(ATTEMPT)
        .build();
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .timeout_config(timeouts)
        .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS));
    if let Some(region) = &access.region {
        loader = loader.region(Region::new(region.clone()));
    }
    if let Some(Key { id, secret }) = &access.key {
        loader = loader
            .credentials_provider(aws_sdk_ec2::config::Credentials::new(id, secret, None, None, "given"));
    }
    if let Some(endpoint) = &access.endpoint {
        loader = loader.endpoint_url(endpoint);
    }
    loader.load().await
}
