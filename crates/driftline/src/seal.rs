//! The key that secrets are sealed with, and the sealing of what comes in.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use driftline_core::canonical::Encoder;
use driftline_core::seal::{self, SealKey, SecretPath};
use driftline_core::{Pattern, PropertiesRef};

use crate::error::{CommandError, CommandResult};
use crate::surroundings::variable;

/// Holds the key, as 64 hex digits, where no key file may be.
pub(crate) const KEY_VARIABLE: &str = "DRIFTLINE_SEAL_KEY";

/// The key file lies beside the store, never in it: who is given the store is not given the key.
pub(crate) fn key_file(store: &Path) -> PathBuf {
    // `.` has no name of its own; the folder it stands for has.
    let store = std::path::absolute(store).unwrap_or_else(|_| store.to_owned());
    let mut name = store.file_name().map_or_else(|| "driftline".into(), ToOwned::to_owned);
    name.push(".key");
    store.with_file_name(name)
}

/// Seals secrets on their way in; asks for the key only when there is one.
#[derive(Clone, Debug)]
pub(crate) struct Sealer {
    store: PathBuf,
    /// The key that sealed what the store already holds.
    expected: Option<String>,
    paths: Vec<SecretPath>,
    by_type: HashMap<String, Vec<Pattern>>,
    key: Option<SealKey>,
    encoder: Encoder,
}

impl Sealer {
    pub(crate) fn new(store: &Path, expected: Option<&str>, configured: &[SecretPath]) -> Self {
        let mut paths = driftline_sources::builtin::secrets();
        paths.extend(configured.iter().cloned());
        Self {
            store: store.to_owned(),
            expected: expected.map(ToOwned::to_owned),
            paths,
            by_type: HashMap::new(),
            key: None,
            encoder: Encoder::new(),
        }
    }

    /// For comparing two files at once: nothing is kept, so the key is made up and forgotten.
    pub(crate) fn for_once(configured: &[SecretPath]) -> CommandResult<Self> {
        let key = random_bytes().map_err(|error| CommandError::because("cannot make a key for secrets", &error))?;
        Ok(Self { key: Some(SealKey::new(key)), ..Self::new(Path::new(""), None, configured) })
    }

    /// Names all that decides what a line of input becomes: how it is read, and which of its parts are sealed.
    pub(crate) fn reader(&self) -> String {
        let mut name = format!("plain/1 {}", env!("CARGO_PKG_VERSION"));
        for path in &self.paths {
            name += &format!("\n{} {}", path.kind, path.path);
        }
        name
    }

    /// The fingerprint of the key, if anything was sealed.
    pub(crate) fn fingerprint(&self) -> Option<String> {
        self.key.as_ref().map(SealKey::fingerprint)
    }

    /// The properties with every secret in them sealed.
    pub(crate) fn seal<'a>(
        &'a mut self,
        kind: &str,
        properties: PropertiesRef<'a>,
        sensitive: &[Pattern],
    ) -> CommandResult<PropertiesRef<'a>> {
        if !self.by_type.contains_key(kind) {
            let patterns = self.paths.iter().filter(|path| path.kind.matches(kind)).map(|path| path.path.clone());
            self.by_type.insert(kind.to_owned(), patterns.collect());
        }
        let known = &self.by_type[kind];
        if known.is_empty() && sensitive.is_empty() {
            return Ok(properties);
        }
        let patterns: Vec<&Pattern> = known.iter().chain(sensitive).collect();
        let mut value = properties.to_value();
        let key = match &self.key {
            Some(key) => key.clone(),
            None if !seal::finds_any(&value, &patterns) => return Ok(properties),
            None => {
                let key = load_key(&self.store, self.expected.as_deref())?;
                self.key.insert(key).clone()
            }
        };
        if seal::seal(&mut value, &patterns, &key) == 0 {
            return Ok(properties);
        }
        self.encoder.encode_value(&value);
        Ok(self.encoder.properties())
    }
}

/// The key from the environment or the file; made if the store has none yet.
fn load_key(store: &Path, expected: Option<&str>) -> CommandResult<SealKey> {
    let path = key_file(store);
    match (existing_key(store)?, expected) {
        (Some(key), _) => Ok(key),
        (None, None) => create_key(&path),
        (None, Some(fingerprint)) => Err(CommandError::new(format!(
            "the secrets in this store were sealed with the key {fingerprint}, and `{}` is not there",
            path.display()
        ))
        .hint("with another key every secret would look changed; nothing was committed")
        .hint(format!("put the key file back, or give the key in {KEY_VARIABLE}"))),
    }
}

/// The key, if there is one.
pub(crate) fn existing_key(store: &Path) -> CommandResult<Option<SealKey>> {
    if let Some(text) = variable(KEY_VARIABLE) {
        let key = parse_key(&text.to_string_lossy());
        return key.map(Some).ok_or_else(|| CommandError::new(format!("{KEY_VARIABLE} is not 64 hex digits")));
    }
    read_key(&key_file(store))
}

fn read_key(path: &Path) -> CommandResult<Option<SealKey>> {
    match fs::read_to_string(path) {
        Ok(text) => parse_key(text.trim())
            .map(Some)
            .ok_or_else(|| CommandError::new(format!("the key file `{}` does not hold 64 hex digits", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommandError::because(format!("cannot read the key file `{}`", path.display()), &error)),
    }
}

fn parse_key(text: &str) -> Option<SealKey> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(SealKey::new(bytes))
}

pub(crate) fn random_bytes() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn create_key(path: &Path) -> CommandResult<SealKey> {
    let failed = |error: std::io::Error| {
        CommandError::because(format!("cannot make the key file `{}`", path.display()), &error).hint(format!(
            "secrets are sealed with it before they are stored; a key can also be given in {KEY_VARIABLE}"
        ))
    };
    let bytes = random_bytes().map_err(failed)?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    // Written beside and then linked: whoever finds the file finds all of it, and only one can be first.
    let written = path.with_extension(format!("key.{}", std::process::id()) + &text[..8]);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&written).map_err(failed)?;
    let linked = writeln!(file, "{text}").and_then(|()| file.sync_all()).and_then(|()| fs::hard_link(&written, path));
    let _ = fs::remove_file(&written);
    match linked {
        Ok(()) => Ok(SealKey::new(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => read_key(path)?
            .ok_or_else(|| CommandError::new(format!("the key file `{}` was there and is gone", path.display()))),
        Err(error) => Err(failed(error)),
    }
}
