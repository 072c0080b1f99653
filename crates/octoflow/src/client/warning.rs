//! Reads `Warning` headers, which say what is odd about a request that was carried out.

/// Returns the text of a header such as `299 - "text"`; `None` if it says nothing of the kind.
pub(super) fn text(value: &[u8]) -> Option<String> {
    let value = std::str::from_utf8(value).ok()?;
    let quoted = value.strip_prefix("299 ")?.split_once(' ')?.1.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(quoted.len());
    let mut letters = quoted.chars();
    while let Some(letter) = letters.next() {
        text.push(if letter == '\\' { letters.next()? } else { letter });
    }
    // What a server says is printed, so it must not steer a terminal.
    Some(text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_read_as_it_was_written_and_anything_else_is_none() {
        assert_eq!(text(br#"299 - "a \"b\" c\\d""#).unwrap(), r#"a "b" c\d"#);
        assert_eq!(text("299 octoflow \"größer\"".as_bytes()).unwrap(), "größer");
        assert_eq!(text(b"299 - \"a\x1b[31m\"").unwrap(), "a [31m");
        for other in [&b"199 - \"stale\""[..], b"299 - open", b"299", b"\xff", b"299 - \"open\\\""] {
            assert_eq!(text(other), None, "{other:?}");
        }
    }
}
