//! What stands behind the question mark of a request, and names in its path, decoded.

/// The values of a query in their order; names may repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(name), decode(value))
                })
                .collect(),
        )
    }

    /// The first value of this name that says something.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Said, and not `false` or `0`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.iter().any(|(known, value)| known == name && !matches!(value.as_str(), "false" | "0" | "False"))
    }
}

/// Undoes percent signs and pluses; what is no valid escape stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escape =
            after.get(..2).and_then(|two| str::from_utf8(two).ok()).and_then(|two| u8::from_str_radix(two, 16).ok());
        match (first, escape) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
                continue;
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_and_names_may_repeat() {
        let query = Query::parse("a=b%20c+d&a=2&empty=&flag&no=false&p=100%");
        assert_eq!(query.get("a"), Some("b c d"));
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["b c d", "2"]);
        assert_eq!((query.get("empty"), query.get("p")), (None, Some("100%")));
        assert!(query.flag("flag") && !query.flag("no") && !query.flag("other"));
    }
}
