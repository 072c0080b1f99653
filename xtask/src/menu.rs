//! The entries of the menu and the steps of each. An entry stops at its first failing step; it never continues past
//! one.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::leftover::{self, TestRun};
use crate::step::Step;
use crate::{fixture, root, setup, tidy};

pub const HELP: &str = "\
The developer's menu of Octoflow

    cargo xtask setup                      install what the tests need
    cargo xtask test [--no-setup] [ARGS]   setup, build, run every test; ARGS go to nextest
    cargo xtask tidy                       check the project rules
    cargo xtask fmt [ARGS]                 format all crates; ARGS go to cargo fmt
    cargo xtask lint                       clippy on everything, warnings are errors
    cargo xtask ci                         fmt --check, lint, tidy, fuzz, test
    cargo xtask sim [ARGS]                 the seeded simulator; give a seed to replay it
    cargo xtask fuzz [ARGS]                texts against everything that reads them, for a minute
    cargo xtask bench [ROWS]               the benchmark table, or only the named rows
    cargo xtask fixture [--name N] [BINARY] a data directory with runs in flight, kept for the tests; needs root
    cargo xtask help                       this text";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    Setup,
    Test,
    Tidy,
    Fmt,
    Lint,
    Ci,
    Sim,
    Fuzz,
    Bench,
    Fixture,
    Help,
}

/// Finds the entry that the first word names. No word at all means help.
pub fn read(words: &[String]) -> Result<(Entry, &[String])> {
    let Some((first, rest)) = words.split_first() else {
        return Ok((Entry::Help, &[]));
    };
    let entry = match first.as_str() {
        "setup" => Entry::Setup,
        "test" => Entry::Test,
        "tidy" => Entry::Tidy,
        "fmt" => Entry::Fmt,
        "lint" => Entry::Lint,
        "ci" => Entry::Ci,
        "sim" => Entry::Sim,
        "fuzz" => Entry::Fuzz,
        "bench" => Entry::Bench,
        "fixture" => Entry::Fixture,
        "help" | "-h" | "--help" => Entry::Help,
        other => bail!("`{other}` is not on the menu"),
    };
    let plain = matches!(entry, Entry::Setup | Entry::Tidy | Entry::Lint | Entry::Ci);
    if plain && let Some(extra) = rest.first() {
        bail!("`{first}` takes no arguments, but `{extra}` was given");
    }
    Ok((entry, rest))
}

pub fn run(entry: Entry, rest: &[String]) -> Result<()> {
    match entry {
        Entry::Setup => setup::run(),
        Entry::Test => test(rest),
        Entry::Tidy => tidy(),
        Entry::Fmt => fmt(rest),
        Entry::Lint => lint(),
        Entry::Ci => ci(),
        Entry::Sim => testkit("sim", rest),
        Entry::Fuzz => fuzz(rest),
        Entry::Bench => testkit("bench", rest),
        Entry::Fixture => fixture(rest),
        Entry::Help => {
            println!("{HELP}");
            Ok(())
        }
    }
}

/// Runs the tests. nextest comes last on purpose: its summary is what a reader of the log looks for at the end.
fn test(rest: &[String]) -> Result<()> {
    let (skip, rest) = match rest.split_first() {
        Some((first, rest)) if first == "--no-setup" => (true, rest),
        _ => (false, rest),
    };
    if !skip {
        setup::run()?;
    }
    // The process-level tests judge the binary users get, so it is built as users get it.
    Step::cargo(["build", "--release", "-p", "octoflow"]).run()?;
    let binary = target()?.join("release").join("octoflow");
    let run = TestRun::new();
    let tested = Step::cargo(nextest(rest)).env("OCTOFLOW_BIN", binary).env(leftover::VARIABLE, run.id()).run();
    // A failed test is reported first; what it left behind may be a consequence.
    match (tested, run.check()) {
        (Err(failed), left) => {
            left.unwrap_or_else(|left| eprintln!("{left}"));
            Err(failed)
        }
        (Ok(()), left) => left,
    }
}

/// Returns the arguments of nextest: the whole workspace unless crates are named, because cargo lets `--workspace` win
/// over `-p`.
fn nextest(rest: &[String]) -> Vec<&str> {
    let mut own = rest.iter().take_while(|word| *word != "--");
    let named = own.any(|word| word.starts_with("--package") || word.starts_with("-p"));
    let mut args = vec!["nextest", "run"];
    if !named {
        args.push("--workspace");
    }
    args.extend(rest.iter().map(String::as_str));
    args
}

fn tidy() -> Result<()> {
    let problems = tidy::check(&root())?;
    if problems.is_empty() {
        println!("tidy: every project rule holds");
        return Ok(());
    }
    for problem in &problems {
        eprintln!("{problem}");
    }
    bail!("{} project rules broken", problems.len());
}

fn fmt(rest: &[String]) -> Result<()> {
    let mut args = vec!["fmt", "--all"];
    args.extend(rest.iter().map(String::as_str));
    Step::cargo(args).run()
}

fn lint() -> Result<()> {
    Step::cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()
}

fn ci() -> Result<()> {
    fmt(&["--check".to_owned()])?;
    lint()?;
    tidy()?;
    fuzz(&[])?;
    test(&[])
}

/// Runs the fuzzer, built like the tests: with the checks that only unoptimised code has.
fn fuzz(rest: &[String]) -> Result<()> {
    let mut args = vec!["run", "-p", "octoflow-testkit", "--bin", "fuzz", "--"];
    args.extend(rest.iter().map(String::as_str));
    Step::cargo(args).run()
}

/// Runs the simulator or the benchmarks, which are programs of the testkit; the menu only starts them.
fn testkit(program: &str, rest: &[String]) -> Result<()> {
    if program == "bench" {
        Step::cargo(["build", "--release", "-p", "octoflow"]).run()?;
    }
    let binary = target()?.join("release").join("octoflow");
    let mut args = vec!["run", "--release", "-p", "octoflow-testkit", "--bin", program, "--"];
    args.extend(rest.iter().map(String::as_str));
    Step::cargo(args).env("OCTOFLOW_BIN", binary).run()
}

/// Writes a fixture with today's binary, or with the named one of an earlier version.
fn fixture(rest: &[String]) -> Result<()> {
    let target = target()?;
    let (name, rest) = match rest {
        [flag, name, rest @ ..] if flag == "--name" => (Some(name.as_str()), rest),
        rest => (None, rest),
    };
    let binary = match rest {
        [] => {
            Step::cargo(["build", "-p", "octoflow"]).run()?;
            target.join("debug").join("octoflow")
        }
        [binary] => PathBuf::from(binary).canonicalize().with_context(|| format!("find {binary}"))?,
        [_, extra, ..] => bail!("`fixture` takes one binary, but `{extra}` was given as well"),
    };
    fixture::write(&binary, name, &target)?;
    fixture::write_expectations()
}

/// Returns cargo's target directory, which the caller may have moved out of the checkout.
fn target() -> Result<PathBuf> {
    let text = Step::cargo(tidy::METADATA).read()?;
    let metadata: Value = serde_json::from_slice(&text).context("cargo's metadata is not the JSON it should be")?;
    metadata["target_directory"].as_str().map(PathBuf::from).context("cargo's metadata names no target directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_rest_of_the_line_belongs_to_the_entry() {
        let line = words("test --no-setup -p octoflow-store");
        let (entry, rest) = read(&line).unwrap();
        assert_eq!(entry, Entry::Test);
        assert_eq!(rest, words("--no-setup -p octoflow-store"));
    }

    #[test]
    fn tests_of_named_crates_run_alone() {
        assert_eq!(nextest(&words("-p octoflow-store")), ["nextest", "run", "-p", "octoflow-store"]);
        assert_eq!(nextest(&words("fold -- -p")), ["nextest", "run", "--workspace", "fold", "--", "-p"]);
    }

    #[test]
    fn no_word_asks_for_help() {
        assert_eq!(read(&[]).unwrap().0, Entry::Help);
    }

    #[test]
    fn an_unknown_word_is_named() {
        let error = read(&words("tset")).unwrap_err();
        assert_eq!(error.to_string(), "`tset` is not on the menu");
    }

    #[test]
    fn an_entry_without_arguments_refuses_them() {
        assert!(read(&words("tidy --fix")).is_err());
    }

    #[test]
    fn help_names_every_entry() {
        for word in ["setup", "test", "tidy", "fmt", "lint", "ci", "sim", "fuzz", "bench", "fixture", "help"] {
            assert!(read(&words(word)).is_ok(), "{word} is not an entry");
            assert!(HELP.contains(&format!("cargo xtask {word}")), "{word} is not in the help");
        }
    }
}
