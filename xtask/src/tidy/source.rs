//! A file of the project as the rules see it: its path from the root, its text, and which of its lines are production
//! code. Relies on rustfmt's layout instead of parsing Rust.

/// A file that belongs to the checkout.
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    pub(super) fn new(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    /// Returns whether this is Rust source of ours. Files elsewhere, such as examples, follow other rules.
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs") && (self.is_under("crates/") || self.is_under("xtask/"))
    }

    pub(super) fn is_under(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    /// Returns whether the file is only compiled for tests or benchmarks.
    pub(super) fn is_test(&self) -> bool {
        let mut parts: Vec<&str> = self.path.split('/').collect();
        let name = parts.pop().unwrap_or_default();
        name == "tests.rs"
            || parts.iter().any(|part| matches!(*part, "tests" | "benches"))
            || self.text.lines().any(|line| line == "#![cfg(test)]")
    }

    /// Returns the numbered lines of production code: no comments, no test-only items.
    pub(super) fn production(&self) -> Vec<(usize, &str)> {
        if self.is_test() {
            return Vec::new();
        }
        let mut lines = Vec::new();
        let mut skip = Skip::No;
        for (index, line) in self.text.lines().enumerate() {
            let (next, keep) = skip.step(line);
            skip = next;
            if keep && !line.trim_start().starts_with("//") {
                lines.push((index + 1, line));
            }
        }
        lines
    }
}

/// State of the scan for items that are compiled for tests only.
#[derive(Clone, Copy)]
enum Skip {
    No,
    /// The attribute was found at this indentation; the item itself comes next.
    Item(usize),
    /// Inside the item, which ends with a closing brace at this indentation.
    Body(usize),
}

impl Skip {
    fn step(self, line: &str) -> (Skip, bool) {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        match self {
            Skip::No => match after_test_attribute(code) {
                Some("") => (Skip::Item(indent), false),
                Some(item) => (begin(item, indent), false),
                None => (Skip::No, true),
            },
            Skip::Item(indent) if code.starts_with("#[") || code.starts_with("//") => (Skip::Item(indent), false),
            Skip::Item(indent) => (begin(code, indent), false),
            Skip::Body(at) => {
                let ends = indent == at && code.starts_with('}') && !code.ends_with('{');
                (if ends { Skip::No } else { self }, false)
            }
        }
    }
}

fn begin(item: &str, indent: usize) -> Skip {
    if item.ends_with(';') || item.ends_with('}') || item.ends_with(',') { Skip::No } else { Skip::Body(indent) }
}

fn after_test_attribute(code: &str) -> Option<&str> {
    let rest = code.strip_prefix("#[cfg(test").or_else(|| code.strip_prefix("#[cfg(all(test"))?;
    rest.split_once(']').map(|(_, item)| item.trim())
}

/// Returns whether `needle` occurs in `line` as a whole word, not as part of a longer name.
pub(super) fn has_word(line: &str, needle: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + needle.len()..].chars().next();
        let open = !needle.starts_with(part) || !before.is_some_and(part);
        let closed = !needle.ends_with(part) || !after.is_some_and(part);
        open && closed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> Vec<usize> {
        let file = File::new("crates/a/src/b.rs", text);
        file.production().iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn test_modules_and_comments_are_not_production() {
        let text = "use a;\n// why\n#[cfg(test)]\nmod tests {\n    fn x() {\n    }\n}\nfn y() {}\n";
        assert_eq!(kept(text), [1, 8]);
    }

    #[test]
    fn a_test_module_in_its_own_file_hides_only_its_declaration() {
        assert_eq!(kept("#[cfg(test)]\nmod tests;\nfn y() {}\n"), [3]);
        assert_eq!(kept("#[cfg(test)] mod tests;\nfn y() {}\n"), [2]);
    }

    #[test]
    fn a_test_function_inside_an_impl_ends_at_its_own_brace() {
        let text = "impl A {\n    #[cfg(test)]\n    fn long(\n        a: u8,\n    ) -> u8 {\n        a\n    }\n    fn b() {}\n}\n";
        assert_eq!(kept(text), [1, 8, 9]);
    }

    #[test]
    fn test_files_have_no_production_lines() {
        for path in ["crates/a/tests/b.rs", "crates/a/src/b/tests.rs", "crates/a/benches/b.rs"] {
            assert!(File::new(path, "fn x() {}\n").production().is_empty(), "{path}");
        }
    }

    #[test]
    fn a_word_inside_a_longer_name_is_not_that_word() {
        assert!(has_word("use std::env;", "std::env"));
        assert!(!has_word("use std::envelope;", "std::env"));
        assert!(!has_word("use mystd::env;", "std::env"));
    }
}
