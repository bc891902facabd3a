//! A listing as data: which operation lists things of a type, how it pages, and what an item of it is made of.

use aws_wire::{Body, Call, Protocol};
use serde_json::{Map, Value};

use crate::shape::Field;

/// How an operation is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Query {
        version: &'static str,
    },
    Json {
        version: &'static str,
        target: &'static str,
    },
    /// `GET` of a path; `{}` in it is what the operation is asked about.
    RestJson {
        path: &'static str,
    },
    RestXml {
        path: &'static str,
    },
}

/// A parameter of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    Text(&'static str),
    Number(u32),
    /// A list of texts. The query protocols write one as `Name.member.1`; EC2 as `Name.1`.
    Texts(&'static [&'static str]),
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The name in signatures, which is the prefix of its IAM actions too, unless `action` says otherwise.
    pub service: &'static str,
    pub name: &'static str,
    pub wire: Wire,
    pub given: &'static [(&'static str, Given)],
    /// The IAM action, where it is not `service:name`.
    pub action: Option<&'static str>,
    /// Elements that are lists although they have one item or none; see [`aws_wire::Element::to_json`].
    pub lists: &'static [&'static str],
}

impl Operation {
    pub fn action(&self) -> String {
        self.action.map_or_else(|| format!("{}:{}", self.service, self.name), str::to_owned)
    }

    /// The call, with more parameters, about something.
    pub fn call(&self, more: &[(String, Value)], about: &str) -> Call<'static> {
        let protocol = match self.wire {
            Wire::Query { version } if self.service == "ec2" => Protocol::Ec2 { version },
            Wire::Query { version } => Protocol::Query { version },
            Wire::Json { version, target } => Protocol::Json { version, target },
            Wire::RestJson { .. } => Protocol::RestJson,
            Wire::RestXml { .. } => Protocol::RestXml,
        };
        match self.wire {
            Wire::Query { .. } => {
                let mut form = Vec::new();
                for (name, given) in self.given {
                    match given {
                        Given::Text(text) => form.push(((*name).to_owned(), (*text).to_owned())),
                        Given::Number(number) => form.push(((*name).to_owned(), number.to_string())),
                        Given::Texts(texts) => {
                            let infix = if self.service == "ec2" { "" } else { ".member" };
                            let numbered = texts.iter().enumerate();
                            form.extend(
                                numbered.map(|(at, text)| (format!("{name}{infix}.{}", at + 1), (*text).into())),
                            );
                        }
                    }
                }
                form.extend(more.iter().map(|(name, value)| (name.clone(), plain(value))));
                Call { body: Body::Form(form), ..Call::rest(self.service, self.name, protocol, "POST", "/") }
            }
            Wire::Json { .. } => {
                let mut body = Map::new();
                for (name, given) in self.given {
                    let value = match given {
                        Given::Text(text) => Value::from(*text),
                        Given::Number(number) => Value::from(*number),
                        Given::Texts(texts) => Value::from(texts.to_vec()),
                    };
                    body.insert((*name).to_owned(), value);
                }
                body.extend(more.iter().cloned());
                let call = Call::rest(self.service, self.name, protocol, "POST", "/");
                Call { body: Body::Json(Value::Object(body)), ..call }
            }
            Wire::RestJson { path } | Wire::RestXml { path } => {
                let path = path.replace("{}", &aws_wire::call::encode_segment(about));
                let (path, flag) =
                    path.split_once('?').map_or((path.as_str(), None), |(path, flag)| (path, Some(flag)));
                let mut call = Call::rest(self.service, self.name, protocol, "GET", path);
                // `?versioning` is a question of its own, without a value.
                call.query.extend(flag.map(|flag| (flag.to_owned(), String::new())));
                for (name, given) in self.given {
                    let value = match given {
                        Given::Text(text) => (*text).to_owned(),
                        Given::Number(number) => number.to_string(),
                        Given::Texts(texts) => texts.join(","),
                    };
                    call.query.push(((*name).to_owned(), value));
                }
                call.query.extend(more.iter().map(|(name, value)| (name.clone(), plain(value))));
                call
            }
        }
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// How an operation says that there is more.
#[derive(Clone, Copy, Debug)]
pub struct Paging {
    /// What the next call is given, and where the answer has it. Most services have one; Route 53 has three.
    pub tokens: &'static [(&'static str, &'static str)],
    /// Where the answer says whether there is more, if not by the token alone.
    pub more: Option<&'static str>,
}

/// A call about one item of a listing, whose answer becomes a member of it.
#[derive(Clone, Copy, Debug)]
pub struct Follow {
    pub operation: Operation,
    /// The parameter that says which item; of REST operations it is in the path.
    pub parameter: Option<&'static str>,
    /// Where the item has it; empty for an item that is a text itself.
    pub from: &'static str,
    /// Where in the answer the result is.
    pub result: &'static str,
    /// Under which name the item gets it.
    pub into: &'static str,
    /// Whether an item without it is an item all the same: a bucket may have no policy.
    pub may_be_absent: bool,
}

/// One listing.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The list of the observer's document that its items go into.
    pub list: &'static str,
    /// The type, as CloudFormation writes it.
    pub kind: &'static str,
    pub operation: Operation,
    pub paging: Option<Paging>,
    /// Where the items are.
    pub items: &'static str,
    /// What tells an item from the others, in the answer. Empty for an item that is a text itself.
    pub identity: &'static str,
    pub fields: &'static [Field],
    pub follow: &'static [Follow],
    /// Whether it is asked once for an account, and not in each region.
    pub global: bool,
    /// Items that are not there any more although they are listed.
    pub gone: Option<fn(&Value) -> bool>,
}

impl Row {
    pub fn actions(&self) -> Vec<String> {
        let mut actions = vec![self.operation.action()];
        actions.extend(self.follow.iter().map(|follow| follow.operation.action()));
        actions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Operation = Operation {
        service: "iam",
        name: "GetAccountAuthorizationDetails",
        wire: Wire::Query { version: "2010-05-08" },
        given: &[("Filter", Given::Texts(&["Role"])), ("MaxItems", Given::Number(1000))],
        action: None,
        lists: &[],
    };

    #[test]
    fn parameters_are_written_as_the_protocol_writes_them() {
        let call = NONE.call(&[("Marker".into(), Value::from("m"))], "");
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let form = vec![pair("Filter.member.1", "Role"), pair("MaxItems", "1000"), pair("Marker", "m")];
        assert_eq!(call.body, Body::Form(form));
        let json = Operation {
            service: "sqs",
            name: "ListQueues",
            wire: Wire::Json { version: "1.0", target: "AmazonSQS" },
            given: &[("MaxResults", Given::Number(1000))],
            ..NONE
        };
        assert_eq!(json.call(&[], "").body, Body::Json(serde_json::json!({"MaxResults": 1000})));
        assert_eq!(json.action(), "sqs:ListQueues");
        let rest = Operation { service: "s3", wire: Wire::RestXml { path: "/{}?versioning" }, given: &[], ..NONE };
        let call = rest.call(&[], "a b");
        assert_eq!((call.path.as_str(), call.query), ("/a%20b", vec![pair("versioning", "")]));
    }
}
