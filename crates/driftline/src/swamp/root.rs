//! Where a swamp repository keeps its data.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use driftline_sources::swamp::{Datastore, MOST_YAML, RepositoryFile};

use crate::error::{CommandError, CommandResult};
use crate::surroundings::{text_variable, variable};

/// Marks a repository.
const MARK: &str = ".swamp.yaml";
/// Goes before what the repository's own file says.
const VARIABLE: &str = "SWAMP_DATASTORE";

/// The folder under which a repository, a datastore or a data folder has its data.
pub(crate) fn data_root(path: &Path) -> CommandResult<PathBuf> {
    let mark = path.join(MARK);
    if mark.is_file() {
        let root = of_repository(path, &mark)
            .map_err(|error| error.about(format!("cannot find the data of the repository `{}`", path.display())))?;
        return match root.is_dir() {
            true => Ok(root),
            false => Err(CommandError::new(format!(
                "the repository `{}` keeps its data in `{}`, which is not a folder",
                path.display(),
                root.display()
            ))
            .hint("a datastore that lies elsewhere must be synchronised first; or name its folder instead")),
        };
    }
    let data = path.join("data");
    Ok(if data.is_dir() { data } else { path.to_owned() })
}

/// The namespaces of a datastore, where a folder is one that has them: all its data lies under `<namespace>/data`.
pub(crate) fn namespaces<'t>(mut type_paths: impl Iterator<Item = &'t str>) -> Option<BTreeSet<&'t str>> {
    type_paths.try_fold(BTreeSet::new(), |mut names, path| {
        let mut segments = path.splitn(3, '/');
        match (segments.next(), segments.next(), segments.next()) {
            (Some(name), Some("data"), Some(_)) => {
                names.insert(name);
                Some(names)
            }
            _ => None,
        }
    })
}

/// What is said of a folder in which nothing was found.
pub(crate) fn nothing_found(path: &Path, root: &Path) -> CommandError {
    CommandError::new(format!("there is no swamp data in `{}`", root.display()))
        .hint(format!("looked for `{MARK}` (a repository) and `data` (a datastore) in `{}`", path.display()))
        .hint("and for <type>/<model id>/<name>/<version>/metadata.yaml (a data folder) beneath it")
}

fn of_repository(repository: &Path, mark: &Path) -> CommandResult<PathBuf> {
    let file = read_mark(mark)?;
    let store = file.datastore.unwrap_or_default();
    let local = repository.join(".swamp");
    if !store.holds_data() {
        return Ok(local.join("data"));
    }
    let base = match text_variable(VARIABLE) {
        Some(text) => {
            let (kind, value) = text
                .split_once(':')
                .ok_or_else(|| CommandError::new(format!("{VARIABLE} is not of the form `type:value`")))?;
            base(repository, kind, Some(value), file.repo_id.as_deref())?
        }
        None => base(
            repository,
            store.kind.as_deref().unwrap_or("filesystem"),
            store.path.as_deref(),
            file.repo_id.as_deref(),
        )?,
    };
    Ok(match namespace(&store)? {
        Some(name) => base.join(name).join("data"),
        None => base.join("data"),
    })
}

fn read_mark(mark: &Path) -> CommandResult<RepositoryFile> {
    if std::fs::metadata(mark)?.len() > MOST_YAML {
        return Err(CommandError::new(format!("`{}` is larger than {MOST_YAML} bytes", mark.display())));
    }
    let text = std::fs::read_to_string(mark)?;
    RepositoryFile::parse(&text)
        .map_err(|error| CommandError::because(format!("`{}` is not usable", mark.display()), &error))
}

fn base(repository: &Path, kind: &str, value: Option<&str>, repository_id: Option<&str>) -> CommandResult<PathBuf> {
    if kind == "filesystem" {
        return Ok(match value.filter(|value| !value.is_empty()) {
            Some(value) => repository.join(expand(value)?),
            None => repository.join(".swamp"),
        });
    }
    // Of a store that lies elsewhere only the copy on this machine can be read.
    let good = |id: &&str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let Some(id) = repository_id.filter(good) else {
        return Err(CommandError::new(format!("its datastore is of the type `{kind}`, and it has no usable `repoId`")));
    };
    let home = match variable("SWAMP_HOME") {
        Some(home) => PathBuf::from(home),
        None => home()?.join(".swamp"),
    };
    Ok(home.join("repos").join(id))
}

fn home() -> CommandResult<PathBuf> {
    variable("HOME").map(PathBuf::from).ok_or_else(|| CommandError::new("HOME is not set"))
}

/// A namespace becomes part of a path, so it must be what swamp allows.
fn namespace(store: &Datastore) -> CommandResult<Option<&str>> {
    let Some(name) = store.namespace.as_deref().filter(|name| !name.is_empty()) else { return Ok(None) };
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.len() > 64 || !name.bytes().all(good) || name.starts_with('-') || name.ends_with('-') {
        return Err(CommandError::new(format!("`{name}` is not a namespace of swamp's")));
    }
    Ok(Some(name))
}

/// A path with `~`, `$NAME` and `${NAME}` filled in. A variable that is not set is an error: the path without it
/// would be another folder.
fn expand(text: &str) -> CommandResult<PathBuf> {
    let mut out = String::new();
    let mut rest = text;
    if text == "~" || text.starts_with("~/") {
        out = home()?.to_string_lossy().into_owned();
        rest = &text[1..];
    }
    while let Some((before, after)) = rest.split_once('$') {
        out += before;
        let (name, after) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some(found) => found,
            None => {
                let end = after.find(|char: char| !(char.is_ascii_alphanumeric() || char == '_'));
                after.split_at(end.unwrap_or(after.len()))
            }
        };
        if name.is_empty() {
            out.push('$');
        } else {
            out += &text_variable(name)
                .ok_or_else(|| CommandError::new(format!("the path `{text}` needs {name}, which is not set")))?;
        }
        rest = after;
    }
    out += rest;
    Ok(PathBuf::from(out))
}
