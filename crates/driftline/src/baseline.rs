//! `baseline set`, `list`, `show`, `accept`, `remove`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use driftline_core::verdict::Status;
use driftline_core::{BaselineName, Pointer, ResourceKey, StreamId, Value};
use driftline_store::Store;
use driftline_store::baseline::{Accepted, Baseline as Pinned};
use driftline_store::detect::{Finding, Question};
use jiff::Timestamp;
use serde::Serialize;

use crate::args::Baseline;
use crate::drift::{is_named, parse_sources};
use crate::error::{CommandError, CommandResult};
use crate::output::{BOLD, DIM, GREEN, Page, Show, columns, count, markdown_cell, visible};
use crate::report::shown;
use crate::settings::Settings;
use crate::surroundings::text_variable;
use crate::time::{ago, parse_moment};
use crate::upkeep::Plain;

pub(crate) fn run(settings: &Settings, command: Baseline) -> CommandResult<()> {
    match command {
        Baseline::Set { name, source, version, at } => set(settings, name.as_deref(), &source, version, at.as_deref()),
        Baseline::List => {
            let store = settings.open_store()?;
            let baselines: Vec<_> =
                store.catalog().baselines().map(|(name, one)| (name.clone(), one.clone())).collect();
            settings.printer.print(&Listing { settings, baselines, details: false })
        }
        Baseline::Show { name } => {
            let store = settings.open_store()?;
            let name = settings.baseline(name.as_deref())?;
            let baselines = vec![(name.clone(), store.catalog().baseline(&name)?.clone())];
            settings.printer.print(&Listing { settings, baselines, details: true })
        }
        Baseline::Accept { resources, path, reason, baseline, source } => {
            accept(settings, &resources, path.as_deref(), &reason, baseline.as_deref(), source)
        }
        Baseline::Remove { name } => {
            let mut store = settings.open_store()?;
            let name = settings.baseline(Some(&name))?;
            store.remove_baseline(&name, &person(), settings.now)?;
            let json = serde_json::json!({"schema": "driftline.baselineRemoved/v1", "name": name});
            settings.printer.print(&Plain { json, lines: vec![format!("baseline `{name}` removed; versions stay")] })
        }
    }
}

/// Who is doing this, as far as the environment tells.
pub(crate) fn person() -> String {
    ["DRIFTLINE_USER", "USER", "LOGNAME"]
        .iter()
        .find_map(|name| text_variable(name))
        .unwrap_or_else(|| "unknown".into())
}

fn set(
    settings: &Settings,
    name: Option<&str>,
    sources: &[String],
    version: Option<u64>,
    at: Option<&str>,
) -> CommandResult<()> {
    let name = settings.baseline(name)?;
    let mut store = settings.open_store()?;
    let named = parse_sources(sources)?;
    let at = at.map(|text| parse_moment(text, settings.now)).transpose()?;
    let chosen: Vec<StreamId> =
        store.catalog().streams().map(|(id, _)| id.clone()).filter(|id| is_named(id, &named)).collect();
    for one in &named {
        if !chosen.iter().any(|id| is_named(id, std::slice::from_ref(one))) {
            return Err(store.catalog().no_state(one).into());
        }
    }
    if chosen.is_empty() {
        return Err(CommandError::new("there is nothing to pin: no source has a version yet")
            .hint("`driftline observe file FILE` takes the first observation"));
    }
    if version.is_some() && at.is_some() {
        return Err(CommandError::new("`--version` and `--at` both say which version; give one"));
    }
    if version.is_some() && chosen.len() > 1 {
        return Err(
            CommandError::new("`--version` needs one source, and there are several").hint("name it with --source")
        );
    }
    let mut pins = BTreeMap::new();
    for id in chosen {
        let stream = store.catalog().stream(&id)?;
        let found = match (version, at) {
            (Some(number), _) => Some(store.catalog().version(&id, number)?),
            (None, Some(time)) => stream.at(time),
            (None, None) => stream.head(),
        };
        let Some(found) = found else {
            settings.printer.warn(&format!("`{id}` has no version from that time and is not pinned"));
            continue;
        };
        if found.unseen > 0 || found.partial_extents > 0 {
            settings.printer.warn(&format!(
                "version {} of `{id}` did not see everything ({} extents partial, {} resources not looked at): \
                 what it did not see will be not_checked",
                found.number, found.partial_extents, found.unseen
            ));
        }
        pins.insert(id, found.number);
    }
    if pins.is_empty() {
        return Err(CommandError::new("no source has a version from that time").hint("`driftline log` lists versions"));
    }
    store.set_baseline(&name, &pins, &person(), settings.now)?;
    let baselines = vec![(name.clone(), store.catalog().baseline(&name)?.clone())];
    settings.printer.print(&Listing { settings, baselines, details: true })
}

fn accept(
    settings: &Settings,
    resources: &[String],
    path: Option<&str>,
    reason: &str,
    baseline: Option<&str>,
    source: Option<String>,
) -> CommandResult<()> {
    if reason.trim().is_empty() {
        return Err(
            CommandError::new("an empty reason is no reason").hint("say why in --reason: the next person needs it")
        );
    }
    let name = settings.baseline(baseline)?;
    let path: Option<Pointer> = path
        .map(|text| {
            text.parse().map_err(|error: driftline_core::pointer::PointerError| CommandError::new(error.to_string()))
        })
        .transpose()?;
    let named = parse_sources(&source.into_iter().collect::<Vec<_>>())?;
    let mut store = settings.open_store()?;
    let mut question = store.question(&name, None)?;
    crate::drift::restrict(&store, &mut question, &named)?;
    let drift = store.drift(&question, &settings.rules.book)?;
    let mut accepted = Vec::new();
    for id in resources {
        let findings: Vec<&Finding> = drift.findings.iter().filter(|finding| finding.key.id == *id).collect();
        let (by, at) = (person(), settings.now);
        let found = accepting(&store, &question, &findings, path.as_ref(), &Acceptance { reason, by: &by, at })?;
        if found.is_empty() {
            let place = path.as_ref().map(|path| format!(" at `{path}`")).unwrap_or_default();
            let similar = similar_finding(&drift, id);
            let error = CommandError::new(format!("nothing to accept: `{id}` has no drift{place} against `{name}`"));
            return Err(match similar {
                Some(other) => error.hint(format!("did you mean `{other}`?")),
                None => error.hint("`driftline drift` lists what there is; resources are named by their whole id"),
            });
        }
        accepted.extend(found);
    }
    store.accept(&name, &accepted, settings.now)?;
    let mut lines = vec![format!("accepted into `{name}`:")];
    lines.extend(accepted.iter().map(describe));
    let json = serde_json::json!({"schema": "driftline.accepted/v1", "baseline": name, "accepted": accepted});
    settings.printer.print(&Plain { json, lines })
}

/// Why something is accepted, by whom and when.
#[derive(Clone, Copy)]
pub(crate) struct Acceptance<'a> {
    pub reason: &'a str,
    pub by: &'a str,
    pub at: Timestamp,
}

/// From how many resources on a version is read through rather than looked up in.
const MANY: usize = 16;

/// What accepting findings comes to, each as a whole or at one place; what has nothing to accept is left out.
pub(crate) fn accepting(
    store: &Store,
    question: &Question,
    findings: &[&Finding],
    path: Option<&Pointer>,
    acceptance: &Acceptance<'_>,
) -> CommandResult<Vec<Accepted>> {
    let mut accepted = Vec::new();
    for pair in &question.pairs {
        let can_be = |finding: &&&Finding| {
            *finding.stream == pair.stream && matches!(finding.judgement.status, Status::Drifted | Status::Unknown)
        };
        let findings: Vec<&Finding> = findings.iter().filter(can_be).copied().collect();
        let mut pinned = values(store, &pair.stream, pair.expected, &findings)?;
        let mut live = values(store, &pair.stream, Some(pair.live), &findings)?;
        for finding in findings {
            let live = live.remove(&finding.key);
            let value = match path {
                None => live,
                Some(path) => {
                    let touches =
                        |change: &driftline_core::Change| change.path.is_within(path) || path.is_within(&change.path);
                    let changes = finding.changes();
                    if !changes.iter().any(touches) {
                        continue;
                    }
                    // A change names its place as the baseline has it; in a list without order, live has it elsewhere.
                    match changes.into_iter().find(|change| change.path == *path) {
                        Some(change) => change.actual,
                        None => live.as_ref().and_then(|live| path.find(live)).cloned(),
                    }
                }
            };
            accepted.push(Accepted {
                stream: (*finding.stream).clone(),
                key: finding.key.clone(),
                path: path.cloned(),
                value,
                pinned: pinned.remove(&finding.key),
                reason: acceptance.reason.to_owned(),
                by: acceptance.by.to_owned(),
                at: acceptance.at,
            });
        }
    }
    Ok(accepted)
}

/// What a version has of the resources that findings are about.
pub(crate) fn values(
    store: &Store,
    stream: &StreamId,
    version: Option<u64>,
    findings: &[&Finding],
) -> CommandResult<BTreeMap<ResourceKey, Value>> {
    let (Some(version), false) = (version, findings.is_empty()) else { return Ok(BTreeMap::new()) };
    let wanted: BTreeSet<&ResourceKey> = findings.iter().map(|finding| &finding.key).collect();
    if wanted.len() > MANY {
        return Ok(store.resources(stream, version, |key| wanted.contains(key))?);
    }
    let mut found = BTreeMap::new();
    for key in wanted {
        found.extend(store.lookup(stream, version, &key.id)?.into_iter().filter(|(one, _)| one == key));
    }
    Ok(found)
}

fn similar_finding(drift: &driftline_store::Drift, part: &str) -> Option<String> {
    drift.findings.iter().map(|finding| &finding.key.id).find(|id| id.contains(part)).cloned()
}

fn describe(one: &Accepted) -> String {
    let place = one.path.as_ref().map_or_else(|| "whole resource".to_owned(), ToString::to_string);
    format!("  {} ({}, {}): {}", one.key.id, one.stream, place, shown(one.value.as_ref()))
}

struct Listing<'s> {
    settings: &'s Settings,
    baselines: Vec<(BaselineName, Pinned)>,
    details: bool,
}

#[derive(Serialize)]
struct JsonBaseline<'a> {
    name: &'a BaselineName,
    #[serde(flatten)]
    baseline: &'a Pinned,
}

impl Show for Listing<'_> {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        if self.baselines.is_empty() {
            return writeln!(page, "no baselines yet: `driftline baseline set` pins the newest versions");
        }
        for (name, one) in &self.baselines {
            let title = page.paint(BOLD, name.as_str());
            let about = format!("set {} by {}", ago(one.set_at, self.settings.now), one.set_by);
            let counts = format!("{} pinned, {} accepted", count(one.pins.len(), "source"), one.accepted.len());
            writeln!(page, "{title}  {counts}  {}", page.paint(DIM, &about))?;
            if !self.details {
                continue;
            }
            let rows: Vec<Vec<String>> =
                one.pins.iter().map(|(stream, version)| vec![stream.to_string(), format!("v{version}")]).collect();
            for line in columns(&rows, 2) {
                writeln!(page, "{}", page.paint(GREEN, &line))?;
            }
            for accepted in &one.accepted {
                let why = format!("    {} ({}, {})", accepted.reason, accepted.by, ago(accepted.at, self.settings.now));
                writeln!(page, "{}\n{}", visible(&describe(accepted)), page.paint(DIM, &why))?;
            }
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct All<'a> {
            schema: &'a str,
            baselines: Vec<JsonBaseline<'a>>,
        }
        let baselines = self.baselines.iter().map(|(name, baseline)| JsonBaseline { name, baseline }).collect();
        Ok(serde_json::to_writer_pretty(out, &All { schema: "driftline.baselines/v1", baselines })?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        for (name, baseline) in &self.baselines {
            serde_json::to_writer(&mut *out, &JsonBaseline { name, baseline })?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        for (name, one) in &self.baselines {
            writeln!(out, "### Baseline {}\n\nSet {} by {}.\n", name, one.set_at, markdown_cell(&one.set_by))?;
            writeln!(out, "| source | version |\n|---|---|")?;
            for (stream, version) in &one.pins {
                writeln!(out, "| {} | {version} |", markdown_cell(&stream.to_string()))?;
            }
            if !one.accepted.is_empty() {
                writeln!(out, "\n| accepted | reason | by | at |\n|---|---|---|---|")?;
            }
            for accepted in &one.accepted {
                let cells = [describe(accepted).trim().to_owned(), accepted.reason.clone(), accepted.by.clone()];
                writeln!(out, "| {} | {} |", cells.map(|cell| markdown_cell(&cell)).join(" | "), accepted.at)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}
