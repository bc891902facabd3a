//! `log`, `verify`, `gc`, `doctor` and `config view`: the store and the set-up themselves.

use std::io::{self, Write};

use driftline_core::{Span, StreamId, seal::SealKey};
use driftline_store::gc::{Collected, Retention};
use driftline_store::verify::Verified;
use driftline_store::{Store, StoreError, Version};
use jiff::SignedDuration;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::args::{GcArgs, LogArgs};
use crate::drift::{is_named, parse_sources};
use crate::error::{CommandError, CommandResult};
use crate::output::{BOLD, DIM, GREEN, Page, RED, Show, YELLOW, columns, count, markdown_cell, visible};
use crate::seal;
use crate::settings::{
    DEFAULT_BASELINE, DEFAULT_GRACE, DEFAULT_KEEP, DEFAULT_KEEP_LAST, DEFAULT_STALE_AFTER, Settings,
};
use crate::surroundings::text_variable;
use crate::time::{ago, parse_duration};

pub(crate) fn log(settings: &Settings, args: &LogArgs) -> CommandResult<()> {
    let store = settings.open_store()?;
    let named = parse_sources(args.source.as_slice())?;
    let mut versions = Vec::new();
    for (id, stream) in store.catalog().all_streams().filter(|(id, _)| is_named(id, &named)) {
        let most = if args.limit == 0 { usize::MAX } else { args.limit };
        versions.extend(stream.versions().rev().take(most).map(|version| (id.clone(), version.clone())));
    }
    if versions.is_empty()
        && let Some(source) = named.into_iter().next()
    {
        return Err(StoreError::NoSuchStream(source).into());
    }
    settings.printer.print(&Log { settings, versions })
}

/// Of which times every event is known.
fn known(spans: &[Span]) -> String {
    match spans {
        [] => "of no time all of them".to_owned(),
        [only] => format!("all of them from {} to {}", only.from, only.to),
        [first, .., last] => format!("all of them in {} spans from {} to {}", spans.len(), first.from, last.to),
    }
}

struct Log<'s> {
    settings: &'s Settings,
    versions: Vec<(StreamId, Version)>,
}

fn version_json(id: &StreamId, version: &Version) -> Json {
    let bytes: u64 = version.delta.iter().chain(&version.base).map(driftline_store::FileRef::weight).sum();
    json!({
        "source": id,
        "version": version.number,
        "takenAt": version.taken_at,
        "committedAt": version.committed_at,
        "observer": version.observer,
        "resources": version.rows,
        "notSeen": version.unseen,
        "changes": version.changes,
        "extents": {"complete": version.complete_extents, "partial": version.partial_extents},
        "problems": version.problems,
        "bytes": bytes,
        "digest": version.digest,
        "nature": if version.nature.is_state() { "state" } else { "events" },
        "spans": version.nature.spans(),
    })
}

impl Show for Log<'_> {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        let header =
            ["source", "version", "taken", "resources", "new", "changed", "gone", "not seen", "extents", "bytes"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for (id, version) in &self.versions {
            let (complete, partial) = (version.complete_extents, version.partial_extents);
            let extents = if partial == 0 { format!("{complete}") } else { format!("{complete} + {partial} partial") };
            let bytes: u64 = version.delta.iter().chain(&version.base).map(driftline_store::FileRef::weight).sum();
            rows.push(vec![
                id.to_string(),
                format!("v{}", version.number),
                format!("{} ({})", version.taken_at, ago(version.taken_at, self.settings.now)),
                version.rows.to_string(),
                version.changes.add.to_string(),
                version.changes.change.to_string(),
                version.changes.remove.to_string(),
                version.unseen.to_string(),
                extents,
                bytes.to_string(),
            ]);
        }
        for line in columns(&rows, 0) {
            writeln!(page, "{line}")?;
        }
        for (id, version) in &self.versions {
            for problem in &version.problems {
                let line = format!("{id} v{}: {}: {}", version.number, problem.about, problem.message);
                writeln!(page, "{}", page.paint(YELLOW, &line))?;
            }
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let versions: Vec<Json> = self.versions.iter().map(|(id, version)| version_json(id, version)).collect();
        Ok(serde_json::to_writer_pretty(out, &json!({"schema": "driftline.log/v1", "versions": versions}))?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        for (id, version) in &self.versions {
            writeln!(out, "{}", version_json(id, version))?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "| source | version | taken | resources | new | changed | gone |\n|---|---|---|---|---|---|---|"
        )?;
        for (id, version) in &self.versions {
            let changes = version.changes;
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} |",
                markdown_cell(&id.to_string()),
                version.number,
                version.taken_at,
                version.rows,
                changes.add,
                changes.change,
                changes.remove
            )?;
        }
        Ok(())
    }
}

/// A result that is one JSON object and a few lines.
pub(crate) struct Plain {
    pub json: Json,
    pub lines: Vec<String>,
}

impl Show for Plain {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        self.lines.iter().try_for_each(|line| writeln!(page, "{}", visible(line)))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        Ok(serde_json::to_writer_pretty(out, &self.json)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.json)
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        self.lines.iter().try_for_each(|line| writeln!(out, "- {}", markdown_cell(line)))
    }
}

pub(crate) fn verify(settings: &Settings) -> CommandResult<()> {
    let store = settings.open_store()?;
    let Verified { records, versions, files, bytes, rows, orphans } = store.verify()?;
    let mut lines = vec![format!(
        "result: sound; {records} log records, {versions} versions, {rows} rows, {files} files, {bytes} bytes read and re-hashed"
    )];
    if orphans > 0 {
        lines.push(format!(
            "{} belong to no version (a commit was cut off, or retention dropped it); `driftline gc` deletes them",
            count(orphans, "file")
        ));
    }
    let json = json!({
        "schema": "driftline.verified/v1", "sound": true, "records": records, "versions": versions,
        "rows": rows, "files": files, "bytes": bytes, "orphans": orphans,
    });
    settings.printer.print(&Plain { json, lines })
}

pub(crate) fn gc(settings: &Settings, args: &GcArgs) -> CommandResult<()> {
    let given = |text: &Option<String>| text.as_deref().map(parse_duration).transpose();
    let config = &settings.config;
    let retention = Retention {
        keep_for: given(&args.keep)?.or(config.keep).unwrap_or(DEFAULT_KEEP),
        keep_last: args.keep_last.or(config.keep_last).unwrap_or(DEFAULT_KEEP_LAST),
        grace: given(&args.grace)?.or(config.grace).unwrap_or(DEFAULT_GRACE),
    };
    let mut store = settings.open_store()?;
    let collected = store.collect(retention, settings.now, args.dry_run)?;
    let Collected { forgotten, dropped, pinned, files_deleted, bytes_deleted, files_waiting, packed } = &collected;
    let verb = if args.dry_run { "would drop" } else { "dropped" };
    let mut lines = Vec::new();
    for (stream, events) in forgotten {
        let verb = if args.dry_run { "would forget" } else { "forgot" };
        lines.push(format!("{stream}: {verb} {} of before that time", count(*events, "event")));
    }
    for (stream, versions) in dropped {
        lines.push(format!("{stream}: {verb} {} ({})", count(versions.len(), "version"), ranges(versions)));
    }
    for (stream, versions) in pinned {
        lines.push(format!("{stream}: kept {} because a baseline pins it", ranges(versions)));
    }
    if packed.0 > 0 {
        let verb = if args.dry_run { "would pack" } else { "packed" };
        lines.push(format!("{verb} {} of small versions into {}", count(packed.0, "file"), packed.1));
    }
    if !args.dry_run {
        lines.push(format!("deleted {}, {bytes_deleted} bytes", count(*files_deleted, "file")));
        if *files_waiting > 0 {
            lines.push(format!("{files_waiting} unneeded files are younger than the grace period and stay for now"));
        }
    }
    let all: usize = dropped.values().map(Vec::len).sum();
    lines.push(format!("result: {verb} {}", count(all, "version")));
    let json = json!({
        "schema": "driftline.gc/v1", "dryRun": args.dry_run, "forgotten": forgotten, "dropped": dropped, "pinned": pinned,
        "filesDeleted": files_deleted, "bytesDeleted": bytes_deleted, "filesWaiting": files_waiting,
        "packed": {"files": packed.0, "into": packed.1},
    });
    settings.printer.print(&Plain { json, lines })
}

/// `v1-v4, v7`
fn ranges(numbers: &[u64]) -> String {
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, end)) if *end + 1 == number => *end = number,
            _ => parts.push((number, number)),
        }
    }
    let part = |(start, end): &(u64, u64)| if start == end { format!("v{start}") } else { format!("v{start}-v{end}") };
    parts.iter().map(part).collect::<Vec<_>>().join(", ")
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Good,
    Notice,
    Bad,
}

#[derive(Serialize)]
struct Check {
    health: Health,
    about: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

struct Checkup {
    checks: Vec<Check>,
}

impl Checkup {
    fn add(&mut self, health: Health, about: &str, message: impl Into<String>, hint: Option<&str>) {
        self.checks.push(Check {
            health,
            about: about.to_owned(),
            message: message.into(),
            hint: hint.map(ToOwned::to_owned),
        });
    }
}

pub(crate) fn doctor(settings: &Settings) -> CommandResult<()> {
    let mut checkup = Checkup { checks: Vec::new() };
    let config = &settings.config;
    match &config.path {
        Some(path) => {
            let text =
                format!("`{}` is good: {} sources, {} rules", path.display(), config.sources.len(), config.rules.len());
            checkup.add(Health::Good, "configuration", text, None);
        }
        None => checkup.add(Health::Good, "configuration", "no driftline.toml here; defaults are used", None),
    }
    for rule in config.rules.iter().filter(|rule| rule.has_expired(settings.now)) {
        let text = format!("{} has expired and excuses nothing", rule.name);
        checkup.add(Health::Notice, "rules", text, Some("renew its date, or remove it"));
    }
    match settings.store_if_any() {
        Ok(None) => {
            let text = format!("there is none at `{}` yet", settings.store);
            checkup.add(Health::Notice, "store", text, Some("`driftline observe file FILE` makes one"));
        }
        Err(error) => checkup.add(Health::Bad, "store", error.to_string(), None),
        Ok(Some(store)) => check_store(settings, &store, &mut checkup)?,
    }
    let bad = checkup.checks.iter().any(|check| check.health == Health::Bad);
    settings.printer.print(&checkup)?;
    if bad { Err(CommandError::new("something is wrong; see above")) } else { Ok(()) }
}

fn check_store(settings: &Settings, store: &Store, checkup: &mut Checkup) -> CommandResult<()> {
    let catalog = store.catalog();
    let text = format!(
        "`{}` opens: {} sources, {} log records",
        settings.store,
        catalog.all_streams().count(),
        catalog.records()
    );
    checkup.add(Health::Good, "store", text, None);
    match store.probe() {
        Ok(true) => checkup.add(Health::Good, "store", "can be written to, and never overwrites", None),
        Ok(false) => checkup.add(
            Health::Bad,
            "store",
            "lets one file replace another: commits could be lost here",
            Some("keep the store on another file system"),
        ),
        Err(error) => {
            let text = format!("cannot be written to: {}", CommandError::from(error));
            checkup.add(Health::Notice, "store", text, Some("reading works; observing will not"));
        }
    }
    check_key(settings, catalog.seal_key(), checkup);
    let stale_after = settings.config.stale_after.unwrap_or(DEFAULT_STALE_AFTER);
    let baseline = settings.baseline(None)?;
    let pinned = catalog.baseline(&baseline).ok();
    if pinned.is_none() {
        let text = format!("there is no baseline `{baseline}`");
        checkup.add(Health::Notice, "baseline", text, Some("`driftline baseline set` pins the newest versions"));
    }
    for (id, stream) in catalog.all_streams() {
        let Some(head) = stream.head() else { continue };
        let about = id.to_string();
        let age = settings.now.duration_since(head.taken_at);
        if age > stale_after {
            let text = format!("stale: last observed {}", ago(head.taken_at, settings.now));
            checkup.add(Health::Notice, &about, text, Some("observe it again"));
        } else {
            let mut text = format!("v{}, observed {}", head.number, ago(head.taken_at, settings.now));
            if let Some(spans) = head.nature.spans() {
                text += &format!("; {}, {}", count(head.rows, "event"), known(spans));
            }
            checkup.add(Health::Good, &about, text, None);
        }
        if head.partial_extents > 0 {
            let text = format!(
                "{} of {} extents were listed only in part; {} resources were not looked at",
                head.partial_extents,
                head.partial_extents + head.complete_extents,
                head.unseen
            );
            let hint = match head.nature.is_state() {
                true => "`driftline drift` shows the reasons",
                false => "what happened there may not all be known; `driftline blame` says so where it matters",
            };
            checkup.add(Health::Notice, &about, text, Some(hint));
        }
        for problem in &head.problems {
            checkup.add(Health::Notice, &about, format!("{}: {}", problem.about, problem.message), None);
        }
        if head.nature.is_state() && pinned.is_some_and(|pinned| !pinned.pins.contains_key(id)) {
            let text = format!("is not in the baseline `{baseline}`: all of it is not checked");
            checkup.add(Health::Notice, &about, text, Some("`driftline baseline set --source …` adds it"));
        }
    }
    Ok(())
}

fn check_key(settings: &Settings, expected: Option<&str>, checkup: &mut Checkup) {
    let path = seal::key_file(&settings.store);
    match (seal::existing_key(&settings.store), expected) {
        (Err(error), _) => checkup.add(Health::Bad, "seal key", error.to_string(), None),
        (Ok(None), None) => checkup.add(Health::Good, "seal key", "no secrets are in the store yet", None),
        (Ok(None), Some(fingerprint)) => checkup.add(
            Health::Bad,
            "seal key",
            format!("the store's secrets were sealed with the key {fingerprint}, which is not here"),
            Some("put the key file back beside the store, or set DRIFTLINE_SEAL_KEY"),
        ),
        (Ok(Some(key)), Some(fingerprint)) if SealKey::fingerprint(&key) != fingerprint => {
            checkup.add(Health::Bad, "seal key", format!("it is not the store's key ({fingerprint})"), None);
        }
        (Ok(Some(_)), _) => {
            checkup.add(Health::Good, "seal key", "is here and is the store's", None);
            #[cfg(unix)]
            if let Some(path) = path
                && let Ok(data) = std::fs::metadata(&path)
            {
                let mode = std::os::unix::fs::PermissionsExt::mode(&data.permissions()) & 0o777;
                if mode & 0o077 != 0 {
                    let text = format!("`{}` can be read by others (mode {mode:o})", path.display());
                    checkup.add(Health::Notice, "seal key", text, Some("chmod 600 it"));
                }
            }
        }
    }
}

impl Show for Checkup {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        for check in &self.checks {
            let sign = match check.health {
                Health::Good => page.paint(GREEN, "ok    "),
                Health::Notice => page.paint(YELLOW, "notice"),
                Health::Bad => page.paint(RED, "bad   "),
            };
            writeln!(page, "{sign}  {}: {}", page.paint(BOLD, &check.about), visible(&check.message))?;
            if let Some(hint) = &check.hint {
                writeln!(page, "        {}", page.paint(DIM, hint))?;
            }
        }
        let with = |health: Health| self.checks.iter().filter(|check| check.health == health).count();
        writeln!(page, "result: {} ok, {} notices, {} bad", with(Health::Good), with(Health::Notice), with(Health::Bad))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        Ok(serde_json::to_writer_pretty(out, &json!({"schema": "driftline.checkup/v1", "checks": self.checks}))?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        for check in &self.checks {
            serde_json::to_writer(&mut *out, check)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "| | about | |\n|---|---|---|")?;
        for check in &self.checks {
            let word = match check.health {
                Health::Good => "ok",
                Health::Notice => "notice",
                Health::Bad => "**bad**",
            };
            writeln!(out, "| {word} | {} | {} |", markdown_cell(&check.about), markdown_cell(&check.message))?;
        }
        Ok(())
    }
}

/// One effective value, and where it came from.
#[derive(Serialize)]
struct Setting {
    name: &'static str,
    value: String,
    from: String,
}

pub(crate) fn config_view(settings: &Settings) -> CommandResult<()> {
    let file = settings.config_name();
    let config = &settings.config;
    let duration = |value: Option<SignedDuration>, default: SignedDuration| {
        let minutes = value.unwrap_or(default).as_mins();
        match minutes {
            _ if minutes % (24 * 60) == 0 => format!("{}d", minutes / (24 * 60)),
            _ if minutes % 60 == 0 => format!("{}h", minutes / 60),
            _ => format!("{minutes}m"),
        }
    };
    let retention = |name: &'static str, variable: &str, value: String, given: bool| match text_variable(variable) {
        Some(text) => Setting { name, value: text, from: variable.to_owned() },
        None => Setting { name, value, from: if given { file.clone() } else { "default".to_owned() } },
    };
    let from = |given: bool| if given { file.clone() } else { "default".to_owned() };
    let baseline = match text_variable("DRIFTLINE_BASELINE") {
        Some(name) => (name, "DRIFTLINE_BASELINE".to_owned()),
        None => (
            config.baseline.as_ref().map_or_else(|| DEFAULT_BASELINE.to_owned(), ToString::to_string),
            from(config.baseline.is_some()),
        ),
    };
    let mut values = vec![
        Setting { name: "store", value: settings.store.to_string(), from: settings.store_from.clone() },
        Setting { name: "baseline", value: baseline.0, from: baseline.1 },
        Setting {
            name: "stale_after",
            value: duration(config.stale_after, DEFAULT_STALE_AFTER),
            from: from(config.stale_after.is_some()),
        },
        retention("retention.keep", "DRIFTLINE_KEEP", duration(config.keep, DEFAULT_KEEP), config.keep.is_some()),
        retention(
            "retention.keep_last",
            "DRIFTLINE_KEEP_LAST",
            config.keep_last.unwrap_or(DEFAULT_KEEP_LAST).to_string(),
            config.keep_last.is_some(),
        ),
        retention("retention.grace", "DRIFTLINE_GRACE", duration(config.grace, DEFAULT_GRACE), config.grace.is_some()),
    ];
    for source in &config.sources {
        let value = match &source.from {
            crate::config::From::File(path) => format!("{} from the file {}", source.name, path.display()),
            crate::config::From::Documents(from) => {
                format!("{} from {} documents {}", source.name, from.model.name(), from.named.join(" "))
            }
            crate::config::From::Live(from) => format!("{} from AWS itself, by {}", source.name, from.observer),
            crate::config::From::Command(command) => format!("{} from the program {}", source.name, command.join(" ")),
            crate::config::From::Kubernetes(objects) => format!("{} from {}", source.name, objects.told()),
        };
        values.push(Setting { name: "source", value, from: file.clone() });
    }
    for (name, value, given) in config.fleet.told() {
        values.push(Setting { name, value, from: from(given) });
    }
    for notify in &config.notify {
        let mut value = format!("{} by {}", notify.name, notify.target.kind());
        if let Some(level) = notify.min_severity {
            value += &format!(", {level} and worse");
        }
        values.push(Setting { name: "notify", value, from: file.clone() });
    }
    for model in &config.swamp_models {
        let spec = model.spec.as_ref().map_or_else(String::new, |spec| format!(" spec={spec}"));
        let value = format!("{} from model={}{spec}", model.source, model.model);
        values.push(Setting { name: "swamp.model", value, from: file.clone() });
    }
    for rule in settings.rules.book.rules() {
        let what = format!("{} {} ({})", rule.kind.name(), subject(rule), rule.reason);
        values.push(Setting { name: "rule", value: what, from: rule.origin.to_string() });
    }
    for own in &config.severities {
        values.push(Setting { name: "severity", value: severity(own), from: own.name.clone() });
    }
    for entry in config.rules.iter().filter(|entry| entry.has_expired(settings.now)) {
        let what = format!("{} {}, expired", entry.rule.kind.name(), subject(&entry.rule));
        values.push(Setting { name: "rule (not in force)", value: what, from: entry.name.clone() });
    }
    for path in driftline_sources::builtin::secrets() {
        values.push(Setting { name: "seal", value: format!("{} {}", path.kind, path.path), from: "builtin".into() });
    }
    for path in &config.seal {
        values.push(Setting { name: "seal", value: format!("{} {}", path.kind, path.path), from: file.clone() });
    }
    settings.printer.print(&View { values })
}

fn subject(rule: &driftline_core::Rule) -> String {
    let mut parts = named(&rule.subject);
    parts.push(format!("path={}", rule.path));
    parts.join(" ")
}

fn severity(own: &crate::severity::OwnSeverity) -> String {
    let mut parts = vec![own.level.to_string()];
    parts.extend(named(&own.subject));
    parts.extend(own.path.as_ref().map(|path| format!("path={path}")));
    parts.extend(own.when.as_ref().map(|when| format!("when={when}")));
    format!("{} ({})", parts.join(" "), own.reason)
}

/// What an entry is of, as far as it says.
fn named(subject: &driftline_core::rule::Subject) -> Vec<String> {
    let mut parts = Vec::new();
    for (name, glob) in
        [("type", &subject.kind), ("place", &subject.place), ("id", &subject.id), ("source", &subject.source)]
    {
        if let Some(glob) = glob {
            parts.push(format!("{name}={glob}"));
        }
    }
    parts
}

struct View {
    values: Vec<Setting>,
}

impl Show for View {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        let mut rows = vec![["setting", "value", "from"].map(str::to_owned).to_vec()];
        rows.extend(self.values.iter().map(|one| vec![one.name.to_owned(), one.value.clone(), one.from.clone()]));
        columns(&rows, 0).iter().try_for_each(|line| writeln!(page, "{line}"))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        Ok(serde_json::to_writer_pretty(out, &json!({"schema": "driftline.config/v1", "settings": self.values}))?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        for value in &self.values {
            serde_json::to_writer(&mut *out, value)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "| setting | value | from |\n|---|---|---|")?;
        for one in &self.values {
            writeln!(out, "| {} | {} | {} |", one.name, markdown_cell(&one.value), markdown_cell(&one.from))?;
        }
        Ok(())
    }
}
