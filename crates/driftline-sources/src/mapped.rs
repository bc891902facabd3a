//! Documents of any shape, read as a mapping of JSON pointers says.

use driftline_core::{Coverage, Extent, Outcome, Pointer, ResourceKey, Value};

use crate::aws::{self, Whereabouts};
use crate::normalize::{Context, Document, Listing, NormalizeError, Opened, finish, key, open, time};
use crate::place::write_place;

/// Where in a document its resources are, and where in a resource what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// A list of resources, or an object of them; without it the document is one resource.
    pub items: Option<Pointer>,
    /// Without it the member's name is the id, where `items` is an object.
    pub id: Option<Pointer>,
    pub kind: Kind,
    pub account: Option<Pointer>,
    pub region: Option<Pointer>,
    /// What is kept of an item; without it all of it.
    pub snapshot: Option<Pointer>,
    /// When the document was taken.
    pub taken_at: Option<Pointer>,
    /// Whether the document lists all there is, so that what it lacks is gone.
    pub complete: bool,
}

/// Where the type of a resource comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    At(Pointer),
    Named(String),
}

impl Mapping {
    /// Reads all documents of one pass into one listing.
    pub fn normalize(&self, documents: &[Document<'_>], context: &Context) -> Result<Listing, NormalizeError> {
        let mut listing = Listing::default();
        if self.complete {
            listing.coverage = Coverage::complete();
        }
        for document in open(documents)? {
            self.read(&document, context, &mut listing)?;
        }
        let mut listings = finish(documents, vec![listing])?;
        Ok(listings.pop().expect("as many listings come out as went in"))
    }

    fn read(&self, document: &Opened<'_>, context: &Context, listing: &mut Listing) -> Result<(), NormalizeError> {
        let whole: Value = crate::normalize::read(document)?;
        let taken_at = self.taken_at.as_ref().and_then(|at| at.find(&whole)).and_then(Value::as_str);
        listing.taken(time(taken_at).or(document.written_at));
        let items: Vec<(Option<&str>, &Value)> = match &self.items {
            None => vec![(None, &whole)],
            Some(at) => match at.find(&whole) {
                Some(Value::Array(items)) => items.iter().map(|item| (None, item)).collect(),
                Some(Value::Object(members)) => {
                    members.iter().map(|(name, item)| (Some(name.as_str()), item)).collect()
                }
                Some(_) => {
                    let message = format!("`{at}` is neither a list nor an object");
                    return Err(NormalizeError::new(&document.name, message));
                }
                // Not "nothing is there": the mapping or the document is another than was thought.
                None => return Err(NormalizeError::new(&document.name, format!("there is nothing at `{at}`"))),
            },
        };
        for (number, (name, item)) in items.into_iter().enumerate() {
            listing.items += 1;
            let about = name.map_or_else(
                || format!("{}: item {}", document.name, number + 1),
                |name| format!("{}: {name}", document.name),
            );
            match self.resource(name, item, &whole, context) {
                Ok((key, snapshot)) => listing.add(key, snapshot, Vec::new(), &document.name)?,
                Err(reason) => {
                    listing.problem(about, reason.clone());
                    if self.complete {
                        let everything = Extent { kind: "*".to_owned(), place: "*".to_owned() };
                        let reason = format!("not every item could be read: {reason}");
                        listing.coverage.record(everything, Outcome::Partial { reason });
                    }
                }
            }
        }
        Ok(())
    }

    fn resource<'v>(
        &self,
        name: Option<&str>,
        item: &'v Value,
        whole: &'v Value,
        context: &Context,
    ) -> Result<(ResourceKey, &'v Value), String> {
        // A document often says once for all where its items are.
        let nearest = |at: &Pointer| at.find(item).and_then(word).or_else(|| at.find(whole).and_then(word));
        let id = match &self.id {
            Some(at) => at.find(item).and_then(word).ok_or_else(|| format!("it has no id at `{at}`"))?,
            None => name.map(ToOwned::to_owned).ok_or("only members of an object have a name to be their id")?,
        };
        let kind = match &self.kind {
            Kind::Named(kind) => kind.clone(),
            Kind::At(at) => nearest(at).ok_or_else(|| format!("it has no type at `{at}`"))?,
        };
        let account = self.account.as_ref().and_then(nearest).or_else(|| context.account.clone());
        let region = self.region.as_ref().and_then(nearest);
        let snapshot = match &self.snapshot {
            None => item,
            Some(at) => at.find(item).ok_or_else(|| format!("there is nothing at `{at}`"))?,
        };
        if snapshot.as_object().is_none() {
            return Err("its snapshot is not an object".to_owned());
        }
        let at = Whereabouts { partition: &context.partition, account: account.as_deref(), region: region.as_deref() };
        // Things in AWS get the key that every other observer gives them.
        let key = if kind.starts_with("AWS::") {
            aws::resource_key(&kind, &id, at)
        } else {
            let mut place = String::new();
            write_place(at.account, at.region, &id, &mut place);
            key(&kind, &place, &id)
        };
        Ok((key, snapshot))
    }
}

/// A text that is not empty; a whole number is its digits.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => number.as_integer().map(|number| number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<Pointer> {
        text.parse().ok()
    }

    fn mapping() -> Mapping {
        Mapping {
            items: at("/things"),
            id: at("/id"),
            kind: Kind::Named("Thing".into()),
            account: at("/account"),
            region: at("/region"),
            snapshot: None,
            taken_at: at("/fetchedAt"),
            complete: true,
        }
    }

    fn read(mapping: &Mapping, text: &str) -> Result<Listing, NormalizeError> {
        let document = Document { name: "d", bytes: text.as_bytes(), written_at: "2026-01-01T00:00:00Z".parse().ok() };
        let context = Context { source: "s".parse().unwrap(), account: Some("9".into()), partition: "aws".to_owned() };
        mapping.normalize(&[document], &context)
    }

    fn keys(listing: &Listing) -> Vec<String> {
        let text = |key: &ResourceKey| format!("{} {} {}", key.kind, key.place, key.id);
        listing.resources.keys().map(text).collect()
    }

    #[test]
    fn what_an_item_does_not_say_its_document_does() {
        let text = r#"{"fetchedAt":"2026-01-02T00:00:00Z","region":"eu-west-1","account":"1",
                       "things":[{"id":"a"},{"id":7,"region":"us-east-1","account":2}]}"#;
        let listing = read(&mapping(), text).unwrap();
        assert_eq!(keys(&listing), ["Thing aws/1/eu-west-1 a", "Thing aws/2/us-east-1 7"]);
        assert_eq!(listing.taken_at, "2026-01-02T00:00:00Z".parse().ok());
        assert!(listing.coverage.is_complete("Thing", "anywhere"));
    }

    #[test]
    fn a_type_of_aws_gets_the_key_that_other_observers_give() {
        let text = r#"{"region":"us-east-1","things":{"vpc-1":{"kind":"AWS::EC2::VPC","state":{"cidr":"10/8"}}}}"#;
        let mapping =
            Mapping { id: None, kind: Kind::At("/kind".parse().unwrap()), snapshot: at("/state"), ..mapping() };
        let listing = read(&mapping, text).unwrap();
        assert_eq!(keys(&listing), ["AWS::EC2::VPC aws/9/us-east-1 arn:aws:ec2:us-east-1:9:vpc/vpc-1"]);
        assert_eq!(listing.resources.values().next().unwrap().properties.to_json(), r#"{"cidr":"10/8"}"#);
        assert_eq!(listing.taken_at, "2026-01-01T00:00:00Z".parse().ok(), "what was written down is next best");
    }

    #[test]
    fn an_item_that_is_not_understood_is_a_problem_and_takes_completeness_away() {
        let listing = read(&mapping(), r#"{"things":[{"id":"a"},{"name":"b"},3]}"#).unwrap();
        assert_eq!(keys(&listing), ["Thing aws/9/global a"]);
        assert_eq!(listing.problems.len(), 2);
        assert!(!listing.coverage.is_complete("Thing", "aws/9/global"));
        let error = read(&mapping(), r#"{"things":[{"name":"b"}]}"#).unwrap_err();
        assert!(error.to_string().contains("none of its 1 items"), "{error}");
    }

    #[test]
    fn a_pointer_that_leads_nowhere_is_not_an_empty_list() {
        for text in [r#"{"other":[]}"#, r#"{"things":7}"#, "[]", "not json", ""] {
            assert!(read(&mapping(), text).is_err(), "{text}");
        }
        assert!(read(&mapping(), r#"{"things":[]}"#).unwrap().coverage.is_complete("Thing", "x"));
        let incomplete = Mapping { complete: false, ..mapping() };
        assert_eq!(read(&incomplete, r#"{"things":[]}"#).unwrap().coverage.counts(), (0, 0));
    }

    #[test]
    fn a_query_that_stopped_at_its_limit_is_never_complete() {
        let text = r#"{"results":[{"name":"x","modelName":"m","content":{"things":[{"id":"a"}]}}],"total":1,"limited":LIMITED}"#;
        let whole = read(&mapping(), &text.replace("LIMITED", "false")).unwrap();
        assert!(whole.coverage.is_complete("Thing", "x") && whole.problems.is_empty());
        let cut = read(&mapping(), &text.replace("LIMITED", "true")).unwrap();
        assert!(!cut.coverage.is_complete("Thing", "x"));
        assert_eq!(cut.problems.len(), 1);
        let gone = text.replace("\"name\"", "\"lifecycle\":\"deleted\",\"name\"").replace("LIMITED", "false");
        assert!(read(&mapping(), &gone).unwrap_err().to_string().contains("deleted"));
    }
}
