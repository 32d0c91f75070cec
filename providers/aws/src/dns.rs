//! DNS failures of AWS addresses, which are the only sign of a region that does not exist.
//!
//! Poolwright has no list of regions, because AWS adds new ones. Every service has a host name in each region, so a name that
//! does not resolve may mean that the region does not exist. A DNS outage looks the same, so the error is transient and its
//! message names both causes.

use std::error::Error;
use std::sync::OnceLock;

use aws_sdk_sts::config::interceptors::{
    BeforeTransmitInterceptorContextRef, FinalizerInterceptorContextMut,
};
use aws_sdk_sts::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_sts::error::BoxError;

/// A host name that did not resolve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DnsFailure {
    /// The host belongs to a region, which may not exist.
    #[error(
        "region `{region}`: {host} does not resolve ({why}): if there is no such region, correct --aws-region, AWS_REGION or the \
         profile; else see to the DNS of this machine"
    )]
    OfRegion {
        /// The region.
        region: String,
        /// The host name.
        host: String,
        /// The error of the resolver.
        why: String,
    },
    /// The host belongs to a global service or a custom endpoint.
    #[error(
        "{host} does not resolve ({why}): see to the DNS of this machine, and to AWS_ENDPOINT_URL if it is set"
    )]
    Other {
        /// The host name.
        host: String,
        /// The error of the resolver.
        why: String,
    },
}

impl DnsFailure {
    /// Makes the error from the host name. `None` is a host that the SDK called for credentials.
    fn of(region: &str, host: Option<&str>, why: String) -> Self {
        match host {
            Some(host) if !host.contains(region) => Self::Other { host: host.to_owned(), why },
            host => Self::OfRegion {
                region: region.to_owned(),
                host: host.unwrap_or("an address of AWS there").to_owned(),
                why,
            },
        }
    }

    /// Finds a DNS failure among the causes of an error.
    pub fn among<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        causes(error).find_map(|cause| cause.downcast_ref())
    }
}

/// Returns an error and its causes.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| <dyn Error>::source(*error))
}

/// Returns the message of the resolver, if an error is a failed lookup. The SDK has no error code for it.
fn lookup_failure(error: &(dyn Error + 'static)) -> Option<String> {
    let is_about_names = |cause: &&(dyn Error + 'static)| {
        let text = cause.to_string().to_lowercase();
        text.contains("dns error") || text.contains("failed to lookup address")
    };
    causes(error).filter(is_about_names).last().map(ToString::to_string)
}

/// An interceptor that adds the host name and the region to DNS failures. The errors of the SDK contain neither.
#[derive(Debug)]
pub(crate) struct DnsFailureContext {
    region: String,
    /// The host of the client, which is the same for all calls.
    host: OnceLock<String>,
}

impl DnsFailureContext {
    /// Makes the interceptor for a client of this region.
    pub fn new(region: impl Into<String>) -> Self {
        Self { region: region.into(), host: OnceLock::new() }
    }
}

impl Intercept for DnsFailureContext {
    fn name(&self) -> &'static str {
        "DnsFailureContext"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(host) = host_of(context.request().uri()) {
            self.host.get_or_init(|| host.to_owned());
        }
        Ok(())
    }

    fn modify_before_completion(
        &self,
        context: &mut FinalizerInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(Err(error)) = context.output_or_error() else { return Ok(()) };
        if context.response().is_some() {
            return Ok(());
        }
        let Some(why) = lookup_failure(error) else { return Ok(()) };
        // A failure before the request was sent comes from another host, which the SDK called for credentials.
        let host = self.host.get().filter(|_| error.is_connector_error()).map(String::as_str);
        Err(DnsFailure::of(&self.region, host, why).into())
    }
}

/// Returns the host name of a URL: `ec2.us-east-1.amazonaws.com`.
fn host_of(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    rest.split(['/', ':', '?']).next().filter(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use poolwright_provider_contract::ProviderError;

    use super::*;
    use crate::clients::{Access, Clients, Key};
    use crate::error::provider_error;

    /// Returns the error of a call to this endpoint. Names below `invalid` never resolve:
    /// <https://www.rfc-editor.org/rfc/rfc2606>.
    async fn told(endpoint: &str) -> ProviderError {
        let access = Access {
            region: Some("us-esat-1".to_owned()),
            endpoint: Some(endpoint.to_owned()),
            key: Some(Key { id: "AKIA".to_owned(), secret: "none".to_owned() }),
        };
        let clients = Clients::connect(&access).await.expect("its form is that of a region");
        let error = clients.ec2.describe_subnets().send().await.expect_err("nobody is there");
        provider_error("ec2:DescribeSubnets", error)
    }

    #[tokio::test]
    async fn an_unresolvable_region_is_reported_with_its_flag_and_retried() {
        let ProviderError::Transient(told) = told("https://ec2.us-esat-1.invalid").await else {
            panic!("the DNS may be down")
        };
        assert!(
            told.starts_with(
                "ec2:DescribeSubnets: region `us-esat-1`: ec2.us-esat-1.invalid does not resolve ("
            ) && told.contains("correct --aws-region"),
            "{told}"
        );
    }

    #[tokio::test]
    async fn an_address_that_is_of_no_region_says_nothing_of_one() {
        let ProviderError::Transient(told) = told("https://stand-in.invalid:8443/aws").await else {
            panic!("the DNS may be down")
        };
        assert!(
            told.contains("stand-in.invalid does not resolve") && !told.contains("--aws-region"),
            "{told}"
        );
    }

    #[test]
    fn credentials_that_are_asked_for_where_no_region_is_are_not_what_is_missing() {
        let error = DnsFailure::of("us-esat-1", None, "dns error".to_owned());
        assert!(error.to_string().starts_with("region `us-esat-1`: an address of AWS there"), "{error}");
        assert_eq!(host_of("/?Action=X"), None);
    }
}
