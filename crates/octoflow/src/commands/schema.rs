//! `octoflow schema [KIND]`: closed JSON Schemas for editors, generated from the table that admission checks against.

use anyhow::Result;
use octoflow_engine::{kinds::loadable, shape};

use crate::{
    cli::{Schema, SchemaOf},
    exit::Exit,
    logic::{KIND, SUITE},
    output::{Output, json::pretty},
};

pub(crate) fn schema(args: &Schema, output: &Output) -> Result<Exit> {
    match &args.kind {
        None => {
            let words = loadable().map(|kind| kind.word).chain([KIND]);
            output.data(&words.map(|word| format!("{word}\n")).collect::<String>())?;
        }
        Some(SchemaOf::Tests) => output.data(&pretty(&shape::schema(KIND, &SUITE, &[])))?,
        Some(SchemaOf::Kind(kind)) => {
            let schema = kind.schema().expect("the command line takes only kinds with a schema");
            output.data(&pretty(&schema))?;
        }
    }
    Ok(Exit::Succeeded)
}
