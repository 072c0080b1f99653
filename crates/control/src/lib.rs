//! The event loop: inputs → engine → journal → orders. The only place where loops and threads are started.
//! It decides nothing itself: it carries what the engine decided to the disk, and only then to the world.

pub mod access;
mod brief;
mod cache;
mod claim;
mod clock;
mod controller;
pub mod cron;
mod delete;
mod driver;
mod error;
pub mod events;
pub mod expire;
pub mod gauge;
pub mod keyed;
mod known;
pub mod lines;
mod maintenance;
mod meters;
mod objects;
mod park;
mod random;
pub mod read;
mod record;
pub mod registry;
mod supervisor;
mod sweep;

pub use claim::{Claim, KEPT};
pub use clock::now;
pub use controller::{Config, Controller, Place, StartProgress, Submit, owned};
pub use delete::{Forgotten, Removed, family, forget};
pub use driver::{Cut, Driver};
pub use error::Error;
pub use meters::metrics;
pub use octoflow_engine::Explanation;
pub use octoflow_engine::{
    Command,
    rerun::{Rerun, RerunOptions, RerunPlan, ResubmitOptions, Why},
    schedule::Capacity,
};
pub use octoflow_runtime::port::{Condition, ConditionKind};
pub use octoflow_store::Foreground;
pub use random::{name_suffix, new_uid};
pub use record::Record;
pub use supervisor::{Supervisor, ThreadFailure};
pub use sweep::{doom_with_run, sweep_deleted};
