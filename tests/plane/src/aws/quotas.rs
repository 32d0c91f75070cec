//! The EC2 quotas of the account, which moto does not have.
//!
//! Shape: <https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html>.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::json;

use super::Front;
use super::answers::{refusal, text};
use super::request::Request;

/// vCPUs by the code of the quota.
pub(super) type Quotas = BTreeMap<String, u32>;

impl Front {
    /// Sets the quotas of EC2, by code. All others are unknown.
    pub fn allow_vcpus(&self, quotas: impl IntoIterator<Item = (&'static str, u32)>) {
        self.inner().quotas =
            Some(quotas.into_iter().map(|(code, vcpus)| (code.to_owned(), vcpus)).collect());
    }
}

/// Answers a query for one quota.
pub(super) fn answer(quotas: &Quotas, asked: &Request) -> Response<Body> {
    let code = asked.json["QuotaCode"].as_str().unwrap_or_default();
    let Some(vcpus) = quotas.get(code) else {
        return refusal(
            asked,
            "NoSuchResourceException",
            "The request failed because the specified quota does not exist.",
        );
    };
    let quota = json!({"Quota": {"ServiceCode": "ec2", "QuotaCode": code, "Value": f64::from(*vcpus), "Adjustable": true}});
    text(StatusCode::OK, "application/x-amz-json-1.1", &quota.to_string())
}
