//! The pages of `serve` in a real browser: what people see, what they do, and what stays in the store.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value as Json, json};

use crate::support::{PROGRAM, Sandbox, observation_of, skip, thing_at, variable};

const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser/drive.mjs");
const TOKEN: &str = "a-token-that-is-long-enough";

/// A server that ends with its test.
struct Served {
    child: Child,
    address: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(sandbox: &Sandbox, more: &[&str]) -> Served {
    let mut command = sandbox.command(["serve", "--listen", "127.0.0.1:0"]);
    let mut child = command.args(more).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let address = line.split_whitespace().find_map(|word| word.starts_with("http://").then(|| word.to_owned()));
        said.push(line);
        address
    });
    // Whatever else it says must not fill the pipe and stop it.
    std::thread::spawn(move || lines.for_each(drop));
    let Some(address) = address else {
        let _ = child.kill();
        panic!("no address in {said:#?}");
    };
    Served { child, address: address.trim_end_matches(['/', '.', ',']).to_owned() }
}

/// The demo, and a source whose names mean harm: one changed, one gone, one new.
fn full_store() -> Sandbox {
    const HOSTILE: &str = "\"><img src=x onerror=alert(1)><script>alert(2)</script>\u{202e}";
    let sandbox = Sandbox::with_demo();
    let long = format!("long/{}", "segment/".repeat(60));
    let at = |kind: &str, id: &str, snapshot: Json| thing_at(kind, "x/<b>/\u{200b}", id, snapshot);
    let before = [
        at("Evil::\"Type'", HOSTILE, json!({"</script>": "<svg onload=alert(1)>", "a": 1})),
        at("Evil::\"Type'", "javascript:alert(1)", json!({"{{7*7}}": "${7*7}"})),
        at("Long::Thing", &long, json!({"text": "x".repeat(3_000), "list": (0..200).collect::<Vec<_>>()})),
    ];
    let after = [
        at("Evil::\"Type'", HOSTILE, json!({"</script>": "<img src=x onerror=alert(3)>", "a": "\r\n\u{202e}"})),
        at("Evil::\"Type'", "//evil.example/</textarea>", json!({})),
        at("Long::Thing", &long, json!({"text": "y".repeat(3_000), "list": (0..201).collect::<Vec<_>>()})),
    ];
    sandbox.observe(&observation_of("hostile/names", 1, json!("complete"), &before)).succeeded();
    sandbox.run(["baseline", "set", "--source", "hostile/names"]).succeeded();
    sandbox.observe(&observation_of("hostile/names", 2, json!("complete"), &after)).succeeded();
    let mut news = after.to_vec();
    news[1]["snapshot"] = json!({"another": "thing"});
    news.push(at("Evil::\"Type'", "news-just-in", json!({})));
    sandbox.write("news.json", observation_of("hostile/names", 3, json!("complete"), &news).to_string());
    sandbox
}

#[test]
fn people_see_filter_accept_and_are_told_the_news_in_a_real_browser() {
    let (Some(modules), Some(chromium)) = (variable("DRIFTLINE_TEST_BROWSER"), variable("DRIFTLINE_TEST_CHROMIUM"))
    else {
        skip("DRIFTLINE_TEST_BROWSER and DRIFTLINE_TEST_CHROMIUM name no driver and no browser");
        return;
    };
    let (full, begun, empty) = (full_store(), Sandbox::new(), Sandbox::new());
    begun
        .observe(&observation_of("test", 1, json!("complete"), &[thing_at("Thing", "here", "a", json!({}))]))
        .succeeded();
    let shots = variable("DRIFTLINE_TEST_SHOTS").map_or_else(|| full.path("shots"), Into::into);
    let token = full.write("token", TOKEN);
    let open = serve(&full, &[]);
    let (bare, nothing) = (serve(&begun, &[]), serve(&empty, &[]));
    let closed = serve(&full, &["--token-file", token.to_str().unwrap()]);
    let plan = json!({
        "chromium": chromium.to_str().unwrap(), "shots": shots, "program": PROGRAM, "token": TOKEN,
        "open": open.address, "begun": bare.address, "empty": nothing.address, "closed": closed.address,
        "folder": full.path(""), "news": full.path("news.json"),
    });
    let plan = full.write("plan.json", plan.to_string());
    let mut driver = Command::new("node");
    full.prepare(&mut driver);
    let output = driver.arg(DRIVER).arg(modules).arg(plan).env("HOME", full.path("")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(shots.join("overview-dark.png").is_file(), "screenshots were taken");

    let baseline = full.run(["baseline", "show"]).succeeded().out;
    for words in ["the import needs \"30\" seconds <b>", "mara", "planned, without a script", "noscript"] {
        assert!(baseline.contains(words), "`{words}` is not in\n{baseline}");
    }
}
