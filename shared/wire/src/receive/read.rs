//! The two stages of [`super::Receive`] that read lines. They keep what they have read and count it.

use bstr::{BStr, BString, ByteSlice};
use gix_hash::Kind;
use zit_model::Oid;
use zit_model::oid::OidError;

use super::{
    COMMAND_BYTES, COMMANDS, ClientCapabilities, Command, MAX_COMMAND_BYTES, MAX_COMMANDS,
    MAX_OPTION_BYTES, MAX_OPTIONS, OPTION_BYTES, OPTIONS, PushCert, PushRequest, Receive,
    ReceiveError, Report,
};
use crate::command::shown;

/// Reading shallow lines and commands.
#[derive(Debug)]
pub struct ReadCommands {
    object_format: Kind,
    request: PushRequest,
    /// Bytes of all lines so far.
    n_bytes: usize,
    /// The text of a certificate, as far as it has come.
    cert: Option<Vec<u8>>,
    in_cert: bool,
}

/// Reading push options.
#[derive(Debug)]
pub struct ReadOptions {
    request: PushRequest,
    /// Bytes of all options so far.
    n_bytes: usize,
}

impl ReadCommands {
    pub(super) fn new(object_format: Kind) -> Self {
        let request = PushRequest::default();
        Self { object_format, request, n_bytes: 0, cert: None, in_cert: false }
    }

    pub(super) fn is_untouched(&self) -> bool {
        self.n_bytes == 0
    }

    pub(super) fn line(mut self, data: &[u8]) -> Result<Self, ReceiveError> {
        let n_lines = self.request.commands.len() + self.request.shallow.len();
        within(n_lines + 1, MAX_COMMANDS, COMMANDS)?;
        self.n_bytes = within(self.n_bytes + data.len(), MAX_COMMAND_BYTES, COMMAND_BYTES)?;
        if self.in_cert {
            return Ok(self.cert_line(data));
        }

        let (line, capabilities) = match data.split_once_str(b"\0") {
            Some((line, capabilities)) => (line, Some(chomp(capabilities))),
            None => (chomp(data), None),
        };
        if let Some(hex) = line.strip_prefix(b"shallow ") {
            self.request.shallow.push(self.shallow(hex)?);
            return Ok(self);
        }
        if self.cert.is_some() {
            return Err(ReceiveError::CertAndCommands);
        }
        if line == b"push-cert" {
            self.read_capabilities(line, capabilities)?;
            (self.cert, self.in_cert) = (Some(Vec::new()), true);
            return Ok(self);
        }
        let command = self.command(line).ok_or_else(|| ReceiveError::Command(shown(line)))?;
        self.read_capabilities(line, capabilities)?;
        self.request.commands.push(command);
        Ok(self)
    }

    fn cert_line(mut self, line: &[u8]) -> Self {
        if line == b"push-cert-end\n" {
            self.in_cert = false;
        } else if let Some(cert) = &mut self.cert {
            cert.extend_from_slice(line);
        }
        self
    }

    pub(super) fn end(mut self) -> Result<Receive, ReceiveError> {
        if let Some(cert) = self.cert.take() {
            self.take_cert(PushCert::new(cert)?)?;
        }
        let Self { request, .. } = self;
        Ok(if request.capabilities.push_options {
            Receive::Options(ReadOptions { request, n_bytes: 0 })
        } else {
            Receive::Done(request)
        })
    }

    /// The commands of a certificate are those of the push.
    fn take_cert(&mut self, cert: PushCert) -> Result<(), ReceiveError> {
        if !self.request.commands.is_empty() {
            return Err(ReceiveError::CertAndCommands);
        }
        for line in cert.commands() {
            within(self.request.commands.len() + 1, MAX_COMMANDS, COMMANDS)?;
            let command = self.command(line).ok_or_else(|| ReceiveError::Command(shown(line)))?;
            self.request.commands.push(command);
        }
        self.request.cert = Some(cert);
        Ok(())
    }

    fn shallow(&self, hex: &[u8]) -> Result<Oid, ReceiveError> {
        self.oid(hex).ok().flatten().ok_or_else(|| ReceiveError::Shallow(shown(hex)))
    }

    /// Reads `<old> SP <new> SP <name>`; the name may be anything.
    fn command(&self, line: &[u8]) -> Option<Command> {
        let n_hex = self.object_format.len_in_hex();
        let (old, rest) = line.split_at_checked(n_hex)?;
        let (new, rest) = rest.strip_prefix(b" ")?.split_at_checked(n_hex)?;
        let name = rest.strip_prefix(b" ")?.into();
        Some(Command { name, old: self.oid(old).ok()?, new: self.oid(new).ok()? })
    }

    /// Reads an oid of this repository's format; the zero oid is `None`.
    fn oid(&self, hex: &[u8]) -> Result<Option<Oid>, NotAnOid> {
        if hex.len() != self.object_format.len_in_hex() {
            return Err(NotAnOid);
        }
        match Oid::from_hex(hex) {
            Ok(oid) => Ok(Some(oid)),
            Err(OidError::Null) => Ok(None),
            Err(OidError::Malformed(_)) => Err(NotAnOid),
        }
    }

    /// Capabilities come behind the first command, and there the object format is settled: silence means SHA-1.
    fn read_capabilities(&mut self, line: &[u8], list: Option<&[u8]>) -> Result<(), ReceiveError> {
        if !self.request.commands.is_empty() {
            return match list {
                Some(_) => Err(ReceiveError::LateCapabilities(shown(line))),
                None => Ok(()),
            };
        }
        let (capabilities, client_format) = parse_capabilities(list.unwrap_or_default());
        let client_format = client_format.unwrap_or(b"sha1".as_bstr());
        if client_format != self.object_format.to_string() {
            let client = shown(client_format);
            return Err(ReceiveError::ObjectFormat { server: self.object_format, client });
        }
        self.request.capabilities = capabilities;
        Ok(())
    }
}

impl ReadOptions {
    pub(super) fn line(mut self, data: &[u8]) -> Result<Self, ReceiveError> {
        let option = chomp(data);
        within(self.request.options.len() + 1, MAX_OPTIONS, OPTIONS)?;
        self.n_bytes = within(self.n_bytes + option.len(), MAX_OPTION_BYTES, OPTION_BYTES)?;
        self.request.options.push(option.into());
        Ok(self)
    }

    pub(super) fn end(self) -> PushRequest {
        self.request
    }
}

/// Each caller says in its own words what it wanted.
struct NotAnOid;

/// Reads the capabilities a client chose, and the object format among them.
fn parse_capabilities(list: &[u8]) -> (ClientCapabilities, Option<&BStr>) {
    let mut capabilities = ClientCapabilities::default();
    let mut object_format = None;
    for word in list.split(|&byte| byte == b' ') {
        let (name, value) = match word.split_once_str("=") {
            Some((name, value)) => (name, Some(value.as_bstr())),
            None => (word, None),
        };
        let owned = || value.map(BString::from);
        match name {
            b"report-status-v2" => capabilities.report = Report::V2,
            b"report-status" if capabilities.report == Report::None => {
                capabilities.report = Report::V1;
            }
            b"side-band-64k" => capabilities.side_band_64k = true,
            b"atomic" => capabilities.atomic = true,
            b"quiet" => capabilities.quiet = true,
            b"push-options" => capabilities.push_options = true,
            b"agent" => capabilities.agent = owned(),
            b"session-id" => capabilities.session_id = owned(),
            // Without a value it names no format that anybody has, and so fails, as with git.
            b"object-format" => object_format = Some(value.unwrap_or_default()),
            _ => {}
        }
    }
    (capabilities, object_format)
}

fn within(count: usize, limit: usize, of: &'static str) -> Result<usize, ReceiveError> {
    if count > limit { Err(ReceiveError::TooMuch { limit, of }) } else { Ok(count) }
}

fn chomp(data: &[u8]) -> &[u8] {
    data.strip_suffix(b"\n").unwrap_or(data)
}
