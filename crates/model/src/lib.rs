//! Data types on the wire and on disk: ids, times, tasks, orders, reports, facts, and the kinds of every dialect. Plain
//! data with serde; nothing here decides, waits, or does IO.

pub mod argo;
pub mod base64;

pub mod fact;
pub mod garbage;
pub mod ids;
pub mod location;
pub mod lock;
pub mod mark;
pub mod meta;
pub mod meter;
pub mod order;
pub mod phase;
pub mod pod;
pub mod podspec;
pub mod previous;
pub mod request;
pub mod run;
pub mod scalar;
pub mod space;
pub mod submission;
pub mod task;
pub mod taskset;
pub mod time;

pub use fact::{Fact, RunFact};
pub use ids::{AttemptId, NodeIx, Revision, RunId};
pub use lock::{Claim, Limit};
pub use mark::MutableMetadata;
pub use order::{Order, Report};
pub use run::{RunPhase, Shutdown};
pub use submission::Submission;
pub use task::Task;
pub use time::Time;
