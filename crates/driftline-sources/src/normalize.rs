//! What every normalizer takes and makes: documents in, listings out.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use driftline_core::canonical::Encoder;
use driftline_core::name::ScopeName;
use driftline_core::{
    Coverage, Extent, Nature, Outcome, Pattern, Place, Problem, Properties, PropertiesRef, ResourceKey, SourceName,
    Value,
};
use jiff::Timestamp;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::swamp::Lifecycle;
use crate::{adopt, cloudformation, cloudtrail, config, dns, inventory, kubernetes, swamp, terraform, topology};

/// One document as it lies in a file or a datastore.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// How messages name it.
    pub name: &'a str,
    pub bytes: &'a [u8],
    /// When whoever kept it wrote it down; what the document itself says goes first.
    pub written_at: Option<Timestamp>,
}

impl<'a> Document<'a> {
    /// Without the mark that some programs put before a text.
    fn text(&self) -> Result<&'a str, NormalizeError> {
        let text = std::str::from_utf8(self.bytes).map_err(|error| {
            NormalizeError::new(self.name, format!("it is not UTF-8 at byte {}", error.valid_up_to()))
        })?;
        Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
    }
}

/// What the documents of a source do not say themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The source that is being observed.
    pub source: SourceName,
    /// The account (or the cluster) that it looks at, where its documents leave that out.
    pub account: Option<String>,
    /// `aws`, `aws-cn`, `aws-us-gov`.
    pub partition: String,
}

/// The observers that Driftline understands the documents of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Model {
    Adopt,
    Inventory,
    Config,
    Dns,
    EventTopology,
    Terraform,
    CloudFormation,
    CloudTrail,
    Kubernetes,
}

impl Model {
    pub const ALL: [Model; 9] = [
        Model::Adopt,
        Model::Inventory,
        Model::Config,
        Model::Dns,
        Model::EventTopology,
        Model::Terraform,
        Model::CloudFormation,
        Model::CloudTrail,
        Model::Kubernetes,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Model::Adopt => "adopt",
            Model::Inventory => "inventory",
            Model::Config => "config",
            Model::Dns => "dns",
            Model::EventTopology => "event-topology",
            Model::Terraform => "terraform",
            Model::CloudFormation => "cloudformation",
            Model::CloudTrail => "cloudtrail",
            Model::Kubernetes => "kubernetes",
        }
    }

    /// Reads all documents of one pass. There may be several listings, each the next version of its own stream.
    pub fn normalize(self, documents: &[Document<'_>], context: &Context) -> Result<Vec<Listing>, NormalizeError> {
        let listings = match self {
            Model::Adopt => adopt::normalize(documents, context),
            Model::Inventory => inventory::normalize(documents, context),
            Model::Config => config::normalize(documents, context),
            Model::Dns => dns::normalize(documents, context),
            Model::EventTopology => topology::normalize(documents, context),
            Model::Terraform => terraform::normalize(documents, context),
            Model::CloudFormation => cloudformation::normalize(documents, context),
            Model::CloudTrail => cloudtrail::normalize(documents, context),
            Model::Kubernetes => kubernetes::normalize(documents, context),
        }?;
        finish(documents, listings)
    }
}

/// What holds for the listings of every normalizer.
pub(crate) fn finish(documents: &[Document<'_>], mut listings: Vec<Listing>) -> Result<Vec<Listing>, NormalizeError> {
    // Something was there and nothing came of it: that is a misunderstanding, not an empty account.
    for listing in &listings {
        if listing.resources.is_empty() && listing.items > 0 {
            let message = format!("none of its {} items could be understood", listing.items);
            let mut error = NormalizeError::new(documents.first().map_or("", |document| document.name), message);
            error.hint = listing.problems.first().map(|problem| format!("{}: {}", problem.about, problem.message));
            return Err(error);
        }
    }
    // Here and not in each normalizer: none can forget it.
    for document in documents {
        if swamp::unwrap(document.name, document.text()?)?.is_some_and(|found| found.limited) {
            for listing in &mut listings {
                listing.cut_short(document.name, LIMITED);
            }
        }
    }
    Ok(listings)
}

/// Why documents could not be read at all.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{document}: {message}")]
pub struct NormalizeError {
    pub document: String,
    pub message: String,
    pub hint: Option<String>,
}

impl NormalizeError {
    pub fn new(document: &str, message: impl Into<String>) -> Self {
        Self { document: document.to_owned(), message: message.into(), hint: None }
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The parser's words and place, without an excerpt of the input: that may hold a secret.
    pub(crate) fn json(document: &str, error: &serde_json::Error) -> Self {
        let message = parser_words(&error.to_string());
        let place = if error.line() > 0 {
            format!("line {}, column {}: ", error.line(), error.column())
        } else {
            String::new()
        };
        Self::new(document, format!("{place}{message}"))
    }
}

/// What one pass of one stream saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Which part of the source it is, where a source has several.
    pub scope: Option<ScopeName>,
    pub taken_at: Option<Timestamp>,
    pub coverage: Coverage,
    /// In order, each once.
    pub problems: Vec<Problem>,
    pub nature: Nature,
    pub resources: BTreeMap<ResourceKey, Found>,
    /// How many items the documents had, understood or not.
    pub items: usize,
    /// The documents that resources came in, for messages.
    documents: Vec<String>,
}

/// What was seen of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub properties: Properties,
    /// Where its secrets are, as the document says.
    pub sensitive: Vec<Pattern>,
    /// The number of the document it came in, where it may come in several.
    from: Option<usize>,
}

impl Found {
    pub fn new(value: &Value, sensitive: Vec<Pattern>) -> Self {
        Self { properties: Properties::new(value), sensitive, from: None }
    }

    /// The same for properties that are encoded already and have no secrets in them.
    pub fn encoded(properties: Properties) -> Self {
        Self { properties, sensitive: Vec::new(), from: None }
    }
}

impl Listing {
    /// A listing of nothing: all it says is what was looked at.
    pub fn of_nothing(coverage: Coverage) -> Self {
        Self { coverage, ..Self::default() }
    }

    pub(crate) fn scoped(scope: &str) -> Self {
        Self { scope: Some(scope.parse().expect("a scope written in this crate")), ..Self::default() }
    }

    /// Takes in one resource. The same thing may come in several documents if all say the same of it.
    pub(crate) fn add(
        &mut self,
        key: ResourceKey,
        value: &Value,
        sensitive: Vec<Pattern>,
        document: &str,
    ) -> Result<(), NormalizeError> {
        self.add_encoded(key, Properties::new(value).as_ref(), sensitive, document)
    }

    /// Takes in one resource whose properties are encoded already.
    pub(crate) fn add_encoded(
        &mut self,
        key: ResourceKey,
        properties: PropertiesRef<'_>,
        sensitive: Vec<Pattern>,
        document: &str,
    ) -> Result<(), NormalizeError> {
        if self.documents.last().is_none_or(|last| last != document) {
            self.documents.push(document.to_owned());
        }
        match self.resources.entry(key) {
            Entry::Occupied(known) if known.get().properties.as_ref() == properties => Ok(()),
            Entry::Occupied(known) => {
                let key = known.key();
                let from = known.get().from.map_or("another document", |from| &self.documents[from]);
                let message =
                    format!("`{}` ({} in {}) is also in {from}, with other properties", key.id, key.kind, key.place);
                Err(NormalizeError::new(document, message)
                    .hint("they were taken at different times: observe each as a source of its own (--name)"))
            }
            Entry::Vacant(place) => {
                place.insert(Found { properties: properties.into(), sensitive, from: Some(self.documents.len() - 1) });
                Ok(())
            }
        }
    }

    pub(crate) fn cover(&mut self, kind: &str, place: &str, outcome: Outcome) {
        self.coverage.record(Extent { kind: kind.to_owned(), place: place.to_owned() }, outcome);
    }

    /// Covers an extent wholly, or partly with a reason.
    pub(crate) fn cover_unless(&mut self, kind: &str, place: &str, reason: Option<&str>) {
        let outcome = match reason {
            None => Outcome::Complete,
            Some(reason) => Outcome::Partial { reason: reason.to_owned() },
        };
        self.cover(kind, place, outcome);
    }

    /// Takes note of something that its reader should know.
    pub fn problem(&mut self, about: impl Into<String>, message: impl Into<String>) {
        let problem = Problem { about: about.into(), message: message.into() };
        if let Err(at) = self.problems.binary_search(&problem) {
            self.problems.insert(at, problem);
        }
    }

    /// Not everything was there to be read: what is missing from it may exist all the same.
    pub fn cut_short(&mut self, about: &str, reason: &str) {
        let extents: Vec<Extent> = self
            .coverage
            .iter()
            .map(|(kind, place, _)| Extent { kind: kind.to_owned(), place: place.to_owned() })
            .collect();
        for extent in extents {
            self.coverage.record(extent, Outcome::Partial { reason: reason.to_owned() });
        }
        self.problem(about, reason);
    }

    /// Takes note of items without the member that names them; says why the listing is not whole, if there were some.
    pub(crate) fn nameless(&mut self, document: &str, kind: &str, id: &str, count: usize) -> Option<String> {
        let items = if count == 1 { "item" } else { "items" };
        let reason = (count > 0).then(|| format!("{count} {items} {kind} without `{id}`"))?;
        self.problem(document, format!("{reason} cannot be told from each other and are left out"));
        Some(reason)
    }

    /// The newest time that one of its documents was taken at.
    pub(crate) fn taken(&mut self, at: Option<Timestamp>) {
        self.taken_at = self.taken_at.max(at);
    }
}

/// A document, opened: its own text, taken out of the wrapping that a command-line tool put around it.
#[derive(Clone, Debug)]
pub(crate) struct Opened<'a> {
    pub name: String,
    pub text: &'a str,
    pub written_at: Option<Timestamp>,
}

/// Opens every document; one that is a list of results becomes several.
pub(crate) fn open<'a>(documents: &[Document<'a>]) -> Result<Vec<Opened<'a>>, NormalizeError> {
    let mut opened = Vec::new();
    for document in documents {
        let text = document.text()?;
        if text.trim_ascii().is_empty() {
            return Err(NormalizeError::new(document.name, "it is empty"));
        }
        match swamp::unwrap(document.name, text)? {
            None => opened.push(Opened { name: document.name.to_owned(), text, written_at: document.written_at }),
            Some(found) => {
                for item in found.items {
                    // Every problem of an item repeats its name; it is the name of a folder, too.
                    if item.name.len() > LONGEST {
                        let message = format!("the name of an item has {} bytes", item.name.len());
                        return Err(NormalizeError::new(document.name, message));
                    }
                    let name = format!("{} ({})", document.name, item.name);
                    // Its content is what was there last: read as any other it would come back to life.
                    if item.lifecycle != Lifecycle::Active {
                        return Err(NormalizeError::new(&name, "swamp has deleted it, so there is nothing to observe")
                            .hint("`driftline observe swamp` knows what to do with deleted data"));
                    }
                    let written_at = item.created_at.or(document.written_at);
                    opened.push(Opened { name, text: item.content, written_at });
                }
            }
        }
    }
    Ok(opened)
}

/// Reads a document into a type; unknown members are let be, so that an observer may add some.
pub(crate) fn read<'a, T: serde::Deserialize<'a>>(document: &Opened<'a>) -> Result<T, NormalizeError> {
    // The members of a type would also be read from a list, by their order.
    if document.text.trim_ascii_start().starts_with('[') {
        return Err(NormalizeError::new(&document.name, "it is a list, and not an object"));
    }
    read_any(document)
}

/// Reads a document that may be a list, too.
pub(crate) fn read_any<'a, T: serde::Deserialize<'a>>(document: &Opened<'a>) -> Result<T, NormalizeError> {
    serde_json::from_str(document.text).map_err(|error| NormalizeError::json(&document.name, &error))
}

/// What a parser says is wrong, without the excerpt of the input and the text that it did not expect.
pub(crate) fn parser_words(text: &str) -> String {
    let text = text.split("\n\n").next().unwrap_or(text);
    let words = text.split(" at line ").next().unwrap_or(text);
    let words = match (words.split_once("string \""), text.rsplit_once("\", expected ")) {
        (Some((before, _)), Some((_, expected))) => {
            let expected = expected.split(" at line ").next().unwrap_or(expected);
            format!("{before}a text, expected {expected}")
        }
        _ => words.to_owned(),
    };
    words.trim().trim_end_matches(['.', ':']).to_owned()
}

/// Lists by name. A name that comes twice is an error, or the first of the two lists would be gone without a word.
#[derive(Debug)]
pub(crate) struct Lists<'a>(pub BTreeMap<String, Vec<&'a RawValue>>);

impl<'de: 'a, 'a> Deserialize<'de> for Lists<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ByName;

        impl<'de> Visitor<'de> for ByName {
            type Value = BTreeMap<String, Vec<&'de RawValue>>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with lists")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut lists = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    if lists.contains_key(&name) {
                        return Err(de::Error::custom(format!("the list `{name}` appears twice")));
                    }
                    lists.insert(name, map.next_value()?);
                }
                Ok(lists)
            }
        }

        deserializer.deserialize_map(ByName).map(Lists)
    }
}

/// The longest name that a document may give once for everything in it: it is copied for each.
pub(crate) const LONGEST: usize = 256;

/// The account or the region that a document as a whole is of. It becomes a part of the key of everything in it, so a
/// text that is far longer than any such name would make far more of a document than is in it.
pub(crate) fn place_part<'t>(
    document: &Opened<'_>,
    member: &str,
    text: Option<&'t str>,
) -> Result<Option<&'t str>, NormalizeError> {
    const LONGEST_PART: usize = 64;
    match text {
        Some(text) if text.len() > LONGEST_PART => {
            let message = format!("its `{member}` has {} bytes, and none has more than {LONGEST_PART}", text.len());
            Err(NormalizeError::new(&document.name, message))
        }
        text => Ok(text.filter(|text| !text.is_empty())),
    }
}

/// Reads one item straight into its canonical encoding: for items that are taken as they are.
pub(crate) fn encode<'e>(
    document: &Opened<'_>,
    item: &RawValue,
    encoder: &'e mut Encoder,
) -> Result<PropertiesRef<'e>, NormalizeError> {
    let mut parser = sonic_rs::Deserializer::from_str(item.get());
    encoder
        .seed()
        .deserialize(&mut parser)
        .map_err(|error| NormalizeError::new(&document.name, parser_words(&error.to_string())))?;
    Ok(encoder.properties())
}

/// A member of encoded properties that is a text and not an empty one.
pub(crate) fn member<'p>(properties: PropertiesRef<'p>, name: &str) -> Option<&'p str> {
    properties.text(name).filter(|text| !text.is_empty())
}

/// Reads one item whole.
pub(crate) fn value(document: &Opened<'_>, item: &RawValue) -> Result<Value, NormalizeError> {
    serde_json::from_str(item.get()).map_err(|error| NormalizeError::json(&document.name, &error))
}

/// A member that is a text and not an empty one.
pub(crate) fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    match value.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// A time, where a text is one.
pub(crate) fn time(text: Option<&str>) -> Option<Timestamp> {
    text.and_then(|text| text.parse().ok())
}

pub(crate) fn key(kind: &str, place: &str, id: &str) -> ResourceKey {
    ResourceKey { kind: kind.to_owned(), place: Place::new(place), id: id.to_owned() }
}

/// Why a listing is partial when its observer stopped at a limit of its own.
pub(crate) const TRUNCATED: &str = "the observer stopped at its page limit (truncated)";

/// Why a listing is partial when a query for its documents was cut.
pub const LIMITED: &str = "the swamp query stopped at its limit";

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
pub(crate) mod testing {
    use super::*;

    pub(crate) fn normalize(model: Model, texts: &[&str]) -> Result<Vec<Listing>, NormalizeError> {
        let names: Vec<String> = (1..=texts.len()).map(|number| format!("document {number}")).collect();
        let documents: Vec<Document<'_>> = texts
            .iter()
            .zip(&names)
            .map(|(text, name)| Document { name, bytes: text.as_bytes(), written_at: None })
            .collect();
        let account = Some("123456789012".into());
        model.normalize(&documents, &Context { source: "test".parse().unwrap(), account, partition: "aws".into() })
    }

    /// Recorded data that lies beside the checkout, or above it for a worktree that lies deeper.
    #[expect(clippy::disallowed_methods, reason = "cargo says where the tree is")]
    #[expect(clippy::print_stderr, reason = "says that a test was left out")]
    pub(crate) fn recorded(name: &str) -> Option<Vec<u8>> {
        let here = std::path::PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
        let found = here.ancestors().map(|above| above.join("shared/data").join(name)).find(|it| it.exists());
        if found.is_none() {
            eprintln!("LEFT OUT: shared/data/{name} is not beside the checkout");
        }
        Some(zstd::decode_all(std::fs::File::open(found?).unwrap()).unwrap())
    }

    /// The only listing of some documents.
    pub(crate) fn listing(model: Model, texts: &[&str]) -> Listing {
        let mut listings = normalize(model, texts).unwrap();
        assert_eq!(listings.len(), 1);
        listings.remove(0)
    }

    /// Every resource as type, place and id.
    pub(crate) fn keys(listing: &Listing) -> Vec<String> {
        listing.resources.keys().map(|key| format!("{} {} {}", key.kind, key.place, key.id)).collect()
    }

    /// The properties of the resource whose id ends so.
    pub(crate) fn properties(listing: &Listing, id: &str) -> Value {
        let found = listing.resources.iter().find(|(key, _)| key.id.ends_with(id));
        found.unwrap_or_else(|| panic!("no {id} in {:?}", keys(listing))).1.properties.to_value()
    }

    /// How an extent was listed: `complete`, the reason why not wholly, or nothing.
    pub(crate) fn extent(listing: &Listing, kind: &str, place: &str) -> String {
        match listing.coverage.outcome(kind, place) {
            Some(Outcome::Complete) => "complete".into(),
            Some(Outcome::Partial { reason }) => reason.clone(),
            None => String::new(),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn normalize(model: Model, text: &str) -> Result<Vec<Listing>, NormalizeError> {
        let context = Context { source: "x".parse().unwrap(), account: None, partition: "aws".into() };
        model.normalize(&[Document { name: "d", bytes: text.as_bytes(), written_at: None }], &context)
    }

    /// A document of each model that names its account and its region, with one thing in it.
    const PLACED: [(Model, &str); 6] = [
        (Model::Adopt, r#"{"region":"REGION","accountId":"ACCOUNT","discovered":{"vpcs":[{"vpcId":"v"}]}}"#),
        (
            Model::Inventory,
            r#"{"region":"REGION","accountId":"ACCOUNT","resourceType":"ebs","resources":[{"volumeId":"v"}]}"#,
        ),
        (
            Model::Inventory,
            r#"{"region":"REGION","accountId":"ACCOUNT","source":"s","resources":[{"arn":"a","resourceType":"T"}]}"#,
        ),
        (
            Model::Config,
            r#"{"region":"REGION","accountId":"ACCOUNT","evaluations":[{"resourceId":"i","resourceType":"T","configRuleName":"r","complianceType":"C"}]}"#,
        ),
        (Model::Dns, r#"{"accountId":"ACCOUNT","zones":[{"id":"Z"}]}"#),
        (
            Model::EventTopology,
            r#"{"region":"REGION","accountId":"ACCOUNT","nodes":[{"id":"n","type":"S3"}],"edges":[]}"#,
        ),
    ];

    #[test]
    fn a_long_account_or_region_is_not_copied_into_every_key() {
        let long = "x".repeat(100);
        for (model, text) in PLACED {
            let fill = |region: &str, account: &str| text.replace("REGION", region).replace("ACCOUNT", account);
            assert!(normalize(model, &fill("us-east-1", "123456789012")).is_ok(), "{text}");
            let error = normalize(model, &fill("us-east-1", &long)).unwrap_err().to_string();
            assert!(error.contains("its `accountId` has 100 bytes"), "{error}");
            if text.contains("REGION") {
                let error = normalize(model, &fill(&long, "1")).unwrap_err().to_string();
                assert!(error.contains("its `region` has 100 bytes"), "{error}");
            }
        }
    }

    #[test]
    fn a_query_that_stopped_at_its_limit_says_so_behind_a_byte_order_mark_too() {
        let adopt = PLACED[0].1.replace("REGION", "us-east-1");
        let text = format!(
            r#"{{"results":[{{"name":"NAME","modelName":"m","contentType":"application/json","content":{adopt}}}],"total":2,"limited":true}}"#
        );
        for mark in ["", "\u{feff}"] {
            let listing = normalize(Model::Adopt, &format!("{mark}{text}")).unwrap().remove(0);
            assert_eq!(listing.coverage.counts().0, 0, "{:?}", listing.coverage);
        }
        let error = normalize(Model::Adopt, &text.replace("NAME", &"x".repeat(1000))).unwrap_err().to_string();
        assert!(error.contains("the name of an item has 1000 bytes"), "{error}");
    }

    #[test]
    fn an_empty_account_is_an_unknown_one() {
        for (model, text) in PLACED {
            let listings = normalize(model, &text.replace("REGION", "us-east-1").replace("ACCOUNT", "")).unwrap();
            for (key, _) in listings.iter().flat_map(|listing| &listing.resources) {
                assert!(key.place.as_str().starts_with("aws/-"), "{model:?}: {}", key.place);
            }
        }
    }

    #[test]
    fn a_thing_without_a_type_is_left_out_and_said() {
        let text =
            r#"{"source":"s","region":"r","resources":[{"arn":"a","resourceType":""},{"arn":"b","resourceType":"T"}]}"#;
        let listing = normalize(Model::Inventory, text).unwrap().remove(0);
        assert_eq!(listing.resources.len(), 1);
        assert_eq!(listing.coverage.counts().0, 0, "what was left out is not gone");
        for (model, text) in [
            (
                Model::Terraform,
                r#"{"version":4,"serial":1,"resources":[{"mode":"managed","type":"","name":"","instances":[{}]}]}"#,
            ),
            (Model::Terraform, r#"{"address":"","mode":"managed","type":"","values":{}}"#),
            (
                Model::Terraform,
                r#"{"format_version":"1.0","resource_changes":[{"address":"","mode":"managed","type":"","change":{"actions":[]}}]}"#,
            ),
        ] {
            for (key, _) in normalize(model, text).iter().flatten().flat_map(|listing| &listing.resources) {
                assert!(!key.kind.is_empty() && !key.id.is_empty(), "{key}: {text}");
            }
        }
    }

    #[test]
    fn a_list_that_comes_twice_does_not_replace_the_first() {
        for (model, text) in [
            (Model::Adopt, r#"{"region":"r","discovered":{"vpcs":[{"vpcId":"a"}],"vpcs":[{"vpcId":"b"}]}}"#),
            (
                Model::Inventory,
                r#"{"resourceType":"all","resources":{"s3":[{"bucketName":"a"}],"s3":[{"bucketName":"b"}]}}"#,
            ),
        ] {
            let error = normalize(model, text).unwrap_err().to_string();
            assert!(error.contains("appears twice"), "{error}");
        }
    }

    #[test]
    fn a_list_is_not_read_as_an_object_by_the_order_of_its_elements() {
        for model in Model::ALL {
            assert!(normalize(model, r#"[null,null,false,{"vpcs":[{"vpcId":"v"}]},null,[],[]]"#).is_err(), "{model:?}");
        }
    }

    #[test]
    fn the_reason_why_a_rule_was_cut_is_not_repeated_with_its_name_for_every_place() {
        let one = |at: usize| {
            format!(
                r#"{{"resourceId":"i","resourceType":"T","configRuleName":"the-rule","complianceType":"C","region":"r{at}"}}"#
            )
        };
        let all: Vec<String> = (0..200).map(one).collect();
        let listing = normalize(Model::Config, &format!(r#"{{"evaluations":[{}]}}"#, all.join(","))).unwrap().remove(0);
        let named = |outcome: &Outcome| matches!(outcome, Outcome::Partial { reason } if reason.contains("the-rule"));
        assert!(listing.coverage.counts().1 > 200 && !listing.coverage.iter().any(|(_, _, outcome)| named(outcome)));
        assert!(listing.problems[0].message.starts_with("the-rule reached the 200"), "{:?}", listing.problems);
    }

    #[test]
    fn a_text_in_the_wrong_place_is_not_repeated_in_the_error() {
        for (model, text) in [
            (Model::Adopt, r#"{"region":"r","discovered":"hunter2"}"#),
            (Model::Adopt, r#"{"region":"r","truncated":"hunter2 at line 3\", expected hunter2"}"#),
            (Model::Config, r#"{"evaluations":["hunter2"]}"#),
            (
                Model::Terraform,
                r#"{"version":4,"serial":1,"resources":[{"mode":"managed","type":"a","name":"b","instances":"hunter2"}]}"#,
            ),
        ] {
            let error = normalize(model, text).unwrap_err().to_string();
            assert!(error.contains("a text, expected") && !error.contains("hunter2"), "{error}");
        }
    }
}
