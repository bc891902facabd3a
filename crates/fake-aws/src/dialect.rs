//! How each service says no. Codes, status codes and shapes are those of the public API references; the texts too where
//! a client could be tempted to read them.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use crate::request::{Asked, Protocol};

/// A refusal by what it means; each service has its own words for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Too many calls.
    Throttle,
    /// The caller lacks the permission; the text names the action, as AWS does.
    Deny,
    /// The token of a page is no longer good.
    BadToken,
    /// The thing was changed since the `ETag` was read.
    Precondition,
    /// The region is not switched on for the account.
    RegionDisabled,
    /// The credentials have run out.
    ExpiredCredentials,
    /// The thing is not there.
    NotFound,
    /// The service itself failed.
    Internal,
    /// The service is not there just now.
    Unavailable,
}

impl Refusal {
    /// As rules spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throttle => "throttle",
            Self::Deny => "deny",
            Self::BadToken => "bad_token",
            Self::Precondition => "precondition",
            Self::RegionDisabled => "region_disabled",
            Self::ExpiredCredentials => "expired_credentials",
            Self::NotFound => "not_found",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
        }
    }
}

/// A refusal in the words of a service.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    pub code: String,
    pub status: u16,
    #[serde(default)]
    pub message: String,
    /// Of S3: where the bucket really is.
    #[serde(default)]
    pub region: Option<String>,
}

/// An answer as it goes over the wire.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl Answer {
    pub fn new(status: u16, kind: &str, body: impl Into<Bytes>) -> Self {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        Self { status, headers, body: body.into() }
    }
}

/// What this service calls that refusal.
pub fn words(asked: &Asked, refusal: Refusal) -> Said {
    use Protocol::{Ec2, Json10, Json11, Query, RestJson, RestXml};
    let service = asked.service.as_str();
    let json = matches!(asked.protocol, Json10 | Json11 | RestJson);
    let rest = matches!(asked.protocol, RestJson);
    let (status, code) = match refusal {
        Refusal::Throttle => match (service, asked.protocol) {
            ("s3", _) => (503, "SlowDown"),
            ("sqs", _) => (403, "RequestThrottled"),
            ("lambda" | "organizations", _) => (if rest { 429 } else { 400 }, "TooManyRequestsException"),
            (_, Ec2) => (503, "RequestLimitExceeded"),
            (_, Query | RestXml) => (400, "Throttling"),
            (_, Json10 | Json11) => (400, "ThrottlingException"),
            (_, RestJson) => (429, "ThrottlingException"),
        },
        Refusal::Deny => match asked.protocol {
            Ec2 => (403, "UnauthorizedOperation"),
            Query | RestXml => (403, "AccessDenied"),
            Json10 | Json11 => (if service == "sqs" { 403 } else { 400 }, "AccessDeniedException"),
            RestJson => (403, "AccessDeniedException"),
        },
        Refusal::BadToken => match (service, asked.protocol) {
            ("config", _) => (400, "InvalidNextTokenException"),
            (_, Ec2) => (400, "InvalidNextToken"),
            (_, Query) => (400, "ValidationError"),
            ("lambda", _) => (400, "InvalidParameterValueException"),
            ("s3" | "route53" | "cloudfront", _) => (400, "InvalidArgument"),
            _ => (400, "ValidationException"),
        },
        Refusal::Precondition => (412, "PreconditionFailed"),
        Refusal::RegionDisabled => match asked.protocol {
            Ec2 => (401, "AuthFailure"),
            Query | RestXml => (403, "InvalidClientTokenId"),
            Json10 | Json11 => (400, "UnrecognizedClientException"),
            RestJson => (403, "UnrecognizedClientException"),
        },
        Refusal::ExpiredCredentials => match asked.protocol {
            Ec2 => (400, "RequestExpired"),
            Query | RestXml => (403, "ExpiredToken"),
            Json10 | Json11 => (400, "ExpiredTokenException"),
            RestJson => (403, "ExpiredTokenException"),
        },
        Refusal::NotFound => match service {
            "cloudfront" => (404, "EntityNotFound"),
            "s3" => (404, "NoSuchBucket"),
            "route53" => (404, "NoSuchHostedZone"),
            _ if rest => (404, "ResourceNotFoundException"),
            _ if json => (400, "ResourceNotFoundException"),
            _ => (400, "NotFound"),
        },
        Refusal::Internal => match asked.protocol {
            Ec2 | RestXml => (500, "InternalError"),
            Query => (500, "InternalFailure"),
            Json10 | Json11 => (500, "InternalServerError"),
            RestJson => (500, "InternalServerException"),
        },
        Refusal::Unavailable => match asked.protocol {
            Ec2 => (503, "Unavailable"),
            Query | RestXml => (503, "ServiceUnavailable"),
            Json10 | Json11 | RestJson => (503, "ServiceUnavailableException"),
        },
    };
    Said { code: code.to_owned(), status, message: message(asked, refusal), region: None }
}

fn message(asked: &Asked, refusal: Refusal) -> String {
    let action = iam_action(&asked.service, &asked.operation);
    match refusal {
        Refusal::Throttle => "Rate exceeded".to_owned(),
        Refusal::Deny => {
            let who = format!("arn:aws:iam::{}:user/tester", asked.key);
            let cause = format!("because no identity-based policy allows the {action} action");
            match asked.protocol {
                Protocol::Ec2 => format!(
                    "You are not authorized to perform this operation. User: {who} is not authorized to perform: \
                     {action} {cause}"
                ),
                _ => format!("User: {who} is not authorized to perform: {action} {cause}"),
            }
        }
        Refusal::BadToken => "The token is invalid or has expired.".to_owned(),
        Refusal::Precondition => {
            "The precondition given in one or more of the request-header fields evaluated to false.".to_owned()
        }
        Refusal::RegionDisabled => match asked.protocol {
            Protocol::Ec2 => "AWS was not able to validate the provided access credentials".to_owned(),
            _ => "The security token included in the request is invalid.".to_owned(),
        },
        Refusal::ExpiredCredentials => "The security token included in the request is expired".to_owned(),
        Refusal::NotFound => "The specified resource does not exist.".to_owned(),
        Refusal::Internal => "We encountered an internal error. Please try again.".to_owned(),
        Refusal::Unavailable => "Service is unavailable. Please try again.".to_owned(),
    }
}

/// The action that a policy must allow for a call: mostly `service:Operation`, and sometimes neither.
pub fn iam_action(service: &str, operation: &str) -> String {
    let prefix = match service {
        "cloudcontrolapi" => "cloudformation",
        "monitoring" => "cloudwatch",
        "tagging" => "tag",
        other => other,
    };
    let action = match (service, operation) {
        ("s3", "ListBuckets") => "ListAllMyBuckets",
        ("s3", "GetBucketEncryption") => "GetEncryptionConfiguration",
        ("s3", "GetBucketLifecycleConfiguration") => "GetLifecycleConfiguration",
        ("s3", "GetBucketCors") => "GetBucketCORS",
        ("s3", "GetPublicAccessBlock") => "GetBucketPublicAccessBlock",
        ("s3", "GetBucketNotificationConfiguration") => "GetBucketNotification",
        ("s3", "GetBucketReplication") => "GetReplicationConfiguration",
        (_, operation) => operation,
    };
    format!("{prefix}:{action}")
}

const REQUEST_ID: &str = "00000000-0000-4000-8000-00000000fa4e";

/// The refusal as a document of the service.
pub fn say(asked: &Asked, said: &Said) -> Answer {
    let Said { code, status, message, region } = said;
    let message_xml = escape(message);
    let fault = if *status < 500 { "Sender" } else { "Receiver" };
    match asked.protocol {
        Protocol::Ec2 => {
            let body = format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{code}</Code><Message>\
                 {message_xml}</Message></Error></Errors><RequestID>{REQUEST_ID}</RequestID></Response>"
            );
            Answer::new(*status, "text/xml;charset=UTF-8", body)
        }
        Protocol::RestXml if asked.service == "s3" => {
            let place =
                region.as_ref().map(|region| format!("<Region>{}</Region>", escape(region))).unwrap_or_default();
            let body = format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{message_xml}</Message>\
                 {place}<RequestId>{REQUEST_ID}</RequestId><HostId>fake</HostId></Error>"
            );
            let mut answer = Answer::new(*status, "application/xml", body);
            answer.headers.extend(region.iter().map(|region| ("x-amz-bucket-region".to_owned(), region.clone())));
            answer
        }
        Protocol::Query | Protocol::RestXml => {
            let namespace = match asked.service.as_str() {
                "cloudfront" => "http://cloudfront.amazonaws.com/doc/2020-05-31/".to_owned(),
                "route53" => "https://route53.amazonaws.com/doc/2013-04-01/".to_owned(),
                service => format!("http://{service}.amazonaws.com/doc/"),
            };
            let body = format!(
                "<?xml version=\"1.0\"?>\n<ErrorResponse xmlns=\"{namespace}\"><Error><Type>{fault}</Type><Code>{code}\
                 </Code><Message>{message_xml}</Message></Error><RequestId>{REQUEST_ID}</RequestId></ErrorResponse>"
            );
            Answer::new(*status, "text/xml", body)
        }
        Protocol::Json10 | Protocol::Json11 => {
            // Both spellings of the message are out there; `AccessDeniedException` of many services has the large one.
            let member = if code.starts_with("AccessDenied") { "Message" } else { "message" };
            let kind = match asked.service.as_str() {
                "sqs" => format!("com.amazonaws.sqs#{code}"),
                "dynamodb" => format!("com.amazonaws.dynamodb.v20120810#{code}"),
                _ => code.clone(),
            };
            let content = if asked.protocol == Protocol::Json10 { "1.0" } else { "1.1" };
            let body = json!({"__type": kind, member: message}).to_string();
            let mut answer = Answer::new(*status, &format!("application/x-amz-json-{content}"), body);
            if asked.service == "sqs" {
                let old = code.strip_suffix("Exception").unwrap_or(code);
                answer.headers.push(("x-amzn-query-error".to_owned(), format!("{old};{fault}")));
            }
            answer
        }
        Protocol::RestJson => {
            let body = json!({"message": message}).to_string();
            let mut answer = Answer::new(*status, "application/json", body);
            answer.headers.push(("x-amzn-errortype".to_owned(), format!("{code}:")));
            answer
        }
    }
    .with_request_id()
}

impl Answer {
    fn with_request_id(mut self) -> Self {
        self.headers.push(("x-amzn-requestid".to_owned(), REQUEST_ID.to_owned()));
        self
    }
}

/// What a load balancer says when what is behind it does not answer.
pub fn html() -> Answer {
    let body = "<!doctype html>\n<html lang=en><title>500 Internal Server Error</title>\n<h1>Internal Server Error</h1>\n\
                <p>The server encountered an internal error and was unable to complete your request.</p></html>";
    Answer::new(500, "text/html; charset=utf-8", body)
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::request::tests::ask;

    const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

    fn one_of_each() -> Vec<Asked> {
        let json10 = ("content-type", "application/x-amz-json-1.0");
        vec![
            ask("ec2", &[FORM], "POST", "/", "Action=DescribeVpcs"),
            ask("sns", &[FORM], "POST", "/", "Action=ListTopics"),
            ask("sqs", &[json10, ("x-amz-target", "AmazonSQS.ListQueues")], "POST", "/", "{}"),
            ask("events", &[("x-amz-target", "AWSEvents.ListRules")], "POST", "/", "{}"),
            ask("lambda", &[], "GET", "/2015-03-31/functions", ""),
            ask("cloudfront", &[], "GET", "/2020-05-31/distribution-tenant/dt_1", ""),
            ask("s3", &[], "GET", "/", ""),
        ]
    }

    #[test]
    fn throttling_has_the_code_and_status_of_each_service() {
        let said: Vec<(u16, String)> = one_of_each()
            .iter()
            .map(|asked| words(asked, Refusal::Throttle))
            .map(|said| (said.status, said.code))
            .collect();
        let expected = [
            (503, "RequestLimitExceeded"),
            (400, "Throttling"),
            (403, "RequestThrottled"),
            (400, "ThrottlingException"),
            (429, "TooManyRequestsException"),
            (400, "Throttling"),
            (503, "SlowDown"),
        ];
        assert_eq!(said, expected.map(|(status, code)| (status, code.to_owned())));
    }

    #[test]
    fn a_denial_names_the_action_as_a_policy_would() {
        let actions = ["ec2:DescribeVpcs", "sns:ListTopics", "sqs:ListQueues", "events:ListRules"];
        let more = ["lambda:ListFunctions", "cloudfront:GetDistributionTenant", "s3:ListAllMyBuckets"];
        for (asked, action) in one_of_each().iter().zip(actions.iter().chain(&more)) {
            let said = words(asked, Refusal::Deny);
            assert!(said.message.contains(&format!("not authorized to perform: {action} ")), "{}", said.message);
            let body = say(asked, &said).body;
            assert!(String::from_utf8_lossy(&body).contains(action));
        }
    }

    #[test]
    fn errors_of_json_services_carry_their_type_where_it_is_looked_for() {
        let [_, _, sqs, events, lambda, ..] = &one_of_each()[..] else { unreachable!() };
        let body = |asked| say(asked, &words(asked, Refusal::Throttle));
        let json: serde_json::Value = serde_json::from_slice(&body(events).body).unwrap();
        assert_eq!(json["__type"], "ThrottlingException");
        let sqs = body(sqs);
        assert!(sqs.headers.contains(&("x-amzn-query-error".to_owned(), "RequestThrottled;Sender".to_owned())));
        let lambda = body(lambda);
        assert!(lambda.headers.contains(&("x-amzn-errortype".to_owned(), "TooManyRequestsException:".to_owned())));
    }
}
