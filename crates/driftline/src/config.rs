//! The configuration file: what is written in it, and what that means.
//!
//! `Raw…` is what the file says; everything else is checked and resolved, once, here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use driftline_core::rule::{Glob, Subject, Transform};
use driftline_core::seal::SecretPath;
use driftline_core::severity::SeverityError;
use driftline_core::{
    BaselineName, Equivalence, Origin, Pattern, Pointer, Rule, RuleBook, RuleKind, SourceName, Value,
};
use driftline_sources::declared::{Engine, GUESSES, TransformRule};
use driftline_sources::mapped::{self, Mapping};
use driftline_sources::normalize::Model;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::cluster::Objects;
use crate::compare::{Heuristics, OwnTransform, own_transform};
use crate::error::{CommandError, CommandResult};
use crate::fleet_args::{Fleet, RawFleet};
use crate::live_args::LiveArgs;
use crate::severity::{Condition, OwnSeverity};
use crate::surroundings::text_variable;
use crate::time::parse_duration;
use crate::watch::plan::{Notify, RawNotify, RawWatch, Watch, interval, resolve_notify, resolve_watch};

pub(crate) const FILE_NAME: &str = "driftline.toml";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    store: Option<PathBuf>,
    baseline: Option<String>,
    stale_after: Option<String>,
    #[serde(default)]
    retention: RawRetention,
    #[serde(default)]
    source: Vec<RawSource>,
    #[serde(default)]
    rule: Vec<RawRule>,
    #[serde(default)]
    ignore: Vec<RawIgnore>,
    #[serde(default)]
    severity: Vec<RawSeverity>,
    #[serde(default)]
    seal: Vec<RawSeal>,
    #[serde(default)]
    swamp: RawSwamp,
    #[serde(default)]
    transform: Vec<RawTransform>,
    #[serde(default)]
    heuristics: RawHeuristics,
    #[serde(default)]
    watch: RawWatch,
    #[serde(default)]
    notify: Vec<RawNotify>,
    #[serde(default)]
    fleet: RawFleet,
    #[serde(default)]
    query: RawQuery,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawQuery {
    folder: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHeuristics {
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    not_for: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTransform {
    r#type: Option<String>,
    #[serde(rename = "propertyTransform")]
    property_transform: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSwamp {
    #[serde(default)]
    model: Vec<RawSwampModel>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSwampModel {
    model: String,
    spec: Option<String>,
    source: String,
    items: Option<String>,
    id: Option<String>,
    r#type: Option<String>,
    type_name: Option<String>,
    account: Option<String>,
    region: Option<String>,
    snapshot: Option<String>,
    taken_at: Option<String>,
    #[serde(default)]
    complete: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRetention {
    keep: Option<String>,
    keep_last: Option<usize>,
    grace: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSource {
    name: String,
    file: Option<PathBuf>,
    command: Option<Vec<String>>,
    model: Option<String>,
    documents: Option<Vec<String>>,
    account: Option<String>,
    partition: Option<String>,
    aws: Option<LiveArgs>,
    kubernetes: Option<RawKubernetes>,
    every: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawKubernetes {
    documents: Vec<String>,
    context: Option<String>,
    cluster: Option<String>,
    namespaces: Vec<String>,
    all_namespaces: bool,
    kinds: Vec<String>,
    owned: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    kind: String,
    r#type: Option<String>,
    place: Option<String>,
    id: Option<String>,
    source: Option<String>,
    path: String,
    value: Option<Value>,
    values: Option<Vec<Value>>,
    form: Option<String>,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawIgnore {
    r#type: Option<String>,
    place: Option<String>,
    id: Option<String>,
    source: Option<String>,
    path: Option<String>,
    reason: Option<String>,
    owner: Option<String>,
    expires: Option<toml::value::Datetime>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSeverity {
    r#type: Option<String>,
    place: Option<String>,
    id: Option<String>,
    source: Option<String>,
    path: Option<String>,
    when: Option<String>,
    level: String,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSeal {
    r#type: String,
    path: String,
}

/// What the file means.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub path: Option<PathBuf>,
    pub store: Option<PathBuf>,
    pub baseline: Option<BaselineName>,
    pub stale_after: Option<SignedDuration>,
    pub keep: Option<SignedDuration>,
    pub keep_last: Option<usize>,
    pub grace: Option<SignedDuration>,
    pub sources: Vec<ConfiguredSource>,
    pub rules: Vec<UserRule>,
    pub severities: Vec<OwnSeverity>,
    pub seal: Vec<SecretPath>,
    pub transforms: Vec<OwnTransform>,
    pub heuristics: Heuristics,
    pub swamp_models: Vec<SwampModel>,
    /// Where queries with a name of the user's own are.
    #[cfg_attr(not(feature = "sql"), expect(dead_code, reason = "only `query` reads them"))]
    pub queries: Option<PathBuf>,
    pub watch: Watch,
    pub notify: Vec<Notify>,
    pub fleet: Fleet,
}

/// How to read the data of a swamp model that Driftline does not know.
#[derive(Debug)]
pub(crate) struct SwampModel {
    /// The model's name or the path of its type.
    pub model: Glob,
    pub spec: Option<Glob>,
    pub source: SourceName,
    pub mapping: Mapping,
}

#[derive(Debug)]
pub(crate) struct ConfiguredSource {
    pub name: SourceName,
    pub from: From,
    /// How often `watch` runs it, if it says so itself.
    #[cfg_attr(
        not(feature = "notify"),
        expect(dead_code, reason = "checked in every build; only watching acts on it")
    )]
    pub every: Option<std::time::Duration>,
}

#[derive(Debug)]
pub(crate) enum From {
    File(PathBuf),
    Command(Vec<String>),
    Documents(Documents),
    Live(Box<Live>),
    Kubernetes(Objects),
}

/// AWS itself, asked by one of the live observers.
#[derive(Debug)]
pub(crate) struct Live {
    pub observer: String,
    pub args: LiveArgs,
}

/// Documents that one of the known observers wrote.
#[derive(Debug)]
pub(crate) struct Documents {
    pub model: Model,
    pub named: Vec<String>,
    pub account: Option<String>,
    pub partition: String,
}

/// A rule or ignore entry of the user's.
#[derive(Debug, Clone)]
pub(crate) struct UserRule {
    pub rule: Rule,
    /// How messages name it, e.g. `driftline.toml [[ignore]] 2`.
    pub name: String,
    pub owner: Option<String>,
    pub expires: Option<Date>,
}

impl UserRule {
    pub(crate) fn has_expired(&self, now: Timestamp) -> bool {
        let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
        self.expires.is_some_and(|last| last < today)
    }
}

/// The whole configuration as a text in the environment, where there is no file: tasks of ECS have none.
const IN_ENVIRONMENT: &str = "DRIFTLINE_CONFIG_TEXT";

/// Reads the file that is named, the text in the environment, or the file that lies here; without any, nothing is
/// configured.
pub(crate) fn load(named: Option<&Path>) -> CommandResult<Config> {
    // A server that reads it again names it as it was told where it comes from.
    if named.is_none_or(|path| path == Path::new(IN_ENVIRONMENT))
        && let Some(text) = text_variable(IN_ENVIRONMENT)
    {
        let about = |error: CommandError| error.about(format!("the configuration in {IN_ENVIRONMENT} is not usable"));
        return parse(&text, Path::new(IN_ENVIRONMENT)).map_err(about);
    }
    let (path, must_exist) = match named {
        Some(path) => (path.to_owned(), true),
        None => (PathBuf::from(FILE_NAME), false),
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => return Ok(Config::default()),
        Err(error) => {
            return Err(CommandError::because(format!("cannot read the configuration `{}`", path.display()), &error));
        }
    };
    parse(&text, &path).map_err(|error| error.about(format!("the configuration `{}` is not usable", path.display())))
}

fn parse(text: &str, path: &Path) -> CommandResult<Config> {
    let raw: RawConfig = toml::from_str(text).map_err(|error| CommandError::laid_out(error.to_string().trim_end()))?;
    let file = path.display();
    let duration = |name: &str, text: Option<String>| {
        text.map(|text| parse_duration(&text).map_err(|error| error.about(format!("`{name}`")))).transpose()
    };
    let baseline = raw.baseline.map(|name| name.parse::<BaselineName>());
    let mut config = Config {
        path: Some(path.to_owned()),
        store: raw.store,
        baseline: baseline.transpose().map_err(|error| CommandError::new(error.to_string()))?,
        stale_after: duration("stale_after", raw.stale_after)?,
        keep: duration("retention.keep", raw.retention.keep)?,
        keep_last: raw.retention.keep_last,
        grace: duration("retention.grace", raw.retention.grace)?,
        queries: raw.query.folder,
        ..Config::default()
    };
    let mut names = BTreeSet::new();
    for (at, source) in raw.source.into_iter().enumerate() {
        let name: SourceName = source.name.parse().map_err(|error: driftline_core::NameError| {
            CommandError::new(error.to_string()).about(format!("[[source]] {}", at + 1))
        })?;
        if !names.insert(name.clone()) {
            return Err(CommandError::new(format!("two entries of [[source]] are named `{name}`")));
        }
        let about = |error: CommandError| error.about(format!("the source `{name}`"));
        let every = source.every.as_deref().map(interval).transpose().map_err(about)?;
        let from = origin(source).map_err(about)?;
        config.sources.push(ConfiguredSource { name, from, every });
    }
    for (at, rule) in raw.rule.into_iter().enumerate() {
        let name = format!("{file} [[rule]] {}", at + 1);
        config.rules.push(resolve_rule(rule, name.clone()).map_err(|error| error.about(name))?);
    }
    for (at, ignore) in raw.ignore.into_iter().enumerate() {
        let name = format!("{file} [[ignore]] {}", at + 1);
        config.rules.push(resolve_ignore(ignore, name.clone()).map_err(|error| error.about(name))?);
    }
    for (at, severity) in raw.severity.into_iter().enumerate() {
        let name = format!("{file} [[severity]] {}", at + 1);
        config.severities.push(resolve_severity(severity, name.clone()).map_err(|error| error.about(name))?);
    }
    for name in &raw.heuristics.without {
        if !GUESSES.iter().any(|(known, _)| known == name) {
            return Err(CommandError::new(format!("`{name}` is not a heuristic"))
                .hint("`driftline compare --list-heuristics` lists them"));
        }
    }
    config.heuristics = Heuristics {
        without: raw.heuristics.without,
        not_for: raw.heuristics.not_for.into_iter().map(Glob::new).collect(),
    };
    for (at, transform) in raw.transform.into_iter().enumerate() {
        let name = format!("{file} [[transform]] {}", at + 1);
        for (path, expression) in &transform.property_transform {
            let own = own_transform(transform.r#type.as_deref(), path, expression, &name);
            config.transforms.push(own.map_err(|error| error.about(name.clone()))?);
        }
    }
    for (at, seal) in raw.seal.into_iter().enumerate() {
        let path = pattern(&seal.path).map_err(|error| error.about(format!("{file} [[seal]] {}", at + 1)))?;
        config.seal.push(SecretPath { kind: Glob::new(seal.r#type), path });
    }
    for (at, model) in raw.swamp.model.into_iter().enumerate() {
        let name = format!("{file} [[swamp.model]] {}", at + 1);
        config.swamp_models.push(resolve_swamp_model(model).map_err(|error| error.about(name))?);
    }
    config.watch = resolve_watch(raw.watch)?;
    config.fleet = raw.fleet.resolve()?;
    for (at, notify) in raw.notify.into_iter().enumerate() {
        let name = format!("{file} [[notify]] {}", at + 1);
        let notify = resolve_notify(notify).map_err(|error| error.about(name))?;
        if config.notify.iter().any(|known| known.name == notify.name) {
            return Err(CommandError::new(format!("two entries of [[notify]] are named `{}`", notify.name))
                .hint("give each a `name` of its own"));
        }
        config.notify.push(notify);
    }
    Ok(config)
}

fn origin(source: RawSource) -> CommandResult<From> {
    let of_documents = source.model.is_some() && source.documents.is_some();
    if !of_documents && (source.account.is_some() || source.partition.is_some()) {
        return Err(CommandError::new("`account` and `partition` go with `model` and `documents`"));
    }
    if let Some(args) = source.aws {
        return match (source.file, source.command, source.model, source.documents) {
            (None, None, Some(observer), None) => Ok(From::Live(Box::new(Live { observer, args }))),
            _ => Err(CommandError::new("`aws` goes with `model`, and not with `file`, `command` or `documents`")),
        };
    }
    if let Some(raw) = source.kubernetes {
        if source.file.is_some()
            || source.command.is_some()
            || source.model.is_some()
            || source.documents.is_some()
            || source.aws.is_some()
        {
            return Err(CommandError::new("`kubernetes` stands alone; lists go into it as `documents`"));
        }
        let objects = Objects {
            documents: raw.documents,
            context: raw.context,
            cluster: raw.cluster,
            namespaces: raw.namespaces,
            all_namespaces: raw.all_namespaces,
            kinds: raw.kinds,
            owned: raw.owned,
        };
        objects.check()?;
        return Ok(From::Kubernetes(objects));
    }
    match (source.file, source.command, source.model, source.documents) {
        (Some(file), None, None, None) => Ok(From::File(file)),
        (None, Some(command), None, None) if !command.is_empty() => Ok(From::Command(command)),
        (None, None, Some(model), Some(documents)) if !documents.is_empty() => {
            let names = Model::ALL.map(Model::name).join(", ");
            let known = Model::ALL.into_iter().find(|known| known.name() == model);
            let model = known.ok_or_else(|| {
                CommandError::new(format!("`{model}` is not a model")).hint(format!("the models are {names}"))
            })?;
            let partition = source.partition.unwrap_or_else(|| "aws".into());
            Ok(From::Documents(Documents { model, named: documents, account: source.account, partition }))
        }
        _ => Err(CommandError::new(
            "it needs either `file`, or `command`, or `model` with `documents` or `aws`, or `kubernetes`",
        )),
    }
}

fn pattern(text: &str) -> CommandResult<Pattern> {
    text.parse().map_err(|error: driftline_core::pointer::PointerError| CommandError::new(error.to_string()))
}

fn resolve_swamp_model(raw: RawSwampModel) -> CommandResult<SwampModel> {
    let pointer = |name: &str, text: Option<String>| -> CommandResult<Option<Pointer>> {
        let parse = |text: String| {
            text.parse().map_err(|error: driftline_core::pointer::PointerError| {
                CommandError::new(error.to_string()).about(format!("`{name}`"))
            })
        };
        text.map(parse).transpose()
    };
    let kind = match (raw.r#type, raw.type_name) {
        (Some(at), None) => {
            mapped::Kind::At(pointer("type", Some(at))?.expect("a pointer that is given is parsed or refused"))
        }
        (None, Some(name)) if !name.is_empty() => mapped::Kind::Named(name),
        _ => return Err(CommandError::new("it needs either `type` (a JSON pointer) or `type_name`")),
    };
    let mapping = Mapping {
        items: pointer("items", raw.items)?,
        id: pointer("id", raw.id)?,
        kind,
        account: pointer("account", raw.account)?,
        region: pointer("region", raw.region)?,
        snapshot: pointer("snapshot", raw.snapshot)?,
        taken_at: pointer("taken_at", raw.taken_at)?,
        complete: raw.complete,
    };
    if mapping.id.is_none() && mapping.items.is_none() {
        return Err(CommandError::new("it needs `id`: only the members of `items` have names of their own"));
    }
    let source = raw.source.parse().map_err(|error: driftline_core::NameError| CommandError::new(error.to_string()))?;
    Ok(SwampModel { model: Glob::new(raw.model), spec: raw.spec.map(Glob::new), source, mapping })
}

fn reason(text: Option<String>) -> CommandResult<String> {
    match text {
        Some(text) if !text.trim().is_empty() => Ok(text),
        _ => Err(CommandError::new("it has no `reason`; the next person needs one")),
    }
}

fn resolve_rule(raw: RawRule, name: String) -> CommandResult<UserRule> {
    let subject = Subject {
        kind: raw.r#type.map(Glob::new),
        place: raw.place.map(Glob::new),
        id: raw.id.map(Glob::new),
        source: raw.source.map(Glob::new),
    };
    let kind = match (raw.kind.as_str(), raw.value, raw.values, raw.form.as_deref()) {
        ("ignore", None, None, None) => RuleKind::Ignore,
        ("volatile", None, None, None) => RuleKind::Volatile,
        ("unordered", None, None, None) => RuleKind::Unordered,
        ("default", Some(value), None, None) => RuleKind::Default(value),
        ("default", ..) => return Err(CommandError::new("a `default` rule needs `value` and nothing else")),
        ("equivalent", None, Some(values), None) if values.len() > 1 => {
            RuleKind::Equivalent(Equivalence::Values(values))
        }
        ("equivalent", None, None, Some("case")) => RuleKind::Equivalent(Equivalence::Case),
        ("equivalent", None, None, Some("spelling")) => RuleKind::Equivalent(Equivalence::Spelling),
        ("equivalent", None, None, Some("empty")) => RuleKind::Equivalent(Equivalence::Empty),
        ("equivalent", ..) => {
            return Err(CommandError::new(
                "an `equivalent` rule needs either `values` (two or more) or `form` (case, spelling or empty)",
            ));
        }
        ("ignore" | "volatile" | "unordered", ..) => {
            return Err(CommandError::new(format!("a rule of kind `{}` takes no value, values or form", raw.kind)));
        }
        (other, ..) => {
            return Err(CommandError::new(format!("`{other}` is not a kind of rule"))
                .hint("the kinds are ignore, volatile, unordered, default and equivalent"));
        }
    };
    let path = pattern(&raw.path)?;
    let excuses_all = matches!(kind, RuleKind::Ignore | RuleKind::Volatile);
    finish(
        Rule { subject, path, kind, origin: Origin::User(name.clone()), reason: reason(raw.reason)? },
        name,
        excuses_all,
    )
}

fn resolve_ignore(raw: RawIgnore, name: String) -> CommandResult<UserRule> {
    let subject = Subject {
        kind: raw.r#type.map(Glob::new),
        place: raw.place.map(Glob::new),
        id: raw.id.map(Glob::new),
        source: raw.source.map(Glob::new),
    };
    let path = pattern(raw.path.as_deref().unwrap_or(""))?;
    let reason = reason(raw.reason)?;
    let expires = match raw.expires {
        None => None,
        Some(date) => Some(date.to_string().get(..10).and_then(|text| text.parse::<Date>().ok()).ok_or_else(|| {
            CommandError::new(format!("`expires = {date}` is not a date")).hint("write it as `expires = 2026-12-31`")
        })?),
    };
    let rule = Rule { subject, path, kind: RuleKind::Ignore, origin: Origin::User(name.clone()), reason };
    let mut entry = finish(rule, name, true)?;
    entry.owner = raw.owner;
    entry.expires = expires;
    Ok(entry)
}

fn resolve_severity(raw: RawSeverity, name: String) -> CommandResult<OwnSeverity> {
    let subject = Subject {
        kind: raw.r#type.map(Glob::new),
        place: raw.place.map(Glob::new),
        id: raw.id.map(Glob::new),
        source: raw.source.map(Glob::new),
    };
    let level = raw.level.parse().map_err(|error: SeverityError| CommandError::new(error.to_string()))?;
    let path = raw.path.as_deref().map(pattern).transpose()?;
    let when = raw.when.as_deref().map(Condition::new).transpose()?;
    let everywhere = path.as_ref().is_none_or(Pattern::names_everything);
    if subject.matches_everything() && everywhere && when.is_none() {
        return Err(CommandError::new("it matches everything, so nothing would be worse than anything else")
            .hint("name a type, place, id, source or path, or say `when`"));
    }
    Ok(OwnSeverity { name, subject, path, when, level, reason: reason(raw.reason)? })
}

fn finish(rule: Rule, name: String, excuses_all: bool) -> CommandResult<UserRule> {
    if excuses_all && rule.subject.matches_everything() && rule.path.names_everything() {
        return Err(CommandError::new("it matches everything, so nothing would ever be reported")
            .hint("name a type, place, id or path"));
    }
    Ok(UserRule { rule, name, owner: None, expires: None })
}

/// The rules in force: the built-in ones, then the user's that have not expired.
#[derive(Debug)]
pub(crate) struct Rules {
    pub book: RuleBook,
    /// For each rule of the book the user's entry it came from.
    users: Vec<Option<usize>>,
}

impl Config {
    pub(crate) fn rules(&self, now: Timestamp) -> Rules {
        let mut rules = driftline_sources::builtin::rules();
        let mut users = vec![None; rules.len()];
        for (at, entry) in self.rules.iter().enumerate() {
            if !entry.has_expired(now) {
                rules.push(entry.rule.clone());
                users.push(Some(at));
            }
        }
        let engine = Arc::new(Engine::default());
        for own in &self.transforms {
            let transform = TransformRule { transform: own.transform.clone(), engine: engine.clone() };
            rules.push(Rule {
                subject: Subject { kind: own.kind.clone().map(Glob::new), ..Subject::default() },
                path: own.transform.path.clone(),
                kind: RuleKind::Transform(Transform(Arc::new(transform))),
                origin: Origin::User(own.transform.source.clone()),
                reason: format!("the same in another form: {}", own.transform.expression),
            });
            users.push(None);
        }
        Rules { book: RuleBook::new(rules), users }
    }
}

impl Rules {
    /// The user's entry that a rule of the book came from.
    #[cfg(feature = "web")]
    pub(crate) fn entry<'c>(&self, config: &'c Config, rule: usize) -> Option<&'c UserRule> {
        self.users.get(rule).copied().flatten().map(|entry| &config.rules[entry])
    }

    /// The user's entries that none of these uses is of.
    pub(crate) fn unused<'c>(
        &self,
        config: &'c Config,
        uses: &std::collections::BTreeMap<usize, u64>,
    ) -> Vec<&'c UserRule> {
        let unused = |(number, user): (usize, &Option<usize>)| match user {
            Some(entry) if !uses.contains_key(&number) => Some(&config.rules[*entry]),
            _ => None,
        };
        self.users.iter().enumerate().filter_map(unused).collect()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text, Path::new("driftline.toml")).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_cannot_work_is_refused_when_the_file_is_read() {
        for (text, message) in [
            ("[[source]]\nname = \"latest\"\nfile = \"x\"", "`latest` is reserved"),
            ("[[source]]\nname = \"Prod\"\nfile = \"x\"", "`P` is not allowed"),
            ("baseline = \"all\"", "`all` is reserved"),
            ("[[source]]\nname = \"a\"", "needs either `file`, or `command`"),
            ("[[source]]\nname = \"a\"\nfile = \"x\"\n[[source]]\nname = \"a\"\nfile = \"y\"", "two entries"),
            ("[[ignore]]\nreason = \"x\"", "matches everything"),
            ("[[ignore]]\ntype = \"*\"\npath = \"/**\"\nreason = \"x\"", "matches everything"),
            ("[[ignore]]\ntype = \"A\"", "no `reason`"),
            ("[[ignore]]\ntype = \"A\"\nreason = \"x\"\npath = \"a\"", "not a JSON pointer"),
            ("[[rule]]\nkind = \"ignor\"\npath = \"/a\"\nreason = \"x\"", "not a kind of rule"),
            ("[[rule]]\nkind = \"default\"\npath = \"/a\"\nreason = \"x\"", "needs `value`"),
            ("[[severity]]\nlevel = \"low\"\nreason = \"x\"", "matches everything"),
            ("[[severity]]\npath = \"/**\"\nlevel = \"low\"\nreason = \"x\"", "matches everything"),
            ("[[severity]]\ntype = \"A\"\nlevel = \"urgent\"\nreason = \"x\"", "critical, high, medium, low and info"),
            ("[[severity]]\ntype = \"A\"\nlevel = \"low\"", "no `reason`"),
            ("[[severity]]\ntype = \"A\"\nreason = \"x\"", "missing field `level`"),
            ("[[severity]]\npath = \"a\"\nlevel = \"low\"\nreason = \"x\"", "not a JSON pointer"),
            ("[[severity]]\nwhen = \"actual ==\"\nlevel = \"low\"\nreason = \"x\"", "not a CEL expression"),
            ("[[severity]]\nwhen = \"now == 1\"\nlevel = \"low\"\nreason = \"x\"", "asks for `now`"),
            ("colour = 1", "unknown field"),
            ("stale_after = \"soon\"", "`stale_after`"),
            ("[[swamp.model]]\nmodel = \"m\"\nsource = \"s\"\nid = \"/id\"", "either `type`"),
            ("[[swamp.model]]\nmodel = \"m\"\nsource = \"s\"\ntype_name = \"T\"", "needs `id`"),
            ("[[swamp.model]]\nmodel = \"m\"\nsource = \"s\"\nid = \"id\"\ntype_name = \"T\"", "not a JSON pointer"),
            ("[[swamp.model]]\nmodel = \"m\"\nsource = \"S\"\nid = \"/id\"\ntype_name = \"T\"", "`S` is not allowed"),
        ] {
            let found = error(text);
            assert!(found.contains(message), "{text}\n{found}");
        }
    }

    #[test]
    fn an_entry_expires_the_day_after_its_date() {
        let text = "[[ignore]]\ntype = \"A\"\nreason = \"x\"\nowner = \"sre\"\nexpires = 2026-06-29";
        let config = parse(text, Path::new("f")).unwrap();
        let entry = &config.rules[0];
        assert!(!entry.has_expired("2026-06-29T23:59:59Z".parse().unwrap()));
        assert!(entry.has_expired("2026-06-30T00:00:00Z".parse().unwrap()));
        assert_eq!(
            config
                .rules("2026-07-01T00:00:00Z".parse().unwrap())
                .unused(&config, &std::collections::BTreeMap::default())
                .len(),
            0
        );
    }
}
