//! Each kind of channel, against a real server of its kind.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value as Json, json};

use super::receiver::{Receiver, Reply};
use super::{Place, agents, script, sized};
use crate::support::thing;

#[test]
fn a_slack_webhook_gets_one_message_a_round_in_which_nothing_from_outside_is_markup() {
    let slack = Receiver::start();
    let place = Place::begun("");
    // The address of a Slack webhook is a secret, and lies in a file.
    place.sandbox.write("hook", format!("{}/services/hook\n", slack.address));
    place.configure("[[notify]]\nkind = \"slack\"\nurl_file = \"hook\"\n");
    place.once().succeeded();
    let mut things = sized(&[("a", 2), ("b", 2)]);
    things.push(thing("<!channel> *now* @here\u{202e}", json!({"size": 1})));
    place.see(&things);
    place.once().succeeded();
    let got = slack.take();
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].path, "/services/hook");
    let message = got[0].json();
    let text = message["text"].as_str().unwrap();
    assert!(text.contains("4 new"), "{text}");
    let blocks = message["blocks"].as_array().unwrap();
    assert!(blocks.len() < 50);
    for block in blocks {
        assert_eq!(block["text"]["type"], "plain_text");
    }
    let body = blocks[1]["text"]["text"].as_str().unwrap();
    assert!(body.contains("*now* @here\\u{202e}") && !body.contains('\u{202e}'), "{body}");
}

#[test]
fn slacks_own_api_has_one_thread_for_each_finding() {
    let slack = Receiver::start();
    let place = Place::begun("");
    place.sandbox.write("token", "xoxb-1");
    place.configure(&format!(
        "[[notify]]\nkind = \"slack\"\ntoken_file = \"token\"\nchannel = \"C1\"\nurl = \"{}/api\"\n",
        slack.address
    ));
    place.once().succeeded();
    assert!(slack.take().is_empty());
    let yes = |ts: &str| Reply(200, "", json!({"ok": true, "ts": ts}).to_string());
    slack.will_say([Reply(200, "", json!({"ok": false, "error": "ratelimited"}).to_string()), yes("1.1"), yes("1.2")]);
    place.see(&sized(&[("a", 2), ("b", 1), ("c", 1)]));
    place.once().succeeded().says(&["Slack refused: ratelimited"]);
    let first = slack.take();
    assert_eq!(first.len(), 2);
    assert_eq!(
        (first[1].path.as_str(), first[1].headers["authorization"].as_str()),
        ("/api/chat.postMessage", "Bearer xoxb-1")
    );
    assert_eq!((&first[1].json()["channel"], &first[1].json()["thread_ts"]), (&json!("C1"), &Json::Null));
    place.see(&sized(&[("a", 1), ("b", 1), ("c", 1)]));
    place.once().succeeded();
    assert_eq!(slack.take()[0].json()["thread_ts"], "1.1", "the end is told where the beginning was");
    slack.will_say([Reply(200, "", json!({"ok": false, "error": "invalid_blocks"}).to_string())]);
    place.see(&sized(&[("a", 1), ("b", 2), ("c", 1)]));
    place.once().exited(1).says(&["a dead letter", "invalid_blocks"]);
}

/// A mail server, for one test.
struct Post {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Post {
    fn start(place: &Place, mode: &str) -> Option<Self> {
        let python = agents()?;
        let folder = place.sandbox.path("post");
        std::fs::create_dir(&folder).unwrap();
        let mut command = Command::new(python.join("bin/python"));
        command
            .arg(script("mail.py"))
            .arg(&folder)
            .arg(mode)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Some(Self { child, port: line.trim().parse().unwrap(), folder })
    }

    fn mails(&self) -> Vec<Json> {
        let read = |at: usize| std::fs::read_to_string(self.folder.join(format!("mail-{at}.json"))).ok();
        (1..).map_while(read).map(|text| serde_json::from_str(&text).unwrap()).collect()
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells by mail that something came and went, and gives back the mails.
fn by_mail(mode: &str) -> Option<Vec<Json>> {
    let place = Place::begun("");
    let post = Post::start(&place, mode)?;
    let secured = "username = \"drift\"\npassword_env = \"PASSWORD\"\nca_file = \"post/ca.pem\"\n";
    let (tls, more) = match mode {
        "plain" => ("none", ""),
        "starttls" => ("starttls", secured),
        _ => ("tls", secured),
    };
    place.configure(&format!(
        "[[notify]]\nkind = \"email\"\nsmtp = \"localhost:{}\"\ntls = \"{tls}\"\nfrom = \"Driftline <drift@example.com>\"\n\
         to = [\"ops@example.com\", \"Second <two@example.com>\"]\n{more}",
        post.port
    ));
    let once = |password: &str| place.sandbox.run_with(&[("PASSWORD", password)], ["watch", "--once"]);
    once("swordfish").succeeded();
    place.see(&sized(&[("a", 2), ("b", 1), ("c", 1)]));
    if mode != "plain" {
        let refused = once("wrong").exited(1);
        assert!(refused.err.contains("not delivered yet") && !refused.err.contains("wrong"), "{}", refused.err);
        let id = place.sandbox.json(["watch", "--status"])["waiting"][0]["id"].as_str().unwrap().to_owned();
        place.sandbox.run(["watch", "--retry", &id]).succeeded();
    }
    once("swordfish").succeeded();
    place.see(&sized(&[("a", 1), ("b", 1), ("c", 1)]));
    once("swordfish").succeeded();
    Some(post.mails())
}

fn check_thread(mails: &[Json]) {
    assert_eq!(mails.len(), 2, "{mails:?}");
    let header = |at: usize, name: &str| mails[at]["headers"][name].as_str().unwrap_or_default().to_owned();
    assert!(header(0, "subject").contains("new: Thing a (modified)"), "{}", header(0, "subject"));
    assert!(header(1, "subject").contains("resolved: Thing a"), "{}", header(1, "subject"));
    assert!(header(0, "message-id").ends_with("@example.com>"));
    assert_eq!(header(1, "in-reply-to"), header(0, "message-id"));
    assert_eq!(header(1, "references"), header(0, "message-id"));
    assert_eq!(header(0, "auto-submitted"), "auto-generated");
    assert_eq!(mails[0]["to"], json!(["ops@example.com", "two@example.com"]));
    assert!(mails[0]["body"].as_str().unwrap().contains("/size: 1 -> 2"), "{}", mails[0]["body"]);
}

#[test]
fn mails_about_one_finding_are_one_thread() {
    if let Some(mails) = by_mail("plain") {
        check_thread(&mails);
    }
}

#[test]
fn mail_goes_over_starttls_and_tls_with_a_login_and_only_to_a_server_that_is_trusted() {
    for mode in ["starttls", "tls"] {
        let Some(mails) = by_mail(mode) else { return };
        check_thread(&mails);
        assert_eq!((&mails[0]["tls"], &mails[0]["login"]), (&json!(true), &json!("drift")), "{mode}");
    }
    let place = Place::begun("");
    let Some(post) = Post::start(&place, "tls") else { return };
    place.configure(&format!(
        "[[notify]]\nkind = \"email\"\nsmtp = \"localhost:{}\"\ntls = \"tls\"\nfrom = \"a@example.com\"\nto = [\"b@example.com\"]\n",
        post.port
    ));
    let ran = place.sandbox.run(["watch", "--test-notification"]).exited(1);
    assert!(ran.out.contains("certificate"), "{}", ran.out);
    assert!(post.mails().is_empty());
}

#[cfg(feature = "aws")]
#[test]
fn a_topic_of_sns_gets_what_a_webhook_gets() {
    let Some(cloud) = crate::aws::Cloud::new() else { return };
    let made = cloud.boto3(&["topic", "drift"]);
    let (topic, queue) = (made["topic"].as_str().unwrap(), made["queue"].as_str().unwrap());
    let config = format!(
        "stale_after = \"5000d\"\n[[source]]\nname = \"test\"\nfile = \"now.json\"\n[[notify]]\nkind = \"sns\"\ntopic = \"{topic}\"\n"
    );
    cloud.sandbox.write("driftline.toml", config);
    let see = |minute: u32, sizes: &[(&str, u32)]| {
        cloud.sandbox.write("now.json", crate::support::observation(minute, &sized(sizes)).to_string());
    };
    see(1, &[("a", 1)]);
    cloud.run(["observe", "all"]).succeeded();
    cloud.run(["baseline", "set"]).succeeded();
    cloud.run(["watch", "--once"]).succeeded();
    see(2, &[("a", 2)]);
    cloud.run(["watch", "--once"]).succeeded();
    let read = cloud.boto3(&["messages", queue]);
    let envelope: Json = serde_json::from_str(read[0].as_str().unwrap()).unwrap();
    let event: Json = serde_json::from_str(envelope["Message"].as_str().unwrap()).unwrap();
    assert_eq!((&event["schema"], &event["event"]), (&json!("driftline.notification/v1"), &json!("new")));
    assert_eq!(event["subject"]["canonicalId"], "a");
    assert!(envelope["Subject"].as_str().unwrap().contains("new: Thing a"), "{envelope}");
    assert_eq!(envelope["MessageAttributes"]["deliveryId"]["Value"], event["deliveryId"]);
    assert_eq!(read.as_array().unwrap().len(), 1);
    // A topic that is not there is told as the trouble it is, and the message waits.
    cloud.boto3(&["no_topic", topic]);
    see(3, &[("a", 3)]);
    cloud.run(["watch", "--once"]).exited(1).says(&["not delivered yet"]);
}
