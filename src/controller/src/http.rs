//! Health and metrics over HTTP: `/healthz`, `/readyz`, `/metrics`. Read-only, nothing secret.

use std::future::Future;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;
use crate::signal::Receiver;

/// What the endpoints look at.
#[derive(Clone)]
pub struct Endpoints {
    /// What to serve.
    pub metrics: Metrics,
    /// Names of the watches that have not listed everything yet; empty when ready.
    pub unsynced: Receiver<Vec<&'static str>>,
}

impl Endpoints {
    fn router(self) -> Router {
        Router::new()
            .route("/healthz", get(async || "ok\n"))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .with_state(self)
    }

    /// Serves until `shutdown`.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        axum::serve(listener, self.router()).with_graceful_shutdown(shutdown).await
    }
}

/// Ready means that the cluster is known. Leadership is no part of it: a standby is ready to take over.
async fn readyz(State(endpoints): State<Endpoints>) -> Response {
    let unsynced = endpoints.unsynced.view(|unsynced| unsynced.join(", "));
    if unsynced.is_empty() {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("not listed yet: {unsynced}\n")).into_response()
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

    async fn status(endpoints: &Endpoints, path: &str) -> StatusCode {
        let request = Request::get(path).body(axum::body::Body::empty()).unwrap();
        endpoints.clone().router().oneshot(request).await.unwrap().status()
    }

    #[tokio::test]
    async fn it_is_healthy_at_once_and_ready_when_all_watches_have_listed() {
        let sender = crate::signal::sender(vec!["Pod"]);
        let unsynced = sender.subscribe();
        let endpoints = Endpoints { metrics: Metrics::new().unwrap(), unsynced };
        assert_eq!(status(&endpoints, "/healthz").await, StatusCode::OK);
        assert_eq!(status(&endpoints, "/metrics").await, StatusCode::OK);
        assert_eq!(status(&endpoints, "/readyz").await, StatusCode::SERVICE_UNAVAILABLE);
        sender.replace(vec![]);
        assert_eq!(status(&endpoints, "/readyz").await, StatusCode::OK);
    }
}
