//! Volcano jobs played in virtual time: what the dialect promises, by the numbers of the scenarios, and what must hold for
//! every job there could be.

mod oracle;
mod scaling;
mod scheme;
mod stage;

mod containers;
mod dependencies;
mod estimates;
mod gangs;
mod phases;
mod pods;
mod policies;
mod properties;
