//! Refs and objects as files, between the reactor and [`zit_service::files`].

use std::fs::File;
use std::io;
use std::time::{Duration, SystemTime};

use hyper::header::{
    CACHE_CONTROL, CONTENT_LENGTH, EXPIRES, HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED,
    PRAGMA,
};
use hyper::{Response, StatusCode};
use zit_model::Namespace;
use zit_referee::Repository;
use zit_service::files::{self, Content, Lifetime, StoredFile};

use super::body::{Outlet, ResponseBody};
use super::respond::{self, EdgeError};

/// How long what never changes may be kept. Source: git's `http-backend.c`.
const FOR_EVER: Duration = Duration::from_hours(365 * 24);

/// Answers with a file; 404 without text when there is none, as clients probe for files that need not be there.
///
/// # Errors
/// [`EdgeError`] when the repository cannot be read.
pub(crate) fn answer(
    repository: &Repository,
    namespace: Option<&Namespace>,
    file: &StoredFile,
    now: SystemTime,
) -> Result<Response<ResponseBody>, EdgeError> {
    let Some(content) = files::open(repository, namespace, file)? else {
        let mut response = respond::whole("text/plain", Vec::new());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    };
    let mut response = match content {
        Content::Text(text) => respond::whole(file.content_type(), text),
        Content::File { file: source, n_bytes, modified } => {
            let mut response = respond::with_body(file.content_type(), send(source, n_bytes));
            let headers = response.headers_mut();
            headers.insert(CONTENT_LENGTH, HeaderValue::from(n_bytes));
            if let Some(modified) = modified {
                date(headers, LAST_MODIFIED, modified);
            }
            response
        }
    };
    keep(response.headers_mut(), file.lifetime(), now);
    Ok(response)
}

/// Says how long the answer may be kept.
fn keep(headers: &mut HeaderMap, lifetime: Lifetime, now: SystemTime) {
    match lifetime {
        Lifetime::None => {}
        Lifetime::Unsaid => {
            for name in [EXPIRES, PRAGMA, CACHE_CONTROL] {
                headers.remove(name);
            }
        }
        Lifetime::ForEver => {
            headers.remove(PRAGMA);
            let value = HeaderValue::from_static("public, max-age=31536000");
            headers.insert(CACHE_CONTROL, value);
            date(headers, EXPIRES, now + FOR_EVER);
        }
    }
}

fn date(headers: &mut HeaderMap, name: HeaderName, when: SystemTime) {
    if let Ok(value) = HeaderValue::from_str(&httpdate::fmt_http_date(when)) {
        headers.insert(name, value);
    }
}

/// Sends the file on a thread of its own, as long as it was when it was opened.
fn send(file: File, n_bytes: u64) -> ResponseBody {
    let (mut outlet, body) = Outlet::open();
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || {
        span.in_scope(|| {
            let mut source = io::BufReader::with_capacity(PIECE, io::Read::take(file, n_bytes));
            match io::copy(&mut source, &mut outlet) {
                Ok(sent) => tracing::debug!(sent, n_bytes, "file answered"),
                Err(error) => tracing::info!(%error, "file given up"),
            }
        });
    });
    body
}

/// How much of a file is read at once, in bytes.
const PIECE: usize = 64 * 1024;
