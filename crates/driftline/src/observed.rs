//! What observing did: the versions that were made, told in every format.

use std::io::{self, Write};

use driftline_store::draft::Committed;
use serde::Serialize;

use crate::output::{GREEN, Page, Show, count, markdown_cell};

/// What a run did: the versions it made, and the streams that needed none.
#[derive(Default)]
pub(crate) struct Report {
    pub committed: Vec<Line>,
    pub unchanged: Vec<Unchanged>,
}

/// A stream whose newest version is of what was found again.
#[derive(Serialize)]
pub(crate) struct Unchanged {
    pub source: String,
    pub version: u64,
}

/// One version that was made.
#[derive(Debug)]
pub(crate) struct Line {
    source: String,
    committed: Committed,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JsonLine<'a> {
    source: &'a str,
    version: u64,
    resources: u64,
    not_seen: u64,
    changes: &'a driftline_store::log::ChangeCounts,
    extents: Extents,
    bytes: u64,
}

#[derive(Serialize)]
pub(crate) struct Extents {
    pub complete: usize,
    pub partial: usize,
}

impl Line {
    pub(crate) fn new(source: String, committed: Committed) -> Self {
        Self { source, committed }
    }

    /// Whether something was not seen whole.
    pub(crate) fn is_partial(&self) -> bool {
        self.committed.partial_extents > 0
    }

    /// The stream that it is a version of.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn committed(&self) -> &Committed {
        &self.committed
    }

    /// How many of what, for a log.
    #[cfg(feature = "notify")]
    pub(crate) fn facts(&self) -> [(&'static str, String); 7] {
        let Committed { version, rows, unseen, changes, partial_extents, .. } = &self.committed;
        [
            ("version", version.to_string()),
            ("resources", rows.to_string()),
            ("changed", changes.change.to_string()),
            ("new", changes.add.to_string()),
            ("gone", changes.remove.to_string()),
            ("not_seen", unseen.to_string()),
            ("partial_extents", partial_extents.to_string()),
        ]
    }

    pub(crate) fn json(&self) -> JsonLine<'_> {
        let committed = &self.committed;
        JsonLine {
            source: &self.source,
            version: committed.version,
            resources: committed.rows,
            not_seen: committed.unseen,
            changes: &committed.changes,
            extents: Extents { complete: committed.complete_extents, partial: committed.partial_extents },
            bytes: committed.bytes,
        }
    }

    pub(crate) fn summary(&self) -> String {
        let committed = &self.committed;
        let changes = &committed.changes;
        let mut text = count(committed.rows, if committed.events { "event" } else { "resource" });
        if committed.events && committed.version > 1 {
            text += &format!(": {} new", changes.add);
        } else if committed.version > 1 {
            text += &format!(": {} changed, {} new, {} gone", changes.change, changes.add, changes.remove);
        }
        if committed.unseen > 0 {
            text += &format!(", {} not looked at", committed.unseen);
        }
        if committed.partial_extents > 0 {
            let extents = committed.complete_extents + committed.partial_extents;
            text += &format!(" ({} of {extents} extents partial)", committed.partial_extents);
        }
        text
    }
}

impl Show for Report {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        for line in &self.committed {
            let what = page.paint(GREEN, &format!("{} v{}", line.source, line.committed.version));
            writeln!(page, "{what}  {}", line.summary())?;
        }
        for same in &self.unchanged {
            writeln!(page, "{} v{}  unchanged", same.source, same.version)?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct All<'a> {
            schema: &'a str,
            committed: Vec<JsonLine<'a>>,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            unchanged: &'a [Unchanged],
        }
        let all = All {
            schema: "driftline.observed/v1",
            committed: self.committed.iter().map(Line::json).collect(),
            unchanged: &self.unchanged,
        };
        Ok(serde_json::to_writer_pretty(out, &all)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        for line in &self.committed {
            serde_json::to_writer(&mut *out, &line.json())?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "| source | version | |\n|---|---|---|")?;
        for line in &self.committed {
            writeln!(out, "| {} | {} | {} |", markdown_cell(&line.source), line.committed.version, line.summary())?;
        }
        for same in &self.unchanged {
            writeln!(out, "| {} | {} | unchanged |", markdown_cell(&same.source), same.version)?;
        }
        Ok(())
    }
}
