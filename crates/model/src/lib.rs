//! Data types on the wire and on disk: ids, times, tasks, orders, reports, facts, and the kinds of every dialect. Plain
//! data with serde; nothing here decides, waits, or does IO.

pub mod argo;
pub mod fact;
pub mod hash;
pub mod ids;
pub mod jobflow;
pub mod kubejob;
pub mod meta;
pub mod plugin;
pub mod run;
pub mod scalar;
pub mod space;
pub mod task;
pub mod taskset;
pub mod time;
pub mod volcano;

pub use fact::{Fact, RunFact};
pub use hash::{IdMap, IdSet};
pub use ids::{AttemptId, NodeIx, Revision, RunId};
pub use run::lock::{Claim, Limit};
pub use run::mark::MutableMetadata;
pub use run::submission::Submission;
pub use run::{RunPhase, Shutdown};
pub use task::Task;
pub use task::order::{Order, Report};
pub use time::Time;

pub use plugin::submitted;
pub use run::{lock, mark, meter, phase, previous, submission};
pub use scalar::base64;
pub use task::{garbage, location, order, pod, podspec, request};
