//! Lint inheritance: a crate that does not inherit the workspace's lints escapes the project rules.

use super::Problem;
use super::source::File;

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    files
        .iter()
        .filter(|file| file.path.ends_with("/Cargo.toml"))
        .filter(|file| file.is_under("crates/") || file.is_under("xtask/"))
        .filter(|file| !inherits(&file.text))
        .map(|file| {
            Problem::new(
                &file.path,
                0,
                "lacks `[lints]` with `workspace = true`",
                "the compiler and clippy guard the project only where they are told to",
            )
        })
        .collect()
}

fn inherits(text: &str) -> bool {
    let lines = text.lines().map(str::trim);
    lines
        .skip_while(|line| *line != "[lints]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .any(|line| line.replace(' ', "") == "workspace=true")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        check(&[File::new("crates/a/Cargo.toml", text)]).len()
    }

    #[test]
    fn a_crate_that_inherits_is_fine() {
        assert_eq!(count("[package]\n[lints]\nworkspace = true\n[dependencies]\n"), 0);
    }

    #[test]
    fn a_crate_that_does_not_is_refused() {
        assert_eq!(count("[package]\n"), 1);
        assert_eq!(count("[lints]\n[dependencies]\nworkspace = true\n"), 1);
        assert_eq!(count("[lints]\nworkspace = false\n"), 1);
    }
}
