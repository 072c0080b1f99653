//! `octoflow version`: what this binary is.

use anyhow::Result;
use serde_json::json;

use crate::{
    cli::Version,
    exit::Exit,
    output::{Output, json::objects},
};

pub(crate) fn version(args: &Version, output: &Output) -> Result<Exit> {
    let about = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
    });
    match args.output.as_ref().and_then(|format| objects(format, std::slice::from_ref(&about), false)) {
        Some(text) => output.data(&text)?,
        None => output.line(&format!("octoflow {}", env!("CARGO_PKG_VERSION")))?,
    }
    Ok(Exit::Succeeded)
}
