//! Conversion of API server errors to the errors of the provider contract.

use std::time::Duration;

use kube::core::Status;
use poolwright_provider_contract::ProviderError;

/// A description of an API call for error messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub verb: &'static str,
    pub resource: &'static str,
    pub name: &'a str,
}

impl Call<'_> {
    /// Converts an error of this call.
    pub fn error(self, error: kube::Error) -> ProviderError {
        let Self { verb, resource, name } = self;
        let cannot = format!("{verb} {resource} `{name}`");
        match error {
            kube::Error::Api(status) => self.status(&status),
            kube::Error::SerdeError(error) => ProviderError::Invalid(format!(
                "{cannot}: the object cannot be read ({error}): correct it, or install the CRDs of this version"
            )),
            kube::Error::BuildRequest(error) => ProviderError::Invalid(format!(
                "{cannot}: the request is malformed ({error}): correct the name"
            )),
            other => ProviderError::Transient(format!("{cannot}: no answer from the API server: {other}")),
        }
    }

    fn status(self, status: &Status) -> ProviderError {
        let Self { verb, resource, name } = self;
        let message = format!("{verb} {resource} `{name}`: {}", status.message);
        match status.code {
            // The API server also answers 403 while it deletes the namespace.
            403 if status.message.contains("being terminated") => ProviderError::Transient(message),
            403 => ProviderError::Invalid(format!(
                "{message}: grant the verb `{verb}` on `{resource}` to the account Poolwright runs as"
            )),
            400 | 422 => ProviderError::Invalid(format!("{message}: correct the object or the request")),
            429 => ProviderError::Throttled(message),
            _ => ProviderError::Transient(message),
        }
    }

    /// Runs the call with a timeout.
    pub async fn within<T>(
        self,
        limit: Duration,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<Result<T, kube::Error>, ProviderError> {
        tokio::time::timeout(limit, call).await.map_err(|_| {
            let Self { verb, resource, name } = self;
            ProviderError::Transient(format!(
                "{verb} {resource} `{name}`: no answer from the API server in {} s",
                limit.as_secs_f32()
            ))
        })
    }
}

/// Returns whether the error is a response with this HTTP status.
pub(crate) fn is_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

/// Returns whether a create failed because the name already exists.
pub(crate) fn is_taken(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_already_exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call<'_> = Call { verb: "create", resource: "nodes", name: "gpu-1" };

    fn status(code: u16, message: &str) -> kube::Error {
        kube::Error::Api(Status { code, message: message.to_owned(), ..Status::default() }.boxed())
    }

    #[test]
    fn a_missing_right_is_named_with_what_to_grant() {
        let ProviderError::Invalid(message) = CALL.error(status(403, "nodes is forbidden")) else {
            panic!("a missing right does not pass by itself");
        };
        assert!(message.contains("grant the verb `create` on `nodes`"), "{message}");
    }

    #[test]
    fn a_transient_api_error_may_be_retried() {
        for code in [409, 500, 503, 504, 408, 401] {
            assert!(matches!(CALL.error(status(code, "")), ProviderError::Transient(_)), "{code}");
        }
        let ending = "namespace poolwright-kwok is being terminated";
        assert!(matches!(CALL.error(status(403, ending)), ProviderError::Transient(_)));
        assert!(matches!(CALL.error(status(429, "")), ProviderError::Throttled(_)));
        assert!(matches!(CALL.error(status(422, "")), ProviderError::Invalid(_)));
    }

    #[tokio::test]
    async fn a_call_without_answer_ends() {
        let never = std::future::pending::<Result<(), kube::Error>>();
        let error = CALL.within(Duration::from_millis(1), never).await.expect_err("it never answers");
        assert!(matches!(&error, ProviderError::Transient(text) if text.contains("0.001 s")), "{error}");
    }
}
