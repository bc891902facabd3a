//! Where documents come from: files, patterns of files, standard input, the web, buckets.

use std::io::Read;
use std::path::PathBuf;

use crate::error::{CommandError, CommandResult};

/// A document that was read.
#[derive(Debug)]
pub(crate) struct Text {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Reads every document that is named, each once, in the order of their names.
pub(crate) fn read_all(named: &[String]) -> CommandResult<Vec<Text>> {
    let mut names: Vec<String> = Vec::new();
    let mut texts: Vec<Text> = Vec::new();
    for name in named {
        match name.starts_with("s3://") {
            true => texts.extend(crate::buckets::read(name)?),
            false => names.extend(expand(name)?),
        }
    }
    names.sort();
    names.dedup();
    for name in names {
        let text = read(name)?;
        let bytes = unpacked(text.bytes, LARGEST)
            .map_err(|why| CommandError::new(why).about(format!("cannot read `{}`", text.name)))?;
        texts.push(Text { bytes, ..text });
    }
    texts.sort_by(|a, b| a.name.cmp(&b.name));
    texts.dedup_by(|a, b| a.name == b.name);
    Ok(texts)
}

/// More than any state or inventory that was ever seen.
pub(crate) const LARGEST: u64 = 1 << 30;

/// What is packed with gzip, unpacked, and anything else as it is. A few bytes can unpack to any number of them, so
/// there is an end.
pub(crate) fn unpacked(bytes: Vec<u8>, most: u64) -> Result<Vec<u8>, String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut out = Vec::new();
    let mut unpacking = flate2::read::MultiGzDecoder::new(bytes.as_slice()).take(most + 1);
    match unpacking.read_to_end(&mut out) {
        Ok(_) if out.len() as u64 > most => Err(format!("it unpacks to more than {most} bytes")),
        Ok(_) => Ok(out),
        Err(error) => Err(format!("it cannot be unpacked: {error}")),
    }
}

/// A pattern stands for the files it matches; that there is none is an error, because it is never what was meant.
pub(crate) fn expand(name: &str) -> CommandResult<Vec<String>> {
    if name == "-" || name.contains("://") || !name.contains(['*', '?', '[']) || PathBuf::from(name).exists() {
        return Ok(vec![name.to_owned()]);
    }
    let bad = |error: &dyn std::fmt::Display| CommandError::new(format!("`{name}` is not a usable pattern: {error}"));
    let mut found = Vec::new();
    for path in glob::glob(name).map_err(|error| bad(&error))? {
        let path = path.map_err(|error| bad(&error))?;
        if path.is_file() {
            let text = path
                .to_str()
                .ok_or_else(|| CommandError::new(format!("the name of `{}` is not UTF-8", path.display())))?;
            found.push(text.to_owned());
        }
    }
    match found.is_empty() {
        true => Err(CommandError::new(format!("no file matches `{name}`"))),
        false => Ok(found),
    }
}

pub(crate) fn read(name: String) -> CommandResult<Text> {
    if let Some((scheme, _)) = name.split_once("://") {
        return match scheme {
            "https" | "http" => web::read(&name),
            "file" => read(name["file://".len()..].to_owned()),
            "gs" | "az" => {
                Err(CommandError::new(format!("`{}` is in a bucket of a kind that cannot be read", shown(&name)))
                    .hint("copy it first and name the file, or give an https address; buckets of S3 can be read"))
            }
            _ => Err(CommandError::new(format!("`{scheme}://` is not something documents are read from"))
                .hint("a file, a pattern, an https or s3 address, or `-`")),
        };
    }
    let bytes = match name.as_str() {
        "-" => {
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        }
        path => std::fs::read(path),
    };
    match bytes {
        Ok(bytes) => Ok(Text { name: if name == "-" { "standard input".into() } else { name }, bytes }),
        Err(error) => Err(CommandError::because(format!("cannot read `{name}`"), &error)),
    }
}

/// An address as it may be shown: without who asks, and without what a signed address proves it by.
fn shown(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let (host, path) = rest.find(['/', '?', '#']).map_or((rest, ""), |at| rest.split_at(at));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

#[cfg(not(feature = "https"))]
mod web {
    use super::{CommandError, CommandResult, Text, shown};

    pub(super) fn read(address: &str) -> CommandResult<Text> {
        Err(CommandError::new(format!("`{}` cannot be read: this program was built without `https`", shown(address)))
            .hint("build it with `--features https`, or fetch the document and give the file"))
    }
}

#[cfg(feature = "https")]
mod web {
    use std::time::Duration;

    use super::{CommandError, CommandResult, LARGEST, Text, shown};
    use crate::surroundings::text_variable;

    const PATIENCE: Duration = Duration::from_mins(2);
    /// The whole `Authorization` header, for places that ask for one.
    const AUTHORIZATION: &str = "DRIFTLINE_HTTP_AUTHORIZATION";

    pub(super) fn read(address: &str) -> CommandResult<Text> {
        let name = shown(address);
        let about = |error: CommandError| error.about(format!("cannot read `{name}`"));
        if address.starts_with("http://") && !is_this_machine(&name) {
            return Err(about(CommandError::new("over plain http anyone on the way could read and change it"))
                .hint("use https, or fetch the document and give the file"));
        }
        let tls = ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::PlatformVerifier).build();
        let agent = ureq::Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(PATIENCE))
            .max_redirects(5)
            .user_agent(concat!("driftline/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        let mut request = agent.get(address).header("Accept", "application/json");
        if let Some(authorization) = text_variable(AUTHORIZATION) {
            request = request.header("Authorization", authorization);
        }
        let answered =
            request.call().and_then(|mut response| response.body_mut().with_config().limit(LARGEST).read_to_vec());
        match answered {
            Ok(bytes) => Ok(Text { name: name.clone(), bytes }),
            Err(ureq::Error::StatusCode(code @ (401 | 403))) => {
                Err(about(CommandError::new(format!("it was refused (status {code})")))
                    .hint(format!("{AUTHORIZATION} holds the `Authorization` header to send")))
            }
            Err(ureq::Error::StatusCode(code)) => {
                Err(about(CommandError::new(format!("the server answered with status {code}"))))
            }
            Err(error) => Err(about(CommandError::new(error.to_string()))),
        }
    }

    fn is_this_machine(address: &str) -> bool {
        let host = address.trim_start_matches("http://").split('/').next().unwrap_or_default();
        let name = host.strip_prefix('[').and_then(|rest| rest.split(']').next());
        let name = name.unwrap_or_else(|| host.split(':').next().unwrap_or_default());
        name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked_within_bounds() {
        let pack = |bytes: &[u8]| {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            std::io::Write::write_all(&mut packer, bytes).unwrap();
            packer.finish().unwrap()
        };
        assert_eq!(unpacked(b"plain".to_vec(), 3), Ok(b"plain".to_vec()));
        let two = [pack(b"one"), pack(b" two")].concat();
        assert_eq!(unpacked(two.clone(), 7), Ok(b"one two".to_vec()), "files may be packed one after the other");
        assert!(unpacked(two, 6).unwrap_err().contains("more than 6 bytes"));
        let bomb = pack(&vec![0; 64 << 20]);
        assert!(bomb.len() < 100_000);
        assert!(unpacked(bomb.clone(), 1 << 20).unwrap_err().contains("more than"));
        assert!(unpacked(bomb[..100].to_vec(), 1 << 30).unwrap_err().contains("cannot be unpacked"));
        assert!(unpacked(vec![0x1f, 0x8b], 10).is_err());
    }

    #[test]
    fn what_proves_who_asks_is_never_shown() {
        for (address, expected) in [
            ("https://user:secret@host/state?token=secret#x", "https://host/state"),
            ("https://host?sig=secret", "https://host"),
            ("https://host:8443/a/b", "https://host:8443/a/b"),
            ("s3://bucket/key", "s3://bucket/key"),
        ] {
            assert_eq!(shown(address), expected);
        }
    }
}
