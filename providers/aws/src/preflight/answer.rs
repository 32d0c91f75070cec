//! Reduces a response of AWS to its meaning. The text of a response may hold secrets, so it is not kept.

use std::error::Error;

use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};

use crate::dns::DnsFailure;
use crate::error::{CREDENTIALS, EXPIRED, FORBIDDEN, THROTTLED, chain, is_about_credentials};

/// A response of AWS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallResult {
    /// Success.
    Done,
    /// An error.
    Refused {
        /// The error code.
        code: String,
        /// The missing action, if the error names one.
        blamed: Option<String>,
    },
    /// No credentials were found.
    NoCredentials,
    /// The host name does not resolve.
    DnsFailure(DnsFailure),
    /// No response, or not a response of AWS.
    NoResponse(String),
}

impl CallResult {
    pub fn of<T, E, R>(result: &Result<T, SdkError<E, R>>) -> Self
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
        R: std::fmt::Debug + Send + Sync + 'static,
    {
        let Err(error) = result else { return Self::Done };
        if let Some(service) = error.as_service_error() {
            return match service.code() {
                Some(code) => Self::Refused {
                    code: code.to_owned(),
                    blamed: service.message().and_then(blamed).map(str::to_owned),
                },
                None => Self::NoResponse(
                    "the response has no error code, so it is from a proxy and not from AWS".to_owned(),
                ),
            };
        }
        if let Some(unresolved) = DnsFailure::among(error) {
            return Self::DnsFailure(unresolved.clone());
        }
        let chain = chain(error);
        let unsigned = matches!(error, SdkError::ConstructionFailure(_) | SdkError::DispatchFailure(_));
        if unsigned && is_about_credentials(&chain) { Self::NoCredentials } else { Self::NoResponse(chain) }
    }

    /// Makes an error with this code.
    #[cfg(test)]
    pub fn refused(code: &str) -> Self {
        Self::Refused { code: code.to_owned(), blamed: None }
    }

    /// Returns whether a permission is missing.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if FORBIDDEN.contains(&code.as_str()))
    }

    /// Returns why the response is inconclusive.
    pub fn reason(&self) -> String {
        match self {
            Self::Done => "AWS answered".to_owned(),
            Self::NoCredentials => "there are no credentials".to_owned(),
            Self::DnsFailure(unresolved) => unresolved.to_string(),
            Self::NoResponse(why) => why.clone(),
            Self::Refused { code, .. } if THROTTLED.contains(&code.as_str()) => {
                format!("too many calls ({code}): try again in a minute")
            }
            Self::Refused { code, .. } if [CREDENTIALS, EXPIRED].concat().contains(&code.as_str()) => {
                format!("AWS does not accept the credentials ({code})")
            }
            Self::Refused { code, .. } => format!("AWS answered {code}"),
        }
    }
}

/// Returns the action that an error names: `... is not authorized to perform: iam:PassRole on resource ...`.
fn blamed(said: &str) -> Option<&str> {
    let action = said.split("not authorized to perform: ").nth(1)?.split([' ', '.', ',']).next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == ':' || c == '-';
    (action.contains(':') && action.chars().all(plain)).then_some(action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_may_name_another_action_than_the_one_that_was_called() {
        let said = "You are not authorized to perform this operation. User: arn:aws:sts::1:assumed-role/x/y is not authorized to \
                    perform: iam:PassRole on resource: arn:aws:iam::1:role/z because no identity-based policy allows it.";
        assert_eq!(blamed(said), Some("iam:PassRole"));
        assert_eq!(blamed("You are not authorized to perform this operation."), None);
        assert_eq!(blamed("not authorized to perform: <script> on"), None);
    }
}
