//! `posture`: compliance by rule, against a baseline and over time.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use driftline_core::posture::{Compliance, Posture, Tally, Turn, Violation, evaluations};
use driftline_core::rule::Glob;
use driftline_core::{Coverage, Pass, Pointer, ResourceKey, StreamId, Value};
use driftline_store::Store;
use driftline_store::detect::Pair;
use driftline_store::history::Step;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::args::PostureArgs;
use crate::drift::{Points, ask, parse_sources};
use crate::error::{CommandError, CommandResult};
use crate::exit;
use crate::output::{
    BOLD, DIM, GREEN, Page, RED, Show, YELLOW, columns, count, markdown_cell, markdown_table, visible,
};
use crate::report::Expected;
use crate::settings::Settings;
use crate::time::{ago, parse_moment};

/// Where a resource keeps what rules say of it.
const RULES: &str = "/rules";
/// How many of each a table or Markdown lists.
const LISTED: usize = 50;
/// How far back the course over time goes unasked.
pub(crate) const COURSE: SignedDuration = SignedDuration::from_hours(24 * 30);
/// How many versions fit into the small chart.
const CHART: usize = 60;

pub(crate) fn run(settings: &Settings, args: &PostureArgs) -> CommandResult<u8> {
    let store = settings.open_store()?;
    let sources = parse_sources(&args.source)?;
    let moment = |text: &Option<String>| text.as_ref().map(|text| parse_moment(text, settings.now)).transpose();
    let until = moment(&args.at)?.unwrap_or(settings.now);
    let from = match moment(&args.since)? {
        Some(since) => since,
        None => until.checked_sub(COURSE).unwrap_or(Timestamp::MIN),
    };
    let points = Points {
        baseline: args.baseline.as_deref(),
        at: args.at.as_deref(),
        since: args.since.as_deref(),
        between: None,
    };
    let (question, expected) = ask(settings, &store, points, &sources)?;
    let glob = args.rule.as_ref().map(Glob::new);
    let wanted = |rule: &str| glob.as_ref().is_none_or(|glob| glob.matches(rule));
    let answer = compute(settings, &store, &question.pairs, expected, &wanted, [from, until])?;
    let Some(answer) = answer else {
        return Err(CommandError::new("no source that was asked for has evaluated resources").hint(
            "a resource is evaluated if its properties have `rules`, an object with texts such as NON_COMPLIANT",
        ));
    };
    if let Some(glob) = &glob
        && answer.posture.rules.is_empty()
    {
        return Err(CommandError::new(format!("no rule is called `{glob}`")).hint("`*` stands for anything"));
    }
    let new = answer.posture.total().newly_non_compliant;
    settings.printer.print(&answer)?;
    Ok(if args.fail_on_new && new > 0 { exit::DRIFT } else { exit::IN_SYNC })
}

/// Compliance by the rules that are wanted, and its course between two times; nothing if nothing is evaluated.
pub(crate) fn compute(
    settings: &Settings,
    store: &Store,
    pairs: &[Pair],
    expected: Expected,
    wanted: &dyn Fn(&str) -> bool,
    [from, until]: [Timestamp; 2],
) -> CommandResult<Option<Answer>> {
    let path: Pointer = RULES.parse().map_err(|error: driftline_core::pointer::PointerError| {
        CommandError::because("the place of rules cannot be read", &error)
    })?;

    let mut posture = Posture::default();
    let mut since: BTreeMap<Violation, Timestamp> = BTreeMap::new();
    let mut course = Vec::new();
    let mut evaluated = false;
    for pair in pairs {
        let life = live_through(store, pair, &path, wanted)?;
        if !life.evaluated {
            continue;
        }
        evaluated = true;
        let (before, after) = (life.before.pass(), life.after.pass());
        posture.add(&pair.stream, before, after, &path, wanted);
        since.extend(life.since);
        course.extend(life.course);
    }
    if !evaluated {
        return Ok(None);
    }
    Ok(Some(Answer { now: settings.now, expected, posture, since, course: in_turn(course, from, until) }))
}

/// What a version knows of evaluated resources.
#[derive(Default)]
struct Known {
    resources: BTreeMap<ResourceKey, Value>,
    unseen: BTreeSet<ResourceKey>,
    coverage: Coverage,
}

impl Known {
    fn pass(&self) -> Pass<'_> {
        Pass { resources: &self.resources, unseen: &self.unseen, coverage: &self.coverage }
    }
}

/// One stream from its first version to the one that is live.
#[derive(Default)]
struct Life {
    /// Whether there ever was an evaluated resource. When all is well there may be none left.
    evaluated: bool,
    before: Known,
    after: Known,
    /// When the version was taken in which each violation of the live version began.
    since: BTreeMap<Violation, Timestamp>,
    course: Vec<Moment>,
}

/// One version on the course over time.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Moment {
    pub at: Timestamp,
    source: String,
    version: u64,
    /// Of this source.
    non_compliant: usize,
    /// Of all sources, at this time.
    pub total: usize,
}

fn live_through(store: &Store, pair: &Pair, path: &Pointer, wanted: &dyn Fn(&str) -> bool) -> CommandResult<Life> {
    let mut life = Life::default();
    let mut resources: BTreeMap<ResourceKey, Value> = BTreeMap::new();
    // By resource, so that a new evaluation of one does not have to look at all others.
    let mut since: BTreeMap<ResourceKey, BTreeMap<String, Timestamp>> = BTreeMap::new();
    let mut violations = 0;
    let mut damaged = None;
    let last = pair.live.max(pair.expected.unwrap_or(0));
    store.replay(&pair.stream, last, |step| match step {
        Step::Is(version, key, json) => {
            // Most resources are not evaluated, and need not be read to know it.
            let value = if json.contains("\"rules\"") {
                let value = serde_json::from_str::<Value>(json);
                if value.is_err() {
                    damaged.get_or_insert_with(|| key.clone());
                }
                value.ok()
            } else {
                None
            };
            let mut old = since.remove(key).unwrap_or_default();
            violations -= old.len();
            match value.as_ref().and_then(|value| evaluations(value, path)) {
                None => {
                    resources.remove(key);
                }
                Some(found) => {
                    life.evaluated = true;
                    let violated = found.into_iter().filter(|(_, word)| *word == Compliance::NonCompliant);
                    let new: BTreeMap<String, Timestamp> = violated
                        .filter(|(rule, _)| wanted(rule))
                        .map(|(rule, _)| (rule.to_owned(), old.remove(rule).unwrap_or(version.taken_at)))
                        .collect();
                    violations += new.len();
                    since.insert(key.clone(), new);
                    resources.insert(key.clone(), value.unwrap_or_default());
                }
            }
        }
        Step::Gone(key) => {
            violations -= since.remove(key).map_or(0, |old| old.len());
            resources.remove(key);
        }
        Step::Version(version) => {
            if Some(version.number) == pair.expected {
                life.before.resources.clone_from(&resources);
            }
            if version.number <= pair.live {
                life.course.push(Moment {
                    at: version.taken_at,
                    source: pair.stream.to_string(),
                    version: version.number,
                    non_compliant: violations,
                    total: 0,
                });
            }
            if version.number == pair.live {
                life.after.resources.clone_from(&resources);
                let each = since.iter().flat_map(|(key, rules)| rules.iter().map(move |(rule, at)| (key, rule, *at)));
                life.since = each.map(|(key, rule, at)| (violation(&pair.stream, key, rule), at)).collect();
            }
        }
    })?;
    if let Some(key) = damaged {
        return Err(CommandError::new(format!("the properties of `{key}` in `{}` are not JSON", pair.stream))
            .hint("`driftline verify` checks the store"));
    }
    if life.evaluated {
        for (known, number) in [(&mut life.before, pair.expected), (&mut life.after, Some(pair.live))] {
            let Some(number) = number else { continue };
            let version = store.catalog().version(&pair.stream, number)?;
            known.coverage = store.coverage(&version.coverage)?;
            if version.unseen > 0 {
                known.unseen = store.unseen_keys(&pair.stream, number)?;
            }
        }
        if pair.expected.is_none() {
            // Nobody looked then; that is the reason, and not that the listing was made in another way.
            life.before.coverage = Coverage::new().on_basis(life.after.coverage.basis().map(str::to_owned));
        }
    }
    Ok(life)
}

fn violation(stream: &StreamId, key: &ResourceKey, rule: &str) -> Violation {
    Violation { rule: rule.to_owned(), stream: stream.clone(), key: key.clone() }
}

/// The versions of all sources one after the other, each with what all sources together had then.
fn in_turn(mut course: Vec<Moment>, from: Timestamp, until: Timestamp) -> Vec<Moment> {
    course.sort_by(|a, b| (a.at, &a.source, a.version).cmp(&(b.at, &b.source, b.version)));
    let mut newest: BTreeMap<String, usize> = BTreeMap::new();
    for moment in &mut course {
        newest.insert(moment.source.clone(), moment.non_compliant);
        moment.total = newest.values().sum();
    }
    course.retain(|moment| moment.at >= from && moment.at <= until);
    course
}

/// A chart of one line: the highest bar is the most there were.
fn chart(numbers: &[usize]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = numbers.iter().copied().max().unwrap_or(0).max(1);
    numbers.iter().map(|number| BARS[(number * (BARS.len() - 1)).div_ceil(most)]).collect()
}

pub(crate) struct Answer {
    now: Timestamp,
    pub expected: Expected,
    pub posture: Posture,
    pub since: BTreeMap<Violation, Timestamp>,
    pub course: Vec<Moment>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonViolation<'a> {
    rule: &'a str,
    canonical_id: &'a str,
    resource_type: &'a str,
    place: &'a str,
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonRule<'a> {
    rule: &'a str,
    #[serde(flatten)]
    tally: &'a Tally,
}

impl Answer {
    fn json_violation<'a>(&'a self, violation: &'a Violation, reason: Option<&'a str>) -> JsonViolation<'a> {
        JsonViolation {
            rule: &violation.rule,
            canonical_id: &violation.key.id,
            resource_type: &violation.key.kind,
            place: violation.key.place.as_str(),
            source: violation.stream.to_string(),
            since: self.since.get(violation).copied(),
            reason,
        }
    }

    fn json_violations(&self, turn: Turn) -> Vec<JsonViolation<'_>> {
        self.posture.taking(turn).map(|(violation, reason)| self.json_violation(violation, reason)).collect()
    }

    fn json_rules(&self) -> Vec<JsonRule<'_>> {
        self.posture.rules.iter().map(|(rule, tally)| JsonRule { rule, tally }).collect()
    }

    /// Of what is still violated, what has been for the longest time.
    fn oldest(&self) -> Option<(&Violation, Timestamp)> {
        let still = self.posture.taking(Turn::Still);
        still.filter_map(|(violation, _)| Some((violation, *self.since.get(violation)?))).min_by_key(|(_, at)| *at)
    }

    fn title(&self) -> String {
        format!("Posture {}", self.expected.heading(self.now))
    }

    /// Rules with something to tell, most violated first.
    fn rows(&self) -> Vec<Vec<String>> {
        let mut rules: Vec<(&String, &Tally)> = self.posture.rules.iter().collect();
        rules.sort_by(|(a, x), (b, y)| {
            (y.newly_non_compliant, y.now.non_compliant)
                .cmp(&(x.newly_non_compliant, x.now.non_compliant))
                .then_with(|| a.cmp(b))
        });
        let header = ["rule", "non-compliant", "compliant", "other", "new", "fixed", "not checked"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        let moved = |before: u64, now: u64| if before == now { now.to_string() } else { format!("{before} -> {now}") };
        for (rule, tally) in rules {
            rows.push(vec![
                rule.clone(),
                moved(tally.before.non_compliant, tally.now.non_compliant),
                moved(tally.before.compliant, tally.now.compliant),
                moved(tally.before.other, tally.now.other),
                tally.newly_non_compliant.to_string(),
                tally.newly_fixed.to_string(),
                tally.not_checked.to_string(),
            ]);
        }
        rows
    }

    /// What was not checked, by reason.
    fn not_checked(&self) -> BTreeMap<String, usize> {
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for (violation, reason) in self.posture.taking(Turn::NotChecked) {
            let reason = format!("{}, {}: {}", violation.stream, violation.key.place, reason.unwrap_or_default());
            *reasons.entry(reason).or_default() += 1;
        }
        reasons
    }

    fn course_line(&self) -> Option<String> {
        let totals: Vec<usize> = self.course.iter().map(|moment| moment.total).collect();
        let shown = &totals[totals.len().saturating_sub(CHART)..];
        let (first, last) = (self.course.get(totals.len() - shown.len())?, self.course.last()?);
        let versions = count(shown.len(), "version");
        let (was, is) = (first.total, last.total);
        Some(format!("{}  {was} -> {is} non-compliant in {versions}, {} to {}", chart(shown), first.at, last.at))
    }

    fn still_line(&self) -> Option<String> {
        let still = self.posture.total().still_non_compliant;
        let (oldest, at) = self.oldest()?;
        Some(format!(
            "still non-compliant: {still}; the oldest at least since {at} ({}): {} on {}",
            ago(at, self.now),
            oldest.rule,
            oldest.key.id
        ))
    }

    fn result_line(&self) -> String {
        let total = self.posture.total();
        format!(
            "result: {} newly non-compliant, {} fixed, {} still non-compliant, {} not checked; {} non-compliant now, {} before",
            total.newly_non_compliant,
            total.newly_fixed,
            total.still_non_compliant,
            total.not_checked,
            total.now.non_compliant,
            total.before.non_compliant
        )
    }

    fn section(&self, page: &mut Page<'_>, turn: Turn, head: &str, sign: &str) -> io::Result<()> {
        let found: Vec<_> = self.posture.taking(turn).collect();
        if found.is_empty() {
            return Ok(());
        }
        writeln!(page, "\n{head}")?;
        for (violation, _) in found.iter().take(LISTED) {
            let since =
                self.since.get(violation).map(|at| format!(", since {}", ago(*at, self.now))).unwrap_or_default();
            let detail = page.paint(DIM, &format!("{} ({}{since})", violation.key.kind, violation.stream));
            writeln!(page, "  {sign} {}  {}  {detail}", visible(&violation.rule), visible(&violation.key.id))?;
        }
        if found.len() > LISTED {
            writeln!(page, "  … and {} more; -o json lists all", found.len() - LISTED)?;
        }
        Ok(())
    }
}

impl Show for Answer {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        writeln!(page, "{}", page.paint(BOLD, &self.title()))?;
        let total = self.posture.total();
        let head = format!("{} {}  non-compliant now, not before", page.paint(RED, "NEW"), total.newly_non_compliant);
        let sign = page.paint(RED, "+");
        self.section(page, Turn::New, &head, &sign)?;
        let head = format!("{} {}  non-compliant before, not now", page.paint(GREEN, "FIXED"), total.newly_fixed);
        let sign = page.paint(GREEN, "-");
        self.section(page, Turn::Fixed, &head, &sign)?;
        writeln!(page)?;
        for line in columns(&self.rows(), 0) {
            writeln!(page, "{line}")?;
        }
        let not_checked = self.not_checked();
        if !not_checked.is_empty() {
            let head = page.paint(YELLOW, "NOT CHECKED");
            writeln!(page, "\n{head} {}  one of the two sides did not look", total.not_checked)?;
            for (reason, number) in not_checked {
                writeln!(page, "  {number}  {}", visible(&reason))?;
            }
        }
        writeln!(page)?;
        if let Some(line) = self.course_line() {
            writeln!(page, "over time: {line}")?;
        }
        if let Some(line) = self.still_line() {
            writeln!(page, "{}", visible(&line))?;
        }
        writeln!(page, "{}", self.result_line())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct Still<'a> {
            count: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            oldest: Option<JsonViolation<'a>>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct All<'a> {
            schema: &'a str,
            computed_at: Timestamp,
            compared: String,
            totals: Tally,
            rules: Vec<JsonRule<'a>>,
            newly_non_compliant: Vec<JsonViolation<'a>>,
            newly_fixed: Vec<JsonViolation<'a>>,
            still_non_compliant: Still<'a>,
            not_checked: Vec<JsonViolation<'a>>,
            series: &'a [Moment],
        }
        let totals = self.posture.total();
        let all = All {
            schema: "driftline.posture/v1",
            computed_at: self.now,
            compared: self.expected.exact_heading(),
            totals,
            rules: self.json_rules(),
            newly_non_compliant: self.json_violations(Turn::New),
            newly_fixed: self.json_violations(Turn::Fixed),
            still_non_compliant: Still {
                count: totals.still_non_compliant,
                oldest: self.oldest().map(|(violation, _)| self.json_violation(violation, None)),
            },
            not_checked: self.json_violations(Turn::NotChecked),
            series: &self.course,
        };
        Ok(serde_json::to_writer_pretty(out, &all)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        for rule in self.json_rules() {
            serde_json::to_writer(&mut *out, &rule)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### {}\n", markdown_cell(&self.title()))?;
        for (turn, word) in [(Turn::New, "newly non-compliant"), (Turn::Fixed, "fixed")] {
            let found: Vec<_> = self.posture.taking(turn).collect();
            for (at, (violation, _)) in found.iter().take(LISTED).enumerate() {
                if at == 0 {
                    writeln!(out, "| {word} | resource | type | since |\n|---|---|---|---|")?;
                }
                let [rule, id, kind] =
                    [&violation.rule, &violation.key.id, &violation.key.kind].map(|text| markdown_cell(text));
                let since = self.since.get(violation).map(Timestamp::to_string).unwrap_or_default();
                writeln!(out, "| {rule} | {id} | {kind} | {since} |")?;
            }
            if found.len() > LISTED {
                writeln!(out, "\n… and {} more", found.len() - LISTED)?;
            }
            if !found.is_empty() {
                writeln!(out)?;
            }
        }
        markdown_table(&self.rows(), out)?;
        for (reason, number) in self.not_checked() {
            writeln!(out, "\nNot checked: {number}: {}", markdown_cell(&reason))?;
        }
        for line in [self.course_line(), self.still_line()].into_iter().flatten() {
            writeln!(out, "\n{}", markdown_cell(&line))?;
        }
        writeln!(out, "\n{}", self.result_line())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bar_is_the_most_there_were() {
        for (numbers, bars) in
            [(&[][..], ""), (&[0, 0], "▁▁"), (&[5], "█"), (&[0, 1, 100], "▁▂█"), (&[1, 2, 4, 8], "▂▃▅█")]
        {
            assert_eq!(chart(numbers), bars);
        }
    }

    #[test]
    fn a_total_is_what_all_sources_had_at_the_time() {
        let moment = |second: i64, source: &str, non_compliant: usize| Moment {
            at: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second),
            source: source.into(),
            version: 1,
            non_compliant,
            total: 0,
        };
        let course = vec![moment(3, "a", 1), moment(1, "a", 2), moment(2, "b", 5)];
        let (from, until) = (Timestamp::UNIX_EPOCH + SignedDuration::from_secs(2), Timestamp::MAX);
        let totals: Vec<usize> = in_turn(course, from, until).iter().map(|moment| moment.total).collect();
        assert_eq!(totals, [7, 6], "what was before the window counts in it");
    }
}
