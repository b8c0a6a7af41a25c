//! The referee of one repository: it judges what a push asks for, carries it out, and answers.
//!
//! Use: [`Repository::open`] once for each repository, then [`Repository::push`] from any thread.
//!
//! The way of a push, stage by stage:
//!
//! 1. `repository` takes the pack into a quarantine, unless the push has lost its `race` already, looks whether what
//!    came is `complete` and who has `signed` it, asks the repository's own `hooks`, and expands commands and options
//!    (`push`); from the start, names of a namespace are those that the repository has for them (`namespaced`);
//! 2. `footprints` finds out what the pushed commits touch, beside the actor and in parallel;
//! 3. the `actor` judges (`judge`, a pure function of push, `view` and time) and carries the verdict out
//!    (`plan`, `carry_out`, `documents`): one ref transaction, then the view;
//! 4. an accept is composed beside the actor and landed by it (`landing`);
//! 5. `answer` and `words` turn the facts into a report and text.
//!
//! Invariant: the actor is the only writer of refs, and judges against a view that only it changes.
//! Invariant: `judge` reads no clock, no file and no ref.

mod actor;
mod again;
mod answer;
mod around;
mod carry_out;
mod claims;
mod clock;
mod complete;
mod denied;
mod documents;
mod error;
pub mod footprints;
mod forms;
mod hooks;
mod inspect;
mod judge;
mod landing;
mod namespaced;
mod open;
mod plan;
mod proc_receive;
mod published;
mod push;
mod race;
mod recent;
mod renames;
mod repository;
mod seen;
mod signed;
mod speaker;
mod status;
mod verdict;
mod view;
mod words;

pub use answer::PushAnswer;
pub use clock::{BootClock, Clock, ManualClock, SystemClock};
pub use error::RefereeError;
pub use hooks::Nobody;
pub use inspect::inspect;
pub use repository::{Repository, refs_for_fetch};
pub use speaker::{Caller, Door, OtherAgent, Speaker};
