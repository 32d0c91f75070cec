//! What AWS answered, without what it is about: its texts may hold what nobody should read in a log.

use std::error::Error;

use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};

use crate::dns::DnsFailure;
use crate::error::{CREDENTIALS, EXPIRED, FORBIDDEN, THROTTLED, chain, is_about_credentials};

/// What AWS answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallResult {
    /// It did what it was asked.
    Done,
    /// It refused.
    Refused {
        /// The code.
        code: String,
        /// The action that it says is missing, where it says one.
        blamed: Option<String>,
    },
    /// There are no credentials to ask with.
    NoCredentials,
    /// Its address is not known by its name.
    DnsFailure(DnsFailure),
    /// It did not answer, or not in its own words.
    Nothing(String),
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
                None => Self::Nothing("the answer has no code: something on the way, not AWS".to_owned()),
            };
        }
        if let Some(unresolved) = DnsFailure::among(error) {
            return Self::DnsFailure(unresolved.clone());
        }
        let chain = chain(error);
        let unsigned = matches!(error, SdkError::ConstructionFailure(_) | SdkError::DispatchFailure(_));
        if unsigned && is_about_credentials(&chain) { Self::NoCredentials } else { Self::Nothing(chain) }
    }

    /// A refusal with this code, for tests and for what is known without asking.
    #[cfg(test)]
    pub fn refused(code: &str) -> Self {
        Self::Refused { code: code.to_owned(), blamed: None }
    }

    /// Whether it is refused because a permission is missing.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if FORBIDDEN.contains(&code.as_str()))
    }

    /// Why nothing follows from it.
    pub fn reason(&self) -> String {
        match self {
            Self::Done => "AWS answered".to_owned(),
            Self::NoCredentials => "there are no credentials".to_owned(),
            Self::DnsFailure(unresolved) => unresolved.to_string(),
            Self::Nothing(why) => why.clone(),
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

/// The action that a refusal names: `... is not authorized to perform: iam:PassRole on resource ...`.
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
