//! Exit codes, which scripts rely on, and the error that carries one. Nothing here prints; `main` returns the code and
//! `output` shows the message.

use std::{fmt, process::ExitCode};

/// Meaning of the exit code. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Succeeded,
    /// The workload failed; the tool itself worked.
    Failed,
    Usage,
    NotFound,
    Denied,
    /// A server, the network, or this machine (disk, database) failed.
    Infrastructure,
    InvalidManifest,
    Conflict,
    TimedOut,
    Interrupted,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Denied => 4,
            Self::Infrastructure => 5,
            Self::InvalidManifest => 6,
            Self::Conflict => 7,
            Self::TimedOut => 124,
            Self::Interrupted => 130,
        }
    }

    /// Returns the more severe of two results.
    #[must_use]
    pub(crate) fn worse(self, other: Self) -> Self {
        if other.weight() > self.weight() { other } else { self }
    }

    fn weight(self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Failed => 1,
            Self::NotFound => 2,
            Self::Conflict => 3,
            Self::TimedOut => 4,
            Self::Interrupted => 5,
            Self::InvalidManifest => 6,
            Self::Usage => 7,
            Self::Denied => 8,
            Self::Infrastructure => 9,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Error with an exit code. Other errors count as infrastructure failures.
#[derive(Debug)]
pub(crate) struct Failure {
    pub exit: Exit,
    text: String,
    help: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, text: text.into(), help: None }
    }

    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(Exit::Usage, text)
    }

    pub(crate) fn not_found(text: impl Into<String>) -> Self {
        Self::new(Exit::NotFound, text)
    }

    pub(crate) fn conflict(text: impl Into<String>) -> Self {
        Self::new(Exit::Conflict, text)
    }

    /// Adds advice.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// Returns the exit code of an error.
pub(crate) fn of(error: &anyhow::Error) -> Exit {
    error.downcast_ref::<Failure>().map_or(Exit::Infrastructure, |failure| failure.exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_the_documented_ones() {
        let all = [
            (Exit::Succeeded, 0),
            (Exit::Failed, 1),
            (Exit::Usage, 2),
            (Exit::NotFound, 3),
            (Exit::Denied, 4),
            (Exit::Infrastructure, 5),
            (Exit::InvalidManifest, 6),
            (Exit::Conflict, 7),
            (Exit::TimedOut, 124),
            (Exit::Interrupted, 130),
        ];
        for (exit, code) in all {
            assert_eq!(exit.code(), code, "{exit:?}");
        }
    }

    #[test]
    fn the_worst_of_several_ends_wins() {
        assert_eq!(Exit::Succeeded.worse(Exit::Failed), Exit::Failed);
        assert_eq!(Exit::TimedOut.worse(Exit::Failed), Exit::TimedOut);
        assert_eq!(Exit::Succeeded.worse(Exit::Succeeded), Exit::Succeeded);
    }

    #[test]
    fn an_error_keeps_its_code_below_added_context() {
        let error = anyhow::Error::new(Failure::not_found("no such run")).context("while looking");
        assert_eq!(of(&error), Exit::NotFound);
        assert_eq!(of(&anyhow::anyhow!("disk on fire")), Exit::Infrastructure);
    }
}
