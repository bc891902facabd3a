//! What stands before every answer: how much, by which name, by whom; and the headers that go with each response.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use axum::middleware::Next;

use crate::access::{Permission, Visitor};
use crate::context::{Problem, View};
use crate::server::{Asking, Form, Server, plain};

/// The longest address.
const LONGEST: usize = 16 * 1024;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// What a wrong token costs.
const PENALTY: Duration = Duration::from_millis(300);

pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

pub(crate) async fn guard(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response<Body> {
    let started = tokio::time::Instant::now();
    let route = route(request.uri().path());
    let mut response = admit(&server, request, next).await;
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    server.metrics.answered(route, response.status().as_u16(), started.elapsed().as_secs_f64());
    response
}

/// The name of a route, from a closed set: what is asked for is chosen by others.
fn route(path: &str) -> &'static str {
    const KNOWN: [&str; 15] = [
        "/",
        "/drift",
        "/resource",
        "/topology",
        "/posture",
        "/versions",
        "/compare",
        "/rules",
        "/accept",
        "/sign-in",
        "/sign-out",
        "/events",
        "/metrics",
        "/healthz",
        "/readyz",
    ];
    match path {
        path if path.starts_with("/api/") => "/api",
        path if path.starts_with("/assets/") => "/assets",
        path => KNOWN.into_iter().find(|known| *known == path).unwrap_or("other"),
    }
}

/// What a route's errors look like.
pub(crate) fn form_of(path: &str) -> Form {
    let for_programs = ["/metrics", "/healthz", "/readyz", "/events"];
    if path.starts_with("/api/") || for_programs.contains(&path) { Form::Json } else { Form::Page }
}

fn is_public(path: &str) -> bool {
    path.starts_with("/assets/") || matches!(path, "/healthz" | "/readyz" | "/sign-in")
}

async fn admit(server: &Arc<Server>, mut request: Request, next: Next) -> Response<Body> {
    let (uri, form) = (request.uri().clone(), form_of(request.uri().path()));
    let access = &server.options.access;
    let visitor = access.visitor(request.headers(), server.now());
    let asking = Asking::new(server, &visitor, request.headers(), &uri, View::Other);
    let no = |problem: Problem| server.refuse(&asking, &problem, form);
    let Ok(slot) = server.slots.try_acquire() else {
        return no(Problem::new(503, "Busy", "too many requests are being worked on").hint("try again in a moment"));
    };
    if uri.path_and_query().is_some_and(|text| text.as_str().len() > LONGEST) {
        return no(Problem::new(414, "Address too long", format!("an address has at most {LONGEST} bytes"))
            .hint("choose fewer filters; a resource can be named by `finding`, too"));
    }
    if let Err(host) = check_host(&uri, request.headers(), &server.options.hosts) {
        let host = crate::text::visible(&host);
        return no(Problem::new(421, "Not this server", format!("this server is not known as `{host}`"))
            .hint(format!("start it with --host {host} if that is its name")));
    }
    if visitor.refused {
        // Whoever guesses must not take the place of those who know.
        drop(slot);
        if !penalty(server).await {
            return no(busy());
        }
        return no(Problem::new(401, "Who are you?", "the token that was given is not one of this server's")
            .hint("give it as `Authorization: Bearer TOKEN`"));
    }
    if visitor.permission < Permission::Read && !is_public(uri.path()) {
        return match form == Form::Page && matches!(*request.method(), Method::GET | Method::HEAD) {
            true => to_sign_in(&uri),
            false => no(Problem::new(401, "Who are you?", "this server answers those who have a token")
                .hint("give it as `Authorization: Bearer TOKEN`, or sign in at /sign-in")),
        };
    }
    request.extensions_mut().insert(visitor);
    match tokio::time::timeout(PATIENCE, next.run(request)).await {
        Ok(response) => response,
        Err(_) => no(Problem::new(503, "Too slow", "the answer took too long").hint("try again; it may be ready then")),
    }
}

fn to_sign_in(uri: &Uri) -> Response<Body> {
    let next = uri.path_and_query().map_or("/", |text| text.as_str());
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
    redirect(&format!("/sign-in?{query}"))
}

pub(crate) fn redirect(to: &str) -> Response<Body> {
    let mut response = plain(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", Body::empty());
    response
        .headers_mut()
        .insert(header::LOCATION, HeaderValue::from_str(to).unwrap_or_else(|_| HeaderValue::from_static("/")));
    response
}

/// Whoever guesses waits, one after the other; whoever knows does not.
/// Not even that many may wait: `false` says that somebody is one too many.
pub(crate) async fn penalty(server: &Server) -> bool {
    let Ok(_waiting) = server.guessing.try_acquire() else { return false };
    if let Ok(_turn) = server.guesses.acquire().await {
        tokio::time::sleep(PENALTY).await;
    }
    true
}

pub(crate) fn busy() -> Problem {
    Problem::new(429, "Too many wrong tokens", "too many wrong tokens are being answered")
        .hint("wait a moment, and look for programs that still use an old token")
}

/// A name that we do not have is how a foreign page would reach a server on this machine.
fn check_host(uri: &Uri, headers: &HeaderMap, allowed: &[String]) -> Result<(), String> {
    let mut hosts = headers.get_all(header::HOST).into_iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err("(none)".into()) };
    let host = host.to_str().map_err(|_| "(unreadable)".to_owned())?;
    let named = [Some(host), uri.authority().map(axum::http::uri::Authority::as_str)];
    for name in named.into_iter().flatten() {
        let name = without_port(name);
        let is_address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        let is_ours = name.eq_ignore_ascii_case("localhost")
            || allowed.iter().any(|allowed| without_port(allowed).eq_ignore_ascii_case(name));
        if !is_address && !is_ours {
            return Err(name.chars().take(100).collect());
        }
    }
    Ok(())
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Whether a browser says that a page of ours sends this, or whoever sends it is no browser.
pub(crate) fn is_from_us(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?").to_owned());
    let site = text("sec-fetch-site").is_none_or(|site| site == "same-origin" || site == "none");
    let origin = match (text("origin"), text("host")) {
        (None, _) => true,
        (Some(origin), Some(host)) => origin
            .split_once("://")
            .is_some_and(|(scheme, name)| matches!(scheme, "http" | "https") && name.eq_ignore_ascii_case(&host)),
        (Some(_), None) => false,
    };
    site && origin
}

/// Whether a browser sends this.
pub(crate) fn is_browser(headers: &HeaderMap) -> bool {
    headers.contains_key("origin") || headers.contains_key("sec-fetch-site") || headers.contains_key(header::COOKIE)
}

/// Whether the browser reached us through TLS, as far as whoever ended it says.
pub(crate) fn is_secure(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|proto| proto.as_bytes().eq_ignore_ascii_case(b"https"))
}

/// May this visitor write?
pub(crate) fn check_writer(server: &Server, visitor: &Visitor) -> Result<(), Problem> {
    if visitor.permission >= Permission::Write {
        return Ok(());
    }
    let why = server.options.access.why_no_one_writes();
    let problem = Problem::new(403, "Not allowed", why.unwrap_or("this needs the token for writing"));
    Err(match why {
        Some(_) => problem.hint("`driftline baseline accept` does the same where the store is"),
        None => problem.hint("sign out, and sign in with the token for writing"),
    })
}
