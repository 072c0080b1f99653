//! Benchmarks: what the controller costs, told as ratios against yardsticks measured in the same run.
//! Everything is measured in processes of its own, so that no row pays for another.

mod beside;
mod controller;
mod flood;
mod flows;
mod hello;
mod measure;
mod oneshot;
mod os;
mod pages;
mod replicas;
mod restart;
mod role;
mod row;
mod rows;
mod sched;
mod serve;
mod shape;
mod spawn;
mod submits;
mod swarm;
mod table;
mod walk;
mod wire;

pub use measure::Tools;
pub use role::{ROLE_ARGUMENT, play};
pub use row::{Line, Verdict};
pub use rows::{NAMES, Size, run};
pub use table::render;
