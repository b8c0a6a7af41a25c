//! A push certificate: the commands of a push, its options and a nonce of the server's, signed by the pusher.
//!
//! ```text
//! cert    = headers LF commands signature
//! headers = "certificate version 0.1" LF *(name SP value LF)
//! ```
//!
//! Whether the signature holds is not looked at here.
//!
//! Source: git's `gitprotocol-pack`, "Push Certificate"; `gpg-interface.c`, `parse_signed_buffer`.

use bstr::{BStr, BString, ByteSlice};

use super::ReceiveError;
use crate::command::shown;

/// How a line begins that begins a signature.
const SIGNATURES: [&[u8]; 4] = [
    b"-----BEGIN PGP SIGNATURE-----",
    b"-----BEGIN PGP MESSAGE-----",
    b"-----BEGIN SIGNED MESSAGE-----",
    b"-----BEGIN SSH SIGNATURE-----",
];

/// A certificate as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushCert {
    text: BString,
    // Invariant: the headers end, the commands begin and the signature begins here; each within the text, in this order.
    headers: usize,
    commands: usize,
    signature: usize,
}

impl PushCert {
    /// Takes a certificate apart.
    ///
    /// # Errors
    /// [`ReceiveError::Cert`] when its headers do not end, or it has a NUL.
    pub(super) fn new(text: Vec<u8>) -> Result<Self, ReceiveError> {
        let signature = signature_of(&text);
        let end = text.get(..signature).unwrap_or_default().find(b"\n\n");
        match end {
            Some(end) if !text.contains(&0) => {
                Ok(Self { text: text.into(), headers: end + 1, commands: end + 2, signature })
            }
            Some(_) | None => Err(ReceiveError::Cert(shown(text.get(..100).unwrap_or(&text)))),
        }
    }

    /// All of it, as hooks read it.
    #[must_use]
    pub fn text(&self) -> &BStr {
        self.text.as_bstr()
    }

    /// What is signed.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.text.get(..self.signature).unwrap_or_default()
    }

    /// The signature; empty when there is none.
    #[must_use]
    pub fn signature(&self) -> &[u8] {
        self.text.get(self.signature..).unwrap_or_default()
    }

    /// The nonce that the pusher was given, as it says.
    #[must_use]
    pub fn nonce(&self) -> Option<&BStr> {
        self.headers(b"nonce ").next()
    }

    /// The push options that are signed.
    pub fn options(&self) -> impl Iterator<Item = &BStr> {
        self.headers(b"push-option ")
    }

    pub(super) fn commands(&self) -> impl Iterator<Item = &[u8]> {
        lines(self.text.get(self.commands..self.signature).unwrap_or_default())
    }

    fn headers<'a>(&'a self, name: &'static [u8]) -> impl Iterator<Item = &'a BStr> {
        lines(self.text.get(..self.headers).unwrap_or_default())
            .filter_map(move |line| line.strip_prefix(name).map(ByteSlice::as_bstr))
    }
}

/// The lines of a text without the LF that ends each; a CR before it is part of the line.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.lines_with_terminator().map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}

/// Where the last line begins that begins a signature; the end of the text when there is none.
fn signature_of(text: &[u8]) -> usize {
    let (mut at, mut found) = (0, text.len());
    for line in text.lines_with_terminator() {
        if SIGNATURES.iter().any(|begin| line.starts_with(begin)) {
            found = at;
        }
        at += line.len();
    }
    found
}
