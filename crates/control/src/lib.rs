//! The controller: inputs → engine → journal → orders, and the registry of objects around it. The only crate that
//! starts event loops and service threads. It decides nothing itself: engine decisions reach the disk first, then
//! runtimes, callers and watchers.

pub mod access;
mod brief;
mod cache;
mod claim;
mod clock;
mod controller;
pub mod cron;
mod delete;
mod error;
mod event_loop;
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

pub use claim::{CLAIM_RETENTION, Claim};
pub use clock::now;
pub use controller::{Config, Controller, Place, Submit, owned};
pub use delete::{Removed, RunLeftovers, remove_run, with_owned_runs};
pub use error::Error;
pub use event_loop::{
    Limits,
    restore::StartProgress,
    virtual_loop::{Acceptance, Adoption, Ticket, VirtualDisk, VirtualLoop, Written},
};
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
pub use supervisor::{Supervisor, ThreadFailure};
pub use sweep::{queue_artifact_deletion, sweep_deleted};
