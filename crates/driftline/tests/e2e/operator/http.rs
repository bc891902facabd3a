//! Plain HTTP on loopback: no test needs more of it than one request and its reply.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(':'));
        fields.into_iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// The body, or why there is none.
pub(crate) fn get(port: u16, path: &str) -> Result<String, String> {
    let reply = ask(port, "GET", path, &[("accept", "application/json")], "")?;
    match reply.status {
        200..300 => Ok(reply.body),
        status => Err(format!("{status}: {}", reply.body)),
    }
}

pub(crate) fn ask(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Result<Reply, String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).map_err(failed)?;
    let fields: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    // HTTP/1.0: the answer comes in one piece and ends with the connection.
    let request = format!(
        "{method} {path} HTTP/1.0\r\nhost: 127.0.0.1:{port}\r\ncontent-length: {}\r\n{fields}\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).map_err(failed)?;
    let reply = String::from_utf8_lossy(&reply);
    let (head, body) = reply.split_once("\r\n\r\n").ok_or_else(|| format!("not HTTP: {reply}"))?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok(Reply {
        status: status.ok_or_else(|| format!("not HTTP: {head}"))?,
        head: head.to_owned(),
        body: body.to_owned(),
    })
}
