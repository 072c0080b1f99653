//! `octoflow cron …`: schedules.

mod preview;

use anyhow::Result;

use super::Context;
use crate::{cli::CronCommand, exit::Exit};

pub(crate) fn cron(command: &CronCommand, context: &Context) -> Result<Exit> {
    match command {
        CronCommand::Preview(args) => preview::preview(args, context),
    }
}
