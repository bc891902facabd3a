//! swamp's datastore: what its metadata and its command line's JSON say. Walking the tree is the program's part.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::de::{self, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::normalize::{Model, NormalizeError, time};

#[cfg(test)]
mod tests;

/// What `swamp data get` or `swamp data query` printed, taken apart.
#[derive(Clone, Debug)]
pub struct Unwrapped<'a> {
    pub items: Vec<Item<'a>>,
    /// A query stopped at its limit: there is more that it does not show.
    pub limited: bool,
}

/// One piece of data as swamp's command line prints it.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    pub name: String,
    /// The data itself, as JSON.
    pub content: &'a str,
    pub created_at: Option<Timestamp>,
    pub model_id: Option<String>,
    pub model_name: Option<String>,
    pub model_type: Option<String>,
    pub spec: Option<String>,
    pub step: Option<String>,
    /// `resource`, `report`, `log`, …
    pub data_type: Option<String>,
    pub content_type: Option<String>,
    pub version: Option<VersionNumber>,
    pub lifecycle: Lifecycle,
}

/// Whether data is there, and where it went if not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Lifecycle {
    #[default]
    Active,
    Deleted,
    RenamedTo(String),
}

fn lifecycle(word: Option<&str>, renamed_to: Option<String>) -> Lifecycle {
    match (word, renamed_to) {
        (Some("deleted"), Some(name)) => Lifecycle::RenamedTo(name),
        (Some("deleted"), None) => Lifecycle::Deleted,
        _ => Lifecycle::Active,
    }
}

/// Takes data out of what swamp's command line wraps around it. `None` for any other document.
pub fn unwrap<'a>(name: &str, text: &'a str) -> Result<Option<Unwrapped<'a>>, NormalizeError> {
    if !text.trim_ascii_start().starts_with('{') {
        return Ok(None);
    }
    let mut telling = false;
    let wrapping = match serde_json::Deserializer::from_str(text).deserialize_map(WrappingVisitor(&mut telling)) {
        Ok(wrapping) => wrapping,
        // Broken before it showed itself as swamp's: whoever reads it as something else will say what is wrong.
        Err(_) if !telling => return Ok(None),
        Err(error) => return Err(NormalizeError::json(name, &error)),
    };
    let Some(wrapping) = wrapping else { return Ok(None) };
    if let Some(results) = wrapping.results {
        if wrapping.total.is_none() && wrapping.limited.is_none() {
            return Ok(None);
        }
        let Ok(results) = serde_json::from_str::<Vec<&RawValue>>(results.get()) else { return Ok(None) };
        let limited = wrapping.limited.is_some_and(|limited| limited.get() == "true");
        let items = results.iter().enumerate().map(|(at, result)| {
            // A projection may be of any shape: one that is no record has no content either.
            let record: Record<'a> = serde_json::from_str(result.get()).unwrap_or_default();
            record.item(name, Some(at + 1))
        });
        return Ok(Some(Unwrapped { items: items.collect::<Result<_, _>>()?, limited }));
    }
    let record: Record<'a> = serde_json::from_str(text).map_err(|error| NormalizeError::json(name, &error))?;
    if record.content_type.is_none() || record.model_name.is_none() && record.model_type.is_none() {
        return Ok(None);
    }
    Ok(Some(Unwrapped { items: vec![record.item(name, None)?], limited: false }))
}

/// Members that only swamp's wrapping has: seeing one, it is read to its end.
const TELLING: [&str; 10] = [
    "content",
    "contentPath",
    "contentType",
    "garbageCollection",
    "lifetime",
    "modelId",
    "modelName",
    "modelType",
    "predicate",
    "results",
];

/// Members that swamp's wrapping shares with other documents: seeing one decides nothing.
const SHARED: [&str; 25] = [
    "checksum",
    "createdAt",
    "dataType",
    "id",
    "isLatest",
    "jobName",
    "lifecycle",
    "limited",
    "name",
    "namespace",
    "ns",
    "ownerDefinition",
    "ownerRef",
    "ownerType",
    "renamedTo",
    "size",
    "source",
    "specName",
    "stepName",
    "streaming",
    "tags",
    "total",
    "version",
    "workflowName",
    "workflowRunId",
];

#[derive(Default)]
struct Wrapping<'a> {
    results: Option<&'a RawValue>,
    total: Option<&'a RawValue>,
    limited: Option<&'a RawValue>,
}

/// Looks at the names of the outermost members, and stops at the first that shows an ordinary document: those are
/// big, and are about to be read anyway.
struct WrappingVisitor<'t>(&'t mut bool);

impl<'de> Visitor<'de> for WrappingVisitor<'_> {
    type Value = Option<Wrapping<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut wrapping = Wrapping::default();
        while let Some(name) = map.next_key::<String>()? {
            *self.0 |= TELLING.contains(&name.as_str());
            if !*self.0 && !SHARED.contains(&name.as_str()) {
                return Err(de::Error::custom("an ordinary document"));
            }
            match name.as_str() {
                "results" => wrapping.results = Some(map.next_value()?),
                "total" => wrapping.total = Some(map.next_value()?),
                "limited" => wrapping.limited = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(self.0.then_some(wrapping))
    }
}

/// One record of either form. Everything may be missing, and nothing but texts is asked for.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Record<'a> {
    name: Option<Text>,
    model_id: Option<Text>,
    model_name: Option<Text>,
    model_type: Option<ModelType>,
    spec_name: Option<Text>,
    step_name: Option<Text>,
    data_type: Option<Text>,
    #[serde(borrow)]
    version: Option<&'a RawValue>,
    content_type: Option<Text>,
    created_at: Option<Text>,
    lifecycle: Option<Text>,
    renamed_to: Option<Text>,
    tags: BTreeMap<String, Text>,
    owner_definition: Owner,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl<'a> Record<'a> {
    fn item(self, document: &str, number: Option<usize>) -> Result<Item<'a>, NormalizeError> {
        let Some(content) = self.content else {
            let message = match number {
                Some(number) => format!("result {number} has no `content`"),
                None => "it has no `content`".to_owned(),
            };
            return Err(NormalizeError::new(document, message)
                .hint("print whole records: `swamp data query` without --select, with --json"));
        };
        let tag = |name: &str| self.tags.get(name).map(|text| text.0.clone());
        let text = |text: Option<Text>| text.map(|text| text.0).filter(|text| !text.is_empty());
        Ok(Item {
            name: text(self.name).unwrap_or_else(|| "unnamed".to_owned()),
            content: content.get(),
            created_at: time(text(self.created_at).as_deref()),
            model_id: text(self.model_id),
            model_name: text(self.model_name).or_else(|| tag("modelName")),
            model_type: self.model_type.map(|model_type| model_type.0),
            spec: text(self.spec_name).or_else(|| tag("specName")),
            step: text(self.step_name).or_else(|| text(self.owner_definition.step_name)),
            data_type: text(self.data_type).or_else(|| tag("type")),
            content_type: text(self.content_type),
            // As it is spelled: a number that no machine word holds is still a number.
            version: self.version.and_then(|text| text.get().trim_matches('"').parse().ok()),
            lifecycle: lifecycle(text(self.lifecycle).as_deref(), text(self.renamed_to)),
        })
    }
}

/// The most that `metadata.yaml` may weigh. A real one has about a kilobyte.
pub const MOST_YAML: u64 = 1 << 20;

/// What a `metadata.yaml` says of one version of one piece of data, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    pub content_type: Option<String>,
    pub data_type: Option<String>,
    pub spec: Option<String>,
    pub model_name: Option<String>,
    pub step: Option<String>,
    pub created_at: Option<Timestamp>,
    pub size: Option<String>,
    pub checksum: Option<String>,
    pub lifecycle: Lifecycle,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawMetadata {
    // As they are spelled: a checksum that happens to look like a number is none.
    content_type: Option<String>,
    created_at: Option<String>,
    size: Option<String>,
    checksum: Option<String>,
    lifecycle: Option<String>,
    renamed_to: Option<String>,
    tags: BTreeMap<String, Text>,
    owner_definition: Owner,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Owner {
    step_name: Option<Text>,
}

/// Why a YAML file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct YamlError(String);

impl Metadata {
    pub fn parse(text: &str) -> Result<Self, YamlError> {
        let raw: RawMetadata = yaml(text)?;
        let tag = |name: &str| raw.tags.get(name).map(|text| text.0.clone()).filter(|text| !text.is_empty());
        let text = |text: Option<String>| text.filter(|text| !text.is_empty());
        Ok(Self {
            data_type: tag("type"),
            spec: tag("specName"),
            model_name: tag("modelName"),
            content_type: text(raw.content_type),
            step: text(raw.owner_definition.step_name.map(|text| text.0)),
            created_at: time(raw.created_at.as_deref()),
            size: text(raw.size),
            checksum: text(raw.checksum),
            lifecycle: lifecycle(raw.lifecycle.as_deref(), text(raw.renamed_to)),
        })
    }
}

/// What `.swamp.yaml` says of where a repository keeps its data.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepositoryFile {
    pub repo_id: Option<String>,
    pub datastore: Option<Datastore>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Datastore {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub path: Option<String>,
    pub namespace: Option<String>,
    pub directories: Option<Vec<String>>,
    pub exclude: Vec<String>,
}

impl RepositoryFile {
    pub fn parse(text: &str) -> Result<Self, YamlError> {
        yaml(text)
    }
}

impl Datastore {
    /// Whether data lies in the datastore, and not in the repository beside it.
    pub fn holds_data(&self) -> bool {
        let listed =
            self.directories.as_ref().is_none_or(|names| names.iter().any(|name| name.trim_matches('/') == "data"));
        // As in a .gitignore, the last pattern that speaks of it decides.
        let excluded = self.exclude.iter().fold(false, |excluded, pattern| {
            let (negated, pattern) = match pattern.strip_prefix('!') {
                Some(pattern) => (true, pattern),
                None => (false, pattern.as_str()),
            };
            let pattern = pattern.trim_matches('/');
            let pattern = pattern.strip_suffix("/**").or_else(|| pattern.strip_suffix("/*")).unwrap_or(pattern);
            let pattern = pattern.strip_prefix("**/").unwrap_or(pattern);
            if driftline_core::rule::Glob::new(pattern).matches("data") { !negated } else { excluded }
        });
        listed && !excluded
    }
}

/// Reads YAML that anyone may have written: aliases do not multiply, and nesting has an end.
fn yaml<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    if text.len() as u64 > MOST_YAML {
        return Err(YamlError(format!("it is larger than {MOST_YAML} bytes")));
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 100_000,
            max_nodes: 50_000,
            max_aliases: 100,
            max_anchors: 100,
            max_depth: 32,
            max_documents: 1,
            flow_nesting_limit: 32,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 10_000,
            max_replay_stack_depth: 8,
        },
        // An excerpt of the input may hold a secret.
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let text = error.to_string();
        YamlError(text.lines().next().unwrap_or_default().to_owned())
    })
}

/// A text, however it is written: numbers are kept as they are spelled, whatever their size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a number")
            }

            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Text, E> {
                Ok(Text(value.to_string()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_u128<E>(self, number: u128) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_i128<E>(self, number: i128) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_unit<E>(self) -> Result<Text, E> {
                Ok(Text::default())
            }

            fn visit_none<E>(self) -> Result<Text, E> {
                Ok(Text::default())
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Text, D::Error> {
                deserializer.deserialize_any(Any)
            }

            // What is not a text says nothing here, and is no reason to refuse the rest.
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Text, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Text::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Text::default())
            }
        }

        deserializer.deserialize_any(Any)
    }
}

/// A model type: a text, or in some versions an object that holds it.
struct ModelType(String);

impl<'de> Deserialize<'de> for ModelType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Text(String),
            Object { raw: Option<String>, normalized: Option<String> },
            Other(IgnoredAny),
        }
        Ok(Self(match Form::deserialize(deserializer)? {
            Form::Text(text) => text,
            Form::Object { raw, normalized } => normalized.or(raw).unwrap_or_default(),
            Form::Other(_) => String::new(),
        }))
    }
}

/// The number of a version: decimal digits, compared by value, of any length.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct VersionNumber(String);

impl FromStr for VersionNumber {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(());
        }
        let digits = text.trim_start_matches('0');
        Ok(Self(if digits.is_empty() { "0" } else { digits }.to_owned()))
    }
}

impl Ord for VersionNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0.len(), &self.0).cmp(&(other.0.len(), &other.0))
    }
}

impl PartialOrd for VersionNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for VersionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a kind of data is to Driftline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognised {
    /// One of our normalizers reads it.
    As(Model),
    /// Made from what is read anyway, or not about resources.
    NotNeeded,
    /// A copy of an earlier version that the observer keeps for itself.
    Copy,
    Unknown,
}

/// What data of a model's type and spec is. Only the type's last segments count, so that forks are known too.
pub fn recognise(model_type: &str, spec: Option<&str>, name: &str) -> Recognised {
    let Some((model, read, not_needed)) = known_type(model_type) else { return Recognised::Unknown };
    match spec {
        Some("scan") if model == Model::Inventory && name == "diff-baseline" => Recognised::Copy,
        Some(spec) if read.contains(&spec) => Recognised::As(model),
        Some(spec) if not_needed.contains(&spec) => Recognised::NotNeeded,
        _ => Recognised::Unknown,
    }
}

/// Whether some data of a type is read by one of our normalizers.
pub fn is_known_type(model_type: &str) -> bool {
    known_type(model_type).is_some()
}

type Specs = &'static [&'static str];

/// The model that a type is, its specs that are read, and those that are not needed.
fn known_type(model_type: &str) -> Option<(Model, Specs, Specs)> {
    let path = type_path(model_type);
    let mut segments = path.rsplit('/');
    let (last, before) = (segments.next().unwrap_or_default(), segments.next().unwrap_or_default());
    Some(match (before, last) {
        // What a stack would adopt is a plan, not something that was seen.
        ("aws", "adopt") => (Model::Adopt, &["discovery", "partial"], &["stackPlan"]),
        ("aws", "inventory") => (Model::Inventory, &["scan", "inventory"], &["scanDiff"]),
        ("aws", "config-compliance") => (Model::Config, &["compliance"], &["summary"]),
        ("aws", "dns-observation") => (Model::Dns, &["orphans", "records", "zones"], &[]),
        ("aws", "event-topology") => (Model::EventTopology, &["graph"], &["analysis"]),
        (_, "terraform") => (Model::Terraform, &["tf_resource", "tf_inventory"], &["tf_output"]),
        _ => return None,
    })
}

/// A model's type as the path that swamp makes of it.
pub fn type_path(model_type: &str) -> String {
    let lower = model_type.to_lowercase().replace("::", "/");
    let words = lower.split(|char: char| char == '/' || char == '.' || char.is_whitespace());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("/")
}

/// Whether data of this content type is JSON; what does not say is taken for it.
pub fn is_json(content_type: Option<&str>) -> bool {
    content_type.is_none_or(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("application/json") || kind.to_ascii_lowercase().ends_with("+json")
    })
}
