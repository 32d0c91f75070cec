//! The registration of AWS: name, flags, node class and examples.

use kube::CustomResourceExt;
use poolwright_api::{FieldProblem, strict};
use poolwright_provider_contract::{
    Example, Flag, MarketRegistration, NodeClass, NodeClassFacts, Registration,
};
use serde_json::Value;

use crate::karpenter::Karpenter;
use crate::node_class::{AmiFamily, EC2NodeClass, PATTERNS, conditions};
use crate::reason::AwsReason;
use crate::{connect, market, preflight, resolve};

/// The name of the cloud.
pub(crate) const NAME: &str = "aws";

/// The registration of AWS.
pub const REGISTRATION: Registration = Registration {
    name: NAME,
    short: "AWS",
    title: "Amazon Web Services: EC2",
    node_class: NODE_CLASS,
    reasons: AwsReason::TABLE,
    flags: &FLAGS,
    enabled_by: Some(CLUSTER),
    connect: &connect::Aws,
    preflight: Some(&preflight::Aws),
    market: Some(MarketRegistration { flags: &[REGION_OF_MARKET], reader: &market::Reader }),
    karpenter: Some(&Karpenter),
    examples: &EXAMPLES,
};

const EXAMPLES: [Example; 4] = [
    Example {
        command: "check",
        question: "Is the AWS account ready, too? Give the same flags as for the controller",
        flags: "--provider aws --aws-cluster my-cluster --aws-interruption-queue my-queue",
    },
    Example {
        command: "check",
        question: "Before you install anything: do the resources in this node class exist?",
        flags: "--provider aws --aws-cluster my-cluster -f nodeclass.yaml",
    },
    Example {
        command: "gpus",
        question: "What does AWS sell in Frankfurt, and which of it does Poolwright buy?",
        flags: "--provider aws --aws-region eu-central-1",
    },
    Example {
        command: "prices",
        question: "What does an H100 cost on AWS now, as spot?",
        flags: "--provider aws --gpu h100 --capacity-type spot",
    },
];

/// The node class EC2NodeClass.
const NODE_CLASS: NodeClass = NodeClass {
    kind: resolve::NODE_CLASS,
    crd: EC2NodeClass::crd,
    patterns: &PATTERNS,
    conditions: &conditions::ALL,
    read,
    sells: market::sells,
    leaves_out: market::leaves_out,
    adds: market::ADDS,
};

fn read(object: &Value) -> Result<NodeClassFacts, Vec<FieldProblem>> {
    let class: EC2NodeClass = strict::read(object)?;
    let family = resolve::family(&class.spec);
    let kept = resolve::kubelet::reserved(&class.spec);
    let of_family = |family: &AmiFamily| resolve::user_data::refusals(&class.spec, *family);
    let refused = family.as_ref().map_or_else(|_| Vec::new(), of_family);
    let wrong = family.as_ref().err().into_iter().chain(kept.as_ref().err()).chain(&refused);
    let wrong: Vec<FieldProblem> = wrong.map(problem).collect();
    let Some(family) = family.ok().filter(|_| wrong.is_empty()) else { return Err(wrong) };
    Ok(NodeClassFacts {
        provider: Some(NAME.to_owned()),
        needs_bootstrap_tokens: family == AmiFamily::Ubuntu,
        has_device_plugin: family == AmiFamily::Bottlerocket,
    })
}

fn problem(wrong: &resolve::WrongField) -> FieldProblem {
    let (cause, next_step) = wrong.cause.split_once("; ").unwrap_or((&wrong.cause, "correct it"));
    FieldProblem::new(format!("spec.{}", wrong.field), cause, next_step)
}

pub(crate) const CLUSTER: &str = "aws-cluster";
pub(crate) const REGION: &str = "aws-region";
pub(crate) const ENDPOINT: &str = "aws-cluster-endpoint";
pub(crate) const CA: &str = "aws-cluster-ca";
pub(crate) const SERVICE_CIDR: &str = "aws-service-cidr";
pub(crate) const CLOUD_CONTROLLER: &str = "aws-cloud-controller";
pub(crate) const QUEUE: &str = "aws-interruption-queue";

/// The flags of the controller, in the order of the help. There is no flag for credentials, because the AWS SDK finds them
/// itself.
const FLAGS: [Flag; 7] = [
    Flag {
        name: CLUSTER,
        value: Some("NAME"),
        env: Some("POOLWRIGHT_AWS_CLUSTER"),
        requires: None,
        help: "Launch nodes on AWS EC2 for pools with an EC2NodeClass, for the cluster with this name [default: no nodes on AWS]",
        more: "All resources that Poolwright creates in AWS carry the name as a tag. Two clusters in one account need different names. Do not \
               change the name while the cluster has nodes. On EKS, use the name of the EKS cluster.",
        validate: Some(cluster_name),
    },
    Flag {
        name: REGION,
        value: Some("REGION"),
        env: Some("POOLWRIGHT_AWS_REGION"),
        requires: Some(CLUSTER),
        help: "AWS region [default: $AWS_REGION, else the region of the profile or the instance]",
        more: "",
        validate: None,
    },
    Flag {
        name: ENDPOINT,
        value: Some("URL"),
        env: Some("POOLWRIGHT_AWS_CLUSTER_ENDPOINT"),
        requires: Some(CLUSTER),
        help: "URL of the API server for nodes, such as https://HOST; required for AL2023, Bottlerocket and Ubuntu",
        more: "",
        validate: None,
    },
    Flag {
        name: CA,
        value: Some("FILE"),
        env: Some("POOLWRIGHT_AWS_CLUSTER_CA"),
        requires: Some(ENDPOINT),
        help: "PEM file with the CA certificate of the API server for nodes [default: the CA certificate of this pod]",
        more: "",
        validate: None,
    },
    Flag {
        name: SERVICE_CIDR,
        value: Some("CIDR"),
        env: Some("POOLWRIGHT_AWS_SERVICE_CIDR"),
        requires: Some(ENDPOINT),
        help: "Address range of Services, such as 10.100.0.0/16; AL2023 nodes derive the cluster DNS address from it",
        more: "",
        validate: None,
    },
    Flag {
        name: CLOUD_CONTROLLER,
        value: None,
        env: Some("POOLWRIGHT_AWS_CLOUD_CONTROLLER"),
        requires: Some(ENDPOINT),
        help: "Start the kubelets of Ubuntu nodes with --cloud-provider=external",
        more: "Set it only if the AWS cloud controller manager runs in the cluster. Without that controller, these nodes would keep their \
               startup taint forever.",
        validate: None,
    },
    Flag {
        name: QUEUE,
        value: Some("NAME|URL"),
        env: Some("POOLWRIGHT_AWS_INTERRUPTION_QUEUE"),
        requires: Some(CLUSTER),
        help: "Name or URL of the SQS queue that receives EC2 events from EventBridge: spot warnings, maintenance",
        more: "Without a queue, Poolwright only polls EC2 once a minute, which can cost half of the two minutes of a spot warning.",
        validate: None,
    },
];

/// The flag of `gpus` and `prices`.
const REGION_OF_MARKET: Flag = Flag {
    name: REGION,
    value: Some("REGION"),
    env: None,
    requires: Some("provider"),
    help: "With --provider aws: the region [default: $AWS_REGION, else the region of the profile or the instance]",
    more: "",
    validate: None,
};

/// Checks the name of a cluster against the rules of EKS, so that it fits into a tag and a NodeConfig.
fn cluster_name(text: &str) -> Result<(), String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let begins_well = text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if begins_well && text.len() <= 100 && text.chars().all(is_good) {
        Ok(())
    } else {
        Err("write a cluster name of at most 100 letters, digits, - and _ that starts with a letter or digit"
            .to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_class_that_cannot_be_read_names_the_field_and_the_nearest_name() {
        let ours = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "EC2NodeClass", "metadata": {"name": "gpu"},
            "spec": {"role": "r", "amiFamily": "Bottlerocket", "amiSelectorTerms": [{"id": "ami-1"}],
                "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]}});
        let facts = read(&ours).expect("a class");
        assert!(facts.has_device_plugin && !facts.needs_bootstrap_tokens);
        let mut wrong = ours.clone();
        wrong["spec"]["subnetSelectorTerms"] = json!(7);
        assert_eq!(read(&wrong).expect_err("it is no list")[0].path, "spec.subnetSelectorTerms");
        let mut impossible = ours.clone();
        impossible["spec"]["kubelet"] = json!({"systemReserved": {"memory": "1Gib"}});
        let problems = read(&impossible).expect_err("no quantity");
        assert_eq!(problems[0].path, "spec.kubelet.systemReserved.memory");
        assert_eq!(problems[0].cause, "`1Gib` has the unknown suffix `Gib`");
        let mut misspelt = ours;
        misspelt["spec"]["rol"] = json!("r");
        let problems = read(&misspelt).expect_err("no such field");
        assert_eq!(
            (problems[0].path.as_str(), problems[0].next_step.as_str()),
            ("spec.rol", "did you mean `role`?")
        );
    }

    #[test]
    fn the_name_of_a_cluster_can_be_a_tag() {
        assert_eq!(cluster_name("gpu-1_a"), Ok(()));
        for wrong in ["", "-a", "a b", "ä", &"a".repeat(101)] {
            assert!(cluster_name(wrong).is_err(), "{wrong}");
        }
    }
}
