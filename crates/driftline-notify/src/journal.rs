//! A file of records, each written whole and made durable before anything follows from it.
//!
//! A line is a checksum and one JSON value. A last line that is not whole was being written when the process ended:
//! nothing followed from it, so it is cut off. A broken line before the last is damage, and an error.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("cannot {what} `{path}`")]
    Io {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{path}` is damaged at line {line}")]
    Damaged { path: PathBuf, line: usize },
    #[error("`{path}` was written by a newer driftline (format {format})")]
    Newer { path: PathBuf, format: u64 },
    #[error("an earlier write to `{path}` failed and could not be undone")]
    Broken { path: PathBuf },
}

/// Readers refuse what they do not know.
const FORMAT: u64 = 1;

#[derive(Serialize, serde::Deserialize)]
struct Header {
    format: u64,
}

/// An open journal; records are added at its end.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
    broken: bool,
}

impl Journal {
    /// Opens it, or begins one, and gives back every record there is.
    pub fn open<R: DeserializeOwned>(path: &Path) -> Result<(Self, Vec<R>), JournalError> {
        let failed = |what| move |source| JournalError::Io { what, path: path.to_owned(), source };
        let mut file = private(OpenOptions::new().read(true).write(true).create(true))
            .truncate(false)
            .open(path)
            .map_err(failed("open"))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed("read"))?;
        let (records, length) = parse::<R>(path, &bytes)?;
        let mut journal = Self { path: path.to_owned(), file, length, broken: false };
        if length < bytes.len() as u64 {
            journal.cut().map_err(failed("mend"))?;
        }
        if length == 0 {
            journal.append(&Header { format: FORMAT })?;
            sync_folder(path).map_err(failed("make"))?;
        }
        Ok((journal, records))
    }

    /// The records that are there now, for looking only: somebody else may be writing.
    pub fn peek<R: DeserializeOwned>(path: &Path) -> Result<Option<Vec<R>>, JournalError> {
        match std::fs::read(path) {
            Ok(bytes) => parse(path, &bytes).map(|(records, _)| Some(records)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(JournalError::Io { what: "read", path: path.to_owned(), source }),
        }
    }

    /// How many bytes it has.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Adds a record and makes it durable. After an error the journal is as it was.
    pub fn append(&mut self, record: &impl Serialize) -> Result<(), JournalError> {
        if self.broken {
            return Err(JournalError::Broken { path: self.path.clone() });
        }
        let line = line(record).map_err(|source| self.io("write", source))?;
        let written = self
            .file
            .seek(SeekFrom::Start(self.length))
            .and_then(|_| self.file.write_all(&line))
            .and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => {
                self.length += line.len() as u64;
                Ok(())
            }
            Err(source) => {
                // Half a line in the middle would be damage; only what was there before may stay.
                self.broken = self.cut().is_err();
                Err(self.io("write", source))
            }
        }
    }

    /// Puts one record in the place of all there are.
    pub fn replace(&mut self, record: &impl Serialize) -> Result<(), JournalError> {
        let beside = self.path.with_extension("new");
        let whole = line(&Header { format: FORMAT })
            .and_then(|mut bytes| {
                bytes.extend(line(record)?);
                Ok(bytes)
            })
            .and_then(|bytes| {
                let mut file =
                    private(OpenOptions::new().read(true).write(true).create(true)).truncate(true).open(&beside)?;
                file.write_all(&bytes)?;
                file.sync_all()?;
                #[expect(clippy::disallowed_methods, reason = "a journal is replaced whole; nothing of a store is")]
                std::fs::rename(&beside, &self.path)?;
                Ok((file, bytes.len() as u64))
            });
        let (file, length) = whole.map_err(|source| self.io("replace", source))?;
        // From here on the new file is the journal, whatever follows; the old one has no name any more.
        (self.file, self.length) = (file, length);
        sync_folder(&self.path).map_err(|source| {
            self.broken = true;
            self.io("replace", source)
        })
    }

    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.length)?;
        self.file.sync_data()
    }

    fn io(&self, what: &'static str, source: io::Error) -> JournalError {
        JournalError::Io { what, path: self.path.clone(), source }
    }
}

/// What differs in a message may be nobody else's business.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

fn line(record: &impl Serialize) -> io::Result<Vec<u8>> {
    let json = serde_json::to_string(record)?;
    Ok(format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())).into_bytes())
}

/// The records, and where the last whole one ends.
fn parse<R: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<(Vec<R>, u64), JournalError> {
    let mut records = Vec::new();
    let mut end = 0;
    for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let Some(json) = checked(line) else {
            return match end + line.len() == bytes.len() {
                true => Ok((records, end as u64)),
                false => Err(JournalError::Damaged { path: path.to_owned(), line: at + 1 }),
            };
        };
        // A line that is whole and cannot be understood was written by someone else.
        let damaged = |_| JournalError::Damaged { path: path.to_owned(), line: at + 1 };
        if at == 0 {
            let header: Header = serde_json::from_str(json).map_err(damaged)?;
            if header.format > FORMAT {
                return Err(JournalError::Newer { path: path.to_owned(), format: header.format });
            }
        } else {
            records.push(serde_json::from_str(json).map_err(damaged)?);
        }
        end += line.len();
    }
    Ok((records, end as u64))
}

fn checked(line: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (sum, json) = text.split_once(' ')?;
    (u32::from_str_radix(sum, 16).ok()? == crc32fast::hash(json.as_bytes())).then_some(json)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn made(folder: &Path) -> PathBuf {
        let path = folder.join("journal");
        let (mut journal, records) = Journal::open::<String>(&path).unwrap();
        assert!(records.is_empty());
        for text in ["one", "two", "three"] {
            journal.append(&text).unwrap();
        }
        path
    }

    #[test]
    fn a_file_cut_anywhere_holds_the_records_before_the_cut_and_takes_new_ones() {
        let folder = tempfile::tempdir().unwrap();
        let whole = std::fs::read(made(folder.path())).unwrap();
        let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
        let path = folder.path().join("cut");
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let kept = ends.iter().filter(|end| **end < cut).count().saturating_sub(1);
            let (mut journal, records) = Journal::open::<String>(&path).unwrap();
            assert_eq!(records, ["one", "two", "three"][..kept], "cut at {cut}");
            journal.append(&"four").unwrap();
            let (_, again) = Journal::open::<String>(&path).unwrap();
            assert_eq!(again.last().unwrap(), "four", "cut at {cut}");
            assert_eq!(again.len(), kept + 1, "cut at {cut}");
        }
    }

    #[test]
    fn a_flipped_byte_before_the_last_line_is_damage_and_never_a_shorter_history() {
        let folder = tempfile::tempdir().unwrap();
        let whole = std::fs::read(made(folder.path())).unwrap();
        let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
        let path = folder.path().join("flipped");
        for at in 0..last {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            let opened = Journal::open::<String>(&path);
            assert!(matches!(opened, Err(JournalError::Damaged { .. })), "byte {at}: {opened:?}");
        }
    }

    #[test]
    fn a_newer_format_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("newer");
        std::fs::write(&path, line(&Header { format: FORMAT + 1 }).unwrap()).unwrap();
        assert!(matches!(Journal::open::<String>(&path), Err(JournalError::Newer { format: 2, .. })));
    }

    #[test]
    fn what_is_replaced_is_one_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = made(folder.path());
        let (mut journal, _) = Journal::open::<String>(&path).unwrap();
        journal.replace(&"all").unwrap();
        journal.append(&"next").unwrap();
        assert_eq!(Journal::open::<String>(&path).unwrap().1, ["all", "next"]);
    }
}
