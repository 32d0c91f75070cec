//! Changes the requests and responses of a controller, to simulate a bug.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, Response};
use futures::StreamExt;
use poolwright_terms::keys::RESERVED_TAINT;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::api::ApiServer;
use crate::run::Sabotage;
use crate::scenario::BUFFER_FROM;

/// The same time as [`BUFFER_FROM`], a month later.
const BUFFER_LATER: &str = "26 20 28 6 *";
/// How soon a buggy controller replaces an unhealthy node that it should keep. A node that became unhealthy alone before is still there.
const REPLACED_AFTER: Duration = Duration::from_mins(4);

/// Serves a request, with the bug.
pub async fn serve(
    server: &ApiServer,
    sabotage: Option<Sabotage>,
    request: Request<kube::client::Body>,
    behind: (u64, Duration),
) -> Response<Body> {
    let Some(sabotage) = sabotage else { return server.serve_behind(request, behind).await };
    let (parts, body) = request.into_parts();
    let mut sent = body.collect_bytes().await.unwrap_or_default().to_vec();
    let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
    if sabotage == Sabotage::NothingIsSaid && method == Method::POST && path.ends_with("/events") {
        return Response::new(Body::from(sent));
    }
    if sabotage == Sabotage::ReasonsMissing && method == Method::POST && path.ends_with("/nodeclaims") {
        sent = without_annotations(&sent);
    }
    if sabotage == Sabotage::NothingIsGivenBack && method == Method::DELETE && path.contains("/nodeclaims/") {
        let refused = Response::builder().status(503).body(Body::empty());
        return refused.unwrap_or_default();
    }
    let asks = method == Method::POST && path.ends_with("/eviction");
    let tells = method == Method::DELETE && path.contains("/pods/");
    if sabotage == Sabotage::NobodyIsAsked && (asks || tells) {
        let done = json!({"kind": "Status", "apiVersion": "v1", "status": "Success"});
        return Response::new(Body::from(done.to_string()));
    }
    let lets_in = method == Method::PATCH && String::from_utf8_lossy(&sent).contains(RESERVED_TAINT);
    if sabotage == Sabotage::NobodyIsLetIn && lets_in && path.contains("/pods/") {
        let (_, unchanged) = server.ask(&Method::GET, &path, "", &Value::Null);
        return Response::new(Body::from(unchanged.to_string()));
    }
    let request = Request::from_parts(parts, kube::client::Body::from(sent.clone()));
    let answer = server.serve_behind(request, behind).await;
    match sabotage {
        Sabotage::LeaseConflictsSwallowed
            if method == Method::PUT && path.contains("/leases/") && answer.status() == 409 =>
        {
            Response::new(Body::from(sent))
        }
        Sabotage::RoomNotAwaited if answer.status() == 200 && says_that_it_leaves(&sent) => {
            if let Some(claim) = path.strip_suffix("/status") {
                server.ask(&Method::DELETE, claim, "", &Value::Null);
            }
            answer
        }
        Sabotage::BreakerIgnored if answer.status() == 200 && says_that_it_is_kept(&sent) => {
            if let Some(claim) = path.strip_suffix("/status") {
                let (server, claim) = (server.clone(), claim.to_owned());
                tokio::spawn(async move {
                    sleep(REPLACED_AFTER).await;
                    server.ask(&Method::DELETE, &claim, "", &Value::Null);
                });
            }
            answer
        }
        Sabotage::SelectorsUnseen if method == Method::GET && path.ends_with("/pods") => {
            let names = [("\"nodeSelector\"", "\"noSelector\""), ("\"schedulingGates\"", "\"noGates\"")];
            changed(answer, &names)
        }
        Sabotage::GangsUnseen if method == Method::GET && path.ends_with("/pods") => {
            changed(answer, &[("\"schedulingGroup\"", "\"noGroup\"")])
        }
        Sabotage::ChoiceUnseen if method == Method::GET && path.ends_with("/nodepools") => {
            changed(answer, &[("\"minValues\":2", "\"minValues\":1"), ("\"minValues\":3", "\"minValues\":1")])
        }
        Sabotage::AttachmentsUnseen if method == Method::GET && path.ends_with("/volumeattachments") => {
            changed(answer, &[("\"nodeName\":\"", "\"nodeName\":\"not-")])
        }
        Sabotage::EmptyBudgetsUnseen if method == Method::GET && path.ends_with("/nodepools") => {
            changed(answer, &[("[\"Empty\"]", "[\"Expired\"]")])
        }
        Sabotage::ReplicasUnseen if method == Method::GET && path.ends_with("/nodepools") => {
            changed(answer, &[("\"replicas\":1", "\"replicas\":0"), ("\"replicas\":2", "\"replicas\":0")])
        }
        Sabotage::BuffersUnseen if method == Method::GET && path.ends_with("/nodepools") => {
            changed(answer, &[(BUFFER_FROM, BUFFER_LATER)])
        }
        Sabotage::LimitsUnseen if method == Method::GET && path.ends_with("/nodepools") => {
            let limits = [
                ("\"nodes\":\"6\"", "\"nodes\":\"96\""),
                ("\"nvidia.com/gpu\":\"8\"", "\"nvidia.com/gpu\":\"98\""),
                ("\"nvidia.com/gpu\":\"12\"", "\"nvidia.com/gpu\":\"912\""),
                ("\"nvidia.com/gpu\":\"16\"", "\"nvidia.com/gpu\":\"916\""),
                ("\"usdPerHour\":\"45\"", "\"usdPerHour\":\"945\""),
                ("\"usdPerHour\":\"60\"", "\"usdPerHour\":\"960\""),
                ("\"usdPerHour\":\"90\"", "\"usdPerHour\":\"990\""),
            ];
            changed(answer, &limits)
        }
        _ => answer,
    }
}

fn without_annotations(sent: &[u8]) -> Vec<u8> {
    let mut object: Value = serde_json::from_slice(sent).unwrap_or_default();
    object["metadata"]["annotations"] = json!({});
    object.to_string().into_bytes()
}

/// Returns whether this status of a claim marks a healthy node as disrupted.
fn says_that_it_leaves(sent: &[u8]) -> bool {
    let object: Value = serde_json::from_slice(sent).unwrap_or_default();
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == "Disrupting" && one["status"] == "True" && one["reason"] != "Empty")
}

/// Returns whether this status of a claim says that its unhealthy node is kept, because too many are unhealthy.
fn says_that_it_is_kept(sent: &[u8]) -> bool {
    let object: Value = serde_json::from_slice(sent).unwrap_or_default();
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| {
        let message = one["message"].as_str().unwrap_or_default();
        one["type"] == "Unhealthy" && one["status"] == "True" && message.contains("it is not replaced while")
    })
}

/// Replaces these texts in a list or watch, so that the controller does not see what is there.
fn changed(answer: Response<Body>, texts: &[(&'static str, &'static str)]) -> Response<Body> {
    let (parts, body) = answer.into_parts();
    let texts = texts.to_vec();
    let parts_of = body.into_data_stream().map(move |part| {
        part.map(|bytes| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            texts.iter().fold(text, |text, (old, new)| text.replace(old, new))
        })
    });
    Response::from_parts(parts, Body::from_stream(parts_of))
}
