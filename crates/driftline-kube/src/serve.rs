//! Health and metrics on one listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::context::Clock;
use crate::metrics::Metrics;

/// Whether the operator has seen all there is.
#[derive(Clone, Debug, Default)]
pub struct Ready(Arc<AtomicBool>);

impl Ready {
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }

    fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Serves until the process ends.
pub(crate) async fn serve(listener: TcpListener, ready: Ready, metrics: Metrics, clock: Clock) -> std::io::Result<()> {
    let readyz = move || {
        let answer = match ready.get() {
            true => (StatusCode::OK, "ok\n"),
            false => (StatusCode::SERVICE_UNAVAILABLE, "not all objects have been listed yet\n"),
        };
        async move { answer }
    };
    let text = move || {
        let text = metrics.text(clock());
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        async move { ([(header::CONTENT_TYPE, kind)], text).into_response() }
    };
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(text));
    axum::serve(listener, router).await
}
