//! Makes the API server refuse some writes for a while, so that a state which usually lasts for milliseconds lasts as long as a
//! test needs. The writer sees a refused write as one that has not happened yet.

use anyhow::ensure;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use serde_json::json;

use super::WITHIN;
use crate::objects::{apply, unique};
use crate::wait::wait_for;

/// A set of writes.
#[derive(Clone, Copy, Debug)]
pub struct Writes {
    /// `CREATE`, `UPDATE` (patches too) or `DELETE`.
    pub operation: &'static str,
    /// The group; empty for pods and nodes.
    pub group: &'static str,
    /// The resource, with a subresource after a slash.
    pub resource: &'static str,
    /// A condition on the object, in CEL over `object` and `request`.
    pub when: &'static str,
}

/// A refusal in force until it is lifted.
pub struct Hold {
    client: Client,
    name: String,
}

impl Hold {
    /// Makes the API server refuse these writes from everybody. Returns when the refusal is in force.
    pub async fn place(client: &Client, writes: Writes) -> anyhow::Result<Self> {
        let hold = Self { client: client.clone(), name: unique("hold") };
        let name = &hold.name;
        let rule = |group: &str, resource: &str, operation: &str| json!({"apiGroups": [group], "apiVersions": ["*"], "operations": [operation], "resources": [resource]});
        // The policy also refuses a ConfigMap of its own name. Creating that shows whether the policy is in force.
        let rules = [rule("", "configmaps", "CREATE"), rule(writes.group, writes.resource, writes.operation)];
        let kind = writes.resource.split('/').next().unwrap_or_default();
        let is_held =
            format!("request.name == '{name}' || request.resource.resource == '{kind}' && ({})", writes.when);
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": rules},
                "matchConditions": [{"name": "held", "expression": is_held}],
                "validations": [{"expression": "false", "message": "held by a test"}],
            },
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        });
        for object in [policy, binding] {
            apply(client, "", &object.to_string()).await?;
        }
        hold.wait_until(true).await?;
        Ok(hold)
    }

    /// Ends the refusal. Returns when such writes succeed again.
    pub async fn lift(self) -> anyhow::Result<()> {
        let how = DeleteParams::default();
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(self.client.clone());
        bindings.delete(&self.name, &how).await?;
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(self.client.clone());
        policies.delete(&self.name, &how).await?;
        self.wait_until(false).await
    }

    /// Waits until the refusal is in force or over. The API server applies a policy a moment after it is written.
    async fn wait_until(&self, refuses: bool) -> anyhow::Result<()> {
        let what = if refuses { "to be in force" } else { "to be over" };
        wait_for(&format!("{} {what}", self.name), WITHIN, async || {
            ensure!(self.refuses().await? == refuses, "not yet");
            Ok(())
        })
        .await
    }

    async fn refuses(&self) -> anyhow::Result<bool> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), "default");
        let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
        let probe = ConfigMap { metadata, ..ConfigMap::default() };
        match maps.create(&PostParams { dry_run: true, ..PostParams::default() }, &probe).await {
            Ok(_) => Ok(false),
            Err(kube::Error::Api(status)) if status.message.contains("held by a test") => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}
