//! Error codes: each code that users can see has a page, and no page explains a code that is gone.

use std::collections::BTreeMap;

use super::Problem;
use super::source::File;

const PAGES: &str = "docs/errors/";
const DIGITS: usize = 4;

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let mut mentioned: BTreeMap<String, (&str, usize)> = BTreeMap::new();
    for file in files.iter().filter(|file| is_product(file)) {
        for (index, line) in file.text.lines().enumerate() {
            for code in codes(line) {
                mentioned.entry(code).or_insert((&file.path, index + 1));
            }
        }
    }
    let pages: BTreeMap<String, &str> =
        files.iter().filter_map(|file| Some((page(&file.path)?, file.path.as_str()))).collect();

    let without_page = mentioned.iter().filter(|(code, _)| !pages.contains_key(*code));
    let without_code = pages.iter().filter(|(code, _)| !mentioned.contains_key(*code));
    let missing = without_page.map(|(code, (path, line))| {
        let what = format!("{code} has no page {PAGES}{code}.md");
        let why = "a code is a promise that a page says what happened and what to do";
        Problem::new(path, *line, what, why)
    });
    let stale = without_code.map(|(code, path)| {
        let what = format!("no code mentions {code}");
        let why = "a page nobody can be sent to misleads; retire it together with its code";
        Problem::new(path, 0, what, why)
    });
    missing.chain(stale).collect()
}

fn is_product(file: &File) -> bool {
    let in_src = file.path.split('/').nth(2) == Some("src");
    file.is_rust() && file.is_under("crates/") && in_src
}

fn page(path: &str) -> Option<String> {
    let name = path.strip_prefix(PAGES)?.strip_suffix(".md")?;
    codes(name).into_iter().find(|code| code == name)
}

/// Finds every `OF` with exactly four digits that is not part of a longer word.
fn codes(line: &str) -> Vec<String> {
    let part = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = line.as_bytes();
    line.match_indices("OF")
        .filter_map(|(at, prefix)| {
            let begin = at + prefix.len();
            let digits = bytes.get(begin..begin + DIGITS)?;
            let whole = !part(bytes[..at].last()) && !part(bytes.get(begin + DIGITS));
            let found = whole && digits.iter().all(u8::is_ascii_digit);
            found.then(|| line[at..begin + DIGITS].to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> File {
        File::new("crates/engine/src/issue.rs", text)
    }

    #[test]
    fn a_code_with_its_page_is_fine() {
        let page = File::new("docs/errors/OF0001.md", "");
        assert_eq!(check(&[source("\"OF0001\""), page]), []);
    }

    #[test]
    fn a_code_without_a_page_is_reported_where_it_stands() {
        let problems = check(&[source("\n\"OF0002\", \"OF0002\"\n")]);
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].line, 2);
        assert!(problems[0].what.contains("docs/errors/OF0002.md"));
    }

    #[test]
    fn a_page_without_a_code_is_reported() {
        let page = File::new("docs/errors/OF0003.md", "");
        let problems = check(&[source(""), page]);
        assert_eq!(problems[0].what, "no code mentions OF0003");
    }

    #[test]
    fn other_pages_and_longer_words_are_no_codes() {
        let index = File::new("docs/errors/README.md", "OF0009");
        assert_eq!(check(&[index, source("XOF0001 OF00012 OF001 OF000x OF")]), []);
    }
}
