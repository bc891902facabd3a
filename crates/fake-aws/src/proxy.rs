//! The proxy itself: understands a request, does what the rules say, and otherwise asks the emulator.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use crate::calls::{Calls, Counted, outcome};
use crate::control;
use crate::dialect::{Answer, Refusal, html, say, words};
use crate::fixture::Fixture;
use crate::flight::{Flights, Peaks};
use crate::listing::{Page, Paging};
use crate::request::{Accounts, Asked};
use crate::rules::{Action, Rule, RuleBook};
use crate::tenant::Progress;

#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot start the threads of the proxy")]
    Runtime(#[source] std::io::Error),
    #[error("only loopback may be listened on, not {0}: the proxy and what is behind it ask nobody for a password")]
    NotLoopback(SocketAddr),
}

/// What a proxy is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    pub listen: SocketAddr,
    pub seed: u64,
    /// Address of the emulator for everything that no other is named for.
    pub emulator: String,
    /// Addresses of emulators for single services, by the name that requests are signed with.
    pub emulators: BTreeMap<String, String>,
    pub rules: Vec<Rule>,
    pub fixtures: Vec<Fixture>,
}

impl Settings {
    /// A free port of loopback, in front of this emulator, with no rules.
    pub fn before(emulator: impl Into<String>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            seed: 1,
            emulator: emulator.into(),
            emulators: BTreeMap::new(),
            rules: Vec::new(),
            fixtures: Vec::new(),
        }
    }
}

/// A running proxy; dropping it ends it.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Proxy {
    pub fn start(settings: Settings) -> Result<Self, ProxyError> {
        let address = settings.listen;
        if !address.ip().is_loopback() {
            return Err(ProxyError::NotLoopback(address));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(ProxyError::Runtime)?;
        let listener =
            runtime.block_on(TcpListener::bind(address)).map_err(|source| ProxyError::Listen { address, source })?;
        let address = listener.local_addr().map_err(|source| ProxyError::Listen { address, source })?;
        let shared = Arc::new(Shared::new(settings));
        runtime.spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, runtime: Some(runtime) })
    }

    /// What `AWS_ENDPOINT_URL` is set to.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn calls(&self) -> Vec<Counted> {
        self.shared.state().calls.list()
    }

    pub fn forget_calls(&self) {
        self.shared.state().calls.clear();
        self.shared.flights.forget();
    }

    /// The most calls that were under way at once since they were last forgotten.
    pub fn peaks(&self) -> Peaks {
        self.shared.flights.peaks()
    }

    /// Takes these rules instead of those in force.
    pub fn set_rules(&self, rules: Vec<Rule>) {
        self.shared.state().rules.replace(rules, now());
    }

    /// Takes these fixtures instead of those in force.
    pub fn set_fixtures(&self, fixtures: Vec<Fixture>) {
        self.shared.state().fixtures = fixtures;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "rules that hold for a while are about real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[derive(Debug)]
pub(crate) struct Shared {
    emulator: String,
    emulators: BTreeMap<String, String>,
    client: Client<HttpConnector, Full<Bytes>>,
    state: Mutex<State>,
    /// Writes with a condition go one after the other. S3 decides them at once; moto looks first and writes then, and of
    /// two at the same moment both would win.
    conditional: tokio::sync::Mutex<()>,
    flights: Flights,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) rules: RuleBook,
    pub(crate) fixtures: Vec<Fixture>,
    pub(crate) calls: Calls,
    accounts: Accounts,
    progress: Progress,
    /// What listings that lag said, and when.
    told: BTreeMap<String, Vec<(Instant, Answer)>>,
}

impl Shared {
    fn new(settings: Settings) -> Self {
        let mut rules = RuleBook::new(settings.seed);
        rules.replace(settings.rules, now());
        let state = State {
            rules,
            fixtures: settings.fixtures,
            calls: Calls::default(),
            accounts: Accounts::default(),
            progress: Progress::default(),
            told: BTreeMap::new(),
        };
        Self {
            emulator: settings.emulator,
            emulators: settings.emulators,
            client: Client::builder(TokioExecutor::new()).build_http(),
            state: Mutex::new(state),
            conditional: tokio::sync::Mutex::new(()),
            flights: Flights::default(),
        }
    }

    /// A panic while the lock was held is a failed test already; the counts are still good.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, most likely: it gets better when clients go.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = hyper::service::service_fn(|request| handle(Arc::clone(&shared), request));
            // A connection that is closed on purpose ends in an error here; it is what was asked for.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Why a connection is closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("closed on purpose")]
struct Closed;

async fn handle(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Reply>, Closed> {
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Closed)?.to_bytes();
    if parts.uri.path().starts_with("/_fake/") {
        let answer = control::answer(&shared, parts.method.as_str(), parts.uri.path(), &body);
        return Ok(respond(answer, false));
    }
    let asked = Asked::read(&parts, body);
    let (account, actions) = {
        let mut state = shared.state();
        let account = state.accounts.account_of(&asked.key);
        let actions = state.rules.decide(&asked, &account, now());
        (account, actions)
    };
    let _under_way = shared.flights.begin(&account, &asked.region, &asked.service);
    if actions.iter().any(|action| matches!(action, Action::Unconditional)) {
        parts.headers.remove("if-none-match");
        parts.headers.remove("if-match");
    }
    let count = |outcome: String| shared.state().calls.count(&asked, &account, outcome);
    let delay: u64 = actions.iter().map(|action| if let Action::Slow { ms } = action { *ms } else { 0 }).sum();
    if let Some(action) = actions.iter().find(|action| refuses(action)) {
        count(format!("injected {}", action.name()));
        sleep(delay).await;
        return match action {
            Action::Refuse(refusal) => Ok(respond(say(&asked, &words(&asked, *refusal)), false)),
            Action::Error(said) => Ok(respond(say(&asked, said), false)),
            Action::Html => Ok(respond(html(), false)),
            _ => Err(Closed),
        };
    }
    let answer = match page_of(&asked, &actions) {
        Ok(None) => ask(&shared, &asked, &parts.headers, &account).await,
        Ok(Some((paging, page))) => {
            let mut answer = ask(&shared, &page.whole(&asked), &parts.headers, &account).await;
            if answer.status < 300 {
                answer.body = page.cut(paging, asked.protocol, &answer.body).unwrap_or(answer.body);
            }
            answer
        }
        Err(refusal) => say(&asked, &words(&asked, refusal)),
    };
    let answer = shared.state().after(&asked, &actions, answer);
    sleep(delay).await;
    let lost = actions.iter().any(|action| matches!(action, Action::LoseReply));
    let cut = actions.iter().any(|action| matches!(action, Action::CutReply));
    match (lost, cut) {
        (true, _) => {
            count("injected lost".to_owned());
            Err(Closed)
        }
        (false, true) => {
            count("injected cut".to_owned());
            Ok(respond(answer, true))
        }
        (false, false) => {
            count(outcome(&answer));
            Ok(respond(answer, false))
        }
    }
}

fn refuses(action: &Action) -> bool {
    matches!(action, Action::Refuse(_) | Action::Error(_) | Action::Html | Action::Unreachable)
}

/// The page that the request is about, if a rule cuts the listing into pages.
fn page_of<'a>(asked: &Asked, actions: &'a [Action]) -> Result<Option<(&'a Paging, Page)>, Refusal> {
    let paging = actions.iter().find_map(|action| if let Action::Page(paging) = action { Some(paging) } else { None });
    match paging {
        None => Ok(None),
        Some(paging) => paging.page(asked).map(|page| Some((paging, page))).ok_or(Refusal::BadToken),
    }
}

async fn sleep(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

impl State {
    /// What is learned from an answer, and what rules make of it.
    fn after(&mut self, asked: &Asked, actions: &[Action], mut answer: Answer) -> Answer {
        if answer.status < 300 {
            self.accounts.learn(asked, &answer.body);
            for action in actions {
                match action {
                    Action::InProgress { gets } => answer.body = self.progress.rewrite(asked, *gets, &answer.body),
                    Action::Lag { ms } => answer = self.as_it_was(asked, Duration::from_millis(*ms), answer),
                    _ => {}
                }
            }
        }
        answer
    }
}

impl State {
    /// The newest answer to the same question that is at least so old; until there is one, the first.
    fn as_it_was(&mut self, asked: &Asked, lag: Duration, answer: Answer) -> Answer {
        let told = self.told.entry(asked.target.clone()).or_default();
        told.push((now(), answer));
        let old = |at: &Instant| now().duration_since(*at) >= lag;
        while told.len() > 1 && old(&told[1].0) {
            told.remove(0);
        }
        told[0].1.clone()
    }
}

/// The answer of a fixture, or of the emulator.
async fn ask(shared: &Shared, asked: &Asked, headers: &hyper::HeaderMap, account: &str) -> Answer {
    let fixture = shared.state().fixtures.iter().find_map(|fixture| fixture.answer(asked, account));
    if let Some(answer) = fixture {
        return answer;
    }
    let emulator = shared.emulators.get(&asked.service).unwrap_or(&shared.emulator);
    let _alone = match asked.method == "PUT" && headers.contains_key("if-none-match") {
        true => Some(shared.conditional.lock().await),
        false => None,
    };
    match forward(shared, emulator, asked, headers).await {
        Ok(answer) => answer,
        Err(problem) => {
            Answer::new(502, "text/plain", format!("the emulator at {emulator} does not answer: {problem}\n"))
        }
    }
}

async fn forward(
    shared: &Shared,
    emulator: &str,
    asked: &Asked,
    headers: &hyper::HeaderMap,
) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
    let mut request = Request::builder().method(asked.method.as_str()).uri(format!("{emulator}{}", asked.target));
    for (name, value) in headers {
        // The length may have changed, and connections are the business of each side.
        if !["connection", "content-length", "transfer-encoding", "expect"].contains(&name.as_str()) {
            request = request.header(name, value);
        }
    }
    let response = shared.client.request(request.body(Full::new(asked.body.clone()))?).await?;
    let (parts, body) = response.into_parts();
    let mut answer =
        Answer { status: parts.status.as_u16(), headers: Vec::new(), body: body.collect().await?.to_bytes() };
    for (name, value) in &parts.headers {
        let name = name.as_str();
        // The length of what was asked for by HEAD is all there is of it.
        let told = asked.method == "HEAD" && name == "content-length";
        if told || !["connection", "content-length", "transfer-encoding", "keep-alive"].contains(&name) {
            answer.headers.push((name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        }
    }
    Ok(answer)
}

fn respond(answer: Answer, cut: bool) -> Response<Reply> {
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    let length = answer.body.len();
    let reply = match cut {
        false => Reply { rest: Some(answer.body), length, broken: false },
        true => Reply { rest: Some(answer.body.slice(..length / 2)), length, broken: true },
    };
    response.body(reply).unwrap_or_else(|_| Response::new(Reply { rest: None, length: 0, broken: true }))
}

/// A body that may break off in the middle.
#[derive(Debug)]
struct Reply {
    rest: Option<Bytes>,
    length: usize,
    broken: bool,
}

impl Body for Reply {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.rest.take().filter(|bytes| !bytes.is_empty()) {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None if self.broken => Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionReset.into()))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        !self.broken && self.rest.as_ref().is_none_or(Bytes::is_empty)
    }

    /// The whole length is promised, so that a client can tell that something is missing.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length as u64)
    }
}
