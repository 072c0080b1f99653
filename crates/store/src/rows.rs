//! What the store keeps, as plain data: changes and batches of them, rows, records, tokens. Applying them is the writer's
//! business.

pub(crate) mod archive;
pub(crate) mod batch;
pub(crate) mod change_event;
pub(crate) mod delivery;
pub(crate) mod idempotency;
pub(crate) mod owners;
pub(crate) mod row;
pub(crate) mod tick;
pub(crate) mod token;
