//! `observe swamp`: what a swamp datastore holds, as observations. Every version there is one in time here.

mod collect;
mod pass;
mod root;
mod tree;

use std::borrow::Cow;
use std::collections::BTreeMap;

use driftline_core::coverage::EVERY;
use driftline_core::name::ScopeName;
use driftline_core::{Coverage, Extent, Outcome, Problem, StreamId};
use driftline_sources::normalize::{Context, Document, LIMITED, Listing, NormalizeError};
use driftline_store::Store;
use driftline_store::catalog::Version;

use crate::args::{PermissionArgs, SwampArgs};
use crate::error::{CommandError, CommandResult};
use crate::observe::{Report, Unchanged, commit_listing};
use crate::output::count;
use crate::settings::Settings;
use crate::swamp::collect::{Collected, Content, Datum};
use crate::swamp::pass::{Pass, Reading};

pub(crate) fn run(settings: &Settings, args: &SwampArgs) -> CommandResult<()> {
    let about = |error: CommandError| error.about(format!("cannot observe `{}`", args.path.display()));
    let collected = collect::collect(settings, args).map_err(about)?;
    let passes = pass::plan(settings, args, &collected).map_err(about)?;
    let mut run = Run {
        settings,
        args,
        collected: &collected,
        store: settings.store_if_any()?,
        report: Report::default(),
        failed: passes.failed,
        older: 0,
    };
    for pass in &passes.passes {
        if let Err(error) = run.observe(pass) {
            run.failed += 1;
            settings.printer.error(&error.about(format!("`{}` was not observed", pass.name())));
        }
    }
    if run.older > 0 {
        settings.printer.note(&format!(
            "{} left out: the store has newer ones of the same sources. To have all, replay into a new store.",
            count(run.older, "version")
        ));
    }
    let failed = run.failed;
    let done = !run.report.committed.is_empty() || !run.report.unchanged.is_empty();
    if done || failed == 0 {
        settings.printer.print(&run.report)?;
    }
    match (failed, done) {
        (0, _) => Ok(()),
        (_, false) => Err(about(CommandError::new("nothing in it could be observed"))),
        (1, _) => Err(CommandError::new("one part was not observed; the others were committed")),
        _ => Err(CommandError::new(format!("{failed} parts were not observed; the others were committed"))),
    }
}

/// Marks versions that say that data was there and could not be read.
const UNREAD: &str = " unread";

/// Everything was there and was read.
const WHOLE: &str = "whole";

struct Run<'a> {
    settings: &'a Settings,
    args: &'a SwampArgs,
    collected: &'a Collected,
    store: Option<Store>,
    report: Report,
    failed: usize,
    /// Versions that are older than what the store has.
    older: usize,
}

impl Run<'_> {
    fn observe(&mut self, pass: &Pass<'_>) -> CommandResult<()> {
        let mut contents: Vec<(&Datum, Cow<'_, [u8]>)> = Vec::new();
        let mut problems: Vec<Problem> = Vec::new();
        let mut gone = 0;
        for datum in &pass.data {
            match &datum.content {
                Content::Gone | Content::Renamed(_) => gone += 1,
                Content::Unreadable(reason) => problems.push(problem(datum, reason)),
                Content::Text(text) => contents.push((datum, Cow::Borrowed(text.as_bytes()))),
                Content::File { path, metadata } => match tree::read_raw(&self.collected.root, path, metadata) {
                    Ok(bytes) => contents.push((datum, Cow::Owned(bytes))),
                    Err(reason) => problems.push(problem(datum, &reason)),
                },
            }
        }
        if !problems.is_empty() && self.was_read_before(pass) {
            self.warn(&problems);
            return Ok(());
        }
        match (contents.is_empty(), problems.is_empty()) {
            (true, true) if gone > 0 => self.end(pass),
            (true, true) => Ok(()),
            (true, false) if pass.is_newest => self.say_unread(pass, &problems),
            // Of something in the past that cannot be read there is nothing to commit.
            (true, false) => {
                self.warn(&problems);
                Ok(())
            }
            (false, _) => self.read(pass, &contents, &problems),
        }
    }

    /// Versions are not rewritten: what was read whole once is known, even if it has been taken away since.
    fn was_read_before(&mut self, pass: &Pass<'_>) -> bool {
        let whole = pass.observer(WHOLE);
        let known = self.known(pass);
        let read = !known.is_empty() && known.values().all(|head| head.observer.as_ref() == Some(&whole));
        if read {
            let unchanged =
                |(stream, head): (StreamId, Version)| Unchanged { source: stream.to_string(), version: head.number };
            self.report.unchanged.extend(known.into_iter().map(unchanged));
        }
        read
    }

    fn warn(&self, problems: &[Problem]) {
        for problem in problems {
            self.settings.printer.warn(&format!("{}: {}", problem.about, problem.message));
        }
    }

    /// Reads documents and commits what they list.
    fn read(
        &mut self,
        pass: &Pass<'_>,
        contents: &[(&Datum, Cow<'_, [u8]>)],
        problems: &[Problem],
    ) -> CommandResult<()> {
        let documents: Vec<Document<'_>> = contents
            .iter()
            .map(|(datum, bytes)| Document { name: &datum.label, bytes, written_at: Some(datum.created_at) })
            .collect();
        let context = Context {
            source: pass.source.clone(),
            account: self.args.account.clone(),
            partition: self.args.partition.clone(),
        };
        let listings = match pass.reading {
            Reading::Model(model) => model.normalize(&documents, &context),
            Reading::Mapped(at) => self.settings.config.swamp_models[at]
                .mapping
                .normalize(&documents, &context)
                .map(|listing| vec![listing]),
        };
        let listings = listings.map_err(normalize_error)?;
        if listings.is_empty() {
            return Err(CommandError::new("nothing came of it"));
        }
        let observer = pass.observer(match (problems.is_empty(), self.collected.limited) {
            (true, false) => WHOLE,
            (true, true) => "limited",
            (false, _) => "partial",
        });
        for mut listing in listings {
            // What is left out may hold anything, so nothing is known to be absent.
            for problem in problems {
                listing.cut_short(&problem.about, &problem.message);
            }
            if self.collected.limited {
                listing.cut_short(&self.args.path.display().to_string(), LIMITED);
            }
            let stream = pass.stream(listing.scope.as_ref())?;
            self.commit(pass, stream, listing, &observer, self.args.permissions)?;
        }
        Ok(())
    }

    /// What is deleted in swamp was observed to be gone: all that its streams had.
    fn end(&mut self, pass: &Pass<'_>) -> CommandResult<()> {
        let observer = pass.observer("deleted");
        for (stream, head) in self.known(pass) {
            if head.rows == 0 && head.observer.as_deref() != Some(&observer) {
                continue;
            }
            let coverage = match &self.store {
                Some(store) => all_that_was_there(store, &stream, &head)?,
                None => Coverage::new(),
            };
            let permissions = PermissionArgs { allow_empty: true, ..self.args.permissions };
            self.commit(pass, stream, Listing::of_nothing(coverage), &observer, permissions)?;
        }
        Ok(())
    }

    /// The newest is there and cannot be read. The version before must not pass for it, so nothing is known.
    fn say_unread(&mut self, pass: &Pass<'_>, problems: &[Problem]) -> CommandResult<()> {
        let known = self.known(pass);
        let Some(first) = problems.first() else { return Ok(()) };
        if known.is_empty() {
            return Err(CommandError::new(first.message.clone()).about(&first.about));
        }
        let observer = pass.observer("") + UNREAD;
        for (stream, head) in known {
            let mut coverage = Coverage::new().on_basis(head.basis.clone());
            let everything = Extent { kind: EVERY.to_owned(), place: EVERY.to_owned() };
            coverage.record(everything, Outcome::Partial { reason: first.message.clone() });
            let mut listing = Listing::of_nothing(coverage);
            listing.taken_at = Some(pass.at.max(head.taken_at));
            listing.problems = problems.to_vec();
            self.commit(pass, stream, listing, &observer, self.args.permissions)?;
        }
        Ok(())
    }

    fn commit(
        &mut self,
        pass: &Pass<'_>,
        stream: StreamId,
        mut listing: Listing,
        observer: &str,
        mut permissions: PermissionArgs,
    ) -> CommandResult<()> {
        let taken_at = *listing.taken_at.get_or_insert(pass.at);
        let mut known = false;
        if let Some(store) = &self.store
            && let Ok(versions) = store.catalog().stream(&stream)
        {
            let same = |observed: &Option<String>| observed.as_deref() == Some(observer);
            let head = versions.head();
            known = match self.args.all_versions {
                true => versions.versions().any(|version| same(&version.observer)),
                false => head.is_some_and(|head| same(&head.observer)),
            };
            if let (true, Some(head)) = (known && pass.is_newest, head) {
                self.warn(&listing.problems);
                self.report.unchanged.push(Unchanged { source: stream.to_string(), version: head.number });
            }
            let unread = head.is_some_and(|head| head.observer.as_ref().is_some_and(|text| text.ends_with(UNREAD)));
            // Data says when it was fetched, which is a little before it was written down and then not readable.
            permissions.allow_older |= unread && pass.is_newest;
            if !known && !permissions.allow_older && self.args.all_versions {
                known = head.is_some_and(|head| taken_at < head.taken_at);
                self.older += usize::from(known);
            }
        }
        if known {
            return Ok(());
        }
        let line = commit_listing(self.settings, stream, listing, observer, permissions)?;
        self.report.committed.push(line);
        match &mut self.store {
            Some(store) => store.refresh()?,
            None => self.store = self.settings.store_if_any()?,
        }
        Ok(())
    }

    /// The streams in the store that a pass may continue, each with its newest version.
    fn known(&self, pass: &Pass<'_>) -> BTreeMap<StreamId, Version> {
        let Some(store) = &self.store else { return BTreeMap::new() };
        let streams = store.catalog().streams().filter(|(stream, _)| pass.continues(stream));
        streams.filter_map(|(stream, versions)| Some((stream.clone(), versions.head()?.clone()))).collect()
    }
}

fn problem(datum: &Datum, message: &str) -> Problem {
    Problem { about: datum.label.clone(), message: message.to_owned() }
}

/// Every extent that a stream spoke of, and every one that it had something in, complete.
fn all_that_was_there(store: &Store, stream: &StreamId, head: &Version) -> CommandResult<Coverage> {
    let mut coverage = Coverage::new().on_basis(head.basis.clone());
    let before = store.coverage(&head.coverage)?;
    for (kind, place, _) in before.iter() {
        coverage.record(Extent { kind: kind.to_owned(), place: place.to_owned() }, Outcome::Complete);
    }
    for key in store.resources(stream, head.number, |_| true)?.into_keys() {
        coverage.record(Extent { kind: key.kind, place: key.place.to_string() }, Outcome::Complete);
    }
    Ok(coverage)
}

fn normalize_error(error: NormalizeError) -> CommandError {
    let told = CommandError::new(format!("{}: {}", error.document, error.message));
    match error.hint {
        Some(hint) => told.hint(hint),
        None => told,
    }
}

/// A name of swamp's as one word of ours. Two that become the same word are refused later, not mixed.
fn word(name: &str) -> String {
    use sha2::{Digest, Sha256};
    const MOST: usize = 80;
    let digest = || Sha256::digest(name).iter().take(4).map(|byte| format!("{byte:02x}")).collect::<String>();
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    let text: String = name
        .chars()
        .map(|char| if plain(char) { char.to_ascii_lowercase() } else { '-' })
        .collect::<String>()
        .trim_start_matches(|char: char| !char.is_ascii_alphanumeric())
        .to_owned();
    // Separators have one obvious reading; of anything else more would be lost than a name can bear.
    let lossy = name.chars().any(|char| !plain(char) && !"@/: ".contains(char));
    let text = match (text.is_empty(), lossy || text.len() > MOST) {
        (true, _) => format!("data-{}", digest()),
        (false, true) => format!("{}-{}", &text[..text.len().min(MOST - 9)], digest()),
        (false, false) => text,
    };
    // Some words mean something else in every place where a name can stand.
    if text.parse::<ScopeName>().is_ok() { text } else { format!("{text}-data") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_swamps_becomes_a_name_of_ours() {
        for (name, expected) in [
            ("all-us-east-1", "all-us-east-1"),
            ("@scope/name", "scope-name"),
            ("AWS Adopt", "aws-adopt"),
            ("latest", "latest-data"),
            ("all", "all-data"),
            ("207333", "207333"),
            ("_x", "x"),
            ("ns:model", "ns-model"),
        ] {
            assert_eq!(word(name), expected);
        }
        for name in ["", "日本", "é", "..", "a\nb", "aws_vpc.main[\"x\"]", &"x".repeat(300), "\u{0}"] {
            assert!(word(name).parse::<ScopeName>().is_ok(), "{name:?} became {:?}", word(name));
        }
        assert_ne!(word("a[0]"), word("a(0)"));
        assert_ne!(word(&"x".repeat(200)), word(&"x".repeat(201)));
    }
}
