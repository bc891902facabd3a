//! Who asks what: read from the signature, the headers and the body, as AWS itself does.

use std::collections::BTreeMap;

use bytes::Bytes;
use hyper::http::request::Parts;
use serde_json::Value as Json;

use crate::operation;

/// The form in which a service is spoken to, and in which it says no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// `Action=` in a form, XML back.
    Query,
    /// The same, with EC2's own error document.
    Ec2,
    /// `X-Amz-Target`, JSON 1.0 or 1.1.
    Json10,
    Json11,
    RestJson,
    RestXml,
}

/// One request, understood.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The name in the scope of the signature: `ec2`, `events`, `cloudcontrolapi`.
    pub service: String,
    pub operation: String,
    pub region: String,
    /// The access key of the signature. Emulators take one of twelve digits for the account.
    pub key: String,
    pub protocol: Protocol,
    pub method: String,
    /// Path and query as they were sent.
    pub target: String,
    pub body: Bytes,
}

/// The parameters by which listings are asked for another page, in any service.
pub const PAGE_TOKENS: [&str; 12] = [
    "NextToken",
    "nextToken",
    "Marker",
    "marker",
    "continuation-token",
    "PaginationToken",
    "ExclusiveStartTableName",
    "NextPageToken",
    "name",
    "type",
    "identifier",
    "StartRecordName",
];

impl Asked {
    pub fn read(parts: &Parts, body: Bytes) -> Self {
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let target = parts.uri.path_and_query().map_or("/", |it| it.as_str()).to_owned();
        let scope = scope(header("authorization"), parts.uri.query().unwrap_or_default());
        let amz_target = header("x-amz-target");
        let form = header("content-type").starts_with("application/x-www-form-urlencoded");
        let action = action(form.then_some(&body), parts.uri.query().unwrap_or_default());
        let protocol = match (&action, amz_target.is_empty(), scope.service.as_str()) {
            (_, false, _) if header("content-type").contains("json-1.0") => Protocol::Json10,
            (_, false, _) => Protocol::Json11,
            (Some(_), true, "ec2") => Protocol::Ec2,
            (Some(_), true, _) => Protocol::Query,
            (None, true, "s3" | "cloudfront" | "route53") => Protocol::RestXml,
            (None, true, _) => Protocol::RestJson,
        };
        let method = parts.method.as_str().to_owned();
        let operation = match amz_target.rsplit_once('.') {
            Some((_, operation)) => operation.to_owned(),
            None => action.unwrap_or_else(|| operation::of_rest(&scope.service, &method, &target)),
        };
        Self { service: scope.service, operation, region: scope.region, key: scope.key, protocol, method, target, body }
    }

    /// A parameter of the request, wherever the protocol puts it.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let pairs = |text: &str| pairs(text).into_iter().find(|(key, _)| key == name).map(|(_, value)| value);
        if let Some(found) = self.target.split_once('?').and_then(|(_, query)| pairs(query)) {
            return Some(found);
        }
        let text = std::str::from_utf8(&self.body).ok()?;
        match self.protocol {
            Protocol::Query | Protocol::Ec2 => pairs(text),
            Protocol::RestXml => element(text, name).map(str::to_owned),
            Protocol::Json10 | Protocol::Json11 | Protocol::RestJson => {
                let body: Json = serde_json::from_str(text).ok()?;
                match body.get(name)? {
                    Json::String(text) => Some(text.clone()),
                    Json::Null => None,
                    other => Some(other.to_string()),
                }
            }
        }
    }

    /// Whether it asks for a page after the first.
    pub fn is_later_page(&self) -> bool {
        // `name`, `type` and `identifier` are how Route 53 goes on, and ordinary parameters everywhere else.
        let names = if self.service == "route53" { &PAGE_TOKENS[..] } else { &PAGE_TOKENS[..8] };
        names.iter().any(|name| self.parameter(name).is_some_and(|value| !value.is_empty()))
    }

    /// The same request without these parameters.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        let mut rest = self.clone();
        let keep = |text: &str| {
            let kept = text.split('&').filter(|pair| !names.contains(&pair.split('=').next().unwrap_or_default()));
            kept.collect::<Vec<_>>().join("&")
        };
        if let Some((path, query)) = self.target.split_once('?') {
            rest.target = format!("{path}?{}", keep(query));
        }
        let Ok(text) = std::str::from_utf8(&self.body) else { return rest };
        match self.protocol {
            Protocol::Query | Protocol::Ec2 => rest.body = Bytes::from(keep(text)),
            Protocol::RestXml => {
                let mut text = text.to_owned();
                for name in names {
                    if let (Some(start), Some(end)) =
                        (text.find(&format!("<{name}>")), text.find(&format!("</{name}>")))
                    {
                        text.replace_range(start..end + name.len() + 3, "");
                    }
                }
                rest.body = Bytes::from(text);
            }
            Protocol::Json10 | Protocol::Json11 | Protocol::RestJson => {
                if let Ok(Json::Object(mut members)) = serde_json::from_str(text) {
                    members.retain(|name, _| !names.contains(&name.as_str()));
                    rest.body = Bytes::from(Json::Object(members).to_string());
                }
            }
        }
        rest
    }
}

/// What stands between `<name>` and `</name>`, the first time.
pub(crate) fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(inner, _)| inner)
}

struct Scope {
    key: String,
    region: String,
    service: String,
}

/// `Credential=KEY/DATE/REGION/SERVICE/aws4_request`, from the header or from a signed address.
fn scope(authorization: &str, query: &str) -> Scope {
    let in_header = authorization.split("Credential=").nth(1).and_then(|rest| rest.split([',', ' ']).next());
    let in_query = pairs(query).into_iter().find(|(key, _)| key == "X-Amz-Credential").map(|(_, value)| value);
    let credential = in_header.map(str::to_owned).or(in_query).unwrap_or_default();
    let mut parts = credential.split('/').map(str::to_owned);
    let key = parts.next().filter(|key| !key.is_empty()).unwrap_or_else(|| "unsigned".to_owned());
    let _date = parts.next();
    let region = parts.next().unwrap_or_default();
    let service = parts.next().unwrap_or_else(|| "unsigned".to_owned());
    Scope { key, region, service }
}

fn action(form: Option<&Bytes>, query: &str) -> Option<String> {
    let of = |text: &str| pairs(text).into_iter().find(|(key, _)| key == "Action").map(|(_, value)| value);
    form.and_then(|body| std::str::from_utf8(body).ok()).and_then(of).or_else(|| of(query))
}

/// The pairs of a form or a query, decoded, in their order.
pub(crate) fn pairs(text: &str) -> Vec<(String, String)> {
    let parts = text.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .map(|(key, value)| (decode(key), decode(value)))
        .collect()
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = [rest.next(), rest.next()];
                let hex = |digit: Option<u8>| digit.and_then(|digit| char::from(digit).to_digit(16));
                if let (Some(high), Some(low)) = (hex(digits[0]), hex(digits[1])) {
                    bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
                }
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Which account an access key belongs to: temporary keys are learned from the replies that hand them out.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    known: BTreeMap<String, String>,
}

impl Accounts {
    pub(crate) fn account_of(&self, key: &str) -> String {
        self.known.get(key).map_or(key, String::as_str).to_owned()
    }

    /// Remembers the key that a reply to `AssumeRole` hands out.
    pub(crate) fn learn(&mut self, asked: &Asked, reply: &[u8]) {
        if asked.service != "sts" || !asked.operation.starts_with("AssumeRole") {
            return;
        }
        let role = asked.parameter("RoleArn");
        let account = role.as_deref().and_then(|arn| arn.split(':').nth(4));
        let key = std::str::from_utf8(reply).ok().and_then(|text| element(text, "AccessKeyId"));
        if let (Some(account), Some(key)) = (account, key) {
            self.known.insert(key.to_owned(), account.to_owned());
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
pub(crate) mod tests {
    use super::*;

    /// A request as a client of this service would sign it.
    pub(crate) fn ask(service: &str, headers: &[(&str, &str)], method: &str, target: &str, body: &str) -> Asked {
        let signature =
            format!("AWS4-HMAC-SHA256 Credential=111111111111/20260101/eu-west-1/{service}/aws4_request, Signature=0");
        let mut request = hyper::Request::builder().method(method).uri(target).header("authorization", signature);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        Asked::read(&parts, Bytes::copy_from_slice(body.as_bytes()))
    }

    const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded; charset=utf-8");

    #[test]
    fn every_protocol_is_recognised_with_its_operation() {
        let target = |name: &'static str| ("x-amz-target", name);
        let json10 = ("content-type", "application/x-amz-json-1.0");
        let json11 = ("content-type", "application/x-amz-json-1.1");
        let rows = [
            (ask("ec2", &[FORM], "POST", "/", "Action=DescribeVpcs&Version=1"), "DescribeVpcs", Protocol::Ec2),
            (ask("sns", &[FORM], "POST", "/", "Action=ListTopics"), "ListTopics", Protocol::Query),
            (ask("sqs", &[target("AmazonSQS.ListQueues"), json10], "POST", "/", "{}"), "ListQueues", Protocol::Json10),
            (ask("events", &[target("AWSEvents.ListRules"), json11], "POST", "/", "{}"), "ListRules", Protocol::Json11),
            (ask("lambda", &[], "GET", "/2015-03-31/functions/", ""), "ListFunctions", Protocol::RestJson),
            (ask("route53", &[], "GET", "/2013-04-01/hostedzone", ""), "ListHostedZones", Protocol::RestXml),
        ];
        for (asked, operation, protocol) in rows {
            assert_eq!((asked.operation.as_str(), asked.protocol), (operation, protocol));
            assert_eq!((asked.region.as_str(), asked.key.as_str()), ("eu-west-1", "111111111111"));
        }
    }

    #[test]
    fn a_parameter_is_found_and_taken_out_wherever_the_protocol_puts_it() {
        let form = ask("ec2", &[FORM], "POST", "/", "Action=DescribeVpcs&NextToken=a%2Fb&MaxResults=5");
        let json =
            ask("sqs", &[("x-amz-target", "S.ListQueues")], "POST", "/", r#"{"NextToken":"a/b","MaxResults":5}"#);
        let query = ask("lambda", &[], "GET", "/2015-03-31/functions?NextToken=a%2Fb&MaxResults=5", "");
        let xml = ask("cloudfront", &[], "POST", "/x", "<R><NextToken>a/b</NextToken><MaxResults>5</MaxResults></R>");
        for asked in [form, json, query, xml] {
            assert_eq!(asked.parameter("NextToken").as_deref(), Some("a/b"));
            assert!(asked.is_later_page());
            let rest = asked.without(&["NextToken"]);
            assert_eq!(rest.parameter("NextToken"), None);
            assert_eq!(rest.parameter("MaxResults").as_deref(), Some("5"));
            assert!(!rest.is_later_page());
        }
    }

    #[test]
    fn a_signed_address_and_no_signature_at_all_are_told_apart() {
        let presigned = "/?Action=GetCallerIdentity&X-Amz-Credential=KEY%2F20260101%2Fus-east-1%2Fsts%2Faws4_request";
        let request = hyper::Request::builder().uri(presigned).body(()).unwrap();
        let asked = Asked::read(&request.into_parts().0, Bytes::new());
        assert_eq!((asked.service.as_str(), asked.key.as_str(), asked.region.as_str()), ("sts", "KEY", "us-east-1"));
        assert_eq!(asked.operation, "GetCallerIdentity");
        let request = hyper::Request::builder().uri("/").body(()).unwrap();
        assert_eq!(Asked::read(&request.into_parts().0, Bytes::new()).service, "unsigned");
    }

    #[test]
    fn a_temporary_key_belongs_to_the_account_of_its_role() {
        let mut accounts = Accounts::default();
        let body = "Action=AssumeRole&RoleArn=arn%3Aaws%3Aiam%3A%3A222222222222%3Arole%2Freader";
        let asked = ask("sts", &[FORM], "POST", "/", body);
        accounts.learn(&asked, b"<AssumeRoleResponse><AccessKeyId>ASIA1</AccessKeyId></AssumeRoleResponse>");
        assert_eq!(accounts.account_of("ASIA1"), "222222222222");
        assert_eq!(accounts.account_of("111111111111"), "111111111111");
    }
}
