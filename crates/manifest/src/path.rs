//! Paths from the root of a document to one of its values. Written `spec.templates[1].image`, with ambiguous keys as
//! `['a.b']`. Knows nothing of the documents themselves.

use std::fmt;
use std::str::FromStr;

/// One step: into a mapping by key, or into a list by index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    Key(String),
    Index(usize),
}

impl From<&str> for Segment {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<String> for Segment {
    fn from(key: String) -> Self {
        Self::Key(key)
    }
}

impl From<usize> for Segment {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// The steps from the root. The empty path is the root itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(pub Vec<Segment>);

impl Path {
    pub fn root() -> Self {
        Self::default()
    }

    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Appends a step.
    pub fn push(&mut self, segment: impl Into<Segment>) {
        self.0.push(segment.into());
    }

    /// Removes the last step.
    pub fn pop(&mut self) -> Option<Segment> {
        self.0.pop()
    }

    /// Returns the path with one more step.
    #[must_use]
    pub fn join(&self, segment: impl Into<Segment>) -> Self {
        let mut path = self.clone();
        path.push(segment);
        path
    }

    /// Returns this path followed by all steps of another.
    #[must_use]
    pub fn concat(&self, tail: &Self) -> Self {
        Self(self.0.iter().chain(&tail.0).cloned().collect())
    }

    pub fn parent(&self) -> Option<Self> {
        let (_, head) = self.0.split_last()?;
        Some(Self(head.to_vec()))
    }

    pub fn starts_with(&self, head: &Self) -> bool {
        self.0.starts_with(&head.0)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(out, "[{index}]")?,
                Segment::Key(key) if is_plain(key) => {
                    if position > 0 {
                        out.write_str(".")?;
                    }
                    out.write_str(key)?;
                }
                Segment::Key(key) => {
                    out.write_str("['")?;
                    for letter in key.chars() {
                        if matches!(letter, '\'' | '\\') {
                            out.write_str("\\")?;
                        }
                        write!(out, "{letter}")?;
                    }
                    out.write_str("']")?;
                }
            }
        }
        Ok(())
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.chars().all(is_plain_letter)
}

fn is_plain_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '$')
}

/// Why a text is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a path: {what} at character {at}")]
pub struct PathError {
    what: &'static str,
    at: usize,
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let letters: Vec<char> = text.chars().collect();
        let mut reader = Reader { letters: &letters, at: 0 };
        let mut path = Self::root();
        while reader.at < letters.len() {
            let segment = reader.segment(path.is_root())?;
            path.0.push(segment);
        }
        Ok(path)
    }
}

struct Reader<'a> {
    letters: &'a [char],
    at: usize,
}

impl Reader<'_> {
    fn segment(&mut self, first: bool) -> Result<Segment, PathError> {
        match self.peek() {
            Some('[') => {
                self.at += 1;
                let segment = if self.peek() == Some('\'') { self.quoted()? } else { self.index()? };
                self.expect(']', "a `]` is missing")?;
                Ok(segment)
            }
            Some('.') if !first => {
                self.at += 1;
                self.key()
            }
            Some(_) if first => self.key(),
            _ => Err(self.wrong("`.` or `[` expected")),
        }
    }

    fn key(&mut self) -> Result<Segment, PathError> {
        let start = self.at;
        while self.peek().is_some_and(is_plain_letter) {
            self.at += 1;
        }
        if start == self.at {
            return Err(self.wrong("a key expected (other characters are written as ['key'])"));
        }
        Ok(Segment::Key(self.letters[start..self.at].iter().collect()))
    }

    fn quoted(&mut self) -> Result<Segment, PathError> {
        self.at += 1;
        let mut key = String::new();
        loop {
            match self.peek() {
                Some('\'') => {
                    self.at += 1;
                    return Ok(Segment::Key(key));
                }
                Some('\\') => {
                    self.at += 1;
                    key.push(self.peek().ok_or_else(|| self.wrong("a quote is not closed"))?);
                }
                Some(letter) => key.push(letter),
                None => return Err(self.wrong("a quote is not closed")),
            }
            self.at += 1;
        }
    }

    fn index(&mut self) -> Result<Segment, PathError> {
        let start = self.at;
        while self.peek().is_some_and(|letter| letter.is_ascii_digit()) {
            self.at += 1;
        }
        let digits: String = self.letters[start..self.at].iter().collect();
        match digits.parse() {
            Ok(index) => Ok(Segment::Index(index)),
            Err(_) => Err(self.wrong("an index or a quoted key expected")),
        }
    }

    fn expect(&mut self, letter: char, what: &'static str) -> Result<(), PathError> {
        if self.peek() != Some(letter) {
            return Err(self.wrong(what));
        }
        self.at += 1;
        Ok(())
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn wrong(&self, what: &'static str) -> PathError {
        PathError { what, at: self.at + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(segments: &[Segment]) -> Path {
        Path(segments.to_vec())
    }

    #[test]
    fn a_path_reads_as_people_write_it() {
        let plain = path(&["spec".into(), "templates".into(), 1.into(), "container".into(), "image".into()]);
        assert_eq!(plain.to_string(), "spec.templates[1].container.image");
        let odd = path(&["metadata".into(), "labels".into(), "a.b/c".into(), "it's\\".into(), "".into()]);
        assert_eq!(odd.to_string(), r"metadata.labels['a.b/c']['it\'s\\']['']");
        assert_eq!(path(&["a b".into(), 0.into()]).to_string(), "['a b'][0]");
        assert_eq!(Path::root().to_string(), "");
    }

    #[test]
    fn what_is_written_can_be_parsed_again() {
        for text in
            ["", "spec", "spec.templates[1].container.image", "[0][1].a", r"a['x.y']['it\'s'].b", "['a b'][0]", "['']"]
        {
            assert_eq!(text.parse::<Path>().map(|path| path.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn a_wrong_path_says_where() {
        for (text, at) in
            [("a..b", 3), (".a", 1), ("a[x]", 3), ("a[1", 4), ("a['x", 5), ("a b", 2), ("a[99999999999999999999]", 23)]
        {
            let error = text.parse::<Path>().expect_err(text);
            assert_eq!(error.at, at, "{text}: {error}");
        }
    }

    #[test]
    fn paths_are_built_step_by_step() {
        let spec = Path::root().join("spec");
        let item = spec.join("items").join(3);
        assert_eq!(item.parent(), Some(spec.join("items")));
        assert_eq!(Path::root().parent(), None);
        assert!(item.starts_with(&spec));
        assert_eq!(spec.concat(&"items[3]".parse().unwrap()), item);
        assert!(spec < item);
    }
}
