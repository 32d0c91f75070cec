//! Compares the CloudFormation template of the documents with the controller's policy and with the events that Poolwright reads.

use std::collections::BTreeSet;
use std::fs;

use poolwright_provider_aws_model::events;
use serde_json::{Value, json};

use crate::support::path;

/// The placeholders of the policy, with their names in the template.
const NAMES: [(&str, &str); 6] = [
    ("AWS_PARTITION", "AWS::Partition"),
    ("AWS_REGION", "AWS::Region"),
    ("AWS_ACCOUNT", "AWS::AccountId"),
    ("CLUSTER_NAME", "ClusterName"),
    ("NODE_ROLE", "NodeRoleName"),
    ("QUEUE_NAME", "QueueName"),
];

fn template() -> Value {
    let text = fs::read_to_string(path("deploy/aws-cloudformation.yaml")).expect("the template");
    serde_saphyr::from_str(&text).expect("plain YAML")
}

/// Returns the properties of the resources of a type, by name.
fn of_type<'a>(template: &'a Value, kind: &str) -> Vec<(&'a String, &'a Value)> {
    let resources = template["Resources"].as_object().expect("resources");
    resources
        .iter()
        .filter(|(_, one)| one["Type"] == kind)
        .map(|(name, one)| (name, &one["Properties"]))
        .collect()
}

/// Replaces `{"Fn::Sub": text}` by the text with the placeholders of the policy.
fn with_placeholders(value: &Value) -> Value {
    match value {
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("Fn::Sub") => {
            let mut text = fields["Fn::Sub"].as_str().expect("a text").to_owned();
            for (placeholder, name) in NAMES {
                text = text.replace(&format!("${{{name}}}"), &format!("${{{placeholder}}}"));
            }
            Value::String(text)
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), with_placeholders(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(values) => values.iter().map(with_placeholders).collect(),
        other => other.clone(),
    }
}

#[test]
fn the_controllers_policy_in_the_template_is_the_one_in_the_documents() {
    let template = template();
    let policy: Value = serde_json::from_str(
        &fs::read_to_string(path("deploy/aws-controller-policy.json")).expect("the policy"),
    )
    .expect("JSON");
    let [(_, properties)] = &of_type(&template, "AWS::IAM::ManagedPolicy")[..] else {
        panic!("one policy is the controller's")
    };
    assert_eq!(with_placeholders(&properties["PolicyDocument"]), policy);
    let role = &template["Resources"]["ControllerRole"]["Properties"];
    assert_eq!(role["ManagedPolicyArns"], json!([{"Ref": "ControllerPolicy"}]));
    // Only the controller's own pod can assume the role.
    let trust = &role["AssumeRolePolicyDocument"]["Statement"][0]["Fn::If"][1];
    assert_eq!(trust["Principal"]["Service"], "pods.eks.amazonaws.com");
    let conditions = trust["Condition"]["StringEquals"].as_object().expect("conditions");
    for tag in ["eks-cluster-name", "kubernetes-namespace", "kubernetes-service-account"] {
        assert!(conditions.contains_key(&format!("aws:RequestTag/{tag}")), "{conditions:?}");
    }
}

#[test]
fn every_kind_of_event_that_is_read_is_sent_to_the_queue_by_a_rule_and_no_other() {
    let template = template();
    let mut sent = BTreeSet::new();
    for (name, rule) in of_type(&template, "AWS::Events::Rule") {
        assert_eq!(rule["Targets"][0]["Arn"], json!({"Fn::GetAtt": ["Queue", "Arn"]}), "{name}");
        assert_eq!(rule["Targets"].as_array().map(Vec::len), Some(1), "{name}");
        let texts = |key: &str| -> Vec<String> {
            let values = rule["EventPattern"][key].as_array().expect("a list");
            values.iter().map(|value| value.as_str().expect("a text").to_owned()).collect()
        };
        for source in texts("source") {
            for kind in texts("detail-type") {
                assert!(sent.insert((source.clone(), kind.clone())), "{kind} is sent twice");
            }
        }
    }
    let read: BTreeSet<_> =
        events::known().map(|(source, kind)| (source.to_owned(), kind.to_owned())).collect();
    assert_eq!(sent, read);
}

#[test]
fn the_queue_is_encrypted_takes_events_of_the_account_alone_and_has_dead_letters() {
    let template = template();
    let queues = of_type(&template, "AWS::SQS::Queue");
    assert_eq!(queues.len(), 2);
    assert!(queues.iter().all(|(_, queue)| queue["SqsManagedSseEnabled"] == true));
    let redrive = &template["Resources"]["Queue"]["Properties"]["RedrivePolicy"];
    assert_eq!(redrive["deadLetterTargetArn"], json!({"Fn::GetAtt": ["DeadLetters", "Arn"]}));
    assert_eq!(redrive["maxReceiveCount"], 20, "ten minutes: longer than a message may wait to be recorded");
    let [(_, policy)] = &of_type(&template, "AWS::SQS::QueuePolicy")[..] else {
        panic!("one policy is for both")
    };
    let allow = &policy["PolicyDocument"]["Statement"][0];
    assert_eq!(allow["Principal"]["Service"], json!(["events.amazonaws.com", "sqs.amazonaws.com"]));
    assert_eq!(allow["Condition"]["StringEquals"]["aws:SourceAccount"], json!({"Ref": "AWS::AccountId"}));
}

#[test]
fn the_nodes_role_has_what_nodes_need_and_the_profile_the_name_that_is_looked_for() {
    let template = template();
    let role = &template["Resources"]["NodeRole"]["Properties"];
    let policies = role["ManagedPolicyArns"].to_string();
    for policy in ["AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly"]
    {
        assert!(policies.contains(policy), "{policies}");
    }
    let profile = &template["Resources"]["NodeProfile"]["Properties"];
    assert_eq!(profile["InstanceProfileName"], json!({"Fn::Sub": "poolwright-${NodeRoleName}"}));
    assert_eq!(profile["Roles"], json!([{"Ref": "NodeRole"}]));
    assert_eq!(template["Resources"]["NodesMayJoin"]["Properties"]["Type"], "EC2_LINUX");
}
