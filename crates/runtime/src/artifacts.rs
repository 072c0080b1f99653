//! Artifacts on this machine: a content-addressed store, and packing and unpacking between it and a task's files.
//! Paths from archives are never trusted; bytes in the store are never changed.

mod budget;
mod carrier;
mod items;
mod keys;
mod lend;
mod pack;
mod store;
mod text;
mod unpack;

pub(crate) use carrier::Alive;
pub use carrier::{Carrier, Error as CarrierError};
pub use lend::Loan;
pub(crate) use pack::{keep_log, save};
pub use store::{Error, Store};
pub use text::text;
pub(crate) use unpack::{Parcel, place};
