//! One keep-alive connection that posts git requests and reads whole answers.
//!
//! Blocking, without allocation per request beyond what the answer needs: the generator shares its processors with the
//! server that it measures. It takes answers with a length or in chunks and nothing else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// How long an answer may take: a server that needs more has stopped.
const PATIENCE: Duration = Duration::from_mins(1);

/// The largest answer taken, in bytes; the measured ones have a few thousand.
const MAX_ANSWER: u64 = 64 * 1024 * 1024;

/// A connection, with the answer to its last request.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    head: String,
    request: Vec<u8>,
    line: String,
    answer: Vec<u8>,
}

impl Connection {
    /// Opens a connection for requests of `service` (`git-upload-pack`, `git-receive-pack`) at `path`.
    ///
    /// # Errors
    /// When nobody listens.
    pub(crate) fn open(address: SocketAddr, path: &str, service: &str) -> Result<Self> {
        let stream =
            TcpStream::connect(address).with_context(|| format!("no server at {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let head = format!(
            "POST {path}/{service} HTTP/1.1\r\nHost: {address}\r\nGit-Protocol: version=2\r\n\
             Content-Type: application/x-{service}-request\r\n"
        );
        let stream = BufReader::new(stream);
        let (request, line, answer) = (Vec::new(), String::new(), Vec::new());
        Ok(Self { stream, head, request, line, answer })
    }

    /// Sends one request and reads its answer to the end.
    ///
    /// # Errors
    /// When the connection fails or the answer has another status than 200.
    pub(crate) fn post(&mut self, body: &[u8]) -> Result<&[u8]> {
        self.request.clear();
        write!(self.request, "{}Content-Length: {}\r\n\r\n", self.head, body.len())?;
        self.request.extend_from_slice(body);
        self.stream.get_mut().write_all(&self.request).context("cannot send a request")?;
        self.read_answer().context("cannot read an answer")?;
        Ok(&self.answer)
    }

    fn read_answer(&mut self) -> Result<()> {
        let status = self.read_line()?.to_owned();
        let mut length = Some(0);
        while !self.read_line()?.is_empty() {
            let (name, value) = self.line.split_once(':').context("a header without a colon")?;
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.parse().context("a bad content length")?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                length = None;
            }
        }
        self.answer.clear();
        match length {
            Some(length) => self.read_piece(length)?,
            None => self.read_chunks()?,
        }
        if status.split(' ').nth(1) != Some("200") {
            bail!("{status}: {}", String::from_utf8_lossy(&self.answer));
        }
        Ok(())
    }

    fn read_chunks(&mut self) -> Result<()> {
        loop {
            let size = self.read_line()?;
            let size = u64::from_str_radix(size, 16).context("a bad chunk size")?;
            self.read_piece(size)?;
            ensure!(self.read_line()?.is_empty(), "a chunk of another size than it said");
            if size == 0 {
                return Ok(());
            }
        }
    }

    /// Reads `n` bytes more of the answer.
    fn read_piece(&mut self, n: u64) -> Result<()> {
        ensure!(n <= MAX_ANSWER, "an answer of {n} bytes");
        let n_read = (&mut self.stream).take(n).read_to_end(&mut self.answer)?;
        ensure!(u64::try_from(n_read)? == n, "the server closed the connection");
        Ok(())
    }

    /// Reads one line, without its end.
    fn read_line(&mut self) -> Result<&str> {
        self.line.clear();
        ensure!(self.stream.read_line(&mut self.line)? > 0, "the server closed the connection");
        self.line.truncate(self.line.trim_end().len());
        Ok(&self.line)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// What a connection makes of `answers`, sent by a server that reads requests of the body `q`.
    fn exchange(answers: &[&'static str]) -> Vec<Result<String, String>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let sent = answers.to_vec();
        let server = thread::spawn(move || {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            for answer in sent {
                let mut line = String::new();
                while line != "\r\n" {
                    line.clear();
                    stream.read_line(&mut line).unwrap();
                }
                stream.read_exact(&mut [0]).unwrap();
                stream.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        });
        let mut connection = Connection::open(address, "/r.git", "git-upload-pack").unwrap();
        let ask = |_| match connection.post(b"q") {
            Ok(answer) => Ok(String::from_utf8_lossy(answer).into_owned()),
            Err(error) => Err(format!("{error:#}")),
        };
        let found = answers.iter().map(ask).collect();
        server.join().unwrap();
        found
    }

    #[test]
    fn answers_with_a_length_and_in_chunks_follow_each_other_on_one_connection() {
        let length = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
        let chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nde\r\na\r\n0123456789\r\n0\r\n\r\n";
        let found = exchange(&[length, chunks, length]);
        assert_eq!(found, [Ok("abc".into()), Ok("de0123456789".into()), Ok("abc".into())]);
    }

    #[test]
    fn an_answer_of_another_status_is_an_error_with_its_text() {
        let found = exchange(&["HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone"]);
        assert_eq!(found, [Err("cannot read an answer: HTTP/1.1 404 Not Found: none".into())]);
    }
}
