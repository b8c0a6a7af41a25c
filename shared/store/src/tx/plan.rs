//! The plan of a transaction of several refs, as text: one line `old new name` per ref, `-` for "does not exist".

use bstr::ByteSlice;
use zit_model::{Oid, RefChange, RefName, RefUpdate};

const HEADER: &[u8] = b"zit-tx 1";

/// The file's content. The last line holds the count, so that a torn file is never taken for a whole one.
pub(crate) fn encode(updates: &[RefUpdate]) -> Vec<u8> {
    let text = |oid: Option<Oid>| oid.map_or("-".to_owned(), |oid| oid.to_string());
    let mut out = HEADER.to_vec();
    out.push(b'\n');
    for update in updates {
        let values =
            format!("{} {} ", text(update.change.old_value()), text(update.change.new_value()));
        out.extend_from_slice(values.as_bytes());
        out.extend_from_slice(update.name.as_bstr());
        out.push(b'\n');
    }
    out.extend_from_slice(format!("end {}\n", updates.len()).as_bytes());
    out
}

/// Reads it back; `None` for anything that [`encode`] did not write whole.
pub(crate) fn decode(content: &[u8]) -> Option<Vec<RefUpdate>> {
    let mut lines: Vec<&[u8]> = content.strip_suffix(b"\n")?.split(|&byte| byte == b'\n').collect();
    let end = lines.pop()?;
    let (header, lines) = lines.split_first()?;
    let updates: Vec<RefUpdate> = lines.iter().map(|line| update(line)).collect::<Option<_>>()?;
    let whole = *header == HEADER && end == format!("end {}", updates.len()).as_bytes();
    whole.then_some(updates)
}

fn update(line: &[u8]) -> Option<RefUpdate> {
    let mut words = line.splitn_str(3, " ");
    let (old, new, name) = (words.next()?, words.next()?, words.next()?);
    let value = |hex: &[u8]| match hex {
        b"-" => Some(None),
        hex => Oid::from_hex(hex).ok().map(Some),
    };
    let change = RefChange::between(value(old)?, value(new)?)?;
    Some(RefUpdate { name: RefName::new(name).ok()?, change })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn updates() -> Vec<RefUpdate> {
        let [old, new] = [b'1', b'2'].map(|digit| Oid::from_hex(&[digit; 40]).unwrap());
        let name = |name: &[u8]| RefName::new(name).unwrap();
        vec![
            RefUpdate { name: name(b"refs/heads/a"), change: RefChange::Create { new } },
            RefUpdate { name: name(b"refs/heads/\xff"), change: RefChange::Move { old, new } },
            RefUpdate { name: name(b"refs/heads/c"), change: RefChange::Delete { old } },
        ]
    }

    #[test]
    fn a_plan_reads_back_as_written() {
        assert_eq!(decode(&encode(&updates())).unwrap(), updates());
    }

    #[test]
    fn a_torn_plan_is_no_plan() {
        let whole = encode(&updates());
        for end in 0..whole.len() {
            assert_eq!(decode(&whole[..end]), None, "cut at {end}");
        }
    }
}
