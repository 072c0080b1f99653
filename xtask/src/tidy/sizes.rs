//! File sizes: a file that is too large to overview is split before it grows further.

use super::Problem;
use super::source::File;

const LIMIT: usize = 600;
const TEST_LIMIT: usize = 1200;

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    files.iter().filter(|file| file.is_rust()).filter_map(oversize).collect()
}

fn oversize(file: &File) -> Option<Problem> {
    let limit = if file.is_test() { TEST_LIMIT } else { LIMIT };
    let lines = file.text.lines().count();
    (lines > limit).then(|| {
        Problem::new(
            &file.path,
            0,
            format!("{lines} lines, at most {limit} are allowed"),
            "a file owns one noun or verb; split it along the decisions it holds",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, lines: usize) -> usize {
        check(&[File::new(path, &"x\n".repeat(lines))]).len()
    }

    #[test]
    fn one_line_over_the_limit_is_too_many() {
        assert_eq!(count("crates/a/src/b.rs", LIMIT), 0);
        assert_eq!(count("crates/a/src/b.rs", LIMIT + 1), 1);
    }

    #[test]
    fn tests_and_benchmarks_have_twice_the_room() {
        for path in ["crates/a/src/b/tests.rs", "crates/a/tests/b.rs", "crates/a/benches/b.rs"] {
            assert_eq!(count(path, TEST_LIMIT), 0, "{path}");
            assert_eq!(count(path, TEST_LIMIT + 1), 1, "{path}");
        }
    }

    #[test]
    fn only_rust_of_ours_is_measured() {
        assert_eq!(count("docs/long.md", 5000), 0);
    }
}
