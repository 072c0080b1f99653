//! Namespaces a token is confined to: all, or a few. It only compares names; the route table says which namespace a
//! request is about.

use std::{collections::BTreeSet, fmt, sync::Arc};

/// Maximum number of namespaces of one token.
const MAX_COUNT: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Every namespace, and cluster-wide objects.
    #[default]
    All,
    /// Only these; of cluster-wide objects only those shared by all.
    Namespaces(Arc<BTreeSet<String>>),
}

impl Scope {
    /// Makes a scope from names; none means all namespaces.
    pub(crate) fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut all = BTreeSet::new();
        for name in names {
            let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            let fits = (1..=63).contains(&name.len()) && name.bytes().all(letter);
            if !fits || name.starts_with('-') || name.ends_with('-') {
                return Err(format!(
                    "`{name}` is no namespace: at most 63 lower case letters, digits and `-`, with a letter or digit at \
                     both ends"
                ));
            }
            all.insert(name.to_owned());
        }
        if all.len() > MAX_COUNT {
            return Err(format!("a token is for {MAX_COUNT} namespaces at most, or for all of them"));
        }
        Ok(if all.is_empty() { Self::All } else { Self::Namespaces(Arc::new(all)) })
    }

    pub(crate) fn is_all(&self) -> bool {
        *self == Self::All
    }

    pub(crate) fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Namespaces(names) => names.contains(namespace),
        }
    }

    /// Returns whether a caller with this scope may grant the other one.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Namespaces(_), Self::All) => false,
            (Self::Namespaces(have), Self::Namespaces(want)) => want.is_subset(have),
        }
    }

    /// Returns the names; empty for all namespaces.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Self::All => Vec::new(),
            Self::Namespaces(names) => names.iter().map(String::as_str).collect(),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names().as_slice() {
            [] => f.write_str("all namespaces"),
            [one] => write!(f, "the namespace {one}"),
            more => write!(f, "the namespaces {}", more.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_includes_what_is_narrower_and_no_more() {
        let of = |names: &[&str]| Scope::of(names.iter().copied()).unwrap();
        let (all, one, two) = (of(&[]), of(&["a"]), of(&["a", "b"]));
        assert!(all.is_all() && all.contains("x") && all.includes(&all) && all.includes(&one));
        assert!(one.contains("a") && !one.contains("b") && !one.contains("") && !one.includes(&all));
        assert!(two.includes(&one) && !one.includes(&two) && one.includes(&one));
        for bad in ["", "A", "-a", "a-", "a/b", "a,b", &"x".repeat(64)] {
            assert!(Scope::of([bad]).is_err(), "{bad:?}");
        }
    }
}
