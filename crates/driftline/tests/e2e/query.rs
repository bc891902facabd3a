//! `query`: what can be asked, in which forms, and what is refused.

#[cfg(feature = "sql")]
use serde_json::json;

#[cfg(not(feature = "sql"))]
use crate::support::Sandbox;
#[cfg(feature = "sql")]
use crate::support::{Sandbox, thing};

#[cfg(not(feature = "sql"))]
#[test]
fn a_build_without_sql_says_how_to_get_it() {
    let sandbox = Sandbox::new();
    sandbox.run(["query", "SELECT 1"]).refused(&["built without SQL", "--features sql", "docs/store.md"]);
    sandbox.run(["engine", "scheduler"]).refused(&["built without Ballista", "--features ballista"]);
    let engine = ["drift", "--engine", "ballista://127.0.0.1:1"];
    Sandbox::with_demo().run(engine).refused(&["built without Ballista", "without --engine this machine answers"]);
}

#[cfg(feature = "sql")]
#[test]
fn findings_are_what_drift_says() {
    let sandbox = Sandbox::with_demo();
    let drift = sandbox.drift([]);
    let rows = sandbox.json([
        "query",
        "SELECT type, place, id, stream, status, kind, severity, since, changes, reason FROM findings \
         WHERE status <> 'in_sync' OR kind = 'resolved' ORDER BY type, place, id, stream",
    ]);
    let rows = rows["rows"].as_array().unwrap();
    let said = drift["resources"].as_array().unwrap();
    assert_eq!(rows.len(), said.len());
    assert!(rows.len() > 100, "{}", rows.len());
    let mut said: Vec<_> = said.iter().collect();
    let text = |one: &serde_json::Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    said.sort_by_key(|one| {
        (text(one, "resourceType"), text(one, "place"), text(one, "canonicalId"), text(one, "source"))
    });
    for (row, said) in rows.iter().zip(said) {
        for (column, member) in [
            ("type", "resourceType"),
            ("place", "place"),
            ("id", "canonicalId"),
            ("stream", "source"),
            ("status", "status"),
            ("kind", "kind"),
            ("severity", "severity"),
            ("reason", "reason"),
        ] {
            assert_eq!(row[column], said[member], "{column} of {row}");
        }
        assert_eq!(row["since"].is_null(), said["firstSeen"].is_null(), "{row}");
        let changes: serde_json::Value = serde_json::from_str(row["changes"].as_str().unwrap()).unwrap();
        let paths = |list: &serde_json::Value| -> Vec<serde_json::Value> {
            list.as_array().unwrap().iter().map(|change| change["path"].clone()).collect()
        };
        assert_eq!(paths(&changes), paths(&said["changes"]), "{row}");
    }
}

#[cfg(feature = "sql")]
#[test]
fn every_form_is_there_and_others_are_refused_before_anything_is_asked() {
    let sandbox = Sandbox::with_demo();
    let sql = "SELECT type, count(*) AS n FROM resources WHERE stream = 'dns/demo' GROUP BY type ORDER BY n DESC";
    let table = sandbox.run(["query", sql]).succeeded();
    assert_eq!(table.out.lines().next().unwrap(), "type                      n");
    assert!(table.out.contains("AWS::Route53::RecordSet   108"), "{}", table.out);
    assert_eq!(table.err, "");
    let csv = sandbox.run(["query", sql, "-o", "csv"]).succeeded();
    assert!(csv.out.starts_with("type,n\nAWS::Route53::RecordSet,108\n"), "{}", csv.out);
    let json = sandbox.json(["query", sql]);
    assert_eq!(json["rows"][0], json!({"type": "AWS::Route53::RecordSet", "n": 108}));
    let lines = sandbox.run(["query", sql, "-o", "ndjson"]).succeeded();
    assert_eq!(lines.out.lines().next().unwrap(), r#"{"type":"AWS::Route53::RecordSet","n":108}"#);
    let markdown = sandbox.run(["query", sql, "-o", "markdown"]).succeeded();
    assert!(markdown.out.starts_with("| type | n |\n|---|---|\n"), "{}", markdown.out);
    sandbox.run(["query", sql, "-o", "csv=a.csv", "-o", "parquet=a.parquet"]).succeeded();
    assert!(std::fs::read(sandbox.path("a.parquet")).unwrap().starts_with(b"PAR1"));
    assert_eq!(std::fs::read_to_string(sandbox.path("a.csv")).unwrap(), csv.out);
    sandbox.run(["query", sql, "-o", "parquet"]).refused(&["not for a terminal", "-o parquet=FILE"]);
    sandbox.run(["query", "SELECT broken", "-o", "sarif"]).refused(&["no sarif output", "it has table, json"]);
    sandbox.run(["log", "-o", "csv"]).refused(&["no csv output"]);
    let none = sandbox.run(["query", "SELECT id FROM changes WHERE op = 'none'"]).succeeded();
    assert_eq!((none.out.as_str(), none.err.as_str()), ("id\n", "no rows\n"));
    sandbox
        .run(["query", "SELECT a.id, b.id FROM resources a JOIN resources b ON a.id = b.id", "-o", "json"])
        .refused(&["two columns of the answer are called `id`", "AS other_id"]);
}

#[cfg(feature = "sql")]
#[test]
fn sql_comes_as_an_argument_from_a_file_or_from_standard_input() {
    let sandbox = Sandbox::with_demo();
    let sql = "-- param n: number = 2 | how many\nSELECT $n * 21 AS answer, $name AS name";
    let file = sandbox.write("q.sql", sql);
    for ran in [
        sandbox.run(["query", "-o", "csv", "-f", file.to_str().unwrap(), "--param", "name=it's"]),
        sandbox.feed(sql.as_bytes(), ["query", "-o", "csv", "-f", "-", "--param", "name=it's"]),
        sandbox.feed(sql.as_bytes(), ["query", "-o", "csv", "-", "--param", "name=it's"]),
        sandbox.run(["query", "-o", "csv", "--param", "name=it's", "--", sql]),
    ] {
        assert_eq!(ran.succeeded().out, "answer,name\n42,it's\n");
    }
    sandbox.run(["query", "-f", "missing.sql"]).refused(&["cannot read `missing.sql`"]);
    sandbox.run(["query", ""]).refused(&["the query is empty"]);
    sandbox.run(["query", "--", sql]).refused(&["needs a value for `name`", "--param name=VALUE"]);
    sandbox.run(["query", "SELECT 1", "--param", "x"]).refused(&["`x` is not a parameter", "--param days=30"]);
    sandbox.run(["query", "flaping"]).refused(&["no query `flaping`", "did you mean `flapping`?", "--list"]);
    sandbox.run(["query", "SELECT 1", "--memory", "1k"]).refused(&["too little", "16MiB"]);
    sandbox
        .run(["query", "SELECT * FROM resources_at('dns/demo', 99)"])
        .refused(&["has no version 99", "FROM versions WHERE stream = 'dns/demo'"]);
    sandbox.run(["query", "SELECT * FROM resources_at('dns/demo', 2.9)"]).refused(&["a stream and its version"]);
    sandbox.run(["query", "SELECT 1", "--timeout", "soon"]).refused(&["--timeout", "not a length of time"]);
    sandbox.run(["query", "SELECT * FROM resource"]).refused(&[
        "no view `resource`",
        "did you mean `resources`?",
        "the views are",
    ]);
    sandbox.run(["query", "DROP TABLE history"]).refused(&["only questions can be asked"]);
    Sandbox::new().run(["query", "SELECT 1"]).refused(&["there is no store"]);
}

#[cfg(feature = "sql")]
#[test]
fn a_query_that_is_too_long_is_refused_and_never_cut() {
    let sandbox = Sandbox::with_demo();
    let long = format!("SELECT 1 AS n --{}\n UNION ALL SELECT 2", "x".repeat(1 << 20));
    let file = sandbox.write("long.sql", &long);
    for ran in [
        sandbox.feed(long.as_bytes(), ["query", "-o", "csv", "-"]),
        sandbox.feed(long.as_bytes(), ["query", "-o", "csv", "-f", "-"]),
        sandbox.run(["query", "-o", "csv", "-f", file.to_str().unwrap()]),
    ] {
        ran.refused(&["is longer than 1 MiB"]);
    }
    let just = format!("SELECT 1 AS n --{}\n UNION ALL SELECT 2 ORDER BY n", "x".repeat((1 << 20) - 60));
    assert_eq!(sandbox.feed(just.as_bytes(), ["query", "-o", "csv", "-"]).succeeded().out, "n\n1\n2\n");
    let deep = format!("SELECT {} AS n", vec!["1"; 30_000].join("+"));
    sandbox.feed(deep.as_bytes(), ["query", "-"]).refused(&["too large to be planned", "1000 steps down", "hint: "]);
}

/// Values of JSON, maps, lists and what is no number: each form has them, or nothing is printed.
#[cfg(feature = "sql")]
#[test]
fn an_answer_is_printed_whole_whatever_is_in_it() {
    let sandbox = Sandbox::new();
    sandbox.observe_things(0, &[thing("a", json!({"tags": {"team": "x"}, "n": 1}))]);
    let sql = "SELECT properties->'tags' AS tags, json_get(properties, 'n') AS n, map([1],[2]) AS m, [1, 2] AS list, \
               CAST('NaN' AS DOUBLE) AS nan FROM resources";
    let row = json!({"tags": r#"{"team":"x"}"#, "n": "1", "m": {"1": 2}, "list": [1, 2], "nan": "NaN"});
    assert_eq!(sandbox.json(["query", sql])["rows"][0], row);
    let line = sandbox.run(["query", sql, "-o", "ndjson"]).succeeded();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&line.out).unwrap(), row);
    let csv = sandbox.run(["query", sql, "-o", "csv"]).succeeded();
    assert_eq!(csv.out, "tags,n,m,list,nan\n\"{\"\"team\"\":\"\"x\"\"}\",1,\"{\"\"1\"\":2}\",\"[1,2]\",NaN\n");
    sandbox.run(["query", sql, "-o", "parquet=a.parquet"]).succeeded();
    assert!(std::fs::read(sandbox.path("a.parquet")).unwrap().starts_with(b"PAR1"));
    sandbox.run(["query", sql]).succeeded().prints(&[r#"{"team":"x"}"#]);
}

#[cfg(feature = "sql")]
#[test]
fn a_value_given_by_name_never_becomes_sql() {
    let sandbox = Sandbox::with_demo();
    let given = "a= || (SELECT count(*) FROM versions) || ";
    for (sql, told) in [
        (r"SELECT E'\'' || ' $a ' AS x", "x\n' $a \n"),
        ("SELECT /* /* */ $a */ 'x' AS x", "x\nx\n"),
        ("SELECT $$ $a $$ AS x", "x\n $a \n"),
        ("SELECT '[' || $a || ']' AS x", "x\n[ || (SELECT count(*) FROM versions) || ]\n"),
    ] {
        let ran = sandbox.run(["query", "-o", "csv", sql, "--param", given]);
        match sql.contains("|| $a") {
            true => assert_eq!(ran.succeeded().out, told),
            // It is nowhere asked for.
            false => drop(ran.refused(&["has no parameter `a`"])),
        }
        if !sql.contains("|| $a") {
            assert_eq!(sandbox.run(["query", "-o", "csv", sql]).succeeded().out, told);
        }
    }
}

#[cfg(feature = "sql")]
#[test]
fn a_bad_file_among_named_queries_is_told_where_it_is_asked_for() {
    let sandbox = Sandbox::with_demo();
    sandbox.write("driftline.toml", "[query]\nfolder = \"queries\"\n");
    std::fs::create_dir(sandbox.path("queries")).unwrap();
    sandbox.write("queries/mine.sql", "-- title: Mine\nSELECT 1 AS n");
    sandbox.write("queries/broken.sql", "SELECT 1 AS n");
    sandbox.write("queries/flapping.sql", "SELECT 1 AS n");
    for asked in ["SELECT 1 AS n", "mine"] {
        let ran = sandbox.run(["query", "-o", "csv", asked]).succeeded();
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("n\n1\n", ""), "{asked}");
    }
    // Not even one that ships stands in for a file of its name.
    for asked in ["broken", "flapping"] {
        sandbox.run(["query", asked]).refused(&[&format!("{asked}.sql"), "-- title", "docs/query.md"]);
    }
    let listed = sandbox.run(["query", "--list"]).succeeded();
    assert!(listed.out.contains("mine") && listed.out.contains("stale-sources"), "{}", listed.out);
    assert!(listed.err.contains("broken.sql") && listed.err.contains("flapping.sql"), "{}", listed.err);
}

#[cfg(feature = "sql")]
#[test]
fn secrets_stay_sealed() {
    let sandbox = Sandbox::new();
    sandbox.write("driftline.toml", "[[seal]]\ntype = \"Thing\"\npath = \"/password\"\n");
    sandbox.observe_things(0, &[thing("a", json!({"password": "hunter2", "size": 1}))]);
    sandbox.observe_things(1, &[thing("a", json!({"password": "hunter3", "size": 1}))]);
    for sql in ["SELECT * FROM history", "SELECT * FROM changes", "SELECT * FROM resources"] {
        let ran = sandbox.run(["query", "-o", "csv", sql]).succeeded();
        assert!(ran.out.contains("$sealed") && !ran.out.contains("hunter"), "{}", ran.out);
    }
}

#[cfg(feature = "sql")]
#[test]
fn a_query_that_takes_too_long_ends_and_leaves_nothing() {
    let sandbox = Sandbox::with_demo();
    let long =
        "SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b WHERE a.value < b.value";
    let folder = sandbox.path("tmp");
    std::fs::create_dir(&folder).unwrap();
    let ran = sandbox.run_with(&[("TMPDIR", folder.to_str().unwrap())], ["query", long, "--timeout", "1s"]);
    ran.refused(&["not done within 1 s", "--timeout"]);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    let mut child = sandbox
        .command(["query", long])
        .env("TMPDIR", &folder)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while std::fs::read_dir(&folder).unwrap().count() == 0 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    crate::support::ran(&child.wait_with_output().unwrap()).exited(130);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "what was put aside is gone");
}

#[cfg(feature = "sql")]
#[test]
fn packing_versions_changes_no_answer() {
    let questions = [
        "SELECT count(*) AS n FROM history",
        "SELECT version, op, count(*) AS n FROM history GROUP BY version, op ORDER BY version, op",
        "SELECT version, id, op, changes FROM changes ORDER BY version, id",
        "SELECT version, id, op FROM changes WHERE version = 13 ORDER BY id",
        "SELECT id, hash, seen, properties, changed_at FROM resources ORDER BY id",
        "SELECT id, hash, seen, properties, changed_at FROM resources_at('test', 9) ORDER BY id",
        "SELECT count(*) AS n FROM resources_at('test', 12)",
        "SELECT id, status, changes FROM findings ORDER BY id",
    ];
    let sandbox = Sandbox::new();
    for at in 0..20 {
        let things: Vec<_> =
            (0..6 + at % 3).map(|n| thing(&format!("t{n}"), json!({"n": n * (at / (n + 1))}))).collect();
        sandbox.observe_things(at, &things);
        if at == 4 {
            sandbox.run(["baseline", "set"]).succeeded();
        }
    }
    let ask = |sql: &str| sandbox.json(["query", sql])["rows"].clone();
    let before = questions.map(ask);
    assert!(before.iter().all(|rows| !rows.as_array().unwrap().is_empty()), "{before:?}");
    sandbox.run(["gc", "--keep", "10000d", "--grace", "0s"]).succeeded().prints(&["packed 19 files"]);
    for (sql, before) in questions.iter().zip(before) {
        assert_eq!(ask(sql), before, "{sql}");
    }
}
