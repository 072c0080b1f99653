//! The durable store: submitted objects, the facts of unfinished runs, an index of all runs, and the archive. It moves
//! opaque bytes and knows no dialect; nothing of SQLite shows in the public types.

mod apply;
mod archive;
mod batch;
mod busy_timer;
mod change_event;
mod checkpoint;
mod connect;
mod error;
#[cfg(any(test, feature = "faults"))]
pub mod faults;
mod files;
mod foreground;
mod idempotency;
mod list;
mod lock;
mod marker;
mod memory;
mod migrate;
mod owners;
mod pool;
mod private;
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
mod token;
mod writer;

pub use archive::{Archive, RecordId};
pub use batch::{Batch, Change};
pub use busy_timer::BusyTimer;
pub use change_event::{ChangeEvent, ChangedItem, Notification, Observer, OnFailure};
pub use error::Error;
pub use foreground::{Foreground, Load, Request};
pub use idempotency::IdempotencyKey;
pub use list::{BadCursor, Cursor, Filter, LabelTest, MAX_PAGE, Page};
pub use memory::MemoryStore;
pub use owners::Name;
pub use private::foreign_owner;
pub use reader::{FactRows, ObjectPage, Reader};
pub use rewrite::PlaintextLeft;
pub use row::{Object, RunRow, RunUpdate};
pub use seal::{SecretsCount, SecretsKey};
pub use space::Space;
pub use stats::{Histogram, Stats};
pub use tick::Tick;
pub use token::{Password, Token};
pub use writer::Store;

#[cfg(test)]
mod tests;
