//! The key of a resource: what it is called by whoever else sees it.

use std::collections::BTreeMap;

use driftline_core::key::NOWHERE;
use driftline_core::{ResourceKey, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::document::Item;
use super::types::{Naming, Thing, naming};
use crate::aws::{Whereabouts, is_arn, is_global, resource_key};
use crate::normalize::{Context, key, text};
use crate::place::account_and_region;

/// A key, and how well it names its resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub key: ResourceKey,
    pub standing: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// It is what everybody calls it, or nobody else sees it.
    Good,
    /// Its id is known, but not the account or the region that belongs to it.
    Nowhere,
    /// Its attributes name neither an ARN nor an id.
    Nameless,
    /// Nobody wrote down what its type is called elsewhere.
    Unmapped,
}

/// What the ARNs and regions of a provider's resources say of where that provider is.
#[derive(Debug, Default)]
pub(super) struct Votes {
    partition: Vote,
    account: Vote,
    region: Vote,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Vote {
    #[default]
    Silent,
    One(String),
    /// They disagree, and nothing is guessed.
    Split,
}

impl Vote {
    fn cast(&mut self, word: &str) {
        match self {
            Vote::Silent => *self = Vote::One(word.to_owned()),
            Vote::One(known) if known != word => *self = Vote::Split,
            Vote::One(_) | Vote::Split => {}
        }
    }

    fn unanimous(&self) -> Option<&str> {
        match self {
            Vote::One(word) => Some(word),
            Vote::Silent | Vote::Split => None,
        }
    }
}

/// Votes by provider, as one document has them.
pub(super) type Electorate = BTreeMap<String, Votes>;

/// Lets every resource of a document say where its provider is.
pub(super) fn poll<'i, 'a: 'i>(items: impl IntoIterator<Item = &'i Item<'a>>) -> Electorate {
    #[derive(Deserialize)]
    struct Glance<'a> {
        #[serde(borrow)]
        arn: Option<&'a RawValue>,
        #[serde(borrow)]
        region: Option<&'a RawValue>,
    }
    let text = |raw: Option<&RawValue>| raw.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    let mut electorate = Electorate::new();
    for item in items.into_iter().filter(|item| item.kind.starts_with("aws_")) {
        // What cannot be read here fails, with its place, when the item is read whole.
        let Some(Ok(glance)) = item.attributes.map(|raw| serde_json::from_str::<Glance<'_>>(raw.get())) else {
            continue;
        };
        let votes = electorate.entry(item.provider.clone()).or_default();
        if let Some(region) = text(glance.region).filter(|region| !region.is_empty()) {
            votes.region.cast(&region);
        }
        if let Some(arn) = text(glance.arn).as_deref().and_then(Arn::parse) {
            votes.partition.cast(arn.partition);
            arn.account.inspect(|account| votes.account.cast(account));
            arn.region.inspect(|region| votes.region.cast(region));
        }
    }
    electorate
}

struct Arn<'a> {
    partition: &'a str,
    region: Option<&'a str>,
    account: Option<&'a str>,
}

impl<'a> Arn<'a> {
    fn parse(arn: &'a str) -> Option<Self> {
        if !is_arn(arn) {
            return None;
        }
        let mut parts = arn.split(':').skip(1);
        let partition = parts.next()?;
        let region = parts.nth(1).filter(|part| !part.is_empty());
        // What AWS itself owns has `aws` here.
        let is_account = |part: &&str| part.len() == 12 && part.bytes().all(|byte| byte.is_ascii_digit());
        Some(Self { partition, region, account: parts.next().filter(is_account) })
    }
}

/// The region of a zone: `us-east-1a`, but also `us-west-2-lax-1a`.
fn region_of_zone(zone: &str) -> Option<&str> {
    let first = zone.find(|char: char| char.is_ascii_digit())?;
    let digits = zone[first..].find(|char: char| !char.is_ascii_digit())?;
    (first > 0).then(|| &zone[..first + digits])
}

/// Names a resource.
pub(super) fn name(kind: &str, address: &str, attributes: &Value, votes: Option<&Votes>, context: &Context) -> Name {
    let by_address = |standing| Name { key: key(kind, &local_place(context), address), standing };
    let own = ["arn", "id"].into_iter().find_map(|name| text(attributes, name).and_then(Arn::parse));
    let own = own.as_ref();
    let at = Whereabouts {
        partition: own
            .map(|arn| arn.partition)
            .or_else(|| votes.and_then(|votes| votes.partition.unanimous()))
            .unwrap_or(&context.partition),
        account: own
            .and_then(|arn| arn.account)
            .or(context.account.as_deref())
            .or_else(|| votes.and_then(|votes| votes.account.unanimous())),
        region: own
            .and_then(|arn| arn.region)
            .or_else(|| text(attributes, "region"))
            .or_else(|| text(attributes, "availability_zone").and_then(region_of_zone))
            .or_else(|| votes.and_then(|votes| votes.region.unanimous())),
    };
    match naming(kind) {
        Naming::Local => by_address(Standing::Good),
        Naming::Unknown => by_address(Standing::Unmapped),
        Naming::Thing(thing) => match thing_key(thing, attributes, at) {
            Some(name) => name,
            None => by_address(Standing::Nameless),
        },
        Naming::Part { parent, ids } => match joined(attributes, ids, "/") {
            Some(id) => Name { key: key(kind, &place(parent, at), &id), standing: Standing::Good },
            None => by_address(Standing::Nameless),
        },
        Naming::Record => match record_key(attributes, at) {
            Some(key) => settled(key, true),
            None => by_address(Standing::Nameless),
        },
    }
}

/// Where things live that only Terraform knows.
pub(super) fn local_place(context: &Context) -> String {
    let source = context.source.as_str();
    if source.starts_with("terraform/") { source.to_owned() } else { format!("terraform/{source}") }
}

fn thing_key(thing: Thing, attributes: &Value, at: Whereabouts<'_>) -> Option<Name> {
    if let Some(own) = text(attributes, thing.arn).filter(|own| is_arn(own)) {
        // Old providers wrote the ARN of a log group's streams.
        let own = if thing.kind == "AWS::Logs::LogGroup" { own.trim_end_matches(":*") } else { own };
        return Some(settled(resource_key(thing.kind, own, at), true));
    }
    let id = joined(attributes, thing.ids, "|").filter(|id| !id.is_empty())?;
    let is_region_known = at.region.is_some() || is_global(thing.kind);
    let key = match thing.ids {
        [_] if is_region_known => resource_key(thing.kind, &id, at),
        // Several attributes are no ARN, even where the first of them is one.
        _ => key(thing.kind, &place(thing.kind, at), &id),
    };
    Some(settled(key, is_region_known))
}

/// The place of things of a type that are here. What has regions is in one, known or not, and never everywhere.
fn place(kind: &str, at: Whereabouts<'_>) -> String {
    match at.region.is_some() || is_global(kind) {
        true => at.place(kind),
        false => format!("aws/{}/{NOWHERE}", at.account.unwrap_or(NOWHERE)),
    }
}

/// A key whose place leaves out the account is not the one that others make.
fn settled(key: ResourceKey, is_region_known: bool) -> Name {
    let is_account_known = account_and_region(key.place.as_str()).0.is_some();
    let standing = if is_region_known && is_account_known { Standing::Good } else { Standing::Nowhere };
    Name { key, standing }
}

/// The attributes that make an id, put together. One with a question mark may be missing.
fn joined(attributes: &Value, names: &[&str], between: &str) -> Option<String> {
    let mut parts = Vec::new();
    for name in names {
        match (text(attributes, name.trim_end_matches('?')), name.ends_with('?')) {
            (Some(part), _) => parts.push(part),
            (None, true) => {}
            (None, false) => return None,
        }
    }
    Some(parts.join(between))
}

fn record_key(attributes: &Value, at: Whereabouts<'_>) -> Option<ResourceKey> {
    let zone = text(attributes, "zone_id")?;
    let zone = zone.strip_prefix("/hostedzone/").unwrap_or(zone);
    // `name` may be written without the zone's.
    let name = text(attributes, "fqdn").or_else(|| text(attributes, "name"))?;
    let name = name.trim_end_matches('.').to_lowercase().replace("\\052", "*");
    let mut id = format!("{zone}/{name}/{}", text(attributes, "type")?);
    if let Some(set) = text(attributes, "set_identifier") {
        id.push('/');
        id.push_str(set);
    }
    let place = format!("aws/{}/global/{zone}", at.account.unwrap_or(NOWHERE));
    Some(key("AWS::Route53::RecordSet", &place, &id))
}
