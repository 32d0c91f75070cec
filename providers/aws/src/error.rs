//! Classifies errors of AWS: retry later, ask a person to fix something, or try another offering.
//!
//! The error codes are from <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html>. Those of a single
//! fleet pool are from <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleetError.html>.

use std::error::Error;

use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};
use poolwright_provider_contract::{LaunchError, ProviderError};

use crate::dns::DnsFailure;

/// The maximum number of characters quoted from an AWS message. An encoded authorization failure has thousands.
const SHOWN: usize = 400;

/// The caller sent too many requests.
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

/// The caller lacks the permission.
pub(crate) const FORBIDDEN: &[&str] = &["AccessDenied", "AccessDeniedException", "UnauthorizedOperation"];

/// The credentials have expired.
pub(crate) const EXPIRED: &[&str] = &["ExpiredToken", "ExpiredTokenException", "RequestExpired"];

/// AWS does not accept the credentials, or does not accept them in this region.
pub(crate) const CREDENTIALS: &[&str] = &[
    "AuthFailure",
    "IncompleteSignature",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "NotAuthorized",
    "OptInRequired",
    "PendingVerification",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

/// The capacity pool is exhausted.
const STOCK_OUT: &[&str] = &[
    "InsufficientCapacityOnHost",
    "InsufficientFreeAddressesInSubnet",
    "InsufficientHostCapacity",
    "InsufficientInstanceCapacity",
    "InsufficientReservedInstanceCapacity",
    "ReservationCapacityExceeded",
    "SpotMaxPriceTooLow",
    "UnfulfillableCapacity",
    // The instance type is not sold in the zone of the subnet.
    "Unsupported",
];

/// The account has reached a quota.
const QUOTA: &[&str] = &[
    "FleetLimitExceeded",
    "InstanceLimitExceeded",
    "MaxFleetCountExceeded",
    "MaxSpotInstanceCountExceeded",
    "VcpuLimitExceeded",
];

/// Returns the AWS error code; `None` if the error is not a response of AWS.
pub(crate) fn code<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> Option<&str> {
    error.as_service_error().and_then(ProvideErrorMetadata::code)
}

/// Converts the error of an SDK call. `action` is the IAM action of the call: `ec2:CreateFleet`.
pub(crate) fn provider_error<E, R>(action: &str, error: SdkError<E, R>) -> ProviderError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    let Some(service) = error.as_service_error() else { return without_answer(action, &error) };
    let said = service.message().unwrap_or_default();
    let Some(code) = service.code() else {
        // An error page of a proxy, or of AWS itself.
        return ProviderError::Transient(format!("{action}: AWS answered with an error that has no code"));
    };
    error_of_code(action, code, said)
}

/// Converts an error without a response: missing credentials, a network failure, or a timeout.
fn without_answer<E, R>(action: &str, error: &SdkError<E, R>) -> ProviderError
where
    E: Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    // Check DNS first: if the region does not exist, fetching credentials fails too, but they are not the cause.
    if let Some(unresolved) = DnsFailure::among(error) {
        return ProviderError::Transient(format!("{action}: {unresolved}"));
    }
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

/// Returns an error and its causes in one line, without repetitions.
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
    truncate(&told.join(": "))
}

pub(crate) fn truncate(text: &str) -> String {
    let mut cut: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN).collect();
    if cut.len() < text.len() {
        cut.push_str("...");
    }
    cut
}

/// Removes the encoded part of an AWS message. It has thousands of characters, and only AWS can decode it.
fn plain(said: &str) -> &str {
    said.split("Encoded authorization failure message").next().unwrap_or_default().trim()
}

/// Parses the denied action and its resource, if the message names them. The action can differ from the call: a launch also needs
/// iam:PassRole.
///
/// Example: `... is not authorized to perform: iam:PassRole on resource: arn:aws:iam::123456789012:role/nodes because ...`.
fn refused(said: &str) -> Option<(&str, Option<&str>)> {
    let word = |text: &'_ str, marker: &str| -> Option<(usize, usize)> {
        let begin = text.find(marker)? + marker.len();
        let length = text[begin..].find(char::is_whitespace).unwrap_or(text.len() - begin);
        (length > 0).then_some((begin, begin + length))
    };
    let (begin, end) = word(said, "not authorized to perform: ")?;
    let action = said[begin..end].trim_end_matches('.');
    if !action.contains(':') {
        return None;
    }
    let rest = &said[end..];
    let resource = word(rest, "on resource: ").map(|(begin, end)| rest[begin..end].trim_end_matches('.'));
    Some((action, resource))
}

/// Returns the message for a denied call: the missing permission and how to grant it.
fn not_allowed(action: &str, code: &str, said: &str) -> String {
    let (named, resource) = refused(said).unwrap_or((action, None));
    let told = format!("{action}{NOT_ALLOWED}{code})");
    if said.contains("explicit deny") {
        return format!(
            "{told}: a policy denies {named} explicitly: change that policy. It may be a policy of the organization. AWS says: {}",
            truncate(said)
        );
    }
    let line = resource.map(|resource| {
        format!(
            " ({{\"Effect\": \"Allow\", \"Action\": \"{named}\", \"Resource\": \"{}\"}})",
            truncate(resource)
        )
    });
    format!(
        "{told}: add {named} to the policy of the role that Poolwright runs with{}, as in docs/aws.md. AWS says: {}",
        line.unwrap_or_default(),
        truncate(said)
    )
}

/// Returns whether the error is a missing permission.
pub(crate) fn is_refusal(error: &ProviderError) -> bool {
    matches!(error, ProviderError::Invalid(told) if told.contains(NOT_ALLOWED))
}

const NOT_ALLOWED: &str = ": not allowed (";

/// Converts an error code of a whole call.
pub(crate) fn error_of_code(action: &str, code: &str, said: &str) -> ProviderError {
    let said = plain(said);
    let told = format!("{action}: {code}: {}", truncate(said));
    if THROTTLED.contains(&code) {
        ProviderError::Throttled(told)
    } else if FORBIDDEN.contains(&code) {
        ProviderError::Invalid(not_allowed(action, code, said))
    } else if EXPIRED.contains(&code) {
        ProviderError::Invalid(format!(
            "{told}. The credentials have expired: log in again, or give the pod a role, whose credentials renew automatically. Also \
             check that the clock of this machine is right"
        ))
    } else if CREDENTIALS.contains(&code) {
        ProviderError::Invalid(format!(
            "{told}. AWS does not accept the credentials: check that they belong to this account, that the clock of this machine is \
             right, and that the region is enabled in the account (aws account get-region-opt-status --region-name REGION)"
        ))
    } else if code.starts_with("AuthFailure.ServiceLinkedRole") {
        ProviderError::Invalid(format!(
            "{told}. Spot instances need a service-linked role in the account; create it once: aws iam create-service-linked-role \
             --aws-service-name spot.amazonaws.com"
        ))
    } else if is_mistake(code) {
        ProviderError::Invalid(told)
    } else {
        ProviderError::Transient(told)
    }
}

/// Returns whether the code means that the request itself is wrong.
fn is_mistake(code: &str) -> bool {
    let beginnings = ["Invalid", "Malformed", "Missing", "Unknown", "Unsupported", "Validation", "Incorrect"];
    let words =
        ["NotFound", "NotExist", "NoSuchEntity", "Blocked", "LimitExceeded", "Incompatible", "Idempotent"];
    beginnings.iter().any(|beginning| code.starts_with(beginning))
        || words.iter().any(|word| code.contains(word))
}

/// Converts the error of one capacity pool of a fleet.
pub(crate) fn launch_error(code: &str, said: &str) -> LaunchError {
    let told = || format!("{code}: {}", truncate(said));
    if STOCK_OUT.contains(&code) {
        LaunchError::StockOut(told())
    } else if QUOTA.contains(&code) {
        LaunchError::Quota(told())
    } else {
        LaunchError::Provider(error_of_code("ec2:CreateFleet", code, said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_one_list() {
        let mut all: Vec<&str> = [THROTTLED, FORBIDDEN, EXPIRED, CREDENTIALS, STOCK_OUT, QUOTA].concat();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn a_code_says_whether_to_wait_to_take_another_or_to_tell_a_person() {
        let of = |code| error_of_code("ec2:CreateFleet", code, "because");
        assert!(matches!(of("RequestLimitExceeded"), ProviderError::Throttled(_)));
        assert!(matches!(of("InternalError"), ProviderError::Transient(_)));
        assert!(matches!(of("Unavailable"), ProviderError::Transient(_)));
        assert!(matches!(of("InvalidSubnetID.NotFound"), ProviderError::Invalid(_)));
        assert!(matches!(launch_error("InsufficientInstanceCapacity", ""), LaunchError::StockOut(_)));
        assert!(matches!(launch_error("VcpuLimitExceeded", ""), LaunchError::Quota(_)));
        assert!(matches!(
            launch_error("InternalError", ""),
            LaunchError::Provider(ProviderError::Transient(_))
        ));
        let ProviderError::Invalid(told) = of("UnauthorizedOperation") else {
            panic!("a person must grant it")
        };
        assert!(told.contains("add ec2:CreateFleet to the policy"), "{told}");
    }

    #[test]
    fn a_message_of_aws_is_shortened_to_one_line() {
        let told = error_of_code("ec2:RunInstances", "InternalError", &"a\nb".repeat(5000)).to_string();
        assert!(told.len() < 500 && !told.contains('\n'), "{told}");
    }

    /// The wording of EC2 in the errors of a fleet.
    const PASS_ROLE: &str = "You are not authorized to perform this operation. User: \
        arn:aws:sts::123456789012:assumed-role/Poolwright/1 is not authorized to perform: iam:PassRole on resource: \
        arn:aws:iam::123456789012:role/PoolwrightNode because no identity-based policy allows the iam:PassRole action. Encoded \
        authorization failure message: 4GIOHlTkIaWHQD0Q0m6XSnuUMCm-abcdefghijklmnopqrstuvwxyz";

    #[test]
    fn a_role_that_may_not_be_passed_is_named_with_the_line_of_the_policy_and_without_noise() {
        let LaunchError::Provider(ProviderError::Invalid(told)) =
            launch_error("UnauthorizedOperation", PASS_ROLE)
        else {
            panic!("a person must grant it")
        };
        let line = "{\"Effect\": \"Allow\", \"Action\": \"iam:PassRole\", \"Resource\": \"arn:aws:iam::123456789012:role/PoolwrightNode\"}";
        assert!(told.contains("add iam:PassRole to the policy") && told.contains(line), "{told}");
        assert!(!told.contains("4GIOHlTk") && !told.contains("Encoded"), "{told}");
    }

    #[test]
    fn an_explicit_deny_gets_no_advice_to_allow_the_action() {
        let said = PASS_ROLE.replace(
            "because no identity-based policy allows the iam:PassRole action",
            "with an explicit deny in a service control policy",
        );
        let told = error_of_code("ec2:RunInstances", "UnauthorizedOperation", &said).to_string();
        assert!(told.contains("denies iam:PassRole explicitly") && !told.contains("add iam"), "{told}");
    }

    #[test]
    fn words_that_name_no_action_leave_the_one_that_was_called() {
        for said in
            ["", "no", "not authorized to perform: ", "is not authorized to perform: this on resource: that"]
        {
            assert_eq!(refused(said), None, "{said}");
        }
        assert_eq!(refused("not authorized to perform: ec2:X."), Some(("ec2:X", None)));
    }

    #[test]
    fn credentials_that_expired_and_regions_that_are_not_enabled_are_told_apart_from_permissions() {
        let of = |code| error_of_code("ec2:DescribeSubnets", code, "").to_string();
        for code in EXPIRED {
            assert!(of(code).contains("have expired") && of(code).contains("clock"), "{}", of(code));
        }
        for code in ["OptInRequired", "AuthFailure", "UnrecognizedClientException"] {
            assert!(of(code).contains("get-region-opt-status"), "{}", of(code));
        }
    }
}
