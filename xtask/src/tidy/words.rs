//! Words that may not occur in our source: marks of unfinished work, disabled tests, and printing outside the modules
//! that talk to a person. The words are assembled from pieces so that this file does not match itself.

use super::Problem;
use super::source::{File, has_word};

struct Banned {
    word: &'static str,
    why: &'static str,
}

const UNFINISHED: &str = "unfinished work is an issue, not a mark in the code that everybody walks past";

const BANNED: &[Banned] = &[
    Banned { word: concat!("to", "do!("), why: UNFINISHED },
    Banned { word: concat!("unimple", "mented!("), why: UNFINISHED },
    Banned { word: concat!("FIX", "ME"), why: UNFINISHED },
    Banned { word: concat!("XX", "X"), why: UNFINISHED },
    Banned { word: concat!("#[", "ignore"), why: "a test that does not run proves nothing; make it run or remove it" },
];

const PRINTING: &[&str] = &["println!", "eprintln!", "print!", "eprint!"];

/// Files that may print. The testkit's programs are run by hand through the menu.
const TALKERS: &[&str] =
    &["crates/octoflow/src/output", "crates/octoflow/src/main.rs", "crates/testkit/src/bin/", "xtask/"];

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    files.iter().filter(|file| file.is_rust()).flat_map(|file| banned(file).into_iter().chain(printing(file))).collect()
}

fn banned(file: &File) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for ban in BANNED.iter().filter(|ban| has_word(line, ban.word)) {
            let what = format!("`{}` is not allowed", ban.word);
            problems.push(Problem::new(&file.path, index + 1, what, ban.why));
        }
    }
    problems
}

fn printing(file: &File) -> Vec<Problem> {
    let build_script = file.path.ends_with("/build.rs");
    if build_script || TALKERS.iter().any(|talker| file.is_under(talker)) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (number, line) in file.production() {
        for word in PRINTING.iter().filter(|word| has_word(line, word)) {
            let what = format!("`{word}` outside the output module");
            let why = "one place prints, so that stdout holds data and nothing else";
            problems.push(Problem::new(&file.path, number, what, why));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&[File::new(path, text)]).len()
    }

    #[test]
    fn every_banned_word_is_found_even_in_comments_and_tests() {
        for ban in BANNED {
            let text = format!("// {}\n", ban.word);
            assert_eq!(count("crates/a/src/b.rs", &text), 1, "{}", ban.word);
            assert_eq!(count("crates/a/tests/b.rs", &text), 1, "{}", ban.word);
        }
    }

    #[test]
    fn a_file_name_pattern_is_not_a_mark() {
        let text = ["\"tmp.", &"X".repeat(6), "\"\n"].concat();
        assert_eq!(count("crates/a/src/b.rs", &text), 0);
    }

    #[test]
    fn every_way_of_printing_is_found_once() {
        for word in PRINTING {
            let text = format!("fn f() {{\n    {word}(\"x\");\n}}\n");
            assert_eq!(count("crates/store/src/b.rs", &text), 1, "{word}");
        }
    }

    #[test]
    fn talkers_and_tests_may_print() {
        let text = "fn f() {\n    println!();\n}\n";
        for path in [
            "crates/octoflow/src/main.rs",
            "crates/octoflow/src/output.rs",
            "crates/octoflow/src/output/tree.rs",
            "crates/testkit/src/bin/sim.rs",
            "crates/a/tests/b.rs",
            "xtask/src/menu.rs",
        ] {
            assert_eq!(count(path, text), 0, "{path}");
        }
        let inline = format!("#[cfg(test)]\nmod tests {{\n    {text}}}\n");
        assert_eq!(count("crates/a/src/b.rs", &inline), 0);
    }
}
