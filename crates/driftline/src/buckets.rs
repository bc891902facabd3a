//! Documents in buckets: an object, a prefix or a pattern of S3.

use std::collections::BTreeMap;

use driftline_sources::cloudtrail::{Known, Whose};

use crate::error::{CommandError, CommandResult};

/// `s3://bucket/key`, taken apart.
#[derive(Debug, PartialEq)]
struct Address<'a> {
    bucket: &'a str,
    key: &'a str,
}

impl<'a> Address<'a> {
    fn parse(address: &'a str) -> CommandResult<Self> {
        let rest = address.strip_prefix("s3://").unwrap_or(address);
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        match bucket.is_empty() {
            true => {
                Err(CommandError::new(format!("`{address}` names no bucket")).hint("write it like s3://bucket/key"))
            }
            false => Ok(Self { bucket, key }),
        }
    }

    fn is_pattern(&self) -> bool {
        self.key.contains(['*', '?', '['])
    }

    /// What every key that the pattern matches begins with.
    fn before_pattern(&self) -> &'a str {
        &self.key[..self.key.find(['*', '?', '[']).unwrap_or(self.key.len())]
    }
}

/// What came of reading a trail's files.
#[derive(Debug, Default)]
pub(crate) struct ReadTrail {
    pub files: usize,
    pub known: BTreeMap<Whose, Known>,
}

#[cfg(not(feature = "aws"))]
mod reading {
    use driftline_sources::cloudtrail::Trail;
    use jiff::Timestamp;

    use super::{Address, CommandError, CommandResult, ReadTrail};
    use crate::documents::Text;
    use crate::live_args::LiveArgs;
    use crate::trail::Times;

    fn missing(address: &str) -> CommandError {
        let refused = CommandError::new(format!("`{address}` is in a bucket, and this build cannot ask AWS"));
        refused
            .hint("build with the feature `aws` (cargo build --release --features aws), or copy it first (`aws s3 cp`)")
    }

    pub(crate) fn read(address: &str) -> CommandResult<Vec<Text>> {
        let parsed = Address::parse(address)?;
        debug_assert!(parsed.is_pattern() || parsed.before_pattern() == parsed.key);
        Err(missing(address))
    }

    pub(crate) fn read_trail(
        address: &str,
        _: &LiveArgs,
        _: &Times,
        _: Timestamp,
        _: &mut Trail,
    ) -> CommandResult<ReadTrail> {
        Err(missing(address))
    }
}

#[cfg(feature = "aws")]
mod reading {
    use aws_wire::{Client, Error, Kind};
    use driftline_aws::bucket::{Bucket, GET, LIST, Object};
    use driftline_aws::cloudtrail::{self, Events};
    use driftline_sources::cloudtrail::{Trail, Whose};
    use jiff::Timestamp;

    use super::{Address, CommandError, CommandResult, ReadTrail};
    use crate::documents::{LARGEST, Text, unpacked};
    use crate::live_args::LiveArgs;
    use crate::trail::{FIRST, Times, take};

    /// Documents of one pass that a prefix may stand for, and how much they may be together.
    const MOST: usize = 10_000;

    fn refused(error: &Error) -> CommandError {
        let told = CommandError::new(error.to_string());
        let action = if &*error.operation == LIST.name { LIST.action() } else { GET.action() };
        match error.kind {
            Kind::AccessDenied => told.hint(format!("it takes the permission {action} on the bucket")),
            Kind::Credentials => told.hint("AWS_PROFILE names a profile; `aws sts get-caller-identity` asks the same"),
            _ => told,
        }
    }

    fn wait<T>(work: impl Future<Output = T>) -> CommandResult<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| CommandError::because("cannot start the network", &error))?;
        Ok(runtime.block_on(work))
    }

    /// The documents that an address stands for: the object of that name, or everything beneath it.
    pub(crate) fn read(address: &str) -> CommandResult<Vec<Text>> {
        let about = |error: CommandError| error.about(format!("cannot read `{address}`"));
        let parsed = Address::parse(address).map_err(about)?;
        let options = crate::live::options(&LiveArgs::default());
        let read = wait(async {
            let client = Client::load(&options).await?;
            read_all(&mut Bucket::new(&client, parsed.bucket)?, &parsed).await
        })?;
        let read = read.map_err(|error| about(refused(&error)))?;
        if read.is_empty() {
            return Err(about(CommandError::new("there is no such object, and nothing beneath it")));
        }
        let mut left = LARGEST;
        let text = |(key, bytes): (String, Vec<u8>)| {
            let name = format!("s3://{}/{key}", parsed.bucket);
            let bytes = unpacked(bytes, left).map_err(|why| CommandError::new(format!("`{name}`: {why}")))?;
            // All of them are held at once, so the bound is of all.
            left = left.saturating_sub(bytes.len() as u64);
            Ok(Text { name, bytes })
        };
        read.into_iter().map(text).collect()
    }

    async fn read_all(bucket: &mut Bucket, address: &Address<'_>) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let is_object = !address.is_pattern() && !address.key.is_empty() && !address.key.ends_with('/');
        if is_object {
            match bucket.get(address.key, LARGEST).await {
                Ok(bytes) => return Ok(vec![(address.key.to_owned(), bytes)]),
                // Without the permission to list, S3 refuses to say that an object is not there.
                Err(error) if error.kind == Kind::NotFound && error.code.as_deref() != Some("NoSuchBucket") => {}
                Err(error) => return Err(error),
            }
        }
        let prefix = match is_object {
            true => format!("{}/", address.key),
            false => address.before_pattern().to_owned(),
        };
        let mut objects = bucket.list(&prefix, false, MOST).await?.objects;
        if address.is_pattern() {
            let pattern = glob::Pattern::new(address.key).map_err(|error| {
                Error::of(Kind::Invalid, "", "", format!("`{}` is not a usable pattern: {error}", address.key))
            })?;
            // As in a folder, `*` stays on its level.
            let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::default() };
            objects.retain(|object| pattern.matches_with(&object.key, options));
        }
        // A key that ends like a folder is how consoles draw one.
        objects.retain(|object| !object.key.ends_with('/'));
        let sum: u64 = objects.iter().map(|object| object.size).sum();
        if sum > LARGEST {
            let message = format!("what is beneath it has {sum} bytes, and at most {LARGEST} are read at once");
            return Err(Error::of(Kind::Invalid, "", "", message));
        }
        let mut read = Vec::new();
        let mut failed = None;
        cloudtrail::read(bucket, &objects, LARGEST, |object, bytes| match bytes {
            Ok(bytes) => read.push((object.key.clone(), bytes)),
            Err(error) => failed = failed.take().or(Some(error)),
        })
        .await;
        failed.map_or(Ok(read), Err)
    }

    /// Reads the log files of a trail beneath a prefix, of the time that is asked for.
    pub(crate) fn read_trail(
        address: &str,
        live: &LiveArgs,
        times: &Times,
        now: Timestamp,
        trail: &mut Trail,
    ) -> CommandResult<ReadTrail> {
        let about = |error: CommandError| error.about(format!("cannot read `{address}`"));
        let parsed = Address::parse(address).map_err(about)?;
        let events = Events {
            since: times.since,
            until: times.until,
            known_until: times.known_until.clone(),
            first: FIRST,
            ..Events::default()
        };
        let span_of = |whose: &Whose| events.span(&format!("{}/{}", whose.account, whose.region), now);
        let options = crate::live::options(live);
        let outcome = wait(async {
            let client = Client::load(&options).await?;
            let mut bucket = Bucket::new(&client, parsed.bucket)?;
            let files = cloudtrail::files(&mut bucket, parsed.key, span_of).await?;
            let mut cut: Option<String> = None;
            cloudtrail::read(&bucket, &files.objects, crate::trail::LARGEST, |object: &Object, bytes| {
                let name = format!("s3://{}/{}", parsed.bucket, object.key);
                match bytes {
                    Ok(bytes) => take(trail, &name, bytes),
                    Err(error) => {
                        let reason = cloudtrail::unread(&error);
                        trail.unread(&name, reason.clone());
                        cut.get_or_insert(reason);
                    }
                }
            })
            .await;
            for whose in files.places.keys() {
                trail.looked_at(whose.clone());
            }
            let known = cloudtrail::known(&files.places, span_of, now, cut.as_deref());
            Ok::<_, Error>((ReadTrail { files: files.objects.len(), known }, files.places.is_empty()))
        })?;
        let (read, no_places) = outcome.map_err(|error| about(refused(&error)))?;
        if read.files == 0 && no_places {
            return Err(about(CommandError::new("there are no files of a trail beneath it")).hint(
                "a trail writes beneath AWSLogs/<account>/CloudTrail/<region>/; name the prefix before AWSLogs",
            ));
        }
        Ok(read)
    }
}

pub(crate) use reading::{read, read_trail};

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[cfg(not(feature = "aws"))]
    #[test]
    fn a_build_that_cannot_ask_aws_says_so() {
        let error = read("s3://bucket/key").unwrap_err().to_string();
        assert!(error.contains("`s3://bucket/key` is in a bucket") && error.contains("feature `aws`"), "{error}");
    }

    #[test]
    fn an_address_is_a_bucket_and_a_key_or_a_pattern() {
        for (address, bucket, key, before) in [
            ("s3://b/k", "b", "k", "k"),
            ("s3://b", "b", "", ""),
            ("s3://b/", "b", "", ""),
            ("s3://b/a/b c.json", "b", "a/b c.json", "a/b c.json"),
            ("s3://b/a/*.json", "b", "a/*.json", "a/"),
        ] {
            let parsed = Address::parse(address).unwrap();
            assert_eq!((&parsed, parsed.before_pattern()), (&Address { bucket, key }, before));
            assert_eq!(parsed.is_pattern(), address.contains('*'));
        }
        assert!(Address::parse("s3:///k").is_err() && Address::parse("s3://").is_err());
    }
}
