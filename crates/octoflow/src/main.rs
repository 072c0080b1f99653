//! The `octoflow` command: parses the command line, dispatches, and returns the exit code. It only decides which role
//! this process has: the command, the spawner behind it, or the supervisor of one task's containers.

mod cli;
mod client;
mod commands;
mod config;
mod exit;
mod load;
mod local;
mod logic;
mod output;
mod source;

use std::process::ExitCode;

use clap::Parser;
use octoflow_runtime::process::{INIT_ARGUMENT, POD_ARGUMENT, SPAWNER_ARGUMENT, init_main, pod_main, spawner_main};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1).peekable();
    if words.next_if(|word| word == SPAWNER_ARGUMENT).is_some() {
        return spawner_main(words);
    }
    if words.next_if(|word| word == POD_ARGUMENT).is_some() {
        return pod_main(words);
    }
    if words.next_if(|word| word == INIT_ARGUMENT).is_some() {
        return init_main(words);
    }
    let cli = cli::Cli::parse();
    let output = output::Output::new(cli.global.no_color, cli.global.verbose);
    match commands::dispatch(cli, output) {
        Ok(exit) => exit.into(),
        Err(error) if output::reader_left(&error) => exit::Exit::Succeeded.into(),
        Err(error) => {
            output.error(&error);
            exit::of(&error).into()
        }
    }
}
