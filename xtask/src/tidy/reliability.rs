//! The list of faults: every test that docs/reliability.md names exists under that name. Does not judge whether the
//! test shows what the list says.

use super::Problem;
use super::source::File;

const LIST: &str = "docs/reliability.md";

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let Some(list) = files.iter().find(|file| file.path == LIST) else { return Vec::new() };
    let mut problems = Vec::new();
    for (index, line) in list.text.lines().enumerate() {
        for (path, name) in named(line) {
            let path = format!("crates/{path}");
            let found = files.iter().find(|file| file.path == path);
            if !found.is_some_and(|file| file.text.contains(&format!("fn {name}("))) {
                let what = format!("there is no test `{name}` in {path}");
                problems.push(Problem::new(LIST, index + 1, what, "a fault without its test is not held"));
            }
        }
    }
    problems
}

/// Finds every `file.rs::name` between backquotes.
fn named(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|word| word.split_once("::"))
        .filter(|(path, _)| path.ends_with(".rs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_was_renamed_is_missed() {
        let list = File::new(LIST, "| F1 | kill | shown | `a/tests/x.rs::there`, `a/tests/x.rs::gone`, `a::b` |\n");
        let test = File::new("crates/a/tests/x.rs", "#[test]\nfn there() {}\n");
        let problems = check(&[list, test]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].what.contains("`gone`") && problems[0].line == 1, "{problems:?}");
    }
}
