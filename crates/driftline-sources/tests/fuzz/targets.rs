//! What must hold of every normalizer on any bytes whatsoever. `fuzz/` runs the same checks under libFuzzer.

use std::collections::hash_map::DefaultHasher;
use std::convert::Infallible;
use std::hash::{Hash, Hasher};
use std::io::{BufReader, Read};

use driftline_core::{Coverage, KeyRef, Pattern, Pointer, Properties, PropertiesRef, Value};
use driftline_sources::mapped::{Kind, Mapping};
use driftline_sources::normalize::{Context, Document, Listing, Model, NormalizeError};
use driftline_sources::plain::{self, PlainHeader, ReadError, Seen, Sink};
use driftline_sources::swamp::{Metadata, RepositoryFile};
use jiff::Timestamp;
use peak_alloc::PeakAlloc;

/// Counts every byte, and a block that grows twice while it moves: what is measured is never too little.
#[global_allocator]
pub(crate) static MEMORY: PeakAlloc = PeakAlloc;

/// Parts documents from each other: no JSON text has this byte.
pub(crate) const SEPARATOR: u8 = 0x1e;

/// One normalizer, and how much memory it may use: so many times its input, and so much whatever the input is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub name: &'static str,
    reader: Reader,
    /// Of documents as observers write them, however long.
    pub times: usize,
    /// Of documents that someone made to be the worst: `{"":{"":…` takes five bytes a level, and a map in memory 640.
    pub worst: usize,
    pub apart: usize,
}

#[derive(Clone, Copy, Debug)]
enum Reader {
    Model(Model),
    Mapped,
    /// The YAML files of a datastore; what swamp's command line prints is opened for every model.
    Swamp,
    Plain,
}

const KB: usize = 1 << 10;

pub(crate) const ADOPT: Target = Target::of("adopt", Model::Adopt, 4, 40);
pub(crate) const INVENTORY: Target = Target::of("inventory", Model::Inventory, 4, 144);
pub(crate) const CONFIG: Target = Target::of("config", Model::Config, 5, 120);
pub(crate) const DNS: Target = Target::of("dns", Model::Dns, 5, 144);
pub(crate) const EVENT_TOPOLOGY: Target = Target::of("event_topology", Model::EventTopology, 12, 144);
pub(crate) const TERRAFORM: Target = Target::of("terraform", Model::Terraform, 4, 336);
/// A template is read whole: any part of it may name any other.
pub(crate) const CLOUDFORMATION: Target = Target::of("cloudformation", Model::CloudFormation, 24, 512);
/// Each record is read whole, and little of it is kept.
pub(crate) const CLOUDTRAIL: Target = Target::of("cloudtrail", Model::CloudTrail, 6, 336);
/// YAML is read whole, and aliases may make a large value of a few bytes, up to a limit of its parser.
pub(crate) const KUBERNETES: Target =
    Target { name: "kubernetes", reader: Reader::Model(Model::Kubernetes), times: 6, worst: 512, apart: 4096 * KB };
/// Reads lines into a buffer of one megabyte, and hands them on.
pub(crate) const PLAIN: Target = Target { name: "plain", reader: Reader::Plain, times: 3, worst: 40, apart: 1100 * KB };
pub(crate) const MAPPED: Target =
    Target { name: "mapped", reader: Reader::Mapped, times: 13, worst: 144, apart: 64 * KB };
/// Aliases may make a large value of a few bytes, up to a limit of the parser of YAML.
pub(crate) const SWAMP: Target =
    Target { name: "swamp", reader: Reader::Swamp, times: 24, worst: 48, apart: 4096 * KB };

pub(crate) const ALL: [Target; 12] = [
    ADOPT,
    INVENTORY,
    CONFIG,
    DNS,
    EVENT_TOPOLOGY,
    TERRAFORM,
    CLOUDFORMATION,
    CLOUDTRAIL,
    KUBERNETES,
    MAPPED,
    SWAMP,
    PLAIN,
];

pub(crate) fn fuzz_adopt(bytes: &[u8]) {
    ADOPT.run(bytes);
}

pub(crate) fn fuzz_inventory(bytes: &[u8]) {
    INVENTORY.run(bytes);
}

pub(crate) fn fuzz_config(bytes: &[u8]) {
    CONFIG.run(bytes);
}

pub(crate) fn fuzz_dns(bytes: &[u8]) {
    DNS.run(bytes);
}

pub(crate) fn fuzz_event_topology(bytes: &[u8]) {
    EVENT_TOPOLOGY.run(bytes);
}

pub(crate) fn fuzz_terraform(bytes: &[u8]) {
    TERRAFORM.run(bytes);
}

pub(crate) fn fuzz_cloudformation(bytes: &[u8]) {
    CLOUDFORMATION.run(bytes);
}

pub(crate) fn fuzz_cloudtrail(bytes: &[u8]) {
    CLOUDTRAIL.run(bytes);
}

pub(crate) fn fuzz_kubernetes(bytes: &[u8]) {
    KUBERNETES.run(bytes);
}

pub(crate) fn fuzz_mapped(bytes: &[u8]) {
    MAPPED.run(bytes);
}

pub(crate) fn fuzz_swamp(bytes: &[u8]) {
    SWAMP.run(bytes);
}

pub(crate) fn fuzz_plain(bytes: &[u8]) {
    PLAIN.run(bytes);
}

/// The names of all types are unpacked once in a process, when the first unusual one is met: no input needs that room.
fn read_tables() {
    let _ = driftline_sources::aws::canonical_kind("AWS::No::SuchType");
}

impl Target {
    const fn of(name: &'static str, model: Model, times: usize, worst: usize) -> Self {
        Self { name, reader: Reader::Model(model), times, worst, apart: 64 * KB }
    }

    /// Panics, with the reason, where something does not hold.
    pub(crate) fn run(&self, bytes: &[u8]) {
        if let Err(reason) = self.check(bytes) {
            panic!("{}: {reason}", self.name);
        }
    }

    /// Whether everything holds.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<(), String> {
        read_tables();
        let peak = match self.reader {
            Reader::Model(_) | Reader::Mapped => check_normalizer(self.reader, bytes)?,
            Reader::Swamp => check_swamp(bytes)?,
            Reader::Plain => check_plain(bytes)?,
        };
        let most = self.worst * bytes.len() + self.apart;
        match peak <= most {
            true => Ok(()),
            false => Err(format!("{} bytes of input needed {peak} bytes, and {most} are allowed", bytes.len())),
        }
    }

    /// How many bytes it needed at most, and how many resources came of it.
    pub(crate) fn measure(&self, bytes: &[u8]) -> (usize, usize) {
        read_tables();
        match self.reader {
            Reader::Model(_) | Reader::Mapped => {
                let (listings, peak) = normalize(self.reader, bytes, None);
                let count = listings.iter().flatten().map(|listing| listing.resources.len()).sum();
                (peak, count)
            }
            Reader::Swamp => {
                let ((metadata, repository), peak) = measured(|| read_swamp(bytes));
                (peak, usize::from(metadata.is_ok() || repository.is_ok()))
            }
            Reader::Plain => {
                let (digest, peak) = measured(|| read_plain(bytes));
                (peak, digest.map_or(0, |digest| digest.resources))
            }
        }
    }

    /// What comes of it, for holding against what came of it written otherwise.
    pub(crate) fn listings(&self, bytes: &[u8]) -> Option<Result<Vec<Listing>, NormalizeError>> {
        match self.reader {
            Reader::Model(_) | Reader::Mapped => Some(normalize(self.reader, bytes, Some("123456789012")).0),
            Reader::Swamp | Reader::Plain => None,
        }
    }
}

/// Runs something and says how many more bytes than before were in use at once.
fn measured<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let outcome = run();
    (outcome, MEMORY.peak_usage().saturating_sub(before))
}

fn normalize(reader: Reader, bytes: &[u8], account: Option<&str>) -> (Result<Vec<Listing>, NormalizeError>, usize) {
    let context = Context {
        source: "fuzz".parse().expect("a name"),
        account: account.map(ToOwned::to_owned),
        partition: "aws".into(),
    };
    let parts = bytes.split(|byte| *byte == SEPARATOR);
    let documents: Vec<Document<'_>> = (0..)
        .zip(parts)
        .map(|(second, bytes)| Document { name: "input", bytes, written_at: Timestamp::from_second(second).ok() })
        .collect();
    measured(|| match reader {
        Reader::Model(model) => model.normalize(&documents, &context),
        _ => map(&documents, &context),
    })
}

/// A list with everything said of each item, or an object whose members have nothing but a state.
fn map(documents: &[Document<'_>], context: &Context) -> Result<Vec<Listing>, NormalizeError> {
    let at = |text: &str| text.parse::<Pointer>().ok();
    let list = Mapping {
        items: at("/things"),
        id: at("/id"),
        kind: Kind::At(at("/kind").expect("a pointer")),
        account: at("/account"),
        region: at("/where/region"),
        snapshot: None,
        taken_at: at("/taken"),
        complete: true,
    };
    let object =
        Mapping { items: at(""), id: None, kind: Kind::Named("Thing".into()), snapshot: at("/state"), ..list.clone() };
    let listing = list.normalize(documents, context).or_else(|_| object.normalize(documents, context))?;
    Ok(vec![listing])
}

type Files = (Result<Metadata, String>, Result<RepositoryFile, String>);

fn read_swamp(bytes: &[u8]) -> Files {
    // Whoever reads the file has seen that it is a text.
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    (
        Metadata::parse(text).map_err(|error| error.to_string()),
        RepositoryFile::parse(text).map_err(|error| error.to_string()),
    )
}

fn check_swamp(bytes: &[u8]) -> Result<usize, String> {
    let (first, peak) = measured(|| read_swamp(bytes));
    // Said in words, because nobody else asks whether two files say the same.
    match format!("{first:?}") == format!("{:?}", read_swamp(bytes)) {
        true => Ok(peak),
        false => Err("the same bytes gave two results".into()),
    }
}

fn check_normalizer(reader: Reader, bytes: &[u8]) -> Result<usize, String> {
    let (first, peak) = normalize(reader, bytes, None);
    let (again, _) = normalize(reader, bytes, None);
    if first != again {
        return Err("the same bytes gave two results".into());
    }
    drop(again);
    check_result(&first)?;
    drop(first);
    let (elsewhere, peak_elsewhere) = normalize(reader, bytes, Some("123456789012"));
    check_result(&elsewhere)?;
    Ok(peak.max(peak_elsewhere))
}

fn check_result(result: &Result<Vec<Listing>, NormalizeError>) -> Result<(), String> {
    match result {
        Ok(listings) => listings.iter().try_for_each(check_listing),
        Err(error) if error.message.is_empty() => Err("an error says nothing".into()),
        Err(_) => Ok(()),
    }
}

fn check_listing(listing: &Listing) -> Result<(), String> {
    for (key, found) in &listing.resources {
        check_resource(key.as_ref(), found.properties.as_ref(), &found.sensitive)?;
    }
    if !listing.problems.is_sorted_by(|a, b| a < b) {
        return Err("problems are not in order, or one is there twice".into());
    }
    check_coverage(&listing.coverage)
}

fn check_coverage(coverage: &Coverage) -> Result<(), String> {
    match coverage.iter().find(|(kind, place, _)| kind.is_empty() || place.is_empty()) {
        Some((kind, place, _)) => Err(format!("the extent `{kind}` in `{place}` has no name")),
        None => Ok(()),
    }
}

fn check_resource(key: KeyRef<'_>, properties: PropertiesRef<'_>, sensitive: &[Pattern]) -> Result<(), String> {
    if key.kind.is_empty() || key.place.is_empty() || key.id.is_empty() {
        return Err(format!("a part of the key `{}`, `{}`, `{}` is empty", key.kind, key.place, key.id));
    }
    if !properties.is_object() {
        return Err(format!("the properties of `{}` are not an object", key.id));
    }
    // The encoding is canonical: decoded, or printed and read again, it must come out the same.
    let value = properties.to_value();
    if Properties::new(&value).as_ref() != properties {
        return Err(format!("the properties of `{}` decode to other ones", key.id));
    }
    let read: Value = serde_json::from_str(&properties.to_json())
        .map_err(|error| format!("the properties of `{}` do not print as JSON: {error}", key.id))?;
    if read != value {
        return Err(format!("the properties of `{}` print as other ones", key.id));
    }
    for pattern in sensitive {
        let text = pattern.to_string();
        let parsed: Pattern = text.parse().map_err(|error| format!("the pattern `{text}` does not parse: {error}"))?;
        // A star that is a name comes back as a star that stands for every name: more is sealed, never less.
        if parsed != *pattern && !text.contains("/*") {
            return Err(format!("the pattern `{text}` parses as another one"));
        }
    }
    Ok(())
}

/// What came out of a plain observation, in a few bytes: the reader is measured, not what is done with resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Digest {
    resources: usize,
    hash: u64,
}

#[derive(Default)]
struct Checked {
    digest: Digest,
    hasher: DefaultHasher,
    headers: usize,
    wrong: Option<String>,
}

impl Checked {
    fn note(&mut self, outcome: Result<(), String>) {
        self.wrong = self.wrong.take().or(outcome.err());
    }
}

impl Sink for Checked {
    type Error = Infallible;

    fn header(&mut self, header: PlainHeader) -> Result<(), Infallible> {
        self.headers += 1;
        format!("{header:?}").hash(&mut self.hasher);
        Ok(())
    }

    fn resource(&mut self, seen: Seen<'_>) -> Result<(), Infallible> {
        self.digest.resources += 1;
        (seen.key.kind, seen.key.place, seen.key.id, seen.properties.id().0).hash(&mut self.hasher);
        seen.sensitive.len().hash(&mut self.hasher);
        Ok(())
    }
}

/// Takes each resource apart, which needs memory of its own.
#[derive(Default)]
struct Thorough(Checked);

impl Sink for Thorough {
    type Error = Infallible;

    fn header(&mut self, header: PlainHeader) -> Result<(), Infallible> {
        let outcome = header.coverage.as_ref().map_or(Ok(()), check_coverage);
        self.0.note(outcome);
        self.0.header(header)
    }

    fn resource(&mut self, seen: Seen<'_>) -> Result<(), Infallible> {
        self.0.note(check_resource(seen.key, seen.properties, seen.sensitive));
        if !seen.line.is_empty() && serde_json::from_slice::<serde::de::IgnoredAny>(seen.line).is_err() {
            self.0.note(Err(format!("`{}` came by a line that is not JSON", seen.key.id)));
        }
        self.0.resource(seen)
    }
}

fn read_plain(bytes: &[u8]) -> Result<Digest, String> {
    let mut sink = Checked::default();
    let outcome = plain::read(bytes, &mut sink);
    finish(&outcome, &sink)
}

fn finish(outcome: &Result<(), ReadError<Infallible>>, sink: &Checked) -> Result<Digest, String> {
    match outcome {
        Ok(()) => Ok(Digest { hash: sink.hasher.finish(), ..sink.digest.clone() }),
        Err(error) => Err(error.to_string()),
    }
}

fn check_plain(bytes: &[u8]) -> Result<usize, String> {
    let (first, peak) = measured(|| read_plain(bytes));
    let mut thorough = Thorough::default();
    let outcome = plain::read(bytes, &mut thorough);
    let Checked { wrong, headers, .. } = &mut thorough.0;
    if let Some(wrong) = wrong.take() {
        return Err(wrong);
    }
    if *headers > 1 || (outcome.is_ok() && *headers == 0) {
        return Err(format!("there were {headers} headers"));
    }
    if finish(&outcome, &thorough.0) != first {
        return Err("the same bytes gave two results".into());
    }
    // A pipe gives what it has: a few bytes at a time must mean the same.
    if bytes.len() <= 2 * KB {
        let mut sink = Checked::default();
        let outcome = plain::read(BufReader::with_capacity(3, Trickle(bytes)), &mut sink);
        if finish(&outcome, &sink) != first {
            return Err("read in small pieces it gave another result".into());
        }
    }
    Ok(peak)
}

struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let upto = self.0.len().min(5).min(buffer.len());
        self.0.read(&mut buffer[..upto])
    }
}
