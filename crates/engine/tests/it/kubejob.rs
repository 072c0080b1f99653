//! `batch/v1` Jobs played in virtual time: what the dialect promises, and what must hold for every job there could be.

mod oracle;
mod stage;

mod failures;
mod indexes;
mod pods;
mod properties;
