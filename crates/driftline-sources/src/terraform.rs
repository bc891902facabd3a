//! Terraform: state files, what `terraform show -json` prints of states and plans, and swamp's `tf_resource`.
//!
//! A state is the whole of what it manages, so what left it has left the stream. It proves nothing about the rest of
//! an account; the basis of the coverage says so.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::coverage::EVERY;
use driftline_core::{Outcome, ResourceKey, Value};
use jiff::Timestamp;

use crate::normalize::{Context, Document, Found, Listing, NormalizeError, Opened, open, time, value};

mod address;
mod document;
mod naming;
mod parts;
mod plan;
#[cfg(test)]
mod recorded_tests;
pub(crate) mod room;
pub(crate) mod secret;
#[cfg(test)]
mod tests;
mod things;
mod types;

use document::{Form, Item, Marks, Plan, recognise};
use naming::{Electorate, Standing, local_place, poll};
use room::Room;

/// A state lists what it manages, and that is not what there is.
pub const BASIS: &str = "terraform state";

/// The member of the properties that is not an attribute.
const ABOUT: &str = "$terraform";

/// Why a listing is not whole when something in it was left out.
const UNREAD: &str = "some resources could not be read";
const NAMELESS: &str = "a resource without a type or without an address is left out";

/// How many names a message lists.
const SHOWN: usize = 3;

/// Attributes without a fixed type. A state file wraps them as `{value, type}`, `terraform show` does not.
const DYNAMIC: &[(&str, &[&str])] =
    &[("terraform_data", &["input", "output", "triggers_replace"]), ("kubernetes_manifest", &["manifest", "object"])];

pub(crate) fn normalize(documents: &[Document<'_>], context: &Context) -> Result<Vec<Listing>, NormalizeError> {
    if let Some(saved) = documents.iter().find(|document| document.bytes.starts_with(b"PK\x03\x04")) {
        return Err(NormalizeError::new(saved.name, "it is a saved plan in Terraform's own form")
            .hint("give what `terraform show -json <plan>` prints"));
    }
    let opened = open(documents)?;
    let mut state = Gathering::default();
    let mut plans = Gathering { listing: Listing::scoped("plan"), ..Gathering::default() };
    let mut kept = Kept::default();
    let (mut saw_state, mut saw_plan) = (false, false);
    for document in &opened {
        match recognise(document)? {
            Form::State(items) => {
                saw_state = true;
                state.listing.taken(document.written_at);
                state.listing.cover(EVERY, EVERY, Outcome::Complete);
                let electorate = poll(&items);
                for item in &items {
                    take(&mut state, item, document, &electorate, context)?;
                }
            }
            Form::Plan(plan) => {
                saw_plan = true;
                saw_state |= plan.prior.is_some();
                take_plan(&mut state, &mut plans, &plan, document, context)?;
            }
            Form::Resource(item) => {
                kept.saw = true;
                kept.resources.extend(item.map(|item| (item, document)));
            }
            Form::Inventory(addresses) => {
                kept.saw = true;
                kept.listed.get_or_insert_default().add(addresses, document.written_at);
            }
            Form::Output => {}
        }
    }
    saw_state |= kept.saw;
    kept.take(&mut state, context)?;

    let mut listings = Vec::new();
    if saw_state {
        let mut listing = state.finish();
        listing.coverage = std::mem::take(&mut listing.coverage).on_basis(Some(BASIS.to_owned()));
        listings.push(listing);
    }
    if saw_plan {
        listings.push(plans.finish());
    }
    if listings.is_empty() && !opened.is_empty() {
        return Err(NormalizeError::new(&opened[0].name, "there are outputs here, and no resources"));
    }
    Ok(listings)
}

fn take_plan(
    state: &mut Gathering,
    plans: &mut Gathering,
    plan: &Plan<'_>,
    document: &Opened<'_>,
    context: &Context,
) -> Result<(), NormalizeError> {
    let taken_at = time(plan.timestamp.as_deref()).or(document.written_at);
    let electorate = poll(plan.prior.iter().flatten());
    if let Some(prior) = &plan.prior {
        state.listing.taken(taken_at);
        state.listing.cover_unless(EVERY, EVERY, plan.partial);
        for item in prior {
            take(state, item, document, &electorate, context)?;
        }
    }
    plans.listing.taken(taken_at);
    for (kind, entries) in [(plan::DRIFT, &plan.drift), (plan::PLANNED, &plan.changes)] {
        plans.listing.cover_unless(kind, &local_place(context), plan.partial);
        plans.listing.items += entries.len();
        for entry in entries {
            plan::take(plans, kind, entry, document, &electorate, context)?;
        }
    }
    Ok(())
}

/// Reads one object whole and takes it in.
fn take(
    gathering: &mut Gathering,
    item: &Item<'_>,
    document: &Opened<'_>,
    electorate: &Electorate,
    context: &Context,
) -> Result<(), NormalizeError> {
    gathering.listing.items += 1;
    if item.kind.is_empty() || item.address.is_empty() {
        gathering.listing.problem(document.name.as_str(), NAMELESS);
        gathering.listing.cover_unless(EVERY, EVERY, Some(UNREAD));
        return Ok(());
    }
    let label = label(&item.address, item.deposed.as_deref());
    let mut attributes = match item.attributes {
        Some(raw) => value(document, raw)?,
        None => Value::Object(BTreeMap::new()),
    };
    unwrap_dynamic(&item.kind, &mut attributes);

    let mut room = Room::beside(item.length());
    let marked = match item.marks {
        Marks::Listed(raw) => secret::listed(&value(document, raw)?),
        Marks::Mirrored(raw) => Some(secret::mirrored(&value(document, raw)?, &mut room)),
        Marks::Unmarked => Some(Vec::new()),
    };
    let mut seal_all = |message: &str| {
        gathering.listing.problem(label.as_str(), format!("{message}; all of it is sealed"));
        secret::everything(&attributes)
    };
    let sensitive = if let Some(marked) = marked {
        let mut paths = secret::with_echoes(&item.kind, marked);
        paths.extend(secret::by_name(&attributes, &mut room));
        paths.extend(match item.flat {
            true => secret::by_nature_flat(&item.kind, &attributes),
            false => secret::by_nature(&item.kind, &attributes, &mut room),
        });
        match room.is_short() {
            true => seal_all("to name each of its secrets takes far more room than all of it"),
            false => secret::patterns(&attributes, &paths),
        }
    } else {
        seal_all("its sensitive attributes are marked in a way that is not understood")
    };

    let votes = electorate.get(&item.provider);
    let name = naming::name(&item.kind, &label, &attributes, votes, context);
    let Value::Object(members) = &mut attributes else {
        gathering.listing.problem(label, "its attributes are not an object; it is left out");
        // What was left out is not gone.
        gathering.listing.cover_unless(EVERY, EVERY, Some(UNREAD));
        return Ok(());
    };
    members.insert(ABOUT.to_owned(), about(item));
    let found = Found::new(&attributes, sensitive);
    gathering.add(name.key, Candidate { label, found, kind: item.kind.clone(), standing: name.standing });
    Ok(())
}

/// What is known of an object besides its attributes.
fn about(item: &Item<'_>) -> Value {
    let (provider, alias) = address::provider(&item.provider);
    let mut about = BTreeMap::from([
        ("address".to_owned(), Value::from(item.address.as_str())),
        ("module".to_owned(), address::module(&item.address).map_or(Value::Null, Value::from)),
        ("type".to_owned(), Value::from(item.kind.as_str())),
        ("provider".to_owned(), Value::from(provider)),
    ]);
    about.extend(alias.map(|alias| ("alias".to_owned(), Value::from(alias))));
    about.extend(item.deposed.as_deref().map(|deposed| ("deposed".to_owned(), Value::from(deposed))));
    about.extend(item.tainted.then(|| ("tainted".to_owned(), Value::from(true))));
    Value::Object(about)
}

/// An address, and which of the objects that were replaced under it this one is.
fn label(address: &str, deposed: Option<&str>) -> String {
    match deposed {
        Some(deposed) => format!("{address} (deposed {deposed})"),
        None => address.to_owned(),
    }
}

fn unwrap_dynamic(kind: &str, attributes: &mut Value) {
    let Value::Object(members) = attributes else { return };
    for name in DYNAMIC.iter().filter(|(dynamic, _)| *dynamic == kind).flat_map(|(_, names)| *names) {
        if let Some(member) = members.get_mut(*name)
            && let Some(inner) = secret::wrapped(member)
        {
            *member = inner.clone();
        }
    }
}

/// A resource on its way into a listing.
#[derive(Debug)]
struct Candidate {
    /// What it is called in messages; of several with one key the first by this is kept.
    label: String,
    found: Found,
    /// Its Terraform type.
    kind: String,
    standing: Standing,
}

impl Candidate {
    fn rank(&self) -> (&str, [u8; 16]) {
        (&self.label, self.found.properties.id().0)
    }
}

/// A listing in the making.
#[derive(Debug, Default)]
struct Gathering {
    listing: Listing,
    candidates: BTreeMap<ResourceKey, Candidate>,
    /// The labels that want the same key.
    rivals: BTreeMap<ResourceKey, BTreeSet<String>>,
}

impl Gathering {
    fn add(&mut self, key: ResourceKey, mut candidate: Candidate) {
        let Some(known) = self.candidates.get_mut(&key) else {
            self.candidates.insert(key, candidate);
            return;
        };
        if known.found.properties == candidate.found.properties {
            // One document may know of a secret that the other does not.
            known.found.sensitive.append(&mut candidate.found.sensitive);
            known.found.sensitive.sort();
            known.found.sensitive.dedup();
            return;
        }
        let rivals = self.rivals.entry(key).or_default();
        rivals.extend([known.label.clone(), candidate.label.clone()]);
        if candidate.rank() < known.rank() {
            *known = candidate;
        }
    }

    fn finish(mut self) -> Listing {
        for (key, labels) in &self.rivals {
            let Some(first) = labels.first() else { continue };
            let others: Vec<String> = labels.iter().skip(1).take(SHOWN).map(|label| format!("`{label}`")).collect();
            let more = match labels.len() - 1 - others.len() {
                0 => String::new(),
                count => format!(" and {count} more"),
            };
            let message = match others.is_empty() {
                true => "several documents have it, with different attributes; one of them is kept".to_owned(),
                false => format!("{} is also {}{more}; only the first is kept", key.id, others.join(", ")),
            };
            self.listing.problem(first.as_str(), message);
        }
        let mut counts: BTreeMap<(String, Standing), usize> = BTreeMap::new();
        for (key, candidate) in self.candidates {
            if candidate.standing != Standing::Good {
                *counts.entry((candidate.kind, candidate.standing)).or_default() += 1;
            }
            self.listing.resources.insert(key, candidate.found);
        }
        for ((kind, standing), count) in counts {
            let (are, their) = match count {
                1 => ("1 resource is".to_owned(), "its"),
                _ => (format!("{count} resources are"), "their"),
            };
            let (why, by, can) = match standing {
                Standing::Good => continue,
                Standing::Nowhere => ("the account or the region is not known", "id alone", "may not"),
                Standing::Nameless => ("no ARN and no id in the attributes", "Terraform address", "cannot"),
                Standing::Unmapped => ("no mapping for this type", "Terraform address", "cannot"),
            };
            let message = format!("{why}: {are} followed by {their} {by} and {can} meet what other sources saw");
            self.listing.problem(kind, message);
        }
        self.listing
    }
}

/// What swamp kept: resources one by one, and which of them the last run found.
#[derive(Default)]
struct Kept<'o, 'a> {
    saw: bool,
    resources: Vec<(Item<'a>, &'o Opened<'a>)>,
    listed: Option<Listed>,
}

#[derive(Default)]
struct Listed {
    addresses: BTreeSet<String>,
    written_at: Option<Timestamp>,
}

impl Listed {
    fn add(&mut self, addresses: Vec<String>, written_at: Option<Timestamp>) {
        self.addresses.extend(addresses.into_iter().filter(|address| !address::is_data(address)));
        self.written_at = self.written_at.max(written_at);
    }
}

impl Kept<'_, '_> {
    fn take(self, gathering: &mut Gathering, context: &Context) -> Result<(), NormalizeError> {
        if !self.saw {
            return Ok(());
        }
        let mut partial = self.listed.is_none().then(|| "no tf_inventory tells which of these still exist".to_owned());
        let mut resources = self.resources;
        if let Some(listed) = &self.listed {
            gathering.listing.taken(listed.written_at);
            let have: BTreeSet<&str> = resources.iter().map(|(item, _)| item.address.as_str()).collect();
            let missing = listed.addresses.iter().filter(|address| !have.contains(address.as_str())).count();
            if missing > 0 {
                partial = Some(format!("{missing} of the addresses in tf_inventory have no tf_resource"));
            }
            resources.retain(|(item, document)| {
                if listed.addresses.contains(&item.address) {
                    return true;
                }
                // What was written after the inventory cannot be in it.
                if listed.written_at.is_some() && document.written_at > listed.written_at {
                    partial = Some("the tf_inventory is older than some of the tf_resource items".to_owned());
                    return true;
                }
                let message = "the last run did not find it: what an earlier run wrote is left out";
                gathering.listing.problem(item.address.as_str(), message);
                false
            });
        }
        gathering.listing.cover_unless(EVERY, EVERY, partial.as_deref());
        if resources.iter().any(|(item, _)| matches!(item.marks, Marks::Unmarked)) {
            let message = "these documents do not mark what is sensitive: only what is known to be secret by its type \
                           or its name is sealed";
            gathering.listing.problem("tf_resource", message);
        }
        // They were read from one state in one run, so they speak for each other.
        let electorate = poll(resources.iter().map(|(item, _)| item));
        for (item, document) in &resources {
            gathering.listing.taken(document.written_at);
            take(gathering, item, document, &electorate, context)?;
        }
        Ok(())
    }
}
