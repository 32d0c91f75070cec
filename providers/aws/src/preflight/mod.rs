//! Checks the prerequisites of nodes on AWS before any exist, for `poolwright check`. It launches, creates and changes nothing.
//!
//! Each file is one group of checks. Its calls are at the end, and the plain functions before them interpret the responses.

mod account;
mod answer;
mod classes;
mod permissions;
mod probes;
mod queue;
mod quotas;

use async_trait::async_trait;
use jiff::Timestamp;
use kube::ResourceExt;
use poolwright_provider_contract::FlagValues;
use poolwright_provider_contract::preflight::{CheckRequest, CheckResult, Preflight, Verdict};
use serde_json::Value;

use crate::clients::{Access, Clients};
use crate::connect;
use crate::node_class::{EC2NodeClass, EC2NodeClassSpec};
use crate::registration::{self, CLUSTER, NAME};

/// The groups of the checks.
const ACCOUNT: &str = "AWS account";
const PERMISSIONS: &str = "AWS permissions";
const CLASSES: &str = "EC2NodeClasses";
const QUEUE: &str = "Interruption queue";
const QUOTAS: &str = "AWS quotas";

/// Checks an AWS account.
pub(crate) struct Aws;

#[async_trait]
impl Preflight for Aws {
    fn missing_flag(&self, flags: &FlagValues) -> Option<String> {
        (!flags.has(CLUSTER)).then(|| {
            format!(
                "--provider {NAME}: give --{CLUSTER} NAME, the same name as for the controller; the IAM policy matches resources by this tag"
            )
        })
    }

    async fn run_checks(&self, request: CheckRequest) -> Vec<CheckResult> {
        let class = |object: Value| {
            let class: EC2NodeClass = serde_json::from_value(object).ok()?;
            Some((class.name_any(), class.spec))
        };
        let scope = Scope {
            cluster: request.flags.text(CLUSTER).unwrap_or_default(),
            kubernetes: request.kubernetes,
            queue: request.flags.text(registration::QUEUE),
            classes: request.node_classes.into_iter().filter_map(class).collect(),
        };
        check(&connect::access(&request.flags), &scope, request.now).await
    }
}

/// The input of the checks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scope {
    /// The cluster's name, which all resources of Poolwright carry as a tag.
    pub cluster: String,
    /// The minor version of its Kubernetes; `None` if unknown.
    pub kubernetes: Option<String>,
    /// Name or URL of the interruption queue.
    pub queue: Option<String>,
    /// Node classes by name.
    pub classes: Vec<(String, EC2NodeClassSpec)>,
}

/// Runs all checks. A check that needs a missing part is undetermined.
async fn check(access: &Access, scope: &Scope, now: Timestamp) -> Vec<CheckResult> {
    let clients = match Clients::connect(access).await {
        Ok(clients) => clients,
        Err(error) => {
            let mut results = vec![CheckResult::new(
                ACCOUNT,
                "region",
                Verdict::wrong(error.message(), "export AWS_REGION=us-east-1"),
            )];
            results.extend(skipped("no region is given"));
            return results;
        }
    };
    let (mut results, caller) = account::check(&clients, now).await;
    let Some(caller) = caller else {
        results.extend(skipped("AWS did not identify the caller; see above"));
        return results;
    };
    let mut parts = Vec::new();
    for (name, spec) in &scope.classes {
        let kubernetes = scope.kubernetes.as_deref().unwrap_or_default();
        parts.push((
            name.as_str(),
            spec,
            crate::resolve::inspect(&clients, kubernetes, name, spec, now).await,
        ));
    }
    let queue = queue::check(&clients, scope, &caller).await;
    results.extend(permissions::check(&clients, scope, &parts, &queue).await);
    results.extend(classes::check(&parts, scope));
    results.extend(queue.results);
    results.extend(Box::pin(quotas::check(&clients)).await);
    results
}

/// Returns the command that creates the queue, rules and roles.
fn deploy(cluster: &str, parameter: &str) -> String {
    format!(
        "aws cloudformation deploy --template-file deploy/aws-cloudformation.yaml --stack-name poolwright-{cluster} --capabilities \
         CAPABILITY_NAMED_IAM --parameter-overrides ClusterName={cluster} {parameter}"
    )
}

/// Returns the results of the groups that need the missing part.
fn skipped(why: &str) -> impl Iterator<Item = CheckResult> {
    let all = [PERMISSIONS, CLASSES, QUEUE, QUOTAS];
    all.into_iter().map(move |group| CheckResult::new(group, "all", Verdict::undetermined(why)))
}
