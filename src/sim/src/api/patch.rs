//! Applies patches to objects.

use serde_json::Value;

use super::answer::Refusal;
use super::sent::Sent;

/// Applies the body of a patch to an object.
pub(super) fn apply(object: &Value, content_type: &str, body: Sent<'_>) -> Result<Value, Refusal> {
    let unreadable =
        |error: serde_json::Error| Refusal::bad_request(format!("error decoding patch: {error}"));
    let mut changed = object.clone();
    match content_type.split(';').next().unwrap_or_default().trim() {
        "application/merge-patch+json" => {
            let patch = body.object().map_err(unreadable)?;
            if !patch.is_object() {
                return Err(Refusal::bad_request("error decoding patch: json: it must be an object"));
            }
            json_patch::merge(&mut changed, &patch);
        }
        "application/json-patch+json" => {
            let patch: json_patch::Patch = body.read().map_err(unreadable)?;
            json_patch::patch(&mut changed, &patch).map_err(|error| Refusal {
                code: 422,
                reason: "Invalid",
                message: format!("the server rejected our request due to an error in our request: {error}"),
                details: Value::Null,
            })?;
        }
        _ => return Err(Refusal::unsupported_patch()),
    }
    Ok(changed)
}
