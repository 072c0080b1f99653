//! `octoflow version`: the version of this binary, and of the server it would use.

use anyhow::Result;
use serde_json::{Value, json};

use super::Context;
use crate::{cli::Version, client::Address, exit::Exit, output::json::objects, source::workflow::text};

pub(crate) fn version(args: &Version, context: &Context) -> Result<Exit> {
    let output = &context.output;
    let mut about = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
    });
    // A named server must answer; without one nothing is asked.
    let server = match context.named_server()? {
        Some(client) => Some((client.url().to_owned(), client.get(&Address::of(&["api", "v1", "version"]))?)),
        None => None,
    };
    if let Some((url, told)) = &server {
        about["server"] = json!({"url": url, "version": text(told, "version"), "platform": text(told, "platform")});
    }
    match args.output.as_ref().and_then(|format| objects(format, std::slice::from_ref(&about), false)) {
        Some(text) => output.data(&text)?,
        None => {
            output.line(&format!("octoflow {}", env!("CARGO_PKG_VERSION")))?;
            if let Some((url, told)) = &server {
                output.line(&format!("server {} at {url}", shown(told)))?;
            }
        }
    }
    Ok(Exit::Succeeded)
}

fn shown(told: &Value) -> &str {
    text(told, "version").trim_start_matches('v')
}
