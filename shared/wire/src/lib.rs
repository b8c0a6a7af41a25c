//! git's protocol as a server speaks it: bytes in, values out, and back.
//!
//! The stages of a request, and where each lives:
//!
//! ```text
//! GET  info/refs          service -> advertise
//! POST git-upload-pack    command -> ls_refs, fetch, object_info, bundle_uri  (protocol v2)
//! POST git-receive-pack   receive -> (judged elsewhere) -> report, wrapped in side_band
//! ```
//!
//! Invariant: nothing here does IO, waits, or knows which transport carries the bytes.
//! Invariant: the all-zero oid ends here. Decoders answer `None` for it and encoders write it for `None`.
//! Invariant: bytes of a peer are never indexed unchecked, and no memory is reserved on a peer's word.

pub mod advertise;
pub mod arguments;
pub mod bundle_uri;
mod capability;
pub mod command;
pub mod fetch;
pub mod ls_refs;
pub mod nonce;
pub mod object_info;
pub mod pack_end;
pub mod pkt;
pub mod proc_receive;
pub mod receive;
pub mod refs;
pub mod report;
pub mod service;
pub mod side_band;

pub use capability::{Agent, Extras, MAX_AGENT};
