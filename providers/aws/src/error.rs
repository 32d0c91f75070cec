//! What a refusal of AWS means: try later, tell a person, or take something else.
//!
//! AWS names its errors by codes. The lists are from <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html>
//! and, for one pool of a fleet, from <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleetError.html>.

use std::error::Error;

use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};
use poolwright_provider_contract::{LaunchError, ProviderError};

/// How much of what AWS says is repeated: an encoded authorisation failure has thousands of characters.
const SHOWN: usize = 400;

/// Too many calls.
pub(crate) const THROTTLED: &[&str] = &[
    "EC2ThrottledException",
    "PriorRequestNotComplete",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
];

/// Who calls may not call this.
pub(crate) const FORBIDDEN: &[&str] = &["AccessDenied", "AccessDeniedException", "UnauthorizedOperation"];

/// Who calls is not known, or not any more.
pub(crate) const CREDENTIALS: &[&str] = &[
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "NotAuthorized",
    "OptInRequired",
    "PendingVerification",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

/// None of it is left, in this pool of capacity.
const STOCK_OUT: &[&str] = &[
    "InsufficientCapacityOnHost",
    "InsufficientFreeAddressesInSubnet",
    "InsufficientHostCapacity",
    "InsufficientInstanceCapacity",
    "InsufficientReservedInstanceCapacity",
    "ReservationCapacityExceeded",
    "SpotMaxPriceTooLow",
    "UnfulfillableCapacity",
    // A type that is not sold in the zone of the subnet after all.
    "Unsupported",
];

/// The account may not have more.
const QUOTA: &[&str] = &[
    "FleetLimitExceeded",
    "InstanceLimitExceeded",
    "MaxFleetCountExceeded",
    "MaxSpotInstanceCountExceeded",
    "VcpuLimitExceeded",
];

/// The code of AWS's answer, if it is one of AWS at all.
pub(crate) fn code<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> Option<&str> {
    error.as_service_error().and_then(ProvideErrorMetadata::code)
}

/// What a call came to. `action` is the call as an IAM policy names it: `ec2:CreateFleet`.
pub(crate) fn provider_error<E, R>(action: &str, error: SdkError<E, R>) -> ProviderError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    let Some(service) = error.as_service_error() else { return without_answer(action, &error) };
    let said = service.message().unwrap_or_default();
    let Some(code) = service.code() else {
        // An error page of something on the way, or of AWS itself.
        return ProviderError::Transient(format!("{action}: AWS answered with an error that has no code"));
    };
    of_code(action, code, said)
}

/// Why there was no answer: no credentials, no network, no time.
fn without_answer<E, R>(action: &str, error: &SdkError<E, R>) -> ProviderError
where
    E: Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    let chain = chain(error);
    match error {
        SdkError::ConstructionFailure(_) | SdkError::DispatchFailure(_) if is_about_credentials(&chain) => {
            ProviderError::Invalid(format!(
                "{action}: no credentials for AWS: {chain}. Give the pod a role (EKS Pod Identity, or IAM roles for service \
                 accounts), or set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            ))
        }
        SdkError::ConstructionFailure(_) => ProviderError::Invalid(format!("{action}: {chain}")),
        _ => ProviderError::Transient(format!("{action}: {chain}")),
    }
}

pub(crate) fn is_about_credentials(chain: &str) -> bool {
    let chain = chain.to_lowercase();
    chain.contains("credential") || chain.contains("identity")
}

/// An error and its causes in one line, each said once.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut told = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !told.iter().any(|before| before.contains(&text)) {
            told.push(text);
        }
        cause = error.source();
    }
    cut(&told.join(": "))
}

pub(crate) fn cut(text: &str) -> String {
    let mut cut: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN).collect();
    if cut.len() < text.len() {
        cut.push_str("...");
    }
    cut
}

/// Whether it is about a permission that is missing.
pub(crate) fn is_refusal(error: &ProviderError) -> bool {
    matches!(error, ProviderError::Invalid(told) if told.contains(NOT_ALLOWED))
}

const NOT_ALLOWED: &str = ": not allowed (";

/// What a code means for the whole call.
pub(crate) fn of_code(action: &str, code: &str, said: &str) -> ProviderError {
    let told = format!("{action}: {code}: {}", cut(said));
    if THROTTLED.contains(&code) {
        ProviderError::Throttled(told)
    } else if FORBIDDEN.contains(&code) {
        ProviderError::Invalid(format!(
            "{action}{NOT_ALLOWED}{code}): add {action} to the policy of the role that Poolwright runs with, as in \
             docs/aws.md. AWS says: {}",
            cut(said)
        ))
    } else if CREDENTIALS.contains(&code) {
        ProviderError::Invalid(format!(
            "{told}. AWS does not accept the credentials: check that they are of this account, not expired, and that the \
             clock of this machine is right"
        ))
    } else if code.starts_with("AuthFailure.ServiceLinkedRole") {
        ProviderError::Invalid(format!(
            "{told}. Spot instances need a service-linked role once in each account: aws iam create-service-linked-role \
             --aws-service-name spot.amazonaws.com"
        ))
    } else if is_mistake(code) {
        ProviderError::Invalid(told)
    } else {
        ProviderError::Transient(told)
    }
}

/// Whether a code says that the request itself is wrong.
fn is_mistake(code: &str) -> bool {
    let beginnings = ["Invalid", "Malformed", "Missing", "Unknown", "Unsupported", "Validation", "Incorrect"];
    let words =
        ["NotFound", "NotExist", "NoSuchEntity", "Blocked", "LimitExceeded", "Incompatible", "Idempotent"];
    beginnings.iter().any(|beginning| code.starts_with(beginning))
        || words.iter().any(|word| code.contains(word))
}

/// What one pool of capacity of a fleet said.
pub(crate) fn of_pool(code: &str, said: &str) -> LaunchError {
    let told = || format!("{code}: {}", cut(said));
    if STOCK_OUT.contains(&code) {
        LaunchError::StockOut(told())
    } else if QUOTA.contains(&code) {
        LaunchError::Quota(told())
    } else {
        LaunchError::Provider(of_code("ec2:CreateFleet", code, said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_one_list() {
        let mut all: Vec<&str> = [THROTTLED, FORBIDDEN, CREDENTIALS, STOCK_OUT, QUOTA].concat();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn a_code_says_whether_to_wait_to_take_another_or_to_tell_a_person() {
        let of = |code| of_code("ec2:CreateFleet", code, "because");
        assert!(matches!(of("RequestLimitExceeded"), ProviderError::Throttled(_)));
        assert!(matches!(of("InternalError"), ProviderError::Transient(_)));
        assert!(matches!(of("Unavailable"), ProviderError::Transient(_)));
        assert!(matches!(of("InvalidSubnetID.NotFound"), ProviderError::Invalid(_)));
        assert!(matches!(of_pool("InsufficientInstanceCapacity", ""), LaunchError::StockOut(_)));
        assert!(matches!(of_pool("VcpuLimitExceeded", ""), LaunchError::Quota(_)));
        assert!(matches!(of_pool("InternalError", ""), LaunchError::Provider(ProviderError::Transient(_))));
        let ProviderError::Invalid(told) = of("UnauthorizedOperation") else {
            panic!("a person must grant it")
        };
        assert!(told.contains("add ec2:CreateFleet to the policy"), "{told}");
    }

    #[test]
    fn what_aws_says_is_repeated_in_one_line_and_not_for_pages() {
        let told = of_code("ec2:RunInstances", "InternalError", &"a\nb".repeat(5000)).to_string();
        assert!(told.len() < 500 && !told.contains('\n'), "{told}");
    }
}
