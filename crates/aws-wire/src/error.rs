//! What went wrong, in one vocabulary for the dialects of all services.

use std::fmt;
use std::time::Duration;

use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use serde_json::Value;

use crate::call::header;
use crate::xml::Element;

/// What kind of failure it is: what the caller should do depends on this and on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Throttled,
    AccessDenied,
    NotFound,
    /// A condition such as `If-Match` did not hold.
    Precondition,
    Conflict,
    /// The service does not accept the request as it is.
    Invalid,
    /// The service failed, or does not have the operation.
    Unavailable,
    Timeout,
    /// There are no credentials, or they are not good anywhere.
    Credentials,
    /// No connection to the service.
    Unreachable,
    /// The credentials are good elsewhere, and not in this region.
    RegionDisabled,
    /// The service answered well, but not in its own language.
    Malformed,
    /// The calls that this run may make are spent.
    Budget,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub kind: Kind,
    /// The service's own word: `ThrottlingException`, `NoSuchBucket`.
    pub code: Option<Box<str>>,
    pub message: Box<str>,
    pub service: Box<str>,
    pub operation: Box<str>,
    pub request_id: Option<Box<str>>,
    pub retry_after: Option<Duration>,
    /// Where to ask instead: S3 says in which region a bucket is.
    pub region: Option<Box<str>>,
}

impl Error {
    pub fn of(kind: Kind, service: &str, operation: &str, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: None,
            message: message.into().into_boxed_str(),
            service: service.into(),
            operation: operation.into(),
            request_id: None,
            retry_after: None,
            region: None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.service.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{} {}", self.service, self.operation)?;
        if let Some(code) = &self.code {
            write!(f, ": {code}")?;
        }
        if !self.message.is_empty() && Some(&self.message) != self.code.as_ref() {
            write!(f, ": {}", self.message)?;
        }
        if let Some(id) = &self.request_id {
            write!(f, " (request {id})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// Reads a refusal in whatever dialect it is. `trusted` says that the same credentials were accepted elsewhere; `now` is
/// the time in seconds since 1970.
pub(crate) fn from_response(
    service: &str,
    operation: &str,
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
    trusted: bool,
    now: i64,
) -> Error {
    let said = Said::read(headers, body);
    let kind = kind_of(status, said.code.as_deref(), trusted);
    let message = said.message.unwrap_or_else(|| match said.is_html {
        true => format!("it answered a web page with status {status}, not its own language"),
        false => format!("status {status}"),
    });
    let request_id = ["x-amzn-requestid", "x-amz-request-id", "x-amzn-request-id"]
        .iter()
        .find_map(|name| header(headers, name))
        .map(Box::from)
        .or_else(|| said.request_id.map(Box::from));
    let retry_after = retry_after(headers, now);
    Error {
        kind,
        code: said.code.map(Box::from),
        message: message.into(),
        service: service.into(),
        operation: operation.into(),
        request_id,
        retry_after,
        region: header(headers, "x-amz-bucket-region").map(Box::from).or(said.region.map(Box::from)),
    }
}

#[derive(Default)]
struct Said {
    code: Option<String>,
    message: Option<String>,
    request_id: Option<String>,
    region: Option<String>,
    is_html: bool,
}

impl Said {
    fn read(headers: &[(String, String)], body: &[u8]) -> Self {
        let mut said = Self { is_html: is_html(body), ..Self::default() };
        if !said.is_html {
            if let Ok(json) = serde_json::from_slice::<Value>(body) {
                let text = |names: &[&str]| names.iter().find_map(|name| json[*name].as_str()).map(str::to_owned);
                said.code = text(&["__type", "code", "Code"]).map(|code| bare(&code));
                said.message = text(&["message", "Message", "errorMessage"]);
            } else if let Ok(xml) = Element::parse(body) {
                // `ErrorResponse/Error`, EC2's `Response/Errors/Error`, and S3's bare `Error`.
                let error = xml.find("Error").unwrap_or(&xml);
                let text = |name| error.child(name).map(|found| found.text.trim().to_owned());
                said.code = text("Code");
                said.message = text("Message");
                said.region = text("Region");
                said.request_id = xml.find("RequestId").or_else(|| xml.find("RequestID")).map(|id| id.text.clone());
            }
        }
        // The header is the word of the REST protocols, and the body may have another.
        if let Some(code) = header(headers, "x-amzn-errortype") {
            said.code = Some(bare(code));
        }
        said.code = said.code.filter(|code| !code.is_empty());
        said.message = said.message.filter(|message| !message.is_empty());
        said
    }
}

pub(crate) fn is_html(body: &[u8]) -> bool {
    let start: Vec<u8> = body.iter().copied().skip_while(u8::is_ascii_whitespace).take(14).collect();
    let start = start.to_ascii_lowercase();
    start.starts_with(b"<!doctype html") || start.starts_with(b"<html")
}

/// `com.amazonaws.sqs#QueueDoesNotExist:http://…` is `QueueDoesNotExist`.
fn bare(code: &str) -> String {
    let code = code.split_once(':').map_or(code, |(before, _)| before);
    code.rsplit_once('#').map_or(code, |(_, after)| after).to_owned()
}

const THROTTLES: &[&str] = &[
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "LimitExceededException",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "Throttled",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequests",
    "TooManyRequestsException",
    "TransactionInProgressException",
];

const DENIALS: &[&str] = &[
    "AccessDenied",
    "AccessDeniedException",
    "AuthorizationError",
    "AuthorizationErrorException",
    "AuthorizationException",
    "Client.UnauthorizedOperation",
    "ForbiddenException",
    "NotAuthorized",
    "NotAuthorizedException",
    "UnauthorizedException",
    "UnauthorizedOperation",
];

/// The credentials themselves are no good, anywhere.
const BAD_CREDENTIALS: &[&str] = &[
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "IncompleteSignatureException",
    "InvalidAccessKeyId",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "NotSignedUp",
    "RequestExpired",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
];

/// What a region says that the account has not enabled. It says the same of credentials that are wrong.
const UNKNOWN_HERE: &[&str] = &["AuthFailure", "InvalidClientTokenId", "InvalidToken", "UnrecognizedClientException"];

const UNKNOWN_OPERATION: &[&str] = &[
    "InvalidAction",
    "NotImplemented",
    "NotImplementedException",
    "UnknownOperation",
    "UnknownOperationException",
    "UnsupportedOperation",
];

pub(crate) fn is_unknown_operation(code: &str) -> bool {
    UNKNOWN_OPERATION.contains(&code)
}

/// What S3 says of a bucket that is in another region.
pub(crate) fn is_redirect(code: &str) -> bool {
    ["PermanentRedirect", "TemporaryRedirect", "Redirect"].contains(&code)
}

/// Whether a refusal may be due to this machine's clock.
pub(crate) fn is_skew(code: &str) -> bool {
    ["RequestTimeTooSkewed", "RequestExpired", "InvalidSignatureException", "SignatureDoesNotMatch", "AuthFailure"]
        .contains(&code)
}

fn kind_of(status: u16, code: Option<&str>, trusted: bool) -> Kind {
    if let Some(code) = code {
        let is = |codes: &[&str]| codes.contains(&code);
        // A quota of things that exist (`LimitExceededException`, 400) is not met by reading; of calls it is.
        if is(THROTTLES) {
            return Kind::Throttled;
        }
        if is(DENIALS) {
            return Kind::AccessDenied;
        }
        if code == "OptInRequired" || code == "SubscriptionRequiredException" {
            return Kind::RegionDisabled;
        }
        if is(UNKNOWN_HERE) {
            return if trusted { Kind::RegionDisabled } else { Kind::Credentials };
        }
        if is(BAD_CREDENTIALS) {
            return Kind::Credentials;
        }
        if is(UNKNOWN_OPERATION) {
            return Kind::Unavailable;
        }
        if code == "RequestTimeout" || code == "RequestTimeoutException" {
            return Kind::Timeout;
        }
        if code == "PreconditionFailed" || code == "InvalidIfMatchVersion" {
            return Kind::Precondition;
        }
        if status < 500 {
            let has = |parts: &[&str]| parts.iter().any(|part| code.contains(part));
            if has(&["NotFound", "NoSuch", "NonExistent", "DoesNotExist", "Nonexistent"]) {
                return Kind::NotFound;
            }
            if has(&["AlreadyExists", "Conflict", "ConcurrentModification", "ResourceInUse"]) {
                return Kind::Conflict;
            }
        }
    }
    match status {
        401 | 403 => Kind::AccessDenied,
        404 | 410 => Kind::NotFound,
        408 => Kind::Timeout,
        409 => Kind::Conflict,
        412 => Kind::Precondition,
        429 => Kind::Throttled,
        400..=499 => Kind::Invalid,
        _ => Kind::Unavailable,
    }
}

/// Seconds or a date in `Retry-After`, milliseconds in `x-amz-retry-after`.
fn retry_after(headers: &[(String, String)], now: i64) -> Option<Duration> {
    let number = |name| header(headers, name).and_then(|text| text.trim().parse::<f64>().ok());
    let millis = number("x-amz-retry-after").map(|millis| millis / 1000.0);
    if let Some(seconds) = millis.or_else(|| number("retry-after")) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |name| {
        let text = header(headers, name)?.trim();
        DateTime::from_str(text, Format::HttpDate).ok().map(|date| date.secs())
    };
    // By the clock of whoever asks to wait; ours may be wrong.
    let seconds = date("retry-after")?.saturating_sub(date("date").unwrap_or(now));
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, headers: &[(&str, &str)], body: &str, trusted: bool) -> Error {
        let headers: Vec<_> = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        from_response("svc", "Op", status, &headers, body.as_bytes(), trusted, 1_767_225_600)
    }

    #[test]
    fn every_dialect_is_read() {
        let query = "<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message>\
                     </Error><RequestId>r-1</RequestId></ErrorResponse>";
        let error = read(400, &[], query, true);
        assert_eq!((error.kind, error.code.as_deref()), (Kind::Throttled, Some("Throttling")));
        assert_eq!(error.request_id.as_deref(), Some("r-1"));
        let ec2 = "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not authorized\
                   </Message></Error></Errors><RequestID>r-2</RequestID></Response>";
        let error = read(403, &[], ec2, true);
        assert_eq!((error.kind, error.request_id.as_deref()), (Kind::AccessDenied, Some("r-2")));
        let s3 = "<Error><Code>NoSuchBucket</Code><Message>gone</Message><BucketName>b</BucketName></Error>";
        assert_eq!(read(404, &[], s3, true).kind, Kind::NotFound);
        let json = r#"{"__type":"com.amazonaws.events#ResourceNotFoundException","message":"no bus"}"#;
        let error = read(400, &[("x-amzn-requestid", "r-3")], json, true);
        assert_eq!((error.kind, &*error.message), (Kind::NotFound, "no bus"));
        assert_eq!(error.to_string(), "svc Op: ResourceNotFoundException: no bus (request r-3)");
        let rest =
            read(429, &[("x-amzn-ErrorType", "TooManyRequestsException:http://x/")], r#"{"Message":"Rate"}"#, true);
        assert_eq!((rest.kind, rest.code.as_deref()), (Kind::Throttled, Some("TooManyRequestsException")));
    }

    #[test]
    fn a_web_page_or_an_empty_failure_is_unavailable() {
        for body in ["<!doctype html>\n<html><title>500</title></html>", "  <HTML>", ""] {
            for status in [500, 502, 503, 504] {
                assert_eq!(read(status, &[], body, true).kind, Kind::Unavailable, "{status} {body}");
            }
        }
    }

    #[test]
    fn codes_of_a_disabled_region_mean_that_only_where_the_credentials_are_good_elsewhere() {
        for code in ["UnrecognizedClientException", "InvalidClientTokenId", "AuthFailure"] {
            let body = format!(r#"{{"__type":"{code}","message":"The security token is invalid"}}"#);
            assert_eq!(read(400, &[], &body, true).kind, Kind::RegionDisabled);
            assert_eq!(read(400, &[], &body, false).kind, Kind::Credentials);
        }
        assert_eq!(read(403, &[], r#"{"__type":"OptInRequired"}"#, false).kind, Kind::RegionDisabled);
    }

    #[test]
    fn the_rest_follows_from_status_and_code() {
        let json = |code: &str| format!(r#"{{"__type":"{code}"}}"#);
        for (status, code, kind) in [
            (503, "SlowDown", Kind::Throttled),
            (503, "RequestLimitExceeded", Kind::Throttled),
            (403, "ExpiredTokenException", Kind::Credentials),
            (412, "PreconditionFailed", Kind::Precondition),
            (409, "CNAMEAlreadyExists", Kind::Conflict),
            (400, "ValidationException", Kind::Invalid),
            (400, "AWS.SimpleQueueService.NonExistentQueue", Kind::NotFound),
            (400, "InvalidAction", Kind::Unavailable),
            (500, "InternalFailure", Kind::Unavailable),
            (400, "RequestTimeout", Kind::Timeout),
        ] {
            assert_eq!(read(status, &[], &json(code), true).kind, kind, "{code}");
        }
    }

    #[test]
    fn the_service_may_ask_to_wait() {
        assert_eq!(read(503, &[("Retry-After", "3")], "", true).retry_after, Some(Duration::from_secs(3)));
        let both = [("retry-after", "3"), ("x-amz-retry-after", "1500")];
        assert_eq!(read(503, &both, "", true).retry_after, Some(Duration::from_millis(1500)));
        assert_eq!(read(503, &[("retry-after", "-1")], "", true).retry_after, None);
        let dated = |headers: &[(&str, &str)]| read(503, headers, "", true).retry_after;
        let until = ("retry-after", "Thu, 01 Jan 2026 00:00:30 GMT");
        assert_eq!(dated(&[until]), Some(Duration::from_secs(30)), "by our clock");
        let theirs = ("date", "Thu, 01 Jan 2026 00:00:25 GMT");
        assert_eq!(dated(&[until, theirs]), Some(Duration::from_secs(5)), "by theirs, if they say");
        assert_eq!(dated(&[("retry-after", "Wed, 31 Dec 2025 23:00:00 GMT")]), Some(Duration::ZERO), "it is over");
        assert_eq!(dated(&[("retry-after", "soon")]), None);
    }
}
