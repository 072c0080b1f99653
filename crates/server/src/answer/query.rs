//! The query string of a request, decoded.

/// Query parameters in order; names may repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses `name=value` pairs. Invalid escapes are kept as they are.
    pub(crate) fn parse(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// Returns the first non-empty value of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns all parameters with their values.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns whether the parameter is given and not `false` or `0`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.iter().any(|(known, value)| known == name && !matches!(value.as_str(), "false" | "0" | "False"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_and_names_may_repeat() {
        let query = Query::parse("a=b%20c+d&a=2&empty=&flag&no=false&p=100%&&n=%zz%+1");
        assert_eq!(query.get("a"), Some("b c d"));
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["b c d", "2"]);
        assert_eq!((query.get("empty"), query.get("p")), (None, Some("100%")));
        assert_eq!(query.get("n"), Some("%zz% 1"));
        assert!(query.flag("flag") && !query.flag("no") && !query.flag("other"));
    }
}
