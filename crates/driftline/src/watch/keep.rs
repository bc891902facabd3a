//! What `watch` keeps beside the store: one journal, and a lock that dies with the process. And how to look at it.

use std::fs::File;
use std::path::PathBuf;

use driftline_notify::channel::Channel;
use driftline_notify::message::{About, Event, Message};
use driftline_notify::outbox::{Pending, State};
use driftline_notify::{JournalError, Outbox};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::channels;
use crate::error::{CommandError, CommandResult};
use crate::output::count;
use crate::place::StoreAt;
use crate::settings::Settings;
use crate::surroundings::{clock, text_variable};
use crate::time::ago;
use crate::upkeep::Plain;

/// Beside the store and not in it: who is given the store is not given what was told. Beside a bucket there is
/// nothing, so what was told of one is kept where this machine keeps such things.
pub(crate) fn folder(store: &StoreAt) -> CommandResult<PathBuf> {
    let Some(folder) = store.folder() else {
        let state = text_variable("XDG_STATE_HOME").map(PathBuf::from);
        let state = state.or_else(|| text_variable("HOME").map(|home| PathBuf::from(home).join(".local/state")));
        let state = state.ok_or_else(|| {
            CommandError::new(format!("there is no place to keep what was told of `{store}`"))
                .hint("set HOME or XDG_STATE_HOME")
        })?;
        let digest = Sha256::digest(store.to_string().as_bytes());
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        return Ok(state.join("driftline").join(format!("{name}.watch")));
    };
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let mut name = folder.file_name().map_or_else(|| "driftline".into(), ToOwned::to_owned);
    name.push(".watch");
    Ok(folder.with_file_name(name))
}

fn journal(store: &StoreAt) -> CommandResult<PathBuf> {
    Ok(folder(store)?.join("journal"))
}

/// Whoever holds it is the only one who watches this store; the system lets go of it when the process ends, however.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held, and let go of when dropped")] File);

pub(crate) fn lock(store: &StoreAt) -> CommandResult<Lock> {
    let folder = folder(store)?;
    let failed = |error: std::io::Error| CommandError::because(format!("cannot use `{}`", folder.display()), &error);
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(&folder).map_err(failed)?;
    let file = File::options().read(true).write(true).create(true).truncate(false).open(folder.join("lock"));
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(CommandError::new(format!("another `driftline watch` is at work on the store `{store}`"))
                .hint("it goes on; `driftline watch --status` shows what it has to tell")
                .hint("to retry or drop messages, stop it first: nothing is lost"))
        }
        Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

pub(crate) fn open(store: &StoreAt) -> CommandResult<Outbox> {
    let nonce = crate::seal::random_bytes().map_err(|error| CommandError::because("there is no randomness", &error))?;
    let nonce: String = nonce[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    Outbox::open(&journal(store)?, &nonce).map_err(|error| refused(&error))
}

pub(crate) fn refused(error: &JournalError) -> CommandError {
    let told = CommandError::because("what was told cannot be kept", error);
    match error {
        JournalError::Damaged { .. } => told
            .hint("restore the file from a copy")
            .hint("or move it away: then each channel is told once more how things stand, and what waits is lost"),
        JournalError::Newer { .. } => told.hint("use the newest driftline; nothing was changed"),
        JournalError::Io { .. } | JournalError::Broken { .. } => {
            told.hint("check free space and permissions, then start it again; nothing is lost")
        }
    }
}

/// What waits, what nobody would take, and what each channel knows.
pub(crate) fn status(settings: &Settings) -> CommandResult<()> {
    let path = journal(&settings.store)?;
    let state = Outbox::peek(&path).map_err(|error| refused(&error))?;
    let Some(state) = state else {
        return Err(CommandError::new(format!("nothing was ever watched on the store `{}`", settings.store))
            .hint("`driftline watch` or `driftline watch --once` begins it"));
    };
    let mut lines = Vec::new();
    for (name, channel) in &state.channels {
        let known = settings.config.notify.iter().any(|notify| notify.name == *name);
        let open = channel.told.values().filter(|told| told.said.is_some()).count();
        let flapping = channel.told.values().filter(|told| told.flapping).count();
        let waiting = state.pending.values().filter(|one| one.message.channel == *name).count();
        let dead = state.dead.values().filter(|one| one.message.channel == *name).count();
        let last = channel.last_delivery.map_or_else(|| "never".to_owned(), |at| ago(at, settings.now));
        let mut line = format!(
            "{name}: {} told of and open, {flapping} flapping; {} delivered, last {last}; {waiting} waiting, {dead} dead",
            open, channel.delivered
        );
        if channel.held {
            line += "; something is held until a maintenance window ends";
        }
        if !known {
            line += "; no longer configured, so nothing of it is sent";
        }
        lines.push(line);
    }
    let letter = |what: &str, one: &Pending| {
        let words = driftline_notify::words::words(&one.message.event);
        let why = one.error.as_deref().unwrap_or("not tried yet");
        let next = one.next.map(|at| format!(", next try {at}")).unwrap_or_default();
        format!(
            "  {what} {} to {}: {} ({}: {why}{next})",
            one.message.id,
            one.message.channel,
            words.title,
            count(one.attempts, "attempt")
        )
    };
    for (title, what, letters) in [("WAITING", "…", &state.pending), ("DEAD LETTERS", "x", &state.dead)] {
        if !letters.is_empty() {
            lines.push(String::new());
            lines.push(format!("{title} {}", letters.len()));
            lines.extend(letters.values().take(50).map(|one| letter(what, one)));
            if letters.len() > 50 {
                lines.push(format!("  … and {} more (-o json has everything)", letters.len() - 50));
            }
        }
    }
    if !state.dead.is_empty() {
        lines.push("`driftline watch --retry ID` tries one again, `--drop ID` forgets it; `all` stands for all".into());
    }
    if lines.is_empty() {
        lines.push("nothing was told yet".into());
    }
    settings.printer.print(&Plain { json: status_json(settings, &state), lines })
}

fn status_json(settings: &Settings, state: &State) -> Json {
    let letter = |one: &Pending| {
        json!({
            "id": one.message.id, "channel": one.message.channel, "attempts": one.attempts, "next": one.next,
            "firstTried": one.since, "error": one.error, "event": one.message.json(),
        })
    };
    let channels: Vec<Json> = state
        .channels
        .iter()
        .map(|(name, channel)| {
            let told: Vec<Json> = channel
                .told
                .iter()
                .map(|(id, told)| {
                    json!({
                        "id": id, "open": told.said.is_some(), "flapping": told.flapping, "silent": told.silent,
                        "changes": told.changes, "source": super::transitions::source_of(&told.subject),
                    })
                })
                .collect();
            json!({
                "name": name, "configured": settings.config.notify.iter().any(|notify| notify.name == *name),
                "held": channel.held, "delivered": channel.delivered, "lastDelivery": channel.last_delivery, "told": told,
            })
        })
        .collect();
    json!({
        "schema": "driftline.watch/v1",
        "channels": channels,
        "waiting": state.pending.values().map(letter).collect::<Vec<_>>(),
        "dead": state.dead.values().map(letter).collect::<Vec<_>>(),
    })
}

/// Dead letters that are named, or all of them: tried again, or forgotten.
pub(crate) fn decide(settings: &Settings, retry: &[String], drop: &[String]) -> CommandResult<()> {
    let _lock = lock(&settings.store)?;
    let mut outbox = open(&settings.store)?;
    let mut lines = Vec::new();
    for (names, what) in [(retry, "tried again by the next `driftline watch`"), (drop, "dropped")] {
        if names.is_empty() {
            continue;
        }
        let numbers = numbers(outbox.state(), names, what == "dropped")?;
        lines.push(format!("{} will be {what}", count(numbers.len(), "message")).replace("will be dropped", "dropped"));
        match what {
            "dropped" => outbox.drop_messages(numbers),
            _ => outbox.retry(numbers),
        }
        .map_err(|error| refused(&error))?;
    }
    settings.printer.print(&Plain { json: json!({"schema": "driftline.watch/v1", "done": lines}), lines })
}

fn numbers(state: &State, names: &[String], waiting_too: bool) -> CommandResult<Vec<u64>> {
    let mut found = Vec::new();
    for name in names {
        // What waits is on its way; only by its own name is it given up.
        let letters = state.dead.iter().chain(state.pending.iter().filter(|_| name != "all"));
        let matching: Vec<u64> = letters
            .filter(|(_, one)| {
                name == "all" || one.message.id == *name || (waiting_too && one.message.channel == *name)
            })
            .map(|(number, _)| *number)
            .collect();
        if matching.is_empty() && name == "all" {
            return Err(CommandError::new("there are no dead letters")
                .hint("what waits is tried by itself; `driftline watch --status` says when"));
        }
        if matching.is_empty() {
            return Err(CommandError::new(format!("there is no message `{name}`"))
                .hint("`driftline watch --status` lists those that wait and dead letters"));
        }
        found.extend(matching);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Sends a sample to every channel, past the outbox.
pub(crate) fn try_out(settings: &Settings) -> CommandResult<()> {
    let mut lines = Vec::new();
    let mut failed = 0;
    let mut tried = Vec::new();
    for notify in &settings.config.notify {
        let outcome = channels::open(notify).map_err(|error| error.to_string()).and_then(|channel| send_test(&channel));
        let (name, kind) = (&notify.name, notify.target.kind());
        failed += usize::from(outcome.is_err());
        let error = outcome.err();
        lines.push(match &error {
            None => format!("{name} ({kind}): delivered"),
            Some(error) => format!("{name} ({kind}): {error}"),
        });
        tried.push(json!({"channel": name, "kind": kind, "delivered": error.is_none(), "error": error}));
    }
    if tried.is_empty() {
        return Err(no_channels());
    }
    settings.printer.print(&Plain { json: json!({"schema": "driftline.watch/v1", "tested": tried}), lines })?;
    match failed {
        0 => Ok(()),
        _ => Err(CommandError::new(format!("{} could not be told", count(failed, "channel")))),
    }
}

pub(crate) fn no_channels() -> CommandError {
    CommandError::new("no channels are configured")
        .hint("add [[notify]] entries to driftline.toml; docs/watch.md has examples")
}

fn send_test(channel: &Channel) -> Result<(), String> {
    let now = clock();
    let message = Message {
        id: format!("test-{}", now.as_millisecond()),
        channel: channel.name.clone(),
        thread: None,
        event: Event { at: now, baseline: "main".into(), about: About::Test },
    };
    channel.send(&message, None, now).map(|_| ()).map_err(|failure| failure.why().to_owned())
}
