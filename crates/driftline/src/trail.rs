//! `observe cloudtrail`: who did what, from log files, from a trail's bucket, or asked of AWS.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use driftline_core::{Outcome, SourceName, Span, StreamId};
use driftline_sources::cloudtrail::{Asked, FILES, Known, Trail, Whose, is_log};
use jiff::{SignedDuration, Timestamp};

use crate::args::{CloudTrailArgs, PermissionArgs};
use crate::documents::{self, unpacked};
use crate::error::{CommandError, CommandResult};
use crate::live_args::{EventArgs, LiveArgs};
use crate::observe::{self, Line, Report, commit_listing, exit_code};
use crate::output::count;
use crate::settings::Settings;
use crate::time::parse_moment;

const OBSERVER: &str = "cloudtrail";

/// How far back a place is looked at of which nothing is known. CloudTrail answers two calls a second with fifty events
/// each: all of its ninety days can take hours.
#[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "only what asks AWS goes on from somewhere"))]
pub(crate) const FIRST: SignedDuration = SignedDuration::from_hours(24 * 7);

/// CloudTrail has an event at hand within this time, on average.
pub(crate) const LAG: SignedDuration = SignedDuration::from_mins(15);

/// More than CloudTrail puts into a file, unpacked.
pub(crate) const LARGEST: u64 = 256 << 20;

pub(crate) fn run(settings: &Settings, args: CloudTrailArgs) -> CommandResult<u8> {
    let live = LiveArgs { events: args.events, ..args.live };
    if args.logs.is_empty() {
        return observe::live(settings, OBSERVER, args.name.as_deref(), &live, args.permissions);
    }
    let of_bucket = args.logs.iter().any(|name| name.starts_with("s3://"));
    if live.dry_run || (live.is_said() && !of_bucket) {
        return Err(CommandError::new("log files are named, and so is what to ask AWS for")
            .hint("leave out the files to ask AWS, or the other arguments to read them"));
    }
    let name = args.name.as_deref().unwrap_or(OBSERVER);
    let source: SourceName =
        name.parse().map_err(|error: driftline_core::NameError| CommandError::new(error.to_string()))?;
    let committed = from_logs(settings, &source, &args.logs, args.whole, &live, args.permissions)
        .map_err(|error| error.about("cannot observe cloudtrail"))?;
    let code = exit_code(live.strict, committed.iter().any(Line::is_partial));
    settings.printer.print(&Report { committed, ..Report::default() })?;
    Ok(code)
}

/// Reads log files wherever they are, and commits what each place has.
pub(crate) fn from_logs(
    settings: &Settings,
    source: &SourceName,
    logs: &[String],
    whole: bool,
    live: &LiveArgs,
    permissions: PermissionArgs,
) -> CommandResult<Vec<Line>> {
    let times = Times::of(settings, source, &live.events)?;
    let within = match (times.since, times.until) {
        (None, None) => None,
        (since, until) => Some(Span { from: since.unwrap_or(Timestamp::MIN), to: until.unwrap_or(Timestamp::MAX) }),
    };
    let mut trail = Trail::new(Asked { reads: live.events.reads, within });
    let mut known: BTreeMap<Whose, Known> = BTreeMap::new();
    let mut files = 0;
    for name in logs {
        match name.starts_with("s3://") {
            true => {
                let read = crate::buckets::read_trail(name, live, &times, settings.now, &mut trail)?;
                files += read.files;
                known.extend(read.known);
            }
            false => files += read_local(name, &mut trail)?,
        }
    }
    if let (true, Some(span)) = (whole, within) {
        // Nobody can vouch for what has not happened yet.
        let span = Span { to: span.to.min(settings.now), ..span };
        let vouched = |whose: &Whose| (whose.clone(), Known { outcome: Outcome::Complete, spans: vec![span] });
        known.extend(trail.places().map(vouched).collect::<Vec<_>>());
    }
    told(settings, &trail, files);
    let mut listings = trail.listings(&known).map_err(|error| {
        let refused = CommandError::new(error.to_string()).hint("nothing was committed");
        match error.hint {
            Some(hint) => refused.hint(hint),
            None => refused,
        }
    })?;
    if listings.is_empty() {
        settings.printer.warn("none of these files tells of something that was changed; nothing was committed");
    }
    let mut lines = Vec::new();
    for mut listing in listings.drain(..) {
        listing.taken_at = Some(settings.now);
        let stream = StreamId { source: source.clone(), scope: listing.scope.take() };
        if listing
            .coverage
            .iter()
            .any(|(_, _, outcome)| matches!(outcome, Outcome::Partial { reason } if reason == FILES))
        {
            settings.printer.detail(&format!("{stream}: {FILES}; --whole with --since and --until says that they are"));
        }
        lines.push(commit_listing(settings, stream, listing, "driftline observe cloudtrail", permissions)?);
    }
    Ok(lines)
}

/// Says what was left out, because nobody misses what they do not know of.
fn told(settings: &Settings, trail: &Trail, files: usize) {
    let counts = trail.counts();
    let left = [(counts.reads, "only read"), (counts.data, "manage nothing"), (counts.outside, "are of another time")];
    let left: Vec<String> =
        left.into_iter().filter(|(number, _)| *number > 0).map(|(number, why)| format!("{number} {why}")).collect();
    let left = if left.is_empty() { String::new() } else { format!("; left out: {}", left.join(", ")) };
    settings.printer.note(&format!("{} in {}{left}", count(counts.records, "record"), count(files, "file")));
}

/// From when to when, as it was asked for, and what is known already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// By scope, the end of what is known.
    #[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "only what asks AWS goes on from somewhere"))]
    pub known_until: BTreeMap<String, Timestamp>,
}

impl Times {
    pub(crate) fn of(settings: &Settings, source: &SourceName, args: &EventArgs) -> CommandResult<Self> {
        let moment = |text: &Option<String>| text.as_ref().map(|text| parse_moment(text, settings.now)).transpose();
        let (since, until) = (moment(&args.since)?, moment(&args.until)?);
        if let (Some(since), Some(until)) = (since, until)
            && since >= until
        {
            return Err(CommandError::new(format!("--since {since} is not before --until {until}")));
        }
        let mut known_until = BTreeMap::new();
        if let Some(store) = settings.store_if_any()? {
            for (id, stream) in store.catalog().event_streams().filter(|(id, _)| id.source == *source) {
                let spans = stream.head().and_then(|head| head.nature.spans()).unwrap_or_default();
                if let (Some(scope), Some(last)) = (&id.scope, spans.last()) {
                    known_until.insert(scope.to_string(), last.to);
                }
            }
        }
        Ok(Self { since, until, known_until })
    }
}

fn read_local(name: &str, trail: &mut Trail) -> CommandResult<usize> {
    let path = Path::new(name);
    if path.is_dir() {
        let mut files = Vec::new();
        walk(path, &mut files)?;
        if files.is_empty() {
            return Err(CommandError::new(format!("there are no log files in `{name}`"))
                .hint("they are called something.json or something.json.gz"));
        }
        for file in &files {
            let shown = file.display().to_string();
            match std::fs::read(file) {
                Ok(bytes) => take(trail, &shown, bytes),
                Err(error) => trail.unread(&shown, format!("it cannot be read: {error}")),
            }
        }
        return Ok(files.len());
    }
    let names = documents::expand(name)?;
    for name in &names {
        let text = documents::read(name.clone())?;
        take(trail, &text.name, text.bytes);
    }
    Ok(names.len())
}

/// One file that is broken does not lose the others.
pub(crate) fn take(trail: &mut Trail, name: &str, bytes: Vec<u8>) {
    match unpacked(bytes, LARGEST) {
        Ok(bytes) => {
            if let Err(error) = trail.document(name, &bytes) {
                trail.unread(name, error.message);
            }
        }
        Err(why) => trail.unread(name, why),
    }
}

/// Every log file beneath a folder, in order. Links to folders are not followed: they may lead back.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> CommandResult<()> {
    let about = |error: std::io::Error| CommandError::because(format!("cannot read `{}`", folder.display()), &error);
    let mut entries: Vec<_> = std::fs::read_dir(folder).map_err(about)?.collect::<Result<_, _>>().map_err(about)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type().map_err(about)?;
        let path = entry.path();
        if kind.is_dir() {
            walk(&path, files)?;
        } else if is_log(&path.to_string_lossy()) {
            files.push(path);
        }
    }
    Ok(())
}
