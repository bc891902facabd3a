//! Severity, and the reports that carry it: HTML, SARIF, JUnit, Markdown, workflow annotations.

use std::fs;
use std::process::Command;

use serde_json::{Value as Json, json};

use crate::support::{Sandbox, observation, observation_of, resource, skip, thing, thing_at, variable};

const VALIDATOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sarif/validate.mjs");
const GROUP: &str = "AWS::EC2::SecurityGroup";
const BUCKET: &str = "AWS::S3::Bucket";

fn group(id: &str, from: &str) -> Json {
    thing_at(GROUP, "aws/1/eu-west-1", id, json!({"ingress": [{"cidrIp": from, "fromPort": 22}]}))
}

fn bucket(id: &str, versioning: &str, team: &str) -> Json {
    let snapshot = json!({"versioningConfiguration": {"status": versioning}, "tags": {"team": team}});
    thing_at(BUCKET, "aws/1/eu-west-1", id, snapshot)
}

/// One finding of each severity that the table has for these, and one thing that nobody expected.
fn graded() -> Sandbox {
    let sandbox = Sandbox::new();
    let before = [
        group("opened", "10.0.0.0/8"),
        group("closed", "0.0.0.0/0"),
        bucket("suspended", "Enabled", "a"),
        bucket("tagged", "Enabled", "a"),
        bucket("protected", "Suspended", "a"),
        thing("changed", json!({"size": 1})),
        thing("gone", json!({"size": 1})),
    ];
    sandbox.observe_things(0, &before);
    sandbox.run(["baseline", "set"]).succeeded();
    let after = [
        group("opened", "0.0.0.0/0"),
        group("closed", "10.0.0.0/8"),
        bucket("suspended", "Suspended", "a"),
        bucket("tagged", "Enabled", "b"),
        bucket("protected", "Enabled", "a"),
        thing("changed", json!({"size": 2})),
        thing("new", json!({"size": 1})),
    ];
    sandbox.observe_things(1, &after);
    sandbox
}

#[test]
fn each_finding_has_a_severity_by_type_place_and_direction() {
    let sandbox = graded();
    let report = sandbox.drift([]);
    for (id, severity) in [
        ("opened", "critical"),
        ("closed", "low"),
        ("suspended", "high"),
        ("protected", "info"),
        ("tagged", "low"),
        ("changed", "medium"),
        ("gone", "high"),
        ("new", "low"),
    ] {
        let one = resource(&report, id);
        assert_eq!(one["severity"], severity, "{id}");
        // Where no row speaks of it there is no reason to give.
        assert_eq!(one.get("severityReason").is_some(), id != "changed", "{id}");
        for change in one["changes"].as_array().unwrap() {
            assert_eq!(change["severity"], severity, "{id}");
        }
    }
    let counts = json!({"critical": 1, "high": 2, "medium": 1, "low": 3, "info": 1});
    assert_eq!(report["summary"]["severity"], counts);
    // The worst stands on top, and the counts beside the title.
    let table = sandbox.run(["drift"]).exited(2).out;
    assert!(table.contains("modified or deleted: 1 critical, 2 high, 1 medium, 2 low, 1 info"), "{table}");
    let at = |text: &str| table.find(text).unwrap();
    assert!(at("opened") < at("suspended") && at("suspended") < at("changed") && at("changed") < at("protected"));
}

#[test]
fn where_and_fail_on_know_severities() {
    let sandbox = graded();
    let found = |filter: &str| sandbox.drift(["--where", filter])["resources"].as_array().unwrap().len();
    assert_eq!(found("severity == 'critical'"), 1);
    assert_eq!(found("severity in ['critical', 'high']"), 3);
    assert_eq!(found("changes.exists(c, c.severity == 'high')"), 1);
    for level in ["critical", "high", "medium", "low"] {
        sandbox.run(["drift", "--fail-on", level]).exited(2);
    }
    let no_worse = |than: &str| sandbox.run(["drift", "--where", "severity != 'critical'", "--fail-on", than]).code;
    assert_eq!([no_worse("critical"), no_worse("high")], [0, 2]);
    let only_new = |than: &str| sandbox.run(["drift", "--where", "status == 'unknown'", "--fail-on", than]).code;
    assert_eq!([only_new("medium"), only_new("low"), only_new("drifted")], [0, 2, 0]);
    sandbox.run(["drift", "--fail-on", "critical", "--exit-zero"]).succeeded();
    sandbox.run_with(&[("DRIFTLINE_FAIL_ON", "high")], ["drift"]).exited(2);
    sandbox.run(["drift", "--fail-on", "urgent"]).exited(1).says(&["critical", "never"]);
}

#[test]
fn severities_of_the_configuration_go_first() {
    let sandbox = graded();
    sandbox.write(
        "driftline.toml",
        r#"
        [[severity]]
        type = "Thing"
        path = "/size"
        when = 'type(actual) == int && actual > expected'
        level = "critical"
        reason = "things must not grow"

        [[severity]]
        type = "AWS::EC2::SecurityGroup"
        id = "opened"
        level = "info"
        reason = "this one is meant to be open"

        [[severity]]
        when = 'resource.kind == "deleted"'
        level = "low"
        reason = "nobody misses it"
        "#,
    );
    let report = sandbox.drift([]);
    let told = |id: &str| {
        let one = resource(&report, id);
        [one["severity"].as_str().unwrap().to_owned(), one["severityReason"].as_str().unwrap().to_owned()]
    };
    assert_eq!(told("changed"), ["critical", "things must not grow"]);
    assert_eq!(told("opened"), ["info", "this one is meant to be open"]);
    assert_eq!(told("gone"), ["low", "nobody misses it"]);
    assert_eq!(told("suspended")[0], "high");
    let view = sandbox.run(["config", "view"]).succeeded();
    view.prints(&["critical type=Thing path=/size when=type(actual) == int", "driftline.toml [[severity]] 3"]);
    sandbox.write("driftline.toml", "[[severity]]\nwhen = 'actual > 5'\nlevel = \"low\"\nreason = \"x\"\n");
    sandbox.run(["drift"]).refused(&["[[severity]] 1", "cannot be answered", "what is not there is null"]);
}

/// Ids, types, places, paths and values that try to be markup, commands, or invisible.
fn nasty() -> Vec<String> {
    vec![
        "<script>alert(1)</script>".into(),
        "\"><img src=x onerror=alert(1)>".into(),
        "'/><svg/onload=alert(1)>".into(),
        "javascript:alert(1)".into(),
        "</style></title><script>".into(),
        "]]><![CDATA[<x>".into(),
        "<!-- --> &lt; &amp;lt; &#x3c;script&#x3e;".into(),
        "::error::forged\n::stop-commands::x".into(),
        "a%0Ab%,c:d".into(),
        "\u{202e}gpj.exe \u{2066}x\u{2069} \u{200b}zero\u{feff}".into(),
        "nul \u{0} esc \u{1b}[2J del \u{7f} c1 \u{9b} ffff \u{ffff} fffe \u{fffe}".into(),
        "| a `b` **c** [d](javascript:e) @everyone".into(),
        "two\nlines\r\nresult: 0 drifted".into(),
        format!("long {}", "<&\"".repeat(5_000)),
        "😀 ünïcödé 日本語".into(),
    ]
}

fn with_nasty() -> Sandbox {
    let sandbox = Sandbox::new();
    let things = |value: &str| -> Vec<Json> {
        let named = |name: &String| thing_at(name, name, name, json!({name: value, "nested": {"x": [name, value]}}));
        nasty().iter().map(named).collect()
    };
    let gap = json!([{"type": "*", "place": "*", "outcome": "complete"}]);
    sandbox.observe(&observation_of("test", 0, gap.clone(), &things("before"))).succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.observe(&observation_of("test", 1, gap, &things("<b>\u{202e}after\u{0}</b>"))).succeeded();
    sandbox
}

/// Fails unless every element is closed in order, attributes are quoted, and only these elements are there.
#[track_caller]
fn assert_well_formed(text: &str, void: &[&str], known: &[&str]) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "a stray `>` before {:.80}", &rest[start..]);
        let end = start + rest[start..].find('>').unwrap();
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if tag.starts_with(['!', '?']) {
            assert!(open.is_empty(), "`<{tag}>` inside of the document");
            continue;
        }
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap();
        assert!(known.contains(&name), "`<{tag}>` is an element that nobody wrote");
        assert_eq!(tag.matches('"').count() % 2, 0, "`<{tag}>`");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "`<{tag}>` closes another element");
        } else if !tag.ends_with('/') && !void.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty() && !rest.contains('>'), "{open:?} stay open");
}

const HTML: &[&str] = &[
    "html", "head", "meta", "title", "style", "body", "a", "header", "h1", "h2", "h3", "h4", "p", "time", "nav", "ul",
    "li", "main", "section", "dl", "div", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td", "span",
    "strong", "article", "code", "del", "ins", "details", "summary", "footer",
];

fn is_hidden(char: char) -> bool {
    (char.is_control() && char != '\n') || "\u{200b}\u{feff}\u{202e}\u{2066}\u{2069}\u{ffff}\u{fffe}".contains(char)
}

/// The style has `>` in it, as it may.
fn without_style(page: &str) -> String {
    let (before, rest) = page.split_once("<style>").unwrap();
    let (_, after) = rest.split_once("</style>").unwrap();
    format!("{before}<style></style>{after}")
}

#[test]
fn nothing_in_a_name_is_markup_in_the_page() {
    let sandbox = with_nasty();
    for more in [&[][..], &["--all"]] {
        let ran = sandbox.run(["drift", "-o", "html"].iter().chain(more)).exited(2);
        let page = without_style(&ran.out);
        assert_well_formed(&page, &["meta"], HTML);
        assert_eq!(page.chars().find(|char| is_hidden(*char) && !"\u{ffff}\u{fffe}".contains(*char)), None);
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("\\u{202e}gpj.exe"));
        assert!(page.contains("default-src 'none'; style-src 'unsafe-inline'"));
        // Links lead to parts of the page and nowhere else.
        assert!(page.match_indices("href=\"").all(|(at, _)| page[at + 6..].starts_with('#')));
        // No attribute has anything of a name in it: all there are, are these.
        let tags = page.split('<').skip(1).filter_map(|tag| tag.split_once('>')).map(|(tag, _)| tag);
        for attribute in tags.flat_map(|tag| tag.split('"').step_by(2)).filter_map(|part| part.split(' ').next_back()) {
            let known =
                ["lang=", "charset=", "name=", "content=", "http-equiv=", "class=", "href=", "datetime=", "id="];
            let more = ["aria-label=", "aria-labelledby=", "scope=", "role=", "tabindex="];
            let known = known.iter().chain(&more).any(|known| attribute == *known);
            assert!(known || !attribute.contains('='), "`{attribute}` is an attribute that nobody wrote");
        }
        assert_eq!(page.matches("<article>").count(), nasty().len());
    }
}

#[test]
fn the_page_has_headings_tables_with_scope_and_all_its_parts() {
    let sandbox = graded();
    let page = sandbox.run(["drift", "-o", "html"]).exited(2).out;
    for part in [
        "<html lang=\"en\">",
        "<h1>Drift</h1>",
        "<h2 id=\"overview\">",
        "<h2 id=\"findings\">",
        "<h2 id=\"not-checked\">",
        "<h2 id=\"excused\">",
        "<h3>critical (1)</h3>",
        "<caption>Sources and their freshness</caption>",
        "<caption>By type</caption>",
        "<strong class=\"stale\">stale</strong>",
        "<th scope=\"row\">/ingress/0/cidrIp</th><td><del>\"10.0.0.0/8\"</del></td><td><ins>\"0.0.0.0/0\"</ins></td>",
        "prefers-color-scheme: dark",
        "@media print",
    ] {
        assert!(page.contains(part), "{part} is not in the page");
    }
    assert_eq!(page.matches("<th").count() - page.matches("<thead").count(), page.matches("scope=").count());
    let once = sandbox.run(["drift", "-o", "html", "--where", "false"]).exited(0).out;
    assert!(once.contains("Nothing drifted") && !once.contains("<article>"));
}

#[test]
fn junit_counts_what_it_lists_and_stays_xml() {
    let sandbox = with_nasty();
    let text = sandbox.run(["drift", "-o", "junit"]).exited(2).out;
    let known = ["testsuites", "testsuite", "properties", "property", "testcase", "failure", "skipped", "system-out"];
    assert_well_formed(&text, &[], &known);
    assert_eq!(text.chars().find(|char| is_hidden(*char)), None);
    let total = nasty().len();
    assert!(
        text.contains(&format!("tests=\"{total}\" failures=\"{total}\" errors=\"0\" skipped=\"0\"")),
        "{text:.300}"
    );
    assert_eq!(text.matches("<testcase ").count(), total);

    let sandbox = Sandbox::new();
    sandbox.observe_things(0, &[thing("a", json!({"x": 1})), thing_at("Thing", "there", "hidden", json!({}))]);
    sandbox.run(["baseline", "set"]).succeeded();
    let partial = json!([
        {"type": "*", "place": "here", "outcome": "complete"},
        {"type": "*", "place": "there", "outcome": "partial", "reason": "thr<ott>led"},
    ]);
    let now = [thing("a", json!({"x": 2})), thing("b", json!({}))];
    sandbox.observe(&observation_of("test", 1, partial, &now)).succeeded();
    let text = sandbox.run(["drift", "-o", "junit"]).exited(2).out;
    assert_well_formed(&text, &[], &known);
    assert!(text.contains("<testsuite name=\"test\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{text}");
    assert!(
        text.contains("<skipped message=\"not checked: the live listing was partial: thr&lt;ott&gt;led\"/>"),
        "{text}"
    );
    let text = sandbox.run(["drift", "-o", "junit", "--fail-on", "unknown"]).exited(2).out;
    assert!(text.contains("tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"1\""), "{text}");
}

#[track_caller]
fn assert_valid_sarif(sandbox: &Sandbox, log: &str) {
    let Some(folder) = variable("DRIFTLINE_TEST_SARIF") else {
        skip("DRIFTLINE_TEST_SARIF names no folder with tests/sarif installed");
        return;
    };
    let output = Command::new("node").arg(VALIDATOR).arg(folder).arg(sandbox.path(log)).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
}

fn sarif(sandbox: &Sandbox, more: &[&str]) -> Json {
    sandbox.run(["drift", "--exit-zero", "-o", "sarif=log.sarif"].iter().chain(more)).succeeded();
    assert_valid_sarif(sandbox, "log.sarif");
    serde_json::from_slice(&fs::read(sandbox.path("log.sarif")).unwrap()).unwrap()
}

fn results(log: &Json) -> Vec<&Json> {
    log["runs"][0]["results"].as_array().unwrap().iter().collect()
}

fn result<'a>(log: &'a Json, id: &str) -> &'a Json {
    results(log).into_iter().find(|one| one["properties"]["canonicalId"] == id).unwrap()
}

#[test]
fn sarif_is_what_its_schema_says_and_tells_severity() {
    let sandbox = graded();
    let log = sarif(&sandbox, &[]);
    assert_eq!(results(&log).len(), 8);
    for (id, rule, level) in [
        ("opened", "modified", "error"),
        ("gone", "deleted", "error"),
        ("changed", "modified", "warning"),
        ("new", "unknown", "note"),
        ("protected", "modified", "note"),
    ] {
        let one = result(&log, id);
        assert_eq!((&one["ruleId"], &one["level"]), (&json!(rule), &json!(level)), "{id}");
        assert_eq!(one["baselineState"], "new", "{id}");
        let index = usize::try_from(one["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(log["runs"][0]["tool"]["driver"]["rules"][index]["id"], rule);
    }
    sarif(&with_nasty(), &[]);
    sarif(&Sandbox::with_demo(), &["--all"]);
}

#[test]
fn a_result_keeps_its_fingerprint_and_tells_what_became_of_it() {
    let sandbox = graded();
    let first = sarif(&sandbox, &[]);
    // The one stays as it is, another changes again, one is back, one is new.
    let next = [
        group("opened", "0.0.0.0/0"),
        group("closed", "0.0.0.0/0"),
        bucket("suspended", "Suspended", "new"),
        bucket("tagged", "Enabled", "c"),
        bucket("protected", "Enabled", "a"),
        thing("changed", json!({"size": 3})),
        thing("new", json!({"size": 1})),
    ];
    sandbox.observe_things(2, &next);
    let second = sarif(&sandbox, &[]);
    let fingerprint = |one: &Json| one["partialFingerprints"]["driftlineFinding/v1"].as_str().unwrap().to_owned();
    for (id, state) in [
        ("opened", "unchanged"),
        ("tagged", "updated"),
        ("changed", "updated"),
        ("gone", "unchanged"),
        ("new", "unchanged"),
    ] {
        assert_eq!(fingerprint(result(&first, id)), fingerprint(result(&second, id)), "{id}");
        assert_eq!(result(&second, id)["baselineState"], state, "{id}");
    }
    assert!(!results(&second).iter().any(|one| one["properties"]["canonicalId"] == "closed"), "it is back");
    let states: Vec<(&Json, &Json)> = results(&second)
        .into_iter()
        .filter(|one| one["properties"]["canonicalId"] == "suspended")
        .map(|one| (&one["properties"]["path"], &one["baselineState"]))
        .collect();
    let (tag, status) = (json!("/tags/team"), json!("/versioningConfiguration/status"));
    assert_eq!(states, [(&tag, &json!("new")), (&status, &json!("unchanged"))]);
    let mut all: Vec<String> = results(&second).into_iter().map(fingerprint).collect();
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count, "no two results have one fingerprint");
    // Between two versions there is no version before to go by.
    let between = sarif(&sandbox, &["--between", "v1", "v3"]);
    assert!(results(&between).iter().all(|one| one.get("baselineState").is_none()));
}

#[test]
fn what_a_rule_excuses_is_suppressed_with_its_reason_and_bounded() {
    let sandbox = graded();
    sandbox.write("driftline.toml", "[[ignore]]\ntype = \"Thing\"\npath = \"/size\"\nreason = \"we <know>\"\n");
    let log = sarif(&sandbox, &[]);
    let one = result(&log, "changed");
    assert_eq!(one["suppressions"][0]["kind"], "external");
    assert!(one["suppressions"][0]["justification"].as_str().unwrap().contains("we <know>"), "{one}");
    let page = sandbox.run(["drift", "-o", "html"]).exited(2).out;
    assert!(page.contains("driftline.toml [[ignore]] 1") && page.contains("we &lt;know&gt;"));

    let log = sarif(&Sandbox::with_demo(), &[]);
    let suppressed = results(&log).iter().filter(|one| one.get("suppressions").is_some()).count();
    let properties = &log["runs"][0]["properties"];
    let unlisted = usize::try_from(properties["excusedNotListed"].as_u64().unwrap()).unwrap();
    assert_eq!(json!(suppressed + unlisted), properties["summary"]["excused"]);
    let told: u64 = log["runs"][0]["invocations"][0]["toolExecutionNotifications"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|one| one["properties"]["types"].as_object().unwrap().values())
        .map(|number| number.as_u64().unwrap())
        .sum();
    assert_eq!(json!(told), properties["summary"]["notChecked"]);
}

/// This many findings, each with an id as long as ARNs are and three changes.
fn crowd(number: usize) -> Sandbox {
    let sandbox = Sandbox::new();
    let things = |state: &str| -> Vec<Json> {
        (0..number)
            .map(|at| {
                let id = format!("arn:aws:rds:eu-central-1:123456789012:db:application-database-{at:06}");
                let snapshot = json!({"engineVersion": state, "parameterGroup": state, "window": {"start": state}});
                thing_at("AWS::RDS::DBInstance", "aws/123456789012/eu-central-1", &id, snapshot)
            })
            .collect()
    };
    sandbox.observe(&observation(0, &things("before the change"))).succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.observe(&observation(1, &things("after the change"))).succeeded();
    sandbox
}

/// The number in `… and N more`.
fn omitted(text: &str) -> usize {
    let Some((_, rest)) = text.split_once("… and ") else { return 0 };
    rest.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn reports_are_bounded_and_count_what_they_leave_out() {
    let sandbox = crowd(5_000);
    sandbox.write("summary.md", "x".repeat(900_000));
    let summary = sandbox.path("summary.md");
    let variables = [("GITHUB_STEP_SUMMARY", summary.to_str().unwrap())];
    let formats = ["-o", "github", "-o", "html=r.html", "-o", "markdown=r.md"];
    let ran = sandbox.run_with(&variables, ["drift", "--limit", "0"].iter().chain(&formats)).exited(2);
    let read = |name: &str| fs::read_to_string(sandbox.path(name)).unwrap();

    let page = read("r.html");
    assert!(page.len() <= 5_000_000, "{} bytes", page.len());
    assert_eq!(page.matches("<article>").count(), 5_000, "all of them have a place");
    assert_well_formed(&without_style(&page), &["meta"], HTML);

    let comment = read("r.md");
    assert!(comment.chars().count() <= 60_000 && comment.len() > 40_000, "{}", comment.len());
    assert_eq!(comment.matches("\n| modified |").count() + omitted(&comment), 5_000);
    assert_eq!(comment.matches("<details").count(), comment.matches("</details>").count());
    assert!(comment.ends_with("(of 5000)\n"), "the result is there: {}", &comment[comment.len() - 200..]);

    let annotations: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("::")).collect();
    assert_eq!(annotations.len(), 10);
    assert!(annotations[9].contains("4991 more"), "{}", annotations[9]);

    let summary = read("summary.md");
    assert!(summary.starts_with("xxx") && summary.len() <= 1 << 20 && summary.len() > 1_000_000, "{}", summary.len());
    assert_eq!(summary.matches("\n| modified |").count() + omitted(&summary), 5_000);
    sandbox.write("summary.md", "x".repeat(1 << 20));
    sandbox.run_with(&variables, ["drift", "-o", "github"]).exited(2).says(&["no room left"]);
    assert_eq!(read("summary.md").len(), 1 << 20);
}

#[test]
fn annotations_are_one_line_each_and_go_with_a_table() {
    let sandbox = with_nasty();
    let ran = sandbox.run(["drift", "-o", "github"]).exited(2);
    for line in ran.out.lines() {
        let is_command =
            ["::error title=", "::warning title=", "::notice title="].iter().any(|start| line.starts_with(start));
        assert!(is_command || line.starts_with("result: "), "{line:.200}");
    }
    assert_eq!(ran.out.lines().filter(|line| line.starts_with("result: ")).count(), 1);
    assert_eq!(ran.out.chars().find(|char| is_hidden(*char)), None);
    let sandbox = graded();
    let both = sandbox.run(["drift", "-o", "table", "-o", "github"]).exited(2);
    both.prints(&["DRIFTED 7", "::error title=critical%3A modified AWS%3A%3AEC2%3A%3ASecurityGroup::opened"]);
    sandbox.run(["drift", "-o", "json", "-o", "github"]).refused(&["only one output"]);
}

#[test]
fn a_comment_calls_nobody_and_has_no_markup_of_others() {
    let sandbox = with_nasty();
    let comment = sandbox.run(["drift", "-o", "markdown"]).exited(2).out;
    assert!(!comment.contains("<script") && !comment.contains("<img") && !comment.contains("<svg"));
    assert!(!comment.contains("@everyone"), "{comment}");
    assert_eq!(comment.chars().find(|char| is_hidden(*char) && !"\u{ffff}\u{fffe}".contains(*char)), None);
    let rows = comment.lines().filter(|line| line.starts_with("| modified |")).count();
    assert_eq!(rows + omitted(&comment), nasty().len());
}

#[test]
fn a_file_is_replaced_whole_and_a_device_is_written_to() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let sandbox = graded();
    let target = sandbox.write("real.html", "old");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&target, sandbox.path("link.html")).unwrap();
    let outputs = ["-o", "html=link.html", "-o", "sarif=new.sarif", "-o", "json=/dev/null", "-o", "table"];
    sandbox.run(["drift"].iter().chain(&outputs)).exited(2).prints(&["DRIFTED 7"]);
    assert!(fs::symlink_metadata(sandbox.path("link.html")).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().starts_with("<!DOCTYPE html>"));
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    let left: Vec<_> = fs::read_dir(sandbox.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".part")), "{left:?}");
    sandbox.run(["drift", "-o", "html=/dev/full"]).exited(1).says(&["/dev/full"]);
    // A command that cannot do all that is asked does nothing.
    sandbox.run(["log", "-o", "json=log.json", "-o", "html=log.html"]).refused(&["no html output", "drift"]);
    assert!(!sandbox.path("log.json").exists());
}

#[test]
fn compare_and_diff_write_the_same_reports() {
    let sandbox = Sandbox::new();
    let bucket = |block: bool| json!({"BucketName": "b", "PublicAccessBlockConfiguration": {"BlockPublicAcls": block}});
    sandbox.write("declared.json", bucket(true).to_string());
    sandbox.write("live.json", bucket(false).to_string());
    let compare = ["compare", "--type", BUCKET, "declared.json", "live.json", "-o", "sarif=log.sarif", "-o"];
    let run = |format: &'static str| sandbox.run(compare.into_iter().chain([format])).exited(2).out;
    assert_well_formed(&without_style(&run("html")), &["meta"], HTML);
    run("junit");
    let path = "/PublicAccessBlockConfiguration/BlockPublicAcls";
    assert!(run("markdown").contains(path));
    assert!(run("github").starts_with("::error title=critical%3A modified"));
    assert_valid_sarif(&sandbox, "log.sarif");
    let log: Json = serde_json::from_slice(&fs::read(sandbox.path("log.sarif")).unwrap()).unwrap();
    assert_eq!(results(&log)[0]["properties"]["path"], path);

    sandbox.write("a.json", observation(0, &[thing("x", json!({"v": 1}))]).to_string());
    sandbox.write("b.json", observation(1, &[thing("x", json!({"v": 2}))]).to_string());
    sandbox.run(["diff", "a.json", "b.json", "-o", "sarif=log.sarif", "--fail-on", "high"]).succeeded();
    assert_valid_sarif(&sandbox, "log.sarif");
}
