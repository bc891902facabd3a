//! The package itself, where it is at hand: what was counted in it elsewhere, and that the committed table is ours.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use driftline_sources::schema::Mark;

use super::*;

/// scripts/test gets the package and says where it is.
#[expect(clippy::disallowed_methods, clippy::print_stderr, reason = "the test command tells by variables")]
fn package() -> Option<PathBuf> {
    let package = std::env::var_os("DRIFTLINE_TEST_CFN_LINT").map(PathBuf::from);
    if package.is_none() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "on CI nothing is skipped: DRIFTLINE_TEST_CFN_LINT");
        eprintln!("LEFT OUT: DRIFTLINE_TEST_CFN_LINT does not say where the cfn-lint package is; scripts/test gets it");
    }
    package
}

#[test]
fn the_committed_table_is_what_the_command_makes() {
    let Some(package) = package() else { return };
    let root = root().unwrap();
    let (made, committed) = (make(&root, &package).unwrap(), fs::read(root.join(TABLE)).unwrap());
    let (made_table, committed_table) = (Table::new(&made).unwrap(), Table::new(&committed).unwrap());
    assert_eq!(made_table.origin(), committed_table.origin());
    // Told type by type first: that two files differ says little.
    let (made_text, committed_text) = (made_table.check().unwrap(), committed_table.check().unwrap());
    for (made, committed) in made_text.iter().zip(&committed_text) {
        assert_eq!(made, committed, "run `cargo xtask schemas`");
    }
    assert_eq!(made_text.len(), committed_text.len(), "run `cargo xtask schemas`");
    assert!(made == committed, "the same facts are packed in other bytes; run `cargo xtask schemas`");
}

#[test]
fn the_package_holds_what_others_counted_in_it() {
    let Some(package) = package() else { return };
    let root = root().unwrap();
    let wheel = Wheel::open(&package, &root.join(REQUIREMENTS)).unwrap();
    let overrides = Overrides::parse(&fs::read_to_string(root.join(OVERRIDES)).unwrap()).unwrap();
    assert_eq!((wheel.schemas.len(), wheel.at_home.len()), (1_884, 1_854));
    // Per fact: how many types have it, and how often.
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for name in &wheel.at_home {
        let schema = overrides.mend_pointers(name, &wheel.schemas[name]).unwrap();
        // As the package has it, without our corrections.
        let facts = Survey::of(&schema, &wheel.package).unwrap().into_facts(name).unwrap();
        let mut of_type: BTreeMap<&str, usize> = BTreeMap::new();
        for (mark, _) in facts.marks() {
            let name = if matches!(mark, Mark::Scalar(_)) { "scalar" } else { mark.name() };
            *of_type.entry(name).or_default() += 1;
        }
        let sets = facts.unordered.iter().filter(|path| facts.unique.contains(path)).count();
        for (name, count) in [
            ("primary", facts.primary.len()),
            ("additional", facts.additional.len()),
            ("unordered and unique", sets),
            ("default", facts.defaults.len()),
            ("transform", facts.transforms.len()),
            ("unreadable", usize::from(!facts.readable)),
        ] {
            *of_type.entry(name).or_default() += count;
        }
        for (name, count) in of_type.into_iter().filter(|(_, count)| *count > 0) {
            let (types, entries) = counts.entry(name).or_default();
            *types += 1;
            *entries += count;
        }
    }
    // In us-east-1, as they were counted before this program was written.
    let expected = BTreeMap::from([
        ("primary", (1_854, 2_258)),
        ("additional", (343, 359)),
        // Each of the next three is one less than the lists say: one type names a property twice.
        ("read-only", (1_654, 5_684 - 1)),
        ("write-only", (507, 1_263 - 1)),
        ("create-only", (1_623, 4_558 - 1)),
        ("required", (1_592, 3_634)),
        ("conditional create-only", (45, 166)),
        ("deprecated", (46, 116)),
        ("unordered", (1_042, 3_368)),
        ("unique", (677, 1_647)),
        ("unordered and unique", (579, 1_078)),
        ("attribute list", (5, 5)),
        ("scalar", (968, 11_239)),
        ("transform", (108, 204)),
        ("unreadable", (117, 117)),
        // 1,212 types name a `tagProperty`; six of them do not have it, and others have the one that it is by default.
        ("tags", (1_272, 1_272)),
        // 364 objects or texts, and 334 with `format: json`, which are mostly the same ones.
        ("document", (172, 395)),
        // 3,278 with those of `null`, which say nothing.
        ("default", (162, 2_631)),
    ]);
    assert_eq!(counts, expected);
}
