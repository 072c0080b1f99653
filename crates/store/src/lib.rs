//! The durable truth: what users submitted, the facts of unfinished runs, an index of all runs, and the archive.
//! It moves opaque bytes and knows no dialect; nothing of the database behind it shows in the public types.

mod apply;
mod archive;
mod batch;
mod checkpoint;
mod claim;
mod connect;
mod error;
#[cfg(any(test, feature = "faults"))]
pub mod faults;
mod files;
mod foreground;
mod list;
mod lock;
mod marker;
mod migrate;
mod note;
mod pool;
mod private;
mod pulse;
mod queue;
mod reader;
mod reserve;
mod rewrite;
mod row;
mod schema;
mod seal;
mod space;
mod stage;
mod stats;
mod tick;
mod ties;
mod token;
mod writer;

pub use archive::{Archive, RecordId};
pub use batch::{Batch, Change};
pub use claim::Claim;
pub use error::Error;
pub use foreground::{Foreground, Load, Request};
pub use list::{BadCursor, Cursor, Filter, LabelTest, MAX_PAGE, Page};
pub use note::{Note, Observer, OnFailure, Told, What};
pub use private::foreign_owner;
pub use pulse::Pulse;
pub use reader::{FactRows, ObjectPage, Reader};
pub use rewrite::PlaintextLeft;
pub use row::{Object, RunRow, RunUpdate};
pub use seal::{SecretsKept, SecretsKey};
pub use space::Space;
pub use stats::{Histogram, Stats};
pub use tick::Tick;
pub use ties::Name;
pub use token::{Password, Token};
pub use writer::Store;

#[cfg(test)]
mod tests;
