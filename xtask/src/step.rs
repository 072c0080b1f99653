//! One external command of the menu: printed before it runs, judged by its exit code. Never swallows output: what the
//! command prints goes straight to the terminal.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};

/// A command to run in the checkout's root.
pub struct Step {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(String, OsString)>,
    folder: PathBuf,
}

/// Error of a step that failed. The menu exits with the step's own code.
#[derive(Debug, PartialEq, Eq)]
pub struct Failed {
    pub command: String,
    pub code: u8,
}

impl fmt::Display for Failed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` failed with code {}", self.command, self.code)
    }
}

impl Error for Failed {}

impl Step {
    pub fn new<A: Into<OsString>>(program: impl Into<OsString>, args: impl IntoIterator<Item = A>) -> Step {
        Step {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            folder: crate::root(),
        }
    }

    /// Returns a step of the cargo that runs this menu, so that a toolchain chosen by the caller is kept.
    pub fn cargo<A: Into<OsString>>(args: impl IntoIterator<Item = A>) -> Step {
        Step::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), args)
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Step {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// Prints the command, runs it, and fails with its exit code.
    pub fn run(&self) -> Result<()> {
        println!("+ {self}");
        let status = self.command().status().with_context(|| self.missing())?;
        if status.success() {
            return Ok(());
        }
        Err(Failed { command: self.to_string(), code: code_of(status) }.into())
    }

    /// Runs quietly and returns whether it succeeded; a program that does not exist did not.
    pub fn succeeds(&self) -> bool {
        let status = self.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        matches!(status, Ok(status) if status.success())
    }

    /// Runs and returns what it wrote to stdout.
    pub fn read(&self) -> Result<Vec<u8>> {
        let output = self.command().output().with_context(|| self.missing())?;
        ensure!(output.status.success(), "`{self}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(output.stdout)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(&self.folder);
        // `cargo run` describes this package in the environment. Left there, build scripts that watch these names would
        // be run again for every other package.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    fn missing(&self) -> String {
        format!("`{}` could not be started: is it installed and on PATH?", self.program.to_string_lossy())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(out, "{name}={} ", value.to_string_lossy())?;
        }
        let program = PathBuf::from(&self.program);
        let name = program.file_name().unwrap_or(&self.program);
        write!(out, "{}", name.to_string_lossy())?;
        for arg in &self.args {
            write!(out, " {}", arg.to_string_lossy())?;
        }
        Ok(())
    }
}

/// Returns the exit code; a step ended by a signal gets the shell's, 128 plus the signal's number.
fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_carries_its_own_exit_code() {
        let error = Step::new("sh", ["-c", "exit 7"]).run().unwrap_err();
        assert_eq!(error.downcast_ref::<Failed>().map(|f| f.code), Some(7));
    }

    #[test]
    fn a_step_ended_by_a_signal_has_the_shells_code() {
        let error = Step::new("sh", ["-c", "kill -9 $$"]).run().unwrap_err();
        assert_eq!(error.downcast_ref::<Failed>().map(|f| f.code), Some(137));
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let step = Step::new("no-such-program-here", ["x"]);
        assert!(!step.succeeds());
        let error = step.run().unwrap_err();
        assert!(error.to_string().contains("no-such-program-here"));
    }

    #[test]
    fn the_package_of_the_menu_is_hidden_from_steps() {
        let seen = Step::new("sh", ["-c", "env"]).read().unwrap();
        let seen = String::from_utf8_lossy(&seen);
        assert!(!seen.contains("CARGO_PKG_NAME="));
        assert!(!seen.contains("CARGO_MANIFEST_DIR="));
    }

    #[test]
    fn a_step_is_shown_with_its_environment() {
        let step = Step::new("cargo", ["nextest", "run"]).env("OCTOFLOW_BIN", "bin");
        assert_eq!(step.to_string(), "OCTOFLOW_BIN=bin cargo nextest run");
    }
}
