//! The durable store: submitted objects, the facts of unfinished runs, an index of all runs, and the archive. It moves
//! opaque bytes and knows no dialect; nothing of SQLite shows in the public types.

mod database;
mod error;
#[cfg(any(test, feature = "faults"))]
pub mod faults;
mod memory;
mod reader;
mod rows;
mod writer;

pub use database::private::foreign_owner;
pub use database::seal::{SecretsCount, SecretsKey};
pub use database::space::Space;
pub use error::Error;
pub use memory::MemoryStore;
pub use reader::list::{BadCursor, Cursor, Filter, LabelTest, MAX_PAGE, NumberedPage, Page};
pub use reader::{FactRows, ObjectPage, Reader};
pub use rows::archive::{Archive, RecordId};
pub use rows::batch::{Batch, Change};
pub use rows::change_event::{ChangeEvent, ChangedItem, Notification, Observer, OnFailure};
pub use rows::delivery::{Delivery, DeliveryCount, DeliveryFilter, DeliveryStatus};
pub use rows::idempotency::IdempotencyKey;
pub use rows::owners::Name;
pub use rows::row::{Object, RunRow, RunUpdate};
pub use rows::tick::Tick;
pub use rows::token::{Password, Token};
pub use writer::Store;
pub use writer::busy_timer::BusyTimer;
pub use writer::foreground::{Foreground, Load, Request};
pub use writer::rewrite::PlaintextLeft;
pub use writer::stats::{Histogram, Stats};

#[cfg(test)]
mod tests;
