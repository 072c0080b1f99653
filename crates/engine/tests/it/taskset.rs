//! TaskSets played in virtual time: what the dialect promises, by the numbers of the scenarios, and what must hold for
//! every TaskSet there could be.

mod oracle;
mod scheme;
pub(crate) mod stage;

mod cues;
mod endings;
mod gangs;
mod gates;
mod pods;
mod preempt;
mod properties;
mod restarts;
mod retries;
mod translated;
