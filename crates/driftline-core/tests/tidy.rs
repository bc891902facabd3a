//! The invariants of ARCHITECTURE.md that only the tree itself can break.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

/// Asked for at run time: a target folder that several clones share may hold a test built in another one.
#[expect(clippy::disallowed_methods, reason = "cargo says where the tree is")]
fn root() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..")
}

fn sources_of(krate: &str) -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join("crates").join(krate).join("src"), &mut found);
    assert!(!found.is_empty());
    found
}

/// The lines that ship: no comments, no tests.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let shipped = text.split("#[cfg(test)]").next().unwrap_or(text);
    shipped.lines().filter(|line| !line.trim_start().starts_with("//"))
}

#[test]
fn the_core_does_no_io_reads_no_clock_has_no_async_and_names_no_vendor() {
    let forbidden = [
        "std::fs",
        "std::net",
        "std::env",
        "std::process",
        "std::io",
        "std::time",
        "::now()",
        "async fn",
        ".await",
        "println!",
        "aws",
        "arn:",
        "kubernetes",
        "k8s",
        "terraform",
        "azure",
        "lambda",
    ];
    for (path, text) in sources_of("driftline-core") {
        if path.ends_with("compare_tests.rs") {
            continue;
        }
        for line in code(&text) {
            let line = line.to_lowercase();
            for word in forbidden {
                assert!(!line.contains(word), "{}: `{word}` in: {line}", path.display());
            }
        }
    }
}

#[test]
fn crates_depend_only_downwards() {
    let allowed: &[(&str, &[&str])] = &[
        ("driftline-core", &[]),
        ("driftline-store", &["driftline-core"]),
        ("driftline-sources", &["driftline-core", "jsonata"]),
        ("driftline-bench", &[]),
        ("driftline-bucket", &["aws-wire", "driftline-store"]),
        ("fake-aws", &[]),
        ("aws-wire", &[]),
        ("driftline-aws", &["aws-wire", "driftline-core", "driftline-sources"]),
        ("jsonata", &[]),
        ("xtask", &["driftline-core", "driftline-sources"]),
        ("driftline-kube", &["aws-wire", "driftline-core", "driftline-sources"]),
        ("driftline-web", &["driftline-core"]),
        ("driftline-notify", &["aws-wire"]),
        ("driftline-mcp", &[]),
        ("driftline-sql", &["driftline-core", "driftline-store"]),
        (
            "driftline",
            &[
                "driftline-core",
                "driftline-store",
                "driftline-sources",
                "jsonata",
                "aws-wire",
                "driftline-aws",
                "driftline-kube",
                "driftline-bucket",
                "driftline-web",
                "driftline-notify",
                "driftline-mcp",
                "driftline-sql",
            ],
        ),
    ];
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let manifest = fs::read_to_string(root().join("crates").join(&name).join("Cargo.toml")).unwrap();
        let allowed_of = |name: &str| allowed.iter().find(|(krate, _)| *krate == name).map(|(_, on)| *on);
        let allowed = allowed_of(&name).expect("a new crate gets its place here first");
        let depends = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let depends = depends.split("\n[").next().unwrap_or_default();
        let ours = |name: &str| allowed_of(name).is_some();
        for on in depends.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).filter(|name| ours(name)) {
            assert!(allowed.contains(&on), "{name} depends on {on}");
        }
    }
}

#[test]
fn every_path_that_a_document_names_is_there() {
    let mut missing = Vec::new();
    let mut documents = vec![root().join("README.md"), root().join("ARCHITECTURE.md"), root().join("CONTRIBUTING.md")];
    for folder in ["docs", "docs/decisions"] {
        documents.extend(fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    for document in documents.iter().filter(|path| path.extension().is_some_and(|ending| ending == "md")) {
        let text = fs::read_to_string(document).unwrap();
        for word in text.split(|char: char| char.is_whitespace() || "`()[]<>|,;'\"".contains(char)) {
            let word = word.trim_end_matches(['.', ':', '#', '/']).split('#').next().unwrap_or_default();
            let word = word.split("::").next().unwrap_or_default();
            let is_path =
                ["crates/", "docs/", "scripts/", "bench/", ".ci/"].iter().any(|start| word.starts_with(start));
            if is_path && !word.contains(['*', '…', '{']) && !root().join(word).exists() {
                missing.push(format!("{}: {word}", document.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_test_that_a_document_names_is_there() {
    let folders = [
        ("core/", "crates/driftline-core/src/"),
        ("sources/", "crates/driftline-sources/src/"),
        ("program/", "crates/driftline/src/"),
        ("e2e/", "crates/driftline/tests/e2e/"),
        ("store/", "crates/driftline-store/tests/store/"),
        ("crates/", "crates/"),
    ];
    let mut named = 0;
    for document in ["ARCHITECTURE.md", "docs/promises.md"] {
        for quoted in fs::read_to_string(root().join(document)).unwrap().split('`').skip(1).step_by(2) {
            let Some((file, test)) = quoted.split_once(".rs: ") else {
                continue;
            };
            let (short, long) = folders.iter().find(|(short, _)| file.starts_with(short)).expect("a folder of ours");
            let text = fs::read_to_string(root().join(format!("{}.rs", file.replacen(short, long, 1)))).expect(file);
            assert!(text.contains(&format!("fn {test}(")), "{document} names `{quoted}`, which is not there");
            named += 1;
        }
    }
    assert!(named > 20, "only {named} tests are named");
}

#[test]
fn nothing_unfinished_is_committed() {
    for krate in [
        "driftline-core",
        "driftline-store",
        "driftline-sources",
        "driftline",
        "driftline-bench",
        "fake-aws",
        "xtask",
        "jsonata",
        "aws-wire",
        "driftline-kube",
        "driftline-bucket",
        "driftline-aws",
        "driftline-web",
        "driftline-notify",
        "driftline-mcp",
        "driftline-sql",
    ] {
        for (path, text) in sources_of(krate) {
            for word in ["TODO", "FIXME", "XXX", "unimplemented!"] {
                assert!(!text.contains(word), "{word} in {}", path.display());
            }
        }
    }
}
