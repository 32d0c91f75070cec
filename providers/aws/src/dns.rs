//! Addresses of AWS that the DNS does not know: the one sign that a region is none.
//!
//! Which regions there are is nowhere written here, for AWS adds some every year: every service has an address in each, so a name that
//! does not resolve is what a region that is none comes to. It is what a broken DNS comes to as well, so the call is worth repeating, and
//! whoever reads of it is told of both.

use std::error::Error;
use std::sync::OnceLock;

use aws_sdk_sts::config::interceptors::{
    BeforeTransmitInterceptorContextRef, FinalizerInterceptorContextMut,
};
use aws_sdk_sts::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_sts::error::BoxError;

/// A name that could not be looked up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DnsFailure {
    /// One of the region: it may be none.
    #[error(
        "region `{region}`: {host} does not resolve ({why}): if there is no such region, correct --aws-region, AWS_REGION or the \
         profile; else see to the DNS of this machine"
    )]
    OfRegion {
        /// The region.
        region: String,
        /// The name.
        host: String,
        /// What the resolver says.
        why: String,
    },
    /// Another: a service that all regions share, or one that somebody has given.
    #[error(
        "{host} does not resolve ({why}): see to the DNS of this machine, and to AWS_ENDPOINT_URL if it is set"
    )]
    Other {
        /// The name.
        host: String,
        /// What the resolver says.
        why: String,
    },
}

impl DnsFailure {
    /// What kind of name it is, by the name; `None` is one that was asked for on the way, for credentials.
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

    /// The one among the causes of an error.
    pub fn among<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        causes(error).find_map(|cause| cause.downcast_ref())
    }
}

/// An error and its causes.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| <dyn Error>::source(*error))
}

/// What the resolver says, where an error is about a name. There is no code for it on the way through the SDK.
fn lookup_failure(error: &(dyn Error + 'static)) -> Option<String> {
    let is_about_names = |cause: &&(dyn Error + 'static)| {
        let text = cause.to_string().to_lowercase();
        text.contains("dns error") || text.contains("failed to lookup address")
    };
    causes(error).filter(is_about_names).last().map(ToString::to_string)
}

/// Puts the name and the region into the errors of a client, which knows neither any more once a call has failed.
#[derive(Debug)]
pub(crate) struct DnsFailureContext {
    region: String,
    /// Where the client's calls go: all to the same place. A call that failed does not say it any more.
    host: OnceLock<String>,
}

impl DnsFailureContext {
    /// Names for a client of this region.
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
        // Whatever failed before the call went out was asked of another address, for credentials.
        let host = self.host.get().filter(|_| error.is_connector_error()).map(String::as_str);
        Err(DnsFailure::of(&self.region, host, why).into())
    }
}

/// The name in an address: `ec2.us-east-1.amazonaws.com`.
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

    /// Names below `invalid` never resolve: <https://www.rfc-editor.org/rfc/rfc2606>.
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
    async fn a_region_whose_addresses_do_not_resolve_is_named_with_the_flag_and_is_tried_again() {
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
