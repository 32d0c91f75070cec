//! HTTP endpoints: `/healthz`, `/readyz` and `/metrics`. Read-only, without secrets.

use std::net::SocketAddr;

use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::edge::metrics::Metrics;
use crate::edge::signal::Receiver;

/// The state that the endpoints publish.
#[derive(Clone)]
pub struct Endpoints {
    /// The metrics.
    pub metrics: Metrics,
    /// Names of the watches that are not synced yet; empty when ready.
    pub unsynced: Receiver<Vec<&'static str>>,
    /// Why the Lease cannot be read or written; `None` if it can.
    pub trouble: Receiver<Option<String>>,
    /// Why the process stops; `None` if it does not.
    pub stopping: Receiver<Option<String>>,
}

impl Endpoints {
    fn router(self) -> Router {
        Router::new()
            .route("/healthz", get(async || "ok\n"))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .with_state(self)
    }

    /// Serves requests until `shutdown`.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) {
        let serving = axum::serve(listener, self.router())
            .with_graceful_shutdown(async move { shutdown.cancelled().await });
        if let Err(error) = serving.await {
            tracing::error!(%error, "metrics and health are no longer served");
        }
    }
}

/// Binds the port, so that the controller does not start without it.
pub async fn bind(address: Option<SocketAddr>) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("cannot bind the address {address} for metrics and health; set another with --bind")
    })?;
    info!(address = %listener.local_addr()?, version = env!("CARGO_PKG_VERSION"), "serving metrics and health");
    Ok(Some(listener))
}

/// Answers readiness probes: the process is ready if it is not stopping, all watches are synced, and the API server answers. A standby
/// is ready too.
async fn readyz(State(endpoints): State<Endpoints>) -> Response {
    let stopping =
        endpoints.stopping.view(|why| why.as_ref().map(|why| format!("the process stops: {why}\n")));
    let trouble =
        endpoints.trouble.view(|why| why.as_ref().map(|why| format!("the lease cannot be kept: {why}\n")));
    let unsynced = endpoints.unsynced.view(|unsynced| unsynced.join(", "));
    let unlisted = (!unsynced.is_empty()).then(|| format!("not listed yet: {unsynced}\n"));
    let lacks: String = stopping.into_iter().chain(trouble).chain(unlisted).collect();
    if lacks.is_empty() {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, lacks).into_response()
    }
}

async fn metrics(State(endpoints): State<Endpoints>) -> Response {
    match endpoints.metrics.text() {
        Ok(text) => {
            ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;

    async fn ask(endpoints: &Endpoints, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).body(axum::body::Body::empty()).unwrap();
        let answer = endpoints.clone().router().oneshot(request).await.unwrap();
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn status(endpoints: &Endpoints, path: &str) -> StatusCode {
        ask(endpoints, path).await.0
    }

    #[tokio::test]
    async fn it_is_healthy_at_once_and_ready_when_all_watches_have_listed() {
        let sender = crate::edge::signal::sender(vec!["Pod"]);
        let unsynced = sender.subscribe();
        let trouble = crate::edge::signal::sender(None).subscribe();
        let stopping = trouble.clone();
        let endpoints = Endpoints { metrics: Metrics::new().unwrap(), unsynced, trouble, stopping };
        assert_eq!(status(&endpoints, "/healthz").await, StatusCode::OK);
        assert_eq!(status(&endpoints, "/metrics").await, StatusCode::OK);
        assert_eq!(status(&endpoints, "/readyz").await, StatusCode::SERVICE_UNAVAILABLE);
        sender.replace(vec![]);
        assert_eq!(status(&endpoints, "/readyz").await, StatusCode::OK);
    }

    #[tokio::test]
    async fn every_probe_of_the_documented_deployment_is_served() {
        let text = include_str!("../../../../deploy/deployment.yaml");
        let deployment: serde_json::Value = serde_saphyr::from_str(text).unwrap();
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let unsynced = crate::edge::signal::sender(vec![]).subscribe();
        let trouble = crate::edge::signal::sender(None).subscribe();
        let stopping = trouble.clone();
        let endpoints = Endpoints { metrics: Metrics::new().unwrap(), unsynced, trouble, stopping };
        for (probe, expected) in
            [("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")]
        {
            let get = &container[probe]["httpGet"];
            assert_eq!(get["path"], expected);
            assert_eq!(get["port"], container["ports"][0]["name"]);
            assert_eq!(status(&endpoints, expected).await, StatusCode::OK, "{probe}");
        }
    }

    #[tokio::test]
    async fn it_is_not_ready_and_says_why_while_the_api_server_does_not_answer() {
        let (listed, reached) = (crate::edge::signal::sender(vec!["Pod"]), crate::edge::signal::sender(None));
        let (unsynced, trouble) = (listed.subscribe(), reached.subscribe());
        let stopping = crate::edge::signal::sender(None).subscribe();
        let endpoints = Endpoints { metrics: Metrics::new().unwrap(), unsynced, trouble, stopping };
        reached.replace(Some("connection refused".to_owned()));
        let (code, said) = ask(&endpoints, "/readyz").await;
        assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(said, "the lease cannot be kept: connection refused\nnot listed yet: Pod\n");
        assert_eq!(status(&endpoints, "/healthz").await, StatusCode::OK, "a restart would not help");
        listed.replace(vec![]);
        assert_eq!(ask(&endpoints, "/readyz").await.1, "the lease cannot be kept: connection refused\n");
        reached.replace(None);
        assert_eq!(ask(&endpoints, "/readyz").await, (StatusCode::OK, "ok\n".to_owned()));
    }

    #[tokio::test]
    async fn it_is_not_ready_and_says_why_while_it_stops() {
        let told = crate::edge::signal::sender(None);
        let unsynced = crate::edge::signal::sender(vec![]).subscribe();
        let trouble = crate::edge::signal::sender(None).subscribe();
        let stopping = told.subscribe();
        let endpoints = Endpoints { metrics: Metrics::new().unwrap(), unsynced, trouble, stopping };
        assert_eq!(status(&endpoints, "/readyz").await, StatusCode::OK);
        told.replace(Some("the task `planning` panicked; this is a bug".to_owned()));
        let (code, said) = ask(&endpoints, "/readyz").await;
        assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(said, "the process stops: the task `planning` panicked; this is a bug\n");
        assert_eq!(status(&endpoints, "/healthz").await, StatusCode::OK, "it finishes its calls");
    }
}
