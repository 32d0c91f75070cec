//! Checks the identity of the caller, the region and the clock.

use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_sts::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_sts::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_sts::error::BoxError;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use poolwright_provider_contract::preflight::{CheckResult, Verdict};

use super::ACCOUNT;
use super::answer::CallResult;
use crate::clients::Clients;
use crate::dns::DnsFailure;

/// The identity of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    /// The account.
    pub account: String,
    /// The region.
    pub region: String,
}

/// AWS rejects signatures that are more than five minutes off; a clock that is a minute off is not synchronised.
/// Source: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html>.
const TOO_FAR: i64 = 60;

/// Judges the response to GetCallerIdentity.
fn credentials(answer: &CallResult, who: Option<(&str, &str)>) -> Verdict {
    let code = match (answer, who) {
        (CallResult::Done, Some((arn, account))) => {
            return Verdict::fine(format!("{arn}, account {account}"));
        }
        (CallResult::NoCredentials, _) => {
            return Verdict::wrong(
                "there are none: no environment variables, no profile, and no role of this pod or machine",
                "aws eks create-pod-identity-association --cluster-name CLUSTER --namespace poolwright \
                 --service-account poolwright --role-arn ROLE (in a pod), or export AWS_PROFILE=NAME",
            );
        }
        (CallResult::Refused { code, .. }, _) => code.as_str(),
        (other, _) => return Verdict::undetermined(other.reason()),
    };
    match code {
        "ExpiredToken" | "ExpiredTokenException" | "RequestExpired" => Verdict::wrong(
            format!("they have expired ({code})"),
            "aws sso login, or export a new AWS_SESSION_TOKEN",
        ),
        "SignatureDoesNotMatch" | "IncompleteSignature" => Verdict::wrong(
            format!("the secret does not belong to the key, or the clock of this machine is wrong ({code})"),
            "aws configure list (shows which key is used, and where it is from)",
        ),
        "InvalidClientTokenId" | "InvalidAccessKeyId" | "UnrecognizedClientException" | "AuthFailure" => {
            Verdict::wrong(
                format!("AWS does not know the key, or the key belongs to another partition ({code})"),
                "aws configure list (shows which key is used, and where it is from)",
            )
        }
        _ => Verdict::undetermined(answer.reason()),
    }
}

/// Returns the verdict about a region; `status` is its opt-in status, `None` if EC2 does not know the region.
fn region(name: &str, answer: &CallResult, status: Option<&str>) -> Verdict {
    match (answer, status) {
        (CallResult::Done, Some("not-opted-in")) => Verdict::wrong(
            format!("{name} is not enabled in this account"),
            format!("aws account enable-region --region-name {name}"),
        ),
        (CallResult::Done, Some(_)) => Verdict::fine(format!("{name} answers and is enabled")),
        (CallResult::Done, None) => Verdict::wrong(
            format!("there is no region {name}"),
            "aws ec2 describe-regions --all-regions --query Regions[].RegionName (lists the names for --aws-region)",
        ),
        // EC2 authenticated the caller. In a region that the account has not enabled it would not.
        (answer, _) if answer.is_forbidden() => Verdict::fine(format!("{name} answers")),
        (CallResult::Refused { code, .. }, _) if code == "OptInRequired" || code == "AuthFailure" => {
            Verdict::wrong(
                format!("{name} does not accept this account ({code})"),
                format!("aws account enable-region --region-name {name}"),
            )
        }
        (CallResult::DnsFailure(DnsFailure::OfRegion { host, why, .. }), _) => Verdict::wrong(
            format!("{host} does not resolve ({why}): there is no region {name}, or DNS does not work"),
            "correct --aws-region, AWS_REGION or the profile; if the region is right, check the DNS of this machine",
        ),
        (CallResult::NoResponse(why), _) => Verdict::wrong(
            format!("{name} does not answer: {why}"),
            format!(
                "curl -sS https://ec2.{name}.amazonaws.com/ping (must answer healthy; if not, correct --aws-region or the network)"
            ),
        ),
        (answer, _) => Verdict::undetermined(answer.reason()),
    }
}

/// Judges whether the clocks of AWS and this machine agree.
fn clock(theirs: Option<Timestamp>, ours: Timestamp) -> Verdict {
    let Some(theirs) = theirs else { return Verdict::undetermined("no response of AWS had a date") };
    let ahead = ours.as_second() - theirs.as_second();
    if ahead.abs() <= TOO_FAR {
        return Verdict::fine(format!("within {TOO_FAR} s of AWS's"));
    }
    let which = if ahead > 0 { "ahead of" } else { "behind" };
    Verdict::wrong(
        format!(
            "the clock of this machine is {} s {which} AWS's: AWS rejects requests from a clock that is five minutes off",
            ahead.abs()
        ),
        "timedatectl set-ntp true",
    )
}

/// Records the date of every response, successful or not.
#[derive(Clone, Debug, Default)]
struct Dated(Arc<Mutex<Option<Timestamp>>>);

impl Intercept for Dated {
    fn name(&self) -> &'static str {
        "Dated"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date").and_then(|text| rfc2822::parse(text).ok());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = date.map(|date| date.timestamp());
        Ok(())
    }
}

/// Makes the calls. The other groups need the identity of the caller.
pub(super) async fn check(clients: &Clients, now: Timestamp) -> (Vec<CheckResult>, Option<Caller>) {
    let dated = Dated::default();
    let identity = clients.sts.get_caller_identity().customize().interceptor(dated.clone()).send().await;
    let answer = CallResult::of(&identity);
    let identity = identity.ok();
    let who = identity.as_ref().and_then(|who| Some((who.arn()?, who.account()?)));
    let caller =
        who.map(|(_, account)| Caller { account: account.to_owned(), region: clients.region.clone() });
    let mut results = vec![CheckResult::new(ACCOUNT, "credentials", credentials(&answer, who))];
    if caller.is_some() {
        let asked = clients.ec2.describe_regions().all_regions(true).send().await;
        let answer = CallResult::of(&asked);
        let status = asked.ok().and_then(|asked| {
            let found = asked.regions().iter().find(|one| one.region_name() == Some(&clients.region))?;
            Some(found.opt_in_status().unwrap_or("opt-in-not-required").to_owned())
        });
        results.push(CheckResult::new(
            ACCOUNT,
            "region",
            region(&clients.region, &answer, status.as_deref()),
        ));
    } else {
        let verdict = match &answer {
            CallResult::DnsFailure(_) => region(&clients.region, &answer, None),
            _ => Verdict::undetermined("AWS did not identify the caller; see above"),
        };
        results.push(CheckResult::new(ACCOUNT, "region", verdict));
    }
    let theirs = *dated.0.lock().unwrap_or_else(PoisonError::into_inner);
    results.push(CheckResult::new(ACCOUNT, "clock", clock(theirs, now)));
    (results, caller)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(verdict: Verdict) -> (String, String) {
        match verdict {
            Verdict::Wrong { why, fix } => (why, fix),
            other => panic!("it is wrong: {other:?}"),
        }
    }

    #[test]
    fn credentials_that_are_missing_expired_or_wrong_are_told_apart_each_with_what_to_do() {
        let (none, fix) = why(credentials(&CallResult::NoCredentials, None));
        assert!(
            none.contains("there are none") && fix.contains("create-pod-identity-association"),
            "{none} {fix}"
        );
        let (expired, fix) = why(credentials(&CallResult::refused("ExpiredToken"), None));
        assert!(expired.contains("expired") && fix.contains("aws sso login"), "{expired} {fix}");
        let (unknown, _) = why(credentials(&CallResult::refused("InvalidClientTokenId"), None));
        assert!(unknown.contains("does not know the key"), "{unknown}");
        let (secret, _) = why(credentials(&CallResult::refused("SignatureDoesNotMatch"), None));
        assert!(secret.contains("secret does not belong to the key"), "{secret}");
        assert!(matches!(
            credentials(&CallResult::refused("RequestLimitExceeded"), None),
            Verdict::Undetermined(_)
        ));
        let fine = credentials(&CallResult::Done, Some(("arn:aws:iam::1:role/r", "1")));
        assert_eq!(fine, Verdict::fine("arn:aws:iam::1:role/r, account 1"));
    }

    #[test]
    fn a_region_check_reports_missing_disabled_and_silent_regions_with_a_fix() {
        assert!(matches!(region("eu-south-2", &CallResult::Done, Some("opted-in")), Verdict::Fine(_)));
        let (_, fix) = why(region("eu-south-2", &CallResult::Done, Some("not-opted-in")));
        assert_eq!(fix, "aws account enable-region --region-name eu-south-2");
        assert!(why(region("us-esat-1", &CallResult::Done, None)).0.contains("no region us-esat-1"));
        assert!(matches!(
            region("us-east-1", &CallResult::refused("UnauthorizedOperation"), None),
            Verdict::Fine(_)
        ));
        let unresolved = CallResult::DnsFailure(DnsFailure::OfRegion {
            region: "us-esat-1".to_owned(),
            host: "sts.us-esat-1.amazonaws.com".to_owned(),
            why: "dns error".to_owned(),
        });
        let (none, fix) = why(region("us-esat-1", &unresolved, None));
        assert!(
            none.contains("there is no region us-esat-1") && fix.contains("--aws-region"),
            "{none} {fix}"
        );
        let silent = CallResult::NoResponse("dns error".to_owned());
        assert!(why(region("us-esat-1", &silent, None)).0.contains("dns error"));
    }

    #[test]
    fn a_clock_that_is_a_minute_off_is_told_in_which_direction() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        assert!(matches!(clock(Some(at(1_000)), at(1_060)), Verdict::Fine(_)));
        assert!(why(clock(Some(at(1_000)), at(1_061))).0.contains("61 s ahead of"));
        assert!(why(clock(Some(at(1_000)), at(600))).0.contains("400 s behind"));
        assert!(matches!(clock(None, at(1)), Verdict::Undetermined(_)));
    }
}
