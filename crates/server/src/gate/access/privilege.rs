//! Set of privileges of a token. All of them together make an admin.

use std::fmt;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Privileges(u8);

const WORDS: [(&str, Privileges); 6] = [
    ("read_job", Privileges::READ_JOB),
    ("write_job", Privileges::WRITE_JOB),
    ("read_feature", Privileges::READ_FEATURE),
    ("write_feature", Privileges::WRITE_FEATURE),
    ("read_token", Privileges::READ_TOKEN),
    ("write_token", Privileges::WRITE_TOKEN),
];

impl Privileges {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const READ_JOB: Self = Self(1);
    pub(crate) const WRITE_JOB: Self = Self(2);
    pub(crate) const READ_FEATURE: Self = Self(4);
    pub(crate) const WRITE_FEATURE: Self = Self(8);
    pub(crate) const READ_TOKEN: Self = Self(16);
    pub(crate) const WRITE_TOKEN: Self = Self(32);
    pub(crate) const ALL: Self = Self(63);

    /// Parses privilege names; the error is the first unknown one. Hyphens and older names are accepted.
    pub(crate) fn read<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut all = Self::NONE;
        for word in words {
            let written = word.trim().replace('-', "_");
            let found = match written.as_str() {
                "admin" => Some(Self::ALL),
                "register_plugin" | "write_plugin" => Some(Self::WRITE_FEATURE),
                "read_plugin" => Some(Self::READ_FEATURE),
                written => WORDS.iter().find(|(known, _)| *known == written).map(|(_, one)| *one),
            };
            all.0 |= found.ok_or_else(|| word.to_owned())?.0;
        }
        Ok(all)
    }

    pub(crate) fn words(self) -> Vec<&'static str> {
        WORDS.iter().filter(|(_, one)| self.include(*one)).map(|(word, _)| *word).collect()
    }

    pub(crate) fn include(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Privileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written_and_unknown_ones_are_named() {
        let some = Privileges::read(["read_job", "write-token"]).unwrap();
        assert_eq!(some.to_string(), "read_job,write_token");
        assert_eq!(Privileges::read(some.to_string().split(',')).unwrap(), some);
        assert_eq!(Privileges::read(["admin"]).unwrap(), Privileges::ALL);
        assert_eq!(Privileges::read(["register-plugin"]).unwrap(), Privileges::WRITE_FEATURE);
        assert_eq!(Privileges::read(["read_job", "fly"]).unwrap_err(), "fly");
        assert!(Privileges::ALL.include(some) && !some.include(Privileges::ALL));
    }
}
