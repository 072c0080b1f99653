//! Tools that attack the controller: a seeded simulator of whole worlds, a fuzzer of texts, and benchmarks
//! against yardsticks.
//! For developers only; nothing that ships may depend on it.

pub mod bench;
pub mod fuzz;
pub mod recount;
pub mod sim;
