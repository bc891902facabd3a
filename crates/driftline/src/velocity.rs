//! `velocity`: how much drifted, by type, now and over time.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use driftline_core::velocity::{Event, Noise, Pass, Rate, WINDOWS, Window, noise, windows};
use driftline_core::{BaselineName, ContentId, ResourceKey, StreamId};
use driftline_store::detect::Tally;
use driftline_store::history::Happened;
use driftline_store::segment::Op;
use driftline_store::{Store, Stream};
use jiff::Timestamp;
use serde::Serialize;

use crate::args::VelocityArgs;
use crate::drift::{is_named, parse_sources, restrict};
use crate::error::CommandResult;
use crate::output::{BOLD, DIM, Page, Show, YELLOW, columns, markdown_table, visible};
use crate::settings::Settings;
use crate::time::parse_moment;

pub(crate) fn run(settings: &Settings, args: &VelocityArgs) -> CommandResult<()> {
    let store = settings.open_store()?;
    let now = args.at.as_ref().map_or(Ok(settings.now), |text| parse_moment(text, settings.now))?;
    let velocity = compute(settings, &store, args.baseline.as_deref(), &args.source, now, args.at.is_some())?;
    settings.printer.print(&velocity)
}

pub(crate) fn compute(
    settings: &Settings,
    store: &Store,
    baseline: Option<&str>,
    sources: &[String],
    now: Timestamp,
    past: bool,
) -> CommandResult<Velocity> {
    let named = parse_sources(sources)?;
    let name = settings.baseline(baseline)?;
    let mut question = store.question(&name, past.then_some(now))?;
    restrict(store, &mut question, &named)?;
    let drift = store.drift(&question, &settings.rules.book)?;
    measure(settings, store, &name, drift.by_type, &named, now, past)
}

/// The same, of what was judged already.
pub(crate) fn measure(
    settings: &Settings,
    store: &Store,
    baseline: &BaselineName,
    by_type: BTreeMap<String, Tally>,
    named: &[StreamId],
    now: Timestamp,
    past: bool,
) -> CommandResult<Velocity> {
    let longest = WINDOWS.last().expect("there are three windows").1;
    let since = now.checked_sub(longest).unwrap_or(Timestamp::MIN);
    let mut events = Vec::new();
    let mut totals: BTreeMap<String, u64> = BTreeMap::new();
    let mut noisy: BTreeMap<String, Noise> = BTreeMap::new();
    for (stream, versions) in store.catalog().streams().filter(|(stream, _)| is_named(stream, named)) {
        let all = store.happened(stream, since, now, &settings.rules.book)?;
        for (kind, passes) in passes(versions, &all, since, now) {
            if let Some(found) = noise(&passes) {
                let known = noisy.entry(kind).or_insert(found);
                if found.usual_rate > known.usual_rate {
                    *known = found;
                }
            }
        }
        for happened in all {
            // Something new is not drift of what was there.
            if happened.op != Op::Add && counts(&happened) {
                let resource = format!("{stream} {} {}", happened.key.place, happened.key.id);
                events.push(Event { kind: happened.key.kind, resource, at: happened.at });
            }
        }
        let live = if past { versions.at(now) } else { versions.head() };
        for (kind, count) in live.map(|live| versions.types(live.number)).unwrap_or_default() {
            *totals.entry(kind).or_default() += count.rows;
        }
    }
    Ok(Velocity { now, baseline: baseline.to_string(), by_type, noisy, windows: windows(now, &events, &totals) })
}

/// What rules excuse did not happen.
fn counts(happened: &Happened) -> bool {
    match happened.op {
        Op::Change => !happened.comparison.changes.is_empty(),
        // A finding that is gone is good news.
        Op::Remove => happened.comparison.excused.is_empty(),
        _ => true,
    }
}

/// What each pass in a time did to each type.
fn passes(versions: &Stream, happened: &[Happened], since: Timestamp, until: Timestamp) -> BTreeMap<String, Vec<Pass>> {
    let mut been: BTreeMap<&ResourceKey, BTreeSet<Option<ContentId>>> = BTreeMap::new();
    let mut by_version: BTreeMap<u64, BTreeMap<&str, Pass>> = BTreeMap::new();
    for one in happened.iter().filter(|one| counts(one)) {
        let been = been.entry(&one.key).or_default();
        been.insert(one.before);
        let pass = by_version.entry(one.version).or_default().entry(&one.key.kind).or_default();
        // Something that is there for the first time is new; it did not change.
        if one.op == Op::Add && !been.contains(&one.after) && been.len() == 1 {
            continue;
        }
        pass.changed += 1;
        pass.returned += u64::from(been.contains(&one.after));
    }
    let mut passes: BTreeMap<String, Vec<Pass>> = BTreeMap::new();
    // The first version of all is where history begins, and no pass from something to something.
    let inside = versions.versions().skip(1).filter(|version| version.taken_at > since && version.taken_at <= until);
    for version in inside {
        let of = by_version.remove(&version.number).unwrap_or_default();
        for (kind, count) in versions.types(version.number) {
            let pass = of.get(kind.as_str()).copied().unwrap_or_default();
            passes.entry(kind).or_default().push(Pass { total: count.rows, ..pass });
        }
    }
    passes
}

pub(crate) struct Velocity {
    now: Timestamp,
    baseline: String,
    pub by_type: BTreeMap<String, Tally>,
    pub noisy: BTreeMap<String, Noise>,
    pub windows: BTreeMap<&'static str, BTreeMap<String, Window>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonRate {
    #[serde(flatten)]
    rate: Rate,
    unknown_count: u64,
    not_checked_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    noisy: Option<Noise>,
}

fn json_rate(tally: &Tally, noisy: Option<&Noise>) -> JsonRate {
    JsonRate {
        noisy: noisy.copied(),
        rate: Rate::new(tally.drifted, tally.checked()),
        unknown_count: tally.unknown,
        not_checked_count: tally.not_checked,
    }
}

impl Velocity {
    /// Types with something to tell, most drifted first.
    fn rows(&self) -> Vec<Vec<String>> {
        let mut kinds: Vec<(&String, &Tally)> = self.by_type.iter().collect();
        kinds.sort_by(|(a, x), (b, y)| (y.drifted, y.unknown, a).cmp(&(x.drifted, x.unknown, b)).then(a.cmp(b)));
        let header = ["type", "drifted", "of", "rate", "24 h", "7 d", "30 d", "unknown", "not checked"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for (kind, tally) in kinds {
            let rate = Rate::new(tally.drifted, tally.checked());
            let window = |name: &str| {
                let found = self.windows.get(name).and_then(|types| types.get(kind));
                found.map_or_else(|| "0".to_owned(), |window| window.rate.drifted_count.to_string())
            };
            let mark = if self.noisy.contains_key(kind) { " (noisy)" } else { "" };
            rows.push(vec![
                format!("{kind}{mark}"),
                rate.drifted_count.to_string(),
                rate.total_count.to_string(),
                percent(rate.drift_rate),
                window("last24h"),
                window("last7d"),
                window("last30d"),
                tally.unknown.to_string(),
                tally.not_checked.to_string(),
            ]);
        }
        rows
    }
}

/// Why a type is noisy.
pub(crate) fn noise_words(noise: &Noise) -> String {
    format!(
        "much of it changed in {} of {} passes, {} in the usual one; {} of the changes only brought back what was \
         there before",
        noise.noisy_passes,
        noise.passes,
        percent(noise.usual_rate),
        percent(noise.returned_rate)
    )
}

fn percent(rate: f64) -> String {
    if rate > 0.0 && rate < 0.001 { "<0.1 %".into() } else { format!("{:.1} %", rate * 100.0) }
}

impl Show for Velocity {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        let about = format!("against `{}`; the windows count resources that changed in stored history", self.baseline);
        writeln!(page, "{}  {}\n", page.paint(BOLD, "Drift velocity"), page.paint(DIM, &about))?;
        for line in columns(&self.rows(), 0) {
            writeln!(page, "{line}")?;
        }
        if !self.noisy.is_empty() {
            let about = "their rate says more about how they are observed than about the infrastructure";
            writeln!(page, "\n{}  {}", page.paint(YELLOW, "NOISY"), page.paint(DIM, about))?;
        }
        for (kind, noise) in &self.noisy {
            writeln!(page, "  {}", visible(&format!("{kind}: {}", noise_words(noise))))?;
        }
        if !self.noisy.is_empty() {
            let hint = "`driftline doctor --determinism FILE` tells whether a normalizer does it; a `volatile` rule \
                        names what changes by itself";
            writeln!(page, "  {}", page.paint(DIM, hint))?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct All<'a> {
            schema: &'a str,
            computed_at: Timestamp,
            baseline: &'a str,
            by_resource_type: BTreeMap<&'a String, JsonRate>,
            windows: &'a BTreeMap<&'static str, BTreeMap<String, Window>>,
        }
        let by_resource_type =
            self.by_type.iter().map(|(kind, tally)| (kind, json_rate(tally, self.noisy.get(kind)))).collect();
        let all = All {
            schema: "driftline.velocity/v1",
            computed_at: self.now,
            baseline: &self.baseline,
            by_resource_type,
            windows: &self.windows,
        };
        Ok(serde_json::to_writer_pretty(out, &all)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Line<'a> {
            resource_type: &'a str,
            #[serde(flatten)]
            rate: JsonRate,
        }
        for (kind, tally) in &self.by_type {
            serde_json::to_writer(
                &mut *out,
                &Line { resource_type: kind, rate: json_rate(tally, self.noisy.get(kind)) },
            )?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        markdown_table(&self.rows(), out)
    }
}
