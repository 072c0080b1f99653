//! The database file: how it is opened, locked, migrated and encrypted, and what proves that it is ours.
//! Decides nothing about what is written.

pub(crate) mod connect;
pub(crate) mod files;
pub(crate) mod lock;
pub(crate) mod marker;
pub(crate) mod migrate;
pub(crate) mod private;
pub(crate) mod schema;
pub(crate) mod seal;
pub(crate) mod space;
