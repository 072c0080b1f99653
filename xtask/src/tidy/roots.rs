//! Crate roots: so few modules that a newcomer finds a way in by reading their names.

use std::collections::{BTreeMap, BTreeSet};

use super::Problem;
use super::source::File;

const LIMIT: usize = 16;

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let mut roots: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let Some((root, rest)) = file.path.split_once("/src/") else { continue };
        let first = rest.split('/').next().unwrap_or(rest);
        roots.entry(root).or_default().insert(first.trim_end_matches(".rs"));
    }
    let crowded = roots.into_iter().filter(|(_, names)| names.len() > LIMIT);
    crowded
        .map(|(root, names)| {
            let what = format!("{} modules at the root, at most {LIMIT} are allowed", names.len());
            Problem::new(
                &format!("{root}/src"),
                0,
                what,
                "folders show the way through a crate; group what belongs together",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(modules: usize) -> usize {
        let files = (0..modules).flat_map(|at| {
            [
                format!("crates/a/src/m{at}.rs"),
                format!("crates/a/src/m{at}/part.rs"),
                format!("crates/a/tests/t{at}.rs"),
            ]
        });
        check(&files.map(|path| File::new(&path, "")).collect::<Vec<_>>()).len()
    }

    #[test]
    fn a_module_and_its_folder_count_once_and_tests_not_at_all() {
        assert_eq!(count(LIMIT), 0);
        assert_eq!(count(LIMIT + 1), 1);
    }
}
