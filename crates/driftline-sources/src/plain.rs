//! The plain observation file: one JSON object, or NDJSON with a header line first.
//!
//! Any program that prints this is an observer. Resources are handed on one at a time, so a file of millions
//! needs no more memory than its longest line.

use std::fmt;
use std::io::BufRead;

use driftline_core::canonical::Encoder;
use driftline_core::{
    Coverage, Extent, KeyRef, NameError, Nature, Outcome, Pattern, Problem, PropertiesRef, SourceName, Span, StreamId,
};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::normalize::parser_words;
use crate::place::write_place;

/// What the first line, or the object around the resources, says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainHeader {
    pub stream: StreamId,
    pub taken_at: Option<Timestamp>,
    pub observer: Option<String>,
    /// `None` when nothing was said: then no absence is ever a fact.
    pub coverage: Option<Coverage>,
    pub problems: Vec<Problem>,
    pub nature: Nature,
}

/// One resource, borrowed from the reader's buffers.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub key: KeyRef<'a>,
    pub properties: PropertiesRef<'a>,
    /// Where its secrets are, as the observer knows.
    pub sensitive: &'a [Pattern],
    /// The line it came by, where it came by one.
    pub line: &'a [u8],
}

/// Takes in what is read.
pub trait Sink {
    type Error;
    fn header(&mut self, header: PlainHeader) -> Result<(), Self::Error>;
    fn resource(&mut self, seen: Seen<'_>) -> Result<(), Self::Error>;

    /// Asked of some lines of NDJSON, in order, before they are parsed. Of a line it answers `true` to, the sink
    /// has taken in the resource itself, because the same bytes came before and mean the same.
    fn known(&mut self, lines: &[&[u8]], answers: &mut Vec<bool>) {
        answers.resize(lines.len(), false);
    }
}

#[derive(Debug, Error)]
pub enum ReadError<E> {
    #[error("cannot read the input")]
    Io(#[source] std::io::Error),
    #[error("line {line}, column {column}: {message}")]
    Malformed { line: usize, column: usize, message: String },
    #[error("the schema is `{found}`; this program reads `{SCHEMA}`")]
    Schema { found: String },
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("the input is empty")]
    Empty,
    /// What the sink said, and of what.
    #[error("{place}")]
    Sink { place: Whereabouts, source: E },
}

/// Where in the input something is, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    Line(usize),
    /// In an observation that is one object, lines tell nothing.
    Resource(usize),
}

impl fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whereabouts::Line(number) => write!(f, "line {number}"),
            Whereabouts::Resource(number) => write!(f, "resource {number}"),
        }
    }
}

pub const SCHEMA: &str = "driftline.observation/v1";

/// A line longer than this is not a line of NDJSON.
const LONGEST: u64 = 4 << 30;

/// Reads a whole observation into the sink.
pub fn read<S: Sink>(mut input: impl BufRead, sink: &mut S) -> Result<(), ReadError<S::Error>> {
    let mut first = Vec::new();
    let mut skipped = 0;
    loop {
        first.clear();
        if std::io::Read::take(&mut input, LONGEST).read_until(b'\n', &mut first).map_err(ReadError::Io)? == 0 {
            return Err(ReadError::Empty);
        }
        if !first.iter().all(u8::is_ascii_whitespace) {
            break;
        }
        skipped += 1;
    }
    let text = utf8(&first, skipped)?;
    match serde_json::from_str::<Document<'_>>(text) {
        Ok(document) if document.resources.is_none() => {
            sink_header(document, sink, skipped)?;
            read_lines(input, sink, skipped + 1)
        }
        Ok(_) => {
            let mut rest = Vec::new();
            input.read_to_end(&mut rest).map_err(ReadError::Io)?;
            if let Some(at) = rest.iter().position(|byte| !byte.is_ascii_whitespace()) {
                let line = skipped + 2 + memchr::memchr_iter(b'\n', &rest[..at]).count();
                let message = "there is more after the end of the observation".to_owned();
                return Err(ReadError::Malformed { line, column: 1, message });
            }
            read_object(&first, sink, skipped)
        }
        // Cut off at the line's end: an object over several lines.
        Err(error) if error.is_eof() => {
            input.read_to_end(&mut first).map_err(ReadError::Io)?;
            read_object(&first, sink, skipped)
        }
        Err(error) => Err(from_header(&first, &error, skipped)),
    }
}

fn utf8<E>(bytes: &[u8], lines_before: usize) -> Result<&str, ReadError<E>> {
    std::str::from_utf8(bytes).map_err(|error| malformed(bytes, error.valid_up_to(), lines_before, "this is not UTF-8"))
}

fn malformed<E>(bytes: &[u8], offset: usize, lines_before: usize, message: impl fmt::Display) -> ReadError<E> {
    let before = &bytes[..offset.min(bytes.len())];
    let line = lines_before + 1 + memchr::memchr_iter(b'\n', before).count();
    let column = 1 + before.iter().rev().take_while(|byte| **byte != b'\n').count();
    ReadError::Malformed { line, column, message: message.to_string() }
}

/// The parser's words without the excerpt of the input that it adds: that may hold a secret.
fn parser_message(error: &sonic_rs::Error) -> String {
    parser_words(&error.to_string())
}

fn from_parser<E>(bytes: &[u8], error: &sonic_rs::Error, shift: usize, lines_before: usize) -> ReadError<E> {
    malformed(bytes, shift + error.offset(), lines_before, parser_message(error))
}

/// The header, and the object around the resources, are read by the parser that limits how deep it goes.
fn from_header<E>(bytes: &[u8], error: &serde_json::Error, lines_before: usize) -> ReadError<E> {
    let message = parser_words(&error.to_string());
    if error.line() == 0 {
        return malformed(bytes, 0, lines_before, message);
    }
    ReadError::Malformed { line: lines_before + error.line(), column: error.column().max(1), message }
}

fn read_object<S: Sink>(bytes: &[u8], sink: &mut S, lines_before: usize) -> Result<(), ReadError<S::Error>> {
    let text = utf8(bytes, lines_before)?;
    let document: Document<'_> =
        serde_json::from_str(text).map_err(|error| from_header(bytes, &error, lines_before))?;
    let Some(resources) = document.resources else {
        return Err(malformed(bytes, 0, lines_before, "the observation has no `resources`"));
    };
    sink_header(document, sink, lines_before)?;
    let raw = resources.get();
    // Where the resources stand in the file, so that an error in them is reported at its own line.
    let shift = raw.as_ptr() as usize - text.as_ptr() as usize;
    let mut record = Record::default();
    let mut failed = None;
    let mut parser = sonic_rs::Deserializer::from_str(raw);
    let lines = ResourceList { record: &mut record, sink, failed: &mut failed };
    let outcome = lines.deserialize(&mut parser);
    if let Some((number, error)) = failed {
        return Err(ReadError::Sink { place: Whereabouts::Resource(number), source: error });
    }
    outcome.map_err(|error| from_parser(bytes, &error, shift, lines_before))
}

/// How much is read at once, and how many lines the sink is asked about at once.
const CHUNK: usize = 1 << 20;
const LINES: usize = 256;

fn read_lines<S: Sink>(mut input: impl BufRead, sink: &mut S, lines_before: usize) -> Result<(), ReadError<S::Error>> {
    let mut record = Record::default();
    let mut answers = Vec::new();
    let mut number = lines_before;
    let mut buffer = vec![0; CHUNK];
    let mut filled = 0;
    loop {
        if filled == buffer.len() {
            if filled as u64 >= LONGEST {
                return Err(ReadError::Malformed {
                    line: number + 1,
                    column: 1,
                    message: "the line does not end".into(),
                });
            }
            buffer.resize(buffer.len() * 2, 0);
        }
        let read = input.read(&mut buffer[filled..]).map_err(ReadError::Io)?;
        filled += read;
        // All lines that are whole; at the end of the input, whatever is left is one too.
        // Only what is new can have an end: what was left of before had none.
        let whole = match memchr::memrchr(b'\n', &buffer[filled - read..filled]) {
            _ if read == 0 => filled,
            Some(end) => filled - read + end + 1,
            None => continue,
        };
        let mut lines: Vec<&[u8]> = Vec::with_capacity(LINES);
        let mut start = 0;
        while start < whole {
            lines.clear();
            while start < whole && lines.len() < LINES {
                let end = memchr::memchr(b'\n', &buffer[start..whole]).map_or(whole, |at| start + at);
                lines.push(&buffer[start..end]);
                start = end + 1;
            }
            answers.clear();
            sink.known(&lines, &mut answers);
            for (line, known) in lines.iter().zip(&answers) {
                number += 1;
                if !known {
                    read_line(line, number, &mut record, sink)?;
                }
            }
        }
        if read == 0 {
            return Ok(());
        }
        buffer.copy_within(whole..filled, 0);
        filled -= whole;
    }
}

fn read_line<S: Sink>(
    line: &[u8],
    number: usize,
    record: &mut Record,
    sink: &mut S,
) -> Result<(), ReadError<S::Error>> {
    let text = utf8(line, number - 1)?;
    if text.trim_ascii().is_empty() {
        return Ok(());
    }
    let mut parser = sonic_rs::Deserializer::from_str(text);
    record
        .seed()
        .deserialize(&mut parser)
        .and_then(|()| parser.end())
        .map_err(|error| from_parser(line, &error, 0, number - 1))?;
    record.hand_to(sink, line).map_err(|source| ReadError::Sink { place: Whereabouts::Line(number), source })
}

fn sink_header<S: Sink>(document: Document<'_>, sink: &mut S, lines_before: usize) -> Result<(), ReadError<S::Error>> {
    if document.schema != SCHEMA {
        return Err(ReadError::Schema { found: document.schema });
    }
    if document.nature == NatureForm::State && !document.spans.is_empty() {
        let message = "`spans` say of which times every event is known, and this is not of events".to_owned();
        return Err(ReadError::Malformed { line: lines_before + 1, column: 1, message });
    }
    let source: SourceName = document.source.parse()?;
    let scope = document.scope.map(|scope| scope.parse()).transpose()?;
    let header = PlainHeader {
        stream: StreamId { source, scope },
        taken_at: document.taken_at,
        observer: document.observer,
        coverage: document.coverage.map(|coverage| coverage.0.on_basis(document.basis)),
        problems: document.problems,
        nature: match document.nature {
            NatureForm::State => Nature::State,
            NatureForm::Events => Nature::Events(Span::union(document.spans)),
        },
    };
    sink.header(header).map_err(|source| ReadError::Sink { place: Whereabouts::Line(lines_before + 1), source })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document<'a> {
    schema: String,
    source: String,
    scope: Option<String>,
    taken_at: Option<Timestamp>,
    observer: Option<String>,
    coverage: Option<CoverageForm>,
    basis: Option<String>,
    #[serde(default)]
    problems: Vec<Problem>,
    #[serde(default)]
    nature: NatureForm,
    #[serde(default)]
    spans: Vec<Span>,
    #[serde(borrow)]
    resources: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NatureForm {
    #[default]
    State,
    Events,
}

/// `"complete"` as a whole, or a list of extents.
struct CoverageForm(Coverage);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExtentForm {
    r#type: String,
    place: Option<String>,
    account: Option<String>,
    region: Option<String>,
    outcome: String,
    reason: Option<String>,
}

impl ExtentForm {
    fn resolve(self) -> Result<(Extent, Outcome), String> {
        if self.r#type.is_empty() {
            return Err("an extent has no `type`".to_owned());
        }
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let place = filled(self.place).unwrap_or_else(|| {
            let mut place = String::new();
            write_place(filled(self.account).as_deref(), filled(self.region).as_deref(), "", &mut place);
            place
        });
        let outcome = match self.outcome.as_str() {
            "complete" => Outcome::Complete,
            "partial" => Outcome::Partial { reason: self.reason.unwrap_or_else(|| "no reason was given".into()) },
            other => return Err(format!("the outcome `{other}` is neither `complete` nor `partial`")),
        };
        Ok((Extent { kind: self.r#type, place }, outcome))
    }
}

impl<'de> Deserialize<'de> for CoverageForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        impl<'de> Visitor<'de> for Form {
            type Value = CoverageForm;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`\"complete\"` or a list of extents")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<CoverageForm, E> {
                match word {
                    "complete" => Ok(CoverageForm(Coverage::complete())),
                    other => Err(E::custom(format!(
                        "the coverage `{other}` is not known; only `complete` is a word for all"
                    ))),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<CoverageForm, A::Error> {
                let mut coverage = Coverage::new();
                while let Some(form) = seq.next_element::<ExtentForm>()? {
                    let (extent, outcome) = form.resolve().map_err(de::Error::custom)?;
                    coverage.record(extent, outcome);
                }
                Ok(CoverageForm(coverage))
            }
        }

        deserializer.deserialize_any(Form)
    }
}

/// One resource as it is read; its buffers are used again for the next.
#[derive(Debug, Default)]
struct Record {
    id: String,
    kind: String,
    account: Text,
    region: Text,
    place: Text,
    derived_place: String,
    snapshot: Encoder,
    sensitive: Vec<Pattern>,
}

/// A text that may be missing.
#[derive(Debug, Default)]
struct Text {
    given: bool,
    text: String,
}

impl Text {
    /// An empty one says as little as none: a place made of it would be another than everybody else's.
    fn get(&self) -> Option<&str> {
        self.given.then_some(self.text.as_str()).filter(|text| !text.is_empty())
    }
}

impl Record {
    fn seed(&mut self) -> RecordSeed<'_> {
        self.id.clear();
        self.kind.clear();
        for text in [&mut self.account, &mut self.region, &mut self.place] {
            text.given = false;
            text.text.clear();
        }
        self.snapshot.clear();
        self.sensitive.clear();
        RecordSeed(self)
    }

    fn hand_to<S: Sink>(&mut self, sink: &mut S, line: &[u8]) -> Result<(), S::Error> {
        let place = if let Some(place) = self.place.get() {
            place
        } else {
            write_place(self.account.get(), self.region.get(), &self.id, &mut self.derived_place);
            &self.derived_place
        };
        sink.resource(Seen {
            key: KeyRef { kind: &self.kind, place, id: &self.id },
            properties: self.snapshot.properties(),
            sensitive: &self.sensitive,
            line,
        })
    }
}

/// Seeds here ask the parser for "anything" and refuse what does not fit themselves: asked for a text and given
/// an array, this parser walks the array to its end first, one stack frame per level.
struct RecordSeed<'a>(&'a mut Record);

impl<'de> DeserializeSeed<'de> for RecordSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RecordSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a resource: an object with `canonicalId`, `resourceType` and `snapshot`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let record = self.0;
        let mut given = [false; FIELDS.len()];
        while let Some(field) = map.next_key::<Field>()? {
            if std::mem::replace(&mut given[field as usize], true) {
                return Err(de::Error::custom(format!("the member `{}` appears twice", FIELDS[field as usize])));
            }
            match field {
                Field::CanonicalId => {
                    map.next_value_seed(TextSeed(&mut record.id, false))?;
                }
                Field::ResourceType => {
                    map.next_value_seed(TextSeed(&mut record.kind, false))?;
                }
                Field::Account => {
                    record.account.given = map.next_value_seed(TextSeed(&mut record.account.text, true))?;
                }
                Field::Region => record.region.given = map.next_value_seed(TextSeed(&mut record.region.text, true))?,
                Field::Place => record.place.given = map.next_value_seed(TextSeed(&mut record.place.text, true))?,
                Field::Snapshot => map.next_value_seed(record.snapshot.seed())?,
                Field::Sensitive => map.next_value_seed(PatternSeed(&mut record.sensitive))?,
                Field::Source => {
                    map.next_value_seed(TextSeed(&mut record.derived_place, true))?;
                }
            }
        }
        for (name, empty) in [("canonicalId", record.id.is_empty()), ("resourceType", record.kind.is_empty())] {
            if empty {
                return Err(de::Error::custom(format!("the resource has no `{name}`")));
            }
        }
        if record.snapshot.is_empty() {
            return Err(de::Error::missing_field("snapshot"));
        }
        if !record.snapshot.properties().is_object() {
            return Err(de::Error::custom("the `snapshot` of a resource must be an object"));
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Field {
    CanonicalId,
    ResourceType,
    Account,
    Region,
    Place,
    Snapshot,
    Sensitive,
    /// Which observer saw it; the header says so already, and it is no part of the key.
    Source,
}

/// The members' names, in the order of [`Field`].
const FIELDS: [&str; 8] =
    ["canonicalId", "resourceType", "account", "region", "place", "snapshot", "sensitive", "source"];

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;

        impl Visitor<'_> for Name {
            type Value = Field;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a member")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Field, E> {
                Ok(match name {
                    "canonicalId" => Field::CanonicalId,
                    "resourceType" => Field::ResourceType,
                    "account" => Field::Account,
                    "region" => Field::Region,
                    "place" => Field::Place,
                    "snapshot" => Field::Snapshot,
                    "sensitive" => Field::Sensitive,
                    "source" => Field::Source,
                    other => {
                        let known = FIELDS.join(", ");
                        return Err(E::custom(format!("a resource has no member `{other}`; it has {known}")));
                    }
                })
            }
        }

        deserializer.deserialize_str(Name)
    }
}

/// Reads a list of patterns.
struct PatternSeed<'a>(&'a mut Vec<Pattern>);

impl<'de> DeserializeSeed<'de> for PatternSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PatternSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of JSON pointers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut text = String::new();
        while seq.next_element_seed(TextSeed(&mut text, false))?.is_some() {
            self.0.push(text.parse().map_err(de::Error::custom)?);
        }
        Ok(())
    }
}

/// Reads a text into a buffer; says whether there was one, which null is not.
struct TextSeed<'a>(&'a mut String, bool);

impl<'de> DeserializeSeed<'de> for TextSeed<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for TextSeed<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        self.0.clear();
        self.0.push_str(text);
        Ok(true)
    }

    fn visit_unit<E: de::Error>(self) -> Result<bool, E> {
        if self.1 { Ok(false) } else { Err(E::custom("null where a text must be")) }
    }
}

/// The array of resources in an observation that is one object.
struct ResourceList<'a, S: Sink> {
    record: &'a mut Record,
    sink: &'a mut S,
    /// What the sink said, and at which resource, counted from 1.
    failed: &'a mut Option<(usize, S::Error)>,
}

impl<'de, S: Sink> DeserializeSeed<'de> for ResourceList<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, S: Sink> Visitor<'de> for ResourceList<'_, S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of resources")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut number = 0;
        while seq.next_element_seed(self.record.seed())?.is_some() {
            number += 1;
            if let Err(error) = self.record.hand_to(self.sink, &[]) {
                *self.failed = Some((number, error));
                return Err(de::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Collect {
        header: Option<PlainHeader>,
        seen: Vec<String>,
    }

    impl Sink for Collect {
        type Error = String;

        fn header(&mut self, header: PlainHeader) -> Result<(), String> {
            self.header = Some(header);
            Ok(())
        }

        fn resource(&mut self, seen: Seen<'_>) -> Result<(), String> {
            if seen.key.id == "refuse" {
                return Err("refused".into());
            }
            let sensitive: Vec<String> = seen.sensitive.iter().map(ToString::to_string).collect();
            let (key, json) = (seen.key, seen.properties.to_json());
            self.seen.push(format!("{} {} {} {json} {}", key.kind, key.place, key.id, sensitive.join(",")));
            Ok(())
        }
    }

    fn collect(text: &str) -> Result<Collect, String> {
        let mut collect = Collect::default();
        match read(text.as_bytes(), &mut collect) {
            Ok(()) => Ok(collect),
            Err(ReadError::Sink { place, source }) => Err(format!("{place}: {source}")),
            Err(error) => Err(error.to_string()),
        }
    }

    const HEADER: &str = r#"{"schema":"driftline.observation/v1","source":"inventory/prod","takenAt":"2026-06-29T10:00:00Z","coverage":"complete"}"#;

    #[test]
    fn both_forms_read_the_same() {
        let resource = r#"{"canonicalId":"arn:aws:lambda:us-east-1:1:function:f","resourceType":"AWS::Lambda::Function","account":"1","region":"us-east-1","snapshot":{"timeout":3,"env":{"b":1,"a":2}},"sensitive":["/env/*"]}"#;
        let lines = collect(&format!("\n{HEADER}\n{resource}\n\n")).unwrap();
        let object = format!("{},\"resources\":[{resource}]}}", HEADER.trim_end_matches('}'));
        let one = collect(&object).unwrap();
        let pretty: serde_json::Value = serde_json::from_str(&object).unwrap();
        let many = collect(&serde_json::to_string_pretty(&pretty).unwrap()).unwrap();
        assert_eq!(
            lines.seen,
            [
                r#"AWS::Lambda::Function aws/1/us-east-1 arn:aws:lambda:us-east-1:1:function:f {"env":{"a":2,"b":1},"timeout":3} /env/*"#
            ]
        );
        assert_eq!(lines.seen, one.seen);
        assert_eq!(lines.seen, many.seen);
        assert_eq!(lines.header, one.header);
        assert_eq!(lines.header, many.header);
        assert_eq!(lines.header.unwrap().stream.to_string(), "inventory/prod");
    }

    #[test]
    fn the_header_may_come_after_the_resources() {
        let text = r#"{"resources":[{"canonicalId":"x","resourceType":"T","snapshot":{}}],"source":"a","schema":"driftline.observation/v1"}"#;
        let found = collect(text).unwrap();
        assert_eq!(found.seen, ["T - x {} "]);
        assert_eq!(found.header.unwrap().coverage, None);
    }

    #[test]
    fn an_empty_place_account_or_region_says_as_little_as_none() {
        let arn = "arn:aws:lambda:us-east-1:1:function:f";
        for given in [r#""place":"","#, r#""account":"","region":"","#, ""] {
            let line = format!(r#"{{{given}"canonicalId":"{arn}","resourceType":"T","snapshot":{{}}}}"#);
            assert_eq!(collect(&format!("{HEADER}\n{line}")).unwrap().seen, [format!("T aws/1/us-east-1 {arn} {{}} ")]);
            let extent = format!(r#"[{{{given}"type":"T","outcome":"complete"}}]"#);
            let header = collect(&HEADER.replace("\"complete\"", &extent)).unwrap().header.unwrap();
            assert!(header.coverage.unwrap().is_complete("T", "-"), "{given}");
        }
        let error =
            collect(&HEADER.replace("\"complete\"", r#"[{"type":"","outcome":"complete"}]"#)).err().unwrap_or_default();
        assert!(error.contains("an extent has no `type`"), "{error}");
    }

    #[test]
    fn bad_input_is_named_with_its_line_and_column() {
        let resource = r#"{"canonicalId":"x","resourceType":"T","snapshot":{}}"#;
        for (text, message) in [
            ("", "the input is empty"),
            ("   \n  ", "the input is empty"),
            ("nonsense", "line 1, column"),
            ("[[[", "line 1, column"),
            (&format!("{HEADER}\n{resource}\n{{\"canonicalId\":\"y\",}}\n"), "line 3, column"),
            (&format!("{HEADER}\n{resource}x"), "line 2, column"),
            (&format!("{HEADER}\n{{\"resourceType\":\"T\",\"snapshot\":{{}}}}"), "no `canonicalId`"),
            (&format!("{HEADER}\n{{\"canonicalId\":\"x\",\"resourceType\":\"T\"}}"), "snapshot"),
            (
                &format!("{HEADER}\n{{\"canonicalId\":\"x\",\"resourceType\":\"T\",\"snapshot\":[]}}"),
                "must be an object",
            ),
            (
                &format!("{HEADER}\n{{\"canonicalId\":\"x\",\"resourceType\":\"T\",\"snapshot\":{{\"a\":1,\"a\":2}}}}"),
                "twice",
            ),
            (
                &format!("{HEADER}\n{{\"canonicalId\":\"x\",\"resourceType\":\"T\",\"snapshots\":{{}}}}"),
                "no member `snapshots`",
            ),
            (&HEADER.replace("/v1", "/v2"), "the schema is `driftline.observation/v2`"),
            (&HEADER.replace("inventory/prod", "latest"), "`latest` is reserved"),
            (&HEADER.replace("\"complete\"", "\"most\""), "the coverage `most` is not known"),
            (&HEADER.replace("2026-06-29T10:00:00Z", "yesterday"), "line 1, column"),
            (&format!("{HEADER}\n{}", resource.replace('x', "refuse")), "line 2: refused"),
        ] {
            let error = collect(text).err().unwrap_or_default();
            assert!(error.contains(message), "{text}\n{error}");
        }
    }

    #[test]
    fn nesting_without_end_is_an_error_and_not_a_crash() {
        for open in ["[", "{\"a\":"] {
            let deep = open.repeat(1_000_000);
            assert!(collect(&deep).is_err());
            let inside = format!("{HEADER}\n{{\"canonicalId\":\"x\",\"resourceType\":\"T\",\"snapshot\":{deep}");
            let error = collect(&inside).err().unwrap_or_default();
            assert!(error.contains("nest more than 128 levels"), "{error}");
            for field in ["canonicalId", "resourceType", "account", "sensitive", "source", "other"] {
                assert!(collect(&format!("{HEADER}\n{{\"{field}\":{deep}")).is_err(), "{field}");
                assert!(
                    collect(&format!("{}, \"resources\":[{{\"{field}\":{deep}", HEADER.trim_end_matches('}'))).is_err()
                );
            }
            for field in ["schema", "source", "coverage", "problems", "resources", "other"] {
                assert!(collect(&format!("{{\"{field}\":{deep}")).is_err(), "{field}");
            }
            assert!(collect(&format!("{HEADER}\n{deep}")).is_err());
        }
    }

    #[test]
    fn a_secret_in_bad_input_is_not_repeated_in_the_error() {
        let text = format!(
            "{HEADER}\n{{\"canonicalId\":\"x\",\"resourceType\":\"T\",\"snapshot\":{{\"password\":\"hunter2\" oops}}}}"
        );
        let error = collect(&text).err().unwrap_or_default();
        assert!(error.contains("line 2") && !error.contains("hunter2"), "{error}");
    }
}
