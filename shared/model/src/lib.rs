//! zit's vocabulary as types: every name is parsed once, at the border, and carries its proof from then on.
//!
//! Invariant: nothing here reads a clock, a file, the environment or the network.
//! Invariant: no name converts into another kind of name. An agent id is not a refname:
//!
//! ```compile_fail
//! let agent: zit_model::AgentId = "claude".parse().unwrap();
//! let name: zit_model::RefName = agent.into();
//! ```

pub mod agent;
pub mod change;
pub mod document;
pub mod envelope;
pub mod failure;
pub mod namespace;
pub mod oid;
pub mod options;
pub mod overheard;
pub mod prompt;
pub mod quote;
pub mod refname;
pub mod refs;
pub mod resource;
pub mod settings;
pub mod time;
pub mod trailers;

pub use agent::{AgentId, ItemId, Principal, PrincipalKind};
pub use change::{RefChange, RefUpdate};
pub use namespace::Namespace;
pub use oid::Oid;
pub use prompt::Prompt;
pub use refname::RefName;
pub use resource::Resource;
pub use time::{Instant, Now, UnixSeconds};
