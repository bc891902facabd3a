//! Makes what is committed but not written by hand. Run as `cargo xtask`.

mod schemas;

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask schemas [--wheel FILE] [--check | --text]

Makes crates/driftline-sources/data/schemas.zst from the package that crates/xtask/requirements.txt pins and from
crates/driftline-sources/data/schema_overrides.toml. Without --wheel, pip gets the package into the cache folder
(DRIFTLINE_CACHE, or ~/.cache/driftline).
  --check    change nothing; fail if the committed file is another
  --text     change nothing; print the table as text, to compare two of them with diff";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell when stderr is gone too.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let mut arguments = arguments.iter().map(String::as_str);
    match arguments.next() {
        Some("schemas") => {}
        Some("-h" | "--help") => return Ok(writeln!(io::stdout(), "{USAGE}")?),
        _ => return Err(USAGE.into()),
    }
    let (mut wheel, mut what) = (None, schemas::What::Write);
    while let Some(argument) = arguments.next() {
        match argument {
            "--wheel" => wheel = Some(PathBuf::from(arguments.next().ok_or(USAGE)?)),
            "--check" => what = schemas::What::Check,
            "--text" => what = schemas::What::Text,
            _ => return Err(USAGE.into()),
        }
    }
    schemas::run(wheel, what)
}
