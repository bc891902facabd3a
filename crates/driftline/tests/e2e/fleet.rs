//! `fleet`: what needs a person stands first, and nothing that was not seen is in sync.

use serde_json::{Value as Json, json};

use crate::support::Sandbox;

const FUNCTION: &str = "AWS::Lambda::Function";
const GROUP: &str = "AWS::EC2::SecurityGroup";
const MEMBER: &str = "AWS::Organizations::Account";
const MANAGER: &str = "999999999999";

fn account(nth: u32) -> String {
    nth.to_string().repeat(12)
}

fn function(account: &str, region: &str, timeout: u32) -> Json {
    json!({"canonicalId": format!("arn:aws:lambda:{region}:{account}:function:f"), "resourceType": FUNCTION,
        "snapshot": {"timeout": timeout}})
}

fn group(account: &str, rules: u32) -> Json {
    json!({"canonicalId": format!("arn:aws:ec2:us-east-1:{account}:security-group/sg-1"), "resourceType": GROUP,
        "snapshot": {"ingressRuleCount": rules}})
}

fn complete(account: &str, region: &str) -> Json {
    json!({"type": "*", "place": format!("aws/{account}/{region}"), "outcome": "complete"})
}

struct Fleet {
    sandbox: Sandbox,
}

impl Fleet {
    /// An observation of one account in one region, taken so many hours ago.
    fn observe(&self, source: &str, scope: Option<&str>, hours: i64, coverage: &[Json], resources: &[Json]) {
        self.observe_at(source, scope, &jiff_now(hours), coverage, resources);
    }

    fn observe_at(&self, source: &str, scope: Option<&str>, at: &str, coverage: &[Json], resources: &[Json]) {
        let mut observation = json!({"schema": "driftline.observation/v1", "source": source, "takenAt": at,
            "coverage": coverage, "resources": resources});
        if let Some(scope) = scope {
            observation["scope"] = json!(scope);
        }
        self.sandbox.observe(&observation).succeeded();
    }

    fn regional(&self, account: &str, hours: i64, coverage: &Json, resources: &[Json]) {
        let scope = format!("{account}/us-east-1");
        self.observe("inventory", Some(&scope), hours, std::slice::from_ref(coverage), resources);
    }

    /// A list of an organization's accounts, as a run that began at this time keeps it.
    fn listed(&self, of: &str, at: &str, accounts: &[(&str, &str)]) {
        let account = |(id, state): &(&str, &str)| {
            json!({"canonicalId": format!("arn:aws:organizations::{MANAGER}:account/o-ab/{id}"), "resourceType": MEMBER,
                "snapshot": {"id": id, "name": format!("of {id}"), "state": state}})
        };
        let accounts: Vec<Json> = accounts.iter().map(account).collect();
        let coverage = [complete(MANAGER, "global")];
        self.observe_at("organization", Some(&format!("{MANAGER}/{of}")), at, &coverage, &accounts);
    }

    /// The accounts that are expected and were never seen.
    fn missing(&self, more: &[&str]) -> Vec<String> {
        let missing = |(account, status): (String, String)| (status == "missing").then_some(account);
        self.statuses(more).into_iter().filter_map(missing).collect()
    }

    fn rows(&self, more: &[&str]) -> Vec<Json> {
        let answer = self.sandbox.json(["fleet"].iter().chain(more));
        assert_eq!(answer["schema"], "driftline.fleet/v1");
        answer["accounts"].as_array().unwrap().clone()
    }

    fn statuses(&self, more: &[&str]) -> Vec<(String, String)> {
        let text = |row: &Json, name: &str| row[name].as_str().unwrap().to_owned();
        self.rows(more).iter().map(|row| (text(row, "account"), text(row, "status"))).collect()
    }
}

/// So many hours ago, as the program reads it.
fn jiff_now(hours: i64) -> String {
    let script = format!("-{hours} hours");
    let output =
        std::process::Command::new("date").args(["-u", "-d", &script, "+%Y-%m-%dT%H:%M:%SZ"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// 1 is in sync, 2 drifted badly, 3 is stale, 4 was seen in part, 5 drifted a little, 6 has something new, and 7 is in
/// no baseline; 8 is expected and was never seen.
fn fleet() -> Fleet {
    let fleet = Fleet { sandbox: Sandbox::new() };
    for nth in 1..=6 {
        let account = account(nth);
        fleet.regional(
            &account,
            40,
            &complete(&account, "us-east-1"),
            &[function(&account, "us-east-1", 3), group(&account, 0)],
        );
    }
    fleet.sandbox.run(["baseline", "set"]).succeeded();
    for nth in [1, 2, 4, 5, 6, 7] {
        let account = account(nth);
        let timeout = if nth == 5 { 30 } else { 3 };
        let mut resources = vec![function(&account, "us-east-1", timeout), group(&account, u32::from(nth == 2))];
        let mut coverage = complete(&account, "us-east-1");
        if nth == 4 {
            coverage = json!({"type": "*", "place": format!("aws/{account}/us-east-1"), "outcome": "partial", "reason": "throttled"});
            resources.pop();
        }
        if nth == 6 {
            let mut new = function(&account, "us-east-1", 3);
            new["canonicalId"] = json!(format!("arn:aws:lambda:us-east-1:{account}:function:new"));
            resources.push(new);
        }
        fleet.regional(&account, 1, &coverage, &resources);
    }
    let expected: Vec<String> = [1, 2, 3, 4, 5, 6, 8].map(|nth| format!("{} team-{nth}", account(nth))).into();
    fleet.sandbox.write("expected.txt", expected.join("\n"));
    fleet
}

#[test]
fn what_needs_a_person_stands_first() {
    let fleet = fleet();
    let expected = [
        (2, "drifted"),
        (8, "missing"),
        (3, "stale"),
        (4, "partial"),
        (5, "drifted"),
        (7, "not_checked"),
        (6, "unknown"),
        (1, "in_sync"),
    ];
    let expected: Vec<(String, String)> = expected.map(|(nth, status)| (account(nth), status.to_owned())).into();
    assert_eq!(fleet.statuses(&["--expect", "expected.txt"]), expected);
    let rows = fleet.rows(&["--expect", "expected.txt"]);
    assert_eq!(rows[0]["highestSeverity"], "high");
    assert_eq!(
        (&rows[1]["name"], &rows[1]["lastLook"], &rows[1]["resources"]),
        (&json!("team-8"), &Json::Null, &json!(0))
    );
    assert_eq!(rows[2]["staleStreams"], 1);
    // What the listing did not reach is not in sync, and neither is what no baseline speaks of.
    assert_eq!((&rows[3]["inSync"], &rows[3]["notChecked"]), (&json!(1), &json!(1)));
    assert_eq!(rows[3]["reasons"], json!([{"reason": "throttled", "extents": 1}]));
    assert_eq!(
        (&rows[5]["inSync"], &rows[5]["notChecked"], &rows[5]["expected"]),
        (&json!(0), &json!(2), &json!(false))
    );
    assert_eq!((&rows[7]["inSync"], &rows[7]["resources"]), (&json!(2), &json!(2)));

    let table = fleet.sandbox.run(["fleet", "--expect", "expected.txt"]).succeeded();
    let first = table.out.lines().nth(3).unwrap();
    assert!(first.starts_with(&account(2)) && first.contains("team-2") && first.contains("high"), "{}", table.out);
    assert!(table.out.contains("throttled: 444444444444"), "{}", table.out);
    assert!(table.out.contains("result: 8 accounts: 1 never seen, 1 stale, 1 seen in part"), "{}", table.out);
    let markdown = fleet.sandbox.run(["-o", "markdown", "fleet", "--limit", "2"]).succeeded();
    assert!(markdown.out.contains("| account | status |") && markdown.out.contains("and 5 more"), "{}", markdown.out);
}

#[test]
fn each_thing_that_may_fail_a_pipeline_does() {
    let fleet = fleet();
    let run = |more: &[&str]| fleet.sandbox.run(["fleet"].iter().chain(more)).code;
    assert_eq!(run(&[]), 0, "it only tells");
    for what in ["stale", "partial", "drifted"] {
        assert_eq!(run(&["--fail-on", what]), 2, "{what}");
    }
    assert_eq!(run(&["--fail-on", "missing"]), 0, "nobody is expected");
    assert_eq!(run(&["--fail-on", "stale,missing", "--expect", "expected.txt", "--stale-after", "90d"]), 2);
    assert_eq!(run(&["--fail-on", "missing", "--expect", "expected.txt", "--exclude-account", &account(8)]), 0);
    assert_eq!(run(&["--fail-on", "stale", "--stale-after", "90d"]), 0);
    // The file says who is expected, and when something is stale, as well.
    let config = format!("[fleet]\naccounts = [\"{}\", \"{}\"]\nstale_after = \"90d\"\n", account(1), account(9));
    fleet.sandbox.write("driftline.toml", config);
    assert_eq!(run(&["--fail-on", "stale"]), 0);
    let missing = fleet.statuses(&[]).into_iter().find(|(_, status)| status == "missing").unwrap();
    assert_eq!(missing.0, account(9));
    for (arguments, says) in [
        (&["--expect", "nowhere.txt"][..], "nowhere.txt"),
        (&["--source", "nobody"], "nobody"),
        (&["--baseline", "other"], "other"),
        (&["--stale-after", "soon"], "soon"),
    ] {
        fleet.sandbox.run(["fleet"].iter().chain(arguments)).refused(&[says]);
    }
    fleet.sandbox.write("driftline.toml", "[fleet]\naccounts = [\"prod\"]\n");
    fleet.sandbox.run(["fleet"]).refused(&["[fleet] accounts", "names no account"]);
}

#[test]
fn one_stream_of_many_accounts_is_counted_where_things_are() {
    let fleet = Fleet { sandbox: Sandbox::new() };
    let (one, two) = (account(1), account(2));
    let things = |timeout| {
        vec![function(&one, "us-east-1", 3), function(&one, "eu-west-1", timeout), function(&two, "us-east-1", 3)]
    };
    let everywhere = [json!({"type": "*", "place": "*", "outcome": "complete"})];
    fleet.observe("file/many", None, 2, &everywhere, &things(3));
    fleet.sandbox.run(["baseline", "set"]).succeeded();
    fleet.observe("file/many", None, 1, &everywhere, &things(30));
    fleet.observe("other", None, 1, &[complete(&two, "us-east-1")], &[group(&two, 0)]);
    let counts = |row: &Json| {
        let count = |name: &str| row[name].as_u64().unwrap();
        (row["account"].as_str().unwrap().to_owned(), [count("inSync"), count("drifted"), count("notChecked")])
    };
    let rows = fleet.rows(&[]);
    assert_eq!(rows.iter().map(counts).collect::<Vec<_>>(), [(one.clone(), [1, 1, 0]), (two.clone(), [1, 0, 1])]);
    let regions: Vec<(String, String)> = fleet
        .rows(&["--by", "region"])
        .iter()
        .map(|row| (counts(row).0, row["region"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(
        regions,
        [(one.clone(), "eu-west-1".into()), (two.clone(), "us-east-1".into()), (one.clone(), "us-east-1".into())]
    );
    let sources: Vec<(String, String, String)> = fleet
        .rows(&["--by", "source"])
        .iter()
        .map(|row| {
            let text = |name: &str| row[name].as_str().unwrap().to_owned();
            (text("account"), text("source"), text("status"))
        })
        .collect();
    let expected = [(&one, "file/many", "drifted"), (&two, "other", "not_checked"), (&two, "file/many", "in_sync")];
    assert_eq!(
        sources,
        expected.map(|(account, source, status)| (account.clone(), source.to_owned(), status.to_owned()))
    );
}

#[test]
fn without_a_baseline_nothing_is_in_sync() {
    let fleet = Fleet { sandbox: Sandbox::new() };
    let one = account(1);
    fleet.regional(&one, 1, &complete(&one, "us-east-1"), &[function(&one, "us-east-1", 3)]);
    let ran = fleet.sandbox.run(["-o", "json", "fleet"]).succeeded().says(&["there is no baseline `main`"]);
    assert_eq!(ran.json()["accounts"][0]["status"], "not_checked");
    assert_eq!(ran.json()["summary"]["by"]["in_sync"], 0);
}

#[test]
fn what_is_outside_of_the_one_place_that_was_vouched_for_is_counted_where_it_is() {
    let fleet = Fleet { sandbox: Sandbox::new() };
    let (one, two) = (account(1), account(2));
    // The source says what it looked at whole, and knows a little of elsewhere.
    let things = |rules, timeout| {
        vec![
            function(&one, "us-east-1", 3),
            function(&two, "us-east-1", 3),
            group(&two, rules),
            function(&one, "eu-west-1", timeout),
        ]
    };
    let there = [complete(&one, "us-east-1")];
    fleet.observe("topology", Some(&one), 2, &there, &things(0, 3));
    fleet.sandbox.run(["baseline", "set"]).succeeded();
    let counts = |more: &[&str]| -> Vec<(String, Json, [u64; 2], Json)> {
        let count = |row: &Json, name: &str| row[name].as_u64().unwrap();
        let told = |row: &Json| {
            let whose = row["account"].as_str().unwrap().to_owned();
            (
                whose,
                row["region"].clone(),
                [count(row, "inSync"), count(row, "drifted")],
                row["highestSeverity"].clone(),
            )
        };
        fleet.rows(more).iter().map(told).collect()
    };
    let nothing = Json::Null;
    assert_eq!(
        counts(&[]),
        [
            (one.clone(), nothing.clone(), [2, 0], nothing.clone()),
            (two.clone(), nothing.clone(), [2, 0], nothing.clone())
        ]
    );
    fleet.observe("topology", Some(&one), 1, &there, &things(1, 30));
    assert_eq!(
        counts(&[]),
        [
            (two.clone(), nothing.clone(), [1, 1], json!("high")),
            (one.clone(), nothing.clone(), [1, 1], json!("medium"))
        ]
    );
    assert_eq!(
        counts(&["--by", "region"]),
        [
            (two.clone(), json!("us-east-1"), [1, 1], json!("high")),
            (one.clone(), json!("eu-west-1"), [0, 1], json!("medium")),
            (one.clone(), json!("us-east-1"), [1, 0], nothing),
        ]
    );
}

#[test]
fn only_the_newest_listing_of_an_organization_tells_who_is_expected() {
    let fleet = Fleet { sandbox: Sandbox::new() };
    let ids = [1, 2, 3, 4].map(account);
    let [one, two, three, four] = ids.each_ref().map(String::as_str);
    let all = [(one, "ACTIVE"), (two, "ACTIVE"), (three, "ACTIVE"), (four, "SUSPENDED")];
    fleet.regional(one, 1, &complete(one, "us-east-1"), &[function(one, "us-east-1", 3)]);
    // Long ago only a unit was meant; four was still open then.
    fleet.listed("ou-ab12-01dun1t0", &jiff_now(9), &[(three, "ACTIVE"), (four, "ACTIVE")]);
    assert_eq!(fleet.missing(&[]), [three, four]);
    // Once somebody left out a unit, in which two is.
    let once = jiff_now(8);
    fleet.listed("global", &once, &all);
    fleet.listed("ou-ab12-5andb0x5/excluded", &once, &[(two, "ACTIVE")]);
    let said = fleet.sandbox.run(["fleet"]).succeeded();
    assert!(said.err.contains("ou-ab12-01dun1t0 was listed 9 h ago, and not by the newest run"), "{}", said.err);
    assert_eq!(fleet.missing(&[]), [three]);
    // A run that names accounts by id and leaves out a unit lists no organization: it says nothing of who is in it.
    fleet.listed("ou-ab12-5andb0x5/excluded", &jiff_now(7), &[(two, "ACTIVE"), (three, "ACTIVE")]);
    assert_eq!(fleet.missing(&[]), [three]);
    // The next run left out nobody.
    fleet.listed("global", &jiff_now(6), &all);
    let said = fleet.sandbox.run(["fleet"]).succeeded().prints(&["organization@999999999999/global, listed 6 h ago"]);
    assert!(!said.err.contains("5andb0x5"), "nobody need hear of it for ever: {}", said.err);
    assert_eq!(fleet.missing(&[]), [two, three]);
    // Whoever leaves it out now is answered by the newest list of it.
    assert!(fleet.missing(&["--exclude-account", "ou-ab12-5andb0x5"]).is_empty());
    fleet.sandbox.write("driftline.toml", "[fleet]\naccounts = [\"org\"]\nexclude_accounts = [\"ou-ab12-5andb0x5\"]\n");
    assert!(fleet.missing(&[]).is_empty());
    fleet.sandbox.write("driftline.toml", "[fleet]\naccounts = [\"org\"]\n");
    assert_eq!(fleet.missing(&[]), [two, three]);
    // Two organizations have each their newest.
    let far = "888888888888";
    fleet.observe_at(
        "organization",
        Some(&format!("{far}/global")),
        &jiff_now(20),
        &[complete(far, "global")],
        &[json!({"canonicalId": format!("arn:aws:organizations::{far}:account/o-cd/{}", account(5)),
            "resourceType": MEMBER, "snapshot": {"id": account(5), "name": "far", "state": "ACTIVE"}})],
    );
    fleet.sandbox.write("driftline.toml", "");
    assert_eq!(fleet.missing(&[]), [two, three, &account(5)]);
}

#[test]
fn a_list_of_accounts_that_is_old_or_was_never_made_is_said() {
    let fleet = Fleet { sandbox: Sandbox::new() };
    let (one, two) = (account(1), account(2));
    fleet.regional(&one, 1, &complete(&one, "us-east-1"), &[function(&one, "us-east-1", 3)]);
    fleet.listed("global", &jiff_now(40), &[(&one, "ACTIVE"), (&two, "ACTIVE")]);
    let stale = "organization@999999999999/global was last listed 40 h ago";
    let run = |more: &[&str]| fleet.sandbox.run(["-o", "json", "fleet"].iter().chain(more)).succeeded();
    let told = run(&[]).says(&[stale]).json();
    assert!(told["expectedListedAt"].as_str().is_some(), "{told}");
    assert!(!run(&["--stale-after", "90d"]).err.contains("last listed"));
    let never = "who is in ou-ab12-5andb0x5 is not known: it was never listed";
    run(&["--exclude-account", "ou-ab12-5andb0x5"]).says(&[never]);
    fleet.sandbox.write("driftline.toml", "[fleet]\naccounts = [\"org\"]\n");
    run(&[]).says(&[stale]);
}
