//! Parses node field selectors: `displayName=approve,inputs.parameters.stage.value!=dev`. Every term must hold.
//! Only the syntax is defined here; the caller resolves fields of nodes.

use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    key: String,
    value: String,
    equal: bool,
}

impl Selector {
    /// Parses a selector; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let terms = text.split(',').map(Term::parse).collect::<Option<Vec<_>>>()?;
        Some(Self { terms })
    }

    /// Whether all terms hold. A missing field equals nothing.
    pub fn holds<'v>(&self, field: impl Fn(&str) -> Option<Cow<'v, str>>) -> bool {
        self.terms.iter().all(|term| (field(&term.key).as_deref() == Some(term.value.as_str())) == term.equal)
    }
}

impl Term {
    fn parse(text: &str) -> Option<Self> {
        let (key, value, equal) = match text.split_once("!=") {
            Some((key, value)) => (key, value, false),
            None => {
                let (key, value) = text.split_once("==").or_else(|| text.split_once('='))?;
                (key, value, true)
            }
        };
        Some(Self { key: key.trim().to_owned(), value: value.trim().to_owned(), equal })
    }
}

/// Returns the name of the parameter in `inputs.parameters.<name>.value`.
pub(super) fn input_named(key: &str) -> Option<&str> {
    key.strip_prefix("inputs.parameters.")?.strip_suffix(".value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_term_must_hold() {
        let selector = Selector::parse("a=1, b != 2,c==3").unwrap();
        let node = |key: &str| match key {
            "a" => Some("1".into()),
            "c" => Some("3".into()),
            _ => None,
        };
        assert!(selector.holds(node));
        assert!(!Selector::parse("a=1,b=2").unwrap().holds(node));
        assert_eq!(Selector::parse("nonsense"), None);
        assert_eq!(Selector::parse(""), None);
    }
}
