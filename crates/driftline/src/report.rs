//! The drift report: what is in it, and as a table. The other formats have files of their own.

mod github;
mod html;
mod json;
mod junit;
pub(crate) mod markdown;
mod sarif;
pub(crate) mod telling;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use driftline_core::compare::{Change, Excused};
use driftline_core::rule::RuleBook;
use driftline_core::seal::is_sealed;
use driftline_core::verdict::{DriftKind, Status};
use driftline_core::{ResourceKey, Severity, Value, difference};
use driftline_store::detect::{Drift, SourceReport, Tally};
use jiff::{SignedDuration, Timestamp};

use crate::args::FailOn;
use crate::output::{BOLD, CYAN, DIM, Format, GREEN, Page, RED, Show, YELLOW, count, short, visible};
use crate::severity::{Counts, Rating};
use crate::time::ago;

pub(crate) use json::{JsonChange, JsonExcused, json_change, json_excused};

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
    /// How much it matters; only of what is drifted or unknown.
    pub rating: Option<Rating<'a>>,
}

impl Entry<'_> {
    pub(crate) fn severity(&self) -> Option<Severity> {
        self.rating.as_ref().map(|rating| rating.worst.level)
    }
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
    pub severities: Counts,
    pub by_type: BTreeMap<String, Tally>,
    /// What is in sync only by rules and not listed; reports tell of it.
    pub only_excused: Vec<Entry<'a>>,
    /// The same question one version earlier, where there is one.
    pub previous: Option<&'a Drift>,
    pub fail_on: FailOn,
    pub stale_after: SignedDuration,
}

/// A value for people: short, and never a secret's digest.
pub(crate) fn shown(value: Option<&Value>) -> String {
    match value {
        None => "absent".into(),
        Some(value) if is_sealed(value) => "(sealed)".into(),
        Some(value) => short(&without_digests(value).to_json(), 120),
    }
}

/// A value in which every secret, however deep, only says that it is one.
pub(crate) fn without_digests(value: &Value) -> Value {
    match value {
        value if is_sealed(value) => Value::String("(sealed)".into()),
        Value::Array(items) => Value::Array(items.iter().map(without_digests).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, member)| (name.clone(), without_digests(member))).collect())
        }
        plain => plain.clone(),
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
        let levels = Counts::of(self.of(status).filter_map(Entry::severity)).words();
        let explain = if levels.is_empty() { explain.to_owned() } else { format!("{explain}: {levels}") };
        writeln!(page, "{title}  {}", page.paint(DIM, &explain))?;
        // The worst first: whoever reads only the top has read what matters.
        let mut listed: Vec<&Entry<'_>> = self.of(status).collect();
        listed.sort_by_key(|entry| std::cmp::Reverse(entry.severity()));
        for entry in listed.into_iter().take(self.limit()) {
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
            if let Some(level) = entry.severity() {
                about.insert(0, level.name().to_owned());
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
        json::write(self, out)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        json::write_lines(self, out)
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(markdown::page(&self.telling(), markdown::COMMENT).as_bytes())
    }

    fn draw(&self, format: Format) -> Option<String> {
        telling::draw(&self.telling(), format)
    }

    fn summary(&self, room: usize) -> Option<String> {
        Some(markdown::page(&self.telling(), room))
    }
}
