//! The certificate of a signed push: whose signature it is, whether its nonce is ours, and what hooks are told of it.
//!
//! A bad signature refuses nothing by itself: as in git, that is for `pre-receive` to say.
//!
//! Source: git's `builtin/receive-pack.c`, `prepare_push_cert_sha1` and `check_nonce`; git-receive-pack(1).

use std::ffi::OsString;

use bstr::ByteSlice as _;
use zit_model::{Oid, UnixSeconds};
use zit_store::journal::Fact;
use zit_store::{Checked, Quarantine, Store, StoreError};
use zit_wire::nonce::{self, NonceStatus, Seed};
use zit_wire::receive::PushCert;

use crate::speaker::Caller;

/// What was found out about a certificate.
#[derive(Clone, Debug)]
pub(crate) struct Signed {
    /// The blob that holds it.
    oid: Oid,
    /// What became of the look at its signature.
    pub(crate) checked: Checked,
    /// The nonce that it should have, where one was given.
    nonce: Option<String>,
    status: NonceStatus,
}

/// Makes the nonce that a pusher is given `now`; `None` where the repository asks for no certificates.
///
/// # Errors
/// [`StoreError`] when the configuration cannot be read.
pub(crate) fn nonce(store: &Store, now: UnixSeconds) -> Result<Option<String>, StoreError> {
    let config = store.config()?;
    let path = path(store);
    let secret = config.receive.nonce_seed.as_ref();
    let seed = secret.map(|secret| Seed { kind: store.hash_kind(), secret, path: &path });
    Ok(seed.and_then(|seed| nonce::issue(seed, now)))
}

/// Looks at the certificate of a push, and puts it among the objects that came with it.
///
/// # Errors
/// [`StoreError`] when the configuration cannot be read or nothing can be written.
pub(crate) fn look(
    store: &Store,
    caller: &Caller,
    cert: &PushCert,
    now: UnixSeconds,
    incoming: &mut Option<Quarantine>,
) -> Result<Signed, StoreError> {
    let place = match incoming {
        Some(place) => place,
        None => incoming.insert(store.quarantine()?),
    };
    let oid = place.write_blob(cert.text())?;
    let checked = store.check_signature(cert.payload(), cert.signature())?;
    let config = store.config()?;
    let path = path(store);
    let given = caller.nonce.clone().map_or_else(|| nonce(store, now), |given| Ok(Some(given)))?;
    let found = cert.nonce();
    let (nonce, status) = match (&config.receive.nonce_seed, given) {
        (_, given) if found.is_none() => (given, NonceStatus::Missing),
        (None, _) | (_, None) => (None, NonceStatus::Unsolicited),
        (Some(_), Some(given)) if found == Some(given.as_bytes().as_bstr()) => {
            (Some(given), NonceStatus::Ok)
        }
        // Whoever was given one on this very connection has to come back with that.
        (Some(_), Some(given)) if caller.nonce.is_some() => (Some(given), NonceStatus::Bad),
        (Some(secret), Some(given)) => {
            let seed = Seed { kind: store.hash_kind(), secret, path: &path };
            let status = nonce::check(seed, found, now, config.receive.nonce_slop);
            let found = found.map(ToString::to_string).filter(|_| status == NonceStatus::Ok);
            (Some(found.unwrap_or(given)), status)
        }
    };
    let key = &checked.key;
    tracing::info!(result = %checked.result, %key, nonce = status.as_str(), "push is signed");
    Ok(Signed { oid, checked, nonce, status })
}

impl Signed {
    /// What the hooks are told that look at the push as a whole.
    pub(crate) fn env(&self) -> Vec<(String, OsString)> {
        let mut env = vec![
            ("GIT_PUSH_CERT", self.oid.to_string()),
            ("GIT_PUSH_CERT_KEY", self.checked.key.clone()),
            ("GIT_PUSH_CERT_SIGNER", self.checked.signer.clone()),
            ("GIT_PUSH_CERT_STATUS", self.checked.result.to_string()),
        ];
        if let Some(nonce) = &self.nonce {
            env.push(("GIT_PUSH_CERT_NONCE", nonce.clone()));
            env.push(("GIT_PUSH_CERT_NONCE_STATUS", self.status.as_str().to_owned()));
            if let NonceStatus::Slop(seconds) = self.status {
                env.push(("GIT_PUSH_CERT_NONCE_SLOP", seconds.to_string()));
            }
        }
        env.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }

    /// Who signed, for the journal; nobody whose key is not known to be theirs, or whose nonce is not ours.
    pub(crate) fn fact(&self) -> Option<Fact> {
        let proven = self.checked.is_trusted && self.status == NonceStatus::Ok;
        let signer = self.checked.signer.as_str();
        proven.then(|| Fact::new(Fact::SIGNER, self.oid.to_string(), signer))
    }
}

/// What tells this repository from others with the same secret.
fn path(store: &Store) -> Vec<u8> {
    store.git_dir().as_os_str().as_encoded_bytes().to_vec()
}
