//! The error pages that are built into the binary. See `build.rs`.

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Returns the page of a code such as `OF1003`, in any case.
pub(crate) fn page(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _)| known.eq_ignore_ascii_case(code)).map(|(_, text)| *text)
}

/// Returns whether a word is meant as an error code.
pub(crate) fn is_code(word: &str) -> bool {
    match word.as_bytes() {
        [b'O' | b'o', b'F' | b'f', digits @ ..] => digits.len() == 4 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

pub(crate) fn codes() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(code, _)| *code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_from_names() {
        assert!(is_code("OF1003") && is_code("of1003"));
        assert!(!is_code("OF10") && !is_code("offline") && !is_code("dag-diamond") && !is_code("aÖ123"));
    }

    #[test]
    fn every_page_that_was_built_in_can_be_found() {
        for code in codes() {
            assert!(is_code(code) && page(&code.to_lowercase()).is_some(), "{code}");
        }
        let unused = format!("OF{}", 9999);
        assert_eq!(page(&unused), None);
    }
}
