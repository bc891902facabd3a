//! `jsonata`: what is printed, where, and with which exit code.

use serde_json::{Value as Json, json};

use crate::support::Sandbox;

#[test]
fn a_value_is_printed_as_json_and_nothing_is_said_beside_it() {
    let sandbox = Sandbox::new();
    sandbox.write("zone.json", r#"{"Name": "Example.COM", "n": 2}"#);
    for (expression, file, expected) in [
        ("$lowercase(Name) & '.'", Some("zone.json"), "\"example.com.\"\n"),
        ("n + 1", Some("zone.json"), "3\n"),
        ("{'b': n / 4, 'a': [null, true]}", Some("zone.json"), "{\"b\":0.5,\"a\":[null,true]}\n"),
        ("null", None, "null\n"),
        ("-1", None, "-1\n"),
    ] {
        let ran = sandbox.run(["jsonata", "-e", expression].into_iter().chain(file)).succeeded();
        assert_eq!((ran.out.as_str(), ran.err.as_str()), (expected, ""), "{expression}");
    }
    let ran = sandbox.feed(
        b"[1, 2, 3]",
        ["jsonata", "-e", "$sum($) * $by & $unit", "-", "--bind", "by=2", "--bind", "$unit=\"ms\""],
    );
    assert_eq!(ran.succeeded().out, "\"12ms\"\n");
}

#[test]
fn nothing_is_not_null_and_not_an_error() {
    let sandbox = Sandbox::new();
    let ran = sandbox.feed(br#"{"a": 1}"#, ["jsonata", "-e", "b", "-"]).succeeded().says(&["undefined"]);
    assert_eq!(ran.out, "");
    assert_eq!(sandbox.run(["-q", "jsonata", "-e", "b"]).succeeded().err, "");
}

#[test]
fn an_error_has_its_code_and_the_exit_code_1() {
    let sandbox = Sandbox::new();
    sandbox.write("bad.json", "{");
    sandbox.write("deep.json", "[".repeat(100_000));
    for (arguments, words) in [
        (&["-e", "1 +"][..], &["S0207"][..]),
        (&["-e", "$lowercase(1)"], &["T0410"]),
        (&["-e", "($f := function(){$f()}; $f())"], &["D1012"]),
        (&["-e", "$pad('', 1e300)"], &["U1101"]),
        (&["-e", "a", "missing.json"], &["missing.json"]),
        (&["-e", "a", "bad.json"], &["bad.json", "not JSON"]),
        (&["-e", "a", "deep.json"], &["deep.json", "not JSON"]),
        (&["-e", "a", "--bind", "x"], &["`x`", "--bind name=JSON"]),
        (&["-e", "a", "--bind", "x=y"], &["`x`", "not JSON"]),
    ] {
        sandbox.run(["jsonata"].iter().chain(arguments)).refused(words);
    }
}

#[test]
fn a_batch_answers_every_line_in_order_and_no_line_ends_it() {
    let sandbox = Sandbox::new();
    let lines = [
        r#"{"expr": "a", "data": {"a": [1]}}"#,
        r#"{"expr": "b", "data": {"a": 1}}"#,
        r#"{"expr": "$x & $y", "bindings": {"x": "1", "y": null}}"#,
        "",
        "not JSON",
        "[1]",
        r#"{"expr": 1}"#,
        "\u{1}",
        r#"{"expr": "1 +", "data": null}"#,
        r#"{"expr": "$parseInteger(' x ', '###０')"}"#,
        r#"{"expr": "$pad('', 1e9)"}"#,
        r#"{"expr": "$string(1e21)"}"#,
    ];
    let expected = [
        json!({"value": [1]}),
        json!({"undefined": true}),
        json!({"value": "1null"}),
        json!({"error": {"code": null}}),
        json!({"error": {"code": null}}),
        json!({"error": {"code": null}}),
        json!({"error": {"code": null}}),
        json!({"error": {"code": null}}),
        json!({"error": {"code": "S0207"}}),
        json!({"error": {"code": "U1109"}}),
        json!({"error": {"code": "U1101"}}),
        json!({"value": "1e+21"}),
    ];
    let ran = sandbox.feed(lines.join("\n").as_bytes(), ["jsonata", "--batch"]).succeeded();
    assert_eq!(ran.err, "");
    let answers: Vec<Json> = ran
        .out
        .lines()
        .map(|line| {
            let mut answer: Json = serde_json::from_str(line).unwrap();
            if let Some(error) = answer.get_mut("error") {
                assert!(error.as_object_mut().unwrap().remove("message").unwrap().is_string());
            }
            answer
        })
        .collect();
    assert_eq!(answers, expected);
    sandbox.write("lines.jsonl", lines.join("\n"));
    assert_eq!(sandbox.run(["jsonata", "--batch", "lines.jsonl"]).succeeded().out, ran.out);
}
