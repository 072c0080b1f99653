//! `octoflow schema [KIND]`: closed JSON Schemas for editors, generated from the table that admission checks against.

use anyhow::Result;
use octoflow_engine::{kinds::loadable, shape};

use crate::{
    cli::Schema,
    exit::Exit,
    logic::{KIND, SUITE},
    output::{Output, json::pretty},
};

pub(crate) fn schema(args: &Schema, output: &Output) -> Result<Exit> {
    match &args.kind {
        None => {
            let names = loadable().map(|kind| kind.name).chain([KIND]);
            output.data(&names.map(|name| format!("{name}\n")).collect::<String>())?;
        }
        Some(wanted) if wanted.eq_ignore_ascii_case(KIND) => output.data(&pretty(&shape::schema(KIND, &SUITE, &[])))?,
        Some(wanted) => {
            let kind = loadable().find(|kind| kind.name.eq_ignore_ascii_case(wanted));
            let schema = kind.and_then(|kind| kind.schema());
            output.data(&pretty(&schema.expect("the command line takes only kinds with a schema")))?;
        }
    }
    Ok(Exit::Succeeded)
}
