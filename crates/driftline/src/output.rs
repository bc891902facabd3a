//! Results on stdout or into files, in the formats asked for; everything else on stderr.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
pub(crate) use driftline_core::text::{is_hidden, short, visible};

use crate::args::{ColorChoice, Global};
use crate::error::{CommandError, CommandResult};
use crate::surroundings::{text_variable, variable};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
    Json,
    Ndjson,
    Markdown,
    Mermaid,
    Dot,
    Svg,
    /// As AWS tells drift.
    Cfn,
    /// One page that needs nothing else.
    Html,
    Sarif,
    Junit,
    /// Annotations of a workflow run, and the summary of its step.
    Github,
    Csv,
    /// Rows for other programs; never to a terminal.
    Parquet,
}

impl Format {
    const ALL: [(&'static str, Format); 14] = [
        ("table", Format::Table),
        ("json", Format::Json),
        ("ndjson", Format::Ndjson),
        ("markdown", Format::Markdown),
        ("mermaid", Format::Mermaid),
        ("dot", Format::Dot),
        ("svg", Format::Svg),
        ("cfn", Format::Cfn),
        ("html", Format::Html),
        ("sarif", Format::Sarif),
        ("junit", Format::Junit),
        ("github", Format::Github),
        ("csv", Format::Csv),
        ("parquet", Format::Parquet),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    /// Whether only few answers have it.
    fn is_drawing(self) -> bool {
        !matches!(self, Format::Table | Format::Json | Format::Ndjson | Format::Markdown)
    }
}

#[derive(Clone, Debug)]
struct Output {
    format: Format,
    file: Option<PathBuf>,
}

/// What can be printed in every format.
pub(crate) trait Show {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()>;
    /// Exactly one JSON value.
    fn json(&self, out: &mut dyn Write) -> io::Result<()>;
    /// One JSON value a line.
    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()>;
    fn markdown(&self, out: &mut dyn Write) -> io::Result<()>;
    /// A picture, or another form that only few answers have.
    fn draw(&self, _format: Format) -> Option<String> {
        None
    }
    /// A form that is bytes for other programs.
    fn data(&self, _format: Format) -> Option<io::Result<Vec<u8>>> {
        None
    }
    /// Markdown in at most so many bytes, for the summary of a workflow's step.
    fn summary(&self, _room: usize) -> Option<String> {
        None
    }
}

/// How much is said beside the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Talk {
    Nothing,
    Usual,
    More,
}

/// Takes what would go to the terminal, where there is none that anybody looks at.
pub(crate) trait Ear: std::fmt::Debug + Send + Sync {
    /// A remark beside the result: `info`, `warn` or `error`.
    fn hear(&self, level: &'static str, text: &str);
    /// The result, as JSON.
    fn take(&self, json: Vec<u8>);
}

/// Prints results as the command line asks.
#[derive(Clone, Debug)]
pub(crate) struct Printer {
    ear: Option<std::sync::Arc<dyn Ear>>,
    outputs: Vec<Output>,
    color: bool,
    color_errors: bool,
    talk: Talk,
}

/// A place to write a table to, which knows whether it may use colour.
pub(crate) struct Page<'a> {
    out: &'a mut dyn Write,
    color: bool,
}

impl Write for Page<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

impl Page<'_> {
    /// The text, in a style where colour may be used. Control characters in it are shown, never sent.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        let text = visible(text);
        if self.color { format!("{style}{text}{style:#}") } else { text }
    }
}

/// Text for XML. What XML has no form for (most control characters) is shown as an escape, and so is what would
/// change the direction of reading.
pub(crate) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            '\u{fffe}' | '\u{ffff}' => out.extend(char.escape_unicode()),
            char if is_hidden(char) => out.extend(char.escape_unicode()),
            char => out.push(char),
        }
    }
    out
}

impl Printer {
    pub(crate) fn new(global: &Global) -> CommandResult<Self> {
        let mut outputs = Vec::new();
        for text in &global.output {
            let (name, file) = match text.split_once('=') {
                Some((name, file)) => (name, Some(PathBuf::from(file))),
                None => (text.as_str(), None),
            };
            let Some((_, format)) = Format::ALL.into_iter().find(|(known, _)| *known == name) else {
                return Err(CommandError::new(format!("`{name}` is not an output format")).hint(
                    "the formats are table, json, ndjson and markdown; `drift`, `diff` and `compare` also have html, \
                     sarif, junit and github, `topology` has mermaid, dot and svg, and `query` has csv and parquet",
                ));
            };
            if format == Format::Parquet && file.is_none() {
                return Err(CommandError::new("parquet is not for a terminal").hint("name a file: -o parquet=FILE"));
            }
            outputs.push(Output { format, file });
        }
        if outputs.is_empty() {
            outputs.push(Output { format: Format::Table, file: None });
        }
        // GitHub reads its commands between whatever else is in the log of a step, so they go with a table.
        let on_terminal = outputs.iter().filter(|output| output.file.is_none());
        let beside = |format: Format| on_terminal.clone().any(|output| output.format == format);
        let annotated = beside(Format::Github) && beside(Format::Table);
        if on_terminal.clone().count() > if annotated { 2 } else { 1 } {
            return Err(CommandError::new("only one output can go to the terminal")
                .hint("give the others a file: -o json=FILE"));
        }
        Ok(Self {
            ear: None,
            outputs,
            color: use_color(global.color, io::stdout().is_terminal()),
            color_errors: use_color(global.color, io::stderr().is_terminal()),
            talk: talk(global),
        })
    }

    /// Refuses what the answer will not have, before it is looked for.
    #[cfg(feature = "sql")]
    pub(crate) fn only(&self, formats: &[Format]) -> CommandResult<()> {
        match self.outputs.iter().find(|output| !formats.contains(&output.format)) {
            Some(other) if self.ear.is_none() => {
                let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
                Err(CommandError::new(format!("this command has no {} output", other.format.name()))
                    .hint(format!("it has {}", names.join(", "))))
            }
            _ => Ok(()),
        }
    }

    /// Whether a format is asked for, wherever it goes.
    pub(crate) fn prints(&self, format: Format) -> bool {
        self.outputs.iter().any(|output| output.format == format)
    }

    /// Whether a person reads the result as a table on the terminal.
    pub(crate) fn prints_table(&self) -> bool {
        self.outputs.iter().any(|output| output.format == Format::Table && output.file.is_none())
    }

    /// For errors that come before the settings are known to be good.
    pub(crate) fn plain(global: &Global) -> Self {
        Self {
            ear: None,
            outputs: Vec::new(),
            color: false,
            color_errors: use_color(global.color, io::stderr().is_terminal()),
            talk: talk(global),
        }
    }

    /// Whether somebody listens in place of the terminal, and will ask again.
    pub(crate) fn is_heard(&self) -> bool {
        self.ear.is_some()
    }

    /// The same, with somebody who listens in place of the terminal.
    #[cfg(any(feature = "notify", feature = "mcp", feature = "sql"))]
    pub(crate) fn heard_by(&self, ear: Option<std::sync::Arc<dyn Ear>>) -> Self {
        Self { ear, ..self.clone() }
    }

    pub(crate) fn print(&self, what: &dyn Show) -> CommandResult<()> {
        if let Some(ear) = &self.ear {
            let mut json = Vec::new();
            what.json(&mut json)?;
            ear.take(json);
            return Ok(());
        }
        // Before anything is written: a command that cannot do all that is asked does nothing.
        let draw = |output: &Output| {
            if !output.format.is_drawing() {
                return Ok(None);
            }
            let drawn = what.draw(output.format).map(|text| Ok(text.into_bytes()));
            match drawn.or_else(|| what.data(output.format)) {
                Some(drawn) => Ok(Some(drawn?)),
                None => Err(no_such(output.format)),
            }
        };
        let drawings = self.outputs.iter().map(draw).collect::<CommandResult<Vec<Option<Vec<u8>>>>>()?;
        for (output, drawing) in self.outputs.iter().zip(drawings) {
            let write = |out: &mut dyn Write, color: bool| match &drawing {
                Some(drawing) => out.write_all(drawing),
                None => write_as(output.format, what, out, color),
            };
            match &output.file {
                Some(path) => replace_file(path, |file| write(file, false))
                    .map_err(|error| CommandError::because(format!("cannot write `{}`", path.display()), &error))?,
                None => {
                    let mut out = BufWriter::with_capacity(64 * 1024, io::stdout().lock());
                    delivered(write(&mut out, self.color).and_then(|()| out.flush()))?;
                }
            }
        }
        if self.prints(Format::Github) {
            self.summarize(what)?;
        }
        Ok(())
    }

    /// Adds to the summary of a workflow's step, where there is one and as far as it has room.
    fn summarize(&self, what: &dyn Show) -> CommandResult<()> {
        let Some(path) = text_variable("GITHUB_STEP_SUMMARY").map(PathBuf::from) else { return Ok(()) };
        let failed = |error: io::Error| {
            CommandError::because(format!("cannot add to the step's summary `{}`", path.display()), &error)
        };
        let mut file = OpenOptions::new().append(true).create(true).open(&path).map_err(failed)?;
        let taken = file.metadata().map_err(failed)?.len();
        let room = SUMMARY.saturating_sub(usize::try_from(taken).unwrap_or(usize::MAX));
        match what.summary(room) {
            Some(text) if text.len() <= room => file.write_all(text.as_bytes()).map_err(failed),
            _ => {
                self.warn(&format!("the step's summary `{}` has no room left; nothing was added", path.display()));
                Ok(())
            }
        }
    }

    /// A line on stderr that may be left out.
    pub(crate) fn note(&self, text: &str) {
        if self.talk >= Talk::Usual {
            self.say("info", &visible_lines(text));
        }
    }

    /// A line on stderr for the curious.
    pub(crate) fn detail(&self, text: &str) {
        if self.talk >= Talk::More {
            self.say("info", &visible_lines(text));
        }
    }

    pub(crate) fn warn(&self, text: &str) {
        if let Some(ear) = &self.ear {
            return ear.hear("warn", &visible_lines(text));
        }
        let word = if self.color_errors { format!("{YELLOW}warning:{YELLOW:#}") } else { "warning:".to_owned() };
        if self.talk >= Talk::Usual {
            self.say("warn", &format!("{word} {}", visible_lines(text)));
        }
    }

    pub(crate) fn error(&self, error: &CommandError) {
        let text = visible_lines(&error.to_string());
        match text.strip_prefix("error:") {
            Some(rest) if self.color_errors && self.ear.is_none() => {
                self.say("error", &format!("{RED}error:{RED:#}{rest}"));
            }
            _ => self.say("error", &text),
        }
    }

    fn say(&self, level: &'static str, text: &str) {
        match &self.ear {
            Some(ear) => ear.hear(level, text),
            None => {
                let _ = writeln!(io::stderr().lock(), "{text}");
            }
        }
    }

    #[cfg(any(feature = "kube", feature = "notify"))]
    pub(crate) fn is_quiet(&self) -> bool {
        self.talk < Talk::Usual
    }

    #[cfg(any(feature = "kube", feature = "ballista"))]
    pub(crate) fn is_verbose(&self) -> bool {
        self.talk >= Talk::More
    }

    pub(crate) fn shows_progress(&self) -> bool {
        self.ear.is_none() && self.talk >= Talk::Usual && io::stderr().is_terminal() && variable("CI").is_none()
    }
}

fn no_such(format: Format) -> CommandError {
    CommandError::new(format!("this command has no {} output", format.name())).hint(
        "`topology` draws; `drift`, `diff` and `compare` have html, sarif, junit and github; `compare` has cfn; `query` \
         has csv and parquet",
    )
}

/// What GitHub takes as the summary of one step: 1 MiB.
const SUMMARY: usize = 1 << 20;

/// Writes a file so that there is the old one or the new one, whole, whatever happens in between.
fn replace_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let fill = |file: File| {
        let mut file = BufWriter::with_capacity(64 * 1024, file);
        write(&mut file)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)
    };
    // A device or a pipe is written to, never replaced; a link stays, and what it names is replaced.
    let path = &match path.canonicalize() {
        Ok(target) if !target.is_file() => return fill(OpenOptions::new().write(true).open(target)?).map(drop),
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let Some(name) = path.file_name() else { return Err(io::ErrorKind::InvalidFilename.into()) };
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}.part", std::process::id()));
    let beside = path.with_file_name(beside);
    let finish = || {
        let file = fill(File::create(&beside)?)?;
        if let Ok(known) = path.metadata() {
            file.set_permissions(known.permissions())?;
        }
        file.sync_all()?;
        #[expect(clippy::disallowed_methods, reason = "a report is replaced; nothing of the store is")]
        std::fs::rename(&beside, path)
    };
    finish().inspect_err(|_| {
        let _ = std::fs::remove_file(&beside);
    })
}

/// Bytes to standard output.
pub(crate) fn write_out(bytes: &[u8]) -> CommandResult<()> {
    delivered(io::stdout().lock().write_all(bytes))
}

/// Whoever reads and stops has enough; that is no failure of ours.
pub(crate) fn delivered(outcome: io::Result<()>) -> CommandResult<()> {
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::because("cannot write to standard output", &error))
        }
        _ => Ok(()),
    }
}

/// `1 resource`, `2 resources`.
pub(crate) fn count(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn talk(global: &Global) -> Talk {
    match (global.quiet, global.verbose) {
        (true, _) => Talk::Nothing,
        (false, false) => Talk::Usual,
        (false, true) => Talk::More,
    }
}

fn visible_lines(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

fn write_as(format: Format, what: &dyn Show, out: &mut dyn Write, color: bool) -> io::Result<()> {
    match format {
        Format::Table => what.table(&mut Page { out, color }),
        Format::Json => what.json(out).and_then(|()| out.write_all(b"\n")),
        Format::Ndjson => what.ndjson(out),
        Format::Markdown => what.markdown(out),
        // The others were drawn before, and whole.
        _ => Ok(()),
    }
}

fn use_color(choice: ColorChoice, terminal: bool) -> bool {
    let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("NO_COLOR") => false,
        ColorChoice::Auto if set("FORCE_COLOR") => true,
        ColorChoice::Auto => terminal && variable("TERM").is_none_or(|term| term != "dumb"),
    }
}

/// Rows of cells, columns as wide as their widest cell. The last column is not padded.
pub(crate) fn columns(rows: &[Vec<String>], indent: usize) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| visible(cell).chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    rows.iter()
        .map(|row| {
            let mut line = " ".repeat(indent);
            for (at, cell) in row.iter().enumerate() {
                let cell = visible(cell);
                line.push_str(&cell);
                if at + 1 < row.len() {
                    line.push_str(&" ".repeat(widths[at] - cell.chars().count() + 2));
                }
            }
            line.trim_end().to_owned()
        })
        .collect()
}

/// A table whose first row is its heading.
pub(crate) fn markdown_table(rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    for (at, row) in rows.iter().enumerate() {
        writeln!(out, "| {} |", row.iter().map(|cell| markdown_cell(cell)).collect::<Vec<_>>().join(" | "))?;
        if at == 0 {
            writeln!(out, "|{}", "---|".repeat(row.len()))?;
        }
    }
    Ok(())
}

/// Text for a cell of a Markdown table: nothing in it can end the cell or begin markup.
pub(crate) fn markdown_cell(text: &str) -> String {
    let mut out = String::new();
    for char in visible(text).chars() {
        match char {
            // In a comment this would call people.
            '@' if !out.ends_with(|before: char| before.is_alphanumeric()) => out.push_str("@<!-- -->"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' | '~' => {
                out.push('\\');
                out.push(char);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            _ => out.push(char),
        }
    }
    out
}
