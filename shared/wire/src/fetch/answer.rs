//! The sections of an answer to `fetch`.
//!
//! ```text
//! S: acknowledgments              unless the client is done, or has nothing
//! S: ACK <oid>  (or NAK)
//! S: ready                        when the pack follows
//! S: delim-pkt
//! S: packfile
//! S: <the pack on side-band 1>
//! S: flush-pkt
//! ```

use zit_model::Oid;

use crate::pkt;
use crate::refs::push_oid;
use crate::side_band::{self, Band};

/// What a fetching client is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// What both have, and that more has to be known before there is a pack.
    Acknowledged(&'a [Oid]),
    /// The pack.
    Pack {
        /// What both have; `None` for a client that does not wait to be told.
        acknowledged: Option<&'a [Oid]>,
        /// A whole pack, its trailer included.
        pack: &'a [u8],
    },
}

/// Writes the answer to one request.
#[must_use]
pub fn respond(answer: Answer<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match answer {
        Answer::Acknowledged(common) => write_acknowledgments(common, &mut out),
        Answer::Pack { acknowledged, pack } => {
            if let Some(common) = acknowledged {
                write_acknowledgments(common, &mut out);
                line(&mut out, b"ready");
                pkt::delim(&mut out);
            }
            line(&mut out, b"packfile");
            side_band::write(&mut out, Band::Data, pack);
        }
    }
    pkt::flush(&mut out);
    out
}

fn write_acknowledgments(common: &[Oid], out: &mut Vec<u8>) {
    line(out, b"acknowledgments");
    if common.is_empty() {
        line(out, b"NAK");
    }
    for oid in common {
        pkt::text_with(out, |out| {
            out.extend_from_slice(b"ACK ");
            push_oid(out, *oid);
        });
    }
}

fn line(out: &mut Vec<u8>, text: &[u8]) {
    pkt::text_with(out, |out| out.extend_from_slice(text));
}

#[cfg(test)]
mod tests {
    use bstr::ByteSlice;

    use super::*;

    #[track_caller]
    fn check(answer: Answer<'_>, expected: &str) {
        assert_eq!(respond(answer).as_bstr(), expected);
    }

    #[test]
    fn each_answer_has_the_sections_that_git_expects() {
        let hex = "a".repeat(40);
        let oid = Oid::from_hex(hex.as_bytes()).unwrap();
        let ack = format!("0031ACK {hex}\n");
        check(Answer::Acknowledged(&[]), "0014acknowledgments\n0008NAK\n0000");
        check(Answer::Acknowledged(&[oid]), &format!("0014acknowledgments\n{ack}0000"));
        check(
            Answer::Pack { acknowledged: Some(&[oid]), pack: b"PACK" },
            &format!("0014acknowledgments\n{ack}000aready\n0001000dpackfile\n0009\x01PACK0000"),
        );
        check(Answer::Pack { acknowledged: None, pack: b"PACK" }, "000dpackfile\n0009\x01PACK0000");
    }
}
