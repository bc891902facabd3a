//! CloudFormation: a template, and what AWS says of the stack that was made of it.
//!
//! A template is the whole of what its stack manages, so what left it has left the stream. What its functions amount
//! to is resolved as far as that can be known; the rest is unknown, which is never drift.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use driftline_core::coverage::EVERY;
use driftline_core::{Pattern, ResourceKey, Value};

use crate::aws::{self, Whereabouts};
use crate::declared::is_unknown;
use crate::normalize::{Context, Document, Listing, NormalizeError, key, open, text};
use crate::schema;
use crate::terraform::room::Room;
use crate::terraform::secret;

mod attributes;
mod document;
mod parameters;
mod resolve;
#[cfg(test)]
mod tests;
mod yaml;

use document::Pass;
use resolve::{Scope, shortened, unknown};

/// A template lists what it manages, and that is not what there is.
pub const BASIS: &str = "cloudformation template";

/// The member of the properties that is not a property.
pub const ABOUT: &str = "$cloudformation";

/// Why a listing is not whole when something in it was left out.
const UNREAD: &str = "some resources could not be read";

/// How many times as much as was given may come of functions that repeat what is written once.
const TIMES: usize = 16;
const APART: usize = 64 << 10;

pub(crate) fn normalize(documents: &[Document<'_>], context: &Context) -> Result<Vec<Listing>, NormalizeError> {
    let opened = open(documents)?;
    let mut pass = Pass::default();
    let mut listing = Listing::default();
    for document in &opened {
        pass.take(document)?;
        listing.taken(document.written_at);
    }
    let Some((name, mut template)) = pass.template.take() else {
        let first = opened.first().map_or("", |document| document.name.as_str());
        return Err(NormalizeError::new(first, "there is no template here")
            .hint("give the template, or what `aws cloudformation get-template --stack-name NAME` prints"));
    };
    let length: usize = opened.iter().map(|document| document.text.len()).sum();
    let read = Reading::new(&pass, &mut template, context, length);
    let mut partial = None;
    if template.get("Transform").is_some_and(|transform| *transform != Value::Null) {
        let message = "it has transforms, which make other resources of it; `aws cloudformation get-template \
                       --template-stage Processed` prints what they made";
        listing.problem(name.as_str(), message);
        partial = Some("the template has transforms");
    }
    if !pass.listed {
        let message = "no document lists the stack's resources: all are followed by their logical ids and cannot \
                       meet what other sources saw; `aws cloudformation describe-stack-resources` prints them";
        listing.problem(name.as_str(), message);
    }
    let resources = template.get("Resources").and_then(Value::as_object);
    for (logical, resource) in resources.into_iter().flatten() {
        match read.take(&mut listing, logical, resource, &name)? {
            Taken::Whole => {}
            Taken::LeftOut => partial = Some(UNREAD),
        }
    }
    if read.scope.is_short.get() {
        listing
            .problem(name.as_str(), "far more would come of its functions than is written; some are taken as unknown");
    }
    listing.cover_unless(EVERY, EVERY, partial);
    listing.coverage = std::mem::take(&mut listing.coverage).on_basis(Some(BASIS.to_owned()));
    Ok(vec![listing])
}

/// The key of what CloudFormation, or Cloud Control, calls by this physical id.
pub fn physical_key(kind: &str, physical: &str, properties: &Value, at: Whereabouts<'_>) -> ResourceKey {
    attributes::key(kind, physical, properties.get("Path"), at)
}

/// Where the secrets of properties are, as far as their names tell.
pub fn secrets(properties: &Value, length: usize) -> Vec<Pattern> {
    let mut room = Room::beside(length);
    let secrets = secret::by_name(properties, &mut room);
    match room.is_short() {
        true => secret::everything(properties),
        false => secret::patterns(properties, &secrets),
    }
}

enum Taken {
    Whole,
    LeftOut,
}

/// A template that is being read.
struct Reading<'a> {
    pass: &'a Pass,
    scope: Scope,
    partition: String,
    account: Option<String>,
    region: Option<String>,
    /// What the stack is called, if only by the source.
    stack: String,
    /// Where things are that nobody but the template knows.
    local: String,
    length: usize,
}

impl<'a> Reading<'a> {
    fn new(pass: &'a Pass, template: &mut BTreeMap<String, Value>, context: &Context, length: usize) -> Self {
        let id = pass.stack.id.as_deref().filter(|id| aws::is_arn(id)).unwrap_or_default();
        let part = |at| id.split(':').nth(at).filter(|part| !part.is_empty() && part.len() <= 64).map(str::to_owned);
        let source = context.source.as_str();
        let mut section = |name: &str| match template.remove(name) {
            Some(Value::Object(members)) => members,
            _ => BTreeMap::new(),
        };
        let (mappings, conditions, parameters) = (section("Mappings"), section("Conditions"), section("Parameters"));
        let mut read = Self {
            pass,
            scope: Scope {
                mappings,
                conditions,
                exports: pass.exports.clone(),
                decided: RefCell::default(),
                depth: Cell::new(0),
                room: Cell::new(length * TIMES + APART),
                ..Scope::default()
            },
            partition: part(1).unwrap_or_else(|| context.partition.clone()),
            account: part(4).or_else(|| context.account.clone()),
            region: part(3),
            stack: pass.stack.name.clone().unwrap_or_else(|| source.to_owned()),
            local: match source.starts_with("cloudformation/") {
                true => source.to_owned(),
                false => format!("cloudformation/{source}"),
            },
            length,
        };
        read.pseudo_parameters();
        parameters::read(pass, &parameters, &mut read.scope.refs);
        let resources = || template.get("Resources").and_then(Value::as_object).into_iter().flatten();
        for (logical, resource) in resources() {
            read.refer(logical, resource);
        }
        // The path of a role may hang on parameters, which are known by now.
        for (logical, resource) in resources() {
            read.describe(logical, resource);
        }
        read
    }

    fn at(&self) -> Whereabouts<'_> {
        Whereabouts { partition: &self.partition, account: self.account.as_deref(), region: self.region.as_deref() }
    }

    fn pseudo_parameters(&mut self) {
        let suffix = match self.partition.as_str() {
            "aws" | "aws-us-gov" => Some("amazonaws.com"),
            "aws-cn" => Some("amazonaws.com.cn"),
            _ => None,
        };
        let texts = [
            ("AWS::Region", self.region.as_deref()),
            ("AWS::AccountId", self.account.as_deref()),
            ("AWS::Partition", Some(self.partition.as_str())),
            ("AWS::URLSuffix", suffix),
            ("AWS::StackName", self.pass.stack.name.as_deref()),
            ("AWS::StackId", self.pass.stack.id.as_deref()),
        ];
        let known = texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), Value::from(text?))));
        self.scope.refs.extend(known);
        if let Some(notifications) = &self.pass.stack.notifications {
            self.scope.refs.insert("AWS::NotificationARNs".to_owned(), notifications.clone());
        }
    }

    /// What a `Ref` of a resource is: its physical id. Of one that is made of several, a `Ref` is only a part.
    fn refer(&mut self, logical: &str, resource: &Value) {
        let physical = text(resource, "Type").and_then(|kind| self.pass.physical(logical, kind));
        let value = match physical.filter(|id| !id.contains('|')) {
            Some(id) => Value::from(id),
            None => unknown(format!("the physical id of {}", shortened(logical))),
        };
        self.scope.refs.insert(logical.to_owned(), value);
    }

    fn describe(&mut self, logical: &str, resource: &Value) {
        let Some(kind) = text(resource, "Type") else { return };
        let Some(physical) = self.pass.physical(logical, kind) else { return };
        let path = self.path(resource);
        for (name, value) in attributes::known(kind, physical, path.as_ref(), self.at()) {
            self.scope.attributes.insert((logical.to_owned(), name.to_owned()), Value::from(value));
        }
    }

    /// The path that IAM puts before a name.
    fn path(&self, resource: &Value) -> Option<Value> {
        self.scope.resolve(resource.get("Properties")?.get("Path")?)
    }

    fn take(
        &self,
        listing: &mut Listing,
        logical: &str,
        resource: &Value,
        document: &str,
    ) -> Result<Taken, NormalizeError> {
        let about = shortened(logical);
        if let Some(condition) = resource.get("Condition") {
            match condition.as_str().and_then(|name| self.scope.condition(name)) {
                Some(false) => return Ok(Taken::Whole),
                Some(true) => {}
                None => {
                    listing.items += 1;
                    listing.problem(about, "whether its condition holds cannot be known; it is left out");
                    return Ok(Taken::LeftOut);
                }
            }
        }
        listing.items += 1;
        let Some(kind) = text(resource, "Type").filter(|_| !logical.is_empty()) else {
            listing.problem(about, "it has no type; it is left out");
            return Ok(Taken::LeftOut);
        };
        let empty = Value::Object(BTreeMap::new());
        let properties = self.scope.resolve(resource.get("Properties").unwrap_or(&empty));
        let mut properties = match properties {
            None | Some(Value::Null) => BTreeMap::new(),
            // Nothing of it is known: it declares nothing.
            Some(value) if is_unknown(&value) => {
                listing.problem(about.as_str(), "its properties cannot be resolved");
                BTreeMap::new()
            }
            Some(Value::Object(members)) => members,
            Some(_) => {
                listing.problem(about, "its properties are not an object; it is left out");
                return Ok(Taken::LeftOut);
            }
        };
        // Ours are not the template's to say.
        properties.retain(|name, _| !name.starts_with('$'));
        self.add_tags(kind, &mut properties);
        let mut properties = Value::Object(properties);
        let sensitive = secrets(&properties, self.length);
        if let Value::Object(members) = &mut properties {
            let about = [("stack", Value::from(shortened(&self.stack))), ("logicalId", Value::from(logical))];
            members.insert(ABOUT.to_owned(), Value::from(about));
        }
        let key = self.key(listing, kind, logical, resource);
        listing.add(key, &properties, sensitive, document)?;
        Ok(Taken::Whole)
    }

    fn key(&self, listing: &mut Listing, kind: &str, logical: &str, resource: &Value) -> ResourceKey {
        let local = || key(aws::canonical_kind(kind), &self.local, logical);
        let Some(physical) = self.pass.physical(logical, kind) else {
            if self.pass.listed {
                let message = "the stack has no such resource of this type: it is followed by its logical id and cannot meet what other \
                               sources saw";
                listing.problem(shortened(logical), message);
            }
            return local();
        };
        let path = self.path(resource);
        let key = attributes::key(kind, physical, path.as_ref(), self.at());
        if listing.resources.contains_key(&key) {
            listing
                .problem(shortened(logical), "another resource has its physical id: it is followed by its logical id");
            return local();
        }
        key
    }

    /// A stack's tags are on all that it makes, where the thing does not say otherwise.
    fn add_tags(&self, kind: &str, properties: &mut BTreeMap<String, Value>) {
        let Some(at) = schema::facts(kind).and_then(|facts| facts.tags.as_ref()) else { return };
        let at = at.to_string();
        let Some(name) = at.strip_prefix('/').filter(|name| !name.contains(['/', '*'])) else { return };
        match properties.get_mut(name) {
            Some(Value::Array(tags)) if tags.iter().all(|tag| text(tag, "Key").is_some()) => {
                for (key, value) in &self.pass.tags {
                    if !tags.iter().any(|tag| text(tag, "Key") == Some(key)) {
                        let tag = [("Key", Value::from(key.as_str())), ("Value", Value::from(value.as_str()))];
                        tags.push(Value::from(tag));
                    }
                }
            }
            Some(tags) if is_unknown(tags) => {}
            Some(Value::Object(tags)) => {
                for (key, value) in &self.pass.tags {
                    tags.entry(key.clone()).or_insert_with(|| Value::from(value.as_str()));
                }
            }
            // What declares no tags does not say in which form it would.
            _ => {}
        }
    }
}
