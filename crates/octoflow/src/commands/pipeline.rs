//! `octoflow feature|plugin|job …`: the submission pipeline of a server, through `/v1`.

mod feature;
mod job;
mod plugin;
mod trial;

use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;

use crate::{
    cli::Format,
    client::Address,
    exit::{Exit, Failure},
    load,
    output::{Output, json::objects},
    source::workflow::text,
};

pub(super) use feature::feature;
pub(super) use job::job;
pub(super) use plugin::plugin;

/// Returns an address under `/v1`.
fn place(parts: &[&str]) -> Address {
    Address::of(&[&["v1"], parts].concat())
}

/// Returns the payload of an answer, or the failure that its code means.
pub(crate) fn payload(mut answer: Value) -> Result<Value> {
    let exit = match text(&answer, "code") {
        "OPERATION_SUCCEEDED" => return Ok(answer["payload"].take()),
        "OPERATION_TARGET_NOT_FOUND" => Exit::NotFound,
        "PERMISSION_DENIED" => Exit::Denied,
        "LACK_OF_PARAM" | "WRONG_PARAM" | "UNSUPPORTED_PLUGIN_TYPE" => Exit::InvalidManifest,
        "UNSUPPORTED_OPERATION" => Exit::Conflict,
        _ => Exit::Infrastructure,
    };
    Err(Failure::new(exit, text(&answer, "msg")).into())
}

/// Reads every object of the files.
fn read_all(files: &[PathBuf]) -> Result<Vec<Value>> {
    match load::load(files)? {
        Ok(loaded) => Ok(loaded.into_iter().map(|one| one.value).collect()),
        Err(problems) => Err(Failure::new(Exit::InvalidManifest, problems.render(false).trim_end()).into()),
    }
}

/// Prints a value as JSON or YAML if that was asked for; whether it was.
fn printed(output: &Output, format: Option<&Format>, value: &Value) -> Result<bool> {
    let text = format.and_then(|format| objects(format, std::slice::from_ref(value), false));
    if let Some(text) = &text {
        output.data(text)?;
    }
    Ok(text.is_some())
}
