//! The engine as a whole, played in virtual time: what it must do, by the numbers of the behaviours it is held to.

mod answer;
mod check;
mod done;
mod oracle;
mod plan;
mod play;
mod text;
mod town;
mod variables;

mod chance;
mod closing;
mod conditions;
mod daemons;
mod dag;
mod data;
mod exit;
mod hooks;
mod http;
mod locks;
mod memo;
mod meters;
mod names;
mod parallel;
mod pods;
mod properties;
mod reasons;
mod referred;
mod requests;
mod retry;
mod room;
mod runs;
mod scenarios;
mod schema;
mod steps;
mod support;
