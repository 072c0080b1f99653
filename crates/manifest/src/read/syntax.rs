//! Translates the parser's errors into helpful messages: what is wrong, and what users usually meant.

use std::sync::Arc;

use crate::problem::{code, shorten};
use crate::{Limits, Problem, Source};

/// The parser's error (a substring), our message, and the help. The first match is used.
const KNOWN: &[(&str, &str, &str)] = &[
    (
        "illegal placement of ':'",
        "a `:` starts a value inside an open bracket",
        "close the bracket on the lines before",
    ),
    (
        "invalid Unicode character escape",
        "an escape inside double quotes names no character",
        "write the character itself",
    ),
    ("tab", "a tab is used where only spaces may indent", "indent with spaces"),
    (
        "mapping values are not allowed",
        "a `:` starts a value where none can be",
        "quote the text if the `:` belongs to it; otherwise check the indentation of this line and the one before",
    ),
    (
        "simple key expect",
        "a key without `:`",
        "write `key: value`, or check the indentation of this line and the one before",
    ),
    (
        "block mapping, did not find expected key",
        "this line does not fit the mapping around it",
        "check its indentation, and that quotes before it are closed",
    ),
    (
        "block sequence entries are not allowed",
        "a list cannot start here",
        "start it on a line of its own, below its key",
    ),
    (
        "block collection, did not find expected '-'",
        "this line is not an item of the list around it",
        "check its indentation, or start it with `- `",
    ),
    ("quoted scalar, found unexpected end of stream", "a quote is not closed", "add the closing quote"),
    (
        "quoted scalar, found unexpected document indicator",
        "a quote is not closed before the next document",
        "add the closing quote",
    ),
    (
        "unknown escape character",
        "an escape inside double quotes is unknown",
        "write \\\\ for a backslash, or use single quotes",
    ),
    ("trailing content after double-quoted", "text follows a closing quote", "put all of it inside the quotes"),
    (
        "did not find expected ',' or",
        "a `,` or a closing bracket is missing",
        "close the bracket, or quote the text if the bracket belongs to it",
    ),
    (
        "expected ',' or ']'",
        "a `,` or a closing bracket is missing",
        "close the bracket, or quote the text if the bracket belongs to it",
    ),
    (
        "misplaced bracket",
        "a closing bracket without an opening one",
        "remove it, or quote the text if it belongs to it",
    ),
    ("unexpected character", "a value cannot start with this character", "quote the value"),
    ("comment intercepting", "a comment stands in the middle of a text", "move the comment, or quote the text"),
    (
        "comments must be separated",
        "a `#` follows a value directly",
        "put a space before the comment, or quote the text if the `#` belongs to it",
    ),
    ("invalid indentation", "the indentation fits nothing around it", "align it with its neighbours"),
    (
        "wrongly indented line in block scalar",
        "a line of a text block is indented less than its first",
        "align it with the first line",
    ),
    (
        "did not find expected <document start>",
        "text follows the end of the document",
        "check the indentation, or separate documents with a line `---`",
    ),
];

/// Returns the problem for a parser error at a byte offset of the text.
pub(super) fn problem(source: &Arc<Source>, limits: &Limits, complaint: &str, place: usize) -> Problem {
    let place = if complaint.contains("tab") {
        tab_from(source.text(), place)
    } else if complaint.contains("simple key expect") {
        content_before(source.text(), place)
    } else {
        place
    };
    let span = source.span(place, 0);
    let problem = if complaint.contains("recursion limit") {
        Problem::error(code::LIMIT, format!("nested deeper than {} levels", limits.depth)).help("flatten it")
    } else if complaint.contains("unknown anchor") {
        let rest = &source.text()[span.offset..];
        let name = rest.split([' ', '\t', '\n', '\r', ',', ']', '}']).next().unwrap_or_default();
        Problem::error(code::TAG_OR_ALIAS, format!("unknown alias `{}`", shorten(name)))
            .help("define it before with `&`, or quote the text if the `*` belongs to it")
    } else if complaint.contains("handle wasn't declared") {
        Problem::error(code::TAG_OR_ALIAS, "a tag uses an undeclared handle")
            .help("remove the tag, or quote the text if the `!` belongs to it")
    } else if source.line(span.line).contains("{{") && !complaint.contains("tab") {
        Problem::error(code::SYNTAX, say(complaint).0).help("a template expression must be quoted: '{{…}}'")
    } else {
        let (message, help) = say(complaint);
        let problem = Problem::error(code::SYNTAX, message);
        if help.is_empty() { problem } else { problem.help(help) }
    };
    problem.at(source, span)
}

fn say(complaint: &str) -> (&str, &str) {
    let known = KNOWN.iter().find(|(part, _, _)| complaint.contains(part));
    known.map_or((complaint, ""), |(_, message, help)| (message, help))
}

/// Finds the tab. The parser may point at the value before it; the tab is in the indentation of a line soon after.
fn tab_from(text: &str, place: usize) -> usize {
    const LINES: usize = 20;
    let mut start = text[..place].rfind('\n').map_or(0, |at| at + 1);
    for line in text[start..].split_inclusive('\n').take(LINES) {
        let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
        if let Some(tab) = line[..indentation].find('\t') {
            return start + tab;
        }
        start += line.len();
    }
    place
}

/// Finds the key. The parser notices the missing `:` only past the key; the key is the content before.
fn content_before(text: &str, place: usize) -> usize {
    let mut end = place;
    loop {
        let start = text[..end].rfind('\n').map_or(0, |at| at + 1);
        let content = text[start..end].trim_start();
        if !content.is_empty() && !content.starts_with('#') {
            return end - content.len();
        }
        if start == 0 {
            return place;
        }
        end = start - 1;
    }
}
