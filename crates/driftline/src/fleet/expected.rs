//! Which accounts there should be: as configured, as a file says, as the organization was last listed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use driftline_core::StreamId;
use driftline_sources::organization::{ACTIVE, EXCLUDED, SOURCE};
use driftline_store::Store;

use crate::accounts::{Chosen, from_file};
use crate::error::CommandResult;
use crate::settings::Settings;

/// Accounts that should be there, what they are called, and who says so.
#[derive(Debug, Default)]
pub(super) struct Expected {
    pub accounts: BTreeSet<String>,
    pub names: BTreeMap<String, String>,
    pub from: Vec<String>,
}

/// A list of accounts as it was last kept.
struct Kept {
    stream: StreamId,
    /// The root or unit; nothing for a whole organization.
    parent: Option<String>,
    excluded: bool,
    active: BTreeSet<String>,
}

pub(super) fn expected(
    settings: &Settings,
    store: &Store,
    file: Option<&Path>,
    excluded: &Chosen,
) -> CommandResult<Expected> {
    let mut expected = Expected::default();
    let kept = kept(store, &mut expected.names)?;
    let fleet = &settings.config.fleet;
    let configured = fleet.chosen()?;
    if let Some(path) = file {
        let listed = from_file(path)?;
        expected.take(settings, &listed, &kept, &path.display().to_string());
    } else if !configured.is_empty() {
        expected.take(settings, &configured, &kept, "[fleet] accounts");
    } else {
        // Nobody says who is meant: then it is everybody who was listed, but for those listed to be left out.
        for list in kept.iter().filter(|list| !list.excluded) {
            expected.accounts.extend(list.active.iter().cloned());
            expected.from.push(list.stream.to_string());
        }
        for list in kept.iter().filter(|list| list.excluded) {
            expected.accounts.retain(|account| !list.active.contains(account));
        }
    }
    for without in [&fleet.excluded()?, excluded] {
        expected.accounts.retain(|account| !without.ids.contains(account));
        for list in kept.iter().filter(|list| list.parent.as_ref().is_some_and(|unit| without.parents.contains(unit))) {
            expected.accounts.retain(|account| !list.active.contains(account));
        }
    }
    expected.from.sort();
    expected.from.dedup();
    Ok(expected)
}

impl Expected {
    /// Who is chosen by id is known; who is in an organization, only from when it was last listed.
    fn take(&mut self, settings: &Settings, chosen: &Chosen, kept: &[Kept], said_by: &str) {
        self.accounts.extend(chosen.ids.iter().cloned());
        self.names.extend(chosen.names.clone());
        self.from.push(said_by.to_owned());
        let whole = chosen.organization.then_some(None);
        for parent in whole.into_iter().chain(chosen.parents.iter().map(Some)) {
            let mut lists = kept.iter().filter(|list| list.parent.as_ref() == parent && !list.excluded).peekable();
            if lists.peek().is_none() {
                let of = parent.map_or_else(|| "the organization".to_owned(), ToString::to_string);
                settings.printer.warn(&format!(
                    "who is in {of} is not known: it was never listed; `driftline observe all` with it in --accounts, or in [fleet], lists it"
                ));
            }
            for list in lists {
                self.accounts.extend(list.active.iter().cloned());
                self.from.push(list.stream.to_string());
            }
        }
    }
}

fn kept(store: &Store, names: &mut BTreeMap<String, String>) -> CommandResult<Vec<Kept>> {
    let mut kept = Vec::new();
    for (id, stream) in store.catalog().streams().filter(|(id, _)| id.source.as_str() == SOURCE) {
        let (Some(head), Some(scope)) = (stream.head(), &id.scope) else { continue };
        let mut parts = scope.as_str().split('/').skip(1);
        let parent = parts.next().filter(|part| *part != driftline_core::key::GLOBAL).map(str::to_owned);
        let excluded = parts.next() == Some(EXCLUDED);
        let mut active = BTreeSet::new();
        for account in store.resources(id, head.number, |_| true)?.values() {
            let text = |name: &str| account.get(name).and_then(|value| value.as_str()).map(str::to_owned);
            let Some(number) = text("id") else { continue };
            names.extend(text("name").map(|name| (number.clone(), name)));
            if text("state").is_none_or(|state| state == ACTIVE) {
                active.insert(number);
            }
        }
        kept.push(Kept { stream: id.clone(), parent, excluded, active });
    }
    Ok(kept)
}
