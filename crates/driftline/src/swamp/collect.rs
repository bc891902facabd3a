//! All data of a datastore or of a printed query, in one form: which model's it is, and its versions in time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use driftline_sources::swamp::{self, Lifecycle, Metadata, VersionNumber};
use jiff::Timestamp;

use crate::args::SwampArgs;
use crate::error::{CommandError, CommandResult};
use crate::settings::Settings;
use crate::swamp::root;
use crate::swamp::tree::{self, Folder, MOST_RAW};

/// swamp itself follows no more.
const MOST_RENAMES: usize = 5;

#[derive(Debug)]
pub(crate) struct Collected {
    /// The folder that nothing is read outside of.
    pub root: PathBuf,
    pub items: Vec<Item>,
    /// There is more that a query did not show.
    pub limited: bool,
    /// Data of which nothing can be said but that it should have been read.
    pub failed: Vec<Failed>,
}

#[derive(Debug)]
pub(crate) struct Failed {
    pub type_path: String,
    pub label: String,
    pub reason: String,
}

/// One piece of data under one name.
#[derive(Debug)]
pub(crate) struct Item {
    pub type_path: String,
    pub model_name: String,
    pub spec: Option<String>,
    pub name: String,
    pub step: Option<String>,
    /// Oldest first, never empty.
    pub history: Vec<Datum>,
}

impl Item {
    pub(crate) fn newest(&self) -> &Datum {
        self.history.last().expect("an item has at least one version")
    }
}

/// One version of one piece of data.
#[derive(Debug)]
pub(crate) struct Datum {
    /// How messages name it.
    pub label: String,
    pub name: String,
    pub model_id: String,
    pub number: VersionNumber,
    pub created_at: Timestamp,
    pub content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    File { path: PathBuf, metadata: Box<Metadata> },
    Text(String),
    Gone,
    Renamed(String),
    Unreadable(String),
}

pub(crate) fn collect(settings: &Settings, args: &SwampArgs) -> CommandResult<Collected> {
    let path = &args.path;
    let found = std::fs::metadata(path)?;
    let mut collected = if found.is_dir() {
        of_tree(settings, path, args.all_versions)?
    } else if found.is_file() {
        of_file(settings, path, args.all_versions)?
    } else {
        return Err(CommandError::new("it is neither a folder nor a file"));
    };
    collected.items =
        follow_renames(settings, recover(settings, collected.items, args.all_versions), args.all_versions);
    Ok(collected)
}

fn of_tree(settings: &Settings, path: &Path, all: bool) -> CommandResult<Collected> {
    let named = root::data_root(path)?;
    let root = std::fs::canonicalize(&named)?;
    let found = tree::walk(&root, all)?;
    for problem in &found.problems {
        settings.printer.warn(&format!("{}: {}", problem.about, problem.message));
    }
    if found.folders.is_empty() {
        return Err(root::nothing_found(path, &named));
    }
    // Taken for a data folder, its types would begin with the namespace and be those of nobody.
    if let Some(names) = root::namespaces(found.folders.iter().map(|folder| folder.type_path.as_str())) {
        let names: Vec<String> = names.iter().map(|name| format!("`{}`", path.join(name).display())).collect();
        return Err(
            CommandError::new("it is a datastore with namespaces").hint(format!("name one: {}", names.join(", ")))
        );
    }
    let mut collected = Collected { root, items: Vec::new(), limited: false, failed: Vec::new() };
    for folder in found.folders {
        let Some(identity) = folder.identity.clone() else {
            let reason = folder.versions.iter().rev().find_map(|version| version.metadata.as_ref().err());
            let reason = reason.cloned().unwrap_or_default();
            // What nobody would read anyway is no failure.
            let mapped = settings.config.swamp_models.iter().any(|entry| entry.model.matches(&folder.type_path));
            if mapped || swamp::is_known_type(&folder.type_path) {
                collected.failed.push(Failed { type_path: folder.type_path, label: folder.label, reason });
            } else {
                settings.printer.warn(&format!("{}: {reason}", folder.label));
            }
            continue;
        };
        if holds_resources(identity.data_type.as_deref(), identity.content_type.as_deref()) {
            collected.items.push(item_of(folder, identity));
        }
    }
    Ok(collected)
}

/// Logs, files and reports lie in the same tree.
fn holds_resources(data_type: Option<&str>, content_type: Option<&str>) -> bool {
    !matches!(data_type, Some("file" | "log" | "report")) && swamp::is_json(content_type)
}

fn item_of(folder: Folder, identity: Metadata) -> Item {
    let known_at = identity.created_at.unwrap_or(Timestamp::MIN);
    let history = folder.versions.into_iter().map(|version| {
        let label = format!("{} v{}", folder.label, version.number);
        let (created_at, content) = match version.metadata {
            // It is not older than what it followed.
            Err(reason) => (known_at, Content::Unreadable(reason)),
            Ok(metadata) => {
                let content = match &metadata.lifecycle {
                    Lifecycle::Active => Content::File { path: version.raw, metadata: Box::new(metadata.clone()) },
                    Lifecycle::Deleted => Content::Gone,
                    Lifecycle::RenamedTo(name) => Content::Renamed(name.clone()),
                };
                (metadata.created_at.unwrap_or(known_at), content)
            }
        };
        let (name, model_id) = (folder.name.clone(), folder.model_id.clone());
        Datum { label, name, model_id, number: version.number, created_at, content }
    });
    Item {
        history: history.collect(),
        type_path: folder.type_path,
        model_name: identity.model_name.unwrap_or(folder.model_id),
        spec: identity.spec,
        name: folder.name,
        step: identity.step,
    }
}

/// What `swamp data get --json` or `swamp data query --json` printed.
fn of_file(settings: &Settings, path: &Path, all: bool) -> CommandResult<Collected> {
    if std::fs::metadata(path)?.len() > MOST_RAW {
        return Err(CommandError::new(format!("it is larger than {MOST_RAW} bytes")));
    }
    let bytes = std::fs::read(path)?;
    let text = std::str::from_utf8(&bytes).map_err(|error| CommandError::because("it is not UTF-8", &error))?;
    let file = path.display().to_string();
    let found = swamp::unwrap(&file, text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(super::normalize_error)?;
    let Some(found) = found else {
        return Err(CommandError::new("it is not what `swamp data get --json` or `swamp data query --json` prints")
            .hint("other documents of these models: `driftline observe adopt FILE`, and so on"));
    };
    if found.items.is_empty() {
        return Err(CommandError::new("the query found no data"));
    }
    if found.limited {
        settings.printer.warn(&format!("{file}: the query stopped at its limit; what it does not show is not_checked"));
    }
    let mut items: BTreeMap<(String, String, String, String), Item> = BTreeMap::new();
    for item in found.items {
        if !holds_resources(item.data_type.as_deref(), item.content_type.as_deref()) {
            continue;
        }
        let number = item.version.unwrap_or_else(|| "0".parse().expect("a digit is a number"));
        let content = match item.lifecycle {
            Lifecycle::Active => Content::Text(item.content.to_owned()),
            Lifecycle::Deleted => Content::Gone,
            Lifecycle::RenamedTo(name) => Content::Renamed(name),
        };
        let datum = Datum {
            label: format!("{file} ({} v{number})", item.name),
            name: item.name.clone(),
            model_id: item.model_id.clone().unwrap_or_default(),
            number,
            created_at: item.created_at.unwrap_or(settings.now),
            content,
        };
        let model_name = item.model_name.or(item.model_id).unwrap_or_else(|| "unnamed".to_owned());
        let type_path = swamp::type_path(&item.model_type.unwrap_or_default());
        let key = (type_path.clone(), model_name.clone(), item.name.clone(), datum.model_id.clone());
        let slot = items.entry(key).or_insert_with(|| Item {
            type_path,
            model_name,
            spec: item.spec,
            name: item.name,
            step: item.step,
            history: Vec::new(),
        });
        slot.history.push(datum);
    }
    let mut items: Vec<Item> = items.into_values().collect();
    for item in &mut items {
        item.history.sort_by(|left, right| (left.created_at, &left.number).cmp(&(right.created_at, &right.number)));
        if !all {
            item.history.drain(..item.history.len() - 1);
        }
    }
    Ok(Collected { root: PathBuf::new(), items, limited: found.limited, failed: Vec::new() })
}

/// A model that was deleted and made anew has another id, and its data still is the same data.
fn recover(settings: &Settings, items: Vec<Item>, all: bool) -> Vec<Item> {
    let mut recovered: BTreeMap<(String, String, String), Item> = BTreeMap::new();
    for item in items {
        let key = (item.type_path.clone(), item.model_name.clone(), item.name.clone());
        let Some(known) = recovered.remove(&key) else {
            recovered.insert(key, item);
            continue;
        };
        let order = |item: &Item| (item.newest().created_at, item.newest().label.clone());
        let (mut newer, older) = if order(&item) > order(&known) { (item, known) } else { (known, item) };
        settings.printer.detail(&format!(
            "{} is also under an older id of the model `{}`: the newer holds",
            newer.newest().label,
            newer.model_name
        ));
        if newer.step != older.step {
            settings.printer.note(&format!(
                "`{}` of the model `{}` was written by two workflow steps; only the newer, {}, is observed",
                newer.name,
                newer.model_name,
                newer.step.as_deref().unwrap_or("by none")
            ));
        } else if all {
            newer.history.extend(older.history);
            sort(&mut newer.history);
        }
        recovered.insert(key, newer);
    }
    recovered.into_values().collect()
}

fn sort(history: &mut [Datum]) {
    history.sort_by(|left, right| {
        (left.created_at, &left.label, &left.number).cmp(&(right.created_at, &right.label, &right.number))
    });
}

/// A rename is a continuation: data keeps the name it had first, so that its history and its baseline go on.
fn follow_renames(settings: &Settings, items: Vec<Item>, all: bool) -> Vec<Item> {
    let mut models: BTreeMap<(String, String), BTreeMap<String, Item>> = BTreeMap::new();
    for item in items {
        let model = models.entry((item.type_path.clone(), item.model_name.clone())).or_default();
        model.insert(item.name.clone(), item);
    }
    let mut followed = Vec::new();
    for (_, mut names) in models {
        let renamed_to = |item: &Item| match &item.newest().content {
            Content::Renamed(name) => Some(name.clone()),
            _ => None,
        };
        let targets: BTreeSet<String> = names.values().filter_map(renamed_to).collect();
        let renamed = || names.values().filter(|item| renamed_to(item).is_some()).map(|item| item.name.clone());
        // Beginnings first; what no beginning leads to is a circle, or the far end of too long a chain.
        let mut starts: Vec<String> = renamed().filter(|name| !targets.contains(name)).collect();
        starts.extend(renamed().filter(|name| targets.contains(name)));
        for start in starts {
            let Some(mut item) = names.remove(&start) else { continue };
            let Some(first) = renamed_to(&item) else {
                names.insert(start, item);
                continue;
            };
            match chain(&names, &start, first, renamed_to) {
                Ok(chain) => {
                    for name in chain {
                        if let Some(next) = names.remove(&name) {
                            item.history.extend(next.history);
                        }
                    }
                    // That it has moved is not something that happened to what it holds.
                    item.history.retain(|datum| !matches!(datum.content, Content::Renamed(_)));
                    if all {
                        sort(&mut item.history);
                    } else {
                        item.history.drain(..item.history.len().saturating_sub(1));
                    }
                }
                Err(reason) => {
                    settings.printer.detail(&format!("{}: {reason}", item.newest().label));
                    if let Some(newest) = item.history.last_mut() {
                        newest.content = Content::Unreadable(reason);
                    }
                }
            }
            followed.push(item);
        }
        followed.extend(names.into_values());
    }
    followed.sort_by(|left, right| {
        (&left.type_path, &left.model_name, &left.name).cmp(&(&right.type_path, &right.model_name, &right.name))
    });
    followed
}

/// The names that a renamed one leads to, up to one that is not renamed again.
fn chain(
    names: &BTreeMap<String, Item>,
    start: &str,
    first: String,
    renamed_to: impl Fn(&Item) -> Option<String>,
) -> Result<Vec<String>, String> {
    let mut chain = vec![first];
    loop {
        let name = chain.last().expect("it has a first");
        if name == start || chain[..chain.len() - 1].contains(name) {
            return Err(format!("it was renamed in a circle, by way of `{name}`"));
        }
        if chain.len() > MOST_RENAMES {
            return Err(format!("it was renamed more than {MOST_RENAMES} times"));
        }
        let Some(item) = names.get(name) else {
            return Err(format!("it was renamed to `{name}`, which is not there"));
        };
        match renamed_to(item) {
            Some(next) => chain.push(next),
            None => return Ok(chain),
        }
    }
}
