//! Tests of workflow logic in virtual time: a test file says how tasks end and what must come of it; the engine runs
//! the workflow against these stubs, and the clock jumps from event to event. Nothing is started and nothing is kept.

mod answer;
mod drive;
mod expect;
mod format;
mod guard;
mod notation;
mod reply;
mod run_case;
mod schedule;
mod snapshot;
mod stub;
mod subject;
mod suite;
mod test_document;
mod verdict;

pub(crate) use format::{KIND, SUITE};
pub(crate) use run_case::run_case;
pub(crate) use suite::{Case, cases, is_test, read};
pub(crate) use verdict::{Mismatch, Verdict};
