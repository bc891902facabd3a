//! What the user is told when a command fails: what, on what, why, and what to do next.

use std::error::Error;
use std::fmt;

use driftline_store::StoreError;
use jiff::Timestamp;

use crate::output::visible;

/// An error with its causes, and hints.
#[derive(Debug)]
pub(crate) struct CommandError {
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
    /// When the newest version was taken, where that is what an older one is refused for.
    newest: Option<Timestamp>,
}

/// How an error about a program begins; what follows are its arguments, among which may be a secret.
pub(crate) const RUNNING: &str = "cannot observe with `";

pub(crate) type CommandResult<T> = Result<T, CommandError>;

impl CommandError {
    /// What is in the message may come from outside: it stays on its line.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: visible(&message.into()), causes: Vec::new(), hints: Vec::new(), newest: None }
    }

    /// A message that is laid out over several lines, by a library that we trust to do so.
    pub(crate) fn laid_out(message: &str) -> Self {
        let lines: Vec<String> = message.lines().map(visible).collect();
        Self { message: lines.join("\n"), causes: Vec::new(), hints: Vec::new(), newest: None }
    }

    /// Wraps an error in what was being done, keeping it as the cause.
    pub(crate) fn because(message: impl Into<String>, cause: &dyn Error) -> Self {
        let mut error = Self::new(message);
        error.push_chain(cause);
        error
    }

    /// When the newest version was taken, if this is about an older one.
    #[cfg(feature = "aws")]
    pub(crate) fn newest(&self) -> Option<Timestamp> {
        self.newest
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(visible(&hint.into()));
        self
    }

    /// The message with its causes, and the hints; for where they are not printed.
    #[cfg(feature = "web")]
    pub(crate) fn into_parts(self) -> (String, Vec<String>) {
        let mut message = self.message;
        for cause in &self.causes {
            message += &format!(": {cause}");
        }
        (message, self.hints)
    }

    fn push_chain(&mut self, cause: &dyn Error) {
        let mut next = Some(cause);
        while let Some(error) = next {
            let text = error.to_string();
            // Some libraries print their cause as part of their own message; once is enough.
            if !self.message.contains(&text) && !self.causes.iter().any(|known| known.contains(&text)) {
                self.causes.push(visible(&text));
            }
            next = error.source();
        }
    }

    /// What went wrong, in one sentence: what was said of it, and the first cause.
    pub(crate) fn message(&self) -> String {
        match self.causes.first() {
            Some(cause) => format!("{}: {cause}", self.message),
            None => self.message.clone(),
        }
    }

    /// What is at the bottom of it, without what was being done; that may name a program's arguments.
    #[cfg(feature = "notify")]
    pub(crate) fn root(&self) -> &str {
        self.causes.last().unwrap_or(&self.message)
    }

    /// Everything but the hints, on one line, as far as it names nothing that was given to a program.
    #[cfg(feature = "notify")]
    pub(crate) fn line(&self) -> String {
        let said = std::iter::once(&self.message).chain(&self.causes).filter(|text| !text.starts_with(RUNNING));
        said.map(String::as_str).collect::<Vec<_>>().join(": ")
    }

    #[cfg(feature = "mcp")]
    pub(crate) fn hints(&self) -> &[String] {
        &self.hints
    }

    /// The same error, said of something.
    pub(crate) fn about(mut self, what: impl fmt::Display) -> Self {
        self.causes.insert(0, std::mem::take(&mut self.message));
        self.message = visible(&what.to_string());
        self
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        for cause in &self.causes {
            write!(f, "\n  caused by: {cause}")?;
        }
        for hint in &self.hints {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        let mut told = Self::new(error.to_string());
        if let Some(cause) = error.source() {
            told.push_chain(cause);
        }
        if let StoreError::OutOfOrder { newest, .. } = &error {
            told.newest = Some(*newest);
        }
        match &error {
            StoreError::NoStore { .. } => told
                .hint("`driftline observe file FILE` makes one; `--store FOLDER` names another place")
                .hint("`driftline demo` shows what this is about"),
            StoreError::NotAStore { .. } => told.hint("name an empty or missing folder, or one that Driftline made, with `--store`"),
            StoreError::NewerFormat { .. } => told.hint("use the newest driftline on this store; nothing in it was changed"),
            StoreError::Damaged { .. } => told
                .hint("restore the named file from a copy of the store; one under `view/` is derived and can be deleted"),
            StoreError::NoSuchBaseline(name) => told
                .hint(format!("`driftline baseline set {name}` pins the newest version of every source"))
                .hint("`driftline baseline list` shows those there are"),
            StoreError::NoSuchStream(_) | StoreError::NoSuchVersion { .. } => {
                told.hint("`driftline log` lists sources and versions")
            }
            StoreError::Empty { .. } => told
                .hint("an empty listing usually means a broken observer; nothing was committed")
                .hint("if everything is really gone, repeat with --allow-empty"),
            StoreError::OutOfOrder { .. } => told
                .hint("an older observation would make the newest state look changed back; nothing was committed")
                .hint("check the observer's clock; if it is right, repeat with --allow-older"),
            StoreError::OtherSealKey { .. } => told
                .hint("with another key every secret would look changed; nothing was committed")
                .hint("give the store's own key in DRIFTLINE_SEAL_KEY or in the key file beside the store"),
            StoreError::Duplicate { .. } => {
                told.hint("a key names one thing: give each resource its own canonicalId, or merge the two; nothing was committed")
            }
            StoreError::Io { .. } => told.hint("the store is as it was; check free space and permissions, then repeat"),
            StoreError::Contended { .. } => told.hint("many writers are committing at once; repeat"),
            StoreError::Events(_) => {
                told.hint("`driftline log` lists what it holds, and `driftline blame RESOURCE` asks it who changed something")
            }
            StoreError::OtherNature { .. } => told.hint("give one of the two another name with --name; nothing was committed"),
            StoreError::Timeless { .. } => {
                told.hint("write it like 2026-06-29T10:00:00Z/id; docs/observation.md has more; nothing was committed")
            }
            StoreError::Parquet(_) | StoreError::TooMany => told,
        }
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}
