//! Finds variables in a text: `{{name}}` and `{{=expression}}`.
//! Resolving them is the scope's job.

use crate::expr::{
    Error,
    lang::{self, Expression},
};

/// A variable in a text.
pub(super) enum Tag<'t> {
    /// The text between the braces, spaces included.
    Name(&'t str),
    Expression {
        text: &'t str,
        parsed: Box<Result<Expression, Error>>,
    },
}

/// Maximum number of closing braces tried. An expression may contain `}}` itself, so it ends where it parses.
const TRIES: usize = 16;

/// Maximum length of an expression in bytes. Nobody writes longer ones, and parsing takes time.
const FURTHEST: usize = 64 * 1024;

/// Calls `see` with each tag of a text, innermost first where tags nest, until it returns false. The outer of two
/// nested tags is left out: its name is only known at run time.
pub(super) fn each<'t>(text: &'t str, see: &mut dyn FnMut(Tag<'t>) -> bool) {
    let mut at = 0;
    while let Some(open) = text[at..].find("{{").map(|found| at + found) {
        let body = open + 2;
        let Some(close) = text[body..].find("}}").map(|found| body + found) else { return };
        if let Some(source) = text[body..].trim_start().strip_prefix('=') {
            let start = text.len() - source.len();
            let (parsed, close) = expression(text, start, close.max(start));
            if !see(Tag::Expression { text: &text[start..close], parsed: Box::new(parsed) }) {
                return;
            }
            at = close + 2;
            continue;
        }
        match text[body..close].rfind("{{") {
            Some(inner) => at = body + inner,
            None if !see(Tag::Name(&text[body..close])) => return,
            None => at = close + 2,
        }
    }
}

/// Returns a tag with its braces, given the text between them; `body` is a part of `text`.
pub(super) fn whole<'t>(text: &'t str, body: &'t str) -> &'t str {
    let start = (body.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    text.get(start.wrapping_sub(2)..start.wrapping_add(body.len() + 2)).unwrap_or(body)
}

/// Parses the expression that begins at `start`. Returns it with the position of its closing braces: the first it
/// parses with, else the first.
fn expression(text: &str, start: usize, first: usize) -> (Result<Expression, Error>, usize) {
    let parsed = lang::parse(&text[start..first]);
    if parsed.is_ok() {
        return (parsed, first);
    }
    let mut close = first;
    for _ in 1..TRIES {
        match text[close + 1..].find("}}").map(|found| close + 1 + found) {
            Some(next) if next - start <= FURTHEST => close = next,
            _ => break,
        }
        let parsed = lang::parse(&text[start..close]);
        if parsed.is_ok() {
            return (parsed, close);
        }
    }
    (parsed, first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut tags = Vec::new();
        each(text, &mut |tag| {
            tags.push(match tag {
                Tag::Name(name) => name.to_owned(),
                Tag::Expression { text, parsed } => format!("={text}{}", if parsed.is_ok() { "" } else { "!" }),
            });
            tags.len() < 5
        });
        tags
    }

    #[test]
    fn tags_are_found_wherever_they_stand() {
        for (text, tags) in [
            ("none { at } all", vec![]),
            ("{{a}} and {{ b.c }}", vec!["a", " b.c "]),
            ("{{inputs.parameters.{{x}}}} {{y}}", vec!["x", "y"]),
            ("{{open", vec![]),
            ("}} {{a}}", vec!["a"]),
            ("{{}}", vec![""]),
            ("{{1}}{{2}}{{3}}{{4}}{{5}}{{6}}", vec!["1", "2", "3", "4", "5"]),
        ] {
            assert_eq!(found(text), tags, "{text}");
        }
    }

    #[test]
    fn a_tag_is_found_again_with_its_braces() {
        let text = "a {{b}} {{ c }}";
        each(text, &mut |tag| {
            let Tag::Name(body) = tag else { unreachable!("no expressions here") };
            assert_eq!(whole(text, body), format!("{{{{{body}}}}}"));
            true
        });
        assert_eq!(whole(text, "elsewhere"), "elsewhere");
    }

    #[test]
    fn an_expression_ends_where_it_parses() {
        assert_eq!(found("{{=1 + 2}} {{a}}"), ["=1 + 2", "a"]);
        assert_eq!(found("{{= toJSON({a: {b: 1}}) }}{{c}}"), ["= toJSON({a: {b: 1}}) ", "c"]);
        assert_eq!(found("{{=1 +}} {{a}}"), ["=1 +!", "a"]);
        assert_eq!(found("{{=}}"), ["=!"]);
    }
}
