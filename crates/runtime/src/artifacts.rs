//! Artifacts on this machine: a content-addressed store, and packing and unpacking between it and a task's files.
//! Paths from archives are never trusted; bytes in the store are never changed.

mod budget;
mod client;
mod download;
mod items;
mod keys;
mod medium;
mod pack;
mod store;
mod text;
mod unpack;

pub(crate) use client::IsWanted;
pub use client::{ArtifactClient, Error as ArtifactError};
pub use download::Download;
pub(crate) use pack::{keep_log, save};
pub use store::{Error, Store};
pub use text::text;
pub(crate) use unpack::{ArtifactFile, place};
