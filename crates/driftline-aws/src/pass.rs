//! What all observers share: where they look, and how what they saw becomes a listing with its coverage.

use std::collections::BTreeSet;

use aws_wire::Client;
use driftline_core::name::ScopeName;
use driftline_core::{Coverage, Extent, Outcome, Problem, SourceName};
use driftline_sources::aws::Whereabouts;
use driftline_sources::normalize::{Context, Document, Listing, Model, NormalizeError};
use driftline_sources::topology::ONLY_AS_ENDS;
use jiff::Timestamp;
use serde_json::Value;

/// What a listing that was made by asking each service is called. It sees all that there is of its types.
pub const BASIS: &str = "aws api (full)";

/// One account in one region, or in none.
#[derive(Clone, Debug)]
pub struct Here {
    pub client: Client,
    pub account: String,
    /// `None` for what an account has once and not in each region.
    pub region: Option<String>,
    pub partition: &'static str,
    pub taken_at: Timestamp,
}

impl Here {
    pub fn whereabouts(&self) -> Whereabouts<'_> {
        Whereabouts { partition: self.partition, account: Some(&self.account), region: self.region.as_deref() }
    }

    pub fn place(&self, kind: &str) -> String {
        self.whereabouts().place(kind)
    }

    /// The scope of a stream: `123456789012/us-east-1`.
    pub fn scope(&self) -> ScopeName {
        let text = format!("{}/{}", self.account, self.region.as_deref().unwrap_or(driftline_core::key::GLOBAL));
        text.parse().expect("accounts are digits, and regions are small letters, digits and dashes")
    }

    pub fn context(&self, source: &SourceName) -> Context {
        Context { source: source.clone(), account: Some(self.account.clone()), partition: self.partition.to_owned() }
    }

    /// The members that every document begins with.
    pub fn document(&self, members: Value) -> Value {
        let mut document = serde_json::json!({
            "accountId": self.account,
            "fetchedAt": self.taken_at.to_string(),
        });
        if let (Value::Object(document), Value::Object(members)) = (&mut document, members) {
            document.extend(self.region.iter().map(|region| ("region".to_owned(), Value::from(region.as_str()))));
            document.extend(members);
        }
        document
    }
}

/// One version of one stream in the making.
#[derive(Debug)]
pub struct Pass {
    /// Of a source that has one for each of its things, which: `cloudformation/<stack>`.
    pub part: Option<String>,
    pub scope: ScopeName,
    pub listing: Listing,
}

/// What was looked at, and how that went.
#[derive(Clone, Debug, Default)]
pub struct Covered(Vec<(String, String, Outcome)>);

impl Covered {
    pub fn add(&mut self, kind: &str, place: impl Into<String>, outcome: Outcome) {
        self.0.push((kind.to_owned(), place.into(), outcome));
    }
}

/// Has the normalizer of a source read what was put into its form, and says what was really looked at.
pub fn normalized(
    model: Model,
    here: &Here,
    source: &SourceName,
    document: &Value,
    covered: &Covered,
    problems: Vec<Problem>,
) -> Result<Listing, NormalizeError> {
    let text = document.to_string();
    let name = format!("the answers of AWS for {}", here.scope());
    let documents = [Document { name: &name, bytes: text.as_bytes(), written_at: None }];
    let listings = model.normalize(&documents, &here.context(source))?;
    let mut listing = listings.into_iter().next().unwrap_or_default();
    listing.scope = None;
    recover(&mut listing, covered, BASIS);
    add_problems(&mut listing, problems);
    Ok(listing)
}

/// The normalizers know the limits of the observers that write files, and not that there are none here. What is
/// covered here goes before what they conclude.
pub fn recover(listing: &mut Listing, covered: &Covered, basis: &str) {
    let mut coverage = Coverage::new();
    let extent = |kind: &str, place: &str| Extent { kind: kind.to_owned(), place: place.to_owned() };
    let kinds: BTreeSet<&str> = covered.0.iter().map(|(kind, ..)| kind.as_str()).collect();
    for (kind, place, outcome) in listing.coverage.iter() {
        // Nobody looked for what is only seen from the side.
        let from_the_side = matches!(outcome, Outcome::Partial { reason } if reason == ONLY_AS_ENDS);
        if !kinds.contains(kind) && !from_the_side {
            coverage.record(extent(kind, place), outcome.clone());
        }
    }
    for (kind, place, outcome) in &covered.0 {
        coverage.record(extent(kind, place), outcome.clone());
    }
    listing.coverage = coverage.on_basis(Some(basis.to_owned()));
}

pub fn add_problems(listing: &mut Listing, problems: Vec<Problem>) {
    listing.problems.extend(problems);
    listing.problems.sort();
    listing.problems.dedup();
}
