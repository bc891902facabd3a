//! Whoever is told: a plain HTTP server on loopback that keeps what it got and answers as it is told to.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value as Json;

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Got {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn id(&self) -> String {
        self.headers["webhook-id"].clone()
    }

    /// `new a`, `digest`, `new source a/b`: what it says, and of what.
    pub(crate) fn says(&self) -> String {
        let event = self.json();
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let about = match text(&event["about"]).as_str() {
            "finding" => text(&event["subject"]["canonicalId"]),
            "source" => format!("source {}", text(&event["subject"]["source"])),
            _ => String::new(),
        };
        format!("{} {about}", text(&event["event"])).trim().to_owned()
    }
}

/// A status, a header more, and a body.
#[derive(Clone, Debug)]
pub(crate) struct Reply(pub u16, pub &'static str, pub String);

#[derive(Clone)]
pub(crate) struct Receiver {
    pub address: String,
    got: Arc<Mutex<Vec<Got>>>,
    replies: Arc<Mutex<VecDeque<Reply>>>,
}

impl Receiver {
    /// It ends with the process that tests run in.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let receiver = Self { address, got: Arc::default(), replies: Arc::default() };
        let own = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                std::thread::spawn(move || own.serve(&stream));
            }
        });
        receiver
    }

    /// The next answers; after them, and without any, it says yes.
    pub(crate) fn will_say(&self, replies: impl IntoIterator<Item = Reply>) {
        self.replies.lock().unwrap().extend(replies);
    }

    pub(crate) fn forget_replies(&self) {
        self.replies.lock().unwrap().clear();
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// What it got since it was last asked.
    pub(crate) fn take(&self) -> Vec<Got> {
        std::mem::take(&mut *self.got.lock().unwrap())
    }

    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            let mut headers = BTreeMap::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                let Some((name, value)) = line.trim_end().split_once(": ") else { break };
                headers.insert(name.to_lowercase(), value.to_owned());
            }
            let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                return;
            }
            // Only what came whole was received.
            self.got.lock().unwrap().push(Got { path, headers, body: String::from_utf8(body).unwrap() });
            let reply = self.replies.lock().unwrap().pop_front();
            let Reply(status, header, body) = reply.unwrap_or(Reply(200, "", "ok".into()));
            let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
            let answer = format!("HTTP/1.1 {status} X\r\n{header}Content-Length: {}\r\n\r\n{body}", body.len());
            let mut stream = stream;
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}
