//! The developer's menu: parses the first word of the command line, passes the rest to that entry and turns the outcome
//! into an exit code. Holds no rule and no step of its own.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a menu talks to the person at the terminal")]

use std::env;
use std::process::ExitCode;

use anyhow::Result;
use xtask::menu::{self, Entry};
use xtask::step::Failed;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let (entry, rest) = match menu::read(&words) {
        Ok(chosen) => chosen,
        Err(problem) => {
            eprintln!("{problem}\n\n{}", menu::HELP);
            return ExitCode::from(2);
        }
    };
    if entry == Entry::Help {
        println!("{}", menu::HELP);
        return ExitCode::SUCCESS;
    }
    finish(menu::run(entry, rest))
}

/// Turns the outcome into an exit code. A failed step has already printed its reason, so only its code is passed on.
fn finish(outcome: Result<()>) -> ExitCode {
    let Err(error) = outcome else {
        return ExitCode::SUCCESS;
    };
    eprintln!("xtask: {error:#}");
    match error.downcast_ref::<Failed>() {
        Some(failed) => ExitCode::from(failed.code),
        None => ExitCode::FAILURE,
    }
}
