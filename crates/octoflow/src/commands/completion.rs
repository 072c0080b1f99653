//! `octoflow completion SHELL`: prints the completion script for a shell.

use anyhow::Result;
use clap::CommandFactory;

use crate::{
    cli::{Cli, Completion},
    exit::Exit,
    output::Output,
};

pub(crate) fn completion(args: &Completion, output: &Output) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "octoflow", &mut script);
    output.data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Succeeded)
}
