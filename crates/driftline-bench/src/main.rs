//! Writes the synthetic estate that `bench/run.py` measures with, and measures what parsing alone costs.

mod estate;
mod json;
mod kind;
mod random;
mod record;

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::estate::{Churn, Form, MOST_VERSIONS, Plan};
use crate::record::Shape;

const USAGE: &str = "\
usage: driftline-generate --resources N --versions V --out DIR [options]
       driftline-generate parse-floor [--skip] FILE

The first writes DIR/v0.ndjson, DIR/v1.ndjson, ...: plain observation files of one estate as it changes.
  --change F           share of the rows that change from a version to the next (0.004)
  --shares M,R,A       of those, how many in a hundred are mutated, removed, added (80,10,10)
  --accounts N         1 to 200; one for every thousand resources unless given
  --form ndjson|json   (ndjson)
  --seed S             the same seed gives the same bytes (1)
The second parses every line of FILE and prints nothing; with --skip it only finds where each value ends.";

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
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Err(USAGE.into()),
        ["-h" | "--help", ..] => Ok(writeln!(io::stdout(), "{USAGE}")?),
        ["parse-floor", "--skip", file] => parse_lines(Path::new(file), true),
        ["parse-floor", file] => parse_lines(Path::new(file), false),
        _ => {
            let (plan, folder) = plan(arguments)?;
            Ok(estate::write(&plan, &folder)?)
        }
    }
}

fn plan(arguments: &[String]) -> Result<(Plan, PathBuf), Box<dyn Error>> {
    let (mut resources, mut versions, mut folder) = (None::<u32>, None::<u32>, None);
    let (mut change, mut shares, mut accounts) = (0.004_f64, [80.0, 10.0, 10.0], None::<usize>);
    let (mut form, mut seed) = (Form::Ndjson, 1);
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("`{flag}` needs a value\n{USAGE}"))?;
        let wrong = |error: &dyn Error| format!("`{flag} {value}`: {error}");
        match flag.as_str() {
            "--resources" => resources = Some(value.parse().map_err(|error| wrong(&error))?),
            "--versions" => versions = Some(value.parse().map_err(|error| wrong(&error))?),
            "--accounts" => accounts = Some(value.parse().map_err(|error| wrong(&error))?),
            "--change" => change = value.parse().map_err(|error| wrong(&error))?,
            "--seed" => seed = value.parse().map_err(|error| wrong(&error))?,
            "--out" => folder = Some(PathBuf::from(value)),
            "--form" => {
                form = match value.as_str() {
                    "ndjson" => Form::Ndjson,
                    "json" => Form::Json,
                    _ => return Err(format!("`--form {value}`: ndjson or json").into()),
                }
            }
            "--shares" => {
                let given =
                    value.split(',').map(str::parse).collect::<Result<Vec<f64>, _>>().map_err(|error| wrong(&error))?;
                shares = given.try_into().map_err(|_| format!("`--shares {value}`: three numbers"))?;
            }
            _ => return Err(format!("`{flag}` is not an option\n{USAGE}").into()),
        }
    }
    let resources = resources.ok_or("`--resources` is missing")?;
    let versions = versions.ok_or("`--versions` is missing")?;
    let folder = folder.ok_or("`--out` is missing")?;
    let accounts = accounts.unwrap_or((resources as usize / 1000).clamp(1, 200));
    if !(1..=200).contains(&accounts) || versions > MOST_VERSIONS {
        return Err(format!("at most 200 accounts and {MOST_VERSIONS} versions, and at least one account").into());
    }
    if !(0.0..=0.5).contains(&change) || shares.iter().any(|share| !(0.0..=100.0).contains(share)) {
        return Err("`--change` is between 0 and 0.5, and a share between 0 and 100".into());
    }
    if (shares.iter().sum::<f64>() - 100.0).abs() > 1e-6 {
        return Err("the three `--shares` must add up to 100".into());
    }
    let changed = rounded(f64::from(resources) * change);
    let part = |share: f64| rounded(f64::from(resources) * change * share / 100.0);
    let (removed, added) = (part(shares[1]), part(shares[2]));
    let churn = Churn { mutated: changed.saturating_sub(removed + added), removed, added };
    Ok((Plan { shape: Shape { seed, accounts }, resources, versions, form, churn }, folder))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rows: at least 0, at most 2^32")]
fn rounded(rows: f64) -> usize {
    rows.round() as usize
}

/// What parsing costs when nothing else is done. The floor for anything that reads observation files.
fn parse_lines(path: &Path, skip: bool) -> Result<(), Box<dyn Error>> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line)? > 0 {
        if skip {
            black_box(sonic_rs::from_slice::<sonic_rs::LazyValue<'_>>(&line)?);
        } else {
            black_box(sonic_rs::from_slice::<sonic_rs::Value>(&line)?);
        }
        line.clear();
    }
    Ok(())
}
