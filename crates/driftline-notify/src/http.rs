//! One POST: to whom, what an answer means, and the signed webhook.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::Sha256;

use crate::channel::{Failure, Sent, SetupError};
use crate::message::Message;
use crate::words::clean;

const PATIENCE: Duration = Duration::from_secs(30);
/// More than any answer that is of use.
const ANSWER: u64 = 64 * 1024;

/// An address that may be a secret itself, and is never shown.
pub struct Url {
    text: String,
    agent: ureq::Agent,
}

impl std::fmt::Debug for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an address")
    }
}

impl Url {
    /// `plain` allows http to other machines.
    pub fn new(text: &str, plain: bool, user_agent: &str) -> Result<Self, SetupError> {
        let text = text.trim();
        let rest = match text.split_once("://") {
            Some(("https", rest)) => rest,
            Some(("http", rest)) if plain || is_this_machine(rest) => rest,
            Some(("http", _)) => {
                return Err(SetupError::new("over plain http anyone on the way could read what is told")
                    .hint("use https, or say `plain_http = true` if the way is yours"));
            }
            _ => return Err(SetupError::new("its address does not begin with https://")),
        };
        if rest.is_empty() || rest.starts_with('/') || text.parse::<ureq::http::Uri>().is_err() {
            return Err(SetupError::new("its address is not a URL"));
        }
        let tls = ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::PlatformVerifier).build();
        let agent = ureq::Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(PATIENCE))
            // Whoever moved says so to a person; what is told goes nowhere else by itself.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .user_agent(user_agent)
            .build()
            .new_agent();
        Ok(Self { text: text.to_owned(), agent })
    }

    /// Sends JSON and gives back what was answered, if it was a yes.
    pub fn post(&self, path: &str, headers: &[(&str, String)], body: &str) -> Result<Answer, Failure> {
        let mut request = self.agent.post(format!("{}{path}", self.text)).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let mut response = request.send(body).map_err(|error| Failure::later(told(&error)))?;
        let status = response.status().as_u16();
        let after = response.headers().get("retry-after").and_then(|value| value.to_str().ok().map(ToOwned::to_owned));
        let body = response.body_mut().with_config().limit(ANSWER).read_to_vec().unwrap_or_default();
        Ok(Answer { status, after, body })
    }
}

/// What the other end said.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub after: Option<String>,
    pub body: Vec<u8>,
}

impl Answer {
    /// What its status means.
    pub fn accepted(self, now: Option<Timestamp>) -> Result<Self, Failure> {
        let why = || {
            // Only code words such as `no_service`: many servers repeat what they were sent, and this is logged.
            let text = String::from_utf8_lossy(&self.body).trim().to_owned();
            let is_code = text.len() <= 60 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            let text = if is_code { text } else { String::new() };
            let colon = if text.is_empty() { "" } else { ": " };
            format!("answered with status {}{colon}{text}", self.status)
        };
        match self.status {
            200..=299 => Ok(self),
            // These are about what was sent; it will be the same the next time.
            400 | 413 | 414 | 415 | 422 => Err(Failure::Refused { why: why() }),
            300..=399 => Err(Failure::later(format!("answered with a redirect (status {})", self.status))),
            _ => {
                Err(Failure::Later { why: why(), after: self.after.as_deref().and_then(|text| retry_after(text, now)) })
            }
        }
    }
}

/// Seconds, or a moment.
fn retry_after(text: &str, now: Option<Timestamp>) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let moment = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()?;
    Duration::try_from(moment.duration_since(now?)).ok()
}

fn told(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => "it did not answer in time".into(),
        ureq::Error::HostNotFound => "its name cannot be resolved".into(),
        ureq::Error::Io(error) => error.to_string(),
        // It would repeat the address.
        ureq::Error::BadUri(_) => "its address is not a URL".into(),
        error => clean(&error.to_string(), 200),
    }
}

/// A host and what follows it.
pub fn is_this_machine(rest: &str) -> bool {
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let name = host.strip_prefix('[').and_then(|rest| rest.split(']').next());
    let name = name.unwrap_or_else(|| host.split(':').next().unwrap_or_default());
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The event as JSON, signed as Standard Webhooks has it, so that receivers can use a library to check it.
pub fn to_webhook(url: &Url, secret: Option<&[u8]>, message: &Message, now: Timestamp) -> Result<Sent, Failure> {
    let body = message.json().to_string();
    let timestamp = now.as_second().to_string();
    let mut headers = vec![
        ("webhook-id", message.id.clone()),
        ("webhook-timestamp", timestamp.clone()),
        ("driftline-event", message.event.about.word().to_owned()),
    ];
    if let Some(secret) = secret {
        headers.push(("webhook-signature", signature(secret, &message.id, &timestamp, &body)));
    }
    url.post("", &headers, &body)?.accepted(Some(now)).map(|_| Sent::default())
}

/// `v1,` and the base64 of an HMAC-SHA256 over id, time and body.
pub fn signature(secret: &[u8], id: &str, timestamp: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// A secret as Standard Webhooks writes it (`whsec_` and base64), or any text of at least 16 bytes.
pub fn secret(text: &str) -> Result<Vec<u8>, SetupError> {
    let text = text.trim();
    let bytes = match text.strip_prefix("whsec_") {
        Some(encoded) => STANDARD
            .decode(encoded)
            .map_err(|_| SetupError::new("what follows `whsec_` in its secret is not base64"))?,
        None => text.as_bytes().to_vec(),
    };
    match bytes.len() {
        0..16 => Err(SetupError::new("its secret is shorter than 16 bytes").hint("make one: openssl rand -base64 32")),
        _ => Ok(bytes),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_standard_webhooks_publishes() {
        // The example of the specification.
        let key = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let found = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", r#"{"test": 2432232314}"#);
        assert_eq!(found, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn an_answer_is_a_yes_a_no_or_a_later() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let answer = |status, after: Option<&str>| {
            Answer { status, after: after.map(ToOwned::to_owned), body: Vec::new() }.accepted(Some(now))
        };
        assert!(answer(204, None).is_ok());
        for status in [400, 413, 422] {
            assert!(matches!(answer(status, None), Err(Failure::Refused { .. })), "{status}");
        }
        for status in [301, 401, 403, 404, 408, 410, 429, 500, 503] {
            assert!(matches!(answer(status, None), Err(Failure::Later { after: None, .. })), "{status}");
        }
        let after = |text| match answer(429, Some(text)) {
            Err(Failure::Later { after, .. }) => after,
            other => panic!("{other:?}"),
        };
        assert_eq!(after("120"), Some(Duration::from_mins(2)));
        assert_eq!(after("Thu, 01 Jan 2026 00:01:00 GMT"), Some(Duration::from_mins(1)));
        assert_eq!(after("Thu, 01 Jan 2025 00:01:00 GMT"), None);
        assert_eq!(after("soon"), None);
    }

    #[test]
    fn an_address_is_https_or_of_this_machine() {
        for (text, plain, good) in [
            ("https://example.com/hook", false, true),
            ("http://127.0.0.1:8080/", false, true),
            ("http://localhost/", false, true),
            ("http://[::1]:1/", false, true),
            ("http://127.0.0.1@example.com/", false, false),
            ("http://example.com/", false, false),
            ("http://example.com/", true, true),
            ("ftp://example.com/", true, false),
            ("https://", false, false),
            ("hook", false, false),
        ] {
            assert_eq!(Url::new(text, plain, "test").is_ok(), good, "{text}");
        }
    }

    #[test]
    fn a_short_secret_is_refused() {
        assert!(secret("short").is_err());
        assert!(secret("whsec_%%%").is_err());
        assert_eq!(secret("sixteen bytes ok\n").unwrap(), b"sixteen bytes ok");
    }
}
