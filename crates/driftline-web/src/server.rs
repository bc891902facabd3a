//! A server: what it may answer, and how an answer becomes a response.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Response, StatusCode, Uri};
use jiff::{SignedDurationRound, Timestamp, Unit};
use tokio::sync::{Semaphore, watch};

use crate::access::{Access, Permission, Proof, Visitor, cookie};
use crate::answers::{Answers, Refusal, RefusalKind};
use crate::assets::ASSETS;
use crate::cache::{Cache, Rendered};
use crate::context::{Context, Problem, View};
use crate::live::{Edition, Live, failed, off_the_runtime};
use crate::metrics::Metrics;
use crate::page;
use crate::question::Question;

pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const JSON: &str = "application/json";
pub(crate) const PROBLEM: &str = "application/problem+json";
/// What was just done, and who did it: told by one response to the next.
pub(crate) const NOTICE: &str = "driftline-notice";
pub(crate) const BY: &str = "driftline-by";

/// How many requests are worked on at once, and how many listen to events.
const REQUESTS: usize = 256;
const LISTENERS: usize = 128;
/// How many answers are computed at once; whoever waits for the same one finds it made.
const AT_ONCE: usize = 2;
/// How many wrong tokens wait for their answer; more are told so at once.
const GUESSING: usize = 32;

/// What a server is told by whoever starts it.
#[derive(Clone)]
pub struct Options {
    pub access: Access,
    /// Names beside addresses and `localhost` by which the server may be asked.
    pub hosts: Vec<String>,
    pub clock: fn() -> Timestamp,
    /// Name and version of the program.
    pub program: String,
    /// Says something to whoever runs the server.
    pub tell: Arc<dyn Fn(&str) + Send + Sync>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("access", &self.access).field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

pub(crate) struct Server {
    pub options: Options,
    pub answers: Arc<dyn Answers>,
    pub live: Arc<Live>,
    pub metrics: Metrics,
    cache: Cache,
    cheap: Arc<Semaphore>,
    dear: Arc<Semaphore>,
    pub slots: Semaphore,
    pub listeners: Arc<Semaphore>,
    /// Wrong tokens are answered one after the other.
    pub guesses: Semaphore,
    /// How many of those may wait.
    pub guessing: Semaphore,
    /// One accepts after the other.
    pub accepting: Arc<Semaphore>,
    pub stop: watch::Receiver<bool>,
}

/// A page for people, or JSON for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Page,
    Json,
}

impl Server {
    pub(crate) fn new(answers: Arc<dyn Answers>, options: Options, stop: watch::Receiver<bool>) -> Arc<Self> {
        Arc::new(Self {
            live: Arc::new(Live::new(answers.clone(), options.clock, options.tell.clone())),
            answers,
            options,
            metrics: Metrics::default(),
            cache: Cache::default(),
            cheap: Arc::new(Semaphore::new(AT_ONCE)),
            dear: Arc::new(Semaphore::new(AT_ONCE)),
            accepting: Arc::new(Semaphore::new(1)),
            slots: Semaphore::new(REQUESTS),
            listeners: Arc::new(Semaphore::new(LISTENERS)),
            guesses: Semaphore::new(1),
            guessing: Semaphore::new(GUESSING),
            stop,
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.options.clock)()
    }

    /// The minute it is: what is rendered is kept for the rest of it.
    fn minute(&self) -> Timestamp {
        let now = self.now();
        let whole =
            now.as_duration().round(SignedDurationRound::new().smallest(Unit::Minute).mode(jiff::RoundMode::Floor));
        whole.ok().and_then(|whole| Timestamp::from_duration(whole).ok()).unwrap_or(now)
    }

    /// Answers a question about what there is.
    pub(crate) async fn show(
        self: &Arc<Self>,
        visitor: &Visitor,
        headers: &HeaderMap,
        uri: &Uri,
        view: View,
        form: Form,
    ) -> Response<Body> {
        let asking = Asking::new(self, visitor, headers, uri, view);
        let question = match Question::parse(view, uri.query().unwrap_or_default()) {
            Ok(question) => question,
            Err(problem) => return self.refuse(&asking, &problem, form),
        };
        match self.rendered(question, asking.clone(), form).await {
            Ok(rendered) => {
                let mut response = respond(&rendered, headers);
                if asking.notice.is_some() {
                    set_cookie(response.headers_mut(), &format!("{NOTICE}=; Path=/; Max-Age=0"));
                }
                response
            }
            Err(refusal) => self.refuse(&asking, &problem(refusal, form), form),
        }
    }

    async fn rendered(
        self: &Arc<Self>,
        question: Question,
        asking: Asking,
        form: Form,
    ) -> Result<Arc<Rendered>, Refusal> {
        let (edition, trouble) = self.live.edition().await?;
        let asking = Asking { warning: trouble.map(|trouble| warning(&edition, &trouble)), ..asking };
        let key = asking.key(form);
        if let Some(found) = self.cache.get(&edition.tag, &key) {
            return Ok(found);
        }
        let turn = if question.is_dear() { &self.dear } else { &self.cheap };
        let turn = turn.clone().acquire_owned().await.map_err(|_| failed("the server is stopping"))?;
        if let Some(found) = self.cache.get(&edition.tag, &key) {
            return Ok(found);
        }
        let server = self.clone();
        let of = edition.clone();
        off_the_runtime(move || {
            // It ends with the work, and not with whoever waits for it: they may have gone.
            let _turn = turn;
            let rendered = match form {
                Form::Json => Rendered::new(JSON, question.json(&of, server.answers.as_ref())?),
                Form::Page => {
                    let context = asking.context(&server, &of.snapshot.revision);
                    Rendered::new(HTML, question.page(&context, &of, server.answers.as_ref())?.into_bytes())
                }
            };
            // Here, where it may take its time.
            rendered.zipped();
            let rendered = Arc::new(rendered);
            server.cache.put(&of.tag, key, rendered.clone());
            Ok(rendered)
        })
        .await
    }

    /// Says no, and what to do next.
    pub(crate) fn refuse(&self, asking: &Asking, problem: &Problem, form: Form) -> Response<Body> {
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (kind, body) = match form {
            Form::Json => (PROBLEM, serde_json::to_vec(problem).unwrap_or_default()),
            Form::Page => {
                let revision = self.live.known().edition.map(|it| it.snapshot.revision.clone()).unwrap_or_default();
                (HTML, page::problem(&asking.context(self, &revision), problem).into_bytes())
            }
        };
        let mut response = plain(status, kind, body);
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
        }
        response
    }
}

/// Who asks for which page, with all that a page tells them.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    view: View,
    minute: Timestamp,
    permission: Permission,
    signed_in: bool,
    csrf: String,
    why_not_write: Option<String>,
    who: Option<String>,
    url: String,
    notice: Option<String>,
    warning: Option<String>,
}

impl Asking {
    pub(crate) fn new(server: &Server, visitor: &Visitor, headers: &HeaderMap, uri: &Uri, view: View) -> Self {
        let may_write = visitor.permission >= Permission::Write;
        let why_not = server.options.access.why_no_one_writes().unwrap_or("You signed in with a token for reading.");
        let count = cookie(headers, NOTICE).and_then(|count| count.parse::<u32>().ok());
        let by = cookie(headers, BY).map(|text| format!("by={text}"));
        let by = by.and_then(|text| Some(form_urlencoded::parse(text.as_bytes()).next()?.1.into_owned()));
        Self {
            view,
            minute: server.minute(),
            permission: visitor.permission,
            signed_in: matches!(visitor.proof, Proof::Cookie(_)),
            csrf: visitor.csrf.clone(),
            why_not_write: (!may_write).then(|| why_not.to_owned()),
            who: by.filter(|by| may_write && !by.is_empty() && by.len() <= 200),
            url: uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
            notice: count.map(|count| match count {
                1 => "1 finding was accepted.".to_owned(),
                count => format!("{count} findings were accepted."),
            }),
            warning: None,
        }
    }

    pub(crate) fn context<'a>(&'a self, server: &'a Server, revision: &'a str) -> Context<'a> {
        Context {
            view: self.view,
            now: self.minute,
            revision,
            program: &server.options.program,
            may_write: self.permission >= Permission::Write,
            why_not_write: self.why_not_write.as_deref(),
            csrf: &self.csrf,
            signed_in: self.signed_in,
            who: self.who.as_deref(),
            url: &self.url,
            notice: self.notice.as_deref(),
            warning: self.warning.as_deref(),
            style: &ASSETS.style.path,
            script: &ASSETS.script.path,
            icon: &ASSETS.icon.path,
        }
    }

    /// Everything that a rendered answer depends on, besides the edition.
    fn key(&self, form: Form) -> String {
        match form {
            // A program is told the same whoever asks, and when.
            Form::Json => self.url.clone(),
            Form::Page => format!(
                "{:?} {} {:?} {} {:?} {:?} {:?} {}",
                self.permission,
                self.minute.as_second(),
                self.who,
                self.csrf,
                self.notice,
                self.warning,
                self.signed_in,
                self.url
            ),
        }
    }
}

fn warning(edition: &Edition, trouble: &Refusal) -> String {
    format!("This is what was known at {}; the newest cannot be read: {trouble}", edition.snapshot.computed_at)
}

/// A refusal as people and programs are told of it.
pub(crate) fn problem(refusal: Refusal, form: Form) -> Problem {
    let (status, title) = match (refusal.kind, form) {
        (RefusalKind::NotFound, _) => (404, "Not found"),
        // A page that says what to do first is no error to whoever looks at it.
        (RefusalKind::NotYet, Form::Page) => (200, "Nothing to show yet"),
        (RefusalKind::NotYet, Form::Json) => (404, "Nothing to show yet"),
        (RefusalKind::BadQuestion, _) => (400, "Bad question"),
        (RefusalKind::Conflict, _) => (409, "Changed in the meantime"),
        (RefusalKind::Failed, _) => (500, "Something failed"),
    };
    Problem { hints: refusal.hints, ..Problem::new(status, title, refusal.message) }
}

pub(crate) fn plain(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

pub(crate) fn set_cookie(headers: &mut HeaderMap, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.append(header::SET_COOKIE, value);
    }
}

/// An answer, unless whoever asks has it already; compressed if they like.
pub(crate) fn respond(rendered: &Rendered, headers: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    let out = response.headers_mut();
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            out.insert(name, value);
        }
    };
    set(header::ETAG, &rendered.tag);
    set(header::CACHE_CONTROL, "private, no-cache");
    set(header::VARY, "Accept-Encoding, Authorization, Cookie");
    let has = |name: HeaderName, wanted: &dyn Fn(&str) -> bool| {
        let all = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        all.flat_map(|text| text.split(',')).any(|part| wanted(part.trim()))
    };
    if has(header::IF_NONE_MATCH, &|tag| tag == rendered.tag || tag == "*") {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    set(header::CONTENT_TYPE, rendered.kind);
    let likes_gzip = has(header::ACCEPT_ENCODING, &|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let refused = |weight: &str| matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip")) && !parts.any(refused)
    });
    match likes_gzip.then(|| rendered.zipped()).flatten() {
        Some(zipped) => {
            set(header::CONTENT_ENCODING, "gzip");
            *response.body_mut() = Body::from(zipped);
        }
        None => *response.body_mut() = Body::from(rendered.body.clone()),
    }
    response
}
