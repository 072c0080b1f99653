//! Purity: the engine and the crates it uses cannot wait, read a clock, draw a number or touch a file. Checked twice,
//! by an allow list of outside crates and by a deny list of words.

use std::collections::BTreeSet;

use super::Problem;
use super::arrows::{self, Package};
use super::source::{File, has_word};

/// Outside crates that each pure crate may use. Dev-dependencies are unrestricted.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("octoflow-engine", &["serde", "serde_json", "croner", "jiff", "regex", "thiserror", "sha2"]),
    ("octoflow-model", &["serde", "serde_json", "jiff", "base64", "foldhash"]),
    ("octoflow-manifest", &["serde_json", "saphyr-parser", "thiserror"]),
];

const FOLDERS: &[&str] = &["crates/engine/src/", "crates/model/src/"];

const FORBIDDEN: &[&str] = &[
    "std::fs",
    "std::net",
    "std::env",
    "std::thread",
    "std::process",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "TimeZone::system",
];

const WHY: &str = "pure code is handed time, randomness and text, so that a run can be simulated, replayed and folded";

pub(super) fn dependencies(packages: &[Package]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, allowed) in OUTSIDE {
        for package in packages.iter().filter(|package| package.name == *name) {
            for to in &package.dependencies {
                if to.dev || arrows::is_ours(&to.name) || allowed.contains(&to.name.as_str()) {
                    continue;
                }
                let what = format!("`{name}` may not use the outside crate `{}`", to.name);
                problems.push(Problem::new(&package.manifest, 0, what, WHY));
            }
        }
    }
    problems
}

pub(super) fn text(files: &[File]) -> Vec<Problem> {
    files
        .iter()
        .filter(|file| file.is_rust() && FOLDERS.iter().any(|folder| file.is_under(folder)))
        .flat_map(impurities)
        .collect()
}

fn impurities(file: &File) -> Vec<Problem> {
    let lines = file.production();
    let mut found = BTreeSet::new();
    for (number, line) in &lines {
        found.extend(forbidden_in(line).map(|word| (*number, word)));
    }
    for (number, path) in imports(&lines) {
        found.extend(forbidden_in(&path).map(|word| (number, word)));
    }
    found.into_iter().map(|(number, word)| Problem::new(&file.path, number, format!("uses `{word}`"), WHY)).collect()
}

fn forbidden_in(text: &str) -> impl Iterator<Item = &'static str> {
    FORBIDDEN.iter().copied().filter(|word| has_word(text, word))
}

/// Returns every path that the `use` statements import, expanded: a group would hide what it names.
fn imports(lines: &[(usize, &str)]) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in lines {
        let code = line.trim();
        let at = code.find("use ").filter(|at| *at == 0 || code.starts_with("pub"));
        let (first, mut statement) = match (open.take(), at) {
            (Some(begun), _) => begun,
            (None, Some(at)) => (*number, code[at + 4..].to_owned()),
            (None, None) => continue,
        };
        if first != *number {
            statement.push_str(code);
        }
        match statement.split_once(';') {
            Some((tree, _)) => paths.extend(expand("", tree).into_iter().map(|p| (first, p))),
            None => open = Some((first, statement)),
        }
    }
    paths
}

fn expand(prefix: &str, tree: &str) -> Vec<String> {
    let Some((head, group)) = tree.split_once('{') else {
        return vec![format!("{prefix}{}", tree.trim())];
    };
    let prefix = format!("{prefix}{}", head.trim());
    let inner = group.rsplit_once('}').map_or(group, |(inner, _)| inner);
    branches(inner).into_iter().flat_map(|branch| expand(&prefix, branch)).collect()
}

/// Splits at the commas that are not inside a deeper group.
fn branches(group: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let split = |c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    group.split(split).filter(|branch| !branch.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::arrows::Dependency;
    use super::*;

    fn engine(body: &str) -> Vec<(usize, String)> {
        text(&[File::new("crates/engine/src/fold.rs", body)])
            .into_iter()
            .map(|problem| (problem.line, problem.what))
            .collect()
    }

    #[test]
    fn every_forbidden_word_is_found() {
        for word in FORBIDDEN {
            let found = engine(&format!("fn f() {{\n    {word}();\n}}\n"));
            assert_eq!(found, [(2, format!("uses `{word}`"))]);
        }
    }

    #[test]
    fn a_grouped_import_does_not_hide_a_word() {
        let found = engine("use std::{\n    collections::BTreeMap,\n    io::{self, Write}, fs,\n};\n");
        assert_eq!(found, [(1, "uses `std::fs`".to_owned())]);
        assert_eq!(engine("pub(crate) use std::{env, mem};\n").len(), 1);
    }

    #[test]
    fn innocent_code_comments_and_tests_pass() {
        let text =
            "//! Never `std::fs`.\nuse std::collections::BTreeMap;\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        assert_eq!(engine(text), []);
    }

    #[test]
    fn other_crates_may_do_what_they_are_for() {
        let file = File::new("crates/store/src/open.rs", "use std::fs;\n");
        assert_eq!(text(&[file]), []);
    }

    #[test]
    fn an_outside_crate_must_be_on_the_list_unless_for_tests() {
        let package = |name: &str, dev| Package {
            name: "octoflow-model".to_owned(),
            manifest: "crates/model/Cargo.toml".to_owned(),
            dependencies: vec![Dependency { name: name.to_owned(), dev }],
        };
        assert_eq!(dependencies(&[package("serde", false)]), []);
        assert_eq!(dependencies(&[package("rand", true)]), []);
        let problems = dependencies(&[package("rand", false)]);
        assert!(problems[0].what.contains("`rand`"));
    }
}
