//! The pump: inputs → engine → journal → orders. The only place where loops and threads are started.
//! It decides nothing itself: it carries what the engine decided to the disk, and only then to the world.

pub mod access;
mod brief;
mod cache;
mod chance;
mod claim;
mod clock;
pub mod cron;
mod delete;
mod error;
pub mod events;
pub mod expire;
pub mod gauge;
mod house;
pub mod keyed;
mod known;
pub mod lines;
mod meters;
mod objects;
mod park;
mod pump;
pub mod read;
mod record;
pub mod registry;
mod steward;
mod supervisor;
mod sweep;

pub use chance::{name_suffix, new_uid};
pub use claim::{Claim, KEPT};
pub use clock::now;
pub use delete::{Forgotten, Removed, family, forget};
pub use error::Error;
pub use house::{Config, House, Place, StartProgress, Submit, owned};
pub use meters::metrics;
pub use octoflow_engine::Explanation;
pub use octoflow_engine::{
    Command,
    argo::again::{Again, AgainOptions, Rerun, ResubmitOptions, Why},
    schedule::Capacity,
};
pub use octoflow_runtime::port::{Condition, ConditionKind};
pub use pump::{Cut, Pump};
pub use record::Record;
pub use supervisor::{Supervisor, ThreadFailure};
pub use sweep::{doom_with_run, sweep_deleted};
