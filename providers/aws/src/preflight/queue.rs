//! Checks the interruption queue: it exists, it belongs to this account, and EventBridge may send to it.

use aws_sdk_sqs::types::QueueAttributeName;
use poolwright_provider_contract::preflight::{CheckResult, Verdict};
use serde_json::Value;

use super::account::Caller;
use super::answer::CallResult;
use super::{QUEUE, Scope, deploy};
use crate::clients::Clients;

/// The facts about the queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct QueueState {
    /// The results of its checks.
    pub results: Vec<CheckResult>,
    /// The response to GetQueueUrl; `None` if a URL is given.
    pub lookup: Option<CallResult>,
    /// Its URL, if it exists.
    pub url: Option<String>,
    /// The number of messages, if the caller may read it.
    pub messages: Option<u64>,
}

/// The response to GetQueueAttributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Attributes {
    arn: String,
    policy: Option<String>,
    redrive: Option<String>,
}

/// Judges which account owns the queue.
fn owner(arn: &str, caller: &Caller) -> Verdict {
    // arn:aws:sqs:us-east-1:123456789012:name
    let parts: Vec<&str> = arn.split(':').collect();
    let (Some(region), Some(account)) = (parts.get(3), parts.get(4)) else {
        return Verdict::undetermined(format!("its ARN is `{arn}`"));
    };
    if *account != caller.account {
        return Verdict::wrong(
            format!(
                "it belongs to account {account}, and the nodes to {}: Poolwright ignores its messages",
                caller.account
            ),
            "give a queue of this account with --aws-interruption-queue",
        );
    }
    if *region != caller.region {
        return Verdict::wrong(
            format!(
                "it is in {region}, and the nodes in {}: EventBridge sends within a region",
                caller.region
            ),
            format!("give a queue in {} with --aws-interruption-queue", caller.region),
        );
    }
    Verdict::fine(arn)
}

/// Judges whether its policy allows EventBridge to send.
fn sender(policy: Option<&str>, arn: &str) -> Verdict {
    let line = format!(
        "add to the policy of the queue: {{\"Effect\": \"Allow\", \"Principal\": {{\"Service\": \"events.amazonaws.com\"}}, \
         \"Action\": \"sqs:SendMessage\", \"Resource\": \"{arn}\"}}"
    );
    let Some(policy) = policy.filter(|text| !text.is_empty()) else {
        return Verdict::wrong("it has no policy, so EventBridge may not send to it", line);
    };
    let Ok(policy) = serde_json::from_str::<Value>(policy) else {
        return Verdict::undetermined("its policy cannot be read as JSON");
    };
    let statements = match &policy["Statement"] {
        Value::Array(all) => all.clone(),
        one => vec![one.clone()],
    };
    let about_us =
        |statement: &Value| names_events(&statement["Principal"]) && names_sending(&statement["Action"]);
    let with = |effect: &str| statements.iter().find(|one| one["Effect"] == effect && about_us(one));
    let is_plain = |one: &Value| one.get("Condition").is_none();
    match (with("Deny"), with("Allow")) {
        (Some(deny), _) if is_plain(deny) => Verdict::wrong(
            "its policy denies sending to EventBridge",
            "remove the statement with Effect Deny for events.amazonaws.com",
        ),
        (_, Some(_)) => Verdict::fine("events.amazonaws.com may send"),
        (_, None) => Verdict::wrong("its policy does not let EventBridge send", line),
    }
}

fn names_events(principal: &Value) -> bool {
    let names = |value: &Value| match value {
        Value::String(name) => name == "*" || name == "events.amazonaws.com",
        Value::Array(names) => names.iter().any(|name| name == "*" || name == "events.amazonaws.com"),
        _ => false,
    };
    names(principal) || names(&principal["Service"]) || principal["AWS"] == "*"
}

fn names_sending(action: &Value) -> bool {
    let is = |name: &Value| {
        name.as_str()
            .is_some_and(|name| ["*", "sqs:*", "sqs:sendmessage"].contains(&name.to_lowercase().as_str()))
    };
    match action {
        Value::Array(actions) => actions.iter().any(is),
        one => is(one),
    }
}

/// The fewest deliveries after which a message may move to the dead-letter queue. SQS delivers a message again after thirty
/// seconds. If the launch of its instance may not be recorded yet, Poolwright leaves it in the queue for five minutes.
const FEWEST_DELIVERIES: u64 = 12;

/// Judges whether unreadable messages move to a dead-letter queue, and no others do.
fn dead_letters(redrive: Option<&str>) -> Verdict {
    let policy: Value = redrive.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    if !policy["deadLetterTargetArn"].is_string() {
        return Verdict::wrong(
            "it has no dead-letter queue, so unreadable messages come back until they expire",
            "deploy deploy/aws-cloudformation.yaml (docs/aws.md), or give it a RedrivePolicy with maxReceiveCount 20",
        );
    }
    // The API returns the number as it was set: as a number or as text.
    let limit = &policy["maxReceiveCount"];
    let limit = limit.as_u64().or_else(|| limit.as_str()?.parse().ok());
    match limit.filter(|limit| *limit < FEWEST_DELIVERIES) {
        Some(limit) => Verdict::wrong(
            format!(
                "messages move to the dead-letter queue after {limit} deliveries, which may be before Poolwright can record them"
            ),
            "set maxReceiveCount to 20 in its RedrivePolicy: deploy deploy/aws-cloudformation.yaml again (docs/aws.md)",
        ),
        None => Verdict::fine("unreadable messages move to the dead-letter queue"),
    }
}

/// Makes the calls. Receives no message.
pub(super) async fn check(clients: &Clients, scope: &Scope, caller: &Caller) -> QueueState {
    let result = |name: &str, verdict| CheckResult::new(QUEUE, name, verdict);
    let Some(queue) = scope.queue.as_deref() else {
        let why = "no queue is given (--aws-interruption-queue), so Poolwright finds interruptions only by polling EC2 once a minute";
        return QueueState {
            results: vec![result("queue", Verdict::undetermined(why))],
            ..QueueState::default()
        };
    };
    let name = queue.rsplit('/').next().unwrap_or(queue);
    let asked = clients.sqs.get_queue_url().queue_name(name).send().await;
    let answer = CallResult::of(&asked);
    let url = match (&asked, queue.starts_with("http")) {
        (_, true) => queue.to_owned(),
        (Ok(found), false) => found.queue_url().unwrap_or_default().to_owned(),
        (Err(_), false) => {
            let verdict = match &answer {
                CallResult::Refused { code, .. }
                    if code.contains("NonExistentQueue") || code.contains("QueueDoesNotExist") =>
                {
                    Verdict::wrong(
                        format!(
                            "there is no queue {name} in {} of account {}",
                            caller.region, caller.account
                        ),
                        deploy(&scope.cluster, &format!("QueueName={name}")),
                    )
                }
                answer if answer.is_forbidden() => {
                    Verdict::undetermined("Poolwright may not look it up; see the permissions")
                }
                answer => Verdict::undetermined(answer.reason()),
            };
            return QueueState {
                results: vec![result("queue", verdict)],
                lookup: Some(answer),
                ..QueueState::default()
            };
        }
    };
    let read = clients
        .sqs
        .get_queue_attributes()
        .queue_url(&url)
        .attribute_names(QueueAttributeName::All)
        .send()
        .await;
    let read_result = CallResult::of(&read);
    let Ok(read) = read else {
        let verdict = match &read_result {
            CallResult::Refused { code, .. }
                if code.contains("NonExistentQueue") || code.contains("QueueDoesNotExist") =>
            {
                Verdict::wrong(format!("there is no queue at {url}"), "correct --aws-interruption-queue")
            }
            read_result if read_result.is_forbidden() => Verdict::undetermined(format!(
                "it exists; sqs:GetQueueAttributes is not allowed, which Poolwright needs for nothing else: aws sqs \
                 get-queue-attributes --queue-url {url} --attribute-names All"
            )),
            read_result => Verdict::undetermined(read_result.reason()),
        };
        return QueueState {
            results: vec![result("queue", verdict)],
            lookup: Some(answer),
            url: Some(url),
            messages: None,
        };
    };
    let attribute = |name: QueueAttributeName| read.attributes().and_then(|all| all.get(&name)).cloned();
    let attributes = Attributes {
        arn: attribute(QueueAttributeName::QueueArn).unwrap_or_default(),
        policy: attribute(QueueAttributeName::Policy),
        redrive: attribute(QueueAttributeName::RedrivePolicy),
    };
    let count = |name| attribute(name)?.parse::<u64>().ok();
    QueueState {
        results: vec![
            result("queue", owner(&attributes.arn, caller)),
            result("policy", sender(attributes.policy.as_deref(), &attributes.arn)),
            result("dead letters", dead_letters(attributes.redrive.as_deref())),
            result(
                "rules",
                Verdict::undetermined(format!(
                    "Poolwright does not call EventBridge; check the rules yourself: aws events list-rule-names-by-target --target-arn {}",
                    attributes.arn
                )),
            ),
        ],
        lookup: Some(answer),
        url: Some(url),
        messages: count(QueueAttributeName::ApproximateNumberOfMessages),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ARN: &str = "arn:aws:sqs:us-east-1:123456789012:q";

    fn policy(statement: &Value) -> String {
        json!({"Version": "2012-10-17", "Statement": statement}).to_string()
    }

    #[test]
    fn a_queue_of_another_account_or_region_is_wrong() {
        let caller = Caller { account: "123456789012".to_owned(), region: "us-east-1".to_owned() };
        assert_eq!(owner(ARN, &caller), Verdict::fine(ARN));
        let other = owner("arn:aws:sqs:us-east-1:999999999999:q", &caller);
        let Verdict::Wrong { why, .. } = other else { panic!("{other:?}") };
        assert!(why.contains("999999999999") && why.contains("123456789012"), "{why}");
        assert!(owner("arn:aws:sqs:eu-west-1:123456789012:q", &caller).is_wrong());
        assert!(matches!(owner("", &caller), Verdict::Undetermined(_)));
    }

    #[test]
    fn eventbridge_may_send_when_a_statement_says_so_and_none_denies_it() {
        let allow = json!({"Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"}, "Action": "sqs:SendMessage",
            "Resource": ARN});
        let fine = |statement: &Value| matches!(sender(Some(&policy(statement)), ARN), Verdict::Fine(_));
        assert!(fine(&allow), "a statement alone");
        assert!(fine(
            &json!([{"Effect": "Allow", "Principal": {"Service": ["sqs.amazonaws.com", "events.amazonaws.com"]},
            "Action": ["SQS:SendMessage"]}])
        ));
        let tls = json!({"Effect": "Deny", "Principal": "*", "Action": "sqs:*",
            "Condition": {"Bool": {"aws:SecureTransport": "false"}}});
        assert!(fine(&json!([tls, allow])), "a denial under a condition is not about EventBridge");
        assert!(!fine(&json!([{"Effect": "Deny", "Principal": "*", "Action": "sqs:*"}, allow])));
        assert!(!fine(
            &json!([{"Effect": "Allow", "Principal": {"Service": "s3.amazonaws.com"}, "Action": "sqs:*"}])
        ));
        assert!(!fine(&json!([{"Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:ReceiveMessage"}])));
        let Verdict::Wrong { fix, .. } = sender(None, ARN) else {
            panic!("without a policy nobody may send")
        };
        assert!(fix.contains(ARN) && fix.contains("events.amazonaws.com"), "{fix}");
        assert!(matches!(sender(Some("{"), ARN), Verdict::Undetermined(_)));
    }

    #[test]
    fn without_dead_letters_what_cannot_be_read_comes_again_and_again() {
        assert!(dead_letters(None).is_wrong());
        assert!(dead_letters(Some("{")).is_wrong());
        assert!(!dead_letters(Some("{\"deadLetterTargetArn\":\"arn\",\"maxReceiveCount\":20}")).is_wrong());
        assert!(
            !dead_letters(Some("{\"deadLetterTargetArn\":\"arn\",\"maxReceiveCount\":\"20\"}")).is_wrong()
        );
    }

    #[test]
    fn messages_must_not_move_to_the_dead_letters_before_they_can_be_recorded() {
        for limit in ["5", "\"5\"", "11"] {
            let redrive = format!("{{\"deadLetterTargetArn\":\"arn\",\"maxReceiveCount\":{limit}}}");
            let Verdict::Wrong { why, fix } = dead_letters(Some(&redrive)) else {
                panic!("{limit} is too few")
            };
            assert!(why.contains("deliveries") && fix.contains("maxReceiveCount to 20"), "{why}: {fix}");
        }
    }
}
