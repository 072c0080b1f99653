//! Arguments of commands about schedules.

use clap::{Args, Subcommand};
use octoflow_model::Time;

use super::{Namespace, StoredCommand, StoredNames};

#[derive(Debug, Subcommand)]
pub(crate) enum CronCommand {
    #[command(flatten)]
    Stored(StoredCommand),
    /// Start nothing more until they are resumed
    Suspend(StoredNames),
    /// Resume them
    Resume(StoredNames),
    /// List the next times of a CronWorkflow, with what daylight saving does to them
    Preview(Preview),
}

#[derive(Debug, Args)]
pub(crate) struct Preview {
    /// A file with CronWorkflows, - for standard input, or the name of one that is kept here
    #[arg(value_name = "FILE|NAME")]
    pub what: String,
    /// How many times
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000), value_name = "N")]
    pub count: u16,
    /// From when on, such as 2026-03-28 or 2026-03-28T22:00:00Z [default: now]
    #[arg(long, value_parser = moment, value_name = "TIME")]
    pub from: Option<Time>,
    #[command(flatten)]
    pub namespace: Namespace,
}

fn moment(text: &str) -> Result<Time, String> {
    let whole = if text.contains('T') { text.to_owned() } else { format!("{text}T00:00:00Z") };
    Time::parse(&whole).ok_or_else(|| "expected a time such as 2026-03-28 or 2026-03-28T22:00:00Z".to_owned())
}
