//! `octoflow metrics`: the custom metrics of all runs of this data directory, as the text that Prometheus reads.

use anyhow::Result;
use octoflow_control as control;

use super::Context;
use crate::{exit::Exit, local::Local};

pub(crate) fn metrics(context: &Context) -> Result<Exit> {
    // Where nothing was ever run there are no metrics, which is no error for whoever collects them.
    if let Some(local) = Local::open(&context.data_dir)? {
        context.output.data(&control::metrics(local.reader(), control::now())?)?;
    }
    Ok(Exit::Succeeded)
}
