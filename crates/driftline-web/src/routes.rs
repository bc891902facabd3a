//! Which address is answered by what.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, Response, StatusCode, Uri};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router, middleware};
use futures_util::stream;

use crate::access::Visitor;
use crate::assets::ASSETS;
use crate::cache::Rendered;
use crate::context::{Problem, View};
use crate::forms;
use crate::guard::{form_of, guard};
use crate::metrics;
use crate::openapi;
use crate::server::{Asking, Form, JSON, Server, plain, respond};

/// How often something is said to those who listen, so that everybody knows the line is good.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub(crate) fn router(server: Arc<Server>) -> Router {
    let views = [
        ("/", "/api/v1/overview", View::Overview),
        ("/drift", "/api/v1/drift", View::Drift),
        ("/resource", "/api/v1/resource", View::Resource),
        ("/topology", "/api/v1/topology", View::Topology),
        ("/posture", "/api/v1/posture", View::Posture),
        ("/versions", "/api/v1/versions", View::Versions),
        ("/compare", "/api/v1/compare", View::Compare),
        ("/rules", "/api/v1/rules", View::Rules),
    ];
    let mut router = Router::new();
    for (page, json, view) in views {
        router = router.route(page, show(view, Form::Page)).route(json, show(view, Form::Json));
    }
    router
        .route("/accept", post(forms::accept))
        .route("/api/v1/accept", post(forms::accept_json))
        .route("/api/v1/openapi.json", get(document))
        .route("/sign-in", get(forms::sign_in_page).post(forms::sign_in))
        .route("/sign-out", post(forms::sign_out))
        .route("/events", get(events))
        .route("/metrics", get(scrape))
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready))
        .route("/assets/{file}", get(asset))
        .fallback(nowhere)
        .method_not_allowed_fallback(forms::other_method)
        .layer(middleware::from_fn_with_state(server.clone(), guard))
        .with_state(server)
}

fn show(view: View, form: Form) -> MethodRouter<Arc<Server>> {
    get(
        move |State(server): State<Arc<Server>>,
              Extension(visitor): Extension<Visitor>,
              headers: HeaderMap,
              uri: Uri| async move { server.show(&visitor, &headers, &uri, view, form).await },
    )
}

async fn document(headers: HeaderMap) -> Response<Body> {
    respond(&Rendered::new(JSON, openapi::DOCUMENT.clone()), &headers)
}

async fn asset(
    uri: Uri,
    State(server): State<Arc<Server>>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
) -> Response<Body> {
    let Some(asset) = ASSETS.find(uri.path()) else {
        let asking = Asking::new(&server, &visitor, &headers, &uri, View::Other);
        return server.refuse(&asking, &Problem::new(404, "Not found", "there is no such file"), Form::Page);
    };
    let mut response = respond(&Rendered::new(asset.kind, asset.bytes.to_vec()), &headers);
    let for_ever = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(header::CACHE_CONTROL, for_ever);
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

async fn nowhere(
    State(server): State<Arc<Server>>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Response<Body> {
    let asking = Asking::new(&server, &visitor, request.headers(), request.uri(), View::Other);
    let problem = Problem::new(404, "Not found", "there is no such page").hint("the overview is at /");
    server.refuse(&asking, &problem, form_of(request.uri().path()))
}

async fn healthy() -> Response<Body> {
    plain(StatusCode::OK, "text/plain; charset=utf-8", "ok\n")
}

/// Ready when there is something to show and it is what the store holds.
async fn ready(State(server): State<Arc<Server>>) -> Response<Body> {
    let known = server.live.known();
    let (status, text) = match (known.edition, known.trouble, *server.stop.borrow()) {
        (_, _, true) => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n"),
        (Some(_), None, false) => (StatusCode::OK, "ready\n"),
        (None, None, false) => (StatusCode::SERVICE_UNAVAILABLE, "starting\n"),
        (_, Some(_), false) => (StatusCode::SERVICE_UNAVAILABLE, "the store cannot be read\n"),
    };
    plain(status, "text/plain; charset=utf-8", text)
}

async fn scrape(State(server): State<Arc<Server>>) -> Response<Body> {
    let version = server.options.program.rsplit(' ').next().unwrap_or_default();
    let text = server.metrics.text(&server.live.known(), server.now(), version);
    plain(StatusCode::OK, metrics::CONTENT_TYPE, text)
}

/// Says which revision is shown, whenever it is another one, until the server stops.
async fn events(
    State(server): State<Arc<Server>>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    uri: Uri,
) -> Response<Body> {
    let Ok(place) = server.listeners.clone().try_acquire_owned() else {
        let asking = Asking::new(&server, &visitor, &headers, &uri, View::Other);
        let problem = Problem::new(503, "Busy", "too many listen already").hint("load the page again now and then");
        return server.refuse(&asking, &problem, Form::Json);
    };
    let listening = server.metrics.listening();
    let start = (server.live.subscribe(), server.stop.clone(), String::new(), false, (place, listening));
    let stream = stream::unfold(start, |(mut known, mut stop, told, over, kept)| async move {
        if over {
            return None;
        }
        loop {
            let now = known.borrow_and_update().edition.as_ref().map(|edition| edition.snapshot.revision.clone());
            if let Some(revision) = now.filter(|revision| *revision != told) {
                let event =
                    Event::default().event("revision").data(serde_json::json!({"revision": revision}).to_string());
                return Some((Ok::<_, Infallible>(event), (known, stop, revision, false, kept)));
            }
            let ends = tokio::select! {
                changed = known.changed() => changed.is_err(),
                _ = stop.wait_for(|stop| *stop) => true,
            };
            if ends {
                let event = Event::default().event("bye").data("{}");
                return Some((Ok(event), (known, stop, told, true, kept)));
            }
        }
    });
    let mut response = Sse::new(stream).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
#[path = "routes_tests.rs"]
mod tests;
