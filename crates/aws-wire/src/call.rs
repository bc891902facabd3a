//! A call and its reply, before and after the network.

use serde_json::Value;

use crate::error::{Error, Kind};
use crate::xml::Element;

/// How a service wants to be spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol<'a> {
    /// A form with an `Action`; answers in XML.
    Query {
        version: &'a str,
    },
    /// The same question, with EC2's own form of errors and lists.
    Ec2 {
        version: &'a str,
    },
    /// `version` is `1.0` or `1.1`; the operation is in a header, after `target` and a dot.
    Json {
        version: &'a str,
        target: &'a str,
    },
    RestJson,
    RestXml,
}

impl Protocol<'_> {
    pub fn answers_in_xml(&self) -> bool {
        matches!(self, Self::Query { .. } | Self::Ec2 { .. } | Self::RestXml)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Body {
    #[default]
    None,
    /// Parameters of the two query protocols. `Action` and `Version` are added.
    Form(Vec<(String, String)>),
    Json(Value),
    Xml(String),
}

/// One operation of one service. `service` is the name in the signature: `ec2`, `events`, `lambda`.
#[derive(Clone, Debug, PartialEq)]
pub struct Call<'a> {
    pub service: &'a str,
    pub operation: &'a str,
    pub protocol: Protocol<'a>,
    /// Of the two REST protocols; the others always `POST /`.
    pub method: &'a str,
    /// Its parts are already percent-encoded; see [`encode_segment`].
    pub path: String,
    /// Names and values as they are; they are encoded when the call is made.
    pub query: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
    pub body: Body,
}

impl<'a> Call<'a> {
    pub fn query(service: &'a str, version: &'a str, operation: &'a str, form: Vec<(String, String)>) -> Self {
        let protocol = if service == "ec2" { Protocol::Ec2 { version } } else { Protocol::Query { version } };
        Self { body: Body::Form(form), ..Self::post(service, operation, protocol) }
    }

    pub fn json(service: &'a str, target: &'a str, version: &'a str, operation: &'a str, body: Value) -> Self {
        Self { body: Body::Json(body), ..Self::post(service, operation, Protocol::Json { version, target }) }
    }

    pub fn rest(
        service: &'a str,
        operation: &'a str,
        protocol: Protocol<'a>,
        method: &'a str,
        path: impl Into<String>,
    ) -> Self {
        Self { method, path: path.into(), ..Self::post(service, operation, protocol) }
    }

    fn post(service: &'a str, operation: &'a str, protocol: Protocol<'a>) -> Self {
        Self {
            service,
            operation,
            protocol,
            method: "POST",
            path: "/".into(),
            query: Vec::new(),
            headers: Vec::new(),
            body: Body::None,
        }
    }

    /// The bytes that are sent, and what they are.
    pub(crate) fn payload(&self) -> (Vec<u8>, Option<String>) {
        match (&self.body, self.protocol) {
            (Body::Form(pairs), Protocol::Query { version } | Protocol::Ec2 { version }) => {
                let fixed = [("Action", self.operation), ("Version", version)];
                let given = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                let text = encode_pairs(fixed.into_iter().chain(given));
                (text.into_bytes(), Some("application/x-www-form-urlencoded; charset=utf-8".into()))
            }
            (Body::Form(pairs), _) => {
                let text = encode_pairs(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())));
                (text.into_bytes(), Some("application/x-www-form-urlencoded; charset=utf-8".into()))
            }
            (Body::None, Protocol::Query { version } | Protocol::Ec2 { version }) => {
                let text = encode_pairs([("Action", self.operation), ("Version", version)]);
                (text.into_bytes(), Some("application/x-www-form-urlencoded; charset=utf-8".into()))
            }
            (Body::Json(value), Protocol::Json { version, .. }) => {
                (value.to_string().into_bytes(), Some(format!("application/x-amz-json-{version}")))
            }
            (Body::None, Protocol::Json { version, .. }) => {
                (b"{}".to_vec(), Some(format!("application/x-amz-json-{version}")))
            }
            (Body::Json(value), _) => (value.to_string().into_bytes(), Some("application/json".into())),
            (Body::Xml(text), _) => (text.clone().into_bytes(), Some("application/xml".into())),
            (Body::None, _) => (Vec::new(), None),
        }
    }

    /// Path and query, as they stand in the first line of the request.
    pub(crate) fn target(&self) -> String {
        let mut target = if self.path.starts_with('/') { self.path.clone() } else { format!("/{}", self.path) };
        if !self.query.is_empty() {
            target.push(if target.contains('?') { '&' } else { '?' });
            target += &encode_pairs(self.query.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        }
        target
    }
}

fn encode_pairs<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push('&');
        }
        text += &encode_segment(name);
        text.push('=');
        text += &encode_segment(value);
    }
    text
}

/// Percent-encodes everything but the unreserved characters, as signatures demand.
pub fn encode_segment(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte as char),
            _ => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

/// What a service answered when it did not refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub(crate) service: String,
    pub(crate) operation: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// A body that is not JSON is an error: an empty answer is not an empty list.
    pub fn json(&self) -> Result<Value, Error> {
        serde_json::from_slice(&self.body).map_err(|error| self.malformed(&format!("it is not JSON: {error}")))
    }

    pub fn xml(&self) -> Result<Element, Error> {
        Element::parse(&self.body).map_err(|error| self.malformed(&format!("it is not XML: {error}")))
    }

    pub fn malformed(&self, why: &str) -> Error {
        // What kind of answer it is, and nothing of what is in it: that may be a secret, and this text is logged.
        let start = match self.body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None => "it is empty".to_owned(),
            Some(b'<') => format!("{} bytes that begin like XML", self.body.len()),
            Some(b'{' | b'[') => format!("{} bytes that begin like JSON", self.body.len()),
            Some(_) => format!("{} bytes that are neither XML nor JSON", self.body.len()),
        };
        Error {
            kind: Kind::Malformed,
            code: None,
            message: format!("the answer cannot be read: {why} ({start})").into(),
            service: self.service.as_str().into(),
            operation: self.operation.as_str().into(),
            request_id: self.header("x-amzn-requestid").map(Box::from),
            retry_after: None,
            region: None,
        }
    }
}

pub(crate) fn header<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers.iter().find(|(at, _)| at.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_protocol_sends_its_own_form() {
        let call = Call::query("ec2", "2016-11-15", "DescribeVpcs", vec![("VpcId.1".into(), "vpc 1".into())]);
        let (bytes, kind) = call.payload();
        assert_eq!(bytes, b"Action=DescribeVpcs&Version=2016-11-15&VpcId.1=vpc%201");
        assert!(kind.expect("a form has a type").starts_with("application/x-www-form-urlencoded"));
        assert_eq!(call.protocol, Protocol::Ec2 { version: "2016-11-15" });
        let call = Call::json("events", "AWSEvents", "1.1", "ListRules", serde_json::json!({"Limit": 5}));
        assert_eq!(call.payload(), (br#"{"Limit":5}"#.to_vec(), Some("application/x-amz-json-1.1".into())));
        let mut call = Call::rest("lambda", "ListFunctions", Protocol::RestJson, "GET", "/2015-03-31/functions/");
        call.query.push(("Marker".into(), "a/b+c=".into()));
        assert_eq!(call.payload(), (Vec::new(), None));
        assert_eq!(call.target(), "/2015-03-31/functions/?Marker=a%2Fb%2Bc%3D");
    }

    #[test]
    fn an_empty_answer_is_not_an_empty_list() {
        let reply = Reply {
            status: 200,
            headers: Vec::new(),
            body: Vec::new(),
            service: "sqs".into(),
            operation: "ListQueues".into(),
        };
        assert_eq!(reply.json().expect_err("nothing is not JSON").kind, Kind::Malformed);
        assert_eq!(reply.xml().expect_err("nothing is not XML").kind, Kind::Malformed);
    }
}
