//! A swamp datastore on disk, honest and hostile, and what `observe swamp` makes of it.
//!
//! The data is of a model that the configuration maps, so that nothing here depends on what a normalizer does.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};

use crate::support::{Ran, Sandbox, essence, minute, resource, statuses};

const MODEL: &str = "0b0f9f4e-6a0e-4a0e-8a8e-000000000001";
const MAPPING: &str = "[[swamp.model]]\nmodel = \"@acme/things\"\nsource = \"things\"\nitems = \"/things\"\n\
                       id = \"/id\"\ntype_name = \"Thing\"\ncomplete = true\n";

/// A version of a piece of data, as it is written down.
struct Entry<'a> {
    type_path: &'a str,
    model_id: &'a str,
    model_name: &'a str,
    spec: &'a str,
    name: &'a str,
    version: &'a str,
    at: u32,
    raw: Option<String>,
    more: &'a str,
    checksum: Option<&'a str>,
}

/// These things, as version `version` of the data `name`, written at a minute.
fn entry<'a>(name: &'a str, version: &'a str, at: u32, things: &[(&str, u32)]) -> Entry<'a> {
    let things: Vec<Json> = things.iter().map(|(id, size)| json!({"id": id, "size": size})).collect();
    Entry {
        type_path: "@acme/things",
        model_id: MODEL,
        model_name: "shop",
        spec: "list",
        name,
        version,
        at,
        raw: Some(json!({"things": things}).to_string()),
        more: "",
        checksum: None,
    }
}

/// A version that says that the data is gone.
fn tombstone<'a>(name: &'a str, version: &'a str, at: u32, more: &'a str) -> Entry<'a> {
    Entry { more, ..entry(name, version, at, &[("a", 1)]) }
}

/// A sandbox with a mapping and an empty tree.
struct Swamp {
    sandbox: Sandbox,
}

impl Swamp {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("driftline.toml", MAPPING);
        fs::create_dir_all(sandbox.path("tree")).unwrap();
        Self { sandbox }
    }

    fn folder(&self, entry: &Entry<'_>) -> PathBuf {
        self.sandbox.path("tree").join(entry.type_path).join(entry.model_id).join(entry.name)
    }

    /// Writes a version in its place.
    fn put(&self, entry: &Entry<'_>) -> PathBuf {
        put_in(&self.folder(entry), entry)
    }

    fn observe(&self, more: &[&str]) -> Ran {
        self.sandbox.run(["observe", "swamp", "tree"].iter().chain(more))
    }

    /// The versions of every stream, as `stream v1 10:00 2 rows`.
    fn log(&self) -> Vec<String> {
        let log = self.sandbox.json(["log"]);
        let mut lines: Vec<String> = log["versions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                let at = one["takenAt"].as_str().unwrap();
                format!("{} v{} {} {}", one["source"].as_str().unwrap(), one["version"], &at[11..16], one["resources"])
            })
            .collect();
        lines.sort();
        lines
    }
}

/// Writes a version in swamp's order: metadata, raw, latest.
fn put_in(folder: &Path, entry: &Entry<'_>) -> PathBuf {
    let version = put_uncommitted(folder, entry);
    fs::write(folder.join("latest"), entry.version).unwrap();
    version
}

fn put_uncommitted(folder: &Path, entry: &Entry<'_>) -> PathBuf {
    let version = folder.join(entry.version);
    fs::create_dir_all(&version).unwrap();
    fs::write(version.join("metadata.yaml"), metadata(entry)).unwrap();
    if let Some(raw) = &entry.raw {
        fs::write(version.join("raw"), raw).unwrap();
    }
    version
}

fn metadata(entry: &Entry<'_>) -> String {
    let raw = entry.raw.clone().unwrap_or_else(|| "{}".to_owned());
    let checksum = entry.checksum.map_or_else(|| sha256(raw.as_bytes()), ToOwned::to_owned);
    format!(
        "id: {}\nname: {}\nversion: {}\ncontentType: application/json\nlifetime: 24h\ngarbageCollection: 5\n\
         streaming: false\ntags:\n  type: resource\n  specName: {}\n  modelName: '{}'\nownerDefinition:\n  \
         ownerType: model-method\n  ownerRef: {}\ncreatedAt: '{}'\nsize: {}\nchecksum: {checksum}\n{}",
        entry.model_id,
        entry.name,
        entry.version,
        entry.spec,
        entry.model_name,
        entry.model_id,
        minute(entry.at),
        raw.len(),
        entry.more
    )
}

fn sha256(bytes: &[u8]) -> String {
    use std::io::Write;
    let mut child = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_datastore_is_observed_and_the_same_again_makes_no_version() {
    let swamp = Swamp::new();
    swamp.put(&entry("eu", "1", 0, &[("a", 1)]));
    swamp.put(&entry("us", "1", 1, &[("a", 1), ("b", 1)]));
    swamp.observe(&[]).succeeded().prints(&["things@eu v1  1 resource", "things@us v1  2 resources"]);
    let before = essence(&swamp.sandbox.store());
    swamp.observe(&[]).succeeded().prints(&["things@eu v1  unchanged", "things@us v1  unchanged"]);
    assert_eq!(essence(&swamp.sandbox.store()), before);
    swamp.put(&entry("us", "2", 2, &[("a", 2)]));
    let report = swamp.sandbox.json(["observe", "swamp", "tree"]);
    assert_eq!(report["committed"][0]["changes"]["change"], 1);
    assert_eq!(report["committed"][0]["changes"]["remove"], 1);
    assert_eq!(report["unchanged"], json!([{"source": "things@eu", "version": 1}]));
}

#[test]
fn drift_and_history_are_those_of_the_datastore() {
    let swamp = Swamp::new();
    swamp.put(&entry("eu", "1", 0, &[("a", 1), ("b", 1)]));
    swamp.put(&entry("eu", "2", 10, &[("a", 1), ("b", 2)]));
    swamp.put(&entry("eu", "3", 20, &[("b", 3)]));
    swamp.put(&entry("us", "1", 15, &[("c", 1)]));
    swamp.observe(&["--all-versions"]).succeeded();
    let all = ["things@eu v1 00:00 2", "things@eu v2 00:10 2", "things@eu v3 00:20 1", "things@us v1 00:15 1"];
    assert_eq!(swamp.log(), all);
    let history = swamp.sandbox.json(["history", "b"]);
    assert_eq!(history["events"].as_array().unwrap().len(), 3, "{history:#}");
    let drift = swamp.sandbox.drift(["--between", &minute(16), &minute(30)]);
    assert_eq!(resource(&drift, "b")["changes"][0]["path"], "/size");
    assert_eq!(resource(&drift, "a")["kind"], "deleted");

    // Again, it is all there.
    let before = essence(&swamp.sandbox.store());
    swamp.observe(&["--all-versions"]).succeeded().prints(&["things@eu v3  unchanged"]);
    swamp.observe(&[]).succeeded().prints(&["things@eu v3  unchanged"]);
    assert_eq!(essence(&swamp.sandbox.store()), before);
    swamp.put(&entry("eu", "4", 30, &[("b", 4)]));
    swamp.observe(&["--all-versions"]).succeeded().prints(&["things@eu v4"]);
    assert_eq!(swamp.log().len(), 5);
}

#[test]
fn history_is_not_put_behind_what_the_store_has_already() {
    let swamp = Swamp::new();
    swamp.put(&entry("eu", "1", 0, &[("a", 1)]));
    swamp.put(&entry("eu", "2", 10, &[("a", 2)]));
    swamp.observe(&[]).succeeded();
    swamp.observe(&["--all-versions"]).succeeded().says(&["1 version left out"]).prints(&["unchanged"]);
    assert_eq!(swamp.log(), ["things@eu v1 00:10 1"]);
}

#[test]
fn the_latest_is_what_swamp_says_it_is() {
    for (latest, expected) in [
        ("text", "00:01 1"),
        ("text with a line end", "00:01 1"),
        ("link", "00:01 1"),
        ("link with a slash", "00:01 1"),
        ("link out of the root", "00:01 1"),
        ("none", "00:02 1"),
        ("nonsense", "00:02 1"),
        ("a folder", "00:02 1"),
    ] {
        let swamp = Swamp::new();
        let folder = swamp.folder(&entry("207333", "1", 0, &[]));
        // With a gap, a version that was not committed, and what is left of an interrupted write.
        swamp.put(&entry("207333", "1", 0, &[("a", 1)]));
        swamp.put(&entry("207333", "9", 1, &[("a", 2)]));
        put_uncommitted(&folder, &entry("207333", "10", 2, &[("a", 3)]));
        fs::create_dir_all(folder.join("11")).unwrap();
        fs::write(folder.join("9/.0b0f.tmp"), "half").unwrap();
        let file = folder.join("latest");
        fs::remove_file(&file).unwrap();
        match latest {
            "text" => fs::write(&file, "9").unwrap(),
            "text with a line end" => fs::write(&file, " 9\n").unwrap(),
            "link" => symlink("9", &file).unwrap(),
            "link with a slash" => symlink("9/", &file).unwrap(),
            "link out of the root" => symlink("/somewhere/else/9", &file).unwrap(),
            "nonsense" => fs::write(&file, "x".repeat(100_000)).unwrap(),
            "a folder" => fs::create_dir(&file).unwrap(),
            _ => {}
        }
        swamp.observe(&[]).succeeded();
        assert_eq!(swamp.log(), [format!("things@207333 v1 {expected}")], "{latest}");
    }
}

#[test]
fn a_version_beyond_every_machine_word_is_just_a_version() {
    let swamp = Swamp::new();
    swamp.put(&entry("eu", "9", 0, &[("a", 1)]));
    swamp.put(&entry("eu", "18446744073709551616", 1, &[("a", 2)]));
    swamp.put(&entry("eu", "99999999999999999999999", 2, &[("a", 3)]));
    swamp.observe(&["--all-versions"]).succeeded();
    assert_eq!(swamp.log(), ["things@eu v1 00:00 1", "things@eu v2 00:01 1", "things@eu v3 00:02 1"]);
}

#[test]
fn what_cannot_be_read_is_never_replaced_by_what_was_there_before() {
    type Damage = (&'static str, &'static [&'static str], fn(&Path));
    let damages: [Damage; 8] = [
        ("not hydrated", &["not hydrated or half written"], |version| fs::remove_file(version.join("raw")).unwrap()),
        ("cut short", &["has 3 bytes", "its metadata says"], |version| fs::write(version.join("raw"), "{} ").unwrap()),
        ("another content", &["the checksum of its raw is", "its metadata says"], |version| {
            let raw = fs::read_to_string(version.join("raw")).unwrap();
            fs::write(version.join("raw"), raw.replace('2', "7")).unwrap();
        }),
        ("huge metadata", &["more than 1048576 are not read"], |version| {
            fs::write(version.join("metadata.yaml"), "x: y\n".repeat(1 << 20)).unwrap();
        }),
        ("a bomb", &["metadata.yaml is not usable"], |version| {
            fs::write(version.join("metadata.yaml"), bomb()).unwrap();
        }),
        ("no metadata", &["which is not there or has no metadata.yaml"], |version| {
            fs::remove_file(version.join("metadata.yaml")).unwrap();
        }),
        ("a link out", &["a symbolic link out of the datastore"], |version| {
            fs::remove_file(version.join("raw")).unwrap();
            symlink("/etc/passwd", version.join("raw")).unwrap();
        }),
        ("a folder", &["not a regular file"], |version| {
            fs::remove_file(version.join("raw")).unwrap();
            fs::create_dir(version.join("raw")).unwrap();
        }),
    ];
    for (name, words, damage) in damages {
        let swamp = Swamp::new();
        swamp.put(&entry("eu", "1", 0, &[("a", 1)]));
        swamp.observe(&[]).succeeded();
        swamp.sandbox.run(["baseline", "set"]).succeeded();
        let whole = entry("eu", "2", 5, &[("a", 2)]);
        damage(&swamp.put(&whole));
        let ran = swamp.observe(&[]).exited_when(0, name).says(words).says(&["warning: "]);
        assert!(ran.out.contains("things@eu v2"), "{name}\n{}", ran.out);
        assert_eq!(statuses(&swamp.sandbox.drift([]))["a"], "not_checked", "{name}");
        swamp.observe(&[]).exited_when(0, name).says(words).prints(&["things@eu v2  unchanged"]);

        // Once it is there, it is read.
        fs::remove_dir_all(swamp.folder(&whole).join("2")).unwrap();
        swamp.put(&whole);
        swamp.observe(&[]).exited_when(0, name).prints(&["things@eu v3"]);
        assert_eq!(statuses(&swamp.sandbox.drift([]))["a"], "drifted", "{name}");

        // A source that nobody has seen yet cannot be said to be unread: that is a failure.
        let swamp = Swamp::new();
        swamp.put(&entry("us", "1", 0, &[("b", 1)]));
        swamp.put(&entry("eu", "1", 0, &[("a", 1)]));
        damage(&swamp.put(&entry("eu", "2", 5, &[("a", 2)])));
        let ran = swamp.observe(&[]).exited_when(1, name).says(words).says(&["`things@eu` was not observed"]);
        assert!(ran.out.contains("things@us v1"), "{name}\n{}", ran.out);
        assert_eq!(swamp.log(), ["things@us v1 00:00 1"], "{name}");
    }
}

#[test]
fn what_was_read_once_may_be_taken_away() {
    let swamp = Swamp::new();
    let version = swamp.put(&entry("eu", "1", 0, &[("a", 1)]));
    swamp.observe(&[]).succeeded();
    fs::remove_file(version.join("raw")).unwrap();
    swamp.observe(&[]).succeeded().says(&["not hydrated"]).prints(&["things@eu v1  unchanged"]);
}

fn bomb() -> String {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for at in 1..12 {
        let before = vec![format!("*a{}", at - 1); 10].join(",");
        text += &format!("a{at}: &a{at} [{before}]\n");
    }
    text + "tags: {type: *a11}\n"
}

#[test]
fn data_of_which_nothing_can_be_read_is_a_failure() {
    let swamp = Swamp::new();
    let version = swamp.put(&entry("eu", "1", 0, &[("a", 1)]));
    fs::write(version.join("metadata.yaml"), bomb()).unwrap();
    swamp.observe(&[]).refused(&["eu` was not observed", "nothing in it could be observed"]);
    assert!(!swamp.sandbox.store().exists());
}

#[test]
fn what_leads_out_of_the_tree_is_not_followed() {
    let swamp = Swamp::new();
    swamp.put(&entry("eu", "1", 0, &[("a", 1)]));
    let elsewhere = swamp.sandbox.path("elsewhere");
    let there = entry("secret", "1", 0, &[("x", 1)]);
    put_in(&elsewhere.join("things").join(MODEL).join("secret"), &there);
    let tree = swamp.sandbox.path("tree");
    symlink(elsewhere.join("things"), tree.join("@acme/more")).unwrap();
    symlink(elsewhere.join("things").join(MODEL).join("secret"), tree.join("@acme/things").join(MODEL).join("s"))
        .unwrap();
    symlink("..", tree.join("@acme/things/circle")).unwrap();
    let ran = swamp.observe(&[]).succeeded().says(&["a symbolic link is not followed", "@acme/more", "circle"]);
    assert_eq!(ran.err.matches("is not followed").count(), 3, "{}", ran.err);
    assert_eq!(swamp.log(), ["things@eu v1 00:00 1"]);
}

#[test]
fn odd_names_and_endless_folders_are_problems_and_not_crashes() {
    let swamp = Swamp::new();
    swamp.put(&entry("eu", "1", 0, &[("a", 1)]));
    let model = swamp.sandbox.path("tree/@acme/things").join(MODEL);
    fs::create_dir_all(model.join(OsString::from_vec(vec![0xff, 0xfe])).join("1")).unwrap();
    let deep: PathBuf = std::iter::repeat_n("d", 60).collect();
    fs::create_dir_all(swamp.sandbox.path("tree").join(deep)).unwrap();
    fs::write(swamp.sandbox.path("tree/_catalog.db"), "x").unwrap();
    swamp.observe(&[]).succeeded().says(&["its name is not UTF-8", "deeper than 32 levels"]);
    for name in ["Über alles", "latest.", "aws_vpc.main[\"x\"]", &"n".repeat(200)] {
        swamp.put(&entry(name, "1", 1, &[("b", 1)]));
    }
    swamp.observe(&[]).succeeded();
    assert_eq!(swamp.log().len(), 5, "{:?}", swamp.log());
}

#[test]
fn two_that_would_share_a_name_are_both_refused() {
    let swamp = Swamp::new();
    for name in ["EU", "eu", "us"] {
        swamp.put(&entry(name, "1", 0, &[(name, 1)]));
    }
    let ran = swamp.observe(&[]).exited(1).says(&["would be one stream, `things@eu`", "hint: "]);
    assert!(ran.out.contains("things@us v1") && !ran.out.contains("things@eu"), "{}", ran.out);
}

#[test]
fn what_swamp_deleted_is_gone() {
    let swamp = Swamp::new();
    swamp.put(&entry("eu", "1", 0, &[("a", 1), ("b", 1)]));
    swamp.put(&entry("us", "1", 0, &[("c", 1)]));
    swamp.observe(&[]).succeeded();
    swamp.sandbox.run(["baseline", "set"]).succeeded();
    swamp.put(&tombstone("eu", "2", 5, "lifecycle: deleted\n"));
    swamp.put(&tombstone("never-seen", "1", 5, "lifecycle: deleted\n"));
    swamp.observe(&[]).succeeded().prints(&["things@eu v2  0 resources: 0 changed, 0 new, 2 gone"]);
    let drift = swamp.sandbox.drift([]);
    assert_eq!(resource(&drift, "a")["kind"], "deleted");
    assert!(!statuses(&drift).contains_key("c"));
    swamp.observe(&[]).succeeded().prints(&["things@eu v2  unchanged"]);
    swamp.put(&entry("eu", "3", 6, &[("a", 1)]));
    swamp.observe(&[]).succeeded().prints(&["things@eu v3  1 resource"]);

    // The same, replayed.
    swamp.sandbox.run(["--store", "other", "observe", "swamp", "tree", "--all-versions"]).succeeded();
    let log = swamp.sandbox.json(["--store", "other", "log"]);
    assert_eq!(log["versions"].as_array().unwrap().len(), 4, "{log:#}");
}

#[test]
fn a_renamed_thing_goes_on_under_its_first_name() {
    let swamp = Swamp::new();
    swamp.put(&entry("eu", "1", 0, &[("a", 1)]));
    swamp.observe(&[]).succeeded();
    swamp.sandbox.run(["baseline", "set"]).succeeded();
    swamp.put(&tombstone("eu", "2", 5, "lifecycle: deleted\nrenamedTo: europe\n"));
    swamp.put(&tombstone("europe", "1", 6, "lifecycle: deleted\nrenamedTo: emea\n"));
    swamp.put(&entry("emea", "1", 7, &[("a", 2)]));
    swamp.observe(&[]).succeeded().prints(&["things@eu v2  1 resource: 1 changed"]);
    assert_eq!(resource(&swamp.sandbox.drift([]), "a")["kind"], "modified");
    swamp.observe(&["--all-versions"]).succeeded().prints(&["things@eu v2  unchanged"]);
    assert_eq!(swamp.log(), ["things@eu v1 00:00 1", "things@eu v2 00:07 1"]);
}

#[test]
fn renames_without_end_are_a_problem() {
    let moved = |to: usize| format!("lifecycle: deleted\nrenamedTo: n{to}\n");
    // A circle.
    let swamp = Swamp::new();
    for (from, to) in [(1, 2), (2, 3), (3, 1)] {
        swamp.put(&tombstone(&format!("n{from}"), "1", 0, &moved(to)));
    }
    swamp.put(&entry("other", "1", 0, &[("a", 1)]));
    swamp.observe(&[]).exited(1).says(&["renamed in a circle"]).prints(&["things@other v1"]);
    // Five are followed, six are not.
    for (hops, followed) in [(5, true), (6, false)] {
        let swamp = Swamp::new();
        for at in 0..hops {
            swamp.put(&tombstone(&format!("n{at}"), "1", 0, &moved(at + 1)));
        }
        swamp.put(&entry(&format!("n{hops}"), "1", 1, &[("a", 1)]));
        let ran = swamp.observe(&[]);
        match followed {
            true => ran.succeeded().prints(&["things@n0 v1"]),
            false => ran.exited(1).says(&["renamed more than 5 times"]),
        };
    }
    // To nowhere.
    let swamp = Swamp::new();
    swamp.put(&tombstone("n1", "1", 0, &moved(2)));
    swamp.observe(&[]).refused(&["renamed to `n2`, which is not there"]);
}

#[test]
fn a_model_that_was_made_anew_is_the_same_model() {
    let swamp = Swamp::new();
    let anew = "0b0f9f4e-6a0e-4a0e-8a8e-000000000002";
    swamp.put(&entry("eu", "1", 0, &[("a", 1)]));
    swamp.put(&entry("eu", "2", 5, &[("a", 2)]));
    swamp.put(&Entry { model_id: anew, ..entry("eu", "1", 10, &[("a", 3)]) });
    swamp.observe(&["--all-versions"]).succeeded();
    assert_eq!(swamp.log(), ["things@eu v1 00:00 1", "things@eu v2 00:05 1", "things@eu v3 00:10 1"]);
    swamp.observe(&[]).succeeded().prints(&["things@eu v3  unchanged"]);
}

#[test]
fn data_of_old_stores_that_names_no_model_goes_by_its_id() {
    let swamp = Swamp::new();
    let one = entry("eu", "1", 0, &[("a", 1)]);
    let version = swamp.put(&one);
    let old = metadata(&one).replace("  specName: list\n  modelName: 'shop'\n", "").replace("resource", "step-output");
    fs::write(version.join("metadata.yaml"), old).unwrap();
    swamp.observe(&["--model", &MODEL[..8], "--model", "0b0f*"]).succeeded().prints(&["things@eu v1  1 resource"]);
    let log = swamp.sandbox.json(["log"]);
    assert!(log["versions"][0]["observer"].as_str().unwrap().starts_with(&format!("swamp {MODEL} eu v1 #")));
}

#[test]
fn a_repository_says_where_its_data_is() {
    for (yaml, variables, at) in [
        ("swampVersion: 1", &[][..], "repo/.swamp/data"),
        ("datastore: {type: filesystem, path: ../store}", &[], "store/data"),
        ("datastore: {type: filesystem, path: '${PLACE}/x'}", &[("PLACE", "../y")], "y/x/data"),
        ("datastore: {type: filesystem, path: ../store, namespace: team-a}", &[], "store/team-a/data"),
        ("datastore: {type: filesystem, path: ../store, directories: [outputs]}", &[], "repo/.swamp/data"),
        ("datastore: {type: filesystem, path: ../store, exclude: ['data/**']}", &[], "repo/.swamp/data"),
        ("datastore: {type: filesystem, path: ../store}", &[("SWAMP_DATASTORE", "filesystem:../env")], "env/data"),
        ("repoId: 7a\ndatastore: {type: s3}", &[("SWAMP_HOME", "home")], "home/repos/7a/data"),
        ("repoId: 7a\ndatastore: {type: '@swamp/s3-datastore'}", &[("HOME", "h")], "h/.swamp/repos/7a/data"),
    ] {
        let swamp = Swamp::new();
        swamp.sandbox.write("repo/.swamp.yaml", yaml);
        let one = entry("eu", "1", 0, &[("a", 1)]);
        let data = swamp.sandbox.path(at);
        put_in(&data.join("@acme/things").join(MODEL).join("eu"), &one);
        swamp.sandbox.run_with(variables, ["observe", "swamp", "repo"]).exited_when(0, yaml);
        assert_eq!(swamp.log(), ["things@eu v1 00:00 1"], "{yaml}");
        // The datastore itself, and its data folder, are good names for it too.
        let base = data.parent().unwrap();
        for path in [base, &data] {
            let told = swamp.sandbox.run(["observe".as_ref(), "swamp".as_ref(), path.as_os_str()]);
            told.exited_when(0, yaml).prints(&["unchanged"]);
        }
    }
    let swamp = Swamp::new();
    for name in ["team-a", "team-b"] {
        let folder = swamp.sandbox.path("tree").join(name).join("data/@acme/things").join(MODEL).join("eu");
        put_in(&folder, &entry("eu", "1", 0, &[("a", 1)]));
    }
    swamp.observe(&[]).refused(&["a datastore with namespaces", "name one: `tree/team-a`, `tree/team-b`"]);
    swamp.sandbox.run(["observe", "swamp", "tree/team-a"]).succeeded();

    let refuse = |yaml: &str, words: &[&str]| {
        let swamp = Swamp::new();
        swamp.sandbox.write("repo/.swamp.yaml", yaml);
        swamp.sandbox.run(["observe", "swamp", "repo"]).refused(words);
    };
    refuse("datastore: {type: filesystem, path: '$NOT_SET/x'}", &["needs NOT_SET, which is not set"]);
    refuse("datastore: {namespace: ../../etc}", &["is not a namespace"]);
    refuse("datastore: {type: '@swamp/s3-datastore'}", &["no usable `repoId`"]);
    refuse("a: [", &["`repo/.swamp.yaml` is not usable"]);
    refuse(&bomb(), &["`repo/.swamp.yaml` is not usable"]);
    refuse("swampVersion: 1", &["repo/.swamp/data", "which is not a folder"]);
}

#[test]
fn a_folder_without_data_is_refused_with_what_was_looked_for() {
    let swamp = Swamp::new();
    swamp.observe(&[]).refused(&["there is no swamp data in `tree`", ".swamp.yaml", "metadata.yaml"]);
    swamp.sandbox.run(["observe", "swamp", "nowhere"]).refused(&["cannot observe `nowhere`"]);
    assert!(!swamp.sandbox.store().exists());
}

#[test]
fn what_the_command_line_printed_is_as_good_as_the_tree() {
    let record = |name: &str, version: u32, at: u32, size: u32| {
        json!({
            "id": "x", "name": name, "modelId": MODEL, "modelName": "shop", "modelType": "@acme/things",
            "version": version, "contentType": "application/json", "createdAt": minute(at),
            "tags": {"type": "resource", "specName": "list"},
            "content": {"things": [{"id": name, "size": size}]},
        })
    };
    let swamp = Swamp::new();
    let observe = |document: &Json, more: &[&str]| {
        swamp.sandbox.write("printed.json", document.to_string());
        swamp.sandbox.run(["observe", "swamp", "printed.json"].iter().chain(more))
    };
    observe(&record("eu", 1, 0, 1), &[]).succeeded().prints(&["things@eu v1  1 resource"]);
    observe(&record("eu", 1, 0, 1), &[]).succeeded().prints(&["things@eu v1  unchanged"]);
    let query = |limited: bool, results: &[Json]| json!({"predicate": "p", "results": results, "total": results.len(), "limited": limited});
    let two = [record("eu", 3, 3, 3), record("eu", 2, 2, 2), record("us", 1, 1, 1)];
    observe(&query(false, &two), &["--all-versions"]).succeeded();
    assert_eq!(
        swamp.log(),
        ["things@eu v1 00:00 1", "things@eu v2 00:02 1", "things@eu v3 00:03 1", "things@us v1 00:01 1"]
    );
    // The same data in a tree is known again.
    swamp.put(&entry("eu", "3", 3, &[("eu", 3)]));
    swamp.observe(&[]).succeeded().prints(&["things@eu v3  unchanged"]);
    // A query that was cut is not whole.
    let cut = observe(&query(true, &[record("us", 2, 5, 2)]), &[]).succeeded();
    cut.says(&["stopped at its limit"]).prints(&["1 of 1 extents partial"]);
    let mut gone = record("us", 3, 6, 2);
    gone["lifecycle"] = json!("deleted");
    observe(&gone, &[]).succeeded().prints(&["things@us v3  0 resources: 0 changed, 0 new, 1 gone"]);

    observe(&json!({"region": "x"}), &[]).refused(&["is not what `swamp data get --json`"]);
    observe(&query(false, &[]), &[]).refused(&["found no data"]);
    observe(&query(false, &[json!({"name": "x"})]), &[]).refused(&["has no `content`", "without --select"]);
}

#[test]
fn a_model_that_nobody_knows_is_named_once_with_what_to_write() {
    let swamp = Swamp::new();
    swamp.put(&entry("eu", "1", 0, &[("a", 1)]));
    for name in ["x", "y"] {
        swamp.put(&Entry { type_path: "keeb/shell", model_name: "sh", ..entry(name, "1", 0, &[]) });
    }
    let ran =
        swamp.observe(&[]).succeeded().says(&["`keeb/shell` (list)", "[[swamp.model]] with model = \"keeb/shell\""]);
    assert_eq!(ran.err.matches("keeb/shell").count(), 2, "{}", ran.err);
    swamp.observe(&["--model", "sh"]).refused(&["known or asked for", "its models are sh, shop"]);
    swamp.observe(&["--model", "sho*"]).succeeded();
    swamp.observe(&["--model", "@acme/*"]).succeeded();
}

#[test]
fn models_that_are_known_need_no_mapping() {
    let swamp = Swamp::new();
    let put = |type_path, model_name, spec, name, version, at, document: Json| {
        let raw = Some(document.to_string());
        swamp.put(&Entry { type_path, model_name, spec, raw, ..entry(name, version, at, &[]) });
    };
    let discovery = |region: &str, cidr: &str| {
        let vpc = json!({"vpcId": "vpc-1", "cidrBlock": cidr, "state": "available", "isDefault": false, "tags": {}});
        json!({"region": region, "truncated": false, "discovered": {"vpcs": [vpc]}, "summary": {}})
    };
    let scan = json!({
        "source": "resource-explorer", "coverage": "full", "region": "us-east-1", "fetchedAt": minute(0),
        "truncated": false, "summary": {},
        "resources": [{"arn": "arn:aws:sqs:us-east-1:1:q", "resourceType": "AWS::SQS::Queue", "region": "us-east-1",
                       "accountId": "1", "tags": {}}],
    });
    let zones = json!({
        "fetchedAt": minute(0), "truncated": false, "summary": {},
        "zones": [{"id": "Z1", "name": "example.com", "isPrivate": false, "recordCount": 1}],
    });
    let records = json!({
        "fetchedAt": minute(0), "accountId": "1", "truncated": false, "summary": {},
        "records": [{"zoneId": "Z1", "zoneName": "example.com", "name": "a.example.com", "type": "A", "ttl": 60,
                     "values": ["10.0.0.1"], "aliasTarget": null}],
    });
    put("@acme/aws/adopt", "aws-adopt", "discovery", "all-us-east-1", "1", 0, discovery("us-east-1", "10.0.0.0/16"));
    put("@acme/aws/adopt", "aws-adopt", "discovery", "all-us-east-1", "2", 5, discovery("us-east-1", "10.1.0.0/16"));
    put("@acme/aws/adopt", "aws-adopt", "discovery", "latest-eu", "1", 0, discovery("eu-west-1", "10.0.0.0/16"));
    put("@webframp/aws/inventory", "aws-inventory", "scan", "result", "1", 0, scan.clone());
    put("@webframp/aws/inventory", "aws-inventory", "scan", "diff-baseline", "1", 0, scan);
    put("@webframp/aws/inventory", "aws-inventory", "scanDiff", "diff", "1", 0, json!({}));
    put("@webframp/aws/dns-observation", "@team/dns", "zones", "zones", "1", 0, zones);
    put("@webframp/aws/dns-observation", "@team/dns", "records", "record-scan", "1", 1, records);
    let ran = swamp.observe(&["--all-versions", "--account", "1"]).succeeded();
    assert_eq!(ran.err.matches("is a copy of an earlier scan").count(), 1, "{}", ran.err);
    assert!(!ran.err.contains("nothing says how to read"), "{}", ran.err);
    assert_eq!(
        swamp.log(),
        [
            "adopt/aws-adopt@all-us-east-1 v1 00:00 1",
            "adopt/aws-adopt@all-us-east-1 v2 00:05 1",
            "adopt/aws-adopt@latest-eu v1 00:00 1",
            "dns/team-dns v1 00:00 2",
            "inventory/aws-inventory@scan/result v1 00:00 1",
        ]
    );
    let drift = swamp.sandbox.drift(["--since", &minute(2)]);
    let vpc = resource(&drift, "arn:aws:ec2:us-east-1:1:vpc/vpc-1");
    assert_eq!(
        (&vpc["changes"][0]["path"], &vpc["changes"][0]["current"]),
        (&json!("/cidrBlock"), &json!("10.1.0.0/16"))
    );
    swamp.observe(&["--account", "1"]).succeeded().prints(&["dns/team-dns v1  unchanged"]);
}

#[test]
fn logs_reports_and_other_content_are_let_be() {
    let swamp = Swamp::new();
    swamp.put(&entry("eu", "1", 0, &[("a", 1)]));
    for (name, from, to) in [
        ("log", "type: resource", "type: log"),
        ("report", "type: resource", "type: report"),
        ("text", "application/json", "text/plain"),
    ] {
        let one = entry(name, "1", 0, &[("a", 1)]);
        let version = swamp.put(&one);
        fs::write(version.join("metadata.yaml"), metadata(&one).replace(from, to)).unwrap();
    }
    swamp.observe(&[]).succeeded();
    assert_eq!(swamp.log(), ["things@eu v1 00:00 1"]);
}

#[test]
fn a_mapping_finds_what_it_says_and_absence_counts_only_where_it_says_so() {
    let swamp = Swamp::new();
    swamp.sandbox.write(
        "driftline.toml",
        "[[swamp.model]]\nmodel = \"shop\"\nspec = \"list\"\nsource = \"shop/prod\"\nitems = \"/by~1name\"\n\
         type = \"/kind\"\naccount = \"/account\"\nregion = \"/where/region\"\nsnapshot = \"/state\"\ntaken_at = \"/at\"\n",
    );
    let document = |names: &[&str], at: u32| {
        let members: serde_json::Map<String, Json> =
            names.iter().map(|name| ((*name).to_owned(), json!({"kind": "Thing", "state": {"x": 1}}))).collect();
        json!({"at": minute(at), "account": 42, "where": {"region": "moon"}, "by/name": members}).to_string()
    };
    let put = |version, at, names: &[&str]| {
        swamp.put(&Entry { raw: Some(document(names, at - 1)), ..entry("eu", version, at, &[]) })
    };
    put("1", 10, &["a", "b"]);
    swamp.observe(&[]).succeeded();
    swamp.sandbox.run(["baseline", "set"]).succeeded();
    assert_eq!(swamp.log(), ["shop/prod@eu v1 00:09 2"]);
    put("2", 20, &["a"]);
    swamp.observe(&[]).succeeded();
    assert_eq!(statuses(&swamp.sandbox.drift([]))["b"], "not_checked");
    // What is hydrated late says that it was taken before it was written down.
    let raw = put("3", 30, &["a", "b"]).join("raw");
    let content = fs::read(&raw).unwrap();
    fs::remove_file(&raw).unwrap();
    swamp.observe(&[]).succeeded().says(&["not hydrated"]);
    fs::write(&raw, content).unwrap();
    swamp.observe(&[]).succeeded();
    assert_eq!(swamp.log()[2..], ["shop/prod@eu v3 00:30 2", "shop/prod@eu v4 00:29 2"]);
    swamp.sandbox.run(["config", "view"]).succeeded().prints(&["swamp.model", "shop/prod from model=shop spec=list"]);
}
