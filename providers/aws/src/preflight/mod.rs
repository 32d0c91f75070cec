//! What nodes on AWS need, looked at before there are any: for `poolwright check`. Nothing is launched, made or changed.
//!
//! Each file is one group: what is asked is at its end, and what the answer means is a plain function above.

mod account;
mod answer;
mod classes;
mod permissions;
mod probes;
mod queue;
mod quotas;

use jiff::Timestamp;
use poolwright_api::EC2NodeClassSpec;
use poolwright_provider_contract::preflight::{Finding, Verdict};

use crate::clients::{Access, Clients};

/// Groups of findings.
const ACCOUNT: &str = "AWS account";
const PERMISSIONS: &str = "AWS permissions";
const CLASSES: &str = "EC2NodeClasses";
const QUEUE: &str = "Interruption queue";
const QUOTAS: &str = "AWS quotas";

/// What is to be looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// The cluster's name, which what is made carries as a tag.
    pub cluster: String,
    /// The minor version of its Kubernetes; `None` where it is not known.
    pub kubernetes: Option<String>,
    /// Name or URL of the queue of interruptions.
    pub queue: Option<String>,
    /// Node classes by name.
    pub classes: Vec<(String, EC2NodeClassSpec)>,
}

/// Looks at everything. Of what depends on something that is not there it is said that it could not be determined.
pub async fn preflight(access: &Access, question: &Question, now: Timestamp) -> Vec<Finding> {
    let clients = match Clients::connect(access).await {
        Ok(clients) => clients,
        Err(error) => {
            let mut findings = vec![Finding::new(
                ACCOUNT,
                "region",
                Verdict::wrong(error.to_string(), "export AWS_REGION=us-east-1"),
            )];
            findings.extend(not_looked_at("no region is given"));
            return findings;
        }
    };
    let (mut findings, caller) = account::look(&clients, now).await;
    let Some(caller) = caller else {
        findings.extend(not_looked_at("AWS does not say who asks, see above"));
        return findings;
    };
    let mut parts = Vec::new();
    for (name, spec) in &question.classes {
        let kubernetes = question.kubernetes.as_deref().unwrap_or_default();
        parts.push((name.as_str(), spec, crate::class::parts(&clients, kubernetes, name, spec).await));
    }
    let queue = queue::look(&clients, question, &caller).await;
    findings.extend(permissions::look(&clients, question, &parts, &queue).await);
    findings.extend(classes::findings(&parts, question));
    findings.extend(queue.findings);
    findings.extend(Box::pin(quotas::look(&clients)).await);
    findings
}

/// The command that makes queue, rules and roles.
fn deploy(cluster: &str, parameter: &str) -> String {
    format!(
        "aws cloudformation deploy --template-file deploy/aws-cloudformation.yaml --stack-name poolwright-{cluster} --capabilities \
         CAPABILITY_NAMED_IAM --parameter-overrides ClusterName={cluster} {parameter}"
    )
}

/// What is said of the groups that need what is missing.
fn not_looked_at(why: &str) -> impl Iterator<Item = Finding> {
    let all = [PERMISSIONS, CLASSES, QUEUE, QUOTAS];
    all.into_iter().map(move |group| Finding::new(group, "all", Verdict::undetermined(why)))
}
