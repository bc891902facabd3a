//! `explain` and `history`: one resource.

use std::io::{self, Write};

use driftline_core::compare::Comparison;
use driftline_core::judge::Judgement;
use driftline_core::rule::RuleBook;
use driftline_core::verdict::Status;
use driftline_core::{ResourceKey, StreamId};
use driftline_store::Store;
use driftline_store::history::{Event, What};
use jiff::Timestamp;
use serde::Serialize;

use crate::args::{ExplainArgs, HistoryArgs};
use crate::error::{CommandError, CommandResult};
use crate::output::{BOLD, CYAN, DIM, GREEN, Page, RED, Show, YELLOW, markdown_cell, visible};
use crate::report::{JsonChange, JsonExcused, change_line, json_change, json_excused};
use crate::settings::Settings;
use crate::time::ago;

/// The id that a text stands for: itself, or the only one it is part of.
pub(crate) fn resolve(store: &Store, text: &str) -> CommandResult<String> {
    const MOST: usize = 6;
    let found = store.ids_containing(text, usize::MAX)?;
    if found.iter().any(|id| id == text) {
        return Ok(text.to_owned());
    }
    match found.as_slice() {
        [only] => Ok(only.clone()),
        [] => {
            // Something that is gone from every newest version may still have a history.
            match store.history(text, &RuleBook::default())?.is_empty() {
                false => Ok(text.to_owned()),
                true => Err(CommandError::new(format!("no resource `{text}` has ever been observed"))
                    .hint("resources are named by their id, or a part of it; `driftline drift --all` lists them")),
            }
        }
        many => {
            // The name at the end of an id is what people remember.
            let ends: Vec<&String> = many
                .iter()
                .filter(|id| {
                    id.strip_suffix(text).is_some_and(|start| start.ends_with([':', '/'])) && !id.contains(' ')
                })
                .collect();
            if let [only] = ends.as_slice() {
                return Ok((*only).clone());
            }
            let mut error = CommandError::new(format!("`{text}` is part of {} ids", many.len()));
            for id in many.iter().take(MOST) {
                error = error.hint(format!("did you mean `{id}`?"));
            }
            Err(error)
        }
    }
}

pub(crate) fn explain(settings: &Settings, args: &ExplainArgs) -> CommandResult<()> {
    let store = settings.open_store()?;
    let id = resolve(&store, &args.resource)?;
    let name = settings.baseline(args.baseline.as_deref())?;
    let question = store.question(&name, None)?;
    let drift = store.drift(&question, &settings.rules.book)?;
    let mut sections = Vec::new();
    for pair in &question.pairs {
        let live = store.lookup(&pair.stream, pair.live, &id)?;
        let mut keys: Vec<ResourceKey> = live.into_iter().map(|(key, _)| key).collect();
        let findings = drift.findings.iter().filter(|finding| *finding.stream == pair.stream && finding.key.id == id);
        keys.extend(findings.clone().map(|finding| finding.key.clone()));
        keys.sort();
        keys.dedup();
        let version = store.catalog().version(&pair.stream, pair.live)?;
        let coverage = store.coverage(&version.coverage)?;
        for key in keys {
            let finding = findings.clone().find(|finding| finding.key == key);
            let judgement = finding
                .map_or_else(in_sync, |finding| Judgement { changes: finding.changes(), ..finding.judgement.clone() });
            let outcome = match coverage.outcome(&key.kind, key.place.as_str()) {
                Some(driftline_core::Outcome::Complete) => "complete".to_owned(),
                Some(driftline_core::Outcome::Partial { reason }) => format!("partial: {reason}"),
                None => "not looked at".to_owned(),
            };
            sections.push(Section {
                stream: pair.stream.clone(),
                key,
                judgement,
                since: finding.and_then(|finding| finding.since),
                expected: pair.expected,
                live: pair.live,
                taken_at: version.taken_at,
                extent: outcome,
            });
        }
    }
    if sections.is_empty() {
        return Err(CommandError::new(format!("`{id}` is in no version that `{name}` or now speaks of"))
            .hint(format!("`driftline history '{id}'` tells its life")));
    }
    settings.printer.print(&Explanation { settings, id, baseline: name.to_string(), sections })
}

fn in_sync() -> Judgement {
    Judgement { status: Status::InSync, kind: None, changes: Vec::new(), excused: Vec::new(), reason: None }
}

struct Section {
    stream: StreamId,
    key: ResourceKey,
    judgement: Judgement,
    since: Option<Timestamp>,
    expected: Option<u64>,
    live: u64,
    taken_at: Timestamp,
    extent: String,
}

struct Explanation<'s> {
    settings: &'s Settings,
    id: String,
    baseline: String,
    sections: Vec<Section>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonSection<'a> {
    canonical_id: &'a str,
    resource_type: &'a str,
    place: &'a str,
    source: String,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<driftline_core::DriftKind>,
    baseline_version: Option<u64>,
    version: u64,
    taken_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_seen: Option<Timestamp>,
    extent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    changes: Vec<JsonChange<'a>>,
    excused: Vec<JsonExcused<'a>>,
}

impl Explanation<'_> {
    fn json_section<'a>(&'a self, section: &'a Section) -> JsonSection<'a> {
        JsonSection {
            canonical_id: &section.key.id,
            resource_type: &section.key.kind,
            place: section.key.place.as_str(),
            source: section.stream.to_string(),
            status: section.judgement.status,
            kind: section.judgement.kind,
            baseline_version: section.expected,
            version: section.live,
            taken_at: section.taken_at,
            first_seen: section.since,
            extent: &section.extent,
            reason: section.judgement.reason.as_deref(),
            changes: section.judgement.changes.iter().map(json_change).collect(),
            excused: section.judgement.excused.iter().map(|one| json_excused(one, &self.settings.rules.book)).collect(),
        }
    }
}

impl Show for Explanation<'_> {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        writeln!(page, "{}", page.paint(BOLD, &self.id))?;
        for section in &self.sections {
            let judgement = &section.judgement;
            let style = match judgement.status {
                Status::InSync => GREEN,
                Status::Drifted => RED,
                Status::Unknown => CYAN,
                Status::NotChecked => YELLOW,
            };
            let kind = judgement.kind.map(|kind| format!(" ({})", kind.name())).unwrap_or_default();
            let status = page.paint(style, &format!("{}{kind}", judgement.status));
            let what = format!("{} in {}, seen by {}", section.key.kind, section.key.place, section.stream);
            writeln!(page, "\n{}: {status}", visible(&what))?;
            let expected = section.expected.map_or_else(|| "no version".to_owned(), |number| format!("v{number}"));
            let versions = format!(
                "  baseline `{}` has {expected}; live is v{}, taken {}; its extent was listed: {}",
                self.baseline,
                section.live,
                ago(section.taken_at, self.settings.now),
                section.extent
            );
            writeln!(page, "{}", page.paint(DIM, &versions))?;
            if let Some(since) = section.since {
                writeln!(page, "  differs since {since} ({})", ago(since, self.settings.now))?;
            }
            if let Some(reason) = &judgement.reason {
                writeln!(page, "  why: {}", visible(reason))?;
            }
            for change in &judgement.changes {
                writeln!(page, "  {} {}", page.paint(YELLOW, "~"), visible(&change_line(change)))?;
            }
            for one in &judgement.excused {
                let rule = &self.settings.rules.book.rules()[one.rule];
                writeln!(page, "  {} {}", page.paint(GREEN, "excused"), visible(&change_line(&one.change)))?;
                let why =
                    format!("      rule {} at `{}`, {}: {}", rule.kind.name(), rule.path, rule.origin, rule.reason);
                writeln!(page, "{}", page.paint(DIM, &why))?;
            }
            if judgement.status == Status::InSync && judgement.excused.is_empty() {
                writeln!(page, "  nothing differs")?;
            }
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct All<'a> {
            schema: &'a str,
            baseline: &'a str,
            resources: Vec<JsonSection<'a>>,
        }
        let resources = self.sections.iter().map(|section| self.json_section(section)).collect();
        let all = All { schema: "driftline.explanation/v1", baseline: &self.baseline, resources };
        Ok(serde_json::to_writer_pretty(out, &all)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        for section in &self.sections {
            serde_json::to_writer(&mut *out, &self.json_section(section))?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### {}\n", markdown_cell(&self.id))?;
        for section in &self.sections {
            let kind = markdown_cell(&section.key.kind);
            writeln!(out, "**{}** {kind}, seen by {}\n", section.judgement.status, section.stream)?;
            for change in &section.judgement.changes {
                writeln!(out, "- {}", markdown_cell(&change_line(change)))?;
            }
            for one in &section.judgement.excused {
                let rule = &self.settings.rules.book.rules()[one.rule];
                let line = markdown_cell(&change_line(&one.change));
                writeln!(out, "- excused: {line} ({}, {})", rule.kind.name(), markdown_cell(&rule.reason))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

pub(crate) fn history(settings: &Settings, args: &HistoryArgs) -> CommandResult<()> {
    let store = settings.open_store()?;
    let id = resolve(&store, &args.resource)?;
    let events = store.history(&id, &settings.rules.book)?;
    settings.printer.print(&Life { settings, id, events })
}

struct Life<'s> {
    settings: &'s Settings,
    id: String,
    events: Vec<Event>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonEvent<'a> {
    at: Timestamp,
    source: String,
    version: u64,
    resource_type: &'a str,
    place: &'a str,
    event: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<JsonChange<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    excused: Vec<JsonExcused<'a>>,
}

fn event_name(what: &What) -> &'static str {
    match what {
        What::FirstSeen => "first_seen",
        What::Changed(_) => "changed",
        What::Deleted => "deleted",
        What::Reappeared(_) => "reappeared",
        What::Unseen => "not_looked_at",
        What::SeenAgain => "seen_again",
    }
}

fn comparison(what: &What) -> Option<&Comparison> {
    match what {
        What::Changed(comparison) | What::Reappeared(comparison) => Some(comparison),
        _ => None,
    }
}

impl Life<'_> {
    fn json_event<'a>(&'a self, event: &'a Event) -> JsonEvent<'a> {
        let found = comparison(&event.what);
        JsonEvent {
            at: event.at,
            source: event.stream.to_string(),
            version: event.version,
            resource_type: &event.key.kind,
            place: event.key.place.as_str(),
            event: event_name(&event.what),
            changes: found.map(|found| found.changes.iter().map(json_change).collect()).unwrap_or_default(),
            excused: found
                .map(|found| found.excused.iter().map(|one| json_excused(one, &self.settings.rules.book)).collect())
                .unwrap_or_default(),
        }
    }
}

impl Show for Life<'_> {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        writeln!(page, "{}", page.paint(BOLD, &self.id))?;
        for event in &self.events {
            let style = match event.what {
                What::FirstSeen | What::SeenAgain => GREEN,
                What::Changed(_) | What::Unseen => YELLOW,
                What::Deleted => RED,
                What::Reappeared(_) => CYAN,
            };
            let name = page.paint(style, &event_name(&event.what).replace('_', " "));
            let detail = page.paint(DIM, &format!("{} v{}, {}", event.stream, event.version, event.key.kind));
            writeln!(page, "{}  {name}  {detail}", event.at)?;
            if let Some(found) = comparison(&event.what) {
                for change in &found.changes {
                    writeln!(page, "    {}", visible(&change_line(change)))?;
                }
                for one in &found.excused {
                    let rule = &self.settings.rules.book.rules()[one.rule];
                    let line = format!("    excused ({}): {}", rule.kind.name(), change_line(&one.change));
                    writeln!(page, "{}", page.paint(DIM, &line))?;
                }
            }
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct All<'a> {
            schema: &'a str,
            canonical_id: &'a str,
            events: Vec<JsonEvent<'a>>,
        }
        let events = self.events.iter().map(|event| self.json_event(event)).collect();
        let all = All { schema: "driftline.history/v1", canonical_id: &self.id, events };
        Ok(serde_json::to_writer_pretty(out, &all)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        for event in &self.events {
            serde_json::to_writer(&mut *out, &self.json_event(event))?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### {}\n\n| when | source | what |\n|---|---|---|", markdown_cell(&self.id))?;
        for event in &self.events {
            let mut what = event_name(&event.what).replace('_', " ");
            for change in comparison(&event.what).into_iter().flat_map(|found| &found.changes) {
                what += &format!("<br>{}", markdown_cell(&change_line(change)));
            }
            writeln!(out, "| {} | {} v{} | {what} |", event.at, event.stream, event.version)?;
        }
        Ok(())
    }
}
