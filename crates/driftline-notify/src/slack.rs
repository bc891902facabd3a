//! Slack, and what takes the same messages: incoming webhooks and `chat.postMessage`.

use serde_json::{Value, json};

use crate::channel::{Failure, Sent};
use crate::http::Url;
use crate::message::Message;
use crate::words::{Words, clean, words};

/// What Slack takes in one message and in one text of it, with room to spare.
const BLOCKS: usize = 40;
const TEXT: usize = 2_800;

/// Words of ours may be bold; words from outside stand in `plain_text`, in which nothing is a mention, a link or markup.
fn blocks(words: &Words) -> Vec<Value> {
    let plain = |text: &str| json!({"type": "plain_text", "text": text, "emoji": false});
    let mut blocks = vec![json!({"type": "header", "text": plain(&words.title)})];
    let mut part = String::new();
    let section = |part: &str| json!({"type": "section", "text": plain(part)});
    for line in &words.lines {
        if !part.is_empty() && part.chars().count() + line.chars().count() + 1 > TEXT {
            blocks.push(section(&part));
            part.clear();
        }
        if !part.is_empty() {
            part.push('\n');
        }
        part += line;
    }
    if !part.is_empty() {
        blocks.push(section(&part));
    }
    blocks.truncate(BLOCKS);
    blocks
}

/// What is shown where blocks are not, in which three characters mean something.
fn fallback(words: &Words) -> String {
    words.title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn payload(message: &Message) -> Value {
    let words = words(&message.event);
    json!({"text": fallback(&words), "blocks": blocks(&words), "unfurl_links": false, "unfurl_media": false})
}

pub fn to_webhook(url: &Url, message: &Message) -> Result<Sent, Failure> {
    let body = payload(message);
    url.post("", &[], &body.to_string())?.accepted(None).map(|_| Sent::default())
}

/// The first message about something begins a thread, and its time is what Slack calls it.
pub fn to_api(url: &Url, token: &str, room: &str, message: &Message, thread: Option<&str>) -> Result<Sent, Failure> {
    let mut body = payload(message);
    body["channel"] = room.into();
    if let Some(thread) = thread {
        body["thread_ts"] = thread.into();
    }
    let headers = [("authorization", format!("Bearer {token}"))];
    let answer = url.post("/chat.postMessage", &headers, &body.to_string())?;
    let after = answer.after.as_deref().and_then(|text| text.parse().ok()).map(std::time::Duration::from_secs);
    let answer = answer.accepted(None)?;
    let said: Value =
        serde_json::from_slice(&answer.body).map_err(|_| Failure::later("it answered, but not as Slack's API does"))?;
    if said["ok"] == true {
        return Ok(Sent { thread: said["ts"].as_str().map(ToOwned::to_owned) });
    }
    let error = clean(said["error"].as_str().unwrap_or("no reason given"), 100);
    let why = format!("Slack refused: {error}");
    match error.as_str() {
        // About the message itself; everything else can be set right on the other side.
        "invalid_blocks"
        | "invalid_blocks_format"
        | "msg_blocks_too_long"
        | "msg_too_long"
        | "no_text"
        | "invalid_arguments"
        | "invalid_json" => Err(Failure::Refused { why }),
        _ => Err(Failure::Later { why, after }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_bounded_and_nothing_from_outside_is_markup() {
        let lines = (0..2_000).map(|at| format!("{at} <!channel> *bold* {}", "x".repeat(300))).collect();
        let words = Words { title: "a <b> & @here".into(), lines };
        let blocks = blocks(&words);
        assert!(blocks.len() <= 50);
        for block in &blocks {
            assert_eq!(block["text"]["type"], "plain_text");
            assert!(block["text"]["text"].as_str().is_some_and(|text| text.chars().count() <= 3_000));
        }
        assert_eq!(fallback(&words), "a &lt;b&gt; &amp; @here");
    }
}
