//! `octoflow metrics`: the custom metrics of all runs of this data directory, in the Prometheus text format.

use anyhow::Result;
use octoflow_control as control;

use super::Context;
use crate::{exit::Exit, local::Local};

pub(crate) fn metrics(context: &Context) -> Result<Exit> {
    // An empty data directory has no metrics, which is no error for a scraper.
    if let Some(local) = Local::open(&context.data_dir)? {
        context.output.data(&control::metrics(local.reader(), control::now())?)?;
    }
    Ok(Exit::Succeeded)
}
