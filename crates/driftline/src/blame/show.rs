//! How the answer to `blame` is printed.

use std::io::{self, Write};

use serde::Serialize;

use super::{Act, Blame, Certainty, Turn, Turned};
use crate::output::{BOLD, CYAN, DIM, GREEN, Page, RED, Show, YELLOW, markdown_cell, visible};
use crate::report::{JsonChange, change_line, json_change};
use crate::settings::Settings;
use crate::time::ago;

pub(super) struct Told<'s> {
    pub settings: &'s Settings,
    pub blame: Blame,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonTurn<'a> {
    source: String,
    resource_type: &'a str,
    place: &'a str,
    what: Turned,
    from: Option<jiff::Timestamp>,
    to: jiff::Timestamp,
    from_version: Option<u64>,
    to_version: u64,
    changes: Vec<JsonChange<'a>>,
    acts: &'a [Act],
    notes: &'a [String],
}

fn json_turn(turn: &Turn) -> JsonTurn<'_> {
    JsonTurn {
        source: turn.stream.to_string(),
        resource_type: &turn.key.kind,
        place: turn.key.place.as_str(),
        what: turn.what,
        from: turn.from,
        to: turn.to,
        from_version: turn.versions.0,
        to_version: turn.versions.1,
        changes: turn.changes.iter().map(json_change).collect(),
        acts: &turn.acts,
        notes: &turn.notes,
    }
}

fn window(turn: &Turn) -> String {
    let to = format!("v{} at {}", turn.versions.1, turn.to);
    match (turn.from, turn.versions.0) {
        (Some(from), Some(version)) => format!("between v{version} at {from} and {to}"),
        _ => format!("before {to}"),
    }
}

fn how(act: &Act) -> String {
    let how = act.how.as_ref().map(|how| format!(" with {how}")).unwrap_or_default();
    let from = act.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
    let error = act.error.as_ref().map(|error| format!(", refused with {error}")).unwrap_or_default();
    format!("{how}{from}{error}")
}

impl Show for Told<'_> {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        writeln!(page, "{}", page.paint(BOLD, &self.blame.id))?;
        if let Some(note) = &self.blame.note {
            writeln!(page, "{}", visible(note))?;
        }
        for turn in &self.blame.turns {
            let style = match turn.what {
                Turned::New => CYAN,
                Turned::Modified => YELLOW,
                Turned::Deleted => RED,
            };
            let what = page.paint(style, turn.what.word());
            writeln!(page, "\n{what} {}, as {} saw it", visible(&window(turn)), turn.stream)?;
            for change in &turn.changes {
                writeln!(page, "    {}", visible(&change_line(change)))?;
            }
            for act in &turn.acts {
                let style = match act.certainty {
                    Certainty::Certain => GREEN,
                    Certainty::Likely => YELLOW,
                    Certainty::Possible | Certainty::Refused => DIM,
                };
                let sure = page.paint(style, &format!("{:<8}", act.certainty.word()));
                let when = format!("{} ({})", act.at, ago(act.at, self.settings.now));
                writeln!(page, "  {sure}  {}  {}{}", visible(&act.who), visible(&act.what), visible(&how(act)))?;
                let event = act.event_id.as_ref().map(|id| format!("; event {id}")).unwrap_or_default();
                writeln!(page, "{}", page.paint(DIM, &visible(&format!("            {when}: {}{event}", act.why))))?;
            }
            if turn.acts.is_empty() {
                writeln!(page, "  nobody is known to have done it")?;
            }
            for note in &turn.notes {
                writeln!(page, "  note: {}", visible(note))?;
            }
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct All<'a> {
            schema: &'a str,
            canonical_id: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            from: Option<jiff::Timestamp>,
            #[serde(skip_serializing_if = "Option::is_none")]
            to: Option<jiff::Timestamp>,
            #[serde(skip_serializing_if = "Option::is_none")]
            note: Option<&'a str>,
            changes: Vec<JsonTurn<'a>>,
        }
        let all = All {
            schema: "driftline.blame/v1",
            canonical_id: &self.blame.id,
            from: self.blame.from,
            to: self.blame.to,
            note: self.blame.note.as_deref(),
            changes: self.blame.turns.iter().map(json_turn).collect(),
        };
        Ok(serde_json::to_writer_pretty(out, &all)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        for turn in &self.blame.turns {
            serde_json::to_writer(&mut *out, &json_turn(turn))?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### Who changed {}\n", markdown_cell(&self.blame.id))?;
        if let Some(note) = &self.blame.note {
            writeln!(out, "{}\n", markdown_cell(note))?;
        }
        for turn in &self.blame.turns {
            writeln!(
                out,
                "**{}** {}, as {} saw it\n",
                turn.what.word(),
                window(turn),
                markdown_cell(&turn.stream.to_string())
            )?;
            for change in &turn.changes {
                writeln!(out, "- {}", markdown_cell(&change_line(change)))?;
            }
            if !turn.acts.is_empty() {
                writeln!(out, "\n| | when | who | what | why |\n|---|---|---|---|---|")?;
            }
            for act in &turn.acts {
                let what = markdown_cell(&format!("{}{}", act.what, how(act)));
                let (who, why) = (markdown_cell(&act.who), markdown_cell(&act.why));
                writeln!(out, "| {} | {} | {who} | {what} | {why} |", act.certainty.word(), act.at)?;
            }
            for note in &turn.notes {
                writeln!(out, "\n{}", markdown_cell(note))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}
