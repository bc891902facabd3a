//! What is sent to the server: signing in and out, and accepting findings.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response, StatusCode, Uri, header};
use axum::{Extension, response::IntoResponse};

use crate::access::{COOKIE, Proof, Visitor};
use crate::context::{AcceptForm, Problem, View};
use crate::guard::{busy, check_writer, form_of, is_browser, is_from_us, is_secure, penalty, redirect};
use crate::live::off_the_runtime;
use crate::model::{Acceptance, Accepted};
use crate::page;
use crate::server::{Asking, BY, Form, HTML, JSON, NOTICE, Server, plain, problem, set_cookie};

/// The most that can be sent: five hundred tickets and a reason fit.
const MOST: usize = 128 * 1024;
/// How long sending it may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a browser waits for the page to show what was accepted.
const SHOWN: Duration = Duration::from_secs(20);
const MOST_FINDINGS: usize = 500;
const LONGEST_REASON: usize = 2_000;
const LONGEST_NAME: usize = 200;

const FORM: &str = "application/x-www-form-urlencoded";

/// The body, if it is of the type that is wanted, not too long and not too slow.
async fn body(headers: &HeaderMap, body: Body, wanted: &'static str) -> Result<Bytes, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(wanted) {
        return Err(Problem::new(415, "Unknown form", format!("this takes {wanted}")));
    }
    match tokio::time::timeout(PATIENCE, to_bytes(body, MOST)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(Problem::new(413, "Too much", format!("a request has at most {MOST} bytes"))
            .hint("accept fewer findings at a time")),
        Err(_) => Err(Problem::new(408, "Too slow", "the request did not arrive in time")),
    }
}

/// An address of ours, or the page to go to otherwise.
fn local<'a>(address: &'a str, otherwise: &'a str) -> &'a str {
    let is_ours = address.starts_with('/')
        && !address.starts_with("//")
        && !address.contains('\\')
        && address.bytes().all(|byte| byte.is_ascii_graphic());
    if is_ours { address } else { otherwise }
}

fn fields(bytes: &[u8]) -> impl Iterator<Item = (String, String)> {
    form_urlencoded::parse(bytes).map(|(name, value)| (name.into_owned(), value.into_owned()))
}

fn field(bytes: &[u8], wanted: &str) -> String {
    fields(bytes).find(|(name, _)| name == wanted).map(|(_, value)| value).unwrap_or_default()
}

pub(crate) async fn sign_in_page(
    State(server): State<Arc<Server>>,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
    headers: HeaderMap,
) -> Response<Body> {
    let next = field(uri.query().unwrap_or_default().as_bytes(), "next");
    let asking = Asking::new(&server, &visitor, &headers, &uri, View::Other);
    let page = page::sign_in(&asking.context(&server, ""), None, local(&next, "/"));
    plain(StatusCode::OK, HTML, page)
}

pub(crate) async fn sign_in(
    State(server): State<Arc<Server>>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Response<Body> {
    let (parts, sent) = request.into_parts();
    let asking = Asking::new(&server, &visitor, &parts.headers, &parts.uri, View::Other);
    let bytes = match body(&parts.headers, sent, FORM).await {
        Ok(bytes) => bytes,
        Err(problem) => return server.refuse(&asking, &problem, Form::Page),
    };
    // Nobody signs somebody else in.
    if !is_from_us(&parts.headers) {
        return server.refuse(&asking, &foreign(), Form::Page);
    }
    let next = field(&bytes, "next");
    let next = local(&next, "/");
    let Some((cookie, _)) = server.options.access.sign_in(field(&bytes, "token").trim(), server.now()) else {
        if !penalty(&server).await {
            return server.refuse(&asking, &busy(), Form::Page);
        }
        let page = page::sign_in(&asking.context(&server, ""), Some("That is not one of this server's tokens."), next);
        return plain(StatusCode::UNAUTHORIZED, HTML, page);
    };
    let mut response = redirect(next);
    let secure = if is_secure(&parts.headers) { "; Secure" } else { "" };
    set_cookie(
        response.headers_mut(),
        &format!("{COOKIE}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200{secure}"),
    );
    response
}

pub(crate) async fn sign_out(
    State(server): State<Arc<Server>>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Response<Body> {
    let (parts, sent) = request.into_parts();
    let asking = Asking::new(&server, &visitor, &parts.headers, &parts.uri, View::Other);
    let ours = body(&parts.headers, sent, FORM).await.and_then(|bytes| {
        let ours = is_from_us(&parts.headers) && server.options.access.is_ours(&visitor, &field(&bytes, "csrf"));
        if ours { Ok(()) } else { Err(foreign()) }
    });
    if let Err(problem) = ours {
        return server.refuse(&asking, &problem, Form::Page);
    }
    let mut response = redirect("/");
    set_cookie(response.headers_mut(), &format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"));
    response
}

fn foreign() -> Problem {
    Problem::new(403, "Not from this page", "this did not come from a page of this server as it is now")
        .hint("load the page again and repeat; it may be from before the server was started")
}

/// The form of a page.
pub(crate) async fn accept(
    State(server): State<Arc<Server>>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Response<Body> {
    let (parts, sent) = request.into_parts();
    let asking = Asking::new(&server, &visitor, &parts.headers, &parts.uri, View::Drift);
    let bytes = match body(&parts.headers, sent, FORM).await {
        Ok(bytes) => bytes,
        Err(problem) => return server.refuse(&asking, &problem, Form::Page),
    };
    let mut form = AcceptForm::default();
    let mut csrf = String::new();
    for (name, value) in fields(&bytes) {
        match name.as_str() {
            "finding" => form.findings.push(value),
            "reason" => form.reason = value,
            "by" => form.by = value,
            "back" => local(&value, "/drift").clone_into(&mut form.back),
            "csrf" => csrf = value,
            _ => {}
        }
    }
    if form.back.is_empty() {
        "/drift".clone_into(&mut form.back);
    }
    // Whoever sends the form with a token of their own is no browser that was led here.
    if !is_from_us(&parts.headers) {
        // Nothing of theirs is offered again: a page of ours with their words in it would be from us.
        return server.refuse(&asking, &foreign(), Form::Page);
    }
    let ours = visitor.proof == Proof::Bearer || server.options.access.is_ours(&visitor, &csrf);
    let done = match check_writer(&server, &visitor) {
        Err(problem) => Err(problem),
        Ok(()) if !ours => Err(foreign()),
        Ok(()) => {
            let (findings, reason, by) = (form.findings.clone(), form.reason.clone(), form.by.clone());
            take(&server, Acceptance { findings, reason, by }).await
        }
    };
    match done {
        Ok(accepted) => {
            let mut response = redirect(&form.back);
            let by = form_urlencoded::byte_serialize(form.by.trim().as_bytes()).collect::<String>();
            let secure = if is_secure(&parts.headers) { "; Secure" } else { "" };
            let rest = format!("Path=/; HttpOnly; SameSite=Strict{secure}");
            let headers = response.headers_mut();
            set_cookie(headers, &format!("{NOTICE}={}; Max-Age=60; {rest}", accepted.accepted));
            set_cookie(headers, &format!("{BY}={by}; Max-Age=31536000; {rest}"));
            response
        }
        Err(problem) => {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_REQUEST);
            let revision = server.live.known().edition.map(|it| it.snapshot.revision.clone()).unwrap_or_default();
            let page = page::accept_again(&asking.context(&server, &revision), &problem, &form);
            plain(status, HTML, page)
        }
    }
}

/// The same for programs.
pub(crate) async fn accept_json(
    State(server): State<Arc<Server>>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Response<Body> {
    let (parts, sent) = request.into_parts();
    let asking = Asking::new(&server, &visitor, &parts.headers, &parts.uri, View::Other);
    let done = async {
        check_writer(&server, &visitor)?;
        let csrf = parts.headers.get("x-csrf-token").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let proven = visitor.proof == Proof::Bearer
            || !is_browser(&parts.headers)
            || server.options.access.is_ours(&visitor, csrf);
        if !proven || !is_from_us(&parts.headers) {
            return Err(foreign().hint("a program of its own gives `Authorization: Bearer TOKEN`"));
        }
        let bytes = body(&parts.headers, sent, JSON).await?;
        let acceptance: Acceptance = serde_json::from_slice(&bytes)
            .map_err(|error| Problem::bad_question(format!("the body cannot be read: {error}")))?;
        take(&server, acceptance).await
    };
    match done.await {
        Ok(accepted) => plain(StatusCode::OK, JSON, serde_json::to_vec(&accepted).unwrap_or_default()),
        Err(problem) => server.refuse(&asking, &problem, form_of("/api/")),
    }
}

/// Accepts, and waits until the page shows it.
async fn take(server: &Arc<Server>, mut acceptance: Acceptance) -> Result<Accepted, Problem> {
    acceptance.reason = acceptance.reason.trim().to_owned();
    acceptance.by = acceptance.by.trim().to_owned();
    acceptance.findings.sort();
    acceptance.findings.dedup();
    check(&acceptance)?;
    let answers = server.answers.clone();
    let turn = server.accepting.clone().acquire_owned().await;
    let accepted = off_the_runtime(move || {
        // Held until it is done, whether or not anybody still waits for it.
        let _turn = turn;
        answers.accept(&acceptance)
    })
    .await;
    let accepted = accepted.map_err(|refusal| problem(refusal, Form::Json))?;
    server.live.bring(&accepted.revision, SHOWN).await;
    Ok(accepted)
}

fn check(acceptance: &Acceptance) -> Result<(), Problem> {
    let hidden = |text: &str| text.chars().any(|char| crate::text::is_hidden(char) && !"\r\n\t".contains(char));
    let problem = match acceptance {
        one if one.findings.is_empty() => {
            Problem::bad_question("nothing was chosen").hint("tick what is to be accepted")
        }
        one if one.findings.len() > MOST_FINDINGS => {
            Problem::bad_question(format!("at most {MOST_FINDINGS} findings are accepted at a time"))
        }
        one if one.reason.is_empty() => {
            Problem::bad_question("an empty reason is no reason").hint("say why: the next person needs it")
        }
        one if one.reason.chars().count() > LONGEST_REASON => {
            Problem::bad_question(format!("a reason has at most {LONGEST_REASON} characters"))
        }
        one if one.by.is_empty() => Problem::bad_question("it is not said who accepts").hint("give your name"),
        one if one.by.chars().count() > LONGEST_NAME => {
            Problem::bad_question(format!("a name has at most {LONGEST_NAME} characters"))
        }
        one if hidden(&one.reason) || hidden(&one.by) => {
            Problem::bad_question("the reason or the name has characters that cannot be seen")
        }
        _ => return Ok(()),
    };
    Err(problem)
}

/// For routes that are there and are asked in another way.
pub(crate) async fn other_method(
    State(server): State<Arc<Server>>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> impl IntoResponse {
    let asking = Asking::new(&server, &visitor, request.headers(), request.uri(), View::Other);
    let problem = Problem::new(405, "Not like this", format!("this address is not asked with {}", request.method()));
    server.refuse(&asking, &problem, form_of(request.uri().path()))
}
