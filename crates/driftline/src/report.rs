//! The drift report, in every format.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use driftline_core::compare::{Change, Excused};
use driftline_core::rule::RuleBook;
use driftline_core::seal::is_sealed;
use driftline_core::verdict::{DriftKind, Status};
use driftline_core::{ResourceKey, Value, difference};
use driftline_sources::place::account_and_region;
use driftline_store::detect::{SourceReport, Tally};
use jiff::Timestamp;
use serde::Serialize;

use crate::observe::Extents;
use crate::output::{BOLD, CYAN, DIM, GREEN, Page, RED, Show, YELLOW, count, markdown_cell, short, visible};
use crate::time::ago;

/// One resource in the report.
#[derive(Debug, Clone)]
pub(crate) struct Entry<'a> {
    pub key: &'a ResourceKey,
    pub source: &'a str,
    pub status: Status,
    pub kind: Option<DriftKind>,
    pub since: Option<Timestamp>,
    pub changes: Changes<'a>,
    pub excused: &'a [Excused],
    pub reason: Option<&'a str>,
}

/// Changes as a list, or as the JSON that lists them, unread.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Changes<'a> {
    Read(&'a [Change]),
    Unread(&'a str),
}

impl<'a> Changes<'a> {
    pub(crate) fn list(&self) -> Cow<'a, [Change]> {
        match self {
            Changes::Read(list) => Cow::Borrowed(list),
            Changes::Unread(text) => {
                let value: Value = serde_json::from_str(text).expect("the store wrote this JSON");
                Cow::Owned(difference::from_value(&value).expect("the store wrote this list"))
            }
        }
    }
}

/// What the expected side was.
#[derive(Debug, Clone)]
pub(crate) enum Expected {
    Baseline { name: String, set_at: Timestamp },
    Versions { text: String },
}

impl Expected {
    /// What the answer is held against, in words.
    pub(crate) fn heading(&self, now: Timestamp) -> String {
        match self {
            Expected::Baseline { name, set_at } => format!("against baseline `{name}`, set {}", ago(*set_at, now)),
            Expected::Versions { text } => text.clone(),
        }
    }

    /// The same at any time it is asked: for what is kept, and compared byte by byte.
    pub(crate) fn exact_heading(&self) -> String {
        match self {
            Expected::Baseline { name, set_at } => format!("against baseline `{name}`, set at {set_at}"),
            Expected::Versions { text } => text.clone(),
        }
    }
}

/// Everything `drift` has to say.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub now: Timestamp,
    pub expected: Expected,
    pub entries: Vec<Entry<'a>>,
    pub tally: Tally,
    pub excused: usize,
    pub sources: &'a [SourceReport],
    pub book: &'a RuleBook,
    pub limit: usize,
    /// Excused differences are listed, too.
    pub all: bool,
    pub unused_rules: Vec<&'a str>,
    pub expired_rules: Vec<&'a str>,
    /// What `--where` said, if anything.
    pub filter: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonBaseline<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    set_at: Option<Timestamp>,
    sources: BTreeMap<String, JsonPin>,
}

#[derive(Serialize)]
struct JsonPin {
    version: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonSummary {
    total: u64,
    in_sync: u64,
    drifted: u64,
    unknown: u64,
    not_checked: u64,
    resolved: usize,
    excused: usize,
    drift_rate: f64,
}

#[derive(Serialize)]
pub(crate) struct JsonChange<'a> {
    path: String,
    op: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<&'a Value>,
}

#[derive(Serialize)]
pub(crate) struct JsonExcused<'a> {
    path: String,
    rule: &'static str,
    origin: String,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<&'a Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonSource {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_version: Option<u64>,
    version: u64,
    taken_at: Timestamp,
    extents: Extents,
}

#[derive(Serialize)]
struct JsonRules<'a> {
    unused: &'a [&'a str],
    expired: &'a [&'a str],
}

pub(crate) fn json_change(change: &Change) -> JsonChange<'_> {
    JsonChange {
        path: change.path.to_string(),
        op: difference::operation(change),
        baseline: change.expected.as_ref(),
        current: change.actual.as_ref(),
    }
}

pub(crate) fn json_excused<'a>(excused: &'a Excused, book: &'a RuleBook) -> JsonExcused<'a> {
    let rule = &book.rules()[excused.rule];
    JsonExcused {
        path: excused.change.path.to_string(),
        rule: rule.kind.name(),
        origin: rule.origin.to_string(),
        reason: &rule.reason,
        baseline: excused.change.expected.as_ref(),
        current: excused.change.actual.as_ref(),
    }
}

/// Members of a JSON object, one after the other.
struct Object<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> Object<'o> {
    fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    fn name(&mut self, name: &str) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn member(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
        self.name(name);
        Ok(serde_json::to_writer(&mut *self.out, value)?)
    }

    fn optional(&mut self, name: &str, value: Option<&(impl Serialize + ?Sized)>) -> io::Result<()> {
        value.map_or(Ok(()), |value| self.member(name, value))
    }

    fn end(self) {
        self.out.push(b'}');
    }
}

/// How much of a report is put together before it is handed on.
const CHUNK: usize = 64 * 1024;

/// Written member by member, because changes that nobody had to read are copied as they are.
fn write_resource(entry: &Entry<'_>, book: &RuleBook, out: &mut Vec<u8>) -> io::Result<()> {
    let (account, region) = account_and_region(entry.key.place.as_str());
    let mut object = Object::begin(out);
    object.member("canonicalId", &entry.key.id)?;
    object.member("resourceType", &entry.key.kind)?;
    object.member("place", entry.key.place.as_str())?;
    object.optional("account", account)?;
    object.optional("region", region)?;
    object.member("source", entry.source)?;
    object.member("status", &entry.status)?;
    object.optional("kind", entry.kind.as_ref())?;
    object.optional("firstSeen", entry.since.as_ref())?;
    match entry.changes {
        Changes::Unread(text) => {
            object.name("changes");
            object.out.extend_from_slice(text.as_bytes());
        }
        Changes::Read(list) => object.member("changes", &list.iter().map(json_change).collect::<Vec<_>>())?,
    }
    let excused: Vec<JsonExcused<'_>> = entry.excused.iter().map(|excused| json_excused(excused, book)).collect();
    object.member("excused", &excused)?;
    object.optional("reason", entry.reason)?;
    object.end();
    Ok(())
}

/// A value for people: short, and never a secret's digest.
pub(crate) fn shown(value: Option<&Value>) -> String {
    match value {
        None => "absent".into(),
        Some(value) if is_sealed(value) => "(sealed)".into(),
        Some(value) => short(&value.to_json(), 120),
    }
}

pub(crate) fn change_line(change: &Change) -> String {
    let path = if change.path.is_root() { "(whole resource)".to_owned() } else { change.path.to_string() };
    match (&change.expected, &change.actual) {
        (Some(before), Some(after)) if is_sealed(before) && is_sealed(after) => {
            format!("{path}: a sealed value changed")
        }
        (before, after) => format!("{path}: {} -> {}", shown(before.as_ref()), shown(after.as_ref())),
    }
}

impl Report<'_> {
    fn of(&self, status: Status) -> impl Iterator<Item = &Entry<'_>> {
        self.entries.iter().filter(move |entry| entry.status == status)
    }

    fn limit(&self) -> usize {
        if self.limit == 0 { usize::MAX } else { self.limit }
    }

    fn heading(&self) -> String {
        self.expected.heading(self.now)
    }

    pub(crate) fn result_line(&self) -> String {
        let tally = self.tally;
        let mut text = format!(
            "result: {} drifted, {} unknown, {} not checked, {} in sync (of {})",
            tally.drifted,
            tally.unknown,
            tally.not_checked,
            tally.in_sync,
            tally.total()
        );
        if self.excused > 0 {
            text += &format!("; {} excused by rules", count(self.excused, "difference"));
        }
        if let Some(filter) = &self.filter {
            text += &format!("; only where {filter}");
        }
        text
    }

    /// What was not checked: by source, place and reason, the types with their counts.
    fn not_checked_groups(&self) -> BTreeMap<(&str, &str, &str), BTreeMap<&str, usize>> {
        let mut groups: BTreeMap<_, BTreeMap<&str, usize>> = BTreeMap::new();
        for entry in self.of(Status::NotChecked) {
            let group = (entry.source, entry.key.place.as_str(), entry.reason.unwrap_or_default());
            *groups.entry(group).or_default().entry(entry.key.kind.as_str()).or_default() += 1;
        }
        groups
    }

    /// Findings that went away. They are in sync, and worth a line.
    fn resolved(&self) -> impl Iterator<Item = &Entry<'_>> {
        self.entries.iter().filter(|entry| entry.kind == Some(DriftKind::Resolved))
    }

    fn section(
        &self,
        page: &mut Page<'_>,
        status: Status,
        title: &str,
        explain: &str,
        sign: impl Fn(&Entry<'_>) -> (&'static str, anstyle::Style),
    ) -> io::Result<()> {
        let total = self.of(status).count();
        if total == 0 {
            return Ok(());
        }
        writeln!(page, "{title}  {}", page.paint(DIM, explain))?;
        for entry in self.of(status).take(self.limit()) {
            let (sign, style) = sign(entry);
            let mut about = vec![entry.source.to_owned()];
            // An ARN tells the place already.
            let place = entry.key.place.as_str();
            if !(place.contains('/') && place.split('/').skip(1).all(|part| entry.key.id.contains(part))) {
                about.push(place.to_owned());
            }
            if let Some(kind) = entry.kind.filter(|kind| *kind == DriftKind::Deleted) {
                about.insert(0, kind.name().to_owned());
            }
            if let Some(since) = entry.since {
                about.push(format!("since {}", ago(since, self.now)));
            }
            let name = page.paint(style, &format!("{sign} {}", entry.key.id));
            let detail = page.paint(DIM, &format!("({})", about.join(", ")));
            writeln!(page, "  {name}  {} {detail}", visible(&entry.key.kind))?;
            let changes = entry.changes.list();
            for change in changes.iter().take(20) {
                writeln!(page, "      {}", visible(&change_line(change)))?;
            }
            if changes.len() > 20 {
                writeln!(page, "      … and {} more changes (`driftline explain` lists all)", changes.len() - 20)?;
            }
            for one in entry.excused.iter().filter(|_| self.all) {
                let rule = &self.book.rules()[one.rule];
                let line = format!("excused ({}): {}", rule.kind.name(), change_line(&one.change));
                writeln!(page, "      {}", page.paint(DIM, &line))?;
            }
        }
        if total > self.limit() {
            writeln!(page, "  … and {} more (--limit 0 lists all, -o json has everything)", total - self.limit())?;
        }
        writeln!(page)
    }
}

impl Show for Report<'_> {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        writeln!(page, "{} {}\n", page.paint(BOLD, "Drift"), self.heading())?;
        let tally = self.tally;
        let title = page.paint(RED, &format!("DRIFTED {}", tally.drifted));
        self.section(page, Status::Drifted, &title, "modified or deleted", |entry| match entry.kind {
            Some(DriftKind::Deleted) => ("-", RED),
            _ => ("~", YELLOW),
        })?;
        let title = page.paint(CYAN, &format!("UNKNOWN {}", tally.unknown));
        self.section(page, Status::Unknown, &title, "there now, not in the baseline", |_| ("+", CYAN))?;
        if tally.not_checked > 0 {
            let title = page.paint(YELLOW, &format!("NOT CHECKED {}", tally.not_checked));
            writeln!(page, "{title}  {}", page.paint(DIM, "one side did not look; never counted as in sync"))?;
            let groups = self.not_checked_groups();
            for ((source, place, reason), types) in groups.iter().take(self.limit()) {
                let all: usize = types.values().sum();
                let types: Vec<String> = types.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
                let name = page.paint(YELLOW, &format!("? {all} in {place}"));
                writeln!(page, "  {name} {}", page.paint(DIM, &format!("({source})")))?;
                writeln!(page, "      {}", visible(&types.join(", ")))?;
                writeln!(page, "      why: {}", visible(reason))?;
            }
            if groups.len() > self.limit() {
                writeln!(page, "  … and {} more groups", groups.len() - self.limit())?;
            }
            writeln!(page)?;
        }
        let resolved: Vec<&Entry<'_>> = self.resolved().collect();
        if !resolved.is_empty() {
            let title = page.paint(GREEN, &format!("RESOLVED {}", resolved.len()));
            writeln!(page, "{title}  {}", page.paint(DIM, "findings that are gone; good news"))?;
            for entry in resolved.iter().take(self.limit()) {
                let name = page.paint(GREEN, &format!("* {}", entry.key.id));
                writeln!(
                    page,
                    "  {name}  {} {}",
                    visible(&entry.key.kind),
                    page.paint(DIM, &format!("({})", entry.source))
                )?;
            }
            if resolved.len() > self.limit() {
                writeln!(page, "  … and {} more", resolved.len() - self.limit())?;
            }
            writeln!(page)?;
        }
        if self.all && self.entries.iter().any(|entry| entry.status == Status::InSync) {
            let title = page.paint(GREEN, &format!("IN SYNC {}", tally.in_sync));
            self.section(page, Status::InSync, &title, "", |_| ("=", GREEN))?;
        }
        writeln!(page, "{}", page.paint(BOLD, &self.result_line()))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let (name, set_at) = match &self.expected {
            Expected::Baseline { name, set_at } => (name.as_str(), Some(*set_at)),
            Expected::Versions { text } => (text.as_str(), None),
        };
        let pins = self
            .sources
            .iter()
            .filter_map(|source| Some((source.stream.to_string(), JsonPin { version: source.expected? })));
        let tally = self.tally;
        let summary = JsonSummary {
            total: tally.total(),
            in_sync: tally.in_sync,
            drifted: tally.drifted,
            unknown: tally.unknown,
            not_checked: tally.not_checked,
            resolved: self.resolved().count(),
            excused: self.excused,
            drift_rate: driftline_core::velocity::Rate::new(tally.drifted, tally.checked()).drift_rate,
        };
        let source = |source: &SourceReport| JsonSource {
            name: source.stream.to_string(),
            baseline_version: source.expected,
            version: source.version,
            taken_at: source.taken_at,
            extents: Extents { complete: source.complete_extents, partial: source.partial_extents },
        };
        let mut buffer = Vec::new();
        let mut report = Object::begin(&mut buffer);
        report.member("schema", "driftline.drift/v1")?;
        report.member("computedAt", &self.now)?;
        report.member("baseline", &JsonBaseline { name, set_at, sources: pins.collect() })?;
        report.optional("where", self.filter.as_ref())?;
        report.member("summary", &summary)?;
        report.name("resources");
        report.out.push(b'[');
        for (at, entry) in self.entries.iter().enumerate() {
            if at > 0 {
                report.out.push(b',');
            }
            write_resource(entry, self.book, report.out)?;
            if report.out.len() > CHUNK {
                out.write_all(report.out)?;
                report.out.clear();
            }
        }
        report.out.push(b']');
        report.member("sources", &self.sources.iter().map(source).collect::<Vec<_>>())?;
        report.member("rules", &JsonRules { unused: &self.unused_rules, expired: &self.expired_rules })?;
        report.end();
        out.write_all(&buffer)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut line = Vec::new();
        for entry in &self.entries {
            line.clear();
            write_resource(entry, self.book, &mut line)?;
            line.push(b'\n');
            out.write_all(&line)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let tally = self.tally;
        writeln!(out, "### Drift {}\n", markdown_cell(&self.heading()))?;
        writeln!(out, "| drifted | unknown | not checked | in sync | excused differences |\n|---|---|---|---|---|")?;
        let counts = (tally.drifted, tally.unknown, tally.not_checked, tally.in_sync);
        writeln!(out, "| {} | {} | {} | {} | {} |\n", counts.0, counts.1, counts.2, counts.3, self.excused)?;
        let listed = |entry: &&Entry<'_>| {
            matches!(entry.status, Status::Drifted | Status::Unknown) || entry.kind == Some(DriftKind::Resolved)
        };
        if self.entries.iter().any(|entry| listed(&entry)) {
            writeln!(out, "| | resource | type | source | changes |\n|---|---|---|---|---|")?;
            for entry in self.entries.iter().filter(listed).take(self.limit()) {
                let word = entry.kind.map_or(entry.status.name(), DriftKind::name);
                let list = entry.changes.list();
                let changes: Vec<String> =
                    list.iter().take(10).map(|change| markdown_cell(&change_line(change))).collect();
                let more = list.len().saturating_sub(10);
                let tail = if more > 0 { format!("<br>… and {more} more") } else { String::new() };
                writeln!(
                    out,
                    "| {word} | {} | {} | {} | {}{tail} |",
                    markdown_cell(&entry.key.id),
                    markdown_cell(&entry.key.kind),
                    markdown_cell(entry.source),
                    changes.join("<br>")
                )?;
            }
            let count = self.entries.iter().filter(listed).count();
            if count > self.limit() {
                writeln!(out, "\n… and {} more.", count - self.limit())?;
            }
            writeln!(out)?;
        }
        let groups = self.not_checked_groups();
        if !groups.is_empty() {
            writeln!(out, "| not checked | type | place | source | why |\n|---|---|---|---|---|")?;
            for ((source, place, reason), types) in groups.iter().take(self.limit()) {
                for (kind, count) in types {
                    let cells = [kind, place, source, reason].map(|text| markdown_cell(text));
                    writeln!(out, "| {count} | {} |", cells.join(" | "))?;
                }
            }
            writeln!(out)?;
        }
        writeln!(out, "{}", markdown_cell(&self.result_line()))
    }
}
