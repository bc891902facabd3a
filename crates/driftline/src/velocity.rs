//! `velocity`: how much drifted, by type, now and over time.

use std::collections::BTreeMap;
use std::io::{self, Write};

use driftline_core::velocity::{Event, Rate, WINDOWS, Window, windows};
use driftline_store::Store;
use driftline_store::detect::Tally;
use driftline_store::segment::Op;
use jiff::Timestamp;
use serde::Serialize;

use crate::args::VelocityArgs;
use crate::drift::{is_named, parse_sources, restrict};
use crate::error::CommandResult;
use crate::output::{BOLD, DIM, Page, Show, columns, markdown_cell};
use crate::settings::Settings;
use crate::time::parse_moment;

pub(crate) fn run(settings: &Settings, args: &VelocityArgs) -> CommandResult<()> {
    let store = Store::open(&settings.store)?;
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
    let longest = WINDOWS.last().expect("there are three windows").1;
    let since = now.checked_sub(longest).unwrap_or(Timestamp::MIN);
    let mut events = Vec::new();
    let mut totals: BTreeMap<String, u64> = BTreeMap::new();
    for (stream, versions) in store.catalog().streams().filter(|(stream, _)| is_named(stream, &named)) {
        for happened in store.happened(stream, since, now, &settings.rules.book)? {
            // Something new is not drift of what was there; what rules excuse did not happen either.
            let counts = match happened.op {
                Op::Remove => happened.comparison.excused.is_empty(),
                Op::Change => !happened.comparison.changes.is_empty(),
                _ => false,
            };
            if counts {
                let resource = format!("{stream} {} {}", happened.key.place, happened.key.id);
                events.push(Event { kind: happened.key.kind, resource, at: happened.at });
            }
        }
        let live = if past { versions.at(now) } else { versions.head() };
        for (kind, count) in live.map(|live| versions.types(live.number)).unwrap_or_default() {
            *totals.entry(kind).or_default() += count.rows;
        }
    }
    Ok(Velocity { now, baseline: name.to_string(), by_type: drift.by_type, windows: windows(now, &events, &totals) })
}

pub(crate) struct Velocity {
    now: Timestamp,
    baseline: String,
    by_type: BTreeMap<String, Tally>,
    windows: BTreeMap<&'static str, BTreeMap<String, Window>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonRate {
    #[serde(flatten)]
    rate: Rate,
    unknown_count: u64,
    not_checked_count: u64,
}

fn json_rate(tally: &Tally) -> JsonRate {
    JsonRate {
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
            rows.push(vec![
                kind.clone(),
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
        let by_resource_type = self.by_type.iter().map(|(kind, tally)| (kind, json_rate(tally))).collect();
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
            serde_json::to_writer(&mut *out, &Line { resource_type: kind, rate: json_rate(tally) })?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        for (at, row) in self.rows().iter().enumerate() {
            writeln!(out, "| {} |", row.iter().map(|cell| markdown_cell(cell)).collect::<Vec<_>>().join(" | "))?;
            if at == 0 {
                writeln!(out, "|{}", "---|".repeat(row.len()))?;
            }
        }
        Ok(())
    }
}
