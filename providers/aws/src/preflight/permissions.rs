//! Judges the permission for each action by the response to its probe.

use poolwright_provider_contract::preflight::{CheckResult, Verdict};

use super::answer::CallResult;
use super::classes::Parts;
use super::queue::QueueState;
use super::{PERMISSIONS, Scope, probes};
use crate::clients::Clients;

/// Every action of `deploy/aws-controller-policy.json`, in its order; a test compares them.
pub(super) const ACTIONS: [&str; 29] = [
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeFleets",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSpotInstanceRequests",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeSubnets",
    "ec2:DescribeTags",
    "pricing:GetProducts",
    "ssm:GetParameters",
    "ec2:CreateFleet",
    "ec2:RunInstances",
    "ec2:CreateLaunchTemplate",
    "ec2:CreateTags",
    "ec2:TerminateInstances",
    "ec2:DeleteLaunchTemplate",
    "iam:PassRole",
    "iam:GetInstanceProfile",
    "iam:CreateInstanceProfile",
    "iam:AddRoleToInstanceProfile",
    "sqs:GetQueueUrl",
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
];

/// EC2's error code for a permitted dry run.
/// Source: <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/CommonParameters.html>, `DryRun`.
const DRY_RUN: &str = "DryRunOperation";

/// The probe of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// A call, and the error codes that only permitted callers get.
    Called(CallResult, &'static [&'static str]),
    /// No call, with the reason.
    Skipped(String),
}

/// Returns the verdict of a probe.
pub(super) fn verdict(action: &str, probe: &Probe) -> Verdict {
    let (answer, through) = match probe {
        Probe::Skipped(why) => return Verdict::undetermined(why.clone()),
        Probe::Called(answer, through) => (answer, *through),
    };
    match answer {
        CallResult::Done => Verdict::fine("allowed"),
        CallResult::Refused { code, .. } if code == DRY_RUN || through.contains(&code.as_str()) => {
            Verdict::fine("allowed")
        }
        CallResult::Refused { blamed: Some(other), .. } if answer.is_forbidden() && other != action => {
            Verdict::undetermined(format!("the call was refused for lack of {other} first"))
        }
        answer if answer.is_forbidden() => Verdict::wrong("not allowed", fix(action)),
        answer => Verdict::undetermined(answer.reason()),
    }
}

/// Returns the policy statement that allows an action.
fn fix(action: &str) -> String {
    let sid = match action {
        "ec2:CreateFleet" | "ec2:RunInstances" => {
            "LaunchFromWhatIsThere, LaunchFromOwnTemplates and MakeWithTheTagOfTheCluster"
        }
        "ec2:CreateLaunchTemplate" => "MakeWithTheTagOfTheCluster",
        "ec2:CreateTags" => "TagWhatIsBeingMade and SayWhichClaimItIsFor",
        "ec2:TerminateInstances" | "ec2:DeleteLaunchTemplate" => "GiveBackWhatIsOwn",
        "iam:PassRole" => "GiveNodesTheirRole",
        "iam:GetInstanceProfile" => "LookAtInstanceProfiles",
        action if action.starts_with("iam:") => "MakeInstanceProfiles",
        action if action.starts_with("sqs:") => "HearOfInterruptions",
        _ => "Look",
    };
    format!("add \"{action}\" to the policy, as in deploy/aws-controller-policy.json: statement {sid}")
}

/// Probes every action.
pub(super) async fn check(
    clients: &Clients,
    scope: &Scope,
    parts: &[Parts<'_>],
    queue: &QueueState,
) -> Vec<CheckResult> {
    let mut tried = probes::try_all(clients, scope, parts, queue).await;
    let result = |action: &str| {
        let tried = tried.remove(action).unwrap_or_else(|| Probe::Skipped("nothing tries it".to_owned()));
        CheckResult::new(PERMISSIONS, action, verdict(action, &tried))
    };
    ACTIONS.into_iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_action_of_the_policy_is_looked_at_and_no_other_and_its_statement_is_named() {
        let policy: serde_json::Value =
            serde_json::from_str(include_str!("../../../../deploy/aws-controller-policy.json"))
                .expect("JSON");
        let mut allowed = BTreeSet::new();
        for statement in policy["Statement"].as_array().expect("statements") {
            let sid = statement["Sid"].as_str().expect("a Sid");
            let actions = match &statement["Action"] {
                serde_json::Value::String(action) => vec![action.as_str()],
                actions => {
                    let actions = actions.as_array().expect("actions");
                    actions.iter().map(|action| action.as_str().expect("an action")).collect()
                }
            };
            for action in actions {
                assert!(fix(action).contains(sid), "{action} is in {sid}: {}", fix(action));
                allowed.insert(action.to_owned());
            }
        }
        assert_eq!(ACTIONS.map(str::to_owned).into_iter().collect::<BTreeSet<_>>(), allowed);
    }

    #[test]
    fn an_action_is_allowed_when_only_the_dry_run_or_what_is_not_there_stopped_it() {
        let called = |answer, through| verdict("ec2:CreateFleet", &Probe::Called(answer, through));
        assert_eq!(called(CallResult::Done, &[]), Verdict::fine("allowed"));
        assert_eq!(called(CallResult::refused("DryRunOperation"), &[]), Verdict::fine("allowed"));
        assert_eq!(called(CallResult::refused("NoSuchEntity"), &["NoSuchEntity"]), Verdict::fine("allowed"));
        assert!(matches!(called(CallResult::refused("NoSuchEntity"), &[]), Verdict::Undetermined(_)));
        assert!(matches!(
            called(CallResult::NoResponse("no route".to_owned()), &[]),
            Verdict::Undetermined(_)
        ));
    }

    #[test]
    fn a_denied_probe_is_attributed_to_the_action_that_aws_names() {
        let refused = |blamed: Option<&str>| {
            let blamed = blamed.map(str::to_owned);
            Probe::Called(CallResult::Refused { code: "UnauthorizedOperation".to_owned(), blamed }, &[])
        };
        let Verdict::Wrong { fix, .. } = verdict("ec2:CreateFleet", &refused(None)) else {
            panic!("it is wrong")
        };
        assert!(fix.contains("\"ec2:CreateFleet\""), "{fix}");
        assert!(verdict("ec2:CreateFleet", &refused(Some("ec2:CreateFleet"))).is_wrong());
        let other = verdict("ec2:CreateFleet", &refused(Some("iam:PassRole")));
        assert_eq!(other, Verdict::undetermined("the call was refused for lack of iam:PassRole first"));
    }
}
