//! The estate over time: which resources there are, how often each has changed, and the files that tell it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::json::fill;
use crate::random::Random;
use crate::record::{self, Scratch, Shape};

/// What random numbers are for; [`record`] has the numbers below these.
const CHANGES: u64 = 10;
const ORDER: u64 = 11;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Ndjson,
    Json,
}

impl Form {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ndjson => "ndjson",
            Self::Json => "json",
        }
    }
}

/// What an estate is made from. The same plan gives the same bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) shape: Shape,
    pub(crate) resources: u32,
    pub(crate) versions: u32,
    pub(crate) form: Form,
    pub(crate) churn: Churn,
}

/// How many rows change from each version to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Churn {
    pub(crate) mutated: usize,
    pub(crate) removed: usize,
    pub(crate) added: usize,
}

/// The resources there are at one version.
#[derive(Debug)]
struct Estate {
    /// In no order that means anything.
    live: Vec<u32>,
    /// By resource number, the removed ones too: how often it has changed.
    generations: Vec<u16>,
}

impl Estate {
    fn new(resources: u32) -> Self {
        Self { live: (0..resources).collect(), generations: vec![0; resources as usize] }
    }

    /// One version on. A row changes at most once, and a new one not at once.
    fn advance(&mut self, churn: Churn, random: &mut Random) {
        random.shuffle_front(&mut self.live, churn.removed + churn.mutated);
        for &index in self.live.iter().skip(churn.removed).take(churn.mutated) {
            self.generations[index as usize] += 1;
        }
        self.live.drain(..churn.removed.min(self.live.len()));
        for _ in 0..churn.added {
            self.live.push(u32::try_from(self.generations.len()).expect("fewer than 2^32 resources"));
            self.generations.push(0);
        }
    }
}

/// Writes every version into `folder`, and what they should show into `estate.json` beside them.
pub(crate) fn write(plan: &Plan, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut estate = Estate::new(plan.resources);
    let mut order = Vec::new();
    let mut bytes = 0;
    for version in 0..plan.versions {
        if version > 0 {
            estate.advance(plan.churn, &mut Random::of(plan.shape.seed, CHANGES, version.into()));
        }
        order.clone_from(&estate.live);
        let count = order.len();
        Random::of(plan.shape.seed, ORDER, version.into()).shuffle_front(&mut order, count);
        let path = folder.join(format!("v{version}.{}", plan.form.name()));
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        bytes += write_version(plan, version, &order, &estate.generations, &mut file)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()?;
    }
    let Churn { mutated, removed, added } = plan.churn;
    let mut about = String::new();
    fill!(
        &mut about,
        r#"{"resources":$,"versions":$,"accounts":$,"seed":$,"#,
        u64::from(plan.resources),
        u64::from(plan.versions),
        plan.shape.accounts as u64,
        plan.shape.seed
    );
    fill!(
        &mut about,
        r#""mutated":$,"removed":$,"added":$,"recordBytes":$}"#,
        mutated as u64,
        removed as u64,
        added as u64,
        bytes
    );
    about.push('\n');
    fs::write(folder.join("estate.json"), about)
}

/// Says how many bytes the records took, without the header.
fn write_version(
    plan: &Plan,
    version: u32,
    order: &[u32],
    generations: &[u16],
    out: &mut impl Write,
) -> io::Result<u64> {
    let mut line = String::with_capacity(2 << 20);
    fill!(
        &mut line,
        r#"{"schema":"driftline.observation/v1","source":"bench/estate","takenAt":"$","coverage":"#,
        &taken_at(version)
    );
    record::render_coverage(plan.shape, &mut line);
    line.push_str(match plan.form {
        Form::Ndjson => "}\n",
        Form::Json => ",\"resources\":[\n",
    });
    out.write_all(line.as_bytes())?;

    let mut scratch = Scratch::default();
    let mut bytes = 0;
    for (at, &index) in order.iter().enumerate() {
        line.clear();
        record::render(plan.shape, index, generations[index as usize], &mut scratch, &mut line);
        let last = at + 1 == order.len();
        line.push_str(if plan.form == Form::Ndjson || last { "\n" } else { ",\n" });
        out.write_all(line.as_bytes())?;
        bytes += line.len() as u64;
    }
    if plan.form == Form::Json {
        out.write_all(b"]}\n")?;
    }
    Ok(bytes)
}

/// An hour after the version before, from midnight of 1 June 2026 on. June has hours for 720 versions.
fn taken_at(version: u32) -> String {
    format!("2026-06-{:02}T{:02}:00:00Z", 1 + version / 24, version % 24)
}

/// What [`taken_at`] can tell.
pub(crate) const MOST_VERSIONS: u32 = 720;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const PLAN: Plan = Plan {
        shape: Shape { seed: 7, accounts: 3 },
        resources: 5000,
        versions: 3,
        form: Form::Ndjson,
        churn: Churn { mutated: 40, removed: 5, added: 6 },
    };

    fn rows(estate: &Estate) -> BTreeMap<u32, u16> {
        estate.live.iter().map(|&index| (index, estate.generations[index as usize])).collect()
    }

    #[test]
    fn exactly_the_planned_rows_change() {
        let mut estate = Estate::new(PLAN.resources);
        for version in 1..30 {
            let before = rows(&estate);
            estate.advance(PLAN.churn, &mut Random::of(7, CHANGES, version));
            let after = rows(&estate);
            let churn = Churn {
                mutated: after
                    .iter()
                    .filter(|(index, now)| before.get(*index).is_some_and(|then| then != *now))
                    .count(),
                removed: before.keys().filter(|index| !after.contains_key(index)).count(),
                added: after.keys().filter(|index| !before.contains_key(index)).count(),
            };
            assert_eq!(churn, PLAN.churn);
        }
    }

    #[test]
    fn the_same_plan_gives_the_same_bytes_and_another_seed_does_not() {
        let bytes = |seed| {
            let plan = Plan { shape: Shape { seed, ..PLAN.shape }, ..PLAN };
            let estate = Estate::new(plan.resources);
            let mut out = Vec::new();
            write_version(&plan, 0, &estate.live, &estate.generations, &mut out).expect("a Vec takes all");
            out
        };
        assert_eq!(bytes(7), bytes(7));
        assert_ne!(bytes(7), bytes(8));
    }

    #[test]
    fn versions_are_an_hour_apart() {
        assert_eq!(taken_at(0), "2026-06-01T00:00:00Z");
        assert_eq!(taken_at(25), "2026-06-02T01:00:00Z");
        assert_eq!(taken_at(MOST_VERSIONS - 1), "2026-06-30T23:00:00Z");
    }
}
