//! Path and query of a URL, encoded: no user input becomes part of an address unescaped.

use std::fmt;

#[derive(Clone, Debug)]
pub(crate) struct Address {
    text: String,
    asked: bool,
}

impl Address {
    /// Makes a path from parts, each encoded by itself.
    pub(crate) fn of(parts: &[&str]) -> Self {
        let text = parts.iter().map(|part| format!("/{}", encoded(part))).collect();
        Self { text, asked: false }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.text.push(if self.asked { '&' } else { '?' });
        self.asked = true;
        self.text.push_str(&format!("{}={}", encoded(name), encoded(&value.to_string())));
        self
    }

    #[must_use]
    pub(crate) fn with_some(self, name: &str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn encoded(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'@' => shown.push(char::from(byte)),
            other => shown.push_str(&format!("%{other:02X}")),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_part_of_the_path() {
        let address = Address::of(&["api", "v1", "../x?y", "@latest"]).with("a b", "1&2").with_some("c", None::<u8>);
        assert_eq!(address.to_string(), "/api/v1/..%2Fx%3Fy/@latest?a%20b=1%262");
        assert_eq!(Address::of(&["a"]).with("x", 1).with("y", 2).to_string(), "/a?x=1&y=2");
    }
}
