//! The table of schema facts, from the pinned package and our own corrections.

mod overrides;
mod survey;
#[cfg(test)]
mod tests;
mod wheel;

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use driftline_sources::schema::{Facts, Table, pack};

use self::overrides::Overrides;
use self::survey::Survey;
use self::wheel::Wheel;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const TABLE: &str = "crates/driftline-sources/data/schemas.zst";
const OVERRIDES: &str = "crates/driftline-sources/data/schema_overrides.toml";
const REQUIREMENTS: &str = "crates/xtask/requirements.txt";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Write,
    Check,
    Text,
}

pub(crate) fn run(wheel: Option<PathBuf>, what: What) -> Result<()> {
    let root = root()?;
    let wheel = match wheel {
        Some(wheel) => wheel,
        None => wheel::download(&root.join(REQUIREMENTS))?,
    };
    let bytes = make(&root, &wheel)?;
    let table = root.join(TABLE);
    match what {
        What::Write => {
            fs::write(&table, &bytes)?;
            let types = Table::new(&bytes)?.names().count();
            writeln!(io::stdout(), "{TABLE}: {types} types in {} bytes", bytes.len())?;
        }
        What::Check if fs::read(&table)? != bytes => {
            return Err(format!("{TABLE} is not what `cargo xtask schemas` makes; run it and commit the file").into());
        }
        What::Check => {}
        What::Text => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            for (name, record) in Table::new(&bytes)?.check()? {
                write!(out, "{name}\n{record}\n")?;
            }
            out.flush()?;
        }
    }
    Ok(())
}

/// The bytes of the table.
fn make(root: &Path, wheel: &Path) -> Result<Vec<u8>> {
    let wheel = Wheel::open(wheel, &root.join(REQUIREMENTS))?;
    let overrides = Overrides::parse(&fs::read_to_string(root.join(OVERRIDES))?)?;
    let origin = format!("{}, MIT-0, schemas of {}", wheel.package, wheel.date);
    Ok(pack(&origin, &facts(&wheel, &overrides)?)?)
}

fn facts(wheel: &Wheel, overrides: &Overrides) -> Result<Vec<Facts>> {
    let mut all = Vec::new();
    for (name, schema) in &wheel.schemas {
        let about = |error: Box<dyn Error>| format!("{name}: {error}");
        let schema = overrides.mend_pointers(name, schema).map_err(about)?;
        let mut survey = Survey::of(&schema, &wheel.package).map_err(about)?;
        overrides.apply(name, &mut survey).map_err(about)?;
        all.push(survey.into_facts(name).map_err(about)?);
    }
    overrides.were_all_used()?;
    Ok(all)
}

#[expect(clippy::disallowed_methods, reason = "cargo says where the tree is")]
fn root() -> Result<PathBuf> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("run this through cargo: `cargo xtask schemas`")?;
    Ok(PathBuf::from(here).join("../.."))
}
