//! git's services over one repository's referee, whatever carries the bytes: HTTP, a pipe or a socket.
//!
//! An edge learns who asks and for what, and calls one of
//!
//! ```text
//! advertise::info_refs    the refs and capabilities that come before a request
//! upload_pack::answer     one request of a fetch; small_fetch answers what takes no program,
//!                         shared_fetch what many ask for
//! receive_pack::begin     one push
//! archive::answer         one archive, made by git
//! files::open             refs and objects as files
//! ```
//!
//! or, where both sides keep talking, [`pipe::serve`]. Without a server, [`local`] finds the repository's referee:
//! that of a running server through its [`socket`], or one in this process.
//!
//! Everything here blocks and is to be called on threads that may. A request is read from any [`std::io::Read`]; an
//! answer is whole, or, from the pack source, a [`relay::Relay`] that the edge moves on threads of its own.
//!
//! Never judges: what a push may do is decided behind one door, [`zit_referee::Repository`]. Knows nothing of HTTP.

pub mod advertise;
pub mod archive;
mod error;
pub mod files;
pub mod hello;
pub mod local;
pub mod pack_body;
pub mod pipe;
pub mod receive_pack;
pub mod relay;
pub mod shared_fetch;
mod small_fetch;
pub mod socket;
mod source;
pub mod upload_pack;
mod view;

pub use error::ServiceError;
pub use hello::Hello;
pub use source::FetchSource;
pub use view::View;
