//! Objects as users write them, and plans for them.

use std::process::Command;

use anyhow::ensure;
use serde_json::{Value, json};

use crate::process::poolwright_binary;

/// Returns a KwokNodeClass with AWS's offerings and nodes that join quickly. `spec` is merged over it.
pub fn node_class(name: &str, spec: Value) -> Value {
    let mut class = json!({
        "apiVersion": "poolwright.dev/v1alpha1", "kind": "KwokNodeClass",
        "metadata": {"name": name},
        "spec": {"provider": "aws", "registrationDelay": "300ms"},
    });
    lay_over(&mut class["spec"], spec);
    class
}

/// Returns a NodePool of on-demand g5 types that uses the node class of the same name and removes empty nodes after a second.
/// `spec` is merged over it, and replaces lists.
pub fn node_pool(name: &str, spec: Value) -> Value {
    let mut pool = json!({
        "apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": {"spec": {
                "nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": name},
                "requirements": [
                    {"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["on-demand"]},
                    {"key": "poolwright.dev/instance-family", "operator": "In", "values": ["g5"]},
                ],
            }},
            "scaleToZero": {"after": "1s"},
        },
    });
    lay_over(&mut pool["spec"], spec);
    pool
}

/// Returns a pod with these requests that only fits nodes of `pool`. Extended resources become limits too, as the API server
/// requires.
pub fn pod(name: &str, pool: &str, requests: Value) -> Value {
    let mut limits = json!({});
    if let Some(gpus) = requests.get("nvidia.com/gpu") {
        limits["nvidia.com/gpu"] = gpus.clone();
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {"poolwright.dev/nodepool": pool},
            "containers": [
                {"name": "main", "image": "none", "resources": {"requests": requests, "limits": limits}},
            ],
        },
    })
}

fn lay_over(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                lay_over(below.entry(key).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above,
    }
}

/// Runs `poolwright plan -o json` with these arguments and environment variables, and returns its output.
pub fn run_plan(arguments: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Value> {
    let mut command = Command::new(poolwright_binary()?);
    let output =
        command.args(["plan", "-o", "json"]).args(arguments).envs(variables.iter().copied()).output()?;
    ensure!(output.status.success(), "poolwright plan: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}
