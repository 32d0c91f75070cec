//! A parsed request to AWS.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use serde_json::Value;

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// The action, named as in IAM policies: `ec2:CreateFleet`, `ssm:GetParameters`.
    pub action: String,
    /// Parameters of the query protocol; empty for a service that speaks JSON.
    pub parameters: BTreeMap<String, String>,
    /// The body of a service that speaks JSON; null otherwise.
    pub json: Value,
}

/// The names of services in `X-Amz-Target` headers and in policies.
const TARGETS: [(&str, &str); 6] = [
    ("AmazonSSM", "ssm"),
    ("AmazonSQS", "sqs"),
    ("AWSPriceListService", "pricing"),
    ("AWSEvents", "events"),
    ("ServiceQuotasV20190624", "servicequotas"),
    ("AmazonEC2ContainerServiceV20141113", "ecs"),
];

impl Request {
    /// Reads a request. The service is in the scope of the signature, the action in the body or a header.
    pub fn read(headers: &HeaderMap, body: &[u8]) -> Self {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if let Some((service, operation)) = header("x-amz-target").split_once('.') {
            let service =
                TARGETS.iter().find(|(target, _)| *target == service).map_or(service, |(_, name)| name);
            let json = serde_json::from_slice(body).unwrap_or_default();
            return Self { action: format!("{service}:{operation}"), parameters: BTreeMap::new(), json };
        }
        let parameters: BTreeMap<String, String> = form_urlencoded::parse(body).into_owned().collect();
        // Credential=KEY/20261123/us-east-1/ec2/aws4_request
        let scope = header("authorization").split("Credential=").nth(1).unwrap_or_default();
        let service = scope.split('/').nth(3).unwrap_or_default();
        let action = parameters.get("Action").map_or("", String::as_str);
        Self { action: format!("{service}:{action}"), parameters, json: Value::Null }
    }

    /// Returns a parameter, or the empty string if it is not given.
    pub fn get(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// Returns the numbers that follow a prefix, in order: 1, 2 for `Overrides.1.SubnetId`, `Overrides.2.SubnetId`.
    pub fn indices(&self, prefix: &str) -> Vec<usize> {
        let number = |key: &String| key.strip_prefix(prefix)?.split('.').next()?.parse().ok();
        let mut found: Vec<usize> = self.parameters.keys().filter_map(number).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}
