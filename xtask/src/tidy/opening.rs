//! The header of a file: two or three lines that say what it owns and what it must never do.

use super::Problem;
use super::source::File;

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    files
        .iter()
        .filter(|file| file.is_rust() && !file.text.starts_with("//! "))
        .map(|file| {
            Problem::new(
                &file.path,
                1,
                "does not open with `//! `",
                "a reader learns first what the file owns and what it must never do",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_opening_is_refused() {
        let silent = File::new("crates/a/src/b.rs", "use std::fmt;\n");
        let late = File::new("crates/a/src/c.rs", "\n//! Too late.\n");
        let empty = File::new("crates/a/src/d.rs", "");
        assert_eq!(check(&[silent, late, empty]).len(), 3);
    }

    #[test]
    fn an_opening_is_enough() {
        let file = File::new("crates/a/src/b.rs", "//! Owns b.\n");
        assert_eq!(check(&[file]), []);
    }
}
