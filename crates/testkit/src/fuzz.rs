//! The fuzzer: texts made from one number, by grammar and by damaging seeds, thrown at everything that reads what users
//! write. A case is a pure function of target, number and seeds, so every finding can be shown again.

mod case;
mod drive;
mod flow;
mod grammar;
mod kubejob;
mod plugin;
mod seeds;
mod target;
mod words;

pub use case::{Case, case};
pub use seeds::{BROKE, Seeds, folder};
pub use target::{TARGETS, Target};
