//! cloudtrail: who did what in an AWS account, as CloudTrail's log files and its `LookupEvents` tell it.
//!
//! Events are not state. Of an event is kept who did what, when, from where and to what; never what else was asked
//! for, because that may hold secrets.

mod mention;

use std::collections::BTreeMap;

use driftline_core::observation::event_time;
use driftline_core::{Nature, Outcome, Place, Properties, ResourceKey, Span, Value};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::normalize::{Context, Document, Found, Listing, NormalizeError, text};
use mention::Mentions;

/// The type of an event.
pub const EVENT: &str = "CloudTrail::Event";

/// Why events of log files do not vouch for a span of time.
pub const FILES: &str = "log files do not say whether they are all";

/// What is read of a trail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Also what only read.
    pub reads: bool,
    /// Only what happened in this span.
    pub within: Option<Span>,
}

/// A trail while it is being read: any number of documents in any order, each event once.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    asked: Asked,
    places: BTreeMap<Whose, BTreeMap<ResourceKey, Properties>>,
    /// Documents that could not be read, and why.
    unread: BTreeMap<String, String>,
    /// Records that could not be understood, by document.
    broken: BTreeMap<String, (usize, &'static str)>,
    counts: Counts,
}

/// Which account's events in which region.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Whose {
    pub account: String,
    pub region: String,
}

/// What came of the records that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub records: u64,
    /// Left out because they only read.
    pub reads: u64,
    /// Left out because they are not about managing anything: objects put, functions invoked, insights.
    pub data: u64,
    /// Left out because they are of another time.
    pub outside: u64,
    /// Told before, by another file or by `LookupEvents`.
    pub again: u64,
}

#[derive(Deserialize)]
struct Form<'a> {
    #[serde(borrow, rename = "Records")]
    records: Option<Vec<&'a RawValue>>,
    #[serde(borrow, rename = "Events")]
    events: Option<Vec<Looked<'a>>>,
    /// One record by itself, as some tools write them line by line.
    #[serde(rename = "eventID")]
    event_id: Option<serde::de::IgnoredAny>,
}

/// An event as `LookupEvents` wraps it. What is around the text is taken from it, so it is not read.
#[derive(Deserialize)]
struct Looked<'a> {
    #[serde(borrow, rename = "CloudTrailEvent")]
    text: Option<std::borrow::Cow<'a, str>>,
}

pub(crate) fn normalize(documents: &[Document<'_>], _: &Context) -> Result<Vec<Listing>, NormalizeError> {
    let mut trail = Trail::new(Asked::default());
    for document in documents {
        trail.document(document.name, document.bytes)?;
    }
    trail.listings(&BTreeMap::new())
}

impl Trail {
    pub fn new(asked: Asked) -> Self {
        Self { asked, ..Self::default() }
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes in a log file, or what `aws cloudtrail lookup-events` prints, or records line by line.
    pub fn document(&mut self, name: &str, bytes: &[u8]) -> Result<(), NormalizeError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| NormalizeError::new(name, format!("it is not UTF-8 at byte {}", error.valid_up_to())))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // A list would be read as an object by the order of its elements.
        if !text.trim_ascii_start().starts_with('{') {
            return Err(NormalizeError::new(name, "it does not begin with an object").hint(HINT));
        }
        for form in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
            let raw = form.map_err(|error| NormalizeError::json(name, &error))?;
            let form: Form<'_> =
                serde_json::from_str(raw.get()).map_err(|error| NormalizeError::json(name, &error).hint(HINT))?;
            match form {
                Form { records: Some(records), .. } => {
                    for record in records {
                        self.record(name, record.get());
                    }
                }
                Form { events: Some(events), .. } => {
                    for event in events {
                        match event.text {
                            Some(text) => self.record(name, &text),
                            None => self.broken(name, "it has no `CloudTrailEvent`"),
                        }
                    }
                }
                Form { event_id: Some(_), .. } => self.record(name, raw.get()),
                _ => return Err(NormalizeError::new(name, "it has neither `Records` nor `Events`").hint(HINT)),
            }
        }
        Ok(())
    }

    fn broken(&mut self, document: &str, why: &'static str) {
        self.broken.entry(document.to_owned()).or_insert((0, why)).0 += 1;
    }

    /// Takes in one record. What cannot be understood is counted, and the rest is read all the same.
    pub fn record(&mut self, document: &str, record: &str) {
        self.counts.records += 1;
        let Ok(record) = serde_json::from_str::<Value>(record) else {
            self.broken(document, "it is not JSON");
            return;
        };
        let read = match read(&record) {
            Ok(read) => read,
            Err(why) => {
                self.broken(document, why);
                return;
            }
        };
        let outside = |span: Span| read.at < span.from || read.at >= span.to;
        let counter = match &read {
            read if !read.manages => &mut self.counts.data,
            read if read.only_reads && !self.asked.reads => &mut self.counts.reads,
            _ if self.asked.within.is_some_and(outside) => &mut self.counts.outside,
            _ => {
                self.keep(read);
                return;
            }
        };
        *counter += 1;
    }

    fn keep(&mut self, read: Read) {
        let key = ResourceKey {
            kind: EVENT.to_owned(),
            place: Place::new(format!("aws/{}/{}", read.whose.account, read.whose.region)),
            id: read.id,
        };
        let properties = Properties::new(&read.properties);
        let events = self.places.entry(read.whose).or_default();
        match events.get_mut(&key) {
            None => {
                events.insert(key, properties);
            }
            Some(known) => {
                self.counts.again += 1;
                // An event does not change. Should two tell it differently, the fuller one is kept, whichever came
                // first.
                let weight = |one: &Properties| {
                    let json = one.as_ref().to_json();
                    (json.len(), json)
                };
                if properties.id() != known.id() && weight(&properties) > weight(known) {
                    *known = properties;
                }
            }
        }
    }

    /// Says that a place was looked at, whether something had happened there or not.
    pub fn looked_at(&mut self, whose: Whose) {
        self.places.entry(whose).or_default();
    }

    /// The places that something was told of.
    pub fn places(&self) -> impl Iterator<Item = &Whose> {
        self.places.keys()
    }

    /// The oldest moment of which something was told.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.places.values().filter_map(|events| event_time(&events.keys().next()?.id)).min()
    }

    /// Says that a document could not be read at all: what was in it is not known.
    pub fn unread(&mut self, document: &str, why: impl Into<String>) {
        self.unread.insert(document.to_owned(), why.into());
    }

    /// One listing for each account and region. `known` says of which spans every event is known there; elsewhere
    /// nothing is vouched for.
    pub fn listings(self, known: &BTreeMap<Whose, Known>) -> Result<Vec<Listing>, NormalizeError> {
        if self.places.is_empty()
            && let Some((document, (count, why))) = self.broken.first_key_value()
        {
            let message = format!("none of its {count} records could be understood: {why}");
            return Err(NormalizeError::new(document, message).hint(HINT));
        }
        if self.places.is_empty()
            && let Some((document, why)) = self.unread.first_key_value()
        {
            return Err(NormalizeError::new(document, why.clone()).hint(HINT));
        }
        let mut listings = Vec::new();
        for (whose, events) in self.places {
            let scope = format!("{}/{}", whose.account, whose.region);
            let mut listing = Listing::scoped(&scope);
            let (outcome, spans) = match known.get(&whose) {
                Some(known) => (known.outcome.clone(), known.spans.clone()),
                None => (Outcome::Partial { reason: FILES.to_owned() }, Vec::new()),
            };
            // What could not be read may have been of any place.
            let spans = if self.broken.is_empty() && self.unread.is_empty() { spans } else { Vec::new() };
            listing.cover(EVENT, &format!("aws/{scope}"), outcome);
            for (document, (count, why)) in self.broken.iter().take(MOST_TOLD) {
                let records = if *count == 1 { "record" } else { "records" };
                listing.cut_short(document, &format!("{count} {records} could not be understood: {why}"));
            }
            for (document, why) in self.unread.iter().take(MOST_TOLD) {
                listing.cut_short(document, why);
            }
            if let Some(more) = self.unread.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
                listing.problem("documents", format!("{more} more could not be read"));
            }
            listing.nature = Nature::Events(Span::union(spans));
            listing.items = events.len();
            listing.resources = events.into_iter().map(|(key, found)| (key, Found::encoded(found))).collect();
            listings.push(listing);
        }
        Ok(listings)
    }
}

/// What is known of the events of one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub outcome: Outcome,
    /// The spans of which every event is known.
    pub spans: Vec<Span>,
}

const HINT: &str =
    "a log file of CloudTrail has `Records`, and what `aws cloudtrail lookup-events` prints has `Events`";

/// A record, taken apart.
struct Read {
    id: String,
    at: Timestamp,
    whose: Whose,
    only_reads: bool,
    manages: bool,
    properties: Value,
}

fn read(record: &Value) -> Result<Read, &'static str> {
    let id = text(record, "eventID").filter(|id| id.len() <= 128 && !id.contains('/')).ok_or("it has no `eventID`")?;
    let at: Timestamp = text(record, "eventTime").and_then(|time| time.parse().ok()).ok_or("it has no `eventTime`")?;
    let name = text(record, "eventName").ok_or("it has no `eventName`")?;
    let source = text(record, "eventSource").ok_or("it has no `eventSource`")?;
    let identity = record.get("userIdentity");
    let region = text(record, "awsRegion").filter(|region| is_region(region)).ok_or("it has no `awsRegion`")?;
    let account = text(record, "recipientAccountId").or_else(|| identity.and_then(|who| text(who, "accountId")));
    let account = account.filter(|account| is_account(account)).ok_or("it has no `recipientAccountId`")?;
    let whose = Whose { account: account.to_owned(), region: region.to_owned() };
    let flag = |name: &str| match record.get(name) {
        Some(Value::Bool(flag)) => Some(*flag),
        Some(Value::String(flag)) => Some(flag == "true"),
        _ => None,
    };
    let manages = flag("managementEvent")
        .unwrap_or_else(|| text(record, "eventCategory").is_none_or(|category| category == "Management"));
    let only_reads = flag("readOnly").unwrap_or_else(|| reads_by_name(name));
    let mut mentions = Mentions::default();
    for part in ["requestParameters", "responseElements"] {
        if let Some(part) = record.get(part) {
            mentions.collect(part);
        }
    }
    let listed = record.get("resources").and_then(Value::as_array).unwrap_or_default();
    let resources: Vec<&str> =
        listed.iter().filter_map(|one| text(one, "ARN").or_else(|| text(one, "arn"))).take(MOST_RESOURCES).collect();
    let mut members: BTreeMap<String, Value> = BTreeMap::new();
    let mut put = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            members.insert(name.to_owned(), Value::String(bounded(value)));
        }
    };
    put("eventId", Some(id));
    put("at", Some(&at.to_string()));
    put("service", Some(source.strip_suffix(".amazonaws.com").unwrap_or(source)));
    put("name", Some(name));
    put("account", Some(account));
    put("region", Some(region));
    put("from", text(record, "sourceIPAddress"));
    put("agent", text(record, "userAgent"));
    put("error", text(record, "errorCode"));
    if let Some(identity) = identity {
        members.insert("who".into(), who(identity));
    }
    if flag("sessionCredentialFromConsole") == Some(true) || text(record, "eventType") == Some("AwsConsoleAction") {
        members.insert("console".into(), Value::Bool(true));
    }
    members.insert("readOnly".into(), Value::Bool(only_reads));
    if !resources.is_empty() {
        let mut resources: Vec<String> = resources.into_iter().map(bounded).collect();
        resources.sort_unstable();
        resources.dedup();
        members.insert("resources".into(), Value::from(resources));
    }
    if let Some((mentioned, more)) = mentions.told() {
        members.insert("mentions".into(), mentioned);
        if more > 0 {
            members.insert("moreMentions".into(), Value::from(more));
        }
    }
    Ok(Read { id: format!("{at}/{id}"), at, whose, only_reads, manages, properties: Value::Object(members) })
}

const MOST_RESOURCES: usize = 64;

/// Documents with something wrong that are named one by one.
const MOST_TOLD: usize = 20;

/// Who it was, without what could be used to be them.
fn who(identity: &Value) -> Value {
    let session = identity.get("sessionContext");
    let issuer = session.and_then(|session| session.get("sessionIssuer"));
    let key = text(identity, "accessKeyId").filter(|key| key.is_ascii() && key.len() >= 16);
    let parts = [
        ("type", text(identity, "type")),
        ("arn", text(identity, "arn")),
        ("name", text(identity, "userName")),
        ("principal", text(identity, "principalId").filter(|_| text(identity, "arn").is_none())),
        ("account", text(identity, "accountId")),
        ("issuer", issuer.and_then(|issuer| text(issuer, "arn"))),
        ("invokedBy", text(identity, "invokedBy")),
        ("accessKey", key.map(|key| &key[key.len() - 4..])),
    ];
    let member = |(name, value): (&str, Option<&str>)| Some((name.to_owned(), Value::String(bounded(value?))));
    Value::Object(parts.into_iter().filter_map(member).collect())
}

/// Texts of others are kept as far as people read them.
fn bounded(text: &str) -> String {
    const LONGEST: usize = 512;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn is_account(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Regions become parts of the names of streams.
fn is_region(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= 40 && text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(fits)
}

/// Whether a name is one of a log file, and not of a digest of some or of an insight.
pub fn is_log(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    let apart = ["CloudTrail-Digest", "CloudTrail-Insight", "CloudTrail-NetworkActivity"];
    [".json", ".json.gz"].iter().any(|end| file.ends_with(end)) && !apart.iter().any(|part| name.contains(part))
}

/// Whether an operation only reads, by its name; old records do not say.
fn reads_by_name(name: &str) -> bool {
    const READS: [&str; 9] = ["Get", "List", "Describe", "Lookup", "Head", "BatchGet", "Search", "Query", "Scan"];
    READS.iter().any(|start| name.starts_with(start))
}

/// How the consoles of AWS call themselves.
const CONSOLE: [&str; 5] = ["console.", "signin.", "S3Console", "[S3Console", "AWSConsole"];

/// The most particular first: most tools are built on an SDK, and name it too.
const TOOLS: [(&str, &str); 15] = [
    ("OpenTofu", "OpenTofu"),
    ("Terraform", "Terraform"),
    ("Pulumi", "Pulumi"),
    ("aws-cdk", "CDK"),
    ("crossplane", "Crossplane"),
    ("eksctl", "eksctl"),
    ("Ansible", "Ansible"),
    ("ansible", "Ansible"),
    ("Packer", "Packer"),
    ("driftline", "driftline"),
    ("aws-cli/", "the AWS CLI"),
    ("Boto3/", "boto3"),
    ("Botocore/", "botocore"),
    ("aws-sdk-", "an AWS SDK"),
    ("aws-internal", "an AWS service"),
];

/// An event as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub id: String,
    pub at: Timestamp,
    pub service: String,
    pub name: String,
    pub account: String,
    pub region: String,
    /// The person, role or service, by its ARN where there is one.
    pub who: String,
    pub from: Option<String>,
    pub agent: Option<String>,
    pub invoked_by: Option<String>,
    pub console: bool,
    pub error: Option<String>,
    pub resources: Vec<String>,
    /// What it names, and the member in which it does.
    pub mentions: BTreeMap<String, String>,
    /// How many more things it names than are kept.
    pub more_mentions: bool,
}

impl Event {
    /// Reads what [`Trail`] keeps.
    pub fn of(properties: &Value) -> Option<Event> {
        let own = |name: &str| text(properties, name).map(ToOwned::to_owned);
        let identity = properties.get("who");
        let part = |name: &str| identity.and_then(|who| text(who, name)).map(ToOwned::to_owned);
        let texts = |name: &str| properties.get(name).and_then(Value::as_array).unwrap_or_default();
        let mentions = properties.get("mentions").and_then(Value::as_object);
        let mention = |(value, member): (&String, &Value)| (value.clone(), member.as_str().unwrap_or_default().into());
        Some(Event {
            id: own("eventId")?,
            at: text(properties, "at")?.parse().ok()?,
            service: own("service")?,
            name: own("name")?,
            account: own("account")?,
            region: own("region")?,
            who: part("arn")
                .or_else(|| part("name"))
                .or_else(|| part("invokedBy"))
                .or_else(|| part("principal"))
                .or_else(|| part("account").map(|account| format!("someone of the account {account}")))
                .unwrap_or_else(|| "unknown".into()),
            from: own("from"),
            agent: own("agent"),
            invoked_by: part("invokedBy"),
            console: properties.get("console") == Some(&Value::Bool(true)),
            error: own("error"),
            resources: texts("resources").iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
            mentions: mentions.into_iter().flatten().map(mention).collect(),
            more_mentions: properties.get("moreMentions").is_some(),
        })
    }

    /// How it was done, in a few words: by which tool, or by which service on behalf of someone.
    pub fn how(&self) -> Option<String> {
        let agent = self.agent.as_deref().unwrap_or_default();
        let service = self.invoked_by.as_deref().or(self.from.as_deref()).or(self.agent.as_deref());
        let service = service.and_then(|name| name.strip_suffix(".amazonaws.com"));
        match service {
            Some("cloudformation") => return Some("CloudFormation, on their behalf".into()),
            Some("signin" | "console") | None => {}
            Some(service) => return Some(format!("the service {service}, on their behalf")),
        }
        if self.console || CONSOLE.iter().any(|start| agent.starts_with(start)) {
            return Some("the console".into());
        }
        let tool = TOOLS.iter().find(|(part, _)| agent.contains(part)).map(|(_, tool)| (*tool).to_owned());
        tool.or_else(|| (!agent.is_empty()).then(|| agent.to_owned()))
    }
}

#[cfg(test)]
#[path = "cloudtrail/tests.rs"]
mod tests;
