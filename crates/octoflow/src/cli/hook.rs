//! Arguments of `octoflow hook`.

use clap::{Args, Subcommand};

use super::format::{Format, ObjectFormats, one_of};

#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// List life hooks with what waits for them and what was given up; with a job, its events
    #[command(visible_alias = "ls")]
    List(HookList),
    /// List events that were given up, and why
    Dead(HookDead),
    /// Send events again that were given up
    Replay(HookReplay),
    /// Delete events: they are never sent again
    Drop(HookDrop),
}

#[derive(Debug, Args)]
pub(crate) struct HookList {
    /// The events of this job that are not acknowledged
    #[arg(long)]
    pub job: Option<String>,
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct HookDead {
    /// Only those of this plugin
    #[arg(value_name = "PLUGIN")]
    pub plugin: Option<String>,
    /// Only those of this job
    #[arg(long)]
    pub job: Option<String>,
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct HookReplay {
    /// Ids of events
    #[arg(value_name = "EVENT", required_unless_present = "plugin", conflicts_with = "plugin")]
    pub events: Vec<String>,
    /// All events that were given up for this plugin
    #[arg(long, value_name = "PLUGIN")]
    pub plugin: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct HookDrop {
    /// Ids of events
    #[arg(value_name = "EVENT", required = true)]
    pub events: Vec<String>,
}
