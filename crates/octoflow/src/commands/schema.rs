//! `octoflow schema [KIND]`: closed JSON Schemas for editors, made from the table that admission checks against.

use anyhow::Result;
use octoflow_engine::argo::fields::KINDS;

use crate::{
    cli::Schema,
    exit::Exit,
    output::{Output, json::pretty},
};

pub(crate) fn schema(args: &Schema, output: &Output) -> Result<Exit> {
    match &args.kind {
        None => output.data(&KINDS.iter().map(|kind| format!("{}\n", kind.name)).collect::<String>())?,
        Some(wanted) => {
            let kind = KINDS.iter().find(|kind| kind.name.eq_ignore_ascii_case(wanted));
            output.data(&pretty(&kind.expect("the command line takes only known kinds").schema()))?;
        }
    }
    Ok(Exit::Succeeded)
}
