//! A commit in the making: resources come in one by one, and only what changed is kept.

use std::collections::{BTreeMap, HashMap};

use driftline_core::observation::event_time;
use driftline_core::{ContentId, Header, KeyRef, Nature, Observation, Place, PropertiesRef, ResourceKey};
use jiff::Timestamp;

use crate::catalog::{Stream, Version};
use crate::error::StoreError;
use crate::log::{ChangeCounts, Step, TypeCount, VersionRecord};
use crate::rebase::rebase;
use crate::record::version_record;
use crate::segment::{Image, Op, Row, Written};
use crate::slots::{Slot, Slots};
use crate::state::{Hash, NO_LINE, State, chain_files, hash_key, hash_line};
use crate::store::{StateDigest, Store};

/// What a commit may do that is otherwise refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct Permissions {
    /// Accept an observation without resources although the one before had some.
    pub empty: bool,
    /// Accept an observation that was taken before the newest one.
    pub older: bool,
}

/// What was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    pub version: u64,
    pub rows: u64,
    pub unseen: u64,
    pub changes: ChangeCounts,
    pub complete_extents: usize,
    pub partial_extents: usize,
    pub bytes: u64,
    /// Whether it is of events.
    pub events: bool,
}

/// An observation that is being compared with the newest version while it comes in.
#[derive(Debug)]
pub struct Draft<'s> {
    store: &'s mut Store,
    header: Header,
    parent: Option<Version>,
    state: State,
    /// The position at which each key came that the version before does not have.
    fresh: HashMap<Hash, u32>,
    /// Names the one who reads the lines, if lines are to be known again.
    reader: Option<String>,
    /// Buffers for [`Draft::known`].
    hashes: Vec<Hash>,
    found: Vec<Option<usize>>,
    count: u32,
    pending: Vec<Pending>,
    names: Names,
}

/// A resource that is new, changed, or looked at again; packed, because at first that is all of them.
#[derive(Debug)]
struct Pending {
    kind: u32,
    place: u32,
    id_length: u32,
    /// Id and canonical JSON, one after the other.
    text: Box<str>,
    content: ContentId,
    key: Hash,
    line: Hash,
    /// Its slot in the version before.
    before: Option<u32>,
}

/// Types and places, each kept once.
#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<Box<str>, u32>,
    texts: Vec<Box<str>>,
}

impl Names {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.texts.len()).expect("fewer names than resources");
        self.numbers.insert(text.into(), number);
        self.texts.push(text.into());
        number
    }
}

impl Store {
    /// Begins a commit of one observation.
    ///
    /// With a `reader`, lines of input that came in the version before are known again ([`Draft::knows`]). It
    /// names everything that decides what a line means, so that another meaning has another name.
    pub fn draft(&mut self, header: Header, reader: Option<String>) -> Result<Draft<'_>, StoreError> {
        self.refresh()?;
        let parent = self.catalog.streams.get(&header.stream).and_then(Stream::head).cloned();
        if let Some(parent) = &parent {
            same_nature(&header, parent)?;
        }
        let state = match &parent {
            Some(parent) => self.state(&self.catalog, &header.stream, parent.number, reader.as_deref())?,
            None => State::default(),
        };
        Ok(Draft {
            store: self,
            header,
            parent,
            state,
            fresh: HashMap::new(),
            reader,
            hashes: Vec::new(),
            found: Vec::new(),
            count: 0,
            pending: Vec::new(),
            names: Names::default(),
        })
    }

    /// Commits an observation that is at hand as a whole.
    pub fn commit(
        &mut self,
        observation: &Observation,
        seal_key: Option<&str>,
        permissions: Permissions,
        now: Timestamp,
    ) -> Result<Committed, StoreError> {
        let mut draft = self.draft(observation.header.clone(), None)?;
        for (key, properties) in observation.resources() {
            draft.push(key.as_ref(), properties.as_ref(), &[])?;
        }
        draft.finish(seal_key, permissions, now)
    }
}

impl Draft<'_> {
    pub fn header(&mut self) -> &mut Header {
        &mut self.header
    }

    /// How many resources have come so far.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Takes in those of some lines of input that mean what they meant in the version before, without a look at
    /// what that is. Answers which; the others must be read and pushed.
    pub fn known(&mut self, lines: &[&[u8]], answers: &mut Vec<bool>) {
        answers.clear();
        if self.reader.is_none() || !self.state.has_lines() {
            answers.resize(lines.len(), false);
            return;
        }
        self.hashes.clear();
        self.hashes.extend(lines.iter().map(|line| hash_line(line)));
        self.state.find_lines(&self.hashes, &mut self.found);
        for found in &self.found {
            // Met before, or not looked at last time: then more has to be said of it than "as it was".
            let slots = &mut self.state.slots;
            let fit = found.filter(|&at| slots.met(at) == 0 && slots.seen(at));
            let known = match (fit, self.count.checked_add(1)) {
                (Some(at), Some(count)) => {
                    self.count = count;
                    slots.meet(at, count);
                    true
                }
                _ => false,
            };
            answers.push(known);
        }
    }

    /// Takes in one resource, and the line it came by (empty if by none). The same key twice is an error that
    /// names both positions, counted from 1.
    pub fn push(&mut self, key: KeyRef<'_>, properties: PropertiesRef<'_>, line: &[u8]) -> Result<(), StoreError> {
        // Events are read by their time, and forgotten by their age.
        if !self.header.nature.is_state() && event_time(key.id).is_none() {
            return Err(StoreError::Timeless { id: key.id.to_owned() });
        }
        self.count = self.count.checked_add(1).ok_or(StoreError::TooMany)?;
        let hash = hash_key(key);
        let line = if self.reader.is_some() && !line.is_empty() { hash_line(line) } else { NO_LINE };
        let found = self.state.find_key(hash);
        let first = match found {
            Some(at) => self.state.slots.meet(at, self.count),
            None => self.fresh.insert(hash, self.count).unwrap_or(0),
        };
        if first != 0 {
            return Err(StoreError::Duplicate { key: Box::new(key.into()), first, second: self.count });
        }
        let content = properties.id();
        let mut unchanged = false;
        if let Some(at) = found {
            let slots = &mut self.state.slots;
            unchanged = slots.content(at) == content;
            slots.set_line(at, line);
            if unchanged && slots.seen(at) {
                return Ok(());
            }
        }
        let mut text = String::from(key.id);
        if !unchanged {
            text.push_str(&properties.to_json());
        }
        self.pending.push(Pending {
            kind: self.names.number(key.kind),
            place: self.names.number(key.place),
            id_length: u32::try_from(key.id.len()).map_err(|_| StoreError::TooMany)?,
            text: text.into(),
            content,
            key: hash,
            line,
            before: found.map(|at| u32::try_from(at).expect("rows are counted in 32 bits")),
        });
        Ok(())
    }

    /// Writes the version: all of it, or nothing.
    pub fn finish(
        self,
        seal_key: Option<&str>,
        permissions: Permissions,
        now: Timestamp,
    ) -> Result<Committed, StoreError> {
        self.check(permissions)?;
        if let (Some(expected), Some(found)) = (&self.store.catalog.seal_key, seal_key)
            && expected != found
        {
            return Err(StoreError::OtherSealKey { expected: expected.clone(), found: found.to_owned() });
        }
        match self.parent {
            None => self.finish_first(seal_key, permissions, now),
            Some(_) => self.finish_later(seal_key, permissions, now),
        }
    }

    fn check(&self, permissions: Permissions) -> Result<(), StoreError> {
        let Some(parent) = &self.parent else { return Ok(()) };
        let stream = &self.header.stream;
        if self.header.taken_at < parent.taken_at && !permissions.older {
            return Err(StoreError::OutOfOrder {
                stream: stream.clone(),
                taken_at: self.header.taken_at,
                version: parent.number,
                newest: parent.taken_at,
            });
        }
        Ok(())
    }

    /// The first version of a stream is a full image, written straight from what came in.
    fn finish_first(
        mut self,
        seal_key: Option<&str>,
        permissions: Permissions,
        now: Timestamp,
    ) -> Result<Committed, StoreError> {
        self.fresh = HashMap::new();
        let names = std::mem::take(&mut self.names).texts;
        let mut pending = std::mem::take(&mut self.pending);
        let id = |one: &Pending| one.id_length as usize;
        pending.sort_unstable_by(|a, b| {
            (&names[a.kind as usize], &names[a.place as usize], &a.text[..id(a)]).cmp(&(
                &names[b.kind as usize],
                &names[b.place as usize],
                &b.text[..id(b)],
            ))
        });
        let written = pending.iter().map(|one| Written {
            op: Op::Base,
            version: 1,
            kind: &names[one.kind as usize],
            place: &names[one.place as usize],
            id: &one.text[..id(one)],
            hash: Some(one.content),
            prev_hash: None,
            seen: true,
            prev_seen: false,
            before: None,
            after: Some(&one.text[id(one)..]),
            told: None,
        });
        let stream = self.header.stream.clone();
        let rows = pending.len() as u64;
        let base = self.store.write_segment(&stream, 1, self.header.taken_at, written, rows)?;
        let mut types: BTreeMap<String, TypeCount> = BTreeMap::new();
        let mut digest = StateDigest::default();
        let mut key = ResourceKey { kind: String::new(), place: Place::new(""), id: String::new() };
        for one in &pending {
            let (kind, place) = (&names[one.kind as usize], &names[one.place as usize]);
            if *key.kind != **kind {
                key.kind = kind.to_string();
            }
            if key.place.as_str() != &**place {
                key.place = Place::new(place.to_string());
            }
            key.id.clear();
            key.id.push_str(&one.text[..id(one)]);
            digest.add(&key, one.content);
            match types.get_mut(&key.kind) {
                Some(count) => count.rows += 1,
                None => {
                    types.insert(key.kind.clone(), TypeCount { rows: 1, unseen: 0 });
                }
            }
        }
        let record = VersionRecord {
            rows,
            types: Some(types),
            changes: ChangeCounts { add: rows, ..ChangeCounts::default() },
            base: Some(base),
            digest: digest.to_string(),
            ..self.blank_record(1, seal_key)?
        };
        let mut raced = false;
        let expected = stream.clone();
        let committed = self.store.append(now, |store| {
            raced = store.catalog.streams.contains_key(&expected);
            if raced {
                return Err(StoreError::Contended { tries: 0 });
            }
            Ok(Step::Version(Box::new(record.clone())))
        });
        if !raced {
            committed.inspect_err(|_| self.store.take_back(record.base.iter()))?;
            self.store.keep_coverage(&self.header.coverage, None)?;
            let slots = pending.iter().zip(0..).map(|(one, row)| slot_of(one, row));
            self.keep_index(1, Slots::new(slots.collect()));
            return Ok(committed_summary(&record));
        }
        // Someone else began this stream meanwhile: what we saw becomes the next version of it.
        self.store.discard(record.base.iter());
        let mut again = self.store.draft(self.header.clone(), None)?;
        for one in &pending {
            let text: driftline_core::Value =
                serde_json::from_str(&one.text[id(one)..]).map_err(|error| StoreError::damaged("memory", error))?;
            let properties = driftline_core::Properties::new(&text);
            let key =
                KeyRef { kind: &names[one.kind as usize], place: &names[one.place as usize], id: &one.text[..id(one)] };
            again.push(key, properties.as_ref(), &[])?;
        }
        again.finish(seal_key, permissions, now)
    }

    fn blank_record(&self, version: u64, seal_key: Option<&str>) -> Result<VersionRecord, StoreError> {
        let coverage = self.store.write_coverage(&self.header.coverage, self.parent.as_ref())?;
        let (complete_extents, partial_extents) = self.header.coverage.counts();
        Ok(VersionRecord {
            stream: self.header.stream.clone(),
            version,
            taken_at: self.header.taken_at,
            observer: self.header.observer.clone(),
            coverage,
            complete_extents,
            partial_extents,
            rows: 0,
            unseen: 0,
            changes: ChangeCounts::default(),
            types: None,
            problems: self.header.problems.clone(),
            delta: None,
            base: None,
            digest: String::new(),
            basis: self.header.coverage.basis().map(ToOwned::to_owned),
            mixed: false,
            seal_key: seal_key.map(ToOwned::to_owned),
            nature: self.header.nature.on_top_of(&Nature::Events(Vec::new())),
        })
    }

    fn finish_later(
        mut self,
        seal_key: Option<&str>,
        permissions: Permissions,
        now: Timestamp,
    ) -> Result<Committed, StoreError> {
        let (mut rows, gone) = self.changed_rows()?;
        let mut parent = self.parent.clone().expect("a later version has one before it");
        let stream = self.header.stream.clone();
        // An observation that saw nothing where it could not look says so in its coverage, and is welcome: what it
        // would call gone is what counts.
        if self.count == 0 && !gone.is_empty() && !permissions.empty {
            return Err(StoreError::Empty { stream, version: parent.number, rows: parent.rows });
        }
        self.fresh = HashMap::new();
        let blank = self.blank_record(0, seal_key)?;
        let mut done: Option<(VersionRecord, u64)> = None;
        let header = &self.header;
        let mut raced = false;
        let checker = |parent: &Version| -> Result<(), StoreError> {
            if header.taken_at < parent.taken_at && !permissions.older {
                return Err(StoreError::OutOfOrder {
                    stream: header.stream.clone(),
                    taken_at: header.taken_at,
                    version: parent.number,
                    newest: parent.taken_at,
                });
            }
            Ok(())
        };
        let outcome = self.store.append(now, |store| {
            let head =
                store.catalog.stream(&stream)?.head().cloned().ok_or(StoreError::NoSuchStream(stream.clone()))?;
            if head.number != parent.number {
                checker(&head)?;
                same_nature(header, &head)?;
                // Retention may have dropped what we compared with; what changed since then cannot be told.
                store.catalog.version(&stream, parent.number)?;
                // Someone else committed to this stream meanwhile: what we saw is now compared with that.
                let theirs = store.fold(&stream, parent.number, head.number)?;
                let theirs = theirs.into_iter().map(|(key, (row, _))| (key, row)).collect();
                rows = rebase(std::mem::take(&mut rows), theirs, header, &head);
                parent = head;
                raced = true;
                if let Some((record, _)) = done.take() {
                    store.discard(record.delta.iter().chain(&record.base));
                }
            }
            if let Some((record, _)) = &done {
                return Ok(Step::Version(Box::new(record.clone())));
            }
            rows.values_mut().for_each(Row::tell_changes);
            let record = version_record(store, &blank, &parent, &rows)?;
            done = Some((record.clone(), parent.number));
            Ok(Step::Version(Box::new(record)))
        });
        if let (Err(_), Some((record, _))) = (&outcome, &done) {
            self.store.take_back(record.delta.iter().chain(&record.base));
        }
        outcome?;
        let (record, previous) = done.expect("append made a step before it succeeded");
        self.store.keep_coverage(&self.header.coverage, Some(&parent))?;
        let rows: Vec<Row> = rows.into_values().collect();
        self.store.follow_views(&record.stream, previous, record.version, &rows);
        if !raced && record.base.is_none() {
            self.follow_index(&record, &rows, gone);
        }
        Ok(committed_summary(&record))
    }

    /// Keeps the index in step with a version that changed `rows`.
    fn follow_index(mut self, record: &VersionRecord, rows: &[Row], gone: Vec<usize>) {
        // Retention or packing may have come in between: then the slots count the rows of files that are no more.
        let stream = &self.header.stream;
        let now = self.store.catalog.stream(stream).and_then(|found| chain_files(found, stream, record.version));
        if !now.is_ok_and(|now| self.state.leads_to(&now, record.delta.as_ref())) {
            return;
        }
        let first = self.state.rows();
        let mut places: HashMap<Hash, u32> = HashMap::with_capacity(rows.len());
        for (row, at) in rows.iter().zip(first..) {
            if matches!(row.op(), Some(Op::Add | Op::Change)) {
                places.insert(hash_key(row.key.as_ref()), at);
            }
        }
        let mut slots = std::mem::take(&mut self.state.slots);
        // The look-up tables weigh half as much as the slots, and nothing is looked up any more.
        self.state = State::default();
        // What did not come is not seen; what is gone goes below. What happened once stays.
        match self.header.nature.is_state() {
            true => slots.see_what_was_met(),
            false => slots.see_all(),
        }
        let mut new = Vec::new();
        for one in &self.pending {
            match (one.before, places.get(&one.key)) {
                (Some(at), Some(row)) => slots.set_image(at as usize, one.content, *row),
                (None, Some(row)) => new.push(slot_of(one, *row)),
                _ => {}
            }
        }
        slots.replace(gone, new);
        self.keep_index(record.version, slots);
    }

    fn keep_index(&self, version: u64, slots: Slots) {
        if slots.len() < self.store.tuning.index_rows {
            return;
        }
        if let Some(reader) = &self.reader {
            self.store.write_index(&self.header.stream, version, reader, slots);
        }
    }

    /// Every row that differs from the newest version, by key, with whole images; and the slots of what is gone.
    fn changed_rows(&mut self) -> Result<(BTreeMap<ResourceKey, Row>, Vec<usize>), StoreError> {
        let mut rows = BTreeMap::new();
        // What was there and did not come: gone where we looked at everything, carried over where we did not.
        let slots = &self.state.slots;
        // What happened once stays, whether this pass tells it again or not.
        let stays = !self.header.nature.is_state();
        let missing: Vec<usize> = (0..slots.len()).filter(|&at| slots.met(at) == 0 && !stays).collect();
        let places: Vec<u32> = missing.iter().map(|&at| slots.row(at)).collect();
        let mut gone: Vec<(ResourceKey, usize)> = Vec::new();
        let absence = self.store.absence(&self.header, self.parent.as_ref())?;
        for (columns, at) in self.state.fetch_keys(self.store, &places)?.into_iter().zip(missing) {
            let key = columns.to_key("a change file")?;
            if self.header.coverage.is_complete(&key.kind, key.place.as_str()) && absence.counts(&key, slots.seen(at)) {
                gone.push((key, at));
            } else if slots.seen(at) {
                let image = Some(Image { content: slots.content(at), json: None });
                let row = Row {
                    key: key.clone(),
                    before: image.clone(),
                    after: image,
                    was_seen: true,
                    is_seen: false,
                    told: None,
                };
                rows.insert(key, row);
            }
        }
        let changed = |one: &Pending| one.before.filter(|&at| slots.content(at as usize) != one.content);
        let places: Vec<u32> = gone
            .iter()
            .map(|(_, at)| slots.row(*at))
            .chain(self.pending.iter().filter_map(changed).map(|at| slots.row(at as usize)))
            .collect();
        let mut images = self.state.fetch_images(self.store, &places)?.into_iter().map(Some);
        for (key, at) in &gone {
            let before = Some(Image { content: slots.content(*at), json: images.next().flatten() });
            let row =
                Row { key: key.clone(), before, after: None, was_seen: slots.seen(*at), is_seen: false, told: None };
            rows.insert(key.clone(), row);
        }
        for one in &mut self.pending {
            let id_length = one.id_length as usize;
            let key = ResourceKey {
                kind: self.names.texts[one.kind as usize].to_string(),
                place: Place::new(self.names.texts[one.place as usize].to_string()),
                id: one.text[..id_length].to_owned(),
            };
            let json = (one.text.len() > id_length).then(|| Box::from(&one.text[id_length..]));
            one.text = Box::default();
            let at = one.before.map(|at| at as usize);
            let before = at.map(|at| Image {
                content: slots.content(at),
                json: if slots.content(at) == one.content { None } else { images.next().flatten() },
            });
            let was_seen = at.is_some_and(|at| slots.seen(at));
            let after = Some(Image { content: one.content, json });
            rows.insert(key.clone(), Row { key, before, after, was_seen, is_seen: true, told: None });
        }
        Ok((rows, gone.into_iter().map(|(_, at)| at).collect()))
    }
}

/// What happened and how things are cannot be versions of one another.
fn same_nature(header: &Header, parent: &Version) -> Result<(), StoreError> {
    let word = |nature: &Nature| if nature.is_state() { "the state of things" } else { "events" };
    match header.nature.is_state() == parent.nature.is_state() {
        true => Ok(()),
        false => Err(StoreError::OtherNature {
            stream: header.stream.clone(),
            holds: word(&parent.nature),
            given: word(&header.nature),
        }),
    }
}

fn slot_of(one: &Pending, row: u32) -> Slot {
    Slot { key: one.key, content: one.content, line: one.line, row, seen: true }
}

fn committed_summary(record: &VersionRecord) -> Committed {
    Committed {
        version: record.version,
        rows: record.rows,
        unseen: record.unseen,
        changes: record.changes,
        complete_extents: record.complete_extents,
        partial_extents: record.partial_extents,
        bytes: record.delta.iter().chain(&record.base).map(|file| file.size).sum(),
        events: !record.nature.is_state(),
    }
}
