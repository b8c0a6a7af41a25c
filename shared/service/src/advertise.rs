//! The repository as the wire tells of it: its refs, its HEAD, and what it offers.

use std::collections::BTreeSet;

use bstr::{BString, ByteSlice};
use zit_model::Namespace;
use zit_referee::{Caller, Repository};
use zit_store::{Reading, ResolvedHead, StoreError, StoredRef, Unborn, Wants};
use zit_wire::advertise::Offering;
use zit_wire::ls_refs::Prefixes;
use zit_wire::refs::{AdvertisedRef, Head};
use zit_wire::service::{ProtocolVersion, Service};
use zit_wire::{Agent, Extras, advertise};

use crate::ServiceError;
use crate::source::FetchSource;
use crate::view::View;

/// Writes the answer to `GET info/refs`.
///
/// # Errors
/// [`ServiceError`] when the repository cannot be read.
pub fn info_refs(
    repository: &Repository,
    service: Service,
    version: ProtocolVersion,
    caller: &Caller,
) -> Result<Vec<u8>, ServiceError> {
    let offering = offering(repository.reading())?;
    match service {
        Service::UploadPack if version == ProtocolVersion::V2 => {
            Ok(advertise::upload_pack_v2(&offering))
        }
        Service::UploadPack => match &caller.namespace {
            Some(namespace) => upload_pack(&View::new(repository, namespace), &offering, version),
            None => upload_pack(repository, &offering, version),
        },
        Service::ReceivePack => {
            let (refs, offering) = pushable(repository, offering, caller)?;
            let offering = Offering { nonce: repository.push_nonce()?, ..offering };
            Ok(advertise::receive_pack(&offering, version, &refs))
        }
    }
}

fn upload_pack(
    source: &dyn FetchSource,
    offering: &Offering,
    version: ProtocolVersion,
) -> Result<Vec<u8>, ServiceError> {
    let refs = advertised(source.refs_for_fetch(&Prefixes::default())?);
    let head = head(source)?;
    Ok(advertise::upload_pack(offering, version, head.as_ref(), &refs))
}

/// What a pusher is shown: refs, and objects that it need not send.
fn pushable(
    repository: &Repository,
    offering: Offering,
    caller: &Caller,
) -> Result<(Vec<AdvertisedRef>, Offering), ServiceError> {
    let (refs, mut haves) = match &caller.namespace {
        Some(namespace) => repository.view_for_push(namespace)?,
        None => (repository.refs_for_push(caller.agent().as_ref())?, BTreeSet::new()),
    };
    haves.extend(repository.reading().alternate_refs()?);
    Ok((advertised(refs), Offering { haves, ..offering }))
}

/// Writes what a pushing client on a pipe is told first. The caller has its nonce already.
pub(crate) fn push_on_pipe(
    repository: &Repository,
    version: ProtocolVersion,
    caller: &Caller,
) -> Result<Vec<u8>, ServiceError> {
    let (refs, offering) = pushable(repository, offering(repository.reading())?, caller)?;
    let offering = Offering { nonce: caller.nonce.clone(), ..offering };
    Ok(advertise::receive_pack_on_pipe(&offering, version, &refs))
}

/// Writes what a client of protocol 2 on a pipe is told first; it names no refs.
pub(crate) fn fetch_v2(store: Reading<'_>) -> Result<Vec<u8>, ServiceError> {
    Ok(advertise::upload_pack_v2(&offering(store)?))
}

/// The software that answers, as it is told to clients.
pub(crate) fn agent() -> Agent {
    Agent::new(concat!("zit/", env!("CARGO_PKG_VERSION")))
}

/// An id for what a client is told now, which the log has beside the request.
fn session_id() -> String {
    let id = format!("zit-{:016x}-P{:08x}", fastrand::u64(..), std::process::id());
    tracing::info!(session_id = id, "a client is told the id of this session");
    id
}

/// Notes the id that a client gives its session, so that its log and ours can be put beside each other.
pub(crate) fn note_session(id: Option<&BString>) {
    if let Some(id) = id {
        tracing::info!(client_session_id = ?id, "a client names its session");
    }
}

/// Refs as the wire has them, in the order given.
pub(crate) fn advertised(refs: Vec<StoredRef>) -> Vec<AdvertisedRef> {
    let convert = |StoredRef { name, oid, peeled, symref_target }| AdvertisedRef {
        name,
        oid,
        peeled,
        symref_target,
    };
    refs.into_iter().map(convert).collect()
}

/// HEAD as the wire has it; `None` also where it is hidden.
///
/// # Errors
/// [`StoreError`] when it cannot be read.
pub(crate) fn head(source: &dyn FetchSource) -> Result<Option<Head>, StoreError> {
    let store = source.reading();
    let (name, namespace) = (b"HEAD".as_bstr(), source.namespace());
    let full = [namespace.map_or("", Namespace::prefix).as_bytes(), name].concat();
    if store.config()?.hidden_from_fetch.hides_in(Some(name), full.as_bstr()) {
        return Ok(None);
    }
    let ResolvedHead { target, oid, peeled } = match namespace {
        None => store.resolved_head()?,
        Some(namespace) => match store.resolved_head_of(namespace)? {
            Some(ResolvedHead { target, oid, peeled }) => {
                let target = target.and_then(|target| namespace.strip_ref(&target));
                ResolvedHead { target, oid, peeled }
            }
            None => return Ok(None),
        },
    };
    Ok(match (target, oid) {
        (Some(target), Some(oid)) => Some(Head::Attached { target, oid, peeled }),
        (Some(target), None) => Some(Head::Unborn(target)),
        (None, oid) => oid.map(|oid| Head::Detached { oid, peeled }),
    })
}

fn offering(store: Reading<'_>) -> Result<Offering, StoreError> {
    let config = store.config()?;
    Ok(Offering {
        haves: BTreeSet::new(),
        nonce: None,
        session_id: config.advertise_sid.then(session_id),
        shallow: store.shallow(),
        object_format: store.hash_kind(),
        agent: agent(),
        extras: Extras {
            filter: config.allow_filter,
            // As git's upload-pack says it: any object includes tips and what they reach, but what is reachable does
            // not name the tips.
            tip_wants: matches!(config.wants, Wants::Tips | Wants::Any),
            reachable_wants: matches!(config.wants, Wants::Reachable | Wants::Any),
            ref_in_want: config.ref_in_want,
            sideband_all: config.sideband_all,
            object_info: config.object_info,
            bundle_uri: config.bundles.is_some(),
            hide_unborn: config.unborn != Unborn::Advertise,
            hide_atomic: !config.advertise_atomic,
            hide_push_options: !config.advertise_push_options,
            hide_ofs_delta: !config.ofs_delta,
        },
    })
}
