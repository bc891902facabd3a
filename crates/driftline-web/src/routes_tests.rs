#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

use axum::http::Request as HttpRequest;
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tower::ServiceExt as _;

use super::*;
use crate::access::Access;
use crate::answers::{Answers, Refusal, RefusalKind};
use crate::guard::POLICY;
use crate::listen::{Patience, run};
use crate::model::{Acceptance, Accepted, Between, Posture, Resource, Snapshot, SourceVersions, Topology};
use crate::page::sample::Sample;
use crate::server::Options;

const READ: &str = "token-for-reading-1234";
const WRITE: &str = "token-for-writing-1234";
const SECRET: &str = "a message that names /the/path";

/// Knows everything by heart, and does as it is told.
#[derive(Default)]
struct Fake {
    revision: Mutex<String>,
    accepted: Mutex<Vec<Acceptance>>,
    broken: AtomicBool,
    /// While it is held, no snapshot is finished.
    held: Mutex<bool>,
    free: Condvar,
}

impl Fake {
    fn hold(&self, held: bool) {
        *self.held.lock().unwrap() = held;
        self.free.notify_all();
    }

    fn land(&self, revision: &str) {
        revision.clone_into(&mut self.revision.lock().unwrap());
    }
}

impl Answers for Fake {
    fn revision(&self) -> Result<String, Refusal> {
        Ok(self.revision.lock().unwrap().clone())
    }

    fn snapshot(&self) -> Result<Snapshot, Refusal> {
        let revision = self.revision.lock().unwrap().clone();
        let mut held = self.held.lock().unwrap();
        while *held {
            held = self.free.wait(held).unwrap();
        }
        if self.broken.load(Ordering::SeqCst) {
            return Err(Refusal { kind: RefusalKind::Failed, message: SECRET.into(), hints: vec!["look".into()] });
        }
        Ok(Snapshot { revision, computed_at: clock(), ..Sample(None).snapshot(120) })
    }

    fn resource(&self, id: &str) -> Result<Resource, Refusal> {
        match id {
            "missing" => Err(Refusal { kind: RefusalKind::NotFound, message: "no such".into(), hints: Vec::new() }),
            _ => Ok(Sample(None).resource()),
        }
    }

    fn topology(&self, _: Option<&str>, _: Option<&str>) -> Result<Arc<Topology>, Refusal> {
        Ok(Sample(None).topology().into())
    }

    fn posture(&self) -> Result<Arc<Posture>, Refusal> {
        Err(Refusal { kind: RefusalKind::NotYet, message: "nothing is evaluated".into(), hints: vec!["do".into()] })
    }

    fn versions(&self) -> Result<Vec<SourceVersions>, Refusal> {
        Ok(Sample(None).versions())
    }

    fn between(&self, _: &str, _: &str) -> Result<Arc<Between>, Refusal> {
        Ok(Sample(None).between().into())
    }

    fn accept(&self, acceptance: &Acceptance) -> Result<Accepted, Refusal> {
        if acceptance.findings.iter().any(|ticket| ticket == "gone") {
            return Err(Refusal { kind: RefusalKind::Conflict, message: "it changed".into(), hints: Vec::new() });
        }
        self.accepted.lock().unwrap().push(acceptance.clone());
        self.land("after");
        Ok(Accepted { accepted: acceptance.findings.len(), revision: "after".into() })
    }
}

fn clock() -> Timestamp {
    "2026-06-29T12:00:00Z".parse().unwrap()
}

struct Bench {
    runtime: Runtime,
    fake: Arc<Fake>,
    server: Arc<Server>,
    router: Router,
    stop: watch::Sender<bool>,
}

#[derive(Debug)]
struct Got {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn cookies(&self) -> String {
        let all = self.headers.get_all("set-cookie").into_iter().map(|value| value.to_str().unwrap());
        all.map(|text| text.split(';').next().unwrap()).collect::<Vec<_>>().join("; ")
    }
}

impl Bench {
    fn new(access: Access) -> Self {
        Self::with(access, Fake::default())
    }

    fn with(access: Access, fake: Fake) -> Self {
        let fake = Arc::new(fake);
        fake.land("first");
        let (stop, stopped) = watch::channel(false);
        let options = Options {
            access: Access { secret: [3; 32], ..access },
            hosts: vec!["drift.example".into()],
            clock,
            program: "driftline 1.2.3".into(),
            tell: Arc::new(|_| {}),
        };
        let server = Server::new(fake.clone(), options, stopped.clone());
        let runtime = Runtime::new().unwrap();
        runtime.spawn(server.live.clone().keep(stopped));
        Self { runtime, router: router(server.clone()), fake, server, stop }
    }

    fn open() -> Self {
        Self::new(Access::default())
    }

    fn guarded() -> Self {
        Self::new(Access { read_token: Some(READ.into()), write_token: Some(WRITE.into()), ..Access::default() })
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Got {
        let mut request = HttpRequest::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "127.0.0.1:8080");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        self.runtime.block_on(async {
            let response = self.router.clone().oneshot(request).await.unwrap();
            let (parts, body) = response.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body = String::from_utf8_lossy(&body).into_owned();
            Got { status: parts.status.as_u16(), headers: parts.headers, body }
        })
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Got {
        self.send("GET", path, headers, "")
    }

    /// What a page of this visitor posts as `csrf`.
    fn csrf(&self, headers: &[(&str, &str)]) -> String {
        let page = self.get("/drift", headers).body;
        let at = page.find("name=\"csrf\"").expect("a form");
        let value = page[at..].split("value=\"").nth(1).unwrap();
        value.split('"').next().unwrap().to_owned()
    }

    /// Waits until a revision is shown.
    fn shown(&self, revision: &str) {
        let mut known = self.server.live.subscribe();
        let shown = self.runtime.block_on(
            known.wait_for(|known| known.edition.as_ref().is_some_and(|edition| edition.snapshot.revision == revision)),
        );
        assert!(shown.is_ok());
    }
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const AS_JSON: (&str, &str) = ("content-type", "application/json");

const PAGES: [&str; 8] =
    ["/", "/drift", "/resource?id=x", "/topology", "/posture", "/versions", "/compare?from=v1&to=now", "/rules"];

#[test]
fn every_answer_forbids_what_a_page_does_not_need() {
    let bench = Bench::open();
    let style = ASSETS.style.path.clone();
    let others = [
        "/api/v1/overview",
        "/api/v1/drift",
        "/api/v1/openapi.json",
        "/metrics",
        "/healthz",
        "/readyz",
        "/nowhere",
        "/sign-in",
        "/accept",
        "/drift?limit=x",
        "/assets/none.css",
        &style,
    ];
    for path in PAGES.into_iter().chain(others) {
        let got = bench.get(path, &[]);
        assert_eq!(got.header("content-security-policy"), POLICY, "{path}");
        assert_eq!(got.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(got.header("referrer-policy"), "same-origin", "{path}");
        assert!(!got.header("cache-control").is_empty(), "{path}");
        if got.header("content-type").starts_with("text/html") {
            for inline in ["<style", " style=", " onclick", " onload", "javascript:"] {
                assert!(!got.body.contains(inline), "{inline} in {path}");
            }
            assert_eq!(got.body.matches("<script").count(), got.body.matches("<script src=").count(), "{path}");
        }
    }
}

#[test]
fn every_view_is_a_page_and_json() {
    let bench = Bench::open();
    for path in PAGES {
        let got = bench.get(path, &[]);
        assert_eq!(got.status, 200, "{path}: {}", got.body);
        assert!(got.header("content-type").starts_with("text/html"));
        let json = if path == "/" { "/api/v1/overview".to_owned() } else { format!("/api/v1{path}") };
        let got = bench.get(&json, &[]);
        // What cannot be told yet is a page that says what to do, and no answer for a program.
        assert_eq!(got.status, if path == "/posture" { 404 } else { 200 }, "{json}: {}", got.body);
        let _: serde_json::Value = serde_json::from_str(&got.body).unwrap();
    }
}

#[test]
fn the_document_tells_of_every_route_of_the_api_and_of_no_other() {
    let bench = Bench::open();
    let document: serde_json::Value = serde_json::from_str(&bench.get("/api/v1/openapi.json", &[]).body).unwrap();
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.len(), 10);
    for path in paths.keys() {
        let got = bench.get(path, &[]);
        assert!(!got.body.contains("no such page"), "{path}: {}", got.status);
    }
    assert_eq!(document["openapi"], "3.1.0");
}

#[test]
fn who_may_do_what() {
    let bearer = |token: &str| vec![("authorization", format!("Bearer {token}"))];
    let body = r#"{"findings":["a-1"],"reason":"r","by":"b"}"#;
    let tokens = |read: bool, write: bool, read_only: bool| Access {
        read_token: read.then(|| READ.into()),
        write_token: write.then(|| WRITE.into()),
        read_only,
        ..Access::default()
    };
    // Of a page, of JSON, of metrics, of accepting; by nobody, a reader and a writer.
    for (access, nobody, reader, writer) in [
        (tokens(false, false, false), [200, 200, 200, 200], [401; 4], [401; 4]),
        (tokens(false, false, true), [200, 200, 200, 403], [401; 4], [401; 4]),
        (tokens(true, false, false), [303, 401, 401, 401], [200, 200, 200, 403], [401; 4]),
        (tokens(true, true, false), [303, 401, 401, 401], [200, 200, 200, 403], [200; 4]),
        (tokens(true, true, true), [303, 401, 401, 401], [200, 200, 200, 403], [200, 200, 200, 403]),
        (tokens(false, true, false), [200, 200, 200, 403], [401; 4], [200; 4]),
    ] {
        let about = format!("{:?} {:?} {}", access.read_token, access.write_token, access.read_only);
        let bench = Bench::new(access);
        for (who, expected) in [(vec![], nobody), (bearer(READ), reader), (bearer(WRITE), writer)] {
            let mut headers: Vec<(&str, &str)> = who.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let mut got = vec![];
            for path in ["/drift", "/api/v1/drift", "/metrics"] {
                got.push(bench.get(path, &headers).status);
            }
            headers.push(AS_JSON);
            got.push(bench.send("POST", "/api/v1/accept", &headers, body).status);
            assert_eq!(got, expected, "{about} {who:?}");
        }
        assert_eq!(bench.get("/", &[("authorization", "Bearer token-of-another-kind")]).status, 401, "{about}");
        for path in ["/healthz", "/readyz", "/sign-in", &ASSETS.script.path] {
            assert_eq!(bench.get(path, &[]).status, 200, "{path}");
        }
    }
}

#[test]
fn a_browser_signs_in_once_and_out_again() {
    let bench = Bench::guarded();
    let got = bench.get("/drift?status=unknown", &[]);
    assert_eq!((got.status, got.header("location")), (303, "/sign-in?next=%2Fdrift%3Fstatus%3Dunknown"));
    let sign_in = |token: &str, next: &str, more: &[(&str, &str)]| {
        let body = form_urlencoded::Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("next", next)
            .finish();
        bench.send("POST", "/sign-in", &[&[FORM], more].concat(), &body)
    };
    let wrong = sign_in("something-quite-different", "/", &[]);
    assert_eq!((wrong.status, wrong.cookies().as_str()), (401, ""));
    let got = sign_in(WRITE, "/drift?status=unknown", &[("x-forwarded-proto", "https")]);
    assert_eq!((got.status, got.header("location")), (303, "/drift?status=unknown"));
    let cookie = got.headers["set-cookie"].to_str().unwrap();
    assert!(["HttpOnly", "SameSite=Strict", "Secure", "Path=/"].iter().all(|word| cookie.contains(word)), "{cookie}");
    assert!(!cookie.contains(WRITE));
    let cookies = got.cookies();
    let signed = [("cookie", cookies.as_str())];
    assert_eq!(bench.get("/drift", &signed).status, 200);
    for next in ["//evil.example/", "https://evil.example/", "/\\evil.example", "/a\r\nx: y", "javascript:alert(1)", ""]
    {
        assert_eq!(sign_in(READ, next, &[]).header("location"), "/", "{next:?}");
    }
    assert_eq!(sign_in(READ, "/", &[("origin", "https://evil.example")]).status, 403);
    let csrf = bench.csrf(&signed);
    let refused = bench.send("POST", "/sign-out", &[FORM, signed[0]], "csrf=0");
    assert_eq!((refused.status, refused.cookies().as_str()), (403, ""));
    let out = bench.send("POST", "/sign-out", &[FORM, signed[0]], &format!("csrf={csrf}"));
    assert_eq!((out.status, out.cookies().as_str()), (303, "driftline-session="));
}

#[test]
fn findings_are_accepted_from_our_own_pages_only() {
    for bench in [Bench::open(), Bench::guarded()] {
        let (cookie, _) = bench.server.options.access.sign_in(WRITE, clock()).unzip();
        let cookie = cookie.unwrap_or_default();
        let cookie = format!("driftline-session={cookie}");
        let cookies = [("cookie", cookie.as_str())];
        let csrf = bench.csrf(&cookies);
        let form =
            |csrf: &str| format!("csrf={csrf}&finding=a-1&finding=b-2&reason=planned&by=mara&back=%2Fdrift%3Fq%3Dx");
        let own = [FORM, cookies[0], ("origin", "http://127.0.0.1:8080"), ("sec-fetch-site", "same-origin")];
        let post = |headers: &[(&str, &str)], body: &str| bench.send("POST", "/accept", headers, body).status;
        assert_eq!(post(&own, &form("")), 403);
        assert_eq!(post(&own, &form("00112233445566778899aabbccddeeff")), 403);
        let foreign = [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ];
        for header in foreign {
            assert_eq!(post(&[FORM, cookies[0], header], &form(&csrf)), 403, "{header:?}");
            let body = r#"{"findings":["a-1"],"reason":"r","by":"b"}"#;
            let json =
                bench.send("POST", "/api/v1/accept", &[AS_JSON, cookies[0], header, ("x-csrf-token", &csrf)], body);
            assert_eq!(json.status, 403, "{header:?}");
        }
        let body = r#"{"findings":["a-1"],"reason":"r","by":"b"}"#;
        let without = bench.send("POST", "/api/v1/accept", &[AS_JSON, cookies[0], own[2]], body);
        assert_eq!(without.status, 403);
        // A form of another site can send this type without being asked first.
        let plain = bench.send(
            "POST",
            "/api/v1/accept",
            &[("content-type", "text/plain"), cookies[0], ("x-csrf-token", &csrf)],
            body,
        );
        assert_eq!(plain.status, 415);
        assert_eq!(bench.fake.accepted.lock().unwrap().len(), 0);

        let done = bench.send("POST", "/accept", &own, &form(&csrf));
        assert_eq!((done.status, done.header("location")), (303, "/drift?q=x"));
        let taken = bench.fake.accepted.lock().unwrap()[0].clone();
        assert_eq!(
            (taken.findings.as_slice(), taken.reason.as_str(), taken.by.as_str()),
            (&["a-1".to_owned(), "b-2".into()][..], "planned", "mara")
        );
        // The next page says so, once, and remembers who it was.
        let cookies = format!("{cookie}; {}", done.cookies());
        let page = bench.get("/drift", &[("cookie", &cookies)]);
        assert!(page.body.contains("2 findings were accepted") && page.body.contains("value=\"mara\""));
        assert!(
            page.headers
                .get_all("set-cookie")
                .iter()
                .any(|value| value.to_str().unwrap().starts_with("driftline-notice=;"))
        );
        assert!(!bench.get("/drift", &[("cookie", &cookie)]).body.contains("were accepted"));
    }
}

#[test]
fn what_cannot_be_accepted_keeps_what_was_typed() {
    let bench = Bench::open();
    let csrf = bench.csrf(&[]);
    for (body, status, word) in [
        ("finding=a-1&reason=&by=mara", 400, "empty reason"),
        ("finding=a-1&reason=%20%20&by=mara", 400, "empty reason"),
        ("reason=planned&by=mara", 400, "nothing was chosen"),
        ("finding=a-1&reason=planned&by=", 400, "not said who"),
        ("finding=a-1&reason=plan%E2%80%AEned&by=mara", 400, "cannot be seen"),
        ("finding=gone&reason=planned&by=mara", 409, "it changed"),
    ] {
        let got = bench.send("POST", "/accept", &[FORM], &format!("csrf={csrf}&{body}"));
        assert_eq!(got.status, status, "{body}");
        // A message begins with a capital on a page.
        assert!(got.body.to_lowercase().contains(word), "{body}: {}", got.body);
        assert_eq!(got.body.contains("planned"), body.contains("planned"), "{body}");
    }
    let long = format!("csrf={csrf}&finding=a-1&by=m&reason={}", "x".repeat(2_001));
    assert_eq!(bench.send("POST", "/accept", &[FORM], &long).status, 400);
    for (body, status) in [
        ("{", 400),
        ("[]", 400),
        (r#"{"findings":[],"reason":"r","by":"b"}"#, 400),
        (r#"{"findings":["a"],"reason":"r","by":"b","x":1}"#, 400),
    ] {
        let got = bench.send("POST", "/api/v1/accept", &[AS_JSON], body);
        assert_eq!((got.status, got.header("content-type")), (status, "application/problem+json"), "{body}");
    }
    assert!(bench.fake.accepted.lock().unwrap().is_empty());
}

#[test]
fn a_name_that_is_not_ours_is_not_answered() {
    let bench = Bench::open();
    for (host, status) in [
        ("127.0.0.1:8080", 200),
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:8080", 200),
        ("10.1.2.3", 200),
        ("drift.example", 200),
        ("Drift.Example:443", 200),
        ("evil.example", 421),
        ("localhost.evil.example:8080", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
    ] {
        assert_eq!(bench.get("/healthz", &[("host", host)]).status, status, "{host}");
    }
    assert_eq!(bench.get("/healthz", &[("host", "localhost"), ("host", "localhost")]).status, 421);
    assert_eq!(bench.get("http://evil.example/healthz", &[]).status, 421);
}

#[test]
fn there_is_an_end_to_everything_that_is_sent() {
    let bench = Bench::open();
    assert_eq!(bench.get(&format!("/drift?q={}", "x".repeat(17_000)), &[]).status, 414);
    assert_eq!(bench.get(&format!("/drift?q={}", "x".repeat(3_000)), &[]).status, 400);
    let many: String = (0..101).map(|number| format!("source=s{number}&")).collect();
    assert_eq!(bench.get(&format!("/api/v1/drift?{many}"), &[]).status, 400);
    assert_eq!(bench.send("POST", "/accept", &[FORM], &"x".repeat(200_000)).status, 413);
    assert_eq!(bench.send("POST", "/api/v1/accept", &[AS_JSON], &"x".repeat(200_000)).status, 413);
    assert_eq!(bench.send("DELETE", "/drift", &[], "").status, 405);
    assert_eq!(bench.send("PUT", "/api/v1/accept", &[], "").header("content-type"), "application/problem+json");
    // Others are told to come back while all places are taken.
    let taken = bench.server.slots.try_acquire_many(256).unwrap();
    let busy = bench.get("/healthz", &[]);
    assert_eq!((busy.status, busy.header("retry-after")), (503, "2"));
    drop(taken);
    assert_eq!(bench.get("/healthz", &[]).status, 200);
    let listeners = bench.server.listeners.clone().try_acquire_many_owned(128).unwrap();
    assert_eq!(bench.get("/events", &[]).status, 503);
    drop(listeners);
}

#[test]
fn who_has_an_answer_already_is_not_sent_it_again() {
    let bench = Bench::open();
    for path in ["/", "/drift?sort=id", "/api/v1/drift", "/api/v1/openapi.json", &ASSETS.style.path] {
        let first = bench.get(path, &[]);
        let tag = first.header("etag").to_owned();
        assert!(tag.starts_with("W/\""), "{path}");
        let again = bench.get(path, &[("if-none-match", &format!("\"other\", {tag}"))]);
        assert_eq!((again.status, again.body.as_str()), (304, ""), "{path}");
        assert_eq!(bench.get(path, &[("if-none-match", "W/\"other\"")]).status, 200);
        let zipped = bench.get(path, &[("accept-encoding", "br, gzip;q=0.8")]);
        assert_eq!((zipped.header("content-encoding"), zipped.header("etag")), ("gzip", tag.as_str()), "{path}");
        assert_eq!(bench.get(path, &[("accept-encoding", "gzip;q=0")]).header("content-encoding"), "");
    }
    assert_ne!(bench.get("/drift", &[]).header("etag"), bench.get("/drift?sort=id", &[]).header("etag"));
    let before = bench.get("/api/v1/drift", &[]).header("etag").to_owned();
    bench.fake.land("second");
    bench.shown("second");
    assert_ne!(bench.get("/api/v1/drift", &[]).header("etag"), before);
    assert!(bench.get(&ASSETS.script.path, &[]).header("cache-control").contains("immutable"));
}

#[test]
fn a_page_of_one_visitor_is_not_shown_to_another() {
    let bench = Bench::guarded();
    let cookie = |token: &str, at: i64| {
        let now = clock() + jiff::SignedDuration::from_secs(at);
        format!("driftline-session={}", bench.server.options.access.sign_in(token, now).unwrap().0)
    };
    let (writer, other, reader) = (cookie(WRITE, 0), cookie(WRITE, 1), cookie(READ, 0));
    let writers = [("cookie", writer.as_str())];
    let csrf = bench.csrf(&writers);
    assert!(!bench.get("/drift", &[("cookie", &other)]).body.contains(&csrf));
    let read = bench.get("/drift", &[("cookie", &reader)]).body;
    assert!(!read.contains(&csrf) && !read.contains("action=\"/accept\""));
    assert!(bench.get("/drift", &writers).body.contains("action=\"/accept\""));
    for page in ["/", "/drift", "/api/v1/overview", "/metrics"] {
        let body = bench.get(page, &writers).body;
        assert!(!body.contains(READ) && !body.contains(WRITE), "{page}");
    }
}

#[test]
fn nobody_waits_for_what_is_being_computed() {
    let bench = Bench::open();
    bench.shown("first");
    bench.fake.hold(true);
    bench.fake.land("second");
    bench.runtime.block_on(bench.server.live.bring("second", Duration::from_millis(1)));
    for _ in 0..3 {
        assert!(bench.get("/api/v1/overview", &[]).body.contains("\"revision\":\"first\""));
    }
    bench.fake.hold(false);
    bench.shown("second");
    assert!(bench.get("/api/v1/overview", &[]).body.contains("\"revision\":\"second\""));
}

#[test]
fn what_cannot_be_brought_up_to_date_is_shown_with_a_warning() {
    let bench = Bench::open();
    bench.shown("first");
    bench.fake.broken.store(true, Ordering::SeqCst);
    bench.fake.land("second");
    let mut known = bench.server.live.subscribe();
    bench.runtime.block_on(known.wait_for(|known| known.trouble.is_some())).unwrap();
    let page = bench.get("/", &[]);
    assert!(page.status == 200 && page.body.contains(SECRET) && page.body.contains("the newest cannot be read"));
    assert_eq!(bench.get("/readyz", &[]).status, 503);
    assert!(bench.get("/metrics", &[]).body.contains("driftline_up_to_date 0"));
    bench.fake.broken.store(false, Ordering::SeqCst);
    bench.runtime.block_on(bench.server.live.bring("second", Duration::from_mins(1)));
    assert!(!bench.get("/", &[]).body.contains(SECRET));
    assert_eq!(bench.get("/readyz", &[]).status, 200);
}

#[test]
fn a_server_that_never_could_read_says_so() {
    let bench = Bench::with(Access::default(), Fake { broken: true.into(), ..Fake::default() });
    for path in ["/", "/api/v1/drift"] {
        let got = bench.get(path, &[]);
        let said = got.body.to_lowercase();
        assert!(got.status == 500 && said.contains(&SECRET.to_lowercase()) && said.contains("look"), "{got:?}");
    }
    assert_eq!(bench.get("/readyz", &[]).status, 503);
    assert_eq!(bench.get("/healthz", &[]).status, 200);
}

#[test]
fn listeners_are_told_of_a_new_revision_and_of_the_end() {
    let bench = Bench::open();
    bench.shown("first");
    let request = HttpRequest::get("/events").header("host", "localhost").body(Body::empty()).unwrap();
    bench.runtime.block_on(async {
        let response = bench.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut body = response.into_body();
        let mut next = async || {
            let frame = body.frame().await?.unwrap().into_data().unwrap();
            Some(String::from_utf8(frame.to_vec()).unwrap())
        };
        assert_eq!(next().await.unwrap(), "event: revision\ndata: {\"revision\":\"first\"}\n\n");
        bench.fake.land("second");
        assert_eq!(next().await.unwrap(), "event: revision\ndata: {\"revision\":\"second\"}\n\n");
        bench.stop.send_replace(true);
        assert!(next().await.unwrap().starts_with("event: bye"));
        assert_eq!(next().await, None);
    });
}

#[test]
fn parts_of_the_list_are_linked_and_add_up() {
    let bench = Bench::open();
    let mut next = Some("/api/v1/drift?limit=7&sort=id".to_owned());
    let mut seen = std::collections::BTreeSet::new();
    let mut total = 0;
    while let Some(address) = next {
        let answer: serde_json::Value = serde_json::from_str(&bench.get(&address, &[]).body).unwrap();
        total = answer["total"].as_u64().unwrap();
        for finding in answer["findings"].as_array().unwrap() {
            assert!(seen.insert(finding["id"].as_str().unwrap().to_owned()));
        }
        next = answer["next"].as_str().map(ToOwned::to_owned);
    }
    assert!(seen.len() as u64 == total && total > 20, "{total}");
}

#[test]
fn an_address_that_means_harm_is_only_text() {
    let bench = Bench::open();
    let nasty = [
        "%3Cscript%3Ealert(1)%3C/script%3E",
        "%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E",
        "%E2%80%AE%00%0D%0Aset-cookie:%20a=b",
    ];
    for word in nasty {
        for path in [
            format!("/drift?q={word}"),
            format!("/drift?{word}=1"),
            format!("/drift?sort={word}"),
            format!("/resource?id={word}"),
            format!("/sign-in?next=/{word}"),
            format!("/{word}"),
            format!("/topology?from={word}"),
            format!("/drift?place={word}"),
        ] {
            let got = bench.get(&path, &[("cookie", &format!("driftline-by={word}; driftline-notice={word}"))]);
            assert!(got.status < 500, "{path}");
            let body = got.body.to_lowercase();
            assert!(!body.contains("<script>alert") && !body.contains("<img src=x"), "{path}");
            assert!(
                !got.headers.get_all("set-cookie").iter().any(|value| value.as_bytes().starts_with(b"a=b")),
                "{path}"
            );
        }
    }
}

/// A server on a port of its own, with little patience.
fn listening(bench: &Bench, head: Duration) -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let patience = Patience { head, unread: Duration::from_secs(5), end: Duration::from_secs(5) };
    let (server, stop) = (bench.server.clone(), bench.server.stop.clone());
    bench.runtime.spawn(run(listener, server, stop, patience));
    address
}

#[test]
fn whoever_is_too_slow_to_ask_is_not_waited_for() {
    let bench = Bench::open();
    let address = listening(&bench, Duration::from_millis(50));
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: local").unwrap();
    let mut said = Vec::new();
    // Ends only because the server closes the connection.
    let _ = stream.read_to_end(&mut said);
    assert!(!String::from_utf8_lossy(&said).contains("200 OK"));
}

#[test]
fn heads_have_an_end_and_connections_are_brought_to_theirs() {
    let bench = Bench::open();
    let address = listening(&bench, Duration::from_secs(30));
    let ask = |request: &str| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let _ = stream.write_all(request.as_bytes());
        let mut said = String::new();
        let _ = stream.read_to_string(&mut said);
        said.lines().next().unwrap_or_default().to_owned()
    };
    let head = |more: &str| format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n");
    assert_eq!(ask(&head("")), "HTTP/1.1 200 OK");
    assert!(ask(&head(&"x: y\r\n".repeat(200))).contains("431"));
    assert!(!ask(&head(&format!("x: {}\r\n", "y".repeat(100_000)))).contains("200"));
    // A connection that is kept open, and one that listens, do not keep the server from stopping.
    let mut kept = std::net::TcpStream::connect(address).unwrap();
    kept.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut some = [0; 64];
    assert!(kept.read(&mut some).unwrap() > 0);
    bench.stop.send_replace(true);
    let mut rest = String::new();
    kept.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("event: bye"), "{rest}");
    let mut refused = std::net::TcpStream::connect(address);
    while refused.is_ok() {
        refused = std::net::TcpStream::connect(address);
    }
}
