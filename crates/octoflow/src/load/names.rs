//! Names of runs: unique suffixes, and suggestions for misspelled names. The only source of randomness of this program.

use std::{fs::File, io::Read};

use anyhow::{Context, Result};
pub(crate) use octoflow_engine::expr::nearest;

/// Letters and digits that do not form words and are not mistaken for each other.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Maximum length of a name, as of every label that carries it.
pub(crate) const MAX_LENGTH: usize = 63;

/// Appends five random letters to `prefix`.
pub(crate) fn generate(prefix: &str) -> Result<String> {
    let mut bytes = [0_u8; 5];
    File::open("/dev/urandom").and_then(|mut chance| chance.read_exact(&mut bytes)).context("cannot draw a name")?;
    Ok(with_suffix(prefix, bytes))
}

/// Generates an idempotency key.
pub(crate) fn key() -> Result<String> {
    let mut bytes = [0_u8; 16];
    File::open("/dev/urandom").and_then(|mut chance| chance.read_exact(&mut bytes)).context("cannot draw a key")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn with_suffix(prefix: &str, bytes: [u8; 5]) -> String {
    let mut name: String = prefix.chars().take(MAX_LENGTH - bytes.len()).collect();
    name.extend(bytes.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])));
    name
}

/// Suggests a similar known name: `did you mean "x"?`.
pub(crate) fn suggestion<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(wrong, known).map(|name| format!("did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_name_begins_as_asked_and_stays_short() {
        assert_eq!(with_suffix("dag-diamond-", [0, 1, 26, 27, 28]), "dag-diamond-bc9bc");
        assert_eq!(with_suffix(&"x".repeat(100), [0; 5]).len(), MAX_LENGTH);
        assert_ne!(generate("a-").unwrap(), generate("a-").unwrap());
    }

    #[test]
    fn a_misspelt_name_finds_its_neighbour() {
        assert_eq!(suggestion("dag-diamnd", ["steps", "dag-diamond"]).as_deref(), Some("did you mean `dag-diamond`?"));
        assert_eq!(suggestion("zzz", ["steps"]), None);
    }
}
