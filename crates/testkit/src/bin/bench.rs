//! The benchmark's command: measures the rows it is asked for and prints their table.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the program talks to the person who started it")]

use std::process::ExitCode;

use octoflow_testkit::bench::{NAMES, ROLE_ARGUMENT, Size, Tools, play, render, run};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, role @ ..] = words.as_slice()
        && first == ROLE_ARGUMENT
    {
        return match play(role) {
            Ok(text) => {
                print!("{text}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    match measure(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(words: &[String]) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut size = Size::Full;
    let mut names = Vec::new();
    for word in words {
        match word.as_str() {
            "--quick" => size = Size::Quick,
            "--once" => size = Size::Once,
            "-h" | "--help" => {
                println!("cargo xtask bench [--quick | --once] [ROW…]\n\nrows: {}", NAMES.join(", "));
                return Ok(());
            }
            name if NAMES.contains(&name) => names.push(name),
            name => return Err(format!("there is no row `{name}`; choose from: {}", NAMES.join(", ")).into()),
        }
    }
    if names.is_empty() {
        names = NAMES.to_vec();
    }
    let tools = Tools::find()?;
    let mut lines = Vec::new();
    let mut failed = 0;
    for name in names {
        eprintln!("{name} …");
        match run(name, size, &tools) {
            Ok(measured) => lines.extend(measured),
            Err(error) => {
                failed += 1;
                eprintln!("{name} could not be measured: {error}");
            }
        }
    }
    print!("{}", render(&lines));
    if failed == 0 { Ok(()) } else { Err(format!("{failed} rows could not be measured").into()) }
}
