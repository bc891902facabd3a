//! What a thing is called, whoever saw it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of a thing: its type, the place it lives in, and its id there.
///
/// The observer is not part of it, so two observers of one thing meet. Order is type, place, id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResourceKey {
    #[serde(rename = "type")]
    pub kind: String,
    pub place: Place,
    pub id: String,
}

/// A borrowed [`ResourceKey`], for loops over millions of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyRef<'a> {
    pub kind: &'a str,
    pub place: &'a str,
    pub id: &'a str,
}

impl ResourceKey {
    pub fn as_ref(&self) -> KeyRef<'_> {
        KeyRef { kind: &self.kind, place: self.place.as_str(), id: &self.id }
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

/// The id alone where it says everything (an ARN), else type, place and id.
impl fmt::Display for KeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

impl From<KeyRef<'_>> for ResourceKey {
    fn from(key: KeyRef<'_>) -> Self {
        Self { kind: key.kind.to_owned(), place: Place(key.place.to_owned()), id: key.id.to_owned() }
    }
}

/// Where a thing lives: a path such as `aws/123456789012/us-east-1` or `k8s/prod/default`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place(String);

impl Place {
    pub fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The place of something of which no account, region or other place is known.
pub const NOWHERE: &str = "-";

/// The last part of the place of something that belongs to an account but to no region.
pub const GLOBAL: &str = "global";

/// Writes the place made of an account and a region, filling in from an ARN what is not given.
pub fn write_place(account: Option<&str>, region: Option<&str>, id: &str, out: &mut String) {
    out.clear();
    let mut arn = id.starts_with("arn:").then(|| id.splitn(6, ':').skip(3));
    let arn_region = arn.as_mut().and_then(Iterator::next).filter(|part| !part.is_empty());
    let arn_account = arn.as_mut().and_then(Iterator::next).filter(|part| !part.is_empty());
    match (account.or(arn_account), region.or(arn_region)) {
        (None, None) => out.push_str(NOWHERE),
        (account, region) => {
            out.push_str("aws/");
            out.push_str(account.unwrap_or(NOWHERE));
            out.push('/');
            out.push_str(region.unwrap_or(GLOBAL));
        }
    }
}

/// The account and region of a place that has them.
pub fn account_and_region(place: &str) -> (Option<&str>, Option<&str>) {
    let mut parts = place.split('/');
    if parts.next() != Some("aws") {
        return (None, None);
    }
    let account = parts.next().filter(|part| *part != NOWHERE);
    let region = parts.next().filter(|part| *part != GLOBAL);
    (account, region)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_from_what_is_given_and_then_from_the_arn() {
        for (account, region, id, place) in [
            (Some("1"), Some("eu-west-1"), "sg-1", "aws/1/eu-west-1"),
            (None, None, "arn:aws:lambda:us-east-1:2:function:f", "aws/2/us-east-1"),
            (Some("1"), None, "arn:aws:lambda:us-east-1:2:function:f", "aws/1/us-east-1"),
            (None, None, "arn:aws:s3:::bucket", "-"),
            (Some("1"), None, "arn:aws:iam::1:user/u", "aws/1/global"),
            (None, Some("eu-west-1"), "x", "aws/-/eu-west-1"),
            (None, None, "anything", "-"),
        ] {
            let mut out = String::from("old");
            write_place(account, region, id, &mut out);
            assert_eq!(out, place);
        }
        assert_eq!(account_and_region("aws/1/global"), (Some("1"), None));
        assert_eq!(account_and_region("k8s/prod/default"), (None, None));
    }
}
