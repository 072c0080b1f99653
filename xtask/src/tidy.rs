//! The project rules as checks. Every rule is a pure function from files or crates to problems, so each can be tested
//! on made-up input; only this file reads the disk. A rule never stops at its first finding: all problems are reported
//! at once, each with its reason.

mod arrows;
mod codes;
mod dialects;
mod homonyms;
mod lints;
mod names;
mod opening;
mod paths;
mod purity;
mod reliability;
mod retired;
mod roots;
mod sizes;
mod source;
mod words;

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};

use crate::step::Step;
use source::File;

/// Arguments that make cargo describe the crates; needs neither the network nor a build.
pub const METADATA: [&str; 5] = ["metadata", "--format-version", "1", "--no-deps", "--offline"];

/// One violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    pub path: String,
    /// Line number; zero if the whole file is meant.
    pub line: usize,
    pub what: String,
    pub why: &'static str,
}

impl Problem {
    fn new(path: &str, line: usize, what: impl Into<String>, why: &'static str) -> Problem {
        Problem { path: path.to_owned(), line, what: what.into(), why }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.path)?;
        if self.line > 0 {
            write!(out, ":{}", self.line)?;
        }
        write!(out, ": {}\n    why: {}", self.what, self.why)
    }
}

/// Checks every rule on the checkout at `root`. An error means that the checks could not be run.
pub fn check(root: &Path) -> Result<Vec<Problem>> {
    let files = read(root)?;
    let metadata = serde_json::from_slice(&Step::cargo(METADATA).read()?)
        .context("cargo's metadata is not the JSON it should be")?;
    let packages = arrows::read(root, &metadata)?;

    let mut problems = Vec::new();
    problems.extend(arrows::check(&packages));
    problems.extend(purity::dependencies(&packages));
    problems.extend(purity::text(&files));
    problems.extend(roots::check(&files));
    problems.extend(sizes::check(&files));
    problems.extend(names::check(&files));
    problems.extend(opening::check(&files));
    problems.extend(paths::check(&files));
    problems.extend(codes::check(&files));
    problems.extend(dialects::check(&files));
    problems.extend(homonyms::check(&files));
    problems.extend(lints::check(&files));
    problems.extend(words::check(&files));
    problems.extend(reliability::check(&files));
    problems.extend(retired::check(&files));
    problems.sort();
    Ok(problems)
}

/// Reads every file that git tracks or would offer to add: what is ignored is not part of the project.
fn read(root: &Path) -> Result<Vec<File>> {
    let listing = Step::new("git", ["ls-files", "-z", "-co", "--exclude-standard"])
        .read()
        .context("the project rules need a git checkout to know which files are ours")?;
    let mut files = Vec::new();
    for path in listing.split(|byte| *byte == 0).filter(|p| !p.is_empty()) {
        let path = String::from_utf8_lossy(path).into_owned();
        match fs::read(root.join(&path)) {
            Ok(bytes) => files.push(File::new(&path, &String::from_utf8_lossy(&bytes))),
            // Deleted but not yet committed, or a link to a folder.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_shows_place_finding_and_reason() {
        let problem = Problem::new("crates/a/src/b.rs", 3, "too long", "nobody reads it");
        let shown = "crates/a/src/b.rs:3: too long\n    why: nobody reads it";
        assert_eq!(problem.to_string(), shown);
    }

    #[test]
    fn a_problem_of_a_whole_file_has_no_line() {
        let problem = Problem::new("a.rs", 0, "what", "reason");
        assert!(problem.to_string().starts_with("a.rs: what"));
    }
}
