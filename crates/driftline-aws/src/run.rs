//! Running listings: page after page, item after item, and an honest word on how that went.

use std::collections::{BTreeMap, BTreeSet};

use aws_wire::{Client, Error, Kind};
use driftline_core::{Outcome, Problem};
use futures_util::stream::{self, StreamExt};
use serde_json::Value;

use crate::row::{Follow, Operation, Paging, Row};
use crate::shape::{all, at, item, text_at};

/// Items of one listing that are followed up at once. The client bounds what is on the wire.
const SIDE_BY_SIDE: usize = 32;

/// What came of asking.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    pub items: Vec<Value>,
    /// Why it is not everything, if it is not.
    pub partial: Option<String>,
    pub problems: Vec<Problem>,
}

impl Listed {
    pub fn outcome(&self) -> Outcome {
        outcome(self.partial.as_deref())
    }

    /// The first reason stands.
    pub fn cut(&mut self, reason: impl Into<String>) {
        self.partial.get_or_insert_with(|| reason.into());
    }
}

pub fn outcome(partial: Option<&str>) -> Outcome {
    partial.map_or(Outcome::Complete, |reason| Outcome::Partial { reason: reason.to_owned() })
}

/// Why something was not seen, in words that are the same each time it happens.
pub fn reason(error: &Error, operation: &Operation) -> String {
    let what = format!("{} {}", operation.service, operation.name);
    match error.kind {
        Kind::AccessDenied => format!("access denied: {} is not allowed", operation.action()),
        Kind::Throttled => format!("throttled: {what} was refused at every attempt"),
        Kind::RegionDisabled => {
            format!("region disabled: {what} does not know these credentials, which are good elsewhere")
        }
        Kind::Timeout => format!("time-out: {what} did not answer in time"),
        Kind::Budget => "budget: the calls that this run may make were spent".to_owned(),
        Kind::Unreachable => format!("unreachable: no connection for {what}"),
        Kind::Unavailable => match &error.code {
            Some(code) => format!("unavailable: {what} answered {code}"),
            None => format!("unavailable: {what} answered something that is not its own language"),
        },
        Kind::Malformed => format!("malformed: the answer of {what} cannot be read"),
        Kind::Credentials => format!("credentials: {what} refused them"),
        Kind::NotFound | Kind::Precondition | Kind::Conflict | Kind::Invalid => {
            format!("refused: {what} answered {}", error.code.as_deref().unwrap_or("an error"))
        }
    }
}

/// One answer, as JSON whatever the protocol.
pub async fn ask(
    client: &Client,
    operation: &Operation,
    more: &[(String, Value)],
    about: &str,
) -> Result<Value, Error> {
    let call = operation.call(more, about);
    let reply = client.call(&call).await?;
    if !call.protocol.answers_in_xml() {
        let answer = reply.json()?;
        return if answer.is_object() { Ok(answer) } else { Err(reply.malformed("it is not an object")) };
    }
    let xml = reply.xml()?;
    let answer = xml.to_json(operation.lists);
    // The query protocols wrap the result in its own name.
    let wrapped = answer.get(format!("{}Result", operation.name)).cloned();
    Ok(wrapped.unwrap_or(answer))
}

/// Every page of a listing.
pub async fn pages(
    client: &Client,
    operation: &Operation,
    paging: Option<&Paging>,
    items: &str,
    more: &[(String, Value)],
    about: &str,
) -> Listed {
    let mut listed = Listed::default();
    let mut found = Vec::new();
    let take = |answer: &Value| found.extend(all(answer, items).into_iter().cloned());
    listed.partial = each_page(client, operation, paging, more, about, take).await;
    listed.items = found;
    listed
}

/// Hands over the answers of a listing one by one, and says why there are no more if there should be.
pub(crate) async fn each_page(
    client: &Client,
    operation: &Operation,
    paging: Option<&Paging>,
    more: &[(String, Value)],
    about: &str,
    mut take: impl FnMut(&Value),
) -> Option<String> {
    let mut seen: BTreeSet<Vec<String>> = BTreeSet::new();
    let mut token: Vec<(String, Value)> = Vec::new();
    loop {
        let given: Vec<(String, Value)> = more.iter().cloned().chain(token).collect();
        let answer = match ask(client, operation, &given, about).await {
            Ok(answer) => answer,
            Err(error) => return Some(reason(&error, operation)),
        };
        take(&answer);
        match next_page(paging?, &answer, &mut seen) {
            Ok(Some(next)) => token = next,
            Ok(None) => return None,
            Err(why) => return Some(format!("page cut: {} {} {why}", operation.service, operation.name)),
        }
    }
}

/// What the next page is asked for with, if there is one; or why it cannot be. `seen` has every token so far: one that
/// comes twice would go on for ever.
fn next_page(
    paging: &Paging,
    answer: &Value,
    seen: &mut BTreeSet<Vec<String>>,
) -> Result<Option<Vec<(String, Value)>>, &'static str> {
    let says_more = paging.more.map(|path| at(answer, path).is_some_and(|more| *more == true || *more == "true"));
    let sent = |(sent, received): &(&str, &str)| Some(((*sent).to_owned(), at(answer, received)?.clone()));
    let token: Vec<(String, Value)> = paging.tokens.iter().filter_map(sent).collect();
    match (says_more, token.is_empty()) {
        (Some(false), _) | (None, true) => return Ok(None),
        (Some(true), true) => return Err("says that there is more, and not where"),
        (_, false) => {}
    }
    match seen.insert(token.iter().map(|(_, value)| value.to_string()).collect()) {
        true => Ok(Some(token)),
        false => Err("handed out a page token twice"),
    }
}

/// The items of a row as a document writes them. They are texts: as trees, fifty thousand of them would be half a
/// gigabyte.
#[derive(Debug, Default)]
pub struct Written {
    pub items: Vec<Box<str>>,
    pub partial: Option<String>,
    pub problems: Vec<Problem>,
}

/// A whole row: its pages, its items each once, what is asked about each, and all of it as documents write it.
pub async fn row(client: &Client, row: &Row) -> Written {
    let is_there = |item: &&Value| row.gone.is_none_or(|gone| !gone(item));
    let written = |answer: &Value| item(answer, row.fields).to_string().into_boxed_str();
    if row.follow.is_empty() {
        let mut once = Once::default();
        let take = |answer: &Value| {
            for found in all(answer, row.items).into_iter().filter(is_there) {
                once.take(identity(found, row.identity), written(found), row.kind);
            }
        };
        let partial = each_page(client, &row.operation, row.paging.as_ref(), &[], "", take).await;
        return Written { items: once.kept, partial, problems: once.problems };
    }
    let mut listed = pages(client, &row.operation, row.paging.as_ref(), row.items, &[], "").await;
    listed.items.retain(|item| is_there(&item));
    once(&mut listed, row.identity, row.kind);
    for follow in row.follow {
        follow_up(client, follow, &mut listed).await;
    }
    let items = listed.items.into_iter().map(|answer| written(&answer)).collect();
    Written { items, partial: listed.partial, problems: listed.problems }
}

fn identity<'v>(item: &'v Value, path: &str) -> Option<&'v str> {
    if path.is_empty() { item.as_str() } else { text_at(item, path) }
}

/// The same thing may come on two pages while things are made and deleted.
fn once(listed: &mut Listed, path: &str, kind: &str) {
    let mut once = Once::default();
    for found in std::mem::take(&mut listed.items) {
        let id = identity(&found, path).map(str::to_owned);
        once.take(id.as_deref(), found, kind);
    }
    listed.items = once.kept;
    listed.problems.append(&mut once.problems);
}

/// Things by what tells them apart, each kept once.
struct Once<T> {
    numbers: BTreeMap<Box<str>, usize>,
    kept: Vec<T>,
    problems: Vec<Problem>,
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self { numbers: BTreeMap::new(), kept: Vec::new(), problems: Vec::new() }
    }
}

impl<T: PartialEq> Once<T> {
    fn take(&mut self, id: Option<&str>, found: T, kind: &str) {
        let Some(id) = id else {
            self.kept.push(found);
            return;
        };
        match self.numbers.get(id).map(|known| &mut self.kept[*known]) {
            Some(known) if *known == found => {}
            Some(known) => {
                let message = format!("{kind} was listed twice with different properties; the later is kept");
                self.problems.push(Problem { about: id.to_owned(), message });
                *known = found;
            }
            None => {
                self.numbers.insert(id.into(), self.kept.len());
                self.kept.push(found);
            }
        }
    }
}

/// Asks about every item. What cannot be asked about is left out, and the listing is partial: half of a thing would
/// look like a change of it.
async fn follow_up(client: &Client, follow: &Follow, listed: &mut Listed) {
    let items = std::mem::take(&mut listed.items);
    let answers = stream::iter(items.into_iter().map(|item| async move {
        let answer = about_item(client, follow, &item).await;
        (item, answer)
    }));
    let mut answers = answers.buffered(SIDE_BY_SIDE);
    while let Some((mut item, answer)) = answers.next().await {
        match answer {
            Ok(answer) => {
                let result = match follow.result {
                    "" => answer,
                    path => at(&answer, path).cloned().unwrap_or(Value::Null),
                };
                put(&mut item, follow.into, result);
                listed.items.push(item);
            }
            Err(error) if error.kind == Kind::NotFound && follow.may_be_absent => listed.items.push(item),
            // It was deleted after it was listed.
            Err(error) if error.kind == Kind::NotFound => {}
            Err(error) => listed.cut(reason(&error, &follow.operation)),
        }
    }
}

async fn about_item(client: &Client, follow: &Follow, item: &Value) -> Result<Value, Error> {
    let about = if follow.from.is_empty() { item.as_str() } else { text_at(item, follow.from) };
    let about = about.unwrap_or_default();
    let more: Vec<(String, Value)> =
        follow.parameter.iter().map(|name| ((*name).to_owned(), Value::from(about))).collect();
    // A bucket is asked where it is.
    let elsewhere = (follow.operation.service == "s3").then(|| text_at(item, "BucketRegion")).flatten();
    match elsewhere.filter(|region| *region != client.region()) {
        Some(region) => ask(&client.in_region(region), &follow.operation, &more, about).await,
        None => ask(client, &follow.operation, &more, about).await,
    }
}

/// A text that was followed up becomes an object: what it was called is under `id`.
fn put(item: &mut Value, name: &str, value: Value) {
    if !item.is_object() {
        let id = std::mem::take(item);
        *item = serde_json::json!({ "id": id });
    }
    if let Value::Object(members) = item {
        members.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Wire;
    use serde_json::json;

    const QUEUES: Operation = Operation {
        service: "sqs",
        name: "ListQueues",
        wire: Wire::Json { version: "1.0", target: "AmazonSQS" },
        given: &[],
        action: None,
        lists: &[],
    };

    #[test]
    fn a_thing_on_two_pages_is_one_thing_and_a_contradiction_is_told() {
        let mut listed = Listed {
            items: vec![
                json!({"id": "a", "n": 1}),
                json!({"id": "b", "n": 1}),
                json!({"id": "a", "n": 1}),
                json!({"id": "b", "n": 2}),
                json!({"nameless": true}),
            ],
            ..Listed::default()
        };
        once(&mut listed, "id", "T");
        let expected = [json!({"id": "a", "n": 1}), json!({"id": "b", "n": 2}), json!({"nameless": true})];
        assert_eq!(listed.items, expected);
        let about: Vec<&str> = listed.problems.iter().map(|problem| problem.about.as_str()).collect();
        assert_eq!(about, ["b"]);
        let mut texts = Listed { items: vec![json!("x"), json!("x")], ..Listed::default() };
        once(&mut texts, "", "T");
        assert_eq!(texts.items, [json!("x")]);
    }

    #[test]
    fn a_refusal_names_what_is_missing_and_reads_the_same_each_time() {
        let mut error = Error::of(Kind::AccessDenied, "sqs", "ListQueues", "User: arn:… is not authorized");
        error.request_id = Some("another one each time".into());
        assert_eq!(reason(&error, &QUEUES), "access denied: sqs:ListQueues is not allowed");
        let page = Error::of(Kind::Unavailable, "sqs", "ListQueues", "a web page");
        assert!(reason(&page, &QUEUES).starts_with("unavailable: sqs ListQueues"));
    }

    #[test]
    fn pages_end_where_there_is_no_more_and_never_go_round() {
        const PLAIN: Paging = Paging { tokens: &[("NextToken", "Next")], more: None };
        const TOLD: Paging =
            Paging { tokens: &[("Name", "NextName"), ("Type", "NextType")], more: Some("IsTruncated") };
        let token = |name: &str, value: &str| (name.to_owned(), Value::from(value));
        let mut seen = BTreeSet::new();
        let mut next = |paging: &Paging, answer: Value| next_page(paging, &answer, &mut seen);
        assert_eq!(next(&PLAIN, json!({"Next": "a"})), Ok(Some(vec![token("NextToken", "a")])));
        assert_eq!(next(&PLAIN, json!({"Next": "b"})), Ok(Some(vec![token("NextToken", "b")])));
        assert_eq!(next(&PLAIN, json!({"Next": "a"})), Err("handed out a page token twice"), "not only the last one");
        for end in [json!({}), json!({"Next": null}), json!({"Next": ""})] {
            assert_eq!(next(&PLAIN, end), Ok(None));
        }
        let both = json!({"IsTruncated": "true", "NextName": "n", "NextType": "A"});
        assert_eq!(next(&TOLD, both.clone()), Ok(Some(vec![token("Name", "n"), token("Type", "A")])));
        let other = json!({"IsTruncated": true, "NextName": "n", "NextType": "MX"});
        assert!(next(&TOLD, other).is_ok_and(|found| found.is_some()), "one of two parts may be the same");
        assert_eq!(next(&TOLD, both), Err("handed out a page token twice"));
        assert_eq!(next(&TOLD, json!({"IsTruncated": true})), Err("says that there is more, and not where"));
        assert_eq!(next(&TOLD, json!({"IsTruncated": "false", "NextName": "x"})), Ok(None));
    }

    #[test]
    fn the_first_reason_stands() {
        let mut listed = Listed::default();
        assert_eq!(listed.outcome(), Outcome::Complete);
        listed.cut("first");
        listed.cut("second");
        assert_eq!(listed.outcome(), Outcome::Partial { reason: "first".into() });
    }
}
