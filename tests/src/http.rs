//! A bare HTTP/1.1 client that sends exactly what it is told, right or wrong.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// How long a server may stay silent before the test fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// An answer, decoded as far as a client needs.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The header lines, as sent.
    pub head: String,
    /// The body, its chunks joined.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// What came of a request to a server that may be killed at any moment.
#[derive(Debug)]
pub enum Attempt {
    /// No connection was made, so the server never saw the request.
    NotSent,
    /// The server may have done what was asked for or not.
    Lost,
    /// The head and whatever followed; whether the body is whole is for the caller to see.
    Answered(Response),
}

/// Posts `body` to `path` of a server that may be killed at any moment.
pub fn attempt(address: &str, path: &str, headers: &[&str], body: &[u8]) -> Attempt {
    let Ok(stream) = connect(address) else { return Attempt::NotSent };
    let answer = converse(stream, &encode(address, "POST", path, headers, body));
    match answer.ok().and_then(|answer| parse(&answer)) {
        Some(response) => Attempt::Answered(response),
        None => Attempt::Lost,
    }
}

/// Sends one request and reads the whole answer. `headers` are lines without line ends.
pub fn request(address: &str, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Response {
    let bytes = encode(address, method, path, headers, body);
    let answer = exchange(address, &bytes).expect("the server answers");
    parse(&answer).unwrap_or_else(|| {
        panic!("not an HTTP answer to {method} {path}: {:?}", String::from_utf8_lossy(&answer))
    })
}

fn encode(address: &str, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    if method == "POST" {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Asks for `path`.
pub fn get(address: &str, path: &str) -> Response {
    request(address, "GET", path, &[], b"")
}

/// Posts `body` to the push service of `repository` (a path without a leading slash).
pub fn push(address: &str, repository: &str, body: &[u8]) -> Response {
    let path = format!("/{repository}/git-receive-pack");
    request(address, "POST", &path, &["Content-Type: application/x-git-receive-pack-request"], body)
}

/// Sends `bytes` and reads until the server closes. The server may answer before it has read all.
///
/// # Errors
/// When nothing can be read: the connection is refused, reset before any answer, or silent.
pub fn exchange(address: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
    converse(connect(address)?, bytes)
}

fn converse(mut stream: TcpStream, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let sent = stream.write_all(bytes);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => Ok(answer),
        // A server that refuses early may reset the rest; what it said before that counts.
        Err(_) if !answer.is_empty() => Ok(answer),
        Err(error) => Err(sent.err().unwrap_or(error)),
    }
}

/// Sends `bytes` and hangs up without waiting for an answer, as a client that loses its network.
///
/// # Errors
/// When the connection cannot be made.
pub fn hang_up_after(address: &str, bytes: &[u8]) -> io::Result<()> {
    let mut stream = connect(address)?;
    // The server may close first; either way this client is gone.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Both);
    Ok(())
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn parse(answer: &[u8]) -> Option<Response> {
    let split = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..split]).into_owned();
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let body = &answer[split + 4..];
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { join_chunks(body) } else { body.to_vec() };
    Some(Response { status, head, body })
}

/// Joins the chunks that are whole; an answer cut off in the middle gives what came.
fn join_chunks(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(line) = bytes.windows(2).position(|window| window == b"\r\n") {
        let size = String::from_utf8_lossy(&bytes[..line]).into_owned();
        let size = size.split(';').next().unwrap_or_default().trim().to_owned();
        let Ok(size) = usize::from_str_radix(&size, 16) else { break };
        let (from, to) = (line + 2, line + 2 + size);
        if size == 0 || to > bytes.len() {
            break;
        }
        body.extend_from_slice(&bytes[from..to]);
        bytes = bytes.get(to + 2..).unwrap_or_default();
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunked_answer_is_joined() {
        let bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        let response = parse(bytes).unwrap();
        assert_eq!((response.status, response.text().as_str()), (200, "abcde"));
    }
}
