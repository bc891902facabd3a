//! One plain GET from loopback: no test needs more of HTTP than that.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// The body, or why there is none.
pub(crate) fn get(port: u16, path: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).map_err(failed)?;
    // HTTP/1.0: the answer comes in one piece and ends with the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n\r\n")
        .map_err(failed)?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).map_err(failed)?;
    let reply = String::from_utf8_lossy(&reply);
    let (head, body) = reply.split_once("\r\n\r\n").ok_or_else(|| format!("not HTTP: {reply}"))?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    if status.starts_with('2') { Ok(body.to_owned()) } else { Err(format!("{status}: {body}")) }
}
