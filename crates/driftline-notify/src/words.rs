//! A message as people read it: a title and a few lines, of bounded length, on which nothing hidden can stand.

use crate::message::{About, Digest, DigestCause, Event, Finding, Health, Turn, Turned};

/// A title, and what stands beneath it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    pub title: String,
    pub lines: Vec<String>,
}

const TITLE: usize = 150;
const LINE: usize = 400;

impl Words {
    fn new(title: &str, lines: impl IntoIterator<Item = String>) -> Self {
        let lines = lines.into_iter().map(|line| clean(&line, LINE)).collect();
        Self { title: clean(title, TITLE), lines }
    }

    /// Title and lines as one text.
    pub fn text(&self) -> String {
        let mut text = self.title.clone();
        for line in &self.lines {
            text += &format!("\n{line}");
        }
        text
    }
}

pub fn words(event: &Event) -> Words {
    match &event.about {
        About::Finding(turned) => finding(turned, &event.baseline),
        About::Source(turned) => health(turned),
        About::Digest(digest) => of_digest(digest, &event.baseline),
        About::Test => Words::new(
            "Driftline: a test",
            ["Somebody tries this channel out; nothing happened. If you can read this, it works.".to_owned()],
        ),
    }
}

/// `[high] new: AWS::EC2::SecurityGroup sg-1 modified`.
fn finding_title(turned: &Turned<Finding>) -> String {
    let subject = &turned.subject;
    let severity = match turned.event {
        Turn::Resolved => String::new(),
        _ => subject.severity.as_ref().map(|level| format!("[{level}] ")).unwrap_or_default(),
    };
    let turn = match (turned.event, turned.again) {
        (Turn::New, true) => "back again",
        (turn, _) => turn.name(),
    };
    let what = subject.kind.as_deref().unwrap_or(if subject.status == "unknown" { "not in the baseline" } else { "" });
    let what = if turned.event == Turn::Resolved { String::new() } else { format!(" ({what})") };
    format!("{severity}{turn}: {} {}{what}", subject.resource_type, short_name(&subject.canonical_id))
}

/// What follows service, region and account in an ARN is what people know it by; the whole of it is on its own line.
fn short_name(id: &str) -> &str {
    match id.starts_with("arn:") && !id.contains(' ') {
        true => id.splitn(6, ':').nth(5).unwrap_or(id),
        false => id,
    }
}

fn finding(turned: &Turned<Finding>, baseline: &str) -> Words {
    let subject = &turned.subject;
    let mut lines = vec![subject.canonical_id.clone(), format!("seen by {} in {}", subject.source, subject.place)];
    match turned.event {
        Turn::Resolved => lines.push(match turned.because.as_deref() {
            Some("accepted") => format!("It was accepted into the baseline `{baseline}`."),
            Some("baseline") => format!("The baseline `{baseline}` was set anew, and has it as it is."),
            _ => format!("It is again as the baseline `{baseline}` has it."),
        }),
        Turn::Flapping => {
            let often = turned.changes_lately.unwrap_or_default();
            lines.push(format!("It changed {often} times lately; nothing more is said until it stays as it is."));
        }
        Turn::Settled => lines.push("It has stayed as it was last told.".into()),
        Turn::New | Turn::Changed => {}
    }
    if turned.event != Turn::Resolved {
        lines.extend(subject.severity_reason.clone());
        for change in &subject.changes {
            let path = if change.path.is_empty() { "(whole resource)" } else { &change.path };
            lines.push(format!("{path}: {} -> {}", change.before, change.after));
        }
        let more = subject.change_count.saturating_sub(subject.changes.len());
        if more > 0 {
            lines.push(format!("… and {more} more changes"));
        }
        lines.extend(subject.first_seen.map(|since| format!("differs since {since}")));
    }
    Words::new(&finding_title(turned), lines)
}

fn health_title(turned: &Turned<Health>) -> String {
    let Health { source, trouble, .. } = &turned.subject;
    match turned.event {
        Turn::Resolved => format!("source {source} works again"),
        Turn::Flapping => format!("source {source} fails and works by turns"),
        _ => format!("source {source} is {trouble}"),
    }
}

fn health(turned: &Turned<Health>) -> Words {
    let lines = match turned.event {
        Turn::Resolved => vec!["It was observed again.".to_owned()],
        _ => vec![
            turned.subject.reason.clone(),
            "What it watches is not checked meanwhile; nothing of it is called resolved.".to_owned(),
        ],
    };
    Words::new(&health_title(turned), lines)
}

fn of_digest(digest: &Digest, baseline: &str) -> Words {
    let levels: Vec<String> = ["critical", "high", "medium", "low", "info"]
        .iter()
        .filter_map(|level| digest.severities.get(*level).map(|count| format!("{count} {level}")))
        .collect();
    let levels = if levels.is_empty() { String::new() } else { format!(": {}", levels.join(", ")) };
    let title = match digest.cause {
        DigestCause::First => format!("Drift against `{baseline}`: {} open{levels}", digest.counts.total()),
        _ => format!("Drift against `{baseline}`: {}{levels}", digest.counts.words()),
    };
    let why = match digest.cause {
        DigestCause::First => Some("This is how things stand; from now on only what changes is told."),
        DigestCause::Storm => Some("So much happened at once that it is told in one message."),
        DigestCause::Quiet => Some("This is what came of the maintenance window."),
        DigestCause::Round => None,
    };
    let mut lines: Vec<String> = why.map(ToOwned::to_owned).into_iter().collect();
    for turned in &digest.sources {
        lines.push(format!("{}: {}", health_title(turned), turned.subject.reason));
    }
    for turned in &digest.findings {
        lines.push(format!("{} ({})", finding_title(turned), turned.subject.source));
        if turned.event != Turn::Resolved {
            lines.extend(turned.subject.changes.iter().take(3).map(|change| {
                let path = if change.path.is_empty() { "(whole resource)" } else { &change.path };
                format!("    {path}: {} -> {}", change.before, change.after)
            }));
        }
    }
    if digest.more > 0 {
        lines.push(format!("… and {} more; `driftline drift` lists everything that is open", digest.more));
    }
    Words::new(&title, lines)
}

/// One line: what is hidden, ends a line or turns the direction of reading is shown as an escape; cut where it is long.
pub fn clean(text: &str, most: usize) -> String {
    let hidden = |char: char| {
        char.is_control()
            || matches!(char, '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(char, '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
    };
    // Counted as it is sent: channels refuse what is longer, and an escape is longer than what it stands for.
    let mut out: Vec<char> = Vec::new();
    for char in text.chars().take(most + 1) {
        if hidden(char) { out.extend(char.escape_unicode()) } else { out.push(char) }
    }
    if out.len() > most {
        out.truncate(most.saturating_sub(1));
        out.push('…');
    }
    out.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hidden_reaches_a_reader_and_everything_ends() {
        assert_eq!(clean("a\nb\u{202e}c", 20), "a\\u{a}b\\u{202e}c");
        assert_eq!(clean("aaaa", 3), "aa…");
        assert_eq!(clean(&"\u{202e}".repeat(400), 150).chars().count(), 150);
        assert_eq!(clean("aaa", 3), "aaa");
    }
}
