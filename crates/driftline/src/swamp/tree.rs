//! Walking swamp's tree of data. Whoever can write there is not trusted: no link is followed out of it, everything
//! has a bound, and what cannot be read is said and never guessed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use driftline_core::Problem;
use driftline_sources::swamp::{MOST_YAML, Metadata, VersionNumber};
use sha2::{Digest, Sha256};

use crate::error::{CommandError, CommandResult};

const MOST_LEVELS: usize = 32;
const MOST_ENTRIES: u64 = 8_000_000;
pub(crate) const MOST_RAW: u64 = 2 << 30;
const METADATA: &str = "metadata.yaml";

/// What a tree holds.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// By path.
    pub folders: Vec<Folder>,
    /// What could not be looked at.
    pub problems: Vec<Problem>,
}

/// One piece of data, with its versions in order. None is newer than what swamp calls the latest: that may be
/// written at this moment, or was taken back.
#[derive(Debug)]
pub(crate) struct Folder {
    pub type_path: String,
    pub model_id: String,
    pub name: String,
    /// The path from the root, for messages.
    pub label: String,
    pub versions: Vec<Version>,
    /// The newest metadata that can be read. It says what the data is, even where the latest version does not.
    pub identity: Option<Metadata>,
}

#[derive(Debug)]
pub(crate) struct Version {
    pub number: VersionNumber,
    /// What it says of itself, or why that cannot be read.
    pub metadata: Result<Metadata, String>,
    pub raw: PathBuf,
}

/// Walks the tree beneath a folder. Without `all`, only the latest version of everything is looked at.
pub(crate) fn walk(root: &Path, all: bool) -> CommandResult<Tree> {
    let mut walker = Walker { all, entries: 0, tree: Tree::default() };
    walker.descend(root, &mut Vec::new())?;
    // Folders are listed again on the way down.
    walker.tree.problems.sort_unstable();
    walker.tree.problems.dedup();
    Ok(walker.tree)
}

struct Walker {
    all: bool,
    entries: u64,
    tree: Tree,
}

impl Walker {
    fn problem(&mut self, about: &Path, message: impl Into<String>) {
        self.tree.problems.push(Problem { about: about.display().to_string(), message: message.into() });
    }

    /// The names of the folders in a folder, in order.
    fn folders(&mut self, folder: &Path) -> CommandResult<Vec<String>> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.problem(folder, format!("it cannot be read: {error}"));
                return Ok(Vec::new());
            }
        };
        let mut names = Vec::new();
        for entry in entries {
            self.entries += 1;
            if self.entries > MOST_ENTRIES {
                return Err(CommandError::new(format!("there are more than {MOST_ENTRIES} entries in the tree"))
                    .hint("name a folder further in"));
            }
            let Ok((entry, kind)) = entry.and_then(|entry| entry.file_type().map(|kind| (entry, kind))) else {
                self.problem(folder, "an entry of it cannot be read");
                continue;
            };
            let name = match entry.file_name().into_string() {
                Ok(name) => name,
                Err(name) => {
                    self.problem(&folder.join(name), "its name is not UTF-8");
                    continue;
                }
            };
            if kind.is_dir() {
                names.push(name);
            } else if kind.is_symlink() && name != "latest" {
                self.problem(&folder.join(name), "a symbolic link is not followed");
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn descend(&mut self, folder: &Path, segments: &mut Vec<String>) -> CommandResult<()> {
        if segments.len() > MOST_LEVELS {
            self.problem(folder, format!("it lies deeper than {MOST_LEVELS} levels"));
            return Ok(());
        }
        let mut children = Vec::new();
        let mut of_a_model = false;
        for name in self.folders(folder)? {
            let path = folder.join(&name);
            // A model has at least one segment of a type above it.
            let numbers = if segments.len() > 1 { self.numbers(&path)? } else { Vec::new() };
            of_a_model |= numbers.iter().any(|(_, folder)| path.join(folder).join(METADATA).is_file());
            children.push((name, path, numbers));
        }
        for (name, path, numbers) in children {
            if of_a_model {
                self.take(name, &path, numbers, segments)?;
            } else {
                segments.push(name);
                self.descend(&path, segments)?;
                segments.pop();
            }
        }
        Ok(())
    }

    /// The folders in a folder that are named like versions, in the order of their numbers.
    fn numbers(&mut self, folder: &Path) -> CommandResult<Vec<(VersionNumber, String)>> {
        let numbered = |name: String| name.parse().ok().map(|number| (number, name));
        let mut numbers: Vec<_> = self.folders(folder)?.into_iter().filter_map(numbered).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Takes in one piece of data.
    fn take(
        &mut self,
        name: String,
        path: &Path,
        mut numbers: Vec<(VersionNumber, String)>,
        segments: &[String],
    ) -> CommandResult<()> {
        let Some((model_id, type_segments)) = segments.split_last() else { return Ok(()) };
        // It is removed and written anew, so a moment later it may be there again.
        let latest = latest(path).or_else(|| latest(path));
        // Someone may have written a version since the folder was listed.
        if latest.as_ref().is_some_and(|latest| numbers.iter().all(|(number, _)| number != latest)) {
            numbers = self.numbers(path)?;
        }
        let committed = numbers.iter().filter(|(number, _)| latest.as_ref().is_none_or(|latest| number <= latest));
        let mut versions = Vec::new();
        let mut identity = None;
        for (number, folder) in committed.rev() {
            let folder = path.join(folder);
            let Some(metadata) = read_metadata(&folder.join(METADATA)) else { continue };
            if identity.is_none() {
                identity = metadata.as_ref().ok().cloned();
            }
            if self.all || versions.is_empty() {
                versions.push(Version { number: number.clone(), metadata, raw: folder.join("raw") });
            }
            if !self.all && identity.is_some() {
                break;
            }
        }
        // Only what swamp calls the latest is; an older one must not stand in for it.
        if let Some(latest) = latest
            && versions.first().is_none_or(|newest| newest.number != latest)
        {
            if !self.all {
                versions.clear();
            }
            let metadata = Err(format!("the latest version is {latest}, which is not there or has no {METADATA}"));
            versions.insert(0, Version { number: latest, metadata, raw: PathBuf::new() });
        }
        if versions.is_empty() {
            return Ok(());
        }
        versions.reverse();
        let label = segments.iter().map(String::as_str).chain([name.as_str()]).collect::<Vec<_>>().join("/");
        let (type_path, model_id) = (type_segments.join("/"), model_id.clone());
        self.tree.folders.push(Folder { type_path, model_id, name, label, versions, identity });
        Ok(())
    }
}

/// The version that swamp calls the latest: a small file with its number, or in old stores a link, of which only
/// the last name counts.
fn latest(folder: &Path) -> Option<VersionNumber> {
    let path = folder.join("latest");
    let kind = fs::symlink_metadata(&path).ok()?.file_type();
    if kind.is_symlink() {
        return fs::read_link(&path).ok()?.file_name()?.to_str()?.parse().ok();
    }
    if !kind.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(&path).ok()?.take(300).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// `None` where there is none: then nothing was committed there yet.
fn read_metadata(path: &Path) -> Option<Result<Metadata, String>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return Some(Err(format!("its {METADATA} cannot be read: {error}"))),
    };
    if !found.is_file() {
        return Some(Err(format!("its {METADATA} is not a regular file")));
    }
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST_YAML + 1).read_to_string(&mut text));
    Some(match read {
        _ if found.len() > MOST_YAML => {
            Err(format!("its {METADATA} has {} bytes, and more than {MOST_YAML} are not read", found.len()))
        }
        Err(error) => Err(format!("its {METADATA} cannot be read: {error}")),
        Ok(_) => match Metadata::parse(&text) {
            Ok(metadata) if metadata.created_at.is_none() => {
                Err(format!("its {METADATA} does not say when it was created"))
            }
            Ok(metadata) => Ok(metadata),
            Err(error) => Err(format!("its {METADATA} is not usable: {error}")),
        },
    })
}

/// The content of a version, if it is what the metadata says.
pub(crate) fn read_raw(root: &Path, path: &Path, metadata: &Metadata) -> Result<Vec<u8>, String> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "its raw is not there: not hydrated or half written".to_owned(),
        _ => format!("its raw cannot be read: {error}"),
    };
    let found = fs::symlink_metadata(path).map_err(unreadable)?;
    let target = match found.is_symlink() {
        false => path.to_owned(),
        true => {
            let target = fs::canonicalize(path).map_err(unreadable)?;
            if !target.starts_with(root) {
                return Err("its raw is a symbolic link out of the datastore".to_owned());
            }
            target
        }
    };
    let length = match fs::symlink_metadata(&target).map_err(unreadable)? {
        found if found.is_file() => found.len(),
        _ => return Err("its raw is not a regular file".to_owned()),
    };
    if length > MOST_RAW {
        return Err(format!("its raw has {length} bytes, and more than {MOST_RAW} are not read"));
    }
    let mut bytes = Vec::new();
    File::open(&target).and_then(|file| file.take(MOST_RAW).read_to_end(&mut bytes)).map_err(unreadable)?;
    if let Some(size) = &metadata.size
        && *size != bytes.len().to_string()
    {
        return Err(format!("its raw has {} bytes, and its metadata says {size}", bytes.len()));
    }
    if let Some(expected) = &metadata.checksum {
        let actual: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        if !actual.eq_ignore_ascii_case(expected) {
            return Err(format!("the checksum of its raw is {actual}, and its metadata says {expected}"));
        }
    }
    Ok(bytes)
}
