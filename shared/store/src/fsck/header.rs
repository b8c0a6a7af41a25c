//! Checks of commits and tags: the lines before the message.
//!
//! Each function answers whether what it found refuses the object; what follows a refusal is not looked at.

use bstr::ByteSlice as _;
use zit_model::RefName;

use super::{Fsck, Id};

/// Which line of a person's is wrong, and how: all texts begin so.
const PERSON: &str = "invalid author/committer line - ";

impl Fsck<'_> {
    pub(super) fn commit(&mut self, data: &[u8]) -> bool {
        if self.header(data) {
            return true;
        }
        let Some(mut rest) = data.strip_prefix(b"tree ") else {
            return self.report(Id::MissingTree, "invalid format - expected 'tree' line");
        };
        if self.id(&mut rest, Id::BadTreeSha1, "invalid 'tree' line format - bad sha1") {
            return true;
        }
        while let Some(parent) = rest.strip_prefix(b"parent ") {
            rest = parent;
            if self.id(&mut rest, Id::BadParentSha1, "invalid 'parent' line format - bad sha1") {
                return true;
            }
        }
        let mut n_authors = 0;
        while let Some(author) = rest.strip_prefix(b"author ") {
            rest = author;
            n_authors += 1;
            if self.person(line(&mut rest)) {
                return true;
            }
        }
        let authors = match n_authors {
            0 => self.report(Id::MissingAuthor, "invalid format - expected 'author' line"),
            1 => false,
            _ => self.report(Id::MultipleAuthors, "invalid format - multiple 'author' lines"),
        };
        if authors {
            return true;
        }
        let Some(mut rest) = rest.strip_prefix(b"committer ") else {
            return self.report(Id::MissingCommitter, "invalid format - expected 'committer' line");
        };
        self.person(line(&mut rest))
            || data.contains(&0)
                && self.report(Id::NulInCommit, "NUL byte in the commit object body")
    }

    pub(super) fn tag(&mut self, data: &[u8]) -> bool {
        if self.header(data) {
            return true;
        }
        let Some(mut rest) = data.strip_prefix(b"object ") else {
            return self.report(Id::MissingObject, "invalid format - expected 'object' line");
        };
        if self.id(&mut rest, Id::BadObjectSha1, "invalid 'object' line format - bad sha1") {
            return true;
        }
        let Some(mut rest) = rest.strip_prefix(b"type ") else {
            return self.report(Id::MissingTypeEntry, "invalid format - expected 'type' line");
        };
        if !rest.contains(&b'\n') {
            let text = "invalid format - unexpected end after 'type' line";
            return self.report(Id::MissingType, text);
        }
        let kind = line(&mut rest);
        let is_kind = gix_object::Kind::from_bytes(kind).is_ok();
        if !is_kind && self.report(Id::BadType, "invalid 'type' value") {
            return true;
        }
        let Some(mut rest) = rest.strip_prefix(b"tag ") else {
            return self.report(Id::MissingTagEntry, "invalid format - expected 'tag' line");
        };
        if !rest.contains(&b'\n') {
            let text = "invalid format - unexpected end after 'type' line";
            return self.report(Id::MissingTag, text);
        }
        let name = line(&mut rest);
        let is_name = RefName::new([b"refs/tags/", name].concat()).is_ok();
        let text = || format!("invalid 'tag' name: {}", name.as_bstr());
        if !is_name && self.report(Id::BadTagName, &text()) {
            return true;
        }
        self.tagger(rest)
    }

    fn tagger(&mut self, rest: &[u8]) -> bool {
        let mut rest = rest;
        let is_refused = if let Some(tagger) = rest.strip_prefix(b"tagger ") {
            rest = tagger;
            self.person(line(&mut rest))
        } else {
            self.report(Id::MissingTaggerEntry, "invalid format - expected 'tagger' line")
        };
        if is_refused {
            return true;
        }
        let is_end = rest.first().is_none_or(|byte| *byte == b'\n');
        !is_end
            && self.report(Id::ExtraHeaderEntry, "invalid format - extra header(s) after 'tagger'")
    }

    /// A header ends with an empty line, or with the object at the end of a line.
    fn header(&mut self, data: &[u8]) -> bool {
        let header = data.find(b"\n\n").and_then(|end| data.get(..end)).unwrap_or(data);
        if let Some(at) = header.find_byte(0) {
            let text = format!("unterminated header: NUL at offset {at}");
            return self.report(Id::NulInHeader, &text);
        }
        let is_ended = header.len() < data.len() || data.last() == Some(&b'\n');
        !is_ended && self.report(Id::UnterminatedHeader, "unterminated header")
    }

    /// The rest of a line must be an oid.
    fn id(&mut self, rest: &mut &[u8], id: Id, text: &str) -> bool {
        let hex = line(rest);
        let is_id = hex.len() == self.hash.len_in_hex() && hex.iter().all(u8::is_ascii_hexdigit);
        !is_id && self.report(id, text)
    }

    /// `Name <mail> seconds +hhmm`.
    fn person(&mut self, line: &[u8]) -> bool {
        match person(line) {
            Ok(()) => false,
            Err((id, what)) => self.report(id, &format!("{PERSON}{what}")),
        }
    }
}

/// Takes a line off, without its end.
fn line<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let (line, behind) = rest.split_once_str("\n").unwrap_or((rest, b""));
    *rest = behind;
    line
}

fn person(line: &[u8]) -> Result<(), (Id, &'static str)> {
    let bracket = |byte: u8| byte == b'<' || byte == b'>';
    let (name, rest) = split_at(line, line.iter().position(|byte| bracket(*byte)));
    match rest.first() {
        Some(b'<') if name.is_empty() => {
            return Err((Id::MissingNameBeforeEmail, "missing space before email"));
        }
        Some(b'<') if name.last() != Some(&b' ') => {
            return Err((Id::MissingSpaceBeforeEmail, "missing space before email"));
        }
        Some(b'<') => {}
        Some(_) => return Err((Id::BadName, "bad name")),
        None => return Err((Id::MissingEmail, "missing email")),
    }
    let rest = rest.get(1..).unwrap_or_default();
    let (_, rest) = split_at(rest, rest.iter().position(|byte| bracket(*byte)));
    let Some(rest) = rest.strip_prefix(b">") else { return Err((Id::BadEmail, "bad email")) };
    let Some(rest) = rest.strip_prefix(b" ") else {
        return Err((Id::MissingSpaceBeforeDate, "missing space before date"));
    };
    when(rest.trim_start_with(|c| c == ' ' || c == '\t'))
}

fn when(rest: &[u8]) -> Result<(), (Id, &'static str)> {
    let bad_date = Err((Id::BadDate, "bad date"));
    let n_digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = rest.split_at_checked(n_digits).unwrap_or_default();
    if digits.is_empty() {
        return bad_date;
    }
    let is_zero = digits == b"0" && rest.first() == Some(&b' ');
    if digits.first() == Some(&b'0') && !is_zero {
        return Err((Id::ZeroPaddedDate, "zero-padded date"));
    }
    if digits.to_str().is_ok_and(|digits| digits.parse::<i64>().is_err()) {
        return Err((Id::BadDateOverflow, "date causes integer overflow"));
    }
    let Some(zone) = rest.strip_prefix(b" ") else { return bad_date };
    match zone {
        [b'+' | b'-', digits @ ..]
            if digits.len() == 4 && digits.iter().all(u8::is_ascii_digit) =>
        {
            Ok(())
        }
        _ => Err((Id::BadTimezone, "bad time zone")),
    }
}

fn split_at(line: &[u8], at: Option<usize>) -> (&[u8], &[u8]) {
    line.split_at_checked(at.unwrap_or(line.len())).unwrap_or_default()
}
