//! Answers: the headers each has, and the one map from our errors to HTTP's status codes.
//!
//! An error is answered in plain text, which git shows its user when it comes in place of an advertisement.

use hyper::body::Body as _;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, EXPIRES, HeaderValue, PRAGMA,
};
use hyper::{Response, StatusCode};

use http_body_util::{Either, Full};
use zit_model::failure;
use zit_model::namespace::NamespaceError;
use zit_referee::RefereeError;
use zit_service::ServiceError;
use zit_store::StoreError;
use zit_wire::receive::ReceiveError;

use super::body::{BodyError, ResponseBody};
use super::headers::HeaderError;
use super::route::RouteError;
use super::ways::ClosedError;
use crate::registry::RegistryError;

/// Why a request is answered with an HTTP error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EdgeError {
    // The client asked for what is not here, or in a way that is not understood.
    /// The request line.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The namespace that it names.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The headers.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The repository.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The repository does not serve it.
    #[error(transparent)]
    Closed(#[from] ClosedError),
    /// The body stopped.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The body does not decode.
    #[error("cannot decode the request body")]
    Encoding(#[source] std::io::Error),
    /// The body is not a push.
    #[error(transparent)]
    Receive(ReceiveError),

    // We failed.
    /// The referee does not do its part.
    #[error(transparent)]
    Referee(RefereeError),
    /// The store does not do its part.
    #[error(transparent)]
    Store(StoreError),
    /// A file of the repository cannot be read.
    #[error("cannot read a file of the repository")]
    File(#[source] std::io::Error),
    /// A thread of ours panicked.
    #[error("the server failed at this request")]
    Panicked,
}

impl From<ServiceError> for EdgeError {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Read(error) => Self::reading(error),
            ServiceError::Receive(error) => Self::Receive(error),
            ServiceError::Referee(error) => Self::Referee(error),
            ServiceError::Store(error) => Self::Store(error),
            ServiceError::File(error) => Self::File(error),
        }
    }
}

impl EdgeError {
    /// An error of reading a request's body.
    fn reading(error: std::io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<BodyError>()) {
            Some(body) => Self::Body(*body),
            None => Self::Encoding(error),
        }
    }

    /// The status code that says whose fault it is.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Route(RouteError::UnknownPath(_) | RouteError::BadRepository(_))
            | Self::Namespace(_)
            | Self::Registry(RegistryError::Absent(_) | RegistryError::NotExported(_)) => {
                StatusCode::NOT_FOUND
            }
            Self::Route(RouteError::BadEscape(_) | RouteError::BadSeat(_))
            | Self::Header(HeaderError::Agent(_) | HeaderError::Item(_))
            | Self::Body(BodyError::Lost)
            | Self::Encoding(_)
            | Self::Receive(_) => StatusCode::BAD_REQUEST,
            Self::Closed(_) => StatusCode::FORBIDDEN,
            Self::Route(RouteError::Method { .. }) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Header(HeaderError::ContentType { .. } | HeaderError::ContentEncoding(_)) => {
                StatusCode::UNSUPPORTED_MEDIA_TYPE
            }
            Self::Header(HeaderError::ForeignHost(_)) => StatusCode::MISDIRECTED_REQUEST,
            Self::Body(BodyError::Silent) => StatusCode::REQUEST_TIMEOUT,
            Self::Registry(RegistryError::Open { .. }) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Registry(RegistryError::Look { .. })
            | Self::Referee(_)
            | Self::Store(_)
            | Self::File(_)
            | Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// What the client may do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Route(error) => error.hint(),
            Self::Header(error) => error.hint(),
            Self::Receive(error) => error.hint(),
            Self::Registry(RegistryError::Absent(_)) => {
                Some("create it on the server with `zit-server init <path>`")
            }
            Self::Registry(RegistryError::Open { source: error, .. }) | Self::Referee(error) => {
                error.hint()
            }
            Self::Store(error) => error.hint(),
            Self::Closed(error) => Some(error.hint()),
            Self::Namespace(error) => Some(error.hint()),
            Self::Registry(RegistryError::NotExported(_)) => Some(
                "whoever runs the server can give it out with `touch <repository>/git-daemon-export-ok`",
            ),
            Self::Registry(RegistryError::Look { .. })
            | Self::Body(_)
            | Self::Encoding(_)
            | Self::File(_)
            | Self::Panicked => None,
        }
    }

    /// What, why and the next step, as lines of text.
    fn text(&self) -> String {
        let mut text = format!("{}\n", failure::chain(self));
        if let Some(hint) = self.hint() {
            text.push_str(&format!("hint: {hint}\n"));
        }
        text
    }
}

/// Answers with an error.
pub(crate) fn error(error: &EdgeError) -> Response<ResponseBody> {
    let status = error.status();
    let text = error.text();
    if status.is_server_error() {
        tracing::error!(%status, error = text.trim_end(), "request failed");
    } else {
        tracing::info!(%status, error = text.trim_end(), "request refused");
    }
    let mut response = whole("text/plain; charset=utf-8", text.into_bytes());
    *response.status_mut() = status;
    if let EdgeError::Route(RouteError::Method { allow, .. }) = error {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    }
    response
}

/// Takes the body from an answer to HEAD, which still says how long it is.
pub(crate) fn without_body(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    let n_bytes = response.body().size_hint().exact();
    if let Some(n_bytes) = n_bytes.filter(|_| !response.headers().contains_key(CONTENT_LENGTH)) {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(n_bytes));
    }
    *response.body_mut() = Either::Left(Full::default());
    response
}

/// Answers with a body that is known whole.
pub(crate) fn whole(content_type: &'static str, body: impl Into<Bytes>) -> Response<ResponseBody> {
    with_body(content_type, Either::Left(Full::new(body.into())))
}

/// Answers with a body, which nobody on the way may keep. Source of the headers: git's `http-backend.c`.
pub(crate) fn with_body(content_type: &'static str, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (EXPIRES, "Fri, 01 Jan 1980 00:00:00 GMT"),
        (PRAGMA, "no-cache"),
        (CACHE_CONTROL, "no-cache, max-age=0, must-revalidate"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::route::RepositoryPath;

    #[test]
    fn a_missing_repository_is_404_and_says_what_to_do() {
        let name = RepositoryPath::new(b"team/app.git").unwrap();
        let missing = EdgeError::Registry(RegistryError::Absent(name));
        assert_eq!(error(&missing).status(), StatusCode::NOT_FOUND);
        let expected = "no git repository at \"team/app.git\"\n\
            hint: create it on the server with `zit-server init <path>`\n";
        assert_eq!(missing.text(), expected);
    }

    #[test]
    fn a_wrong_method_is_told_the_right_one() {
        let wrong = RouteError::Method { method: hyper::Method::GET, allow: "POST" };
        let response = error(&EdgeError::Route(wrong));
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()[ALLOW], "POST");
        assert_eq!(response.headers()[CACHE_CONTROL], "no-cache, max-age=0, must-revalidate");
    }

    #[test]
    fn an_error_of_the_body_keeps_its_status_through_a_reader() {
        let silent = EdgeError::reading(std::io::Error::other(BodyError::Silent));
        assert_eq!(silent.status(), StatusCode::REQUEST_TIMEOUT);
        let gzip = EdgeError::reading(std::io::ErrorKind::InvalidInput.into());
        assert_eq!(gzip.status(), StatusCode::BAD_REQUEST);
    }
}
