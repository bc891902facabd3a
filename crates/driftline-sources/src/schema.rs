//! What AWS's own schemas say of a CloudFormation type: which properties name a thing, which cannot be read back,
//! which arrays have no order, and how a declared value may come back in another form.
//!
//! The facts are embedded. `cargo xtask schemas` makes the table from a pinned package; docs/decisions/0017 says why.

mod alternatives;
mod record;
mod table;
#[cfg(test)]
mod tests;

use driftline_core::{Pattern, Pointer, Value};
use serde::Serialize;

pub use alternatives::alternatives;
pub use record::{RecordError, parse, write};
pub use table::{Table, TableError, pack};

/// What is known of one type. Places are told in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// As CloudFormation writes it.
    pub name: String,
    /// The properties that together name a thing of this type.
    pub primary: Vec<Pointer>,
    /// Other sets of properties that name it, too.
    pub additional: Vec<Vec<Pointer>>,
    /// Only AWS sets these.
    pub read_only: Vec<Pattern>,
    /// These are never read back.
    pub write_only: Vec<Pattern>,
    /// A thing without these cannot be.
    pub required: Vec<Pattern>,
    /// Another value means another thing.
    pub create_only: Vec<Pattern>,
    /// Another value may mean another thing.
    pub conditional_create_only: Vec<Pattern>,
    /// These may be missing from what is read.
    pub deprecated: Vec<Pattern>,
    /// Arrays whose order does not count.
    pub unordered: Vec<Pattern>,
    /// Arrays that hold nothing twice.
    pub unique: Vec<Pattern>,
    /// Arrays of settings in which AWS lists its defaults, too.
    pub attribute_lists: Vec<Pattern>,
    /// Where the tags are. A pattern, because some types keep them in an array of tag lists.
    pub tags: Option<Pattern>,
    /// Places that are never text, so that a text there spells a number or a truth value.
    pub scalars: Vec<(Pattern, Scalar)>,
    /// JSON documents, which may be told as an object or as its text.
    pub documents: Vec<Pattern>,
    /// Those of them that are IAM policies.
    pub policies: Vec<Pattern>,
    /// What absence means. A default of `null` says nothing and is not here.
    pub defaults: Vec<(Pattern, Value)>,
    pub transforms: Vec<Transform>,
    /// Where these facts are not what the package says, and why.
    pub corrections: Vec<Correction>,
    /// Whether AWS can read a thing of this type at all.
    pub readable: bool,
}

/// What a place holds that is neither text nor an object or array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scalar {
    Integer,
    Number,
    Boolean,
}

/// How the declared value of a property may come back: one of these expressions gives what is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Transform {
    pub path: Pattern,
    /// As it was published, with `$OR` in it.
    #[serde(skip)]
    pub expression: String,
    /// JSONata, in the order in which they are tried.
    pub alternatives: Vec<String>,
    /// Where the expression was published.
    pub source: String,
}

/// A fact that is not as the package has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Correction {
    pub path: Pattern,
    /// What was done: `+unordered`, `-unordered`, `transform`.
    pub what: String,
    pub reason: String,
}

/// What a schema can say of a place, short of defaults and transforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    ReadOnly,
    WriteOnly,
    Required,
    CreateOnly,
    ConditionalCreateOnly,
    Deprecated,
    Unordered,
    Unique,
    AttributeList,
    Tags,
    Scalar(Scalar),
    Document,
    Policy,
}

impl Mark {
    /// Each with its letter in the table and its name for people.
    pub const ALL: [(Mark, char, &'static str); 15] = [
        (Mark::ReadOnly, 'r', "read-only"),
        (Mark::WriteOnly, 'w', "write-only"),
        (Mark::Required, 'm', "required"),
        (Mark::CreateOnly, 'c', "create-only"),
        (Mark::ConditionalCreateOnly, 'k', "conditional create-only"),
        (Mark::Deprecated, 'd', "deprecated"),
        (Mark::Unordered, 'u', "unordered"),
        (Mark::Unique, 'q', "unique"),
        (Mark::AttributeList, 'a', "attribute list"),
        (Mark::Tags, 't', "tags"),
        (Mark::Scalar(Scalar::Integer), 'i', "integer"),
        (Mark::Scalar(Scalar::Number), 'n', "number"),
        (Mark::Scalar(Scalar::Boolean), 'b', "boolean"),
        (Mark::Document, 'j', "document"),
        (Mark::Policy, 'p', "policy"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(mark, _, _)| *mark == self).map_or("", |(_, _, name)| name)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, _, known)| *known == name).map(|(mark, _, _)| *mark)
    }
}

impl Facts {
    /// Says of a place what the mark says. A type has one tag property; a second one is not kept.
    pub fn mark(&mut self, mark: Mark, path: Pattern) {
        match mark {
            Mark::ReadOnly => self.read_only.push(path),
            Mark::WriteOnly => self.write_only.push(path),
            Mark::Required => self.required.push(path),
            Mark::CreateOnly => self.create_only.push(path),
            Mark::ConditionalCreateOnly => self.conditional_create_only.push(path),
            Mark::Deprecated => self.deprecated.push(path),
            Mark::Unordered => self.unordered.push(path),
            Mark::Unique => self.unique.push(path),
            Mark::AttributeList => self.attribute_lists.push(path),
            Mark::Tags => {
                self.tags.get_or_insert(path);
            }
            Mark::Scalar(scalar) => self.scalars.push((path, scalar)),
            Mark::Document => self.documents.push(path),
            Mark::Policy => self.policies.push(path),
        }
    }

    /// Everything that [`Facts::mark`] said.
    pub fn marks(&self) -> impl Iterator<Item = (Mark, &Pattern)> {
        let lists = [
            (Mark::ReadOnly, &self.read_only),
            (Mark::WriteOnly, &self.write_only),
            (Mark::Required, &self.required),
            (Mark::CreateOnly, &self.create_only),
            (Mark::ConditionalCreateOnly, &self.conditional_create_only),
            (Mark::Deprecated, &self.deprecated),
            (Mark::Unordered, &self.unordered),
            (Mark::Unique, &self.unique),
            (Mark::AttributeList, &self.attribute_lists),
            (Mark::Document, &self.documents),
            (Mark::Policy, &self.policies),
        ];
        let lists = lists.into_iter().flat_map(|(mark, paths)| paths.iter().map(move |path| (mark, path)));
        let tags = self.tags.iter().map(|path| (Mark::Tags, path));
        let scalars = self.scalars.iter().map(|(path, scalar)| (Mark::Scalar(*scalar), path));
        lists.chain(tags).chain(scalars)
    }
}

/// What is known of a type, whatever capitals it is written with.
pub fn facts(kind: &str) -> Option<&'static Facts> {
    table::embedded().facts(kind)
}

/// The type as CloudFormation writes it. Costs a fraction of [`facts`], which has to read more.
pub fn name(kind: &str) -> Option<&'static str> {
    table::embedded().name(kind)
}

/// All types, in the order of their names, capitals aside.
pub fn names() -> impl Iterator<Item = &'static str> {
    table::embedded().names()
}

/// The package that the facts are from, with its version and licence.
pub fn origin() -> &'static str {
    table::embedded().origin()
}
