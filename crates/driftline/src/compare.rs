//! `compare`: what was declared, against what is live.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use driftline_core::rule::Glob;
use driftline_core::verdict::{DriftKind, Status as Verdict};
use driftline_core::{Change, KeyRef, Value};
use driftline_sources::declared::{self, Difference, Engine, Excuse, Found, Options, Status};
use driftline_sources::identity;
use driftline_sources::schema::{Transform, alternatives};
use driftline_store::detect::Tally;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::args::CompareArgs;
use crate::drift::parse_sources;
use crate::error::{CommandError, CommandResult};
use crate::exit;
use crate::output::{BOLD, DIM, Format, GREEN, Page, RED, Show, YELLOW, columns, count, markdown_table, visible};
use crate::report::markdown;
use crate::report::telling::{self, EXCUSED, Source, Telling, Told};
use crate::settings::{DEFAULT_STALE_AFTER, Settings};
use crate::severity::{About, Counts, Rater, Rating};
use crate::survey::{self, is_a_thing, survey};

pub(crate) fn run(settings: &Settings, args: &CompareArgs) -> CommandResult<u8> {
    let mut transforms = settings.config.transforms.clone();
    for file in &args.schema {
        transforms.extend(read_schema(file)?);
    }
    let engine = Engine::default();
    if args.list_heuristics {
        return settings.printer.print(&Guesses).map(|()| exit::IN_SYNC);
    }
    let heuristics = (!args.no_heuristics).then_some(&settings.config.heuristics);
    let judge = Judge { engine: &engine, transforms: &transforms, heuristics };
    if let Some(file) = &args.batch {
        return batch(file, &judge).map(|()| exit::IN_SYNC);
    }
    let (compared, sides) = match (&args.declared, &args.live, args.files.as_slice()) {
        (Some(declared), Some(live), []) => sources(settings, declared, live, &judge)?,
        (None, None, [declared, live]) => {
            let Some(kind) = &args.r#type else {
                return Err(CommandError::new("of which type are they?").hint("--type AWS::SQS::Queue"));
            };
            let mut one = judge.resource(kind, "", Some(read(declared)?), Some(read(live)?));
            one.source = live.display().to_string();
            (vec![one], Vec::new())
        }
        _ => {
            return Err(CommandError::new("compare takes two files with --type, or --declared and --live, or --batch")
                .hint("driftline compare --type AWS::SQS::Queue declared.json live.json"));
        }
    };
    let rater = Rater::new(&settings.config.severities);
    let ratings = compared.iter().map(|one| one.rate(&rater)).collect::<CommandResult<_>>()?;
    let heading = match (&args.declared, &args.live, args.files.as_slice()) {
        (Some(declared), Some(live), _) => format!("of `{live}` with what `{declared}` declares"),
        (_, _, [declared, live]) => format!("of `{}` with what `{}` declares", live.display(), declared.display()),
        _ => String::new(),
    };
    let report = Report { compared, all: args.all, ratings, sides, heading, now: settings.now };
    settings.printer.print(&report)?;
    let differs = report.compared.iter().any(|one| matches!(one.status, Status::Modified | Status::Deleted));
    Ok(if differs && !args.exit_zero { exit::DRIFT } else { exit::IN_SYNC })
}

fn read(path: &Path) -> CommandResult<Value> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| CommandError::because(format!("cannot read `{}`", path.display()), &error))?;
    serde_json::from_str(&text).map_err(|error| CommandError::new(format!("`{}` is not JSON: {error}", path.display())))
}

/// A resource schema, or only the part of it that matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSchema {
    type_name: Option<String>,
    #[serde(default)]
    property_transform: std::collections::BTreeMap<String, String>,
}

fn read_schema(path: &Path) -> CommandResult<Vec<OwnTransform>> {
    let about = |error: CommandError| error.about(format!("the schema `{}` is not usable", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| about(CommandError::new(error.to_string())))?;
    let raw: RawSchema = serde_json::from_str(&text).map_err(|error| about(CommandError::new(error.to_string())))?;
    let mut transforms = Vec::new();
    for (at, expression) in &raw.property_transform {
        transforms
            .push(own_transform(raw.type_name.as_deref(), at, expression, &path.display().to_string()).map_err(about)?);
    }
    match transforms.is_empty() {
        true => Err(about(CommandError::new("it has no `propertyTransform`"))),
        false => Ok(transforms),
    }
}

/// A transform of the user's, and the type it is for; any, if none is given.
#[derive(Clone, Debug)]
pub(crate) struct OwnTransform {
    pub kind: Option<String>,
    pub transform: Transform,
}

/// Checks a transform where it is written: `/properties/Name` and JSONata, with `$OR` between alternatives.
pub(crate) fn own_transform(
    kind: Option<&str>,
    path: &str,
    expression: &str,
    source: &str,
) -> CommandResult<OwnTransform> {
    let place = path.strip_prefix('/').unwrap_or(path).strip_prefix("properties").unwrap_or(path);
    let pattern = place.parse().map_err(|error: driftline_core::pointer::PointerError| {
        CommandError::new(error.to_string()).about(format!("`{path}`"))
    })?;
    let alternatives = alternatives(expression);
    for alternative in &alternatives {
        jsonata::Expression::parse(alternative, &jsonata::Limits::default()).map_err(|error| {
            CommandError::new(error.to_string()).about(format!("the transform of `{path}`: `{alternative}`"))
        })?;
    }
    let (expression, source) = (expression.to_owned(), source.to_owned());
    let transform = Transform { path: pattern, expression, alternatives, source };
    Ok(OwnTransform { kind: kind.map(ToOwned::to_owned), transform })
}

/// How things are compared.
struct Judge<'a> {
    engine: &'a Engine,
    transforms: &'a [OwnTransform],
    /// What is switched off of them; `None` if all are.
    heuristics: Option<&'a Heuristics>,
}

/// Which guesses do not count: by name, and by type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heuristics {
    pub without: Vec<String>,
    pub not_for: Vec<Glob>,
}

impl Judge<'_> {
    fn compare(&self, kind: &str, declared: &Value, live: &Value) -> Found {
        let own = self.transforms.iter().filter(|own| own.kind.as_deref().is_none_or(|own| own == kind));
        let transforms: Vec<Transform> = own.map(|own| own.transform.clone()).collect();
        let counted = self.heuristics.filter(|off| !off.not_for.iter().any(|glob| glob.matches(kind)));
        let options = Options {
            heuristics: counted.is_some(),
            without: counted.map_or(&[], |off| &off.without),
            transforms: &transforms,
            engine: self.engine,
        };
        declared::compare(kind, declared, live, &options)
    }

    fn resource(&self, kind: &str, id: &str, declared: Option<Value>, live: Option<Value>) -> Compared {
        let found = match (&declared, &live) {
            (Some(declared), Some(live)) => self.compare(kind, declared, live),
            _ => Found::default(),
        };
        let status = match (&declared, &live) {
            (Some(_), None) => Status::Deleted,
            _ if found.differences.is_empty() => Status::InSync,
            _ => Status::Modified,
        };
        let (kind, id) = (kind.to_owned(), id.to_owned());
        let (place, source) = (String::new(), String::new());
        Compared { kind, id, place, source, status, found, reason: None, declared, live }
    }
}

/// One resource, compared.
struct Compared {
    kind: String,
    id: String,
    place: String,
    /// Who sees it.
    source: String,
    status: Status,
    found: Found,
    reason: Option<String>,
    declared: Option<Value>,
    live: Option<Value>,
}

/// The guesses, for people.
struct Guesses;

impl Show for Guesses {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        let rows: Vec<Vec<String>> =
            declared::GUESSES.iter().map(|(name, what)| vec![(*name).to_owned(), (*what).to_owned()]).collect();
        columns(&rows, 0).iter().try_for_each(|line| writeln!(page, "{line}"))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let guesses: Vec<Json> =
            declared::GUESSES.iter().map(|(name, what)| json!({"name": name, "takesForTheSame": what})).collect();
        let all = json!({"schema": "driftline.heuristics/v1", "heuristics": guesses});
        Ok(serde_json::to_writer_pretty(out, &all)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut each = declared::GUESSES.iter();
        each.try_for_each(|(name, what)| writeln!(out, "{}", json!({"name": name, "takesForTheSame": what})))
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let heading = vec!["heuristic".to_owned(), "takes for the same".to_owned()];
        let rows = declared::GUESSES.iter().map(|(name, what)| vec![(*name).to_owned(), (*what).to_owned()]);
        markdown_table(&std::iter::once(heading).chain(rows).collect::<Vec<_>>(), out)
    }
}

/// All that one source declares, against what another sees.
fn sources(
    settings: &Settings,
    declared: &str,
    live: &str,
    judge: &Judge<'_>,
) -> CommandResult<(Vec<Compared>, Vec<Source>)> {
    let store = settings.open_store()?;
    let names = parse_sources(&[declared.to_owned(), live.to_owned()])?;
    let side = |at: usize| -> CommandResult<Vec<survey::Surveyed>> {
        let found = survey(&store, &names[at..=at], None)?;
        match found.is_empty() {
            true => Err(store.catalog().no_state(&names[at]).into()),
            false => Ok(found),
        }
    };
    let (first, second) = (side(0)?, side(1)?);
    let keys = |surveyed: &[survey::Surveyed], is_live: bool| -> Vec<_> {
        let all = surveyed.iter().enumerate().flat_map(|(at, one)| one.resources.keys().map(move |key| (at, key)));
        all.filter(|(_, key)| is_a_thing(&key.kind)).map(|(at, key)| (key.clone(), (is_live, at))).collect()
    };
    let mut compared = Vec::new();
    for thing in identity::things(keys(&first, false).into_iter().chain(keys(&second, true))) {
        let Some((key, (_, at))) = thing.iter().find(|(_, (is_live, _))| !is_live) else { continue };
        let seen: Vec<_> = thing.iter().filter(|(_, (is_live, _))| *is_live).collect();
        let expected = first[*at].resources[key].clone();
        if seen.is_empty() {
            let why = survey::unseen(second.iter(), &key.kind, key.place.as_str(), survey::sees_everything);
            let mut one = judge.resource(&key.kind, &key.id, Some(expected), None);
            (one.place, one.source) = (key.place.to_string(), names[1].to_string());
            if why.is_some() {
                (one.status, one.reason) = (Status::NotChecked, why);
            }
            compared.push(one);
            continue;
        }
        for (other, (_, at)) in seen {
            let live = second[*at].resources[other].clone();
            let other_form = is_in_another_form(&expected, &live);
            let mut one = judge.resource(&key.kind, &key.id, Some(expected.clone()), Some(live));
            if other_form {
                one.found = Found::default();
                one.status = Status::NotChecked;
                one.reason = Some(format!(
                    "the live source writes it in a form of its own; `driftline observe cloud-control --types {}` reads \
                     it in CloudFormation's",
                    key.kind
                ));
            }
            (one.place, one.source) = (key.place.to_string(), names[1].to_string());
            compared.push(one);
        }
    }
    let stale_after = settings.config.stale_after.unwrap_or(DEFAULT_STALE_AFTER);
    let side = |one: &survey::Surveyed, declares: bool| Source {
        name: one.stream.to_string(),
        expected: declares.then_some(one.version),
        version: (!declares).then_some(one.version),
        taken_at: Some(one.taken_at),
        stale: settings.now.duration_since(one.taken_at) > stale_after,
        extents: one.coverage.counts(),
    };
    let sides = first.iter().map(|one| side(one, true)).chain(second.iter().map(|one| side(one, false)));
    Ok((compared, sides.collect()))
}

/// Whether the live side has none of the declared properties, and nothing either that is spelled as CloudFormation
/// spells them: `handler` for `Handler`, or a mere sighting. Such a resource can be neither in sync nor modified.
fn is_in_another_form(declared: &Value, live: &Value) -> bool {
    let (Some(declared), Some(live)) = (declared.as_object(), live.as_object()) else { return false };
    let capital = |name: &String| name.starts_with(|first: char| first.is_ascii_uppercase());
    declared.keys().any(capital) && !live.keys().any(capital) && !declared.keys().any(|name| live.contains_key(name))
}

#[derive(Deserialize)]
struct Line {
    r#type: String,
    declared: Value,
    /// Null is gone; what is not told was not looked at.
    #[serde(default = "not_told")]
    live: Value,
}

/// Stands for a side that nobody looked at; no JSON that is read here is this.
fn not_told() -> Value {
    Value::from([(declared::UNKNOWN, Value::Null)])
}

/// One line in, one line out, whatever is in it.
fn batch(file: &Path, judge: &Judge<'_>) -> CommandResult<()> {
    let input: Box<dyn BufRead> = if file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let opened = File::open(file)
            .map_err(|error| CommandError::because(format!("cannot read `{}`", file.display()), &error))?;
        Box::new(BufReader::new(opened))
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in input.lines() {
        let line = line.map_err(|error| CommandError::because("reading the batch failed", &error))?;
        if line.trim().is_empty() {
            continue;
        }
        let answer = match serde_json::from_str::<Line>(&line) {
            Ok(line) if line.live == not_told() => {
                json!({"status": Status::NotChecked, "differences": [], "excused": [], "type": line.r#type})
            }
            Ok(Line { r#type, declared, live }) => {
                let live = Some(live).filter(|live| *live != Value::Null);
                judge.resource(&r#type, "", Some(declared), live).json()
            }
            Err(error) => json!({"error": {"message": error.to_string()}}),
        };
        writeln!(out, "{answer}").map_err(|error| CommandError::because("writing failed", &error))?;
    }
    out.flush().map_err(|error| CommandError::because("writing failed", &error))
}

/// A value as CloudFormation tells it: a scalar as it is, anything else as JSON, and what is not there as null.
fn told(value: Option<&Value>) -> String {
    match value {
        None => "null".into(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_json(),
    }
}

fn json_difference(difference: &Difference) -> Json {
    json!({
        "PropertyPath": difference.path.to_string(),
        "ExpectedValue": told(difference.expected.as_ref()),
        "ActualValue": told(difference.actual.as_ref()),
        "DifferenceType": difference.what,
    })
}

fn json_excuse(excuse: &Excuse) -> Json {
    let mut json = json!({
        "path": excuse.path.to_string(), "rule": excuse.rule, "origin": excuse.tier, "tier": excuse.tier,
    });
    if let Some(detail) = &excuse.detail {
        json["detail"] = detail.as_str().into();
    }
    json
}

fn excuse_of(excuse: &Excuse) -> telling::Excuse {
    telling::Excuse {
        path: excuse.path.to_string(),
        before: String::new(),
        after: String::new(),
        rule: excuse.rule.to_owned(),
        origin: tier_name(excuse.tier),
        reason: excuse.detail.clone().unwrap_or_else(|| "it means the same".into()),
    }
}

fn tier_name(tier: declared::Tier) -> String {
    serde_json::to_value(tier).ok().and_then(|tier| tier.as_str().map(ToOwned::to_owned)).unwrap_or_default()
}

impl Compared {
    /// In the words of `drift`.
    fn verdict(&self) -> (Verdict, Option<DriftKind>) {
        match self.status {
            Status::InSync => (Verdict::InSync, None),
            Status::Modified => (Verdict::Drifted, Some(DriftKind::Modified)),
            Status::Deleted => (Verdict::Drifted, Some(DriftKind::Deleted)),
            Status::NotChecked => (Verdict::NotChecked, None),
        }
    }

    fn changes(&self) -> Vec<Change> {
        let change = |one: &Difference| Change {
            path: one.path.clone(),
            expected: one.expected.clone(),
            actual: one.actual.clone(),
        };
        self.found.differences.iter().map(change).collect()
    }

    fn rate<'s>(&self, rater: &Rater<'s>) -> CommandResult<Option<Rating<'s>>> {
        let (status, kind) = self.verdict();
        let key = KeyRef { kind: &self.kind, place: &self.place, id: &self.id };
        rater.rate(&About { key, source: &self.source, status, kind }, &self.changes())
    }

    fn told<'t>(&'t self, rating: Option<&Rating<'t>>) -> Told<'t> {
        let (status, drift) = self.verdict();
        let grade = |at: usize| rating.and_then(|rating| rating.changes.get(at)).copied();
        let changes = self.changes();
        Told {
            id: if self.id.is_empty() { &self.kind } else { &self.id },
            kind: &self.kind,
            place: &self.place,
            source: &self.source,
            status,
            drift,
            severity: rating.map(|rating| rating.worst.level),
            why: rating.map_or("", |rating| rating.worst.reason),
            since: None,
            changes: changes.iter().enumerate().map(|(at, change)| telling::line(change, grade(at), None)).collect(),
            excuses: self.found.excused.iter().map(excuse_of).collect(),
            reason: self.reason.as_deref(),
            gates: status == Verdict::Drifted,
            state: None,
        }
    }

    fn json(&self) -> Json {
        let mut json = json!({
            "status": self.status,
            "differences": self.found.differences.iter().map(json_difference).collect::<Vec<_>>(),
            "excused": self.found.excused.iter().map(json_excuse).collect::<Vec<_>>(),
        });
        if !self.id.is_empty() {
            json["canonicalId"] = self.id.as_str().into();
        }
        if let Some(reason) = &self.reason {
            json["reason"] = reason.as_str().into();
        }
        json["type"] = self.kind.as_str().into();
        json
    }

    /// As `DescribeStackResourceDrifts` tells it.
    fn cfn(&self) -> Json {
        let mut json = json!({"ResourceType": self.kind, "StackResourceDriftStatus": self.status});
        if !self.id.is_empty() {
            json["PhysicalResourceId"] = self.id.as_str().into();
        }
        if let (Some(declared), Some(live)) = (&self.declared, &self.live) {
            json["ExpectedProperties"] = declared.to_json().into();
            json["ActualProperties"] = live.to_json().into();
        }
        if self.status == Status::Modified {
            json["PropertyDifferences"] = self.found.differences.iter().map(json_difference).collect();
        }
        if let Some(reason) = &self.reason {
            json["DriftStatusReason"] = reason.as_str().into();
        }
        json
    }
}

struct Report<'s> {
    compared: Vec<Compared>,
    all: bool,
    /// How much each matters, in the same order.
    ratings: Vec<Option<Rating<'s>>>,
    sides: Vec<Source>,
    heading: String,
    now: Timestamp,
}

impl Report<'_> {
    /// For the formats that `drift` has, too.
    fn telling(&self) -> Telling<'_> {
        let mut tally = Tally::default();
        let mut by_type: BTreeMap<&str, Tally> = BTreeMap::new();
        let mut telling_of = Vec::new();
        let (mut excuses, mut excused_of) = (Vec::new(), Vec::new());
        for (one, rating) in self.compared.iter().zip(&self.ratings) {
            let told = one.told(rating.as_ref());
            tally.add(told.status);
            by_type.entry(&one.kind).or_default().add(told.status);
            if !one.found.excused.is_empty() && excuses.len() < EXCUSED {
                let room = EXCUSED - excuses.len();
                let at = excused_of.len();
                excuses.extend(one.found.excused.iter().take(room).map(|excuse| (at, excuse_of(excuse))));
                excused_of.push(one.told(None));
            }
            if told.status != Verdict::InSync || self.all {
                telling_of.push(told);
            }
        }
        telling_of.sort_by_key(|told| std::cmp::Reverse(told.severity));
        let side = |one: &Source| Source { name: one.name.clone(), ..*one };
        Telling {
            title: "Comparison",
            heading: self.heading.clone(),
            exact: self.heading.clone(),
            result: self.result(),
            now: self.now,
            tally,
            severities: Counts::of(self.ratings.iter().flatten().map(|rating| rating.worst.level)),
            excused: self.compared.iter().map(|one| one.found.excused.len()).sum(),
            sources: self.sides.iter().map(side).collect(),
            by_type,
            findings: telling_of,
            excuses,
            excused_of,
            limit: usize::MAX,
        }
    }

    fn of(&self, status: Status) -> usize {
        self.compared.iter().filter(|one| one.status == status).count()
    }

    fn result(&self) -> String {
        let excused: usize = self.compared.iter().map(|one| one.found.excused.len()).sum();
        let guesses = self.compared.iter().flat_map(|one| &one.found.excused);
        let guesses = guesses.filter(|one| one.tier == declared::Tier::Heuristic).count();
        format!(
            "result: {} modified, {} deleted, {} not checked, {} in sync; {} explained, {guesses} of them by heuristics",
            self.of(Status::Modified),
            self.of(Status::Deleted),
            self.of(Status::NotChecked),
            self.of(Status::InSync),
            count(excused, "difference"),
        )
    }
}

fn line_of(difference: &Difference) -> String {
    let side = |value: Option<&Value>| value.map_or_else(|| "absent".to_owned(), Value::to_json);
    let path = difference.path.to_string();
    format!("{path}: {} -> {}", side(difference.expected.as_ref()), side(difference.actual.as_ref()))
}

impl Show for Report<'_> {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        for one in &self.compared {
            let (word, style) = match one.status {
                Status::InSync => ("in sync", GREEN),
                Status::Modified => ("modified", YELLOW),
                Status::Deleted => ("deleted", RED),
                Status::NotChecked => ("not checked", YELLOW),
            };
            if one.status == Status::InSync && !self.all && self.compared.len() > 1 {
                continue;
            }
            writeln!(page, "{} {} {}", page.paint(style, word), visible(&one.kind), visible(&one.id))?;
            for difference in &one.found.differences {
                writeln!(page, "  {} {}", page.paint(YELLOW, "~"), visible(&line_of(difference)))?;
            }
            if let Some(reason) = &one.reason {
                writeln!(page, "  why: {}", visible(reason))?;
            }
            for excuse in one.found.excused.iter().filter(|_| self.all || self.compared.len() == 1) {
                let detail = excuse.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
                let line = format!("{} is the same ({}, {}){detail}", excuse.path, tier_name(excuse.tier), excuse.rule);
                writeln!(page, "  {}", page.paint(DIM, &line))?;
            }
        }
        writeln!(page, "{}", page.paint(BOLD, &self.result()))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let resources: Vec<Json> = self.compared.iter().map(Compared::json).collect();
        let all = json!({"schema": "driftline.comparison/v1", "resources": resources});
        Ok(serde_json::to_writer_pretty(out, &all)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        self.compared.iter().try_for_each(|one| writeln!(out, "{}", one.json()))
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(markdown::page(&self.telling(), markdown::COMMENT).as_bytes())
    }

    fn summary(&self, room: usize) -> Option<String> {
        Some(markdown::page(&self.telling(), room))
    }

    fn draw(&self, format: Format) -> Option<String> {
        if format != Format::Cfn {
            return telling::draw(&self.telling(), format);
        }
        let drifts: Vec<Json> = self.compared.iter().map(Compared::cfn).collect();
        serde_json::to_string_pretty(&json!({"StackResourceDrifts": drifts})).ok().map(|text| text + "\n")
    }
}
