//! The API server in memory answers like a real one: each case sends the same requests to both, and compares the responses.
//!
//! It compares status codes, reasons and whole objects. UIDs are compared by identity, times by presence, and resource versions
//! by their use. It ignores `managedFields`, the text of messages, and defaults that the server in memory does not have.

mod ask;
#[path = "../../../../providers/registry/tests/crds/cases.rs"]
mod cases;
mod changes;
mod custom;
mod deletion;
mod pods;
mod reading;
mod scaling;
mod watching;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_plane::{ControlPlane, Options, install_crds};
use poolwright_provider_contract::crds;
use poolwright_provider_registry::CLOUDS;
use poolwright_sim::api::ApiServer;
use serde_json::Value;

use ask::Asker;

/// Returns a server in memory with a constant clock.
fn in_memory() -> ApiServer {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a constant");
    ApiServer::new(&crds(CLOUDS.iter().map(|cloud| cloud.node_class)), Arc::new(move || now))
}

/// The requests of a case and their responses.
type Transcript = Vec<(String, Value)>;

async fn compare<F>(name: &str, case: impl Fn(Asker) -> F)
where
    F: Future<Output = Transcript>,
{
    let plane = ControlPlane::shared(Options::default()).await.expect("the control plane starts");
    // The client must not retry: a retry would hide some responses.
    let mut config = plane.config().clone();
    config.default_retry = false;
    let client = kube::Client::try_from(config).expect("a client");
    install_crds(&client, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds"))
        .await
        .expect("the CRDs can be installed");
    let namespace = format!("contract-{name}");
    let real = case(Asker::new(client, &namespace).await).await;
    let ours = case(Asker::new(in_memory().client(), &namespace).await).await;
    assert!(!real.is_empty(), "the case asks something");
    let mut differences = Vec::new();
    for (at, ((question, real), (_, ours))) in real.iter().zip(&ours).enumerate() {
        let mut found = Vec::new();
        differ("", real, ours, &mut found);
        differences.extend(found.into_iter().map(|one| format!("{at}. {question}: {one}")));
    }
    assert!(differences.is_empty(), "{name}: the server in memory differs:\n{}", differences.join("\n"));
    assert_eq!(real.len(), ours.len());
}

/// Lists where two values differ.
fn differ(path: &str, real: &Value, ours: &Value, found: &mut Vec<String>) {
    match (real, ours) {
        (Value::Object(real), Value::Object(ours)) => {
            let names: BTreeSet<&String> = real.keys().chain(ours.keys()).collect();
            for name in names {
                let of =
                    |fields: &serde_json::Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
                differ(&format!("{path}/{name}"), &of(real), &of(ours), found);
            }
        }
        (Value::Array(real), Value::Array(ours)) if real.len() == ours.len() => {
            for (at, (real, ours)) in real.iter().zip(ours).enumerate() {
                differ(&format!("{path}/{at}"), real, ours, found);
            }
        }
        (real, ours) if real == ours => {}
        (real, ours) => found.push(format!("{path} is {real} on the real server and {ours} here")),
    }
}
