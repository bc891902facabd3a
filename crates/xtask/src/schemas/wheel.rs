//! The package: got through pip, checked against the pinned digest, and read without unpacking it on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use super::Result;

/// Types are told once per region, by the digest of their schema. This region has nearly all of them.
const HOME: &str = "us-east-1";

/// Not a region: macros of the Serverless Application Model, which never are things that can be observed.
const MACROS: &str = "sam";

pub(super) struct Wheel {
    /// `cfn-lint 1.58.0`
    pub(super) package: String,
    /// The day on which the schemas were published.
    pub(super) date: String,
    pub(super) schemas: BTreeMap<String, Json>,
    /// The types of [`HOME`], which is what others count.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the tests that count"))]
    pub(super) at_home: Vec<String>,
}

/// What the requirements file pins: package, version, digest.
fn pinned(requirements: &Path) -> Result<(String, String, String)> {
    let text = fs::read_to_string(requirements)?;
    let line = text.lines().find(|line| !line.starts_with('#') && !line.is_empty()).unwrap_or_default();
    let pin = line.split_once("==").and_then(|(package, rest)| {
        let (version, digest) = rest.split_once(" --hash=sha256:")?;
        Some((package.to_owned(), version.to_owned(), digest.to_owned()))
    });
    pin.ok_or_else(|| format!("{} pins nothing", requirements.display()).into())
}

/// Gets the package into the cache folder, unless it is there.
pub(super) fn download(requirements: &Path) -> Result<PathBuf> {
    let (package, version, _) = pinned(requirements)?;
    let folder = cache()?.join("schemas");
    let wheel = folder.join(format!("{}-{version}-py3-none-any.whl", package.replace('-', "_")));
    if !wheel.exists() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]);
        let status = pip.arg("--dest").arg(&folder).arg("-r").arg(requirements).status()?;
        if !status.success() || !wheel.exists() {
            return Err(format!("pip could not get {package} {version}; give the file with --wheel").into());
        }
    }
    Ok(wheel)
}

#[expect(clippy::disallowed_methods, reason = "the same variables as scripts/test")]
fn cache() -> Result<PathBuf> {
    if let Some(cache) = std::env::var_os("DRIFTLINE_CACHE") {
        return Ok(cache.into());
    }
    let home = std::env::var_os("HOME").ok_or("neither DRIFTLINE_CACHE nor HOME is set")?;
    Ok(PathBuf::from(home).join(".cache/driftline"))
}

impl Wheel {
    pub(super) fn open(path: &Path, requirements: &Path) -> Result<Self> {
        let cannot = |error: std::io::Error| format!("cannot read `{}`: {error}", path.display());
        let (package, version, digest) = pinned(requirements)?;
        let found: String =
            Sha256::digest(fs::read(path).map_err(cannot)?).iter().map(|b| format!("{b:02x}")).collect();
        if found != digest {
            return Err(
                format!("`{}` is not the pinned {package} {version}: its digest is {found}", path.display()).into()
            );
        }
        let mut archive = zip::ZipArchive::new(File::open(path).map_err(cannot)?)?;
        let names = regions_of(&archive)?;
        let mut read = |name: &str| -> Result<Json> {
            let mut text = String::new();
            archive.by_name(&format!("cfnlint/data/schemas/{name}"))?.read_to_string(&mut text)?;
            Ok(serde_json::from_str(&text)?)
        };
        let date = read("version.json")?["schema_date"].as_str().and_then(|date| date.get(..10)).map(ToOwned::to_owned);
        let mut regions = BTreeMap::new();
        for region in names {
            let types: BTreeMap<String, String> = serde_json::from_value(read(&format!("providers/{region}.json"))?)?;
            regions.insert(region, types);
        }
        let home = regions.remove(HOME).ok_or_else(|| format!("the package has no {HOME}"))?;
        let at_home = home.keys().cloned().collect();
        let mut types = home;
        // Another region may be behind; its word counts only for what is nowhere else.
        for (kind, schema) in regions.into_values().flatten() {
            types.entry(kind).or_insert(schema);
        }
        let mut schemas = BTreeMap::new();
        for (kind, digest) in types {
            schemas.insert(kind, read(&format!("resources/{digest}.json"))?);
        }
        let date = date.ok_or("version.json has no date")?;
        Ok(Self { package: format!("{package} {version}"), date, schemas, at_home })
    }
}

fn regions_of(archive: &zip::ZipArchive<File>) -> Result<BTreeSet<String>> {
    let mut regions = BTreeSet::new();
    for file in archive.file_names() {
        let file = file?;
        let name = file.strip_prefix("cfnlint/data/schemas/providers/").and_then(|name| name.strip_suffix(".json"));
        regions.extend(name.filter(|name| *name != MACROS).map(ToOwned::to_owned));
    }
    Ok(regions)
}
