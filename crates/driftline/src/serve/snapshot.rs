//! Everything that is true of one revision, put together for the page.

use std::collections::BTreeMap;

use driftline_core::StreamId;
use driftline_core::velocity::Rate;
use driftline_core::verdict::{DriftKind, Status};
use driftline_store::detect::Tally;
use driftline_store::{Store, Version};
use driftline_web::Refusal;
use driftline_web::model::{Baseline, Beginning, Gap, Rule, Snapshot, Source, Step, Summary, TypeVelocity};

use super::answering::{Answering, Judged, Open};
use super::course::course;
use super::telling::{failed, findings};
use crate::settings::{DEFAULT_STALE_AFTER, Settings};
use crate::velocity::{measure, noise_words};

/// How many findings are listed; of more nobody has read the end.
const FINDINGS: usize = 100_000;
const NO_VERSION: &str = "the baseline has no version of this source";

pub(super) fn take(answering: &Answering) -> Result<Snapshot, Refusal> {
    let (settings, store, revision, stamp) = answering.open()?;
    let Some(store) = store else {
        let beginning = beginning(&settings, "There is no store yet", "Nothing was observed so far.", false);
        return Ok(Snapshot { beginning: Some(beginning), ..empty(revision, &settings) });
    };
    if store.catalog().streams().next().is_none() {
        let beginning = beginning(&settings, "The store is empty", "Nothing was observed so far.", false);
        return Ok(Snapshot { beginning: Some(beginning), ..empty(revision, &settings) });
    }
    let open = Open { settings, store, revision, stamp };
    match answering.judged(&open)? {
        None => Ok(unjudged(answering, &open)?),
        Some(judged) => whole(answering, &open, &judged),
    }
}

fn empty(revision: String, settings: &Settings) -> Snapshot {
    Snapshot {
        revision,
        computed_at: settings.now,
        baseline: None,
        summary: Summary::default(),
        sources: Vec::new(),
        gaps: Vec::new(),
        velocity: Vec::new(),
        course: Vec::new(),
        findings: Vec::new(),
        left_out: 0,
        rules: rules(settings, &BTreeMap::new()),
        beginning: None,
        unfinished: false,
    }
}

fn beginning(settings: &Settings, headline: &str, text: &str, only_baseline: bool) -> Beginning {
    let store = match settings.store_from.as_str() {
        "default" => String::new(),
        _ => format!(" --store '{}'", settings.store),
    };
    let step = |say: &str, command: String| Step { say: say.to_owned(), command };
    let steps = match only_baseline {
        true => vec![step(
            "Pin the newest version of every source as what is expected",
            format!("driftline baseline set{store}"),
        )],
        false => vec![
            step("Take the first observation", format!("driftline observe file FILE{store}")),
            step("Pin what is expected", format!("driftline baseline set{store}")),
            step("Or look at an example first", format!("driftline demo{store}")),
        ],
    };
    Beginning { headline: headline.to_owned(), text: text.to_owned(), steps, only_baseline }
}

/// There are sources, and nothing that they could be held against.
fn unjudged(answering: &Answering, open: &Open) -> Result<Snapshot, Refusal> {
    let Open { settings, store, revision, .. } = open;
    let name = answering.name(settings)?;
    let heads: Vec<_> =
        store.catalog().streams().filter_map(|(id, stream)| Some((id.to_string(), stream.head()?))).collect();
    let sources: Vec<Source> =
        heads.iter().map(|(name, head)| source(settings, name, head, None, unchecked(head.rows))).collect();
    let total = sources.iter().map(|source| source.resources).sum();
    let summary = Summary {
        total,
        not_checked: total,
        complete_extents: sources.iter().map(|source| source.complete_extents).sum(),
        partial_extents: sources.iter().map(|source| source.partial_extents).sum(),
        ..Summary::default()
    };
    let headline = format!("There is no baseline `{name}` yet");
    let text = "Sources were observed, and nothing says what is expected of them: nothing can be judged.";
    Ok(Snapshot {
        summary,
        sources,
        beginning: Some(beginning(settings, &headline, text, true)),
        ..empty(revision.clone(), settings)
    })
}

fn unchecked(rows: u64) -> Tally {
    Tally { not_checked: rows, ..Tally::default() }
}

fn whole(answering: &Answering, open: &Open, judged: &Judged) -> Result<Snapshot, Refusal> {
    let Open { settings, store, revision, .. } = open;
    let found = findings(settings, &judged.drift, &judged.question.pairs, FINDINGS).map_err(failed)?;
    let mut summary = found.summary;
    let mut by_type = judged.drift.by_type.clone();
    let mut gaps = gaps(judged);
    let mut sources = judged_sources(settings, store, judged)?;
    // Nothing in these is judged; they are counted, and not listed one by one.
    for pair in &judged.unpinned {
        let stream = store.catalog().stream(&pair.stream).map_err(failed)?;
        let head = store.catalog().version(&pair.stream, pair.live).map_err(failed)?;
        let types: BTreeMap<String, u64> =
            stream.types(pair.live).into_iter().map(|(kind, count)| (kind, count.rows)).collect();
        for (kind, rows) in &types {
            by_type.entry(kind.clone()).or_default().not_checked += rows;
        }
        let name = pair.stream.to_string();
        gaps.push(Gap { source: name.clone(), place: "everywhere".into(), reason: NO_VERSION.into(), types });
        summary.total += head.rows;
        summary.not_checked += head.rows;
        summary.complete_extents += head.complete_extents as u64;
        summary.partial_extents += head.partial_extents as u64;
        sources.push(source(settings, &name, head, None, unchecked(head.rows)));
    }
    sources.sort_by(|a, b| a.name.cmp(&b.name));
    let velocity = measure(settings, store, &judged.name, by_type, &[], settings.now, false).map_err(failed)?;
    let (course, is_whole) = course(answering, open, judged)?;
    let pinned = store.catalog().baseline(&judged.name).map_err(failed)?;
    Ok(Snapshot {
        revision: revision.clone(),
        computed_at: settings.now,
        baseline: Some(Baseline {
            name: judged.name.to_string(),
            set_at: pinned.set_at,
            accepted: pinned.accepted.len(),
        }),
        summary,
        sources,
        gaps,
        velocity: velocities(&velocity),
        course,
        findings: found.listed,
        left_out: found.left_out,
        rules: rules(settings, &judged.drift.rule_uses),
        beginning: None,
        unfinished: !is_whole,
    })
}

/// What was not checked: by source, place and reason, the types with their counts.
fn gaps(judged: &Judged) -> Vec<Gap> {
    let mut groups: BTreeMap<(&StreamId, &str, &str), BTreeMap<String, u64>> = BTreeMap::new();
    for finding in judged.drift.findings.iter().filter(|finding| finding.judgement.status == Status::NotChecked) {
        let reason = finding.judgement.reason.as_deref().unwrap_or_default();
        let group = groups.entry((&*finding.stream, finding.key.place.as_str(), reason)).or_default();
        *group.entry(finding.key.kind.clone()).or_default() += 1;
    }
    let gap = |((source, place, reason), types): ((&StreamId, &str, &str), _)| Gap {
        source: source.to_string(),
        place: place.to_owned(),
        reason: reason.to_owned(),
        types,
    };
    groups.into_iter().map(gap).collect()
}

fn judged_sources(settings: &Settings, store: &Store, judged: &Judged) -> Result<Vec<Source>, Refusal> {
    // How many of each source ended how, and how many of those it has no more.
    let mut tallies: BTreeMap<&StreamId, (Tally, u64)> = BTreeMap::new();
    for finding in &judged.drift.findings {
        let (tally, gone) = tallies.entry(&finding.stream).or_default();
        tally.add(finding.judgement.status);
        let is_gone = matches!(finding.judgement.kind, Some(DriftKind::Deleted | DriftKind::Resolved));
        *gone += u64::from(is_gone);
    }
    let mut sources = Vec::new();
    for pair in &judged.question.pairs {
        let version = store.catalog().version(&pair.stream, pair.live).map_err(failed)?;
        let (tally, gone) = tallies.get(&pair.stream).copied().unwrap_or_default();
        // What is gone was judged, too, and is not among the rows.
        let others = tally.drifted + tally.unknown + tally.not_checked;
        let tally = Tally { in_sync: (version.rows + gone).saturating_sub(others), ..tally };
        sources.push(source(settings, &pair.stream.to_string(), version, pair.expected, tally));
    }
    Ok(sources)
}

fn source(settings: &Settings, name: &str, version: &Version, expected: Option<u64>, tally: Tally) -> Source {
    let stale_after = settings.config.stale_after.unwrap_or(DEFAULT_STALE_AFTER);
    Source {
        name: name.to_owned(),
        version: version.number,
        baseline_version: expected,
        taken_at: version.taken_at,
        stale: settings.now.duration_since(version.taken_at) > stale_after,
        resources: version.rows,
        in_sync: tally.in_sync,
        drifted: tally.drifted,
        unknown: tally.unknown,
        not_checked: tally.not_checked,
        complete_extents: version.complete_extents as u64,
        partial_extents: version.partial_extents as u64,
        problems: version.problems.iter().map(|problem| format!("{}: {}", problem.about, problem.message)).collect(),
    }
}

/// Types with something to tell, most drifted first.
fn velocities(velocity: &crate::velocity::Velocity) -> Vec<TypeVelocity> {
    let mut told: Vec<TypeVelocity> = velocity
        .by_type
        .iter()
        .map(|(kind, tally)| {
            let rate = Rate::new(tally.drifted, tally.checked());
            let window = |name: &str| {
                let found = velocity.windows.get(name).and_then(|types| types.get(kind));
                found.map_or(0, |window| window.rate.drifted_count)
            };
            TypeVelocity {
                resource_type: kind.clone(),
                drifted: rate.drifted_count,
                checked: rate.total_count,
                drift_rate: rate.drift_rate,
                unknown: tally.unknown,
                not_checked: tally.not_checked,
                last24h: window("last24h"),
                last7d: window("last7d"),
                last30d: window("last30d"),
                noisy: velocity.noisy.get(kind).map(noise_words),
            }
        })
        .collect();
    told.sort_by(|a, b| {
        (b.drifted, b.unknown, b.last30d, &a.resource_type).cmp(&(a.drifted, a.unknown, a.last30d, &b.resource_type))
    });
    told
}

/// Every rule, with how many differences it excuses now; those that have expired are told, too.
fn rules(settings: &Settings, uses: &BTreeMap<usize, u64>) -> Vec<Rule> {
    let mut told = Vec::new();
    for (at, rule) in settings.rules.book.rules().iter().enumerate() {
        let entry = settings.rules.entry(&settings.config, at);
        told.push(Rule {
            name: entry.map_or_else(|| rule.kind.name().to_owned(), |entry| entry.name.clone()),
            owner: entry.and_then(|entry| entry.owner.clone()),
            expires: entry.and_then(|entry| entry.expires.map(|date| date.to_string())),
            uses: uses.get(&at).copied().unwrap_or(0),
            ..rule_told(rule, false)
        });
    }
    for entry in settings.config.rules.iter().filter(|entry| entry.has_expired(settings.now)) {
        told.push(Rule {
            name: entry.name.clone(),
            owner: entry.owner.clone(),
            expires: entry.expires.map(|date| date.to_string()),
            ..rule_told(&entry.rule, true)
        });
    }
    told
}

fn rule_told(rule: &driftline_core::Rule, expired: bool) -> Rule {
    let subject = &rule.subject;
    let about = [("type", &subject.kind), ("place", &subject.place), ("id", &subject.id), ("source", &subject.source)];
    let mut words: Vec<String> =
        about.iter().filter_map(|(name, glob)| Some(format!("{name} {}", (*glob).as_ref()?))).collect();
    if words.is_empty() {
        words.push("everything".into());
    }
    let path = rule.path.to_string();
    words.push(if path.is_empty() { "the whole resource".into() } else { format!("at {path}") });
    Rule {
        name: rule.kind.name().to_owned(),
        kind: rule.kind.name().to_owned(),
        subject: words.join(", "),
        origin: rule.origin.to_string(),
        reason: rule.reason.clone(),
        owner: None,
        expires: None,
        expired,
        uses: 0,
        own: matches!(rule.origin, driftline_core::Origin::User(_)),
    }
}
