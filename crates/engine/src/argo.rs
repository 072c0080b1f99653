//! The Argo dialect: admission, the fold of its facts, and the planning of its next ones.
//! Planning is level-triggered: a visit looks at a node as it is and decides what is missing, so visiting twice decides nothing twice.

pub mod admit;
pub mod again;
pub mod condition;
pub mod duration;
pub mod explain;
pub mod fields;
pub mod garbage;
pub mod ident;
pub mod merge;
pub mod node;
pub mod outlook;
pub mod program;
pub mod refer;
pub mod resource;
pub mod run;
pub mod selector;
pub mod status;

mod answer;
mod arguments;
mod begin;
mod call;
mod command;
mod daemon;
mod dag;
mod data;
mod expand;
mod fold;
mod follow;
mod hook;
mod http;
mod instance;
mod leaf;
mod locate;
pub mod lock;
pub mod memo;
mod metadata;
mod meter;
mod outputs;
mod pod;
mod retry;
mod reuse;
mod room;
mod scope;
mod sequence;
mod standin;
mod steps;
mod substitute;
mod suspend;
mod task;
mod turn;
mod usage;

pub(crate) use room::{MOST_BYTES, MOST_NODES};
pub use run::{Run, State};
pub use turn::Turn;
