//! Addresses of buckets, checked where they are written.

use std::fmt;
use std::str::FromStr;

use url::Url;

/// Whose object storage it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cloud {
    S3,
    Google,
    Azure,
}

impl Cloud {
    fn scheme(self) -> &'static str {
        match self {
            Cloud::S3 => "s3",
            Cloud::Google => "gs",
            Cloud::Azure => "az",
        }
    }
}

/// `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub cloud: Cloud,
    pub bucket: String,
    /// Without slashes at its ends; empty for the whole bucket.
    pub prefix: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("`{0}` is not an address of a bucket: it is written like `s3://bucket/prefix`")]
    NotAnAddress(String),
    #[error("`{scheme}://` is no object storage that is known here: there are s3://, gs:// and az://")]
    OtherCloud { scheme: String },
    #[error("`{address}` has {what}, which has no place in it: credentials and options come from the environment")]
    TooMuch { address: String, what: &'static str },
    #[error("the prefix of `{0}` has an empty part or one of dots, which no store keeps as written")]
    Prefix(String),
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let not_one = || AddressError::NotAnAddress(text.to_owned());
        let url = Url::parse(text).map_err(|_| not_one())?;
        let cloud = match url.scheme() {
            "s3" => Cloud::S3,
            "gs" => Cloud::Google,
            "az" => Cloud::Azure,
            scheme => return Err(AddressError::OtherCloud { scheme: scheme.to_owned() }),
        };
        // What is secret must not be in an address; it would be in every message, so it is not repeated here either.
        let told = format!("{}://{}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path());
        let too_much = |what| Err(AddressError::TooMuch { address: told.clone(), what });
        match () {
            () if !url.username().is_empty() || url.password().is_some() => return too_much("a user"),
            () if url.port().is_some() => return too_much("a port"),
            () if url.query().is_some() => return too_much("a query"),
            () if url.fragment().is_some() => return too_much("a fragment"),
            () => {}
        }
        // The host as it was written: a bucket's name may have characters that a host's may not.
        let rest = text.split_once("://").map_or("", |(_, rest)| rest);
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(not_one());
        }
        let prefix = prefix.trim_end_matches('/');
        if !prefix.is_empty() && prefix.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(AddressError::Prefix(told));
        }
        Ok(Self { cloud, bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.cloud.scheme(), self.bucket)?;
        if !self.prefix.is_empty() {
            write!(f, "/{}", self.prefix)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_told_the_same_way() {
        for (text, bucket, prefix) in [
            ("s3://fleet", "fleet", ""),
            ("s3://fleet/", "fleet", ""),
            ("s3://fleet/drift/prod/", "fleet", "drift/prod"),
            ("gs://my_bucket.example/x", "my_bucket.example", "x"),
            ("az://container/a b", "container", "a b"),
        ] {
            let address: Address = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((address.bucket.as_str(), address.prefix.as_str()), (bucket, prefix), "{text}");
            assert_eq!(address.to_string().parse(), Ok(address), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_reason() {
        for (text, says) in [
            ("s3://", "written like"),
            ("s3:///prefix", "written like"),
            ("fleet", "written like"),
            ("ftp://fleet/x", "no object storage"),
            ("s3://fleet?region=x", "a query"),
            ("s3://fleet/x#y", "a fragment"),
            ("s3://key:secret@fleet/x", "a user"),
            ("s3://fleet:9000/x", "a port"),
            ("s3://fleet/a//b", "empty part"),
        ] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
            assert!(!error.contains("secret"), "{text}: {error}");
        }
    }
}
