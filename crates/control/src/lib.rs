//! The controller: inputs → engine → journal → orders, and the registry of objects around it. The only crate that
//! starts event loops and service threads. It decides nothing itself: engine decisions reach the disk first, then
//! runtimes, callers and watchers.

// A new variant of an enum is a compile error wherever it has to be thought of.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod access;
mod clock;
mod controller;
mod error;
mod event_loop;
pub mod gauge;
pub mod lines;
mod maintenance;
mod node;
mod objects;
mod park;
mod random;
pub mod read;
pub mod registry;
mod supervisor;

pub use clock::now;
pub use controller::hooks;
pub use controller::{Config, Controller, Place, Submit, owned};
pub use error::Error;
pub use event_loop::claim::{CLAIM_RETENTION, Claim};
pub use event_loop::meters::metrics;
pub use event_loop::{
    Limits,
    restore::StartProgress,
    virtual_loop::{Acceptance, Adoption, Leaving, Ticket, VirtualDisk, VirtualLoop, Written},
};
pub use maintenance::sweep::{queue_artifact_deletion, sweep_deleted};
pub use node::{NodeConfig, this_node};
pub use octoflow_engine::Explanation;
pub use octoflow_engine::{
    Capacity, Command,
    rerun::{Rerun, RerunOptions, RerunPlan, ResubmitOptions, Why},
};
pub use octoflow_runtime::port::{Condition, ConditionKind};
pub use octoflow_store::Foreground;
pub use random::{name_suffix, new_uid};
pub use registry::delete::{Removed, RunLeftovers, remove_run, with_owned_runs};
pub use supervisor::{Supervisor, ThreadFailure};

pub use maintenance::{cron, expire};
pub use objects::keyed;
pub use registry::events;
