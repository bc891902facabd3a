//! Objects in S3: found by prefix and read whole, within bounds, wherever their bucket is.

use aws_wire::call::encode_segment;
use aws_wire::{Call, Client, Element, Error, Kind, Protocol, Reply};

use crate::row::{Operation, Wire};

const fn operation(name: &'static str, action: &'static str) -> Operation {
    Operation { service: "s3", name, wire: Wire::RestXml { path: "/{}" }, given: &[], action: Some(action), lists: &[] }
}

pub const LIST: Operation = operation("ListObjectsV2", "s3:ListBucket");
pub const GET: Operation = operation("GetObject", "s3:GetObject");

/// An object, as a listing tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub key: String,
    pub size: u64,
}

/// What there is beneath a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beneath {
    pub objects: Vec<Object>,
    /// With a delimiter: the prefixes one level down.
    pub prefixes: Vec<String>,
}

/// A bucket, asked in the region it turned out to be in.
#[derive(Clone, Debug)]
pub struct Bucket {
    client: Client,
    name: String,
}

impl Bucket {
    /// Names come from outside and become parts of an address: what cannot be one is refused before anything is asked.
    pub fn new(client: &Client, name: &str) -> Result<Self, Error> {
        let fits = |char: char| char.is_ascii_alphanumeric() || ".-_".contains(char);
        match (3..=63).contains(&name.len()) && name.chars().all(fits) && !name.contains("..") {
            true => Ok(Self { client: client.clone(), name: name.to_owned() }),
            false => Err(Error::of(Kind::Invalid, "", "", format!("`{name}` is not the name of a bucket"))),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Everything whose key begins so, in order of key; with `by_level` only what is one level down. More than `most`
    /// is an error: half of a listing would pass for all of it.
    pub async fn list(&mut self, prefix: &str, by_level: bool, most: usize) -> Result<Beneath, Error> {
        let mut beneath = Beneath::default();
        let mut token: Option<String> = None;
        loop {
            let mut call = Call::rest("s3", LIST.name, Protocol::RestXml, "GET", format!("/{}", self.name));
            let mut ask = |name: &str, value: &str| call.query.push((name.to_owned(), value.to_owned()));
            ask("list-type", "2");
            ask("prefix", prefix);
            if by_level {
                ask("delimiter", "/");
            }
            if let Some(token) = &token {
                ask("continuation-token", token);
            }
            let reply = self.ask(&call).await?;
            let answer = reply.xml()?;
            beneath.take(&answer);
            let found = beneath.objects.len() + beneath.prefixes.len();
            if found > most {
                let message = format!("there are more than {most} objects beneath s3://{}/{prefix}", self.name);
                return Err(Error::of(Kind::Invalid, "", "", message));
            }
            let next = answer.text_at("NextContinuationToken").filter(|next| !next.is_empty()).map(str::to_owned);
            match (answer.text_at("IsTruncated"), next) {
                (Some("true"), None) => return Err(reply.malformed("it says that there is more, and not where")),
                (Some("true"), next) if next == token => {
                    return Err(reply.malformed("it handed out a page token twice"));
                }
                (Some("true"), next) => token = next,
                _ => return Ok(beneath),
            }
        }
    }

    /// The bytes of an object, if they are no more than `most`.
    pub async fn get(&mut self, key: &str, most: u64) -> Result<Vec<u8>, Error> {
        let parts: Vec<String> = key.split('/').map(encode_segment).collect();
        let path = format!("/{}/{}", self.name, parts.join("/"));
        let mut call = Call::rest("s3", GET.name, Protocol::RestXml, "GET", path);
        // One byte more than is wanted, so that it shows if there is more.
        call.headers.push(("range".into(), format!("bytes=0-{most}")));
        match self.ask(&call).await {
            Ok(reply) if reply.body.len() as u64 > most => {
                let message = format!("s3://{}/{key} has more than {most} bytes", self.name);
                Err(Error::of(Kind::Invalid, "", "", message))
            }
            Ok(reply) => Ok(reply.body),
            // There is no first byte of nothing.
            Err(error) if error.code.as_deref() == Some("InvalidRange") => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Asks again where the bucket is, once, if S3 says that it is elsewhere.
    async fn ask(&mut self, call: &Call<'_>) -> Result<Reply, Error> {
        match self.client.call(call).await {
            Err(Error { region: Some(region), .. }) if *region != *self.client.region() => {
                self.client = self.client.in_region(&region);
                self.client.call(call).await
            }
            other => other,
        }
    }
}

impl Beneath {
    fn take(&mut self, answer: &Element) {
        for child in &answer.children {
            match child.name.as_str() {
                "Contents" => {
                    let size = child.text_at("Size").and_then(|size| size.parse().ok()).unwrap_or_default();
                    self.objects.extend(child.text_at("Key").map(|key| Object { key: key.to_owned(), size }));
                }
                "CommonPrefixes" => self.prefixes.extend(child.text_at("Prefix").map(str::to_owned)),
                _ => {}
            }
        }
    }
}
