//! Which accounts there should be: as configured, as a file says, as the organization was last listed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use driftline_core::StreamId;
use driftline_sources::organization::{ACTIVE, EXCLUDED, SOURCE};
use driftline_store::{Store, Stream, Version};
use jiff::Timestamp;

use crate::accounts::{Chosen, from_file};
use crate::error::CommandResult;
use crate::settings::Settings;
use crate::time::ago;

/// Accounts that should be there, what they are called, and who says so.
#[derive(Debug, Default)]
pub(super) struct Expected {
    pub accounts: BTreeSet<String>,
    pub names: BTreeMap<String, String>,
    pub from: Vec<String>,
    /// When the lists that were used were made: the oldest.
    pub listed_at: Option<Timestamp>,
}

/// A list of accounts that is kept, and its newest version.
struct Kept<'s> {
    id: &'s StreamId,
    stream: &'s Stream,
    head: &'s Version,
    /// The account that manages the organization.
    manager: &'s str,
    /// The root or unit; nothing for a whole organization.
    parent: Option<&'s str>,
    excluded: bool,
}

pub(super) fn expected(
    settings: &Settings,
    store: &Store,
    file: Option<&Path>,
    excluded: &Chosen,
    stale_before: Timestamp,
) -> CommandResult<Expected> {
    let mut asking = Asking { settings, store, stale_before, kept: kept(store), expected: Expected::default() };
    for list in &asking.kept {
        asking.expected.names.extend(members(store, list.id, list.head)?.1);
    }
    let fleet = &settings.config.fleet;
    let configured = fleet.chosen()?;
    if let Some(path) = file {
        asking.take(&from_file(path)?, &path.display().to_string())?;
    } else if !configured.is_empty() {
        asking.take(&configured, "[fleet] accounts")?;
    } else {
        asking.take_newest_listing()?;
    }
    for without in [&fleet.excluded()?, excluded] {
        asking.leave_out(without)?;
    }
    let mut expected = asking.expected;
    expected.from.sort();
    expected.from.dedup();
    Ok(expected)
}

struct Asking<'s> {
    settings: &'s Settings,
    store: &'s Store,
    stale_before: Timestamp,
    kept: Vec<Kept<'s>>,
    expected: Expected,
}

impl Asking<'_> {
    /// Who is chosen by id is known; who is in an organization, only from when it was last listed.
    fn take(&mut self, chosen: &Chosen, said_by: &str) -> CommandResult<()> {
        self.expected.accounts.extend(chosen.ids.iter().cloned());
        self.expected.names.extend(chosen.names.clone());
        self.expected.from.push(said_by.to_owned());
        let whole = chosen.organization.then_some(None);
        for parent in whole.into_iter().chain(chosen.parents.iter().map(|parent| Some(parent.as_str()))) {
            let lists = |list: &&Kept<'_>| list.parent == parent && !list.excluded;
            let lists: Vec<(&StreamId, &Version)> =
                self.kept.iter().filter(lists).map(|list| (list.id, list.head)).collect();
            if lists.is_empty() {
                self.never_listed(parent);
            }
            for (id, version) in lists {
                self.use_list(id, version)?;
            }
        }
        Ok(())
    }

    /// Nobody says who is meant: then it is everybody whom the newest run that listed an organization meant. A list
    /// that this run did not make is of another choice of accounts, and may be of long ago.
    fn take_newest_listing(&mut self) -> CommandResult<()> {
        let mut newest: BTreeMap<&str, Timestamp> = BTreeMap::new();
        for list in self.kept.iter().filter(|list| !list.excluded) {
            let newest = newest.entry(list.manager).or_insert(list.head.taken_at);
            *newest = (*newest).max(list.head.taken_at);
        }
        let mut excluded = BTreeSet::new();
        let mut included = Vec::new();
        for list in &self.kept {
            let Some(run) = newest.get(list.manager) else { continue };
            // All lists of a run are of one time.
            match list.stream.versions().rev().find(|version| version.taken_at == *run) {
                Some(version) if list.excluded => excluded.extend(members(self.store, list.id, version)?.0),
                Some(version) => included.push((list.id, version)),
                None => {
                    let (id, age) = (list.id, ago(list.head.taken_at, self.settings.now));
                    let text = format!("{id} was listed {age}, and not by the newest run: it does not count");
                    let printer = &self.settings.printer;
                    // Whoever was left out once would be told so for ever.
                    if list.excluded { printer.detail(&text) } else { printer.note(&text) }
                }
            }
        }
        for (id, version) in included {
            self.use_list(id, version)?;
        }
        self.expected.accounts.retain(|account| !excluded.contains(account));
        Ok(())
    }

    fn use_list(&mut self, id: &StreamId, version: &Version) -> CommandResult<()> {
        self.say_if_stale(id, version);
        let expected = &mut self.expected;
        expected.accounts.extend(members(self.store, id, version)?.0);
        expected.from.push(id.to_string());
        expected.listed_at = [expected.listed_at, Some(version.taken_at)].into_iter().flatten().min();
        Ok(())
    }

    /// Who is beneath a unit that is left out is known from whichever list of it is the newest.
    fn leave_out(&mut self, without: &Chosen) -> CommandResult<()> {
        self.expected.accounts.retain(|account| !without.ids.contains(account));
        for parent in &without.parents {
            let of_unit = self.kept.iter().filter(|list| list.parent == Some(parent.as_str()));
            match of_unit.max_by_key(|list| list.head.taken_at) {
                None => self.never_listed(Some(parent.as_str())),
                Some(list) => {
                    self.say_if_stale(list.id, list.head);
                    let members = members(self.store, list.id, list.head)?.0;
                    self.expected.accounts.retain(|account| !members.contains(account));
                }
            }
        }
        Ok(())
    }

    fn never_listed(&self, parent: Option<&str>) {
        let of = parent.unwrap_or("the organization");
        self.settings.printer.warn(&format!(
            "who is in {of} is not known: it was never listed; `driftline observe all` with it in --accounts, or in [fleet], lists it"
        ));
    }

    fn say_if_stale(&self, id: &StreamId, version: &Version) {
        if version.taken_at < self.stale_before {
            let age = ago(version.taken_at, self.settings.now);
            self.settings.printer.warn(&format!(
                "{id} was last listed {age}: accounts may have come and gone since; `driftline observe all` lists it again"
            ));
        }
    }
}

fn kept(store: &Store) -> Vec<Kept<'_>> {
    let lists = store.catalog().streams().filter(|(id, _)| id.source.as_str() == SOURCE);
    lists
        .filter_map(|(id, stream)| {
            let mut parts = id.scope.as_ref()?.as_str().split('/');
            let manager = parts.next()?;
            let parent = parts.next().filter(|part| *part != driftline_core::key::GLOBAL);
            Some(Kept { id, stream, head: stream.head()?, manager, parent, excluded: parts.next() == Some(EXCLUDED) })
        })
        .collect()
}

/// The accounts of a list that can be looked at, and what all of them are called.
fn members(
    store: &Store,
    list: &StreamId,
    version: &Version,
) -> CommandResult<(BTreeSet<String>, BTreeMap<String, String>)> {
    let (mut active, mut names) = (BTreeSet::new(), BTreeMap::new());
    for account in store.resources(list, version.number, |_| true)?.values() {
        let text = |name: &str| account.get(name).and_then(|value| value.as_str()).map(str::to_owned);
        let Some(number) = text("id") else { continue };
        names.extend(text("name").map(|name| (number.clone(), name)));
        if text("state").is_none_or(|state| state == ACTIVE) {
            active.insert(number);
        }
    }
    Ok((active, names))
}
