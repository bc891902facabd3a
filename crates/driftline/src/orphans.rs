//! `orphans`: DNS records whose target no source has, judged by what is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use driftline_core::key::NOWHERE;
use driftline_core::{ResourceKey, Value};
use driftline_sources::aws::{canonical_kind, is_global, local_id};
use driftline_sources::dns::{RECORD, host};
use driftline_sources::place::account_and_region;
use driftline_sources::target::{self, Known, Target};
use serde::Serialize;

use crate::args::OrphansArgs;
use crate::error::CommandResult;
use crate::exit;
use crate::output::{BOLD, CYAN, DIM, Page, RED, Show, YELLOW, count, markdown_cell, visible};
use crate::settings::Settings;
use crate::survey::{self, Surveyed, is_claim, survey};
use crate::time::parse_moment;

/// What is known of a record's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// Everything that could be it was listed, and it is not there.
    Orphan,
    /// Nothing that was observed is known by it, but some that could be it were observed without their addresses.
    Possible,
    /// What could be it was not listed, or not wholly.
    NotChecked,
    Found,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pointing {
    record: String,
    name: String,
    #[serde(rename = "type")]
    kind: String,
    source: String,
    target: String,
    points_at: &'static str,
    status: Verdict,
    reason: String,
}

pub(crate) fn run(settings: &Settings, args: &OrphansArgs) -> CommandResult<u8> {
    let store = settings.open_store()?;
    let at = args.at.as_ref().map(|text| parse_moment(text, settings.now)).transpose()?;
    let surveyed = survey(&store, &[], at)?;
    let orphans = Orphans { found: judge(&surveyed), all: args.all, limit: args.limit };
    settings.printer.print(&orphans)?;
    let dangling = orphans.found.iter().any(|one| one.status == Verdict::Orphan);
    Ok(if dangling && !args.exit_zero { exit::DRIFT } else { exit::IN_SYNC })
}

/// What could be the target of something: everything of its type, by what it is known by.
#[derive(Default)]
struct Candidates<'s> {
    /// By a name in small letters: who is known by it.
    known: BTreeMap<String, (&'s ResourceKey, &'s Surveyed)>,
    /// Where there are some that are not known by any address.
    without_address: BTreeMap<&'s str, usize>,
    kinds: BTreeSet<&'s str>,
}

fn judge(surveyed: &[Surveyed]) -> Vec<Pointing> {
    let mut candidates: BTreeMap<&str, Candidates<'_>> = BTreeMap::new();
    for one in surveyed {
        for (key, value) in &one.resources {
            let kind = canonical_kind(&key.kind);
            if kind == RECORD {
                continue;
            }
            let of = candidates.entry(kind).or_default();
            of.kinds.insert(kind);
            let mut texts = Vec::new();
            leaves(value, &mut texts);
            let mut has_address = false;
            for text in texts {
                has_address |= is_address(text);
                of.known.entry(text.to_lowercase()).or_insert((key, one));
            }
            for id in names(kind, &key.id) {
                of.known.entry(id.to_lowercase()).or_insert((key, one));
            }
            if !has_address {
                *of.without_address.entry(key.place.as_str()).or_default() += 1;
            }
        }
    }
    let mut found = Vec::new();
    for one in surveyed {
        let records = one.resources.iter().filter(|(key, value)| key.kind == RECORD && !is_claim(value));
        for (key, value) in records {
            for target in targets(value) {
                let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
                let Some(known) = target::classify(&target, name) else { continue };
                let account = account_and_region(key.place.as_str()).0;
                let (status, reason) = judge_one(&known, &target, account, &candidates, surveyed);
                found.push(Pointing {
                    record: key.id.clone(),
                    name: host(name),
                    kind: value.get("type").and_then(Value::as_str).unwrap_or_default().to_owned(),
                    source: one.stream.to_string(),
                    target: host(&target),
                    points_at: known.what,
                    status,
                    reason,
                });
            }
        }
    }
    found.sort_by(|a, b| (a.status, &a.record, &a.target, &a.source).cmp(&(b.status, &b.record, &b.target, &b.source)));
    found
}

/// The names by which something with this id may be spoken of: all of it, and for a load balancer the middle.
fn names<'k>(kind: &str, id: &'k str) -> Vec<&'k str> {
    let local = local_id(kind, id);
    let mut names = vec![local];
    if kind.contains("LoadBalanc") {
        names.extend(local.split('/').nth(1));
    }
    names
}

fn leaves<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => found.push(text.strip_suffix('.').unwrap_or(text)),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(members) => members.values().for_each(|member| leaves(member, found)),
        _ => {}
    }
}

fn is_address(text: &str) -> bool {
    let is_host = text.ends_with(".amazonaws.com") || text.ends_with(".cloudfront.net") || text.ends_with(".internal");
    is_host || text.parse::<std::net::IpAddr>().is_ok()
}

/// Everything that a record points at.
fn targets(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut of = |value: &Value| {
        let alias = value.get("aliasTarget").and_then(|alias| alias.get("dnsName")).and_then(Value::as_str);
        found.extend(alias.map(ToOwned::to_owned));
        let values = value.get("values").and_then(Value::as_array).unwrap_or_default();
        found.extend(values.iter().filter_map(Value::as_str).map(ToOwned::to_owned));
    };
    if !matches!(value.get("type").and_then(Value::as_str), Some("A" | "AAAA" | "CNAME")) {
        return found;
    }
    of(value);
    if let Some(sets) = value.get("sets").and_then(Value::as_object) {
        sets.values().for_each(of);
    }
    found.sort();
    found.dedup();
    found
}

fn judge_one(
    wanted: &Target,
    target: &str,
    account: Option<&str>,
    candidates: &BTreeMap<&str, Candidates<'_>>,
    surveyed: &[Surveyed],
) -> (Verdict, String) {
    let target = host(target);
    let mut by: Vec<String> = match &wanted.known {
        Known::Id(id) => vec![id.clone(), target.clone()],
        Known::Address(address) => vec![address.clone()],
        Known::Nothing => vec![target.clone()],
    };
    by.extend(target::address_in(&target));
    for kind in wanted.kinds {
        let Some(of) = candidates.get(kind) else { continue };
        if let Some((key, one)) = by.iter().find_map(|name| of.known.get(&name.to_lowercase())) {
            return (Verdict::Found, format!("{} ({})", key.id, one.stream));
        }
    }
    // Everything that could be it must have been listed, where it would be.
    let mut places = BTreeSet::new();
    for kind in wanted.kinds {
        for place in places_of(kind, wanted.region.as_deref(), account, surveyed) {
            let observers = surveyed.iter().filter(|one| !one.claims);
            if let Some(why) = survey::unseen(observers, kind, &place, survey::sees_everything) {
                return (Verdict::NotChecked, why);
            }
            places.insert(place);
        }
    }
    if places.is_empty() {
        return (Verdict::NotChecked, format!("no source looked at {}", wanted.kinds[0]));
    }
    if matches!(wanted.known, Known::Address(_)) {
        let without: usize = wanted
            .kinds
            .iter()
            .filter_map(|kind| candidates.get(kind))
            .flat_map(|of| places.iter().filter_map(|place| of.without_address.get(place.as_str())))
            .sum();
        if without > 0 {
            let reason =
                format!("nothing observed has this address, but {without} that could were observed without one");
            return (Verdict::Possible, reason);
        }
    }
    let places: Vec<&str> = places.iter().map(String::as_str).collect();
    (Verdict::Orphan, format!("{} of this name is in none of {}", wanted.what, places.join(", ")))
}

/// Where something of a type would be: in the account of the zone, or in any that is observed if that is not known.
fn places_of(kind: &str, region: Option<&str>, account: Option<&str>, surveyed: &[Surveyed]) -> BTreeSet<String> {
    let seen = surveyed.iter().flat_map(|one| one.coverage.iter().map(|(_, place, _)| place));
    let mut accounts: BTreeSet<&str> = BTreeSet::new();
    let mut regions: BTreeSet<&str> = BTreeSet::new();
    for place in seen {
        let (account, region) = account_and_region(place);
        accounts.extend(account);
        regions.extend(region.filter(|region| *region != NOWHERE));
    }
    let accounts: Vec<&str> = account.map_or_else(|| accounts.into_iter().collect(), |account| vec![account]);
    let regions: Vec<&str> = match region {
        _ if is_global(kind) => vec!["global"],
        Some(region) => vec![region],
        None => regions.into_iter().collect(),
    };
    let at = |account: &str| regions.iter().map(|region| format!("aws/{account}/{region}")).collect::<Vec<_>>();
    accounts.into_iter().flat_map(at).collect()
}

struct Orphans {
    found: Vec<Pointing>,
    all: bool,
    limit: usize,
}

impl Orphans {
    fn of(&self, verdict: Verdict) -> impl Iterator<Item = &Pointing> {
        self.found.iter().filter(move |one| one.status == verdict)
    }

    fn counts(&self) -> [usize; 4] {
        [Verdict::Orphan, Verdict::Possible, Verdict::NotChecked, Verdict::Found]
            .map(|verdict| self.of(verdict).count())
    }

    fn result(&self) -> String {
        let [orphans, possible, not_checked, found] = self.counts();
        format!(
            "result: {}, {possible} possible, {not_checked} not checked, {found} found (of {} that point into the cloud)",
            count(orphans, "orphan"),
            count(self.found.len(), "record target")
        )
    }

    fn limit(&self) -> usize {
        if self.limit == 0 { usize::MAX } else { self.limit }
    }
}

impl Pointing {
    fn line(&self) -> String {
        format!("{} {} -> {}", self.name, self.kind, self.target)
    }
}

impl Orphans {
    /// By reason: a source that did not look is the reason for many.
    fn not_checked(&self, page: &mut Page<'_>) -> io::Result<()> {
        let mut reasons: BTreeMap<(&str, &str), Vec<&Pointing>> = BTreeMap::new();
        for one in self.of(Verdict::NotChecked) {
            reasons.entry((one.points_at, &one.reason)).or_default().push(one);
        }
        if reasons.is_empty() {
            return Ok(());
        }
        let title = page.paint(YELLOW, &format!("NOT CHECKED {}", self.of(Verdict::NotChecked).count()));
        writeln!(page, "{title}  {}", page.paint(DIM, "what it points at was not listed, or not wholly"))?;
        for ((what, reason), of) in reasons {
            let shown = if self.all { of.len() } else { 2 };
            writeln!(
                page,
                "  {} {}",
                page.paint(YELLOW, &format!("? {} at {what}", of.len())),
                page.paint(DIM, reason)
            )?;
            for one in of.iter().take(shown) {
                writeln!(page, "      {}", visible(&one.line()))?;
            }
            if of.len() > shown {
                writeln!(page, "      … and {} more (--all lists them)", of.len() - shown)?;
            }
        }
        writeln!(page)
    }
}

impl Show for Orphans {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        writeln!(page, "{}\n", page.paint(BOLD, "DNS records that point at nothing"))?;
        for (verdict, title, about, style) in [
            (Verdict::Orphan, "ORPHANS", "everything that could be it was listed, and it is not there", RED),
            (
                Verdict::Possible,
                "POSSIBLE",
                "nothing observed has the address, but not every address was observed",
                YELLOW,
            ),
            (Verdict::Found, "FOUND", "", CYAN),
        ] {
            let of: Vec<&Pointing> = self.of(verdict).collect();
            if of.is_empty() || (verdict == Verdict::Found && !self.all) {
                continue;
            }
            writeln!(page, "{}  {}", page.paint(style, &format!("{title} {}", of.len())), page.paint(DIM, about))?;
            for one in of.iter().take(self.limit()) {
                let about = page.paint(DIM, &format!("({}, {})", one.points_at, one.source));
                writeln!(page, "  {}  {about}", visible(&one.line()))?;
                writeln!(page, "      {}", visible(&one.reason))?;
            }
            if of.len() > self.limit() {
                writeln!(page, "  … and {} more (--limit 0 lists all)", of.len() - self.limit())?;
            }
            writeln!(page)?;
        }
        self.not_checked(page)?;
        writeln!(page, "{}", page.paint(BOLD, &self.result()))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let [orphans, possible, not_checked, found] = self.counts();
        let all = serde_json::json!({
            "schema": "driftline.orphans/v1",
            "summary": {
                "total": self.found.len(), "orphans": orphans, "possible": possible, "notChecked": not_checked,
                "found": found,
            },
            "records": self.found,
        });
        Ok(serde_json::to_writer_pretty(out, &all)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        for one in &self.found {
            serde_json::to_writer(&mut *out, one)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "| | record | target | why |\n|---|---|---|---|")?;
        for one in self.found.iter().filter(|one| self.all || one.status != Verdict::Found).take(self.limit()) {
            let status = match one.status {
                Verdict::Orphan => "orphan",
                Verdict::Possible => "possible",
                Verdict::NotChecked => "not checked",
                Verdict::Found => "found",
            };
            let cells = [&one.name, &one.target, &one.reason].map(|text| markdown_cell(text));
            writeln!(out, "| {status} | {} |", cells.join(" | "))?;
        }
        writeln!(out, "\n{}", markdown_cell(&self.result()))
    }
}
